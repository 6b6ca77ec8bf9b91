"""A campaign in Python: pick, let people answer, pick again; everything in one file.

python examples/campaign.py FOLDER
"""

import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from evgp.campaign import Campaign
from evgp.campaign.hint import hint
from evgp.datasets.bundled import write_digits

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
truth = load_digits().target  # stands for the people who look at the pictures
errors = []

with tempfile.TemporaryDirectory() as place:
    write_digits(Path(place) / "digits.csv")
    campaign = Campaign.create(
        Path(place) / "digits", Path(place) / "digits.csv", id="image", classes=list("0123456789")
    )
    for _ in range(4):
        for item in campaign.next(15):
            campaign.answer(item.row, value=str(truth[item.row]), who="ann")
        told = hint(campaign)
        errors.append((len(campaign.labelled()[0]), told.left, told.error))
        print(told.words)
    campaign.close()

labels, left, error = zip(*errors, strict=True)
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.plot(labels, left, "o-", label="variance left")
axes.plot(labels, error, "s-", label="error expected on labels left out")
axes.set(xlabel="labels", ylabel="share", ylim=(0, None), xticks=labels)
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
figure.savefig(folder / "campaign.png", dpi=90)
