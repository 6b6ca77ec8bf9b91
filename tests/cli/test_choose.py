"""`evgp choose` as a person runs it."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from evgp.architectures import candidates, choose
from evgp.datasets import load_csv


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
    given = ("--label", "y", "--drop", "kind", "--folds", 10, "--depths", "1,2")
    ran = run("choose", waves, *given)
    assert ran.code == 0, ran.err
    lines = list(csv.DictReader(ran.out.splitlines(), delimiter="\t"))
    data = load_csv(waves, "y", drop=["kind"], test=0)
    assert len(data.x) == 40 and len(data.x_test) == 0
    made = choose(candidates(depths=(1, 2)), data.x, data.y, folds=10)
    assert [line["network"] for line in lines] == [one.name for one in made.ranked]
    for line, one in zip(lines, made.ranked, strict=True):
        assert float(line["score"]) == pytest.approx(one.score)
        assert float(line["fit"]) + float(line["spread"]) == pytest.approx(one.score)
    assert f"best: {made.chosen.name}" in ran.err
    document = json.loads(run("choose", waves, *given, "--json", "-q").out)
    assert document["chosen"] == made.chosen.name and len(document["ranked"]) == 8


def test_classes_files_of_networks_and_a_plot(run, waves, tmp_path) -> None:
    nets, plot = tmp_path / "nets.toml", tmp_path / "ranking.png"
    nets.write_text(
        '[[network]]\nname = "flat"\ndepth = 1\n\n[[network]]\ndepth = 3\nactivation = "erf"\n'
    )
    ran = run("choose", waves, "--label", "kind", "--drop", "y", "--networks", nets,
              "--folds", 5, "--most", 20, "--plot", plot)  # fmt: skip
    assert ran.code == 0, ran.err
    assert "flat" in ran.out and "looked at 20 of 40 rows" in ran.err
    assert plot.stat().st_size > 5000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--label", "z"], "'z'"),
        (["--label", "y", "--depths", "1,x"], "depths as numbers"),
        (["--label", "y", "--activations", "tanh"], "an activation among"),
        (["--label", "y", "--kappa", 0.99], "two that stay"),
        (["--label", "y", "--networks", "absent.toml"], "no such file; check the path"),
        (["--label", "y", "--plot", "ranking.doc"], ".png"),
    ],
)
def test_bad_input_is_one_sentence(run, waves, arguments, said) -> None:
    ran = run("choose", waves, "--drop", "kind", "--folds", 3, *arguments)
    assert ran.code == 1 and said in ran.err and ran.err.count("\n") == 1, ran.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("depth = 1", "a [[network]] for each architecture"),
        ("[[network]]\nlayers = 2", "got 'layers'"),
        ('[[network]]\nname = "a"\n[[network]]\nname = "a"', "'a' twice"),
        ("[[network", "expected a TOML file"),
    ],
)
def test_files_of_networks_are_checked(run, waves, tmp_path, text, said) -> None:
    (tmp_path / "nets.toml").write_text(text)
    ran = run("choose", waves, "--label", "y", "--drop", "kind", "--networks",
              tmp_path / "nets.toml")  # fmt: skip
    assert ran.code == 1 and said in ran.err, ran.err


def test_what_only_the_command_meets(run, waves, tmp_path) -> None:
    other = tmp_path / "semi.csv"
    other.write_text(waves.read_text().replace(",", ";"))
    given = ("--label", "y", "--drop", "kind", "--folds", 5, "--depths", "1")
    assert run("choose", other, *given, "--delimiter", ";").code == 0
    early = run("choose", waves, *given, "--plot", tmp_path / "none" / "x.png")
    assert early.code == 1 and "none" in early.err and "best" not in early.err
    nets = tmp_path / "nets.toml"
    nets.write_text('[[network]]\nname = "$\\\\frac{a$"\ndepth = 1\n')
    ran = run("choose", waves, *given, "--networks", nets, "--plot", tmp_path / "x.png")
    assert ran.code == 0 and (tmp_path / "x.png").exists(), ran.err
    assert "took the labels as numbers in column 'y'" in ran.err and "others" not in ran.err
    for text, words in (
        ("network = [1]\n", "expected a [[network]] for each architecture, got 1"),
        ('[[network]]\ndepth = "x"\n', "in network 1, got depth = 'x'"),
        ('[[network]]\nactivation = "cube"\n', "in network 1, got activation = 'cube'"),
    ):
        nets.write_text(text)
        ran = run("choose", waves, *given, "--networks", nets)
        assert ran.code == 1 and words in ran.err and len(ran.err.splitlines()) == 1
    ran = run("choose", waves, *given, "--kappa", "nan")
    assert "kappa > 0 and < 1, the share left out; got nan" in ran.err
