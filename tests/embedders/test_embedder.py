"""What every embedder must be: finite, of one length, and the same each time."""

import numpy as np
import pytest
import torch
from torch import nn

from evgp.embedders import FunctionEmbedder, embedder_of, steady_vectors, vectors_of
from evgp.errors import EmbedderError
from tests.messages import refused

TEXTS = ["one red apple", "two green pears", "three blue plums", "four"]


def lengths(batch: list[str]) -> np.ndarray:
    return np.array([[len(text), text.count("e")] for text in batch], dtype=float)


def test_vectors_are_float32_whatever_comes() -> None:
    for function in (lengths, lambda b: lengths(b).tolist(), lambda b: torch.tensor(lengths(b))):
        vectors = vectors_of(FunctionEmbedder(function, "mine"), TEXTS)
        assert vectors.dtype == np.float32
        assert vectors.tolist() == lengths(TEXTS).tolist()


@pytest.mark.parametrize(
    "answer",
    [
        lambda b: lengths(b)[:-1],
        lambda b: lengths(b)[:, 0],
        lambda b: [[1.0], [1.0, 2.0]],
        lambda b: None,
        lambda b: np.array([["a"]] * len(b)),
        lambda b: np.empty((len(b), 0)),
    ],
    ids=["too few", "flat", "ragged", "nothing", "words", "empty"],
)
def test_another_shape_is_refused(answer) -> None:
    with refused(EmbedderError):
        vectors_of(FunctionEmbedder(answer, "mine"), TEXTS)


def test_another_length_than_before_is_refused() -> None:
    with refused(EmbedderError):
        vectors_of(FunctionEmbedder(lengths, "mine"), TEXTS, 3)


def test_an_embedder_that_raises_is_named() -> None:
    def out(batch: list[str]) -> None:
        raise RuntimeError("no model")

    with refused(EmbedderError):
        vectors_of(FunctionEmbedder(out, "mine"), TEXTS)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_numbers_that_are_not_finite_are_refused(bad: float) -> None:
    def answer(batch: list[str]) -> np.ndarray:
        vectors = lengths(batch)
        vectors[1] = bad
        return vectors

    with refused(EmbedderError):
        vectors_of(FunctionEmbedder(answer, "mine"), TEXTS)


def test_a_random_embedder_is_refused() -> None:
    random = np.random.default_rng(0)
    with refused(EmbedderError, hide=r"[\d.]+(?=\))"):
        steady_vectors(FunctionEmbedder(lambda b: random.normal(size=(len(b), 3)), "mine"), TEXTS)


def test_an_embedder_that_depends_on_the_rest_of_a_batch_is_refused() -> None:
    def centred(batch: list[str]) -> np.ndarray:
        return lengths(batch) - lengths(batch).mean(axis=0)

    with refused(EmbedderError, hide=r"[\d.]+(?=\))"):
        steady_vectors(FunctionEmbedder(centred, "mine"), TEXTS)


def test_a_steady_embedder_is_not_refused() -> None:
    assert steady_vectors(FunctionEmbedder(lengths, "mine"), TEXTS[:1]).shape == (1, 2)


def test_the_fingerprint_of_a_function_follows_what_it_computes() -> None:
    scale = [1.0]

    def scaled(batch: list[str]) -> np.ndarray:
        return scale[0] * lengths(batch)

    before = FunctionEmbedder(scaled, "mine").fingerprint()
    assert FunctionEmbedder(scaled, "mine").fingerprint() == before
    scale[0] = 1.001
    assert FunctionEmbedder(scaled, "mine").fingerprint() != before


class Blobs(nn.Module):
    """A small network with a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.drop = nn.Dropout(0.5)
        self.last = nn.Linear(4, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.drop(self.conv(x).relu().mean((2, 3))))


IMAGES = np.random.default_rng(0).integers(0, 256, (6, 3, 16, 16), dtype=np.uint8)


def test_a_classifier_gives_the_inputs_of_its_last_layer_without_dropout() -> None:
    network = Blobs()
    vectors = steady_vectors(embedder_of(network, "images", 16), IMAGES)
    mean = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
    std = torch.tensor([0.229, 0.224, 0.225])[:, None, None]
    expected = network.conv((torch.from_numpy(IMAGES) / 255 - mean) / std).relu().mean((2, 3))
    np.testing.assert_allclose(vectors, expected.detach(), rtol=1e-5)
    assert network.training


def test_a_network_without_a_classifier_gives_its_outputs() -> None:
    vectors = vectors_of(embedder_of(nn.Sequential(nn.Conv2d(3, 4, 3)), "images", 16), IMAGES)
    assert vectors.shape == (6, 4)


def test_the_fingerprint_of_a_network_follows_its_weights_and_size() -> None:
    network = Blobs()
    first = embedder_of(network, "images", 16).fingerprint()
    assert embedder_of(network, "images", 16).fingerprint() == first
    assert embedder_of(network, "images", 32).fingerprint() != first
    with torch.no_grad():
        network.last.bias[0] += 1
    assert embedder_of(network, "images", 16).fingerprint() != first


MODULE = """
import numpy as np
import torch
from torch import nn


def lengths(batch):
    return np.array([[len(text), 1] for text in batch])


def fixed():
    network = nn.Sequential(nn.Flatten(), nn.Linear(12, 3), nn.ReLU(), nn.Linear(3, 2))
    for values in network.parameters():
        nn.init.constant_(values, 0.1)
    return network


def drawn():
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 3), nn.ReLU(), nn.Linear(3, 2))


def broken():
    raise OSError("no model here")


number = 7
"""


@pytest.fixture
def own(tmp_path, monkeypatch) -> str:
    name = f"own_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return name


def test_functions_are_found_by_name(own: str) -> None:
    embedder = embedder_of(f"{own}:lengths", "text")
    assert vectors_of(embedder, ["a", "bb"]).tolist() == [[1, 1], [2, 1]]
    assert vectors_of(embedder_of(f"{own}:fixed", "images", 2), IMAGES[..., :2, :2]).shape == (6, 3)


def test_random_weights_are_refused_unless_a_file_replaces_them(own: str) -> None:
    with refused(EmbedderError, hide=own):
        embedder_of(f"{own}:drawn", "images", 2)
    other = nn.Sequential(nn.Flatten(), nn.Linear(12, 3), nn.ReLU(), nn.Linear(3, 2))
    torch.save(other.state_dict(), "other.pt")
    embedder = embedder_of(f"{own}:drawn@other.pt", "images", 2)
    expected = vectors_of(embedder_of(other, "images", 2), IMAGES[..., :2, :2])
    np.testing.assert_array_equal(vectors_of(embedder, IMAGES[..., :2, :2]), expected)


@pytest.mark.parametrize("name", ["broken", "number"])
def test_what_cannot_embed_is_refused(own: str, name: str) -> None:
    with refused(EmbedderError, hide=own if name == "broken" else None):
        embedder_of(f"{own}:{name}", "text")


@pytest.mark.parametrize(
    ("name", "reads"),
    [
        ("tfdif", "text"),
        ("tfidf-0", "text"),
        ("nobody/nothing", "text"),
        ("tfidf", "images"),
        ("resnet18", "images"),
        ("", "text"),
    ],
)
def test_unknown_names_say_what_there_is(name: str, reads: str) -> None:
    with refused(EmbedderError):
        embedder_of(name, reads)


def test_a_folder_without_a_model_is_refused(tmp_path) -> None:
    with refused(EmbedderError):
        embedder_of(str(tmp_path), "text")


@pytest.mark.parametrize("embed", [7, Blobs()], ids=["a number", "a network"])
def test_objects_that_do_not_read_text_are_refused(embed: object) -> None:
    with refused(EmbedderError):
        embedder_of(embed, "text")
