"""Every command on a page is run, on small data, or follows a mark that says why not."""

import csv
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet
from typer.testing import CliRunner

from evgp.cli.main import app
from evgp.datasets.demo import write_digits
from evgp.labelling.campaign import Campaign

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
MARK = "# not run by the tests: "

# Commands that follow a mark. A page may mark nothing else, and what is listed must be marked.
NOT_RUN = {
    "evgp campaign serve texts": "a server that stays",
    "evgp pick mails/ -k 1000 --id id --text subject,body --embed models/all-MiniLM-L6-v2 "
    "-o picks.csv": "a model that is not installed",
    "evgp pick pool/ -k 1000 --id key --dask tcp://10.0.0.1:8786 --cache /shared/evgp "
    "-o picks.csv": "Dask",
    "dask scheduler --host 10.0.0.1 &": "Dask; tests/integrations starts one",
    "dask worker tcp://10.0.0.1:8786 --nthreads 8": "the same",
    "evgp compare mnist --strategies evgp,random,badge,batchbald --budget 200 --batch 50 "
    "--out runs/mnist": "minutes, and data that are not in the repository, which keeps the run",
    "evgp compare kin8nm --strategies evgp,random,kmeans++,badge --budget 100 --batch 20 --seeds 5 "
    "--out runs/kin8nm": "the same",
    "evgp compare prices.csv --label price --strategies evgp,farthest,random --network tiny": "a "
    "package of yours; tests of entry points install one",
    "evgp pick pool.csv -k 100 --kernel gauss": "the same",
    "evgp pick photos/ -k 100 --embed torchvision:resnet18@resnet18.pth -o picks.csv "
    "--report report.html": "weights from elsewhere; tests/embedders has others",
    "evgp pick pool.csv -k 100 --kernel my_package.kernels:Gauss": "the same",
    "evgp compare --suite tables --plan --out runs/tables": "pools that are made elsewhere",
    "evgp compare --suite tables --out runs/tables": "the same, and hours",
    "evgp pick messages.csv -k 20 --text body --report report.html": "examples",
    "evgp pick photos/ -k 12 --embed timm:resnet50@weights.pt --copy-to picked/": "examples",
    "evgp pick readings.csv -k 24 --impute -o inspect.xlsx": "examples",
    "evgp pick vectors.parquet -k 20 --id key --column embedding": "examples",
    "evgp look answers.csv": "examples",
    "evgp pick answers.csv -k 15 --text comment -o call-back.csv": "examples",
}
# What talks to Label Studio, or to a shell; tests/labelling/label_studio has the former run.
ELSEWHERE = {
    "evgp campaign push texts -k 50",
    "evgp campaign pull texts",
    "evgp campaign serve texts --label-studio --token",
    "export LABEL_STUDIO_URL=http://localhost:8080",
    "read -rs LABEL_STUDIO_API_KEY && export LABEL_STUDIO_API_KEY",
}
# Pages that make every file they use: they begin in an empty folder.
FROM_NOTHING = {
    "audit.md", "budget.md", "campaign.md", "choose.md", "images.md", "label-studio.md",
    "own-model.md", "scale.md", "start.md", "tables.md", "text.md",
}  # fmt: skip
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


def saved(page: Path) -> dict[str, str]:
    """The files that a page asks its reader to save, which their first line names."""
    text = page.read_text(encoding="utf-8")
    return dict(re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```", text, re.DOTALL | re.MULTILINE))


EVERY = [item for page in PAGES for item in shown(page)]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def runs(one: Shown) -> bool:
    if one.marked or "<Tab>" in one.command or one.command in ELSEWHERE:
        return False
    own = tuple(f"python {file}" for file in saved(one.page))
    return one.command.startswith(("evgp ", "python -m evgp.", "printf ", *own))


def test_what_is_marked_is_listed_and_the_other_way_round() -> None:
    assert {item.command for item in EVERY if item.marked} == set(NOT_RUN)
    assert {item.command for item in EVERY} > ELSEWHERE
    assert sum(runs(item) for item in EVERY) > 20


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_on_a_page_is_run(page: Path) -> None:
    """As a doctest, which needs its prompts; what has none is marked, or a file to be saved."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        kept = re.match(r"# (\w+\.py)\n", block)
        used = kept is not None and f"python {kept[1]}" in text
        assert ">>> " in block or block.startswith(MARK) or used, f"{name(page)}: {block}"


def test_other_programs_get_what_is_there() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for item in EVERY:
        program, *rest = item.command.split()
        if item.marked or runs(item) or "<Tab>" in item.command or item.command in ELSEWHERE:
            continue
        if program == "make":
            asked = subprocess.run(
                ["make", "-n", rest[0]], check=False, cwd=ROOT, capture_output=True
            )
            assert asked.returncode == 0, item
        elif program == "pip":
            match = re.findall(r"evgp\[([\w,]+)\]", item.command)
            assert {extra for subset in match for extra in subset.split(",")} <= set(extras), item
        else:
            assert program in ("git", "source", "jupytext", "python"), item


def test_the_first_page_shows_what_comes(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_digits(Path("digits.csv"))
    page = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    asked = "evgp pick digits.csv -k 5 --id image -o picks.csv --report report.html"
    block = page.split(f"$ {asked}\n")[1].split("```")[0].splitlines()
    result = CliRunner().invoke(app, asked.split()[1:], prog_name="evgp")
    assert {line for line in result.stderr.splitlines() if line} <= {*block}
    with Path("picks.csv").open(newline="") as stream:
        picks = [
            [row["rank"], row["image"], f"{float(row['gain']):.4g}",
             f"{float(row['variance_left']):.4g}"]
            for row in csv.DictReader(stream)
        ]  # fmt: skip
    assert picks == [line.split() for line in block if " digit-" in line]


@pytest.mark.parametrize("page", sorted({item.page for item in EVERY if runs(item)}), ids=name)
def test_commands_of_a_page_do_what_they_say(page: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("EVGP_CACHE", str(tmp_path / "cache"))
    if page.name not in FROM_NOTHING:
        prepare(page)
    for file, text in saved(page).items():
        Path(file).write_text(text, encoding="utf-8")
    for item in shown(page):
        if item.command in PEOPLE:
            PEOPLE[item.command]()
        if not runs(item):
            continue
        program, *arguments = shlex.split(item.command)
        if program == "printf":
            subprocess.run(item.command, shell=True, check=True)
            continue
        if program == "python":
            subprocess.run([sys.executable, *arguments], check=True)
            continue
        result = CliRunner().invoke(app, [*arguments, *quicker(arguments)], prog_name="evgp")
        assert result.exit_code == 0, f"{item.command}\n{result.output}\n{result.exception!r}"
        for file in written(arguments):
            assert Path(file).exists(), f"{item.command} did not write {file}"


def quicker(arguments: list[str]) -> list[str]:
    """What is added to a command so that it takes a moment."""
    added = SMALL.get(arguments[0], "").split()
    if "--budgets" in arguments:  # which replace the budget and its batches
        return ["--budgets", "4,8", "--seeds", "2", "--jobs", "1"]
    if arguments[0] in ("pick", "plan") and "-k" in arguments:
        added += ["-k", "5"]
    return added + (TRAINED.split() if "--train" in arguments else [])


def written(arguments: list[str]) -> list[str]:
    """The files that a command promises."""
    if arguments[0] == "plan":
        return []
    promised = {"-o", "--output", "--report", "--plot", "--out"}
    return [b for a, b in pairwise(arguments) if a in promised]


def label(campaign: str, value: str) -> None:
    """What people do on the page."""
    opened = Campaign.open(campaign)
    for item in opened.next(4):
        opened.answer(item.row, value=value)
    opened.close()


def export_of_label_studio(file: str) -> None:
    """What Label Studio makes of `tasks.json` once somebody has labelled all of it."""
    tasks = json.loads(Path("tasks.json").read_text(encoding="utf-8"))
    message = {"from_name": "label", "type": "choices", "value": {"choices": ["supervised"]}}
    for i, task in enumerate(tasks):
        time = "2026-01-01T00:00:00.000000Z"
        times = {"created_at": time, "updated_at": time}
        annotation = {"id": i, "unique_id": f"u{i}", "completed_by": 1, **times}
        task["annotations"] = [annotation | {"result": [message], "was_cancelled": False}]
        task |= {"id": i, **times}
    Path(file).write_text(json.dumps(tasks), encoding="utf-8")


EXPORT = "project-7-at-2026-01-01.json"
# What somebody has to do before a command has anything to do.
PEOPLE: dict[str, Callable[[], None]] = {
    "evgp campaign serve texts": lambda: label("texts", "supervised"),
    "evgp campaign pull texts": lambda: label("texts", "supervised"),
    f"evgp campaign pull texts --file {EXPORT}": lambda: export_of_label_studio(EXPORT),
}


def prepare(page: Path) -> None:
    """Small files of every name that pages use, with the columns that this one names, here."""
    random = np.random.default_rng(0)
    x = random.normal(size=(60, 2))
    parts = {"pool": x, "test": x[:9] + 0.1, "train": x[9:40], "unlabelled": x[40:]}
    for part, rows in parts.items():
        asked = " ".join(item.command for item in shown(page) if f"{part}.csv" in item.command)
        names = [item for item in ("image", "house") if f"--id {item}" in asked]
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
    parquet.write_table(pa.table({"a": x[:, 0], "b": x[:, 1]}), "pool/one.parquet")
    vectors = random.normal(size=(60, 8)).astype(np.float32)
    columns = {"key": [f"doc-{i}" for i in range(60)], "body_embedding": list(vectors)}
    parquet.write_table(pa.table(columns), "pool.parquet")
    np.save("embeddings.npy", random.normal(size=(60, 8)).astype(np.float32))
    pictures(random)


def pictures(random: np.random.Generator) -> None:
    Path("images").mkdir()
    for i in range(12):
        pixels = random.integers(0, 255, (8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(f"images/{i:02d}.png")


@pytest.fixture(autouse=True)
def forget_what_was_saved() -> Iterator[None]:
    yield
    own = {file.removesuffix(".py") for page in PAGES for file in saved(page)}
    for known in [module for module in sys.modules if module in own]:
        del sys.modules[known]
