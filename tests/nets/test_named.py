"""Networks by name, and weights from files."""

import pickle

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import evgp
from evgp.errors import NetworkError
from evgp.nets import load_weights, network_named
from tests.messages import refused


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
    network = network_named(f"own_nets:{name}")
    assert isinstance(network(), nn.Linear)
    torch.set_rng_state(state)
    network_named(f"own_nets:{name}")
    assert torch.equal(torch.get_rng_state(), state)


def test_a_module_made_on_import_is_the_same_each_time(tmp_path, monkeypatch) -> None:
    text = "from torch import nn\nready = nn.Linear(3, 2)\n"
    results = []
    monkeypatch.chdir(tmp_path)
    for name in ("same_nets_a", "same_nets_b"):
        (tmp_path / f"{name}.py").write_text(text)
        results.append(network_named(f"{name}:ready"))
        torch.rand(3)
    assert torch.equal(results[0].weight, results[1].weight)


def test_modules_and_descriptions(package) -> None:
    assert isinstance(network_named("own_nets:ready"), nn.Module)
    assert network_named("own_nets:described").outputs == 4
    assert network_named("own_nets:describe") == evgp.mlp(depth=3)


@pytest.mark.parametrize(
    "name",
    [
        "vgg",
        "own_nets:",
        "wrn-11-1",
        "absent_nets:build",
        "own_nets:absent",
        "broken_nets:build",
        "own_nets:wants",
        "own_nets:wrong",
        "own_nets:leaves",
        "leaving_nets:build",
        "own_nets:number",
    ],
)
def test_other_names_are_refused_clearly(package, name) -> None:
    with refused(NetworkError):
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
        module = load_weights(network, tmp_path / file, (3,))
        assert torch.equal(module.weight, source.weight) and torch.equal(module.bias, source.bias)


def test_weights_of_a_description(tmp_path) -> None:
    shape = (1, 8, 8)
    source = evgp.cnn(3).build(shape, generator=torch.Generator().manual_seed(5))
    torch.save(source.state_dict(), tmp_path / "cnn.pt")
    module = load_weights(evgp.cnn(3), tmp_path / "cnn.pt", shape)
    x = torch.randn(2, *shape)
    assert torch.equal(module(x), source(x))


class Runs:
    """Unpickling it would run code."""

    def __reduce__(self):
        return (exec, ("raise SystemExit('ran')",))


def test_bad_weights_are_refused_clearly_and_run_nothing(tmp_path) -> None:
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
        with refused(NetworkError):
            load_weights(nn.Linear(3, 2), tmp_path / name, (3,))
    torch.save(Runs(), tmp_path / "object.pt")
    with refused(NetworkError):
        load_weights(nn.Linear(3, 2), tmp_path / "object.pt", (3,))
    torch.save([torch.eye(2)], tmp_path / "list.pt")
    with refused(NetworkError):
        load_weights(nn.Linear(3, 2), tmp_path / "list.pt", (3,))
    torch.save({"weight": torch.eye(3), "extra": torch.eye(2)}, tmp_path / "other.pt")
    with refused(NetworkError):
        load_weights(nn.Linear(3, 2), tmp_path / "other.pt", (3,))
