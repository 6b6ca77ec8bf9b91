"""Real servers on this machine, and clients that break the rules."""

import socket
import threading
import time
from contextlib import contextmanager, suppress

from evgp.labelling.web.server import listen, make_server

SOON = 2.0  # seconds: a moment, on a machine that is busy with other tests


@contextmanager
def served(app, port=0):
    """A server in a thread of this process; gives its port."""
    listening = listen("127.0.0.1", port)
    server = make_server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        until = time.monotonic() + 30
        while not server.started and time.monotonic() < until:
            time.sleep(0.01)
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def connected(port, timeout=30.0, source="127.0.0.1"):
    """A connection from an address of this machine."""
    return socket.create_connection(("127.0.0.1", port), timeout, source_address=(source, 0))


def head(method, path, *headers, host="localhost", length=None):
    """The first part of a request, up to its body."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *headers]
    lines += [] if length is None else [f"Content-Length: {length}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def answered(stream):
    """The status, headers and body of the next answer; None where there is none."""
    got = b""
    while b"\r\n\r\n" not in got:
        part = stream.recv(65_536)
        if not part:
            return None
        got += part
    start, _, body = got.partition(b"\r\n\r\n")
    first, *lines = start.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    length = int(headers.get("content-length", 0))
    while len(body) < length:
        part = stream.recv(65_536)
        if not part:
            break
        body += part
    return int(first.split()[1]), headers, body


def ask(port, *parts, timeout=30.0, source="127.0.0.1"):
    """Send a request, in parts, and take the answer; None where the connection was ended."""
    with connected(port, timeout, source) as stream:
        with suppress(ConnectionError):  # refused before all of it was sent
            for part in parts:
                stream.sendall(part)
        with suppress(ConnectionError):
            return answered(stream)
    return None


def is_open(stream):
    """Is a connection still held by the other side? Nothing is waited for."""
    stream.setblocking(False)
    try:
        while stream.recv(65_536):
            pass
        return False
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


@contextmanager
def watched(port, path, every=0.05):
    """The seconds that each of many requests took, while something else runs."""
    took, ending = [], threading.Event()

    def watch():
        while not ending.is_set():
            began = time.monotonic()
            actual = ask(port, head("GET", path, "Connection: close"))
            took.append(time.monotonic() - began if actual and actual[0] == 200 else float("inf"))
            ending.wait(every)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield took
    finally:
        ending.set()
        thread.join()
