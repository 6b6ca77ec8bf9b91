"""What is saved is read back to the bit; whatever else a file holds is refused in one sentence."""

import hashlib
import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evgp
from evgp import Selection
from evgp.errors import DatasetError
from tests.conftest import examples
from tests.messages import refused
from tests.pool.conftest import build, parts

X = np.random.default_rng(0).normal(size=(8, 2))  # few, as each byte of a file is tried
UNREADABLE = "expected a file written by Selection.save, got one that is cut short, damaged or of"


@pytest.fixture(scope="module")
def real() -> Selection:
    selection = evgp.pick(X, 3, costs=np.ones(8), budget=10.0)
    # As without the checks of annotations, numbers of NumPy may be among what was asked.
    return replace(
        selection, settings={**selection.settings, "k": np.int64(3), "seed": np.uint8(0)}
    )


@pytest.fixture
def path(tmp_path: Path, real: Selection) -> Path:
    real.save(tmp_path / "picks.json")
    return tmp_path / "picks.json"


def bits(selection: Selection) -> list[object]:
    """Every number to the bit."""
    calls: list[object] = []
    for field in fields(Selection):
        value = getattr(selection, field.name)
        if field.name == "certificate" and value is not None:
            calls += [value.lowest.tobytes(), value.share.tobytes(), repr(value.needed)]
        else:
            calls.append(value.tobytes() if isinstance(value, np.ndarray) else repr(value))
    return calls


@settings(deadline=None)
@given(parts())
def test_what_is_loaded_is_what_was_saved_to_the_bit(tmp_path_factory, given_parts) -> None:
    selection = build(given_parts)
    path = tmp_path_factory.mktemp("saved") / "picks.json"
    selection.save(path)
    again = Selection.load(path)
    assert again == selection
    # NaN is NaN, whatever its sign and payload, which Python does not keep either.
    quiet = build({name: _one_nan(value) for name, value in given_parts.items()})
    assert bits(again) == bits(quiet)
    json.loads(path.read_text(), parse_constant=pytest.fail)  # JSON as others read it


def _one_nan(value):
    if isinstance(value, np.ndarray) and value.dtype == float:
        return np.where(np.isnan(value), np.nan, value)
    if isinstance(value, tuple) and len(value) == 3 and isinstance(value[0], np.ndarray):
        return (_one_nan(value[0]), _one_nan(value[1]), value[2])
    return value


def test_a_run_can_be_saved_with_any_settings(real, path) -> None:
    again = evgp.Selection.load(str(path))
    assert again == real and again.settings == real.settings
    assert repr(again) == repr(real)
    assert evgp.pick(X, 2, labelled=again) == evgp.pick(X, 2, labelled=real)
    document = json.loads(path.read_text())
    assert document["version"] == 1 and document["selection"]["indices"] == list(real)


def test_every_bit_counts(path) -> None:
    whole, kept = path.read_bytes(), bits(Selection.load(path))
    same = 0
    every = range(0, 8 * len(whole), 5)  # every bit of a byte in its turn
    for at in every:
        changed = bytearray(whole)
        changed[at // 8] ^= 1 << at % 8
        path.write_bytes(changed)
        try:
            selection = Selection.load(path)
        except DatasetError as error:
            assert str(error).startswith(str(path)) and "\n" not in str(error)
        else:
            # The same content, spelt otherwise: E for e, or a digit too many for 64 bits.
            assert bits(selection) == kept
            same += 1
    assert same < 0.01 * len(every)


def test_a_file_that_is_cut_short_is_refused(path) -> None:
    whole = path.read_bytes().rstrip()
    with refused(DatasetError):
        path.write_bytes(b"")
        Selection.load(path)
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DatasetError, match=UNREADABLE):
            Selection.load(path)


@pytest.mark.parametrize(
    "text",
    [
        "rank,row\n1,7\n",
        "{}",
        "[]",
        "3",
        '"evgp selection"',
        '{"format": "evgp selection"}',
        '{"format": "evgp selection", "version": 1}',
        '{"format": "evgp selection", "version": 1, "sha256": "", "selection": {}}',
        '{"format": "evgp selection", "version": 0, "sha256": "", "selection": {}}',
        '{"format": "evgp selection", "version": "1", "sha256": "", "selection": {}}',
        '{"format": "evgp campaign", "version": 1}',
        "[" * 100_000,
        '{"a":' * 100_000,
        "9" * 10_000,
        '{"format": "evgp selection", "version": ' + "9" * 10_000 + "}",
        "\x00\x01",
    ],
)
def test_other_files_are_refused(tmp_path, text) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with refused(DatasetError):
        Selection.load(path)


def test_binary_files_and_anything_but_a_file_are_refused(tmp_path) -> None:
    path = tmp_path / "array.npy"
    np.save(path, X)
    with refused(DatasetError):
        Selection.load(path)
    with refused(DatasetError):
        Selection.load(tmp_path / "absent.json")
    with refused(DatasetError):
        Selection.load(tmp_path)


def test_a_newer_format_asks_for_a_newer_evgp(path) -> None:
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    with refused(DatasetError):
        Selection.load(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


@settings(deadline=None, max_examples=examples(300))
@given(st.data())
def test_a_checksum_alone_makes_no_selection(tmp_path_factory, real, data) -> None:
    path = tmp_path_factory.mktemp("forged") / "picks.json"
    real.save(path)
    document = json.loads(path.read_text())
    body = document["selection"]
    name = data.draw(st.sampled_from([*body, "another"]))
    if name == "certificate" and data.draw(st.booleans()):
        body = body["certificate"]
        name = data.draw(st.sampled_from(sorted(body)))
    if data.draw(st.booleans()):
        body[name] = data.draw(JSON)
    else:
        body.pop(name, None)
    text = json.dumps(document["selection"], sort_keys=True, separators=(",", ":"))
    document["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(document))
    try:
        selection = Selection.load(path)
    except DatasetError as error:
        assert UNREADABLE in str(error)
    else:
        assert isinstance(selection, Selection) and len(repr(selection)) > 9


@pytest.mark.parametrize("name", ["picks.pkl", "picks", "absent/picks.json"])
def test_names_that_cannot_be_written_are_refused(real, tmp_path, name) -> None:
    with refused(DatasetError):
        real.save(tmp_path / name)


def test_a_failure_leaves_the_old_file(real, path, monkeypatch) -> None:
    before = path.read_bytes()

    def full(_: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evgp.datasets.files._flush", full)
    with pytest.raises(OSError, match="the disk is full"):
        real[:2].save(path)
    monkeypatch.undo()
    assert [item.name for item in path.parent.iterdir()] == ["picks.json"]
    assert path.read_bytes() == before and Selection.load(path) == real


@pytest.mark.parametrize("value", [(1, 2), {1: 2}, object(), np.ones(2), {"$float": "NaN"}])
def test_settings_that_would_not_come_back_are_refused(path, value) -> None:
    before = path.read_bytes()
    odd = Selection(np.array([1]), np.ones(1), settings={"odd": value})
    with refused(DatasetError):
        odd.save(path)
    assert path.read_bytes() == before
