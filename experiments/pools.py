"""Make the pools of the suites: Parquet files, each with a column `label`.

    python -m experiments.pools [FOLDER]

writes the pools that are not in the folder yet, by default where `evgp compare --suite` looks for
them: `$EVGP_DATA/suites`, or the user's cache. Tables come from packages of PyPI and Debian
(`experiments.tables`), texts and images as vectors of pretrained models (`experiments.vectors`).
With `--describe` the size and the checksum of each pool are printed, for `pools.toml`.
"""

import argparse
import shutil
from pathlib import Path

import pyarrow.parquet as pq

from evgp.comparison.suite import fingerprint, folders
from experiments import tables, vectors

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=folders()[0])
    parser.add_argument(
        "--describe", action="store_true", help="only describe the pools that are there"
    )
    arguments = parser.parse_args()
    if arguments.describe:
        for path in sorted(arguments.folder.glob("*.parquet")):
            about = pq.read_metadata(path)
            print(
                path.stem,
                about.num_rows,
                about.num_columns - 1,
                fingerprint(path),
                fingerprint(path, ["label"]),
            )
    else:
        for path in (*tables.fetch(arguments.folder), *vectors.write(arguments.folder)):
            copy = path.with_stem(f"{path.stem}-efficientnet")
            # The study of text and images calls these vectors by the names of their datasets.
            if path.stem in ("svhn", "cifar100") and not copy.exists():
                shutil.copyfile(path, copy)
            print(path, flush=True)
