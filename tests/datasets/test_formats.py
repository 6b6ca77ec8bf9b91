"""Text becomes numbers and dates only if all cells agree on what they mean."""

import datetime as dt
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evgp.datasets import open_pool, read_pool
from evgp.datasets.columns import phases
from evgp.datasets.formats import recognise
from evgp.errors import DatasetError, DuplicateNames
from tests.messages import refused

THOUSANDS = {",": ".", ".": ",", " ": ".", "'": ".", "\u202f": ","}  # with a decimal sign


@pytest.mark.parametrize(
    ("cells", "numbers", "said"),
    [
        (["$12.5", "$1,200.50", "-$3"], [12.5, 1200.5, -3], "numbers with '$', thousands commas"),
        (["12%", "3.5 %"], [12, 3.5], "numbers with '%'"),
        (["1 200", "1\u00a0300 000"], [1200, 1300000], "thousands spaces"),
        (["€ 1.234,50", "€ 3"], [1234.5, 3], "'€', thousands points, decimal commas"),
        (["-5 EUR", "1'200 EUR"], [-5, 1200], "'EUR', thousands apostrophes"),
        (["1.234.567", "1"], [1234567, 1], "thousands points"),
        (["0,123", "0,456"], [0.123, 0.456], "decimal commas"),
        (["\u22121,5", "+2,25"], [-1.5, 2.25], "decimal commas"),
        (["1.5e+3", "2"], [1500, 2], "written as text"),
    ],
)
def test_numbers_with_signs(cells: list[str], numbers: list[float], said: str) -> None:
    actual = recognise(pa.table({"a": [*cells, None]}))
    assert actual.data.to_pydict() == {"a": [*numbers, None]}
    assert len(actual.notes) == 1 and said in actual.notes[0]


@pytest.mark.parametrize(
    "cells",
    [
        ["$12", "€3"],  # two currencies
        ["$12", "3"],
        ["12%", "n/a %"],
        ["192.168.1.1", "1.2.3.4"],
        ["007", "012"],  # codes
        ["12,34,567", "1"],
        ["1,2 3", "4"],
        ["31/02/2024", "30/01/2024"],
        ["2024-13-01", "2024-01-01"],
        ["25/12/2024", "12/25/2024"],
        ["v1.2", "v1.3"],
        ["", "1,5"],
        [None, None],
    ],
)
def test_text_that_does_not_agree_stays_text(cells: list[str | None]) -> None:
    actual = recognise(pa.table({"a": pa.array(cells, pa.string())}))
    assert actual.data.to_pydict() == {"a": cells} and not actual.notes


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["1,234", "5,678"], "'1,234' may be a number with thousands or with decimals"),
        (["01/02/2024", "03/04/2024"], "may be day/month or month/day"),
    ],
)
def test_what_can_be_read_in_two_ways_is_reported(cells: list[str], said: str) -> None:
    actual = recognise(pa.table({"a": cells}))
    assert actual.data.to_pydict() == {"a": cells} and said in actual.notes[0]


def test_other_columns_decide_what_a_comma_is() -> None:
    table = pa.table({"a": ["1,234", "5,678"], "b": ["12.5%", "7%"]})
    assert recognise(table).data.to_pydict() == {"a": [1234, 5678], "b": [12.5, 7]}
    table = table.append_column("c", pa.array(["1,5", "2,5"]))
    assert recognise(table).data["a"].to_pylist() == ["1,234", "5,678"]
    assert recognise(table, ",").data["a"].to_pylist() == [1.234, 5.678]


@given(
    numbers=st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=9),
    mark=st.sampled_from(sorted(THOUSANDS)),
    sign=st.sampled_from(["", "$", "%", "CHF"]),
)
def test_grouped_numbers_are_read_back(numbers: list[int], mark: str, sign: str) -> None:
    # One cell shows what the signs mean.
    cells = [f"{number / 100:,.2f}" for number in [*numbers, 123456789]]
    swap = str.maketrans({",": mark, ".": THOUSANDS[mark]})
    written = [f"{cell.translate(swap)}{sign}" for cell in cells]
    read = recognise(pa.table({"a": written})).data["a"].to_pylist()
    assert read == pytest.approx([number / 100 for number in [*numbers, 123456789]])


@given(
    moments=st.lists(
        st.datetimes(dt.datetime(1600, 1, 1), dt.datetime(2400, 1, 1)), min_size=1, max_size=9
    ),
    way=st.sampled_from(["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%Y-%m-%d", "%d-%m-%Y"]),
    clock=st.sampled_from(["", " %H:%M", " %H:%M:%S", "T%H:%M:%S"]),
)
def test_dates_are_read_back(moments: list[dt.datetime], way: str, clock: str) -> None:
    moments = [*moments, dt.datetime(2024, 12, 31)]  # a day that shows the order
    written = [
        moment.strftime(way.replace("%Y", f"{moment.year:04d}") + clock) for moment in moments
    ]
    back = [dt.datetime.strptime(text, way + clock) for text in written]
    column = recognise(pa.table({"a": written})).data["a"]
    assert column.cast(pa.timestamp("s")).to_pylist() == back


@pytest.mark.parametrize(
    ("times", "cycles"),
    [
        (pd.date_range("2024-01-01", periods=20, freq="h"), []),
        (pd.date_range("2024-01-01", periods=60, freq="h"), ["hour"]),
        (pd.date_range("2024-01-01", periods=30, freq="D"), ["weekday"]),
        (pd.date_range("2020-01-01", periods=300, freq="W"), ["day of year"]),
        (pd.date_range("2020-01-01", periods=12, freq="YS"), ["weekday"]),
        (pd.date_range("2020-01-01", periods=999, freq="17h"), ["hour", "weekday", "day of year"]),
    ],
)
def test_times_have_the_cycles_that_they_show(
    tmp_path: Path, times: pd.DatetimeIndex, cycles: list[str]
) -> None:
    frame = pd.DataFrame({"when": times, "a": np.arange(len(times)) % 7})
    pool = read_pool(frame)
    waves = [f"when ({cycle}, {wave})" for cycle in cycles for wave in ("sin", "cos")]
    assert list(pool.features) == ["when", *waves, "a"]
    turns = pool.x[:, 1 : 1 + len(waves)].reshape(len(frame), -1, 2)
    assert np.allclose(np.square(turns.numpy()).sum(axis=2), 1)
    # A pool in files is encoded alike.
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "pool.parquet")
    streamed = open_pool(tmp_path / "pool.parquet")
    fitted = streamed.fitted(streamed.survey(0, len(frame), np.arange(len(frame))))
    assert fitted.names == pool.features and fitted.shape[0] <= streamed.widest
    assert np.allclose(fitted.sample, pool.x.numpy())


@given(st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2300, 1, 1)))
def test_phases_are_those_of_the_calendar(moment: dt.datetime) -> None:
    seconds = (moment - dt.datetime(1970, 1, 1)) / dt.timedelta(seconds=1)
    hour, weekday, day = phases(np.array([seconds]))[:, 0]
    since = moment - moment.replace(hour=0, minute=0, second=0, microsecond=0)
    assert hour == pytest.approx(since / dt.timedelta(days=1), abs=1e-6)
    assert weekday == moment.weekday() / 7
    assert day == (moment.timetuple().tm_yday - 1) / 366


def test_numbers_are_not_scaled_without_a_scale() -> None:
    frame = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=999, freq="17h")})
    assert read_pool(frame, scale=None).features == ("when",)


def test_points_are_read_as_the_pool_was() -> None:
    pool = read_pool(
        pd.DataFrame(
            {"price": ["$1,200", "$3.5", "$7"], "day": ["31/12/2024", "1/2/2024", "2/2/2024"]}
        )
    )
    same = pd.DataFrame({"price": ["$1,200", "3.5"], "day": ["31/12/2024", "01/02/2024"]})
    assert pool.like(same.iloc[:1]).tolist() == pool.x[:1].tolist()
    assert pool.like(same.iloc[1:]).tolist() == pool.x[1:2].tolist()
    assert (
        pool.like(pd.DataFrame({"price": [7], "day": ["2024-02-02"]})).tolist()
        == pool.x[2:].tolist()
    )
    for price, day in (("cheap", "31/12/2024"), ("$3", "soon"), ("$3", "31/02/2024")):
        with refused(DatasetError):
            pool.like(pd.DataFrame({"price": [price], "day": [day]}))


def test_nullable_columns_of_pandas_are_read() -> None:
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3, 1], "Int64"),
            "real": pd.array([1.5, 2.5, None, 1.5], "Float64"),
            "yes": pd.array([True, None, False, True], "boolean"),
            "word": pd.array(["x", None, "y", "x"], "string"),
            "kind": pd.Categorical(["u", "v", None, "u"]),
            "when": pd.to_datetime(["2024-01-01", None, "2024-03-01", "2024-01-01"]),
        }
    )
    with refused(DatasetError):
        read_pool(frame)
    pool = read_pool(frame, impute=True)
    names = ("whole", "real", "yes=false", "yes=true", "word=x", "word=y", "kind=u", "kind=v")
    assert pool.features[:8] == names
    assert pool.x[0].tolist() == pool.x[3].tolist()


def test_the_order_of_days_and_months_is_reported_once_and_can_be_given() -> None:
    table = pa.table({"a": ["03/04/2021", "05/06/2021"], "b": ["01/02/2020 8:00", None]})
    (note,) = recognise(table).notes
    assert note.startswith("2 columns ('a', 'b'): '03/04/2021' may be day/month or month/day")
    months = {"day-first": [4, 6], "month-first": [3, 5]}
    for dates, expected in months.items():
        read = recognise(table, dates=dates).data
        assert [day.month for day in read["a"].to_pylist()] == expected
        assert read["b"].to_pylist()[0].month == (2 if dates == "day-first" else 1)
    clear = pa.table({"a": ["31/12/2021"]})  # whatever was given
    assert recognise(clear, dates="month-first").data["a"].to_pylist()[0].day == 31


def test_numbers_that_begin_with_zero_are_written_as_they_were(tmp_path: Path) -> None:
    path, test = tmp_path / "pool.csv", tmp_path / "test.csv"
    path.write_text("zip,size,year\n08505,1,2020\n10115,5,2021\n00001,2,2020\n10115,3,2021\n")
    test.write_text('zip,size,year\n"8505",1,2020\n')
    data = read_pool(path)
    assert data.rows_of(np.array([0, 2])).to_pydict() == {
        "zip": ["08505", "00001"],
        "size": [1, 2],
        "year": [2020, 2020],
    }
    assert data.notes[0].endswith("read as numbers, though some begin with 0, such as '08505'")
    assert data.tensor_like(test)[0].tolist() == data.in_memory[0].tolist()
    with refused(DuplicateNames) as caught:
        read_pool(path, id="zip")
    assert caught.value.names == ("10115",)
