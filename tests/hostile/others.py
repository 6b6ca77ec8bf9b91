"""Bad files that are not tables: JSON, TOML, weights, campaigns, images, and special files."""

import hashlib
import io
import json
import os
import pickle
import socket
import sqlite3
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from evgp import cnn
from tests.hostile.tables import Cases, Rng, damaged, good_text, numbered, save
from tests.labelling.campaign.edited import edited

SHAPE = (1, 8, 8)


def json_lines(folder: Path, rng: Rng) -> Cases:
    """Answers for `evgp campaign label`."""
    rows = [{"id": j, "label": j / 2} for j in range(6)]
    whole = "".join(json.dumps(row) + "\n" for row in rows)
    result = numbered(folder, damaged(whole.encode(), rng, 6, 3), ".jsonl")
    odd = {
        "empty": "",
        "blank": "\n\n \n",
        "no JSON": "hello\n",
        "lists": "[1, 2]\n",
        "numbers": "7\n",
        "deep": "[" * 100_000 + "\n",
        "deep objects": '{"id":' * 50_000 + "\n",
        "a huge number": '{"id": 1, "label": ' + "9" * 5000 + "}\n",
        "a large number": '{"id": 1, "label": 1e999}\n',
        "not a number": '{"id": 1, "label": NaN}\n',
        "half a letter": '{"id": "\\ud800", "label": 1}\n',
        "half a letter as label": '{"id": 1, "label": "\\ud800"}\n',
        "escapes": '{"id": "\\u001b[2J", "label": 1}\n',
        "null": '{"id": null, "label": 1}\n',
        "an object as id": '{"id": {}, "label": []}\n',
        "other ids": '{"id": 999, "label": 1}\n',
        "a negative row": '{"row": -1, "label": 1}\n',
        "no label": '{"id": 1}\n',
        "ids twice": '{"id": 1, "label": 1}\n{"id": 1, "label": 2}\n',
        "keys twice": '{"id": 1, "id": 2, "label": 2}\n',
        "a long line": '{"id": 1, "label": "' + "x" * 5_000_000 + '"}\n',
        "many keys": json.dumps({f"k{j}": j for j in range(100_000)}) + "\n",
        "many lines": '{"id": 1, "label": 1}\n' * 100_000,
        "a mark": "\ufeff" + whole,
    }
    result |= {name: save(folder, f"{name}.jsonl", text) for name, text in odd.items()}
    result["UTF-16"] = save(folder, "utf16.jsonl", whole.encode("utf-16"))
    result["bytes"] = save(folder, "bytes.jsonl", rng.bytes(4000))
    result["nul"] = save(folder, "nul.jsonl", bytes(4000))
    return result


def exports(folder: Path, rng: Rng) -> Cases:
    """Exports of Label Studio for `evgp campaign pull --file`."""
    task = {
        "id": 1,
        "created_at": "2026-11-01T10:00:00Z",
        "data": {"evgp_row_id": "1", "evgp_pool": "0" * 16},
        "annotations": [{"unique_id": "u", "result": [], "updated_at": "2026-11-01T10:00:00Z"}],
    }
    whole = json.dumps([task]).encode()
    result = numbered(folder, damaged(whole, rng, 6, 3), ".json")
    odd: dict[str, object] = {
        "an object": {},
        "a number": 7,
        "nothing": [],
        "a list of lists": [[[]]],
        "tasks of nothing": [{}],
        "data that is none": [{**task, "data": 7}],
        "annotations that are none": [{**task, "annotations": 7}],
        "an annotation that is none": [{**task, "data": {}, "annotations": [7]}],
        "a time that is none": [{**task, "created_at": "9999999999999"}],
        "escapes": [{**task, "id": "\x1b[2J\n", "data": {"evgp_row_id": "\x1b", "evgp_pool": 7}}],
    }
    result |= {name: save(folder, f"{name}.json", json.dumps(value)) for name, value in odd.items()}
    texts = {
        "deep": "[" * 200_000,
        "deep objects": '[{"data":' * 50_000,
        "a bomb of objects": "[" + "{}," * 3_000_000 + "{}]",
        "a bomb of lists": "[" + "[]," * 3_000_000 + "[]]",
        "a huge number": "[" + "9" * 100_000 + "]",
        "half a letter": '[{"data": {"evgp_row_id": "\\ud800"}, "annotations": []}]',
        "empty": "",
        "text": good_text(),
    }
    result |= {name: save(folder, f"{name}.json", text) for name, text in texts.items()}
    result["UTF-16"] = save(folder, "utf16.json", whole.decode().encode("utf-16"))
    result["bytes"] = save(folder, "bytes.json", rng.bytes(4000))
    return result


def networks(folder: Path, rng: Rng) -> Cases:
    """Lists of networks for `evgp choose --networks`."""
    whole = '[[network]]\nname = "one"\ndepth = 1\n\n[[network]]\nname = "two"\ndepth = 2\n'
    result = numbered(folder, damaged(whole.encode(), rng, 8, 3), ".toml")
    odd = {
        "empty": "",
        "no networks": "[other]\n",
        "a number": "network = 7\n",
        "a list of numbers": "network = [1, 2]\n",
        "an empty list": "network = []\n",
        "deep": "network = " + "[" * 20_000 + "\n",
        "deep tables": "network = " + "{a=" * 5_000 + "\n",
        "deep keys": "a" + ".a" * 20_000 + " = 1\n",
        "depth of text": '[[network]]\ndepth = "two"\n',
        "depth of nothing": "[[network]]\ndepth = -3\n",
        "depth of half": "[[network]]\ndepth = 1.5\n",
        "depth of truth": "[[network]]\ndepth = true\n",
        "a date": "[[network]]\ndepth = 2026-11-17\n",
        "not a number": "[[network]]\nw_std = nan\n",
        "infinite": "[[network]]\nw_std = inf\n",
        "no such activation": '[[network]]\nactivation = "none"\n',
        "a width of nothing": "[[network]]\nwidth = 0\n",
        "unknown": "[[network]]\nlearning = 1\n",
        "names twice": '[[network]]\nname = "a"\n[[network]]\nname = "a"\ndepth = 3\n',
        "escapes in a name": '[[network]]\nname = "\\u001b[2J"\ndepth = 1\n',
        "a long name": '[[network]]\nname = "' + "n" * 100_000 + '"\n',
        "two megabytes": "# " + "x" * 2_000_000 + "\n" + whole,
        "keys twice": "[[network]]\ndepth = 1\ndepth = 2\n",
    }
    result |= {name: save(folder, f"{name}.toml", text) for name, text in odd.items()}
    result["latin-1"] = save(folder, "latin.toml", whole.replace("one", "é").encode("latin-1"))
    result["bytes"] = save(folder, "bytes.toml", rng.bytes(4000))
    result["nul"] = save(folder, "nul.toml", bytes(999))
    return result


class _Runs:
    """What a pickle must not be able to do."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.system, ("touch ran",)


def weights(folder: Path, rng: Rng) -> Cases:
    """Weights of a small `cnn` for `evgp pick --weights`, of both kinds."""
    module = cnn().build(SHAPE, generator=torch.Generator().manual_seed(0))
    good = module.state_dict()
    out = io.BytesIO()
    torch.save(good, out)
    old = io.BytesIO()
    torch.save(good, old, _use_new_zipfile_serialization=False)
    result = numbered(folder, damaged(out.getvalue(), rng, 8, 3), ".pt")
    for j, content in enumerate(damaged(old.getvalue(), rng, 8, 3)):
        result[f"old {j}"] = save(folder, f"old-{j}.pt", content)
    objects: dict[str, object] = {
        "code": _Runs(),
        "a number": 7,
        "a list": [torch.zeros(3)],
        "numbers": {"a": 7},
        "other names": {"a": torch.zeros(3)},
        "other shapes": {name: value[..., None] for name, value in good.items()},
        "not numbers": {name: value * float("nan") for name, value in good.items()},
        "a view of much": {"a": torch.zeros(1).expand(10**9, 10**3)},
        "sparse": {"a": torch.zeros(9, 9).to_sparse()},
        "complex": {name: value.to(torch.complex64) for name, value in good.items()},
    }
    for name, value in objects.items():
        torch.save(value, folder / f"{name}.pt")
        result[name] = folder / f"{name}.pt"
    result["a plain pickle"] = save(folder, "plain.pt", pickle.dumps(_Runs()))
    result["a deep pickle"] = save(folder, "deep.pt", b"\x80\x02" + b"(" * 100_000 + b".")
    result["text"] = save(folder, "text.pt", good_text())
    result["empty"] = save(folder, "empty.pt", b"")
    path = folder / "bomb.pt"
    with zipfile.ZipFile(io.BytesIO(out.getvalue())) as whole:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb:
            for info in whole.infolist():
                big = info.filename.endswith("/data/0")
                bomb.writestr(info.filename, bytes(10**9) if big else whole.read(info))
    result["a bomb"] = path
    return result | _safetensors(folder, rng, good)


def _safetensors(folder: Path, rng: Rng, good: dict[str, torch.Tensor]) -> Cases:
    from safetensors.torch import save as packed

    whole = packed({name: value.contiguous() for name, value in good.items()})
    entries = {}
    for j, content in enumerate(damaged(whole, rng, 6, 3)):
        entries[f"safe {j}"] = save(folder, f"safe-{j}.safetensors", content)
    headers: dict[str, object] = {
        "a list": [],
        "an unknown kind": {"a": {"dtype": "F7", "shape": [1], "data_offsets": [0, 4]}},
        "places outside": {"a": {"dtype": "F32", "shape": [9], "data_offsets": [0, 36]}},
        "places reversed": {"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}},
        "a huge shape": {"a": {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 4]}},
        "a negative shape": {"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}},
        "overlapping": {
            "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
            "b": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
        },
    }
    for name, header in headers.items():
        text = json.dumps(header).encode()
        data = struct.pack("<Q", len(text)) + text + bytes(4)
        entries[f"safe, {name}"] = save(folder, f"{name}.safetensors", data)
    entries["safe, empty"] = save(folder, "none.safetensors", b"")
    entries["safe, a header of all"] = save(folder, "all.safetensors", b"\xff" * 8 + whole[8:])
    entries["safe, deep"] = save(
        folder, "deep.safetensors", struct.pack("<Q", 9000) + b"[" * 9000 + bytes(8)
    )
    return entries


def campaigns(folder: Path, rng: Rng) -> Cases:
    """Campaigns that are damaged, or something else; `camp.evgp` is a good one next to its pool."""
    whole = (folder / "camp.evgp").read_bytes()
    result = numbered(folder, damaged(whole, rng, 16, 6), ".evgp")
    # The header of the file, where SQLite reads sizes and versions.
    for j, content in enumerate(damaged(whole[:100], rng, 8, 0)):
        result[f"head {j}"] = save(folder, f"head-{j}.evgp", content + whole[100:])
    result["empty"] = save(folder, "empty.evgp", b"")
    result["text"] = save(folder, "text.evgp", good_text())
    result["bytes"] = save(folder, "bytes.evgp", rng.bytes(20_000))
    result["the magic alone"] = save(folder, "magic.evgp", b"SQLite format 3\0")
    result["a hot journal"] = save(folder, "hot.evgp", whole)
    save(folder, "hot.evgp-journal", b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + rng.bytes(5000))
    other = folder / "other.evgp"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE event (number INTEGER)")
    connection.close()
    result["another database"] = other
    for name, change in _CHANGES.items():
        path = save(folder, f"{name}.evgp", whole)
        with edited(path) as connection:
            connection.executescript(change)
        result[name] = path
    return result


_CHANGES = {
    "a newer schema": "PRAGMA user_version=99",
    "an older schema": "PRAGMA user_version=0",
    "another program": "PRAGMA application_id=7",
    "a view": "CREATE VIEW v AS SELECT 1",
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON event BEGIN SELECT 1; END",
    "no events": "DELETE FROM event",
    "no events, and none counted": "DELETE FROM event; UPDATE head SET number=0, digest="
    + repr("0" * 64),
    "no head": "DELETE FROM head",
    "a head of text": "UPDATE head SET number='many', digest=7",
    "an event of bytes": "INSERT INTO event VALUES (99, x'ff', x'ff', x'ff', x'ff', x'ff')",
    "an endless view": "CREATE VIEW w AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 "
    "FROM c) SELECT x FROM c",
}


Body = dict[str, object]


def forged_campaigns(folder: Path, rng: Rng) -> Cases:
    """Campaigns whose digests are right and whose events are not: anybody can make them."""
    first = _events(folder / "camp.evgp")
    begun, picked = dict(first)["created"], dict(first)["picked"]
    settings = begun["settings"]
    assert isinstance(settings, dict)
    os.mkfifo(folder / "pipe.csv")
    changes: dict[str, Body] = {
        "a pool that is a pipe": {"pool": "pipe.csv"},
        "a pool that never ends": {"pool": "/dev/zero"},
        "a pool that is a folder": {"pool": "."},
        "a pool with a null": {"pool": "good\0.csv"},
        "a pool with escapes": {"pool": "\x1b[2J.csv"},
        "a pool of a long name": {"pool": "n" * 5000},
        "a pool that is a number": {"pool": 7},
        "no checksum": {"checksum": None},
        "many rows": {"rows": 10**12},
        "fewer rows": {"rows": 3},
        "negative rows": {"rows": -1},
        "rows of text": {"rows": "many"},
        "rows of truth": {"rows": True},
        "rows of a half": {"rows": 2.5},
        "another id": {"id": "kind"},
        "an id that is a list": {"id": ["a"]},
        "no settings": {"settings": {}},
        "settings of nothing": {"settings": None},
        "a strange network": {"settings": {**settings, "network": {"depth": -1}}},
        "an unknown network": {"settings": {**settings, "network": {"wide": 1}}},
        "a network of text": {"settings": {**settings, "network": "mlp"}},
        "a strange seed": {"settings": {**settings, "seed": "x"}},
        "classes of numbers": {"classes": [1, 2]},
        "classes of text": {"classes": "ab"},
        "an array elsewhere": {"array": "../../../etc/passwd"},
        "an array of a number": {"array": 7},
        "an array that is not there": {"array": "0" * 32 + ".npy"},
        "more than there is": {"more": 1},
    }
    result = {
        name: _forged(folder, name, [("created", {**begun, **change}), *first[1:]])
        for name, change in changes.items()
    }
    answer: Body = {"row": 1, "who": "me", "kind": "label", "value": 1.0}
    more: dict[str, tuple[str, Body]] = {
        "a pick outside": ("picked", {**picked, "rows": [0, 10**9]}),
        "a pick below": ("picked", {**picked, "rows": [-1]}),
        "a pick twice": ("picked", {**picked, "rows": [1, 1]}),
        "a pick of text": ("picked", {**picked, "rows": ["a"]}),
        "picks that are none": ("picked", {**picked, "rows": 7}),
        "gains of text": ("picked", {**picked, "gains": ["a"]}),
        "fewer gains": ("picked", {**picked, "gains": []}),
        "a start of text": ("picked", {**picked, "start": "a"}),
        "a network of a number": ("picked", {**picked, "network": 7}),
        "an answer outside": ("answered", {**answer, "row": 10**9}),
        "an answer below": ("answered", {**answer, "row": -3}),
        "an answer to text": ("answered", {**answer, "row": "a"}),
        "an answer of text": ("answered", {**answer, "value": "text"}),
        "an answer of nothing": ("answered", {**answer, "value": None}),
        "an answer of a list": ("answered", {**answer, "value": []}),
        "an answer without end": ("answered", {**answer, "value": 1e308}),
        "a strange kind": ("answered", {**answer, "kind": "other"}),
        "escapes in a name": ("answered", {**answer, "who": "\x1b[2J"}),
        "a name of a number": ("answered", {**answer, "who": 7}),
        "an undo of nothing": ("undone", {"of": 10**9, "who": "me"}),
        "an undo of a pick": ("undone", {"of": 2, "who": "me"}),
        "an undo of text": ("undone", {"of": "a", "who": "me"}),
        "begun twice": ("created", begun),
        "another event": ("other", {}),
        "an event without a body": ("answered", {}),
    }
    result |= {name: _forged(folder, name, [*first, event]) for name, event in more.items()}
    result["not begun"] = _forged(folder, "not begun", first[1:])
    return result


def _events(path: Path) -> list[tuple[str, Body]]:
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT name, body FROM event ORDER BY number").fetchall()
    connection.close()
    return [(name, json.loads(body)) for name, body in rows]


def _forged(folder: Path, name: str, events: list[tuple[str, Body]]) -> Path:
    path = save(folder, f"forged {name}.evgp", (folder / "camp.evgp").read_bytes())
    digest, at = "0" * 64, "2026-11-01T10:00:00.000+00:00"
    with edited(path) as connection:
        connection.execute("DELETE FROM event")
        for number, (kind, content) in enumerate(events, 1):
            body = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            key = "created" if number == 1 else f"key {number}"
            parts = (digest, str(number), key, at, kind, body)
            digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
            row = (number, key, at, kind, body, digest)
            connection.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)", row)
        connection.execute("UPDATE head SET number=?, digest=?", (len(events), digest))
    return path


def images(folder: Path, rng: Rng) -> Cases:
    """Folders of pictures, with something wrong in each."""
    entries = {}
    for kind in ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF"):
        place = _pictures(folder / f"damaged {kind}", kind, rng)
        whole = (place / f"0.{kind.lower()}").read_bytes()
        for j, data in enumerate(damaged(whole, rng, 5, 3)):
            save(place, f"damaged-{j}.{kind.lower()}", data)
        entries[f"damaged {kind}"] = place
    odd = _pictures(folder / "odd files", "PNG", rng)
    for name, content in {"empty.png": b"", "text.png": b"text", "table.csv": b"a\n1\n"}.items():
        save(odd, name, content)
    save(odd, "huge.png", _png(60_000, 60_000))
    save(odd, "long.png", _png(2**31 - 1, 1))
    os.mkfifo(odd / "pipe.png")
    (odd / "loop.png").symlink_to("loop.png")
    (odd / "zero.png").symlink_to("/dev/zero")
    (odd / "again").symlink_to(".")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(odd)  # the path of a socket must be short
        try:
            server.bind("socket.png")
        finally:
            os.chdir(here)
    entries["odd files"] = odd
    named = _pictures(folder / "odd names", "PNG", rng)
    picture = (named / "0.png").read_bytes()
    for name in (b"\xff\xfe.png", b"\x1b[2J.png", b"a\nb.png", b"-o.png", b"=1+2.png", b"n" * 250):
        Path(os.fsdecode(os.fsencode(named) + b"/" + name)).write_bytes(picture)
    entries["odd names"] = named
    entries["no pictures"] = folder / "no pictures"
    entries["no pictures"].mkdir()
    save(entries["no pictures"], "a.txt", "text")
    entries["nothing"] = folder / "nothing"
    entries["nothing"].mkdir()
    return entries


def _pictures(folder: Path, kind: str, rng: Rng) -> Path:
    folder.mkdir()
    for number in range(6):
        pixels = rng.integers(0, 256, size=(12, 12, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.{kind.lower()}", kind)
    return folder


def _png(width: int, height: int) -> bytes:
    """A picture that claims a size, and holds nothing."""
    import zlib

    def chunk(name: bytes, data: bytes) -> bytes:
        body = name + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(bytes(1000)))
        + chunk(b"IEND", b"")
    )


def not_files(folder: Path, suffix: str) -> Cases:
    """Things with the name of a file that are not files."""
    result = {
        "a pipe": folder / f"pipe{suffix}",
        "a socket": folder / f"s{suffix}",
        "a device": folder / f"zero{suffix}",
        "a directory": folder / f"directory{suffix}",
        "a link to itself": folder / f"loop{suffix}",
        "a link to nothing": folder / f"nowhere{suffix}",
        "a link to a pipe": folder / f"linked{suffix}",
        "below a file": folder / "file.csv" / f"x{suffix}",
        "a long name": folder / ("n" * 300 + suffix),
        "a long path": folder / "/".join(["d" * 200] * 25 + [f"x{suffix}"]),
        "the terminal": folder / f"tty{suffix}",
    }
    os.mkfifo(result["a pipe"])
    result["a device"].symlink_to("/dev/zero")
    result["the terminal"].symlink_to("/dev/tty")
    result["a directory"].mkdir()
    result["a link to itself"].symlink_to(result["a link to itself"].name)
    result["a link to nothing"].symlink_to("gone")
    result["a link to a pipe"].symlink_to(result["a pipe"].name)
    (folder / "file.csv").write_text(good_text())
    here = Path.cwd()
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(folder)
        try:
            server.bind(f"s{suffix}")
        finally:
            os.chdir(here)
    return result
