"""Small pools for campaigns."""

import numpy as np
import pytest

from evgp.labelling.campaign import Campaign


@pytest.fixture
def mails(tmp_path):
    """Thirty rows with names."""
    random = np.random.default_rng(0)
    lines = ["key,length,links,kind"]
    for i in range(30):
        lines.append(f"m{i},{random.normal():.4f},{random.integers(9)},{'ab'[i % 2]}")
    path = tmp_path / "mails.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def spam(mails, tmp_path):
    """A campaign on them."""
    campaign = Campaign.create(tmp_path / "spam", mails, id="key", classes=["spam", "ham"])
    yield campaign
    campaign.close()
