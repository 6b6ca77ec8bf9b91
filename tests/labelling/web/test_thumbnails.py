"""Images on the page: however large they are, other requests do not wait for them."""

import io
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from evgp.datasets import Images, images, read_images
from evgp.labelling.campaign import Campaign
from evgp.labelling.web import LabellingService, Sessions, make_app
from evgp.labelling.web.thumbnails import Thumbnails
from tests.labelling.web.conftest import person_of, running
from tests.serving import SOON, ask, head, served, watched


@pytest.fixture
def large(tmp_path):
    """Four pictures of 120 x 90 pixels."""
    folder = tmp_path / "large"
    folder.mkdir()
    for i in range(4):
        Image.effect_noise((120, 90), 40 + i).convert("RGB").save(folder / f"{i}.png")
    return folder


class Counted(Images):
    """Images that note how often each was decoded, and how many were at once."""

    def thumbnail(self, row, side):
        result = self.__dict__.setdefault("made", [])
        now = self.__dict__.setdefault("now", [])
        now.append(row)
        result.append((row, len(now)))
        time.sleep(0.05)
        now.remove(row)
        return super().thumbnail(row, side)


def counted(folder):
    return Counted(**vars(read_images(folder)))


def test_twelve_requests_for_one_picture_decode_it_once(large) -> None:
    pictures = counted(large)
    thumbnails = Thumbnails(pictures)
    with ThreadPoolExecutor(12) as pool:
        actual = list(pool.map(lambda _: thumbnails.of(2).result(), range(12)))
    assert pictures.made == [(2, 1)] and len({item.data for item in actual}) == 1
    assert Image.open(io.BytesIO(actual[0].data)).size == (120, 90)
    thumbnails.stop()


def test_one_picture_is_decoded_at_a_time(large) -> None:
    pictures = counted(large)
    thumbnails = Thumbnails(pictures)
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda i: thumbnails.of(i % 4).result(), range(24)))
    assert sorted(row for row, _ in pictures.made) == [0, 1, 2, 3]
    assert {at_once for _, at_once in pictures.made} == {1}
    thumbnails.stop()


def test_a_file_that_changes_is_read_again_and_one_that_is_gone_is_small(large) -> None:
    pictures = counted(large)
    thumbnails = Thumbnails(pictures)
    before = thumbnails.of(1).result().data
    Image.new("RGB", (130, 90), "red").save(large / "1.png")
    after = Image.open(io.BytesIO(thumbnails.of(1).result().data))
    assert after.size == (130, 90) and thumbnails.of(1).result().data != before
    (large / "1.png").unlink()
    assert Image.open(io.BytesIO(thumbnails.of(1).result().data)).size == (32, 24)
    assert len(pictures.made) == 3
    thumbnails.stop()


def test_the_cache_of_thumbnails_is_bounded(large) -> None:
    pictures = counted(large)
    size = len(Thumbnails(pictures).of(0).result().data)
    thumbnails = Thumbnails(pictures, max_bytes=int(2.5 * size))
    for row in (0, 1, 0, 2, 0, 1):
        thumbnails.of(row).result()
    assert (
        thumbnails._bytes
        == sum(len(item.data) for item in thumbnails._cache.values())
        <= 2.5 * size
    )
    # 0 was asked for again and again, 1 gave way to 2.
    assert [row for row, _ in pictures.made[1:]] == [0, 1, 2, 1]
    none = Thumbnails(pictures, max_bytes=10)
    assert none.of(0).result().data and not none._cache
    none.stop()
    thumbnails.stop()


def test_a_failure_is_forgotten(large, monkeypatch) -> None:
    thumbnails = Thumbnails(read_images(large))
    with monkeypatch.context() as patched:
        patched.setattr("evgp.labelling.web.thumbnails.without_metadata", lambda image: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            thumbnails.of(0).result()
    assert thumbnails.of(0).result().data
    thumbnails.stop()


def test_others_are_answered_while_a_picture_is_decoded(large, tmp_path, monkeypatch) -> None:
    birds = Campaign.create(tmp_path / "birds", large, classes=["finch", "other"])
    gate, decoded, read = threading.Event(), [], images.read_thumbnail

    def slowly(path, side):
        decoded.append(path.name)
        gate.wait(20)
        return read(path, side)

    monkeypatch.setattr(images, "read_thumbnail", slowly)
    app = make_app(LabellingService(birds), Sessions("a secret"))
    ann = person_of(app)
    cookie = "Cookie: " + "; ".join(f"{name}={value}" for name, value in ann.cookies.items())
    with served(app) as port, ThreadPoolExecutor(60) as pool:
        asked = [
            pool.submit(ask, port, head("GET", f"/api/images/{i % 2}", cookie)) for i in range(60)
        ]
        with watched(port, "/") as took:
            time.sleep(1)
            assert ask(port, head("GET", "/api/progress", cookie))[0] == 200
        assert not any(item.done() for item in asked)
        gate.set()
        actual = [item.result() for item in asked]
    assert [item[0] for item in actual] == [200] * 60 and sorted(decoded) == ["0.png", "1.png"]
    assert len(took) > 5 and max(took) < SOON


def test_a_picture_that_became_too_large_says_so(large, tmp_path, monkeypatch) -> None:
    (large / "3.png").unlink()  # as many are handed out at once as are left
    birds = Campaign.create(tmp_path / "birds", large, classes=["finch", "other"])
    birds.next(3)
    monkeypatch.setattr(images, "MOST_PIXELS", 200 * 200)
    Image.new("RGB", (201, 200)).save(large / "2.png")
    with running(LabellingService(birds, k=3)) as app:
        ann = person_of(app)
        items = ann.post("/api/next", json={"count": 3}).json()["items"]
        assert Image.open(io.BytesIO(ann.get("/api/images/2").content)).size == (32, 24)
    message = {item["name"]: [cell["text"] for cell in item["cells"]] for item in items}
    assert message.pop("2.png") == [
        "The file can no longer be shown (of more than 100 megapixels); this is the small copy "
        "that picks are made from."
    ]
    assert set(map(tuple, message.values())) == {()}


def test_threads_put_warnings_back_as_they_were() -> None:
    before = list(warnings.filters)

    def inside(_):
        for _ in range(200):
            with images.quiet:
                assert warnings.filters[0][0] == "ignore"
                np.zeros(3).sum()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(inside, range(8)))
    assert list(warnings.filters) == before
