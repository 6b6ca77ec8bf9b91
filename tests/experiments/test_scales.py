"""No contest asks a dataset for more than it has: found here, not after an hour of work."""

import pytest

from experiments.data import dataset
from experiments.runner import data_of
from experiments.study import NAMES, study_named
from tests.conftest import data_folder, missing


@pytest.mark.slow
def test_sizes_are_to_be_had() -> None:
    if data_folder() is None:
        missing("the folder of datasets")
    asked: dict[str, tuple[int, int]] = {}
    for name in NAMES:
        study = study_named(name)
        of_arena = (cell for how in study.scales.values() for cell in study.cells(how)
                    if cell.work == "evgp.studies.contests:play")  # fmt: skip
        for cell in of_arena:
            known, reported = asked.get(data_of(cell), (0, 0)), cell.settings
            asked[data_of(cell)] = (
                max(known[0], reported.get("pool") or 0),
                max(known[1], reported.get("test") or 0),
            )
    assert {"mnist", "emnist", "svhn", "cifar100", "kin8nm"} <= set(asked)
    for name, (pool, test) in asked.items():
        actual = dataset(name, 0)
        assert (pool <= len(actual.x), test <= len(actual.x_test)) == (True, True), name
