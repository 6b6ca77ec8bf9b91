"""Scaling: what is chosen, what it does, and that it depends on neither order nor shards."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import evgp
from evgp.datasets import open_pool, read_pool
from evgp.datasets.scaling import SCALES
from evgp.errors import PoolError
from tests.messages import refused, warned

RNG = np.random.default_rng(0)
PIXELS = RNG.poisson(3.0, size=(80, 64)) * RNG.uniform(0.2, 1.0, 64)
TABLE = RNG.normal(size=(80, 5)) * [1, 10, 100, 1000, 1e4]
ANGLES = RNG.normal(size=(80, 4)) * [1, 1.5, 2, 3]


@pytest.mark.parametrize(
    ("x", "kind"),
    [
        (PIXELS, "unit"),
        (PIXELS[:, :20], "common"),
        (ANGLES, "common"),
        (TABLE, "smooth"),
        (np.hstack([PIXELS, 1e4 * PIXELS[:, :1]]), "smooth-unit"),
        (ANGLES[:, :1], "common"),
        (np.hstack([ANGLES[:, :1], 1000 * ANGLES[:, 1:3]]), "smooth"),
        (np.hstack([ANGLES, np.ones((80, 3))]), "common"),
    ],
)
def test_auto_takes_one_scale_where_columns_share_a_unit(x, kind) -> None:
    assert read_pool(x).scale == kind
    assert read_pool(pd.DataFrame(x).add_prefix("c")).scale == kind
    assert evgp.pick(x, 2).settings["scale"] == kind


@pytest.mark.parametrize("factor", [6.999, 7.001])
@pytest.mark.parametrize("columns", [2, 40])
def test_the_edge_of_the_rule(factor, columns) -> None:
    x = RNG.normal(size=(50, columns))
    x /= x.std(0)
    x[:, 0] *= factor
    assert ("smooth" in str(read_pool(x).scale)) == (factor > 7)


def test_columns_have_mean_0_and_standard_deviation_1() -> None:
    x = read_pool(TABLE, scale="columns").in_memory.numpy()
    np.testing.assert_allclose(x, (TABLE - TABLE.mean(0)) / TABLE.std(0), rtol=1e-12, atol=1e-12)


def test_smooth_pulls_far_values_in_and_keeps_their_order() -> None:
    z = (TABLE - TABLE.mean(0)) / TABLE.std(0)
    x = read_pool(TABLE, scale="smooth").in_memory.numpy()
    np.testing.assert_allclose(x, z / np.sqrt(1 + z**2 / 9), rtol=1e-12, atol=1e-12)
    wild = TABLE.copy()
    wild[3, 0] = 1e300
    x = read_pool(wild).in_memory.numpy()
    assert np.isfinite(x).all() and x[3, 0] == x[:, 0].max() <= 3


def test_common_divides_all_columns_by_one_number() -> None:
    centred = PIXELS - PIXELS.mean(0)
    expected = centred / np.sqrt(np.square(centred).mean())
    x = read_pool(PIXELS, scale="common").in_memory.numpy()
    np.testing.assert_allclose(x, expected, rtol=1e-12, atol=1e-12)


def test_unit_rows_have_equal_length_and_the_mean_row_stays_zero() -> None:
    x = read_pool(PIXELS, scale="unit").in_memory.numpy()
    np.testing.assert_allclose(np.square(x).sum(1), 64)
    centred = PIXELS - PIXELS.mean(0)
    cosine = (x * centred).sum(1) / np.linalg.norm(centred, axis=1) / 8
    np.testing.assert_allclose(cosine, 1)
    pair = np.array([[0.0, 1.0], [2.0, 3.0], [1.0, 2.0]])
    assert read_pool(pair, scale="unit").in_memory[2].tolist() == [0, 0]


def test_rows_of_many_columns_get_equal_length_after_a_smooth_scaling_too() -> None:
    x = np.hstack([PIXELS, 1e4 * PIXELS[:, :1]])
    z = (x - x.mean(0)) / x.std(0)
    z /= np.sqrt(1 + z**2 / 9)
    z *= np.sqrt(65) / np.linalg.norm(z, axis=1, keepdims=True)
    np.testing.assert_allclose(read_pool(x).in_memory, z, rtol=1e-10, atol=1e-12)


def test_one_hot_columns_stay_as_they_are() -> None:
    frame = pd.DataFrame(PIXELS).add_prefix("c").assign(kind=["a", "b"] * 40)
    for scale in ("auto", "unit", "smooth", "common"):
        x = read_pool(frame, scale=scale).in_memory
        assert {*x[:, -2:].flatten().tolist()} == {0.0, 1.0}
    assert read_pool(frame).in_memory[:, :-2].square().sum(1).numpy() == pytest.approx(64)


@pytest.mark.parametrize("x", [PIXELS, TABLE, ANGLES], ids=["unit", "smooth", "common"])
def test_test_points_get_the_scaling_of_the_pool(x) -> None:
    data = read_pool(x)
    assert (data.tensor_like(x[:7]) == data.in_memory[:7]).all()
    frame = pd.DataFrame(x).add_prefix("c")
    data = read_pool(frame)
    assert (data.tensor_like(frame[:7]) == data.in_memory[:7]).all()


@pytest.mark.parametrize("x", [PIXELS, TABLE, ANGLES], ids=["unit", "smooth", "common"])
def test_files_in_any_number_of_shards_give_the_same_bits(x, tmp_path) -> None:
    whole = read_pool(x).in_memory.numpy()
    for start in range(0, 80, 32):
        np.save(tmp_path / f"{start:02}.npy", x[start : start + 32])
    pool = open_pool(tmp_path)
    parts = [pool.survey(a, b, np.arange(0)) for a, b in ((0, 48), (48, 80))]
    fitted = pool.fitted(parts[0].merge(parts[1]))
    assert fitted.code.scale == read_pool(x).scale
    blocks = np.concatenate([block for _, block in fitted.blocks(0, 80, size=16)])
    np.testing.assert_allclose(blocks, whole, rtol=1e-13, atol=1e-13)
    first = pool.fitted(pool.survey(0, 80, np.arange(0)))
    assert (np.concatenate([block for _, block in first.blocks(0, 80, size=16)]) == whole).all()


@given(st.permutations(range(12)))
def test_the_order_of_rows_changes_nothing_but_their_order(order) -> None:
    for x in (PIXELS[:12], TABLE[:12], ANGLES[:12]):
        data, moved = read_pool(x), read_pool(x[order])
        assert data.scale == moved.scale
        np.testing.assert_allclose(moved.in_memory, data.in_memory[order], rtol=1e-9, atol=1e-12)


def test_standardise_is_the_former_name() -> None:
    for old, new in ((True, "columns"), (False, None)):
        with warned(DeprecationWarning):
            selection = evgp.pick(TABLE, 3, standardise=old)
        assert selection.indices.tolist() == evgp.pick(TABLE, 3, scale=new).indices.tolist()


def test_scale_and_its_former_name_are_not_taken_together() -> None:
    for scale in ("unit", None):
        with refused(PoolError):
            evgp.pick(TABLE, 3, standardise=True, scale=scale)
    with refused(PoolError):
        evgp.audit(TABLE, TABLE, standardise=False, scale="auto")


def test_none_may_be_a_word_as_in_the_command() -> None:
    selection = evgp.pick(TABLE, 3, scale="none")
    assert selection.indices.tolist() == evgp.pick(TABLE, 3, scale=None).indices.tolist()
    assert selection.settings["scale"] is None


def test_networks_with_a_shape_of_their_own_get_scaled_columns() -> None:
    from torch import nn

    module = nn.Sequential(nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 1))
    assert evgp.pick(PIXELS, 2, network=module).settings["scale"] == "columns"


def test_columns_of_any_size_can_be_scaled() -> None:
    huge = ANGLES.copy()
    huge[:, 0] *= 1e300
    huge[:, 1] *= 1e-300
    for scale in SCALES:
        x = read_pool(huge, scale=scale).in_memory
        assert bool(x.isfinite().all())
    first = np.zeros((20, 6))
    first[:, 2] = np.arange(20)
    with pytest.warns(evgp.errors.DataWarning):
        picks = evgp.pick(pd.DataFrame(first).add_prefix("c"), 3)
    assert len({*picks.indices.tolist()}) == 3


def test_other_words_are_refused() -> None:
    with refused(PoolError):
        evgp.pick(TABLE, 2, scale="rows")


def test_images_are_scaled_by_pixel_at_every_door(tmp_path) -> None:
    """An array with further axes, the same flat, its file, and a folder of its parts."""
    images = np.random.default_rng(0).gamma(1.0, size=(60, 8, 8)) * np.arange(1, 9)
    np.save(tmp_path / "images.npy", images)
    np.savez(tmp_path / "images.npz", images=images)
    (tmp_path / "parts").mkdir()
    for at, part in enumerate(np.split(images, [25])):
        np.save(tmp_path / "parts" / f"{at}.npy", part)
    flat = evgp.pick(images.reshape(60, -1), 6)
    for pool in (images, *(tmp_path / name for name in ("images.npy", "images.npz", "parts"))):
        picked = evgp.pick(pool, 6)
        assert picked.indices.tolist() == flat.indices.tolist()
        assert np.array_equal(picked.variance_left, flat.variance_left)
    half = evgp.pick(images[:40], 6, x_test=images[40:])
    same = evgp.pick(images.reshape(60, -1)[:40], 6, x_test=images.reshape(60, -1)[40:])
    assert np.array_equal(half.variance_left, same.variance_left)


def test_images_scaled_by_columns_are_scaled_by_channel(tmp_path) -> None:
    images = np.random.default_rng(0).gamma(1.0, size=(60, 3, 4, 4))
    np.save(tmp_path / "images.npy", images)
    for pool in (images, tmp_path / "images.npy"):
        x = evgp.read_pool(pool, scale="columns").in_memory
        assert torch.allclose(x.mean((0, 2, 3)), torch.zeros(3, dtype=x.dtype), atol=1e-12)
        assert x.shape == (60, 3, 4, 4)
