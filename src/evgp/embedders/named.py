"""Embedders by name, from objects, and with weights on this machine."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import torch
from torch import nn

from evgp._checks import shown
from evgp.embedders.embedder import Embedder, Kind
from evgp.embedders.modules import SIDE, FunctionEmbedder, ModuleEmbedder, needs_nothing
from evgp.embedders.sentences import (
    LoadedSentences,
    SentenceEmbedder,
    hash_of_weights,
    local_model,
    offline,
)
from evgp.embedders.tfidf import Tfidf
from evgp.errors import EmbedderError, Stopped
from evgp.nets import imported_object, load_weights

FORMS = {
    "text": "tfidf, the folder of a sentence-transformers model, the name of one that was "
    "downloaded before, or package.module:function",
    "images": "package.module:function, torchvision:NAME or timm:NAME, each with @FILE for its "
    "weights",
}
_TFIDF = re.compile(r"tfidf(?:-([1-9]\d{0,3}))?")


@dataclass(frozen=True)
class _Needs:
    """What an embedder is needed for: texts or images, and the side of these."""

    reads: Kind
    side: int = 0


def embedder_of(embed: object, reads: Kind, side: int | None = None) -> Embedder | Tfidf:
    """Return the embedder for a name or an object.

    A string is a name (`FORMS`). An object is an `Embedder`, a `SentenceTransformer`, a torch
    module for images, a path, or a function that takes a batch and returns vectors.

    >>> embedder_of("tfidf-64", "text")
    Tfidf(width=64)
    """
    needs = _Needs(reads, side or 0)
    embedder = _named(embed, needs) if isinstance(embed, str) else _from_object(embed, needs, "")
    kind = "text" if isinstance(embedder, Tfidf) else embedder.reads
    if kind != reads:
        raise EmbedderError(
            f"expected an embedder of {reads}, got one of {kind} ({_shown(embed)}); give "
            f"{FORMS[reads]}"
        )
    return embedder


def _named(name: str, needs: _Needs) -> Embedder | Tfidf:
    if match := _TFIDF.fullmatch(name):
        return Tfidf(int(match[1])) if match[1] else Tfidf()
    if name and Path(name).is_dir():
        return _folder(Path(name), name)
    source, _, weights = name.partition("@")
    package, colon, attribute = source.partition(":")
    if colon and package in _LIBRARIES and attribute:
        module = _LIBRARIES[package](attribute, Path(weights) if weights else None)
        return ModuleEmbedder(module, source, needs.side)
    if colon and package and attribute:
        thing = imported_object(package, attribute, "an embedder")
        return _from_object(thing, needs, source, Path(weights) if weights else None)
    if needs.reads == "text" and name and (folder := local_model(name)) is not None:
        return _folder(folder, name)
    raise EmbedderError(_unknown(name, needs.reads))


def _unknown(name: str, reads: Kind) -> str:
    text = f"expected embed= as {FORMS[reads]}; got {name!r}"
    if reads == "images" or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
        return text
    if get_close_matches(name, ("tfidf",)):
        return f"{text}; did you mean 'tfidf'?"
    fetch = f"from sentence_transformers import SentenceTransformer as S; S({name!r})"
    return (
        f"{text}, which is not on this machine; nothing is downloaded here: if it is a model, "
        f'fetch it once with python -c "{fetch}" (pip install sentence-transformers)'
    )


def _folder(folder: Path, name: str) -> SentenceEmbedder:
    if not any((folder / file).is_file() for file in ("modules.json", "config.json")):
        raise EmbedderError(
            f"{folder}: expected a model of sentence-transformers, a folder with modules.json or "
            "config.json; got one without"
        )
    # Many model folders are called "model".
    short = name if name != str(folder) else "/".join(folder.absolute().parts[-2:])
    return SentenceEmbedder(folder, short)


def _from_object(
    thing: Any, needs: _Needs, name: str, weights: Path | None = None, made: bool = False
) -> Embedder | Tfidf:
    name = name or getattr(thing, "__name__", "") or type(thing).__name__
    if isinstance(thing, Path) or (isinstance(thing, str) and made):
        return _folder(Path(thing), str(thing))
    if isinstance(thing, nn.Module):
        return _from_module(thing, needs, name, weights)
    if isinstance(thing, Tfidf | Embedder) and not isinstance(thing, type):
        return thing
    if not callable(thing):
        raise EmbedderError(
            f"expected an embedder as {FORMS[needs.reads]}, or an object that embeds; got "
            f"{_shown(thing)}"
        )
    if not made and needs_nothing(thing):
        return _from_object(_made(thing, name, weights), needs, name, weights, made=True)
    if weights is not None:
        raise EmbedderError(
            f"expected a torch module, or a function that makes one, at {name}, as {weights} has "
            "its weights; got something else"
        )
    return FunctionEmbedder(thing, name, needs.reads, needs.side)


def _from_module(
    module: nn.Module, needs: _Needs, name: str, weights: Path | None
) -> LoadedSentences | ModuleEmbedder:
    if weights is not None:
        side = needs.side or SIDE
        module = load_weights(module, weights, (3, side, side))
    if hasattr(module, "encode") and hasattr(module, "tokenizer"):
        return LoadedSentences(module, name)
    if needs.reads == "text":
        raise EmbedderError(
            f"expected an embedder of text, got the torch module {name}, which reads numbers; give "
            "a function that takes a list of texts and returns vectors"
        )
    return ModuleEmbedder(module, name, needs.side)


def _made(make: Callable[[], Any], name: str, weights: Path | None) -> Any:
    """Return what a function makes; refuse a network whose weights are drawn each time."""
    thing = _called(make, name, 0)
    if weights is None and isinstance(thing, nn.Module):
        again = _called(make, name, 1)
        if hash_of_weights(again) != hash_of_weights(thing):
            raise EmbedderError(
                f"expected a trained network from {name}(), got one whose weights are random; give "
                f"its weights with {name}@FILE"
            )
    return thing


def _called(make: Callable[[], Any], name: str, seed: int) -> Any:
    try:
        with torch.random.fork_rng(devices=[]), offline():
            torch.manual_seed(seed)
            return make()
    except (Exception, SystemExit) as error:  # a user's function may raise anything
        raise Stopped.of(EmbedderError)(
            f"{name}()", f"{type(error).__name__}: {error}", "it is called without arguments"
        ) from error


def _torchvision(name: str, weights: Path | None) -> nn.Module:
    try:
        from torchvision import models
    except ImportError as error:
        raise EmbedderError(_missing("torchvision")) from error
    try:
        module: nn.Module = models.get_model(name, weights=None)
        url = models.get_model_weights(name)["DEFAULT"].url
    except ValueError as error:
        raise EmbedderError(
            f"expected the name of a network of torchvision after torchvision:, got {name!r}; "
            "torchvision.models.list_models() lists them"
        ) from error
    file = weights or Path(torch.hub.get_dir(), "checkpoints", Path(urlparse(url).path).name)
    if weights is None and not file.is_file():
        raise EmbedderError(
            f"the weights of torchvision:{name} are not on this machine (no {file}), and nothing "
            f"is downloaded here; save {url} there, or give a file with torchvision:{name}@FILE"
        )
    return load_weights(module, file, (3, SIDE, SIDE))


def _timm(name: str, weights: Path | None) -> nn.Module:
    try:
        with offline():
            import timm
    except ImportError as error:
        raise EmbedderError(_missing("timm")) from error
    if not timm.is_model(name):
        raise EmbedderError(
            f"expected the name of a network of timm after timm:, got {name!r}; "
            "timm.list_models() lists them"
        )
    if weights is not None:
        return load_weights(timm.create_model(name, pretrained=False), weights, (3, SIDE, SIDE))
    try:
        with offline():
            module: nn.Module = timm.create_model(name, pretrained=True)
    except Exception as error:  # whatever is missing in the cache of Hugging Face
        raise EmbedderError(
            f"the weights of timm:{name} are not on this machine, and nothing is downloaded here; "
            f'give a file with timm:{name}@FILE, or fetch them once with python -c "import timm; '
            f'timm.create_model({name!r}, pretrained=True)"'
        ) from error
    return module


_LIBRARIES: dict[str, Callable[[str, Path | None], nn.Module]] = {
    "torchvision": _torchvision,
    "timm": _timm,
}


def _missing(package: str) -> str:
    return f"expected {package}, which is not installed; do `pip install {package}`"


def _shown(thing: object) -> str:
    return f"{thing!r}" if isinstance(thing, str) else shown(thing)
