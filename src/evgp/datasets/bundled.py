"""Tables that come with scikit-learn, to try things on.

python -m evgp.datasets.bundled digits demo/digits.csv
python -m evgp.datasets.bundled diabetes diabetes.csv
"""

import sys
from pathlib import Path

from evgp._errors import DatasetError, EvgpError
from evgp.datasets.files import write_rows


def write_digits(path: str | Path) -> int:
    """Write 1,797 handwritten digits, 64 pixels each, named and without their labels."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    columns: dict[str, list[object]] = {
        "image": [f"digit-{row:04d}" for row in range(len(digits.data))]
    }
    for j, name in enumerate(digits.feature_names):
        columns[name] = digits.data[:, j].astype(int).tolist()
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_rows(path, columns)
    return len(digits.data)


def write_diabetes(path: str | Path) -> int:
    """Write 442 people, ten measurements each, with what is to be predicted: `progression`."""
    from sklearn.datasets import load_diabetes

    people = load_diabetes(scaled=False)
    columns: dict[str, list[object]] = {
        "id": [f"person-{row:03d}" for row in range(len(people.data))]
    }
    for j, name in enumerate(people.feature_names):
        columns[name] = people.data[:, j].tolist()
    columns["progression"] = people.target.astype(int).tolist()
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_rows(path, columns)
    return len(people.data)


WRITERS = {"digits": write_digits, "diabetes": write_diabetes}


def main(arguments: list[str]) -> int:
    """Write the named table to the given file."""
    try:
        if len(arguments) != 2 or arguments[0] not in WRITERS:
            raise DatasetError(
                "expected: python -m evgp.datasets.bundled digits FILE.csv, or diabetes FILE.csv"
            )
        rows = WRITERS[arguments[0]](arguments[1])
    except EvgpError as error:
        print(f"evgp: {error}", file=sys.stderr)
        return 1
    print(f"{arguments[1]}: {rows:,} rows", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
