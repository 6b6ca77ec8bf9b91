"""Every command on a page is run, on small data, or stands below a mark that says why not."""

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image
from pyarrow import parquet
from safetensors.torch import save_file
from typer.testing import CliRunner

from evgp.campaign import Campaign
from evgp.cli.main import app
from evgp.datasets.bundled import write_digits

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
MARK = "# not run by the tests: "

# What stands below a mark. A page may mark nothing else, and what is listed must be marked.
NOT_RUN = {
    "evgp serve spam": "a server that stays",
    "evgp pick pool/ -k 1000 --dask tcp://10.0.0.1:8786 --cache /shared/evgp -o picks.csv": "Dask",
    "dask scheduler --host 10.0.0.1 &": "Dask; tests/integrations starts one",
    "dask worker tcp://10.0.0.1:8786 --nthreads 8": "the same",
    "evgp compare mnist --strategies evgp,random,badge,batchbald --budget 200 --batch 50 "
    "--out runs/mnist": "minutes, and data that are not in the repository; studies/ keeps the run",
    "evgp compare kin8nm --strategies evgp,random,kmeans++,badge --budget 100 --batch 20 --seeds 5 "
    "--out runs/kin8nm": "the same",
    "evgp compare prices.csv --label price --strategies evgp,farthest,random --network tiny": "a "
    "package of yours; tests of entry points install one",
    "evgp pick pool.csv -k 100 --kernel gauss": "the same",
    "evgp pick pool.csv -k 100 --kernel my_package.kernels:Gauss": "the same",
}
# Pages of which no line can be run without another program; their own tests start it.
ELSEWHERE = {"label-studio.md": "Label Studio: tests/integrations/label_studio"}
# What makes a command quick and changes nothing else; of two values the later one counts.
SMALL = {
    "compare": "--seeds 1 --members 2 --steps 5 --width 8 --budget 4 --batch 2 --jobs 1",
    "choose": "--folds 3 --depths 1 --activations relu,erf",
    "audit": "-k 3",
}
TRAINED = "--members 2 --steps 3 --width 8"


@dataclass(frozen=True)
class Shown:
    """A command on a page."""

    page: Path
    command: str
    marked: bool


def shown(page: Path) -> Iterator[Shown]:
    """All of them, in order, without what a comment says."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        marked = False
        for line in block.splitlines():
            if line.startswith("$ "):
                yield Shown(page, line[2:].partition("  #")[0].strip(), marked)
                marked = False
            marked = marked or line.startswith(MARK)


EVERY = [one for page in PAGES if page.name not in ELSEWHERE for one in shown(page)]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def runs(one: Shown) -> bool:
    return not (one.marked or "<Tab>" in one.command) and one.command.startswith(
        ("evgp ", "python -m evgp.")
    )


def test_what_is_marked_is_listed_and_the_other_way_round() -> None:
    assert {one.command for one in EVERY if one.marked} == set(NOT_RUN)
    assert sum(runs(one) for one in EVERY) > 20


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_on_a_page_is_run(page: Path) -> None:
    """As a doctest, which needs its prompts; what has none is marked."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        assert ">>> " in block or block.startswith(MARK), f"{name(page)}: {block}"


def test_other_programs_get_what_is_there() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for one in EVERY:
        program, *rest = one.command.split()
        if one.marked or runs(one) or "<Tab>" in one.command:
            continue
        if program == "make":
            asked = subprocess.run(
                ["make", "-n", rest[0]], check=False, cwd=ROOT, capture_output=True
            )
            assert asked.returncode == 0, one
        elif program == "pip":
            wanted = re.findall(r"evgp\[([\w,]+)\]", one.command)
            assert {extra for some in wanted for extra in some.split(",")} <= set(extras), one
        else:
            assert program in ("git", "source", "jupytext", "python"), one


@pytest.mark.parametrize("page", sorted({one.page for one in EVERY if runs(one)}), ids=name)
def test_commands_of_a_page_do_what_they_say(page: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("EVGP_CACHE", str(tmp_path / "cache"))
    prepare(page)
    for one in shown(page):
        if one.command == "evgp serve spam":
            label("spam")
        if not runs(one):
            continue
        program, *arguments = shlex.split(one.command)
        if program == "python":
            subprocess.run([sys.executable, *arguments], check=True)
            continue
        made = CliRunner().invoke(app, [*arguments, *quicker(arguments)], prog_name="evgp")
        assert made.exit_code == 0, f"{one.command}\n{made.output}\n{made.exception!r}"
        for file in written(arguments):
            assert Path(file).exists(), f"{one.command} did not write {file}"


def quicker(arguments: list[str]) -> list[str]:
    """What is added to a command so that it takes a moment."""
    added = SMALL.get(arguments[0], "").split()
    if arguments[0] in ("pick", "plan") and "-k" in arguments:
        added += ["-k", "5"]
    return added + (TRAINED.split() if "--train" in arguments else [])


def written(arguments: list[str]) -> list[str]:
    """The files that a command promises."""
    if arguments[0] == "plan":
        return []
    promised = {"-o", "--output", "--report", "--plot", "--out"}
    return [b for a, b in pairwise(arguments) if a in promised]


def label(campaign: str) -> None:
    """What people do on the page."""
    opened = Campaign.open(campaign)
    for item in opened.next(4):
        opened.answer(item.row, value="ham")
    opened.close()


def prepare(page: Path) -> None:
    """Small files of every name that pages use, with the columns that this one names, here."""
    random = np.random.default_rng(0)
    x = random.normal(size=(60, 2))
    parts = {"pool": x, "test": x[:9] + 0.1, "train": x[9:40], "unlabelled": x[40:]}
    for part, rows in parts.items():
        asked = " ".join(one.command for one in shown(page) if f"{part}.csv" in one.command)
        names = [one for one in ("image", "house") if f"--id {one}" in asked]
        lines = [",".join([*names, "a", "b", "minutes", "price"])]
        for i, (a, b) in enumerate(rows):
            lines.append(
                ",".join(
                    [f"{part}-{i}"] * len(names) + [f"{a:.4f},{b:.4f},{1 + i % 3},{a + b:.4f}"]
                )
            )
        Path(f"{part}.csv").write_text("\n".join(lines) + "\n")
    lines = [f"{i},{a:.4f},{b:.4f},{a - b:.4f}" for i, (a, b) in enumerate(x)]
    Path("prices.csv").write_text("\n".join(["id,a,b,price", *lines]) + "\n")
    write_digits(Path("digits.csv"))
    Path("pool").mkdir()
    table = pa.table({"a": x[:, 0], "b": x[:, 1]})
    parquet.write_table(table, "pool/one.parquet")
    parquet.write_table(table.append_column("key", [[f"m{i}" for i in range(60)]]), "mails.parquet")
    np.save("embeddings.npy", random.normal(size=(60, 8)).astype(np.float32))
    pictures(random)
    modules(random)


def pictures(random: np.random.Generator) -> None:
    Path("images").mkdir()
    for i in range(12):
        pixels = random.integers(0, 255, (8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(f"images/{i:02d}.png")


def modules(random: np.random.Generator) -> None:
    """A package with a network, its weights, and a pool of images for it."""
    np.savez("pool.npz", x=random.normal(size=(20, 1, 6, 6)))
    package = Path("my_package")
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "nets.py").write_text(
        "from torch import nn\n\n\ndef build():\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.ReLU(), nn.Linear(8, 2))\n"
    )
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(36, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
    )
    save_file(module.state_dict(), "net.safetensors")


@pytest.fixture(autouse=True)
def forget_the_package() -> Iterator[None]:
    yield
    for known in [one for one in sys.modules if one.split(".")[0] == "my_package"]:
        del sys.modules[known]
