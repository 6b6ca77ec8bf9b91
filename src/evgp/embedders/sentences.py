"""Embed texts by a sentence-transformers model on this machine; nothing is downloaded."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float

from evgp._extras import lacking
from evgp._reading import opened, read_json
from evgp.embedders.embedder import Kind, hashed, versions
from evgp.errors import EmbedderError, Stopped

_PACKAGES = ("sentence-transformers", "transformers")
# A token has at most this many characters on average; tokenising megabytes to use the first
# page would take seconds.
_PER_TOKEN = 50
_CHUNK = 2**22


@dataclass(frozen=True, eq=False)
class SentenceEmbedder:
    """A model of sentence-transformers in a folder; it is loaded when the first text needs it."""

    folder: Path
    name: str
    reads: ClassVar[Kind] = "text"
    batch: ClassVar[int] = 32
    side: ClassVar[int] = 0

    def fingerprint(self) -> str:
        """Return a hash of all files of the model, and of the packages that run it."""
        state = blake2b(digest_size=16)
        for path in sorted(self.folder.rglob("*")):
            if not path.is_file() or path.suffix.lower() == ".md":
                continue
            state.update(f"{path.relative_to(self.folder).as_posix()}\n".encode())
            with opened(path, EmbedderError) as stream:
                while chunk := stream.read(_CHUNK):
                    state.update(chunk)
        return hashed("sentences", 1, versions(*_PACKAGES), state.hexdigest())

    @cached_property
    def loaded(self) -> "LoadedSentences":
        """The model in memory."""
        with offline():
            try:
                from sentence_transformers import SentenceTransformer
            except ImportError as error:
                raise EmbedderError(f"{self.folder}: {lacking('text')}") from error
            try:
                with _silent():
                    model = SentenceTransformer(
                        str(self.folder), device="cpu", local_files_only=True
                    )
            except Exception as error:  # a damaged model may raise anything
                raise Stopped.of(EmbedderError)(
                    f"{self.folder}: expected a model of sentence-transformers; loading it",
                    f"{type(error).__name__}: {' '.join(str(error).split())[:200]}",
                ) from error
        return LoadedSentences(model, self.name)

    def limit(self) -> str:
        """How many tokens of a text are read; in the model's files, so that it is not loaded."""
        path = self.folder / "sentence_bert_config.json"
        settings = read_json(path, "settings", EmbedderError) if path.is_file() else None
        tokens = settings.get("max_seq_length") if isinstance(settings, dict) else None
        return f"{tokens} tokens" if tokens else "the length that it reads"

    def embed(self, batch: Sequence[str]) -> Float[np.ndarray, "b d"]:
        """Return one vector for each text."""
        return self.loaded.embed(batch)

    def cut(self, batch: Sequence[str]) -> Bool[np.ndarray, " b"]:
        """Return which texts have more tokens than the model reads."""
        return self.loaded.cut(batch)


@dataclass(frozen=True, eq=False)
class LoadedSentences:
    """A SentenceTransformer in memory, such as one that was trained in this process."""

    model: Any = field(repr=False)
    name: str = "SentenceTransformer"
    reads: ClassVar[Kind] = "text"
    batch: ClassVar[int] = 32
    side: ClassVar[int] = 0

    def fingerprint(self) -> str:
        """Return a hash of the weights, the architecture and the tokenizer."""
        tokens: Any = getattr(self.model, "tokenizer", None)
        vocabulary = sorted(tokens.get_vocab().items()) if hasattr(tokens, "get_vocab") else ""
        parts = hash_of_weights(self.model), str(self.model), hashed(vocabulary), self._tokens
        return hashed("loaded sentences", 1, versions(*_PACKAGES), *parts)

    @property
    def _tokens(self) -> int:
        return int(getattr(self.model, "max_seq_length", None) or 0)

    def limit(self) -> str:
        """How many tokens of a text are read."""
        return f"{self._tokens} tokens" if self._tokens else ""

    def embed(self, batch: Sequence[str]) -> Float[np.ndarray, "b d"]:
        """Return one vector for each text."""
        texts = [self._begin(text) for text in batch]
        with _silent():
            return self.model.encode(
                texts, batch_size=len(texts), show_progress_bar=False, convert_to_numpy=True
            )

    def cut(self, batch: Sequence[str]) -> Bool[np.ndarray, " b"]:
        """Return which texts have more tokens than the model reads."""
        tokens, tokenizer = self._tokens, getattr(self.model, "tokenizer", None)
        longer = np.zeros(len(batch), dtype=bool)
        # A token has at least one character, and two tokens mark the ends.
        rows = [row for row, text in enumerate(batch) if len(text) > tokens - 2]
        if not tokens or tokenizer is None or not rows:
            return longer
        texts = [self._begin(batch[row]) for row in rows]
        ids = tokenizer(texts, truncation=False, verbose=False)["input_ids"]
        for row, text, marks in zip(rows, texts, ids, strict=True):
            longer[row] = len(marks) > tokens or len(text) < len(batch[row])
        return longer

    def _begin(self, text: str) -> str:
        return text[: _PER_TOKEN * self._tokens] if self._tokens else text


def hash_of_weights(module: Any) -> str:
    """Return a hash of all tensors of a torch module."""
    state = blake2b(digest_size=16)
    for name, value in module.state_dict().items():
        array = value.detach().cpu().contiguous()
        state.update(repr((name, array.dtype, tuple(array.shape))).encode())
        state.update(array.flatten().view(torch.uint8).numpy().data)
    return state.hexdigest()


def local_model(name: str) -> Path | None:
    """Return the folder of a model that was downloaded earlier; None if it is not there.

    >>> local_model("nobody/nothing") is None
    True
    """
    try:
        with offline():
            from huggingface_hub import snapshot_download
    except ImportError:
        return None
    for repository in (name, f"sentence-transformers/{name}"):
        try:
            return Path(snapshot_download(repository, local_files_only=True))
        except Exception:  # missing, or not the name of a model
            continue
    return None


@contextmanager
def offline() -> Iterator[None]:
    """Keep packages of Hugging Face from using the network."""
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    constants = sys.modules.get("huggingface_hub.constants")
    was = None if constants is None else constants.HF_HUB_OFFLINE
    if constants is not None:
        constants.HF_HUB_OFFLINE = True  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
        # A package that was imported within this block has read the variable; undo that too.
        constants = sys.modules.get("huggingface_hub.constants")
        if constants is not None:
            online = before["HF_HUB_OFFLINE"] in (None, "", "0")
            constants.HF_HUB_OFFLINE = (not online) if was is None else was  # type: ignore[attr-defined]


@contextmanager
def _silent() -> Iterator[None]:
    """Switch off the progress bars and the log of transformers."""
    from transformers.utils import logging

    shown = getattr(logging, "is_progress_bar_enabled", lambda: False)()
    level = logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity(logging.CRITICAL)
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()
