"""Eight people hand in 2,000 answers to one server: none is lost, and how long each took."""

import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np

from benchmarks.common import Options, record
from benchmarks.quiet import calm
from evgp.labelling.campaign import Campaign
from evgp.labelling.campaign.events import Answered

PEOPLE, ANSWERS, ROWS, INPUTS = 8, 2_000, 4_000, 20


def run(options: Options) -> None:
    """Submit times by percentile, and what the file holds afterwards."""
    answers = 400 if options.small else ANSWERS
    rows = []
    for _ in range(1 if options.small else options.repeats):
        calls: list[dict[str, object]] = []
        _, others = calm(lambda values=calls: _timed(values, answers))
        rows.append({**calls[-1], "others": others})
    best = min(rows, key=lambda row: row["p95_ms"])
    record(
        options,
        "labelling",
        f"{PEOPLE} people hand in {answers:,} answers",
        [best],
        [
            "Each person is a thread that answers rows of their own without a pause, waits for "
            "each acknowledgement, and asks for further rows after every fourth, as the page does. "
            "The server is `evgp campaign serve`, which picks further batches in the meantime; "
            "it is killed at the end.",
            "ms: from sending an answer to its acknowledgement, when it is on the disk.",
            "lost, doubled: answers acknowledged that the file does not hold, or holds twice.",
            "rounds: batches picked in the background, the first of them before.",
        ],
    )


def _timed(found: list[dict[str, object]], answers: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        found.append(_once(Path(folder), answers))
        return time.perf_counter() - began


def _once(folder: Path, answers: int) -> dict[str, object]:
    x = np.random.default_rng(0).normal(size=(ROWS, INPUTS))
    header = ",".join(f"c{j}" for j in range(INPUTS))
    np.savetxt(folder / "pool.csv", x, delimiter=",", header=header, comments="", fmt="%.5f")
    campaign = Campaign.create(folder / "load", folder / "pool.csv", classes=["a", "b", "c"])
    campaign.next(50)
    campaign.close()
    server = subprocess.Popen(
        [sys.executable, "-m", "evgp.cli.main", "campaign", "serve", folder / "load", "--port", "0",
         "-k", "50"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stderr is not None
    try:
        address = re.search(r"http://\S+", server.stderr.readline())[0]
        with ThreadPoolExecutor(PEOPLE) as people:
            began = time.perf_counter()
            jobs = [people.submit(labels, address, i, answers // PEOPLE) for i in range(PEOPLE)]
            latencies = [job.result() for job in jobs]
            took = time.perf_counter() - began
    finally:
        server.kill()  # the hard way: what was acknowledged must be there
        server.wait()
        server.stderr.close()
    times = np.array([seconds for mine in latencies for _, seconds in mine])
    numbers = [number for mine in latencies for number, _ in mine]
    result = Campaign.open(folder / "load")
    rounds = len(result.state.rounds)
    entries = {event.number: event for event in result.log() if isinstance(event.event, Answered)}
    result.close()
    low, middle, high = (1000 * np.percentile(times, [50, 95, 99])).tolist()
    return {
        "people": PEOPLE,
        "answers": len(times),
        "lost": len([number for number in numbers if number not in entries]),
        "doubled": len(entries) - len(set(numbers)),
        "p50_ms": low,
        "p95_ms": middle,
        "p99_ms": high,
        "max_ms": 1000 * float(times.max()),
        "answers_a_second": len(times) / took,
        "rounds": rounds,
    }


def labels(address: str, person: int, count: int) -> list[tuple[int, float]]:
    """Hand in so many answers; the number of each receipt, and the seconds it took."""
    calls: list[tuple[int, float]] = []
    with httpx.Client(base_url=address, headers={"origin": address}, timeout=60) as client:
        signed = client.post("/api/session", json={"name": f"p{person}"}).raise_for_status().json()
        client.headers["x-csrf-token"] = signed["csrf"]
        for i in range(count):
            if i % 4 == 0:  # as often as the page does
                client.post("/api/next", json={"count": 8}).raise_for_status()
            row = person + PEOPLE * i
            body = {"row": row, "value": "abc"[row % 3], "key": os.urandom(8).hex()}
            began = time.perf_counter()
            answer = client.post("/api/answers", json=body)
            seconds = time.perf_counter() - began
            calls.append((answer.raise_for_status().json()["number"], seconds))
    return calls
