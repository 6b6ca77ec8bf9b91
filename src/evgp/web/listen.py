"""A socket, the names it answers to, and the server on it."""

import gc
import socket
from collections.abc import Sequence

import psutil
import uvicorn
from fastapi import FastAPI

from evgp._errors import CampaignError
from evgp.web.app import LOOPBACK
from evgp.web.connections import Connection

_EVERY = ("0.0.0.0", "::")


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, protocol)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
            made.listen()  # who comes before the server is up waits
        except BaseException:
            made.close()
            raise
    except (OSError, UnicodeError) as error:
        raise CampaignError(
            f"expected an address to listen at, got {host} port {port}: "
            f"{getattr(error, 'strerror', None) or error}; take another --port or --host"
        ) from error
    return made


def is_loopback(host: str) -> bool:
    """Can nobody but this machine reach it?

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    return host in LOOPBACK or (host.startswith("127.") and host.count(".") == 3)


def names_of(host: str, further: Sequence[str] = ()) -> set[str]:
    """What a server at this host may be called: itself, this machine's names, and those given."""
    names = {host, *LOOPBACK, *further}
    if host in _EVERY:
        names |= {socket.gethostname(), socket.getfqdn()}
        names |= {
            one.address.partition("%")[0]
            for addresses in psutil.net_if_addrs().values()
            for one in addresses
            if one.family in (socket.AF_INET, socket.AF_INET6)
        }
    return {name.lower() for name in names} - {*_EVERY}


def server_of(app: FastAPI) -> uvicorn.Server:
    """A server that writes no request to any log, be it ever so broken."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=Connection,
            backlog=128,  # so many are accepted at a time, before others make room for them
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=3,
            ws="none",
        )
    )


def serve_on(listening: socket.socket, app: FastAPI) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    # What is loaded by now stays: to look at all of it again and again, as large requests make the
    # collector do, would stop every other request meanwhile.
    gc.collect()
    gc.freeze()
    server_of(app).run(sockets=[listening])
