"""A campaign takes the options of a pick, records them, and uses them in every round."""

import warnings

import numpy as np
import pytest
import torch
from PIL import Image

import evgp
from evgp.errors import CampaignError, DataWarning, EvgpError
from evgp.labelling.campaign import Campaign
from evgp.labelling.campaign.estimates import hint, scores
from evgp.selection.request import Model
from tests.messages import refused, warned


@pytest.fixture
def folder(tmp_path):
    random = np.random.default_rng(0)
    (tmp_path / "images").mkdir()
    for row in range(16):
        pixels = random.integers(0, 255, size=(12, 12), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "images" / f"{row:02d}.png")
    return tmp_path / "images"


def rounds(campaign, count=2, k=4):
    """Rows of some rounds, all of them labelled."""
    rows = []
    for _ in range(count):
        rows += (actual := [item.row for item in campaign.next(k)])
        for row in actual:
            campaign.answer(row, value="ab"[row % 2])
    campaign.close()
    return rows


@pytest.mark.parametrize("options", [{"network": "cnn"}, {"network": "cnn", "image_size": 8}])
def test_a_network_on_images_picks_what_pick_picks(folder, tmp_path, options) -> None:
    campaign = Campaign.create(tmp_path / "a", folder, classes=["a", "b"], seed=3, **options)
    rows = rounds(campaign)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        assert rows == evgp.pick(folder, 8, seed=3, **options).indices.tolist()
    again = Campaign.open(tmp_path / "a")
    assert again.x().shape[2:] == (options.get("image_size", 12),) * 2
    assert hint(again).left is not None and 0 <= scores(again, [rows[0]])[0] <= 1
    other = next(row for row in range(16) if row not in rows)
    assert 0 <= scores(again, [other])[0] <= 1
    again.close()


def test_weights_are_used_and_must_not_change(folder, tmp_path) -> None:
    options = {"network": "cnn", "weights": tmp_path / "net.pt"}
    shape, generator = (1, 12, 12), torch.Generator().manual_seed(5)
    torch.save(evgp.cnn().build(shape, generator=generator).state_dict(), options["weights"])
    campaign = Campaign.create(tmp_path / "a", folder, classes=["a", "b"], network=options)
    network, kernel = Model(**options).network_and_kernel()
    selection = evgp.pick(folder, 8, network=network, kernel=kernel).indices.tolist()
    assert rounds(campaign) == selection != evgp.pick(folder, 8, network="cnn").indices.tolist()
    torch.save(evgp.cnn().build(shape, generator=generator).state_dict(), options["weights"])
    with refused(CampaignError):
        Campaign.open(tmp_path / "a")


def test_another_kernel_and_an_array_of_an_archive(tmp_path) -> None:
    x = np.random.default_rng(0).normal(size=(30, 3))
    np.savez(tmp_path / "pool.npz", x=x, other=x[:, :1])
    options = {"array": "x", "kernel": "nngp"}
    campaign = Campaign.create(tmp_path / "a", tmp_path / "pool.npz", classes=["a", "b"], **options)
    rows = rounds(campaign)
    selection = evgp.pick(tmp_path / "pool.npz", 8, **options).indices.tolist()
    assert rows == selection != evgp.pick(tmp_path / "pool.npz", 8, array="x").indices.tolist()


def test_costs_are_no_feature_and_count_in_every_round(mails, tmp_path) -> None:
    lines = mails.read_text().splitlines()
    priced = [f"{line},{1 + row % 5}" for row, line in enumerate(lines[1:])]
    mails.write_text("\n".join([f"{lines[0]},minutes", *priced]) + "\n")
    options = {"id": "key", "costs": "minutes", "budget": 9}
    campaign = Campaign.create(tmp_path / "a", mails, classes=["a", "b"], **options)
    selection = evgp.pick(mails, 6, **options).indices.tolist()
    assert campaign.costs is not None and campaign.x().shape[1] == 4
    assert [item.row for item in campaign.next(6)] == selection
    assert selection != evgp.pick(mails, 6, id="key", drop="minutes").indices.tolist()
    for row in selection:
        campaign.answer(row, value="a")
    more = [item.row for item in campaign.next(20)]
    assert more and campaign.costs[more].sum() <= 9
    campaign.close()
    with refused(EvgpError):
        Campaign.create(tmp_path / "b", mails, classes=["a", "b"], id="key", costs="minutes")


@pytest.mark.parametrize(
    "given", [{"network": "cnn"}, {"kernel": "nngp"}, {"network": {"network": "resnet18"}}]
)
def test_labels_choose_among_mlps_only(mails, tmp_path, given) -> None:
    with refused(EvgpError):
        Campaign.create(
            tmp_path / "a", mails, id="key", classes=["a", "b"], choose_network=True, **given
        )
    assert not list(tmp_path.glob("a.evgp*"))


def test_notes_are_given_once(mails, tmp_path, recwarn) -> None:
    mails.write_text(mails.read_text().replace(",", ";"))
    mails.write_text(mails.read_text().replace("links", "spam_label"))
    with warned(DataWarning):
        campaign = Campaign.create(tmp_path / "a", mails, id="key", classes=["a", "b"])
    assert campaign.notes[0].startswith("column 'spam_label': named like the label")
    campaign.close()
    recwarn.clear()
    again = Campaign.open(tmp_path / "a")
    again.next(2)
    again.close()
    assert not recwarn.list
