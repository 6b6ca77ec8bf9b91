"""Compare every message with `messages.txt`, the one file that holds them all.

A test names the class, and may check its fields; the words are in the file:

    with refused(PoolError) as caught:
        evgp.pick(x, k=0)
    assert caught.value.argument == "k"

`pytest --update-messages` writes the messages of the tests that ran, and leaves the others alone.
"""

import re
import tempfile
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).with_name("messages.txt")
ROOT = FILE.parents[1]
HINT = "if the new words are meant, run this test with --update-messages and read the diff"
# Parts that differ from run to run, and their placeholders.
VARYING = [
    (re.compile(r"\b(127\.0\.0\.1|localhost)(:| port )\d+"), r"\1\2<port>"),
    (re.compile(r"\b0x[0-9a-f]{6,}"), "<address>"),
    (re.compile(r"\b(process|pid) \d+"), r"\1 <pid>"),
    (re.compile(r"\b[0-9a-f]{32}\b|\b[0-9a-f]{12}(?=\.)"), "<hash>"),
    (re.compile(r"[\d.,]+ [kMGT]?B (of memory are free|are free on)"), r"<free> \1"),
    (re.compile(r"[\d,]+ (bytes (would )?unpack)"), r"<packed> \1"),
    # Features on the disk take memory for each thread.
    (re.compile(r"(on the disk, which takes )[\d.]+ [kMGT]?B"), r"\1<memory>"),
    (re.compile(r"(allow (?:--memory |memory=))'[\d.]+ [kMGT]?B'"), r"\1<memory>"),
]
Messages = dict[str, list[str]]  # by the id of a test


def read() -> Messages:
    """The messages of each test: a line with the file, indented the test, more so its messages."""
    actual: Messages = {}
    file = test = ""
    for line in FILE.read_text(encoding="utf-8").split("\n") if FILE.exists() else ():
        if line.startswith("    "):
            actual[f"{file}::{test}"].append(line[4:])
        elif line.startswith("  "):
            test = line[2:]
            actual[f"{file}::{test}"] = []
        elif line:
            file = line
    return actual


def write(messages: Messages) -> None:
    """All of them, sorted, so that a diff shows what has changed and nothing else."""
    lines: list[str] = []
    before = ""
    for key in sorted(key for key, message in messages.items() if message):
        file, _, test = key.partition("::")
        lines += [file] if file != before else []
        lines += [f"  {test}", *(f"    {message}" for message in messages[key])]
        before = file
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


@dataclass
class Book:
    """What the snapshot holds, and what the tests of this session said."""

    update: bool = False
    expected: Messages = field(default_factory=read)
    said: Messages = field(default_factory=dict)
    finished: list[str] = field(default_factory=list)
    collected: set[str] = field(default_factory=set)
    folders: list[tuple[re.Pattern[str], str]] = field(default_factory=list)
    test: str | None = None

    def check(self, message: str) -> None:
        """Compare the next new message of the test that runs with the snapshot, or take it."""
        assert self.test is not None, "messages are compared while a test runs"
        message = self.plain(message)
        text = self.said.setdefault(self.test, [])
        if message in text:  # a loop may meet the same message often
            return
        text.append(message)
        if self.update:
            return
        expected = self.expected.get(self.test, [])
        if len(text) > len(expected):
            pytest.fail(f"tests/messages.txt has no such message yet:\n  {message}\n{HINT}")
        if message != expected[len(text) - 1]:
            pytest.fail(f"expected\n  {expected[len(text) - 1]}\ngot\n  {message}\n{HINT}")

    def finish(self) -> None:
        """The test passed; messages that it no longer gives must not stay in the file."""
        assert self.test is not None
        self.finished.append(self.test)
        left = self.expected.get(self.test, [])[len(self.said.get(self.test, [])) :]
        if left and not self.update:
            pytest.fail(f"this message in tests/messages.txt was not given:\n  {left[0]}\n{HINT}")

    def plain(self, message: str) -> str:
        """A message on one line, without what differs from run to run."""
        for pattern, name in [*self.folders, *VARYING]:
            message = pattern.sub(name, message)
        letters = (x if x.isprintable() else x.encode("unicode_escape").decode() for x in message)
        return "".join(letters).strip()

    def take(self, said: Messages, finished: list[str], collected: list[str]) -> None:
        """What the tests of another process said."""
        self.said |= said
        self.finished += finished
        self.collected |= {*collected}

    def save(self) -> None:
        """Write the messages of the tests that ran; drop those of tests that are gone."""
        messages, finished = read(), {*self.finished}
        for test in finished - self.said.keys():
            messages.pop(test, None)
        for test, new in self.said.items():
            rest = [] if test in finished else messages.get(test, [])[len(new) :]
            messages[test] = new + rest
        gone = self.stale(messages)
        write({test: message for test, message in messages.items() if test not in gone})

    def stale(self, messages: Messages) -> set[str]:
        """Tests in the file that are no longer in the tree, as far as this session knows."""
        functions = {test.partition("[")[0] for test in self.collected}
        return {
            test
            for test in messages
            if test not in self.collected
            and (test.partition("[")[0] in functions or not defined(test))
        }


def defined(test: str) -> bool:
    """Whether the file of a test still has a function of its name."""
    file, _, name = test.partition("[")[0].partition("::")
    path, function = ROOT / file, name.rpartition("::")[2]
    return path.exists() and f"def {function}(" in path.read_text(encoding="utf-8")


BOOK = Book()


@contextmanager
def refused(
    expected: type[BaseException] | tuple[type[BaseException], ...], *, hide: str | None = None
) -> Iterator[pytest.ExceptionInfo[Any]]:
    """An exception of this class, whose class and one sentence are those of the snapshot.

    `hide` is a pattern of what differs from run to run, or is another library's.
    """
    with pytest.raises(expected) as caught:
        yield caught
    text = str(caught.value)
    assert "\n" not in text, f"expected one line, got {text!r}"
    BOOK.check(f"{type(caught.value).__name__}: {_hidden(text, hide)}")


@contextmanager
def warned(
    expected: type[Warning], *, hide: str | None = None
) -> Iterator[list[warnings.WarningMessage]]:
    """Warnings of this class, whose words are those of the snapshot."""
    with pytest.warns(expected) as caught:
        yield caught  # type: ignore[misc]
    ours = [warning.message for warning in caught if issubclass(warning.category, expected)]
    for item in ours:
        BOOK.check(f"{type(item).__name__}: {_hidden(str(item), hide)}")


def printed(text: str, *, hide: str | None = None) -> None:
    """Lines that a command printed for a person are those of the snapshot."""
    assert text.strip(), "expected a message, got nothing"
    for line in text.strip("\n").split("\n"):
        BOOK.check(_hidden(line, hide))


def _hidden(text: str, pattern: str | None) -> str:
    if pattern is None:
        return text
    assert re.search(pattern, text), f"expected {pattern!r} in {text!r}"
    return re.sub(pattern, "<hidden>", text)


def configure(update: bool, temporary: Path) -> None:
    """Take the options of this session."""
    BOOK.update = update
    BOOK.folders = [
        (re.compile(rf"{re.escape(str(temporary))}/[^/\s'\":;,()]+"), "<tmp>"),
        (re.compile(rf"{re.escape(str(ROOT))}\b"), "<root>"),
        (re.compile(rf"{re.escape(tempfile.gettempdir())}/[\w.-]+"), "<tmp>"),
    ]


def running(item: pytest.Item, book: Book = BOOK) -> Generator[None, object, object]:
    """The test that runs, by its id; afterwards it has said all that it is expected to say."""
    book.test = item.nodeid
    book.said.pop(item.nodeid, None)
    try:
        result = yield
        book.finish()
    finally:
        book.test = None
    return result
