"""Adapters are short, and without its package one says what to install."""

import subprocess
from pathlib import Path

import pytest

from evgp._extras import EXTRAS

FOLDER = Path(__file__).parents[2] / "src" / "evgp" / "integrations"


@pytest.mark.parametrize("name", ["sklearn", "skactiveml", "modal"])
def test_an_adapter_has_fewer_than_120_lines(name: str) -> None:
    """Blank lines and comments aside."""
    lines = (FOLDER / f"{name}.py").read_text(encoding="utf-8").splitlines()
    assert sum(not line.strip().startswith("#") for line in lines if line.strip()) < 120


_ALL = (
    "expected httpx and fastapi and uvicorn, which are not installed; do "
    f"`{EXTRAS['label-studio'].install}`"
)
ABSENT = {
    "skactiveml": (
        "expected scikit-activeml 1.0 or newer, which is not installed; do "
        f"`{EXTRAS['adapters'].install}`"
    ),
    "label_studio.client": _ALL,
    "label_studio.backend": _ALL,
}


@pytest.mark.parametrize("name", ABSENT)
def test_the_adapter_names_the_extra(name: str, core: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [core / "python", "-c", f"import evgp.integrations.{name}"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    last = ran.stderr.strip().splitlines()[-1]
    assert last == f"ImportError: {ABSENT[name]}"
    assert EXTRAS["adapters"].install == 'pip install "evgp[adapters]"'
