"""Images are part of the page, next to their rows; a page without images has no trace of them."""

import base64
import colorsys
import dataclasses
import json
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from evgp.datasets import pictures_of, read_images
from evgp.errors import PoolError
from evgp.pool import Selection
from evgp.report import pictures as picture_tools
from evgp.report import render, summarise
from tests.messages import refused
from tests.report.test_render import HOSTILE, Page, data_of


class Painted:
    """Row j of n in a colour of its own, as large as it is asked to be."""

    def __init__(self, n: int, width: int = 400, height: int = 300) -> None:
        self.n, self.size = n, (width, height)
        self.asked: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return self.n

    def colour(self, row: int) -> tuple[int, ...]:
        return tuple(round(255 * part) for part in colorsys.hsv_to_rgb(row / self.n, 1, 1))

    def thumbnail(self, row: int, side: int) -> Image.Image:
        self.asked.append((row, side))
        image = Image.new("RGB", self.size, self.colour(row))
        image.thumbnail((side, side))
        return image


def opened(uri: str) -> Image.Image:
    head, data = uri.split(",", 1)
    assert head in {f"data:image/{kind};base64" for kind in ("webp", "jpeg", "png")}
    return Image.open(BytesIO(base64.b64decode(data, validate=True))).convert("RGB")


def shows(image: Image.Image, colour: tuple[int, ...], at: tuple[int, int] = (1, 1)) -> bool:
    return bool((abs(np.array(image.getpixel(at)) - colour) <= 8).all())


def test_each_pick_has_its_own_picture(selection, x):
    painted = Painted(60)
    summary = summarise(selection, x=x, pictures=painted)
    for pick in summary.picks:
        large, tile = opened(pick.picture.large), opened(pick.picture.tile)
        assert large.size == (pick.picture.width, pick.picture.height) == (320, 240)
        assert tile.size == (48, 36)
        assert shows(large, painted.colour(pick.row))
        assert shows(tile, painted.colour(pick.row))
        assert [row for row, _ in painted.asked].count(pick.row) == 1


def test_the_sheet_holds_the_points_of_the_map_in_their_order(selection, x):
    painted = Painted(60)
    ids = [f"{'folder/' * 20}{row}.png" for row in range(60)]
    sheet = summarise(selection, x=x, ids=ids, pictures=painted).scatter.sheet
    image = opened(sheet.image)
    rows = sorted(set(range(60)) - set(selection.indices.tolist()))
    assert len(sheet.names) == len(sheet.sizes) == len(rows)
    assert set(sheet.sizes) == {(64, 48)}
    for j, row in enumerate(rows):
        left, top = sheet.cell * (j % sheet.columns), sheet.cell * (j // sheet.columns)
        assert shows(image, painted.colour(row), (left + 32, top + 24))
        assert sheet.names[j].endswith(f"/{row}.png")
        assert len(sheet.names[j]) == 60


@pytest.mark.parametrize(("k", "side"), [(60, 320), (61, 192), (250, 192), (251, 112), (1001, 80)])
def test_many_picks_have_smaller_pictures(k: int, side: int):
    assert picture_tools.picture(Painted(3), 1, k).width == side


def test_small_images_are_never_enlarged_and_keep_every_pixel(selection):
    x = np.random.default_rng(0).integers(0, 255, (60, 1, 8, 8), np.uint8)
    summary = summarise(selection, x=x.reshape(60, -1).astype(float), pictures=pictures_of(x))
    pick, sheet = summary.picks[0], summary.scatter.sheet
    assert (pick.picture.width, sheet.cell) == (8, 8)
    image, first = opened(sheet.image), min(set(range(60)) - set(selection.indices.tolist()))
    assert (np.asarray(image)[:8, :8, 0] == x[first, 0]).all()


def test_a_summary_with_pictures_is_plain_data(selection, x):
    summary = summarise(selection, x=x, pictures=Painted(60))
    plain = json.loads(json.dumps(summary.as_dict(), allow_nan=False))
    assert plain["picks"][0]["picture"]["large"] == summary.picks[0].picture.large
    assert summary == summarise(selection, x=x, pictures=Painted(60))


def test_pictures_run_over_the_whole_pool(selection, x):
    with refused(PoolError):
        summarise(selection, x=x, pictures=Painted(59))


def test_the_location_in_an_image_file_is_not_shown(tmp_path, selection, x):
    exif = Image.Exif()
    exif[0x010E] = "at home"
    for row in range(60):
        image = Image.new("RGB", (200, 200), (row, 0, 0))
        image.save(
            tmp_path / f"{row:02d}.jpg", exif=exif, icc_profile=b"profile", comment="at home"
        )
    page = render(summarise(selection, x=x, pictures=read_images(tmp_path)))
    sources = [attributes["src"] for tag, attributes in Page(page).tags if tag == "img"]
    data = [base64.b64decode(source.split(",")[1]) for source in sources]
    assert data
    assert not [part for part in data if b"at home" in part or b"profile" in part]


def test_notes_of_an_image_are_dropped_whatever_a_writer_would_copy():
    image = Image.new("RGB", (8, 8))
    image.info = {"icc_profile": b"profile", "comment": b"at home"}
    assert picture_tools.without_metadata(image).info == {}
    assert image.info


def test_without_webp_there_is_jpeg_and_png(monkeypatch):
    monkeypatch.setattr(picture_tools, "_has_webp", lambda: False)
    noise = np.random.default_rng(0).integers(0, 255, (100, 100, 3), np.uint8)
    assert picture_tools.uri(Image.fromarray(noise), quality=80).startswith("data:image/jpeg;")
    assert picture_tools.uri(Image.new("L", (8, 8)), quality=80).startswith("data:image/png;")


@pytest.fixture
def page(selection, x) -> str:
    ids = [f"photo {row}.jpg" for row in range(60)]
    return render(summarise(selection, x=x, ids=ids, pictures=Painted(60)))


def test_every_picture_is_in_the_page_and_says_what_it_is(page, selection):
    walked = Page(page)
    images = [attributes for tag, attributes in walked.tags if tag == "img"]
    named = [f"photo {row}.jpg" for row in selection.indices]
    assert [image["alt"] for image in images] == [*named, named[0], *named, ""]
    assert all(image["src"].startswith("data:image/") for image in images)
    assert images[8]["id"] == "which-picture"
    assert images[8]["src"] == images[0]["src"]
    assert "Label these 8 images first" in walked.prose
    assert "Of the 60 images" in walked.prose
    assert data_of(page)["sheet"]["sizes"] == [[64, 48]]
    assert len(data_of(page)["sheet"]["names"]) == 52


def test_the_page_still_sends_no_request(page):
    walked = Page(page)
    assert "://" not in page
    for _, attributes in walked.tags:
        assert not {"href", "srcset", "xlink:href", "style", "action"} & attributes.keys()
        assert not [key for key in attributes if key.startswith("on")]
    policy = next(
        attributes["content"] for _, attributes in walked.tags if "http-equiv" in attributes
    )
    assert "img-src data:;" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_tiles_of_many_shapes_say_their_sizes(selection, x):
    class Odd(Painted):
        def thumbnail(self, row: int, side: int) -> Image.Image:
            self.size = (400, 40) if row % 2 else (40, 400)
            return super().thumbnail(row, side)

    sheet = data_of(render(summarise(selection, x=x, pictures=Odd(60))))["sheet"]
    assert len(sheet["sizes"]) == 52
    assert {tuple(size) for size in sheet["sizes"]} == {(64, 6), (6, 64)}


def test_hostile_names_are_text_in_a_page_with_pictures(selection, x):
    text = render(summarise(selection, x=x, ids=[HOSTILE] * 60, pictures=Painted(60)))
    walked = Page(text)
    assert len([tag for tag, _ in walked.tags if tag == "script"]) == 2
    images = [attributes for tag, attributes in walked.tags if tag == "img"]
    assert len(images) == 8 + 1 + 8 + 1
    assert images[0]["alt"] == HOSTILE
    assert all(image["src"].startswith("data:") for image in images)
    assert data_of(text)["sheet"]["names"][0] == HOSTILE


def test_without_pictures_there_is_no_trace_of_them(selection, x):
    page = render(summarise(selection, x=x))
    walked = Page(page)
    policy = next(
        attributes["content"] for _, attributes in walked.tags if "http-equiv" in attributes
    )
    assert "img-src" not in policy
    assert "image" not in walked.prose
    assert "sheet" not in data_of(page)
    assert {"img", "canvas"}.isdisjoint(tag for tag, _ in walked.tags)
    assert {"gallery", "frame", "sheet"}.isdisjoint(walked.ids)
    assert ".gallery" not in walked.inside("style")[0]
    assert "const pictures" not in walked.inside("script")[-1]


@pytest.mark.parametrize("k", [1, 10, 30, 59, 60])
def test_any_number_of_pictures_has_a_page(k: int, x):
    chosen = Selection(np.arange(k), np.ones(k))
    walked = Page(render(summarise(chosen, x=x, pictures=Painted(60))))
    assert len([tag for tag, _ in walked.tags if tag == "img"]) == 2 * k + 1 + (k < 60)


def test_a_page_without_every_picture_has_none(selection, x):
    summary = summarise(selection, x=x, pictures=Painted(60))
    bare = dataclasses.replace(summary.picks[0], picture=None)
    none = Selection(np.empty(0, dtype=np.int64), np.empty(0))
    for reported in (
        dataclasses.replace(summary, picks=(bare, *summary.picks[1:])),
        summarise(none, x=x, pictures=Painted(60)),
    ):
        page = render(reported)
        assert "img" not in {tag for tag, _ in Page(page).tags}
        assert "img-src" not in page


def test_a_page_of_many_pictures_stays_light():
    n, k = 6_000, 500
    generator = np.random.default_rng(0)
    coarse = generator.integers(0, 255, (n, 3, 8, 8), np.uint8)
    x = coarse.repeat(4, axis=2).repeat(4, axis=3)
    chosen = Selection(generator.permutation(n)[:k], np.ones(k))
    ids = [f"folder/of/images/{row:06d}.png" for row in range(n)]
    flat = coarse.reshape(n, -1).astype(float)
    page = render(summarise(chosen, x=flat, ids=ids, pictures=pictures_of(x)))
    assert len(page.encode()) < 6_000_000
