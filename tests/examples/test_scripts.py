"""Every script in examples/ runs, is short, and draws the picture that its page shows."""

import re
import runpy
import sys
from pathlib import Path

import jupytext
import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

FOLDER = Path(__file__).parents[2] / "examples"
# Scripts for other packages have tests next to the adapters.
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if not path.name.startswith("with_"))
MOST = 60  # lines


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs_and_draws(script: Path, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path)])
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.switch_backend("Agg")
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        plt.close("all")
    assert capsys.readouterr().out.strip(), "a script says what it found"
    (drawn,) = tmp_path.glob("*.png")
    assert drawn.name == f"{script.stem}.png"
    with Image.open(drawn) as result, Image.open(FOLDER / "output" / drawn.name) as kept:
        assert result.size == kept.size
        apart = np.abs(_coarse(result) - _coarse(kept)).mean()
        assert apart < 4, f"of 255 apart: make figures draws {drawn.name} again"
        assert len(result.convert("L").getcolors(1 << 16) or ()) > 8, "more than an empty page"


def _coarse(image: Image.Image) -> np.ndarray:
    """What is seen from afar; letters and edges may differ between machines."""
    return np.asarray(image.convert("L").reduce(8), dtype=float)


def test_scripts_are_short_and_on_the_page() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    for path in FOLDER.glob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) < MOST, path.name
        assert f"({path.name})" in page, f"examples/README.md does not show {path.name}"
    shown = set(re.findall(r"\]\(output/([\w.]+)\)", page))
    assert shown == {path.name for path in (FOLDER / "output").iterdir()}
    assert max(path.stat().st_size for path in (FOLDER / "output").iterdir()) < 150_000


def test_the_first_one_is_a_notebook(tmp_path) -> None:
    result = jupytext.read(FOLDER / "start.py")
    kinds = [cell.cell_type for cell in result.cells]
    assert kinds[:2] == ["markdown", "code"] and kinds.count("code") >= 4
    jupytext.write(result, tmp_path / "start.ipynb")
    again = jupytext.read(tmp_path / "start.ipynb")
    assert [cell.source for cell in again.cells] == [cell.source for cell in result.cells]
