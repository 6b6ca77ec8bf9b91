"""Labelling in real browsers: by keyboard, two people, and a killed server."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import pytest

from evgp.labelling.campaign import Campaign
from evgp.labelling.campaign.events import Answered
from evgp.labelling.web import LabellingService, Sessions, make_app
from tests import serving


@contextmanager
def served(campaign, port=0, secret="a secret for tests", **more):
    """A server in a thread of this process."""
    with served_app(LabellingService(campaign, **more), port, secret) as address:
        yield address


@contextmanager
def served_app(service, port=0, secret="a secret for tests"):
    with serving.served(make_app(service, Sessions(secret)), port) as at:
        yield f"http://127.0.0.1:{at}"


class Labeller:
    """Somebody at a page, who notes every answer they gave and everything that went wrong."""

    def __init__(self, browser, address, name, **more) -> None:
        self.wrong: list[str] = []
        self.gave: dict[int, str] = {}
        self.page = browser.new_context(**more).new_page()
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", self.asked)
        self.page.on("request", lambda asked: self.asks(asked.url, address))
        self.page.goto(address)
        self.enters(name)

    def enters(self, name) -> None:
        self.page.fill("#name", name)
        self.page.press("#name", "Enter")
        self.ready()

    def asked(self, dialog) -> None:
        if dialog.type != "beforeunload":  # "leave, though not all is saved?"
            self.wrong.append(f"{dialog.type}: {dialog.message}")
        dialog.accept()

    def asks(self, url, address) -> None:
        if not url.startswith(address):
            self.wrong.append(f"asked for {url}")

    def ready(self) -> None:
        self.page.wait_for_selector("#card:not([hidden])", timeout=60_000)

    def row(self) -> int:
        return int(self.page.get_attribute("body", "data-row"))

    def says(self, key, value) -> int:
        """Press a key; the next row is there at once, or the page says that it waits."""
        self.ready()
        row = self.row()
        self.page.keyboard.press(key)
        self.page.wait_for_selector(
            f'body:not([data-row="{row}"]), #card[hidden]', state="attached", timeout=30_000
        )
        self.gave[row] = value
        return row

    def holds(self, count) -> None:
        self.page.wait_for_selector(f'body[data-held="{count}"]', state="attached", timeout=60_000)

    def saved(self, count) -> None:
        self.page.wait_for_selector(f'body[data-saved="{count}"]', state="attached", timeout=60_000)


def answers_in(path):
    campaign = Campaign.open(path)
    actual = [event.event for event in campaign.log() if isinstance(event.event, Answered)]
    campaign.close()
    return actual


def test_labels_by_keyboard_and_hostile_rows_do_nothing(spam, browsers) -> None:
    spam.next(60)  # every row, the hostile ones too
    with served(spam, k=60) as address, browsers() as (browser,):
        ann, bob = Labeller(browser, address, "ann"), Labeller(browser, address, "<b>bob</b>")
        seen = ""
        for i in range(28):
            person = ann if i % 2 else bob
            person.says("12"[i % 3 % 2], ["spam", "ham"][i % 3 % 2])
            seen += person.page.inner_text("#cells")
        ann.saved(14)
        bob.saved(14)
        skipped, unsure = ann.says("s", "skip"), ann.says("c", "unsure")
        ann.saved(16)
        ann.page.keyboard.press("u")
        ann.page.wait_for_selector(f'body[data-row="{unsure}"]', state="attached")
        assert "Undone" in ann.page.inner_text("#status")
        ann.says("2", "ham")
        ann.saved(17)
        bob.page.click("nav >> text=Overview")
        bob.page.wait_for_selector("svg.map path.c0", state="attached")
        assert "<b>bob</b>" in bob.page.inner_text(".people")
        assert "<script>" in seen or "onerror" in seen  # as text
        for person in (ann, bob):
            assert "ran" not in person.page.title() and not person.wrong
    answers = answers_in(spam.path)
    labels = {answer.row: answer.value for answer in answers if answer.kind == "label"}
    gave = {**ann.gave, **bob.gave}
    assert gave.pop(skipped) == "skip" and labels == gave
    assert len(answers) == 31 and len(gave) == 29


class Server:
    """The command in a process of its own, at one port, to be killed."""

    def __init__(self, name) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.name, self.address = str(name), f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "evgp", "campaign", "serve", self.name, "--port", str(self.port),
             "-k", "20"],
            stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        until = time.monotonic() + 90
        while time.monotonic() < until:
            try:
                urllib.request.urlopen(self.address, timeout=5).close()
                return
            except OSError:
                assert self.process.poll() is None, self.process.stderr.read()
                time.sleep(0.2)
        raise AssertionError("the server did not start")

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *error) -> None:
        if self.process.poll() is None:
            self.kill()

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stderr.close()

    def stop(self) -> str:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(20)
        message = self.process.stderr.read()
        self.process.stderr.close()
        return message


def test_fifty_items_two_browsers_and_a_kill(spam, browsers) -> None:
    spam.close()
    with Server(spam.path) as server, browsers(2) as both:
        people = [
            Labeller(browser, server.address, name)
            for browser, name in zip(both, ("ann", "bob"), strict=True)
        ]
        for i in range(50):
            if i == 20:  # enough to continue without a server
                for person in people:
                    person.holds(3)
            if i == 21:
                server.kill()  # what is on its way, is on its way
            if i == 25:
                for person in people:
                    reported = person.page.locator(
                        "#alert:not([hidden])", has_text="kept in this tab"
                    )
                    reported.wait_for(timeout=30_000)
                server.start()
            people[i % 2].says("12"[i % 2], ["spam", "ham"][i % 2])
        for person in people:
            person.saved(25)
            assert person.page.is_hidden("#alert") and not person.wrong
        message = server.stop()
    assert "Traceback" not in message and "all acknowledged answers are in" in message
    answers = answers_in(spam.path)
    assert len(answers) == 50 == len({answer.row for answer in answers})
    gave = {"ann": people[0].gave, "bob": people[1].gave}
    for name, rows in gave.items():
        assert {answer.row: answer.value for answer in answers if answer.who == name} == rows


def held(service):
    """The rows that are on screens or ahead."""
    return service.leases.held()


def soon(true):
    """Wait until something is true."""
    until = time.monotonic() + 10
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_closed_page_releases_its_rows(spam, browsers) -> None:
    picked = [item.row for item in spam.next(60)]
    service = LabellingService(spam, k=60)
    with served_app(service) as address, browsers() as (browser,):
        ann = Labeller(browser, address, "ann")
        soon(lambda: held(service) == set(picked[:3]))  # the one that is shown, and two ahead
        for _ in range(4):
            ann.says("1", "spam")
        ann.saved(4)
        soon(lambda: held(service) == set(picked[4:7]))
        bob = Labeller(browser, address, "bob")
        assert bob.row() == picked[7]
        ann.page.goto("about:blank")
        soon(lambda: held(service) == set(picked[7:10]))
        bob.page.close(run_before_unload=True)
        soon(lambda: not held(service))
        ann.page.goto(address)
        ann.ready()
        assert ann.row() == picked[4] and not ann.wrong


def test_a_page_from_the_back_cache_requests_rows_again(spam, browsers) -> None:
    """As browsers keep a page that was left, to show it again as it was."""
    picked = [item.row for item in spam.next(60)]
    service = LabellingService(spam, k=60)
    with served_app(service) as address, browsers() as (browser,):
        ann = Labeller(browser, address, "ann")
        ann.says("1", "spam")
        ann.saved(1)
        ann.page.evaluate(
            "window.dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))"
        )
        soon(lambda: not held(service))
        bob = Labeller(browser, address, "bob")
        assert bob.row() == picked[1]
        ann.page.evaluate(
            "window.dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))"
        )
        ann.ready()
        soon(lambda: ann.row() == picked[4])
        ann.says("2", "ham")
        ann.saved(2)
        ann.page.keyboard.press("u")
        ann.page.wait_for_selector("text=Undone")
        assert ann.row() == picked[4] and not ann.wrong and not bob.wrong
    assert [(item.row, item.value) for item in answers_in(spam.path)][:1] == [(picked[0], "spam")]
    assert Campaign.open(spam.path).state.labels == {picked[0]: "spam"}


def test_a_response_that_is_cut_short_counts_as_none(spam, browsers) -> None:
    with served(spam, k=20) as address, browsers() as (browser,):
        ann = Labeller(browser, address, "ann")
        ann.page.route(
            "**/api/answers", lambda route: route.fulfill(status=200, body='{"rep'), times=1
        )
        ann.says("1", "spam")
        ann.page.wait_for_selector("#alert:not([hidden])")
        ann.says("2", "ham")
        ann.saved(2)
        assert ann.page.is_hidden("#alert") and not ann.wrong
    assert {item.row: item.value for item in answers_in(spam.path)} == ann.gave


@pytest.mark.slow
def test_a_reload_keeps_what_was_not_acknowledged(spam, browsers) -> None:
    spam.close()
    with Server(spam.path) as server, browsers() as (browser,):
        ann = Labeller(browser, server.address, "ann")
        ann.says("1", "spam")
        ann.saved(1)
        server.kill()
        ann.says("2", "ham")
        ann.page.wait_for_selector("#alert:not([hidden])")
        # The answer must outlive the reload: it is not to be sent before.
        ann.page.route("**/api/answers", lambda route: route.abort())
        server.start()
        ann.page.unroute("**/api/answers")
        ann.page.reload()
        ann.ready()
        ann.says("1", "spam")
        soon(lambda: len(answers_in(spam.path)) == 3)
        server.stop()
    assert {item.row: item.value for item in answers_in(spam.path)} == ann.gave


@pytest.mark.parametrize("secret", ["a secret for tests", "a secret of its own"])
def test_answers_never_reach_another_campaign_at_the_same_address(
    spam, mails, secret, browsers
) -> None:
    """With one secret for both, the page stays open; otherwise it asks again for a name."""
    other = Campaign.create(
        spam.path.with_name("other"), mails, id="key", classes=["spam", "ham"], drop=["subject"]
    )
    for item in (spam, other):
        item.next(12)
    with browsers() as (browser,):
        with served(spam, k=4) as address:
            ann, port = Labeller(browser, address, "ann"), int(address.rpartition(":")[2])
        for key in (0, 0, 1):
            ann.says("12"[key], ["spam", "ham"][key])
        ann.page.wait_for_selector("text=3 answers are kept in this tab")
        with served(other, port, secret, k=4):
            if secret == "a secret for tests":
                ann.page.wait_for_selector(
                    "text=now serves another campaign. 3 answers are kept in this tab"
                )
            else:
                ann.enters("ann")
                ann.page.wait_for_selector("text=3 unsent answers for another campaign")
            ann.page.wait_for_timeout(500)
        with served(Campaign.open(spam.path), port, k=4):
            if secret != "a secret for tests":
                ann.page.goto(address)
            ann.saved(3)
            assert ann.page.is_hidden("#alert") and not ann.wrong
    assert answers_in(other.path) == []
    assert {item.row: item.value for item in answers_in(spam.path)} == ann.gave


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_on_a_phone(photos, tmp_path, scheme, browsers) -> None:
    birds = Campaign.create(tmp_path / "birds", photos, classes=["finch", "other"])
    birds.next(8)
    phone = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}
    with served(birds, k=8) as address, browsers() as (browser,):
        ann = Labeller(browser, address, "ann", color_scheme=scheme, **phone)
        for _ in range(8):
            ann.ready()
            row = ann.row()
            ann.page.wait_for_function(
                "() => { const i = document.getElementById('image'); return i.complete && "
                "i.naturalWidth === 60; }"
            )
            ann.page.tap("#zoom")
            assert "twice" in ann.page.get_attribute("#view", "class")
            assert ann.page.evaluate("document.documentElement.scrollWidth") <= 390
            ann.page.tap("button.class >> nth=0")
            ann.gave[row] = "finch"
            ann.page.wait_for_selector(
                f'body:not([data-row="{row}"]), #card[hidden]', state="attached"
            )
        ann.saved(8)
        ann.page.wait_for_selector("text=All rows are answered")
        ann.page.goto(f"{address}/overview")
        assert ann.page.evaluate("document.documentElement.scrollWidth") <= 390
        assert not ann.wrong
    assert {item.row: item.value for item in answers_in(birds.path)} == ann.gave


AMBIGUOUS = "is ambiguous"
WRONG = {"12x": "Enter a number, for example 2.5."} | dict.fromkeys(
    ["1,500", "-1,500e3", "0,125", "1,500,000", "1.500,25", "1,500.25", "1.500.000", "1,2,3"],
    AMBIGUOUS,
)


@pytest.mark.slow
def test_numbers_by_keyboard(mails, tmp_path, browsers) -> None:
    campaign = Campaign.create(tmp_path / "n", mails, id="key", number=True, drop=["subject"])
    campaign.next(8)
    with served(campaign, k=8) as address, browsers() as (browser,):
        ann = Labeller(browser, address, "ann")
        for i, text in enumerate(("2.5", "-3", "1e-2", ",5", "1,5", "1,5000"), 1):
            ann.ready()
            row = ann.row()
            ann.page.keyboard.type(text)
            ann.page.keyboard.press("Enter")
            ann.saved(i)
            ann.gave[row] = float(text.replace(",", "."))
        for text, words in WRONG.items():
            ann.page.fill("#number", text)
            ann.page.keyboard.press("Enter")
            assert words in ann.page.inner_text("#alert")
            assert (f"{text} is ambiguous" in ann.page.inner_text("#alert")) == (words == AMBIGUOUS)
        ann.page.keyboard.press("u")
        ann.page.wait_for_selector("text=Undone")
        ann.gave.popitem()
        assert not ann.wrong
    record = Campaign.open(campaign.path)
    assert record.state.labels == ann.gave
    record.close()
