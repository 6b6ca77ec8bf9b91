"""Whoever waits for a study sees how long, on a terminal and in a log."""

import os
import pty
import re
import select
import subprocess
import sys
import time

import pytest

from experiments.__main__ import watched

CALL = [sys.executable, "-m", "experiments", "exchange-and-certificate",
        "--scale", "smoke", "--jobs", "1"]  # fmt: skip


def test_a_log_gets_a_line_for_each_cell(capsys) -> None:
    with watched(quiet=False) as watch:
        watch(0, 3, None)
        watch(1, 3, 3000.0)
        watch(3, 3, 0.0)
    assert capsys.readouterr().err.splitlines() == [
        "0 of 3 cells",
        "1 of 3 cells, about 50 min left",
        "3 of 3 cells",
    ]
    with watched(quiet=True) as watch:
        watch(1, 3, 3000.0)
    assert capsys.readouterr().err == ""


def seen(terminal: int, words: str) -> str:
    """What a terminal shows until these words come, without its colours."""
    text, until = "", time.monotonic() + 20
    while words not in text and time.monotonic() < until:
        if select.select([terminal], [], [], 0.2)[0]:
            text += os.read(terminal, 65536).decode()
        text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    return text


def test_a_terminal_counts_down(monkeypatch) -> None:
    """Long after the last cell the remaining time is still shown, and has become less."""
    ours, theirs = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with os.fdopen(theirs, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        with watched(quiet=False) as watch:
            watch(11, 36, 1440.4)
            assert "about 24 min left" in seen(ours, "24 min left")
            watch(12, 36, 4.4)
            assert "12/36" in (text := seen(ours, "about 4 s left")) and "4 s left" in text
            assert "about 2 s left" in seen(ours, "about 2 s left")
            assert "nearly done" in seen(ours, "nearly done")
    os.close(ours)


@pytest.mark.slow
def test_a_run_in_a_pipe_reports_how_far_it_is(tmp_path) -> None:
    process = subprocess.run(
        [*CALL, "--out", str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert process.stderr.splitlines()[:2] == ["0 of 1 cells", "1 of 1 cells"]
    quiet = subprocess.run(
        [*CALL, "--out", str(tmp_path), "--quiet"], capture_output=True, check=True
    )
    assert quiet.stderr == b""
