"""A campaign in Python: pick, collect answers, pick again, with everything in one file.

python examples/campaign.py FOLDER
"""

import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from evgp.datasets.demo import write_digits
from evgp.labelling.campaign import Campaign
from evgp.labelling.campaign.estimates import hint

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
truth = load_digits().target  # stands in for the people who label
errors = []

with tempfile.TemporaryDirectory() as place:
    write_digits(Path(place) / "digits.csv")
    campaign = Campaign.create(
        Path(place) / "digits", Path(place) / "digits.csv", id="image", classes=list("0123456789")
    )
    for _ in range(4):
        for item in campaign.next(15):
            campaign.answer(item.row, value=str(truth[item.row]), who="ann")
        status = hint(campaign)
        errors.append((len(campaign.labelled()[0]), status.left, status.error))
        print(status.words)
    campaign.close()

labels, left, error = zip(*errors, strict=True)
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.plot(labels, left, "o-", label="variance left")
axes.plot(labels, error, "s-", label="cross-validated error")
axes.set(xlabel="labels", ylabel="share", ylim=(0, None), xticks=labels)
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
figure.savefig(folder / "campaign.png", dpi=90)
