"""The `evgp choose` command."""

import csv
import json
from importlib import import_module
from inspect import unwrap
from pathlib import Path

import numpy as np
import pytest

from evgp.architectures import candidates, choose
from evgp.datasets import load_csv
from evgp.nets import mlp
from tests.messages import printed


@pytest.fixture
def waves(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    lines = ["a,b,y,kind"]
    for a, b in random.normal(size=(40, 2)):
        lines.append(f"{a:.5f},{b:.5f},{np.sin(3 * a) + b:.5f},{'up' if a > 0 else 'down'}")
    path = tmp_path / "waves.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_table_is_the_librarys_ranking(run, waves) -> None:
    options = ("--label", "y", "--drop", "kind", "--folds", 10, "--depths", "1,2")
    ran = run("choose", waves, *options)
    assert ran.code == 0, ran.err
    lines = list(csv.DictReader(ran.out.splitlines(), delimiter="\t"))
    data = load_csv(waves, "y", drop=["kind"], test=0)
    assert len(data.x) == 40 and len(data.x_test) == 0
    result = choose(candidates(depths=(1, 2)), data.x, data.y, folds=10)
    assert [line["network"] for line in lines] == [entry.name for entry in result.ranked]
    for line, item in zip(lines, result.ranked, strict=True):
        assert float(line["score"]) == pytest.approx(item.score)
        assert float(line["fit"]) + float(line["spread"]) == pytest.approx(item.score)
    assert f"best: {result.chosen.name}" in ran.err
    common = load_csv(waves, "y", drop=["kind"], test=0, scale="common")
    best = choose(candidates(depths=(1, 2)), common.x, common.y, folds=10, scale=None).chosen
    ran = run("choose", waves, *options, "--scale", "common", "--json", "-q")
    assert json.loads(ran.out)["ranked"][0]["score"] == pytest.approx(best.score)
    document = json.loads(run("choose", waves, *options, "--json", "-q").out)
    assert document["chosen"] == result.chosen.name and len(document["ranked"]) == 8


def test_classes_files_of_networks_and_a_plot(run, waves, tmp_path) -> None:
    nets, plot = tmp_path / "nets.toml", tmp_path / "ranking.png"
    nets.write_text(
        '[[network]]\nname = "flat"\ndepth = 1\n\n[[network]]\ndepth = 3\nactivation = "erf"\n'
    )
    ran = run("choose", waves, "--label", "kind", "--drop", "y", "--networks", nets,
              "--folds", 5, "--most", 20, "--plot", plot)  # fmt: skip
    assert ran.code == 0, ran.err
    assert "flat" in ran.out and "used 20 of 40 rows" in ran.err
    assert plot.stat().st_size > 5000


@pytest.mark.parametrize(
    "arguments",
    [
        ["--label", "z"],
        ["--label", "y", "--depths", "1,x"],
        ["--label", "y", "--activations", "tanh"],
        ["--label", "y", "--kappa", 0.99],
        ["--label", "y", "--networks", "absent.toml"],
        ["--label", "y", "--plot", "ranking.doc"],
    ],
)
def test_bad_input_is_refused_in_one_line(run, waves, arguments) -> None:
    ran = run("choose", waves, "--drop", "kind", "--folds", 3, *arguments)
    assert ran.code == 1, ran.err
    printed(ran.err)


@pytest.mark.parametrize(
    "text",
    [
        "depth = 1",
        "[[network]]\nlayers = 2",
        '[[network]]\nname = "a"\n[[network]]\nname = "a"',
        "[[network",
    ],
)
def test_files_of_networks_are_checked(run, waves, tmp_path, text) -> None:
    (tmp_path / "nets.toml").write_text(text)
    ran = run("choose", waves, "--label", "y", "--drop", "kind", "--networks",
              tmp_path / "nets.toml")  # fmt: skip
    assert ran.code == 1, ran.err
    printed(ran.err)


def test_cases_that_only_the_command_meets(run, waves, tmp_path, monkeypatch) -> None:
    other = tmp_path / "semi.csv"
    other.write_text(waves.read_text().replace(",", ";"))
    options = ("--label", "y", "--drop", "kind", "--folds", 5, "--depths", "1")
    assert run("choose", other, *options, "--delimiter", ";").code == 0
    early = run("choose", waves, *options, "--plot", tmp_path / "none" / "x.png")
    assert early.code == 1 and "best" not in early.err, early.err
    printed(early.err)
    nets = tmp_path / "nets.toml"
    nets.write_text('[[network]]\nname = "$\\\\frac{a$"\ndepth = 1\n')
    ran = run("choose", waves, *options, "--networks", nets, "--plot", tmp_path / "x.png")
    assert ran.code == 0 and (tmp_path / "x.png").exists(), ran.err
    assert "labels were read as numbers in column 'y'" in ran.err and "others" not in ran.err
    networks = import_module("evgp.architectures.choose")
    monkeypatch.setattr(networks, "mlp", unwrap(mlp))  # only tests check types
    for text in (
        "network = [1]\n",
        '[[network]]\ndepth = "x"\n',
        '[[network]]\nactivation = "cube"\n',
    ):
        nets.write_text(text)
        ran = run("choose", waves, *options, "--networks", nets)
        assert ran.code == 1, ran.err
        printed(ran.err)
    ran = run("choose", waves, *options, "--kappa", "nan")
    assert "kappa > 0 and < 1, the share held out; got nan" in ran.err
