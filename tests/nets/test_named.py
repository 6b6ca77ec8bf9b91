"""Networks by name, and weights from files."""

import pickle

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import evgp
from evgp._errors import NetworkError
from evgp.nets import load_weights, network_named


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A module of the user's own in the working directory."""
    text = """
import evgp
from torch import nn
def build():
    return nn.Linear(3, 2)
class Net(nn.Linear):
    def __init__(self):
        super().__init__(3, 2)
ready = nn.Linear(3, 2)
described = evgp.cnn(4)
def describe():
    return evgp.mlp(depth=3)
def wants(shape):
    return nn.Linear(shape, 2)
def wrong():
    return 7
def leaves():
    raise SystemExit(3)
number = 7
class Inside:
    build = staticmethod(build)
"""
    (tmp_path / "own_nets.py").write_text(text)
    (tmp_path / "leaving_nets.py").write_text("import sys; sys.exit(4)")
    (tmp_path / "broken_nets.py").write_text("raise ValueError('not today')")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_zoo_by_name() -> None:
    assert network_named("mlp") == evgp.mlp()
    assert network_named("wrn-16-1").name == "wide_resnet(16, 1)"
    assert network_named("wide_resnet-22-2").name == "wide_resnet(22, 2)"
    assert network_named("resnet18").name == "resnet18"


@pytest.mark.parametrize("name", ["build", "Net", "Inside.build"])
def test_functions_that_make_modules(package, name) -> None:
    state = torch.get_rng_state()
    found = network_named(f"own_nets:{name}")
    assert isinstance(found(), nn.Linear)
    torch.set_rng_state(state)
    network_named(f"own_nets:{name}")
    assert torch.equal(torch.get_rng_state(), state)


def test_a_module_made_on_import_is_the_same_each_time(tmp_path, monkeypatch) -> None:
    text = "from torch import nn\nready = nn.Linear(3, 2)\n"
    made = []
    monkeypatch.chdir(tmp_path)
    for name in ("same_nets_a", "same_nets_b"):
        (tmp_path / f"{name}.py").write_text(text)
        made.append(network_named(f"{name}:ready"))
        torch.rand(3)
    assert torch.equal(made[0].weight, made[1].weight)


def test_modules_and_descriptions(package) -> None:
    assert isinstance(network_named("own_nets:ready"), nn.Module)
    assert network_named("own_nets:described").outputs == 4
    assert network_named("own_nets:describe") == evgp.mlp(depth=3)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("vgg", "among mlp, cnn, resnet18, wide_resnet, wrn-DEPTH-WIDTH, or package.module:name"),
        ("own_nets:", "or package.module:name"),
        ("wrn-11-1", "6 i \\+ 4"),
        ("absent_nets:build", "No module named 'absent_nets'"),
        ("own_nets:absent", "has no attribute 'absent'"),
        ("broken_nets:build", "stopped while it was imported: ValueError: not today"),
        ("own_nets:wants", "called without arguments"),
        ("own_nets:wrong", "expected a torch module from own_nets:wrong\\(\\), got int"),
        ("own_nets:leaves", "own_nets:leaves stopped: SystemExit: 3"),
        ("leaving_nets:build", "stopped while it was imported: SystemExit"),
        ("own_nets:number", "as a function that makes a torch module, got int"),
    ],
)
def test_other_names_get_a_sentence(package, name, words) -> None:
    with pytest.raises(NetworkError, match=words):
        network_named(name)


@pytest.mark.parametrize("file", ["weights.safetensors", "weights.pt", "checkpoint.ckpt"])
def test_weights_come_back(tmp_path, file) -> None:
    source = nn.Linear(3, 2)
    state = source.state_dict()
    if file.endswith(".safetensors"):
        save_file(state, tmp_path / file)
    else:
        torch.save({"state_dict": state, "epoch": 3} if "check" in file else state, tmp_path / file)
    for network in (nn.Linear(3, 2), lambda: nn.Linear(3, 2)):
        made = load_weights(network, tmp_path / file, (3,))
        assert torch.equal(made.weight, source.weight) and torch.equal(made.bias, source.bias)


def test_weights_of_a_description(tmp_path) -> None:
    shape = (1, 8, 8)
    source = evgp.cnn(3).build(shape, generator=torch.Generator().manual_seed(5))
    torch.save(source.state_dict(), tmp_path / "cnn.pt")
    made = load_weights(evgp.cnn(3), tmp_path / "cnn.pt", shape)
    x = torch.randn(2, *shape)
    assert torch.equal(made(x), source(x))


class Runs:
    """Unpickling it would run code."""

    def __reduce__(self):
        return (exec, ("raise SystemExit('ran')",))


def test_bad_weights_get_a_sentence_and_run_nothing(tmp_path) -> None:
    files = {
        "absent.pt": None,
        "evil.pt": pickle.dumps(Runs()),
        "noise.pt": b"\x00" * 50,
        "random.pt": bytes(range(7, 250)),
        "empty.pt": b"",
        "noise.safetensors": b"\xff" * 50,
    }
    for name, data in files.items():
        if data is not None:
            (tmp_path / name).write_bytes(data)
        with pytest.raises(NetworkError, match=name):
            load_weights(nn.Linear(3, 2), tmp_path / name, (3,))
    torch.save(Runs(), tmp_path / "object.pt")
    with pytest.raises(NetworkError, match="never unpickled here"):
        load_weights(nn.Linear(3, 2), tmp_path / "object.pt", (3,))
    torch.save([torch.eye(2)], tmp_path / "list.pt")
    with pytest.raises(NetworkError, match="weights by name, got list"):
        load_weights(nn.Linear(3, 2), tmp_path / "list.pt", (3,))
    torch.save({"weight": torch.eye(3), "extra": torch.eye(2)}, tmp_path / "other.pt")
    wrong = r"got no bias; an unknown extra; weight of shape \(3, 3\) instead of \(2, 3\)"
    with pytest.raises(NetworkError, match=wrong):
        load_weights(nn.Linear(3, 2), tmp_path / "other.pt", (3,))
