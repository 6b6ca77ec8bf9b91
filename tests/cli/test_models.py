"""The command with folders of images, arrays of images, and networks of one's own."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from sklearn.datasets import load_digits

import evgp
from tests.messages import printed


@pytest.fixture(scope="module")
def digits() -> np.ndarray:
    return (load_digits().images[:40] * 15.9).astype(np.uint8)


@pytest.fixture
def folder(tmp_path: Path, digits: np.ndarray) -> Path:
    """Forty small images, in two folders, as people keep them."""
    folder = tmp_path / "images"
    for row, image in enumerate(digits):
        place = folder / ("first" if row < 20 else "second")
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place / f"{row:02d}.png")
    return folder


@pytest.fixture
def nets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of the user's own."""
    (tmp_path / "command_nets.py").write_text(
        "from torch import nn\n"
        "def build():\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 3))\n"
        "def noisy():\n"
        "    return nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(64, 3))\n"
    )
    monkeypatch.chdir(tmp_path)


def ids(text: str) -> list[str]:
    return [row["id"] for row in csv.DictReader(io.StringIO(text), delimiter="\t")]


def test_a_folder_gives_the_picks_of_its_array(run, folder, digits) -> None:
    ran = run("pick", folder, "-k", 4, "--network", "cnn")
    assert ran.code == 0, ran.err
    picked = evgp.pick(digits[:, None], 4, network=evgp.cnn())
    names = [f"{'first' if row < 20 else 'second'}/{row:02d}.png" for row in picked.indices]
    assert ids(ran.out) == names
    assert "4 of 40 images picked" in ran.err


def test_a_folder_with_the_infinite_network(run, folder, digits) -> None:
    ran = run("pick", folder, "-k", 4, "--json")
    assert ran.code == 0, ran.err
    picked = evgp.pick(digits[:, None], 4)
    document = json.loads(ran.out)
    assert [pick["index"] for pick in document["picks"]] == picked.indices.tolist()
    assert document["settings"]["network"].startswith("Network(depth=2")


def test_anything_but_an_image_is_named_and_the_report_shows_the_rest(
    run, folder, tmp_path
) -> None:
    (folder / "labels.csv").write_text("a,b\n")
    (folder / "cut.png").write_bytes((folder / "first" / "00.png").read_bytes()[:60])
    report = tmp_path / "report.html"
    ran = run("pick", folder, "-k", 3, "--network", "cnn", "--report", report)
    assert ran.code == 0, ran.err
    assert "labels.csv" in ran.err and "cut.png" in ran.err
    assert "data:image/" in report.read_text()


def test_labelled_images_by_name_by_an_earlier_list_and_by_folder(run, folder, tmp_path) -> None:
    first = tmp_path / "first.csv"
    assert run("pick", folder, "-k", 3, "-o", first).code == 0
    again = run("pick", folder, "-k", 3, "--labelled", first)
    assert again.code == 0, again.err
    known = [row["id"] for row in csv.DictReader(first.read_text().splitlines())]
    assert not set(known) & set(ids(again.out))
    names = tmp_path / "names.txt"
    names.write_text("\n".join(known))
    assert ids(run("pick", folder, "-k", 3, "--labelled", names).out) == ids(again.out)
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in known:
        (folder / name).rename(outside / Path(name).name)
    moved = run("pick", folder, "-k", 3, "--labelled", outside, "--test", folder)
    assert moved.code == 0 and "3 labelled images" in moved.err
    names.write_text("third/99.png")
    bad = run("pick", folder, "-k", 3, "--labelled", names)
    assert bad.code == 1, bad.err
    printed(bad.err)


def test_arrays_of_images_and_tokens_keep_their_axes(run, tmp_path, digits, nets) -> None:
    colour = np.repeat(digits[:, :, :, None], 3, axis=3)
    np.savez(tmp_path / "pool.npz", grey=digits, last=colour, y=np.arange(40))
    for name, x in (("grey", digits[:, None]), ("last", np.moveaxis(colour, 3, 1))):
        ran = run(
            "pick", tmp_path / "pool.npz", "-k", 3, "--array", name, "--network", "cnn", "--json"
        )
        assert ran.code == 0, ran.err
        document = json.loads(ran.out)
        picked = evgp.pick(x, 3, network=evgp.cnn())
        assert [pick["index"] for pick in document["picks"]] == picked.indices.tolist()
        assert "taken as images" in ran.err
    np.save(tmp_path / "flat.npy", digits.reshape(40, 64))
    ran = run("pick", tmp_path / "flat.npy", "-k", 3, "--network", "command_nets:build", "--json")
    assert ran.code == 0, ran.err
    assert "flattened" not in ran.err


def test_weights_change_the_kernel(run, tmp_path, digits, nets) -> None:
    np.save(tmp_path / "pool.npy", digits)
    torch.manual_seed(3)
    module = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(64, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)
    )
    save_file(module.state_dict(), tmp_path / "net.safetensors")
    command = ("pick", tmp_path / "pool.npy", "-k", 3, "--network", "command_nets:build", "--json")
    with_weights = run(*command, "--weights", tmp_path / "net.safetensors", "--unit", 1)
    assert with_weights.code == 0, with_weights.err
    kernel = evgp.EmpiricalNTK(module, output=1)
    picked = evgp.pick(digits, 3, kernel=kernel)
    document = json.loads(with_weights.out)
    assert [pick["index"] for pick in document["picks"]] == picked.indices.tolist()
    assert document["prior_variance"] == pytest.approx(picked.prior_variance)
    assert document["settings"]["weights"] == str(tmp_path / "net.safetensors")
    without = json.loads(run(*command, "--unit", 1).out)
    assert without["prior_variance"] != pytest.approx(picked.prior_variance)


def test_the_plan_looks_at_the_network(run, folder) -> None:
    small = json.loads(run("plan", folder, "-k", 3, "--network", "cnn", "--json").out)
    large = json.loads(run("plan", folder, "-k", 3, "--network", "resnet18", "--json").out)
    assert large["memory"] > small["memory"] and large["seconds"] > small["seconds"]
    assert small["features"] == 64 and "columns" not in small


@pytest.mark.parametrize(
    "arguments",
    [
        ("--network", "vgg"),
        ("--network", "cnn", "--depth", 3),
        ("--unit", "trace"),
        ("--draws", 2),
        ("--network", "cnn", "--unit", "best"),
        ("--network", "cnn", "--unit", 12),
        ("--network", "cnn", "--weights", "absent.pt"),
        ("--network", "cnn", "--weights", "x.pt", "--draws", 2),
        ("--network", "command_nets:noisy"),
        ("--id", "name"),
        ("--drop", "a", "--impute"),
        ("--test", "command_nets.py"),
        ("--image-size", 4, "--network", "command_nets:build"),
    ],
)
@pytest.mark.usefixtures("nets")
def test_wrong_options_are_explained(run, folder, tmp_path, arguments) -> None:
    out = tmp_path / "picks.csv"
    ran = run("pick", folder, "-k", 2, "-o", out, *arguments)
    assert ran.code == 1, ran.err
    printed(ran.err)
    assert ran.err.splitlines()[-1].startswith("evgp: ")
    assert not out.exists()


def test_a_network_for_images_refuses_a_table(run, pool) -> None:
    ran = run("pick", pool, "-k", 2, "--drop", "name", "--network", "cnn")
    assert ran.code == 1
    assert "expected images of shape (channels, height, width) for cnn, got (6,)" in ran.err
    size = run("pick", pool, "-k", 2, "--image-size", 8)
    assert size.code == 1, size.err
    printed(size.err)
