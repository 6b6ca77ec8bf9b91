"""Tests of how messages are compared, and that the file of messages is up to date."""

import ast
import re
from pathlib import Path

import pytest

from tests import messages
from tests.messages import BOOK, ROOT, Book

# `match=` is for what is not ours to word, and for what is random or repeated thousands of times.
MATCHES = {
    "tests/labelling/campaign/test_journal.py": 3,  # SQLite, and the triggers that it runs
    "tests/labelling/campaign/test_any_order.py": 1,  # hypothesis
    "tests/datasets/test_saved.py": 2,  # every length of a file; the test's own OSError
    "tests/labelling/label_studio/test_real.py": 2,  # only where Label Studio is installed
    "tests/labelling/label_studio/test_limits.py": 1,  # the test's own AssertionError
    "tests/pool/test_selection.py": 1,  # Python's TypeError
    "tests/test_reading.py": 1,  # Python's OSError
    "tests/labelling/web/test_limits.py": 1,  # the test's own AssertionError
}


def matches(path: Path) -> int:
    """Calls of pytest.raises and pytest.warns that pin words in a test."""
    calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    return sum(
        ast.unparse(call.func) in ("pytest.raises", "pytest.warns")
        and any(keyword.arg == "match" for keyword in call.keywords)
        for call in calls
    )


def test_words_are_pinned_in_one_file_only() -> None:
    files = (ROOT / "tests").rglob("*.py")
    actual = {path.relative_to(ROOT).as_posix(): matches(path) for path in files}
    assert {path: count for path, count in actual.items() if count} == MATCHES


def test_no_message_is_left_of_a_test_that_is_gone() -> None:
    gone = BOOK.stale(messages.read())
    assert not gone, f"run these files with --update-messages, which drops {sorted(gone)[:5]}"


def test_the_file_is_as_it_would_be_written(tmp_path, monkeypatch) -> None:
    whole = messages.FILE.read_text(encoding="utf-8")
    actual = messages.read()
    monkeypatch.setattr(messages, "FILE", tmp_path / "messages.txt")
    messages.write(actual)
    assert messages.FILE.read_text(encoding="utf-8") == whole


def test_nothing_of_this_machine_is_in_it() -> None:
    whole = messages.FILE.read_text(encoding="utf-8")
    assert str(ROOT) not in whole and str(Path.home()) not in whole
    assert not re.search(r"pytest-of|pytest-\d", whole)


@pytest.fixture
def book(monkeypatch, tmp_path) -> Book:
    """A book of its own, with a file of its own."""
    monkeypatch.setattr(messages, "FILE", tmp_path / "messages.txt")
    messages.write({"a.py::test": ["one", "two"], "b.py::test": ["three"]})
    result = Book(test="a.py::test", folders=BOOK.folders)
    monkeypatch.setattr(messages, "BOOK", result)
    return result


def test_the_same_messages_pass(book) -> None:
    for message in ("one", "one", "two", "one"):  # a loop may meet one again
        book.check(message)
    book.finish()


@pytest.mark.parametrize("said", [["One"], ["two", "one"], ["one", "two", "three"]])
def test_another_message_fails(book, said) -> None:
    with pytest.raises(pytest.fail.Exception) as caught:
        for message in said:
            book.check(message)
    assert messages.HINT in str(caught.value)


def test_a_message_that_is_no_longer_given_fails(book) -> None:
    book.check("one")
    with pytest.raises(pytest.fail.Exception) as caught:
        book.finish()
    assert messages.HINT in str(caught.value)


def test_another_class_fails(book) -> None:
    with pytest.raises(KeyError), messages.refused(TypeError):
        raise KeyError("one")
    with pytest.raises(pytest.fail.Exception), messages.refused(ValueError):
        pass
    with pytest.raises(pytest.fail.Exception), messages.refused(ArithmeticError):
        raise ZeroDivisionError("one")  # the file says nothing of a ZeroDivisionError


def test_two_lines_fail(book) -> None:
    book.update = True
    with pytest.raises(AssertionError), messages.refused(ValueError):
        raise ValueError("one\ntwo")


def test_an_update_takes_what_ran_and_leaves_the_rest(book, monkeypatch) -> None:
    monkeypatch.setattr(messages, "defined", lambda test: test != "b.py::test_gone")
    messages.write({**messages.read(), "b.py::test_gone": ["four"], "a.py::other": ["five"]})
    book.update = True
    book.check("One")
    book.save()
    kept = {"b.py::test": ["three"], "a.py::other": ["five"]}
    assert messages.read() == {"a.py::test": ["One", "two"], **kept}  # it did not come to its end
    book.finish()
    book.save()
    assert messages.read() == {"a.py::test": ["One"], **kept}
    book.take({"a.py::other": ["six"]}, ["a.py::other", "b.py::test"], [])
    book.save()
    assert messages.read() == {"a.py::test": ["One"], "a.py::other": ["six"]}


def test_cases_that_are_gone_are_dropped(book, monkeypatch) -> None:
    monkeypatch.setattr(messages, "defined", lambda test: True)
    book.collected = {"a.py::test[x]"}
    actual = {"a.py::test[x]": ["one"], "a.py::test[y]": ["two"], "b.py::test[y]": ["three"]}
    assert book.stale(actual) == {"a.py::test[y]"}


def test_what_differs_from_run_to_run_is_replaced(book, tmp_path) -> None:
    for text, plain in {
        f"{tmp_path / 'a.csv'}: bad": "<tmp>/a.csv: bad",
        f"{tmp_path}: bad": "<tmp>: bad",
        f"{ROOT / 'README.md'}": "<root>/README.md",
        "http://127.0.0.1:4711/a": "http://127.0.0.1:<port>/a",
        "object at 0x7f0123456789": "object at <address>",
        "held by process 4711": "held by process <pid>",
        "a\x1bb\nc": r"a\x1bb\nc",
    }.items():
        assert book.plain(text) == plain
    assert messages._hidden("took 12 s", r"\d+") == "took <hidden> s"
    with pytest.raises(AssertionError):
        messages._hidden("took long", r"\d+")


def test_every_message_is_a_sentence_of_its_own() -> None:
    """The same words twice in one test are one message; the file holds each once a test."""
    actual = messages.read()
    twice = [test for test, message in actual.items() if len({*message}) < len(message)]
    assert not twice
