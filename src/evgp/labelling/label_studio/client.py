"""A client for Label Studio's HTTP API: projects, tasks and annotations."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from evgp._extras import lacking
from evgp._reading import check_json
from evgp.errors import EvgpError
from evgp.labelling.label_studio.config import printable
from evgp.labelling.label_studio.tasks import CAMPAIGN, POOL, ROW

try:
    import httpx
except ImportError as error:
    raise ImportError(lacking("label-studio")) from error

TOKEN, ADDRESS = "LABEL_STUDIO_API_KEY", "LABEL_STUDIO_URL"
_MAX_BYTES = 2**30  # of one response
_MIN_RATE = 50_000  # bytes a second that a response must have, beyond the time-out
_BATCH_BYTES = 2**23  # of tasks in one request; Label Studio accepts 250 MB
_BATCH = 250
_PAGE = 100
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class LabelStudioError(EvgpError, RuntimeError):
    """A request to Label Studio failed."""


class LabelStudio:
    """A Label Studio server; the token is sent only to it, and never shown.

    The token is a legacy token, or a personal access token that is exchanged for short-lived ones.
    """

    def __init__(self, url: str, token: str, *, timeout: float = 60.0) -> None:
        self.url = checked_url(url)
        self._token = token.strip()
        if not self._token or not self._token.isascii() or not self._token.isprintable():
            raise LabelStudioError(
                f"${TOKEN} is empty or has invalid characters; copy the token from Account & "
                "Settings in Label Studio"
            )
        self._personal = self._token.count(".") == 2
        self._access: str | None = None
        self._http = httpx.Client(timeout=timeout, follow_redirects=False)

    def __enter__(self) -> "LabelStudio":
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def project(self, number: int) -> dict[str, Any]:
        """A project by its number."""
        return _object(self._ask("GET", f"/api/projects/{number}/", what=f"project {number}"))

    def projects(self, title: str) -> list[dict[str, Any]]:
        """All projects with exactly this title."""
        page = _object(self._ask("GET", "/api/projects/", params={"title": title, "page_size": 50}))
        projects = page.get("results")
        if not isinstance(projects, list):
            raise _unexpected("a list of projects", page)
        return [project for project in map(_object, projects) if project.get("title") == title]

    def create(self, title: str, config: str) -> dict[str, Any]:
        """A new project that shows tasks in order, and never shows skipped ones again."""
        settings = {
            "title": title,
            "label_config": config,
            "sampling": "Sequential sampling",
            "show_skip_button": True,
            "skip_queue": "IGNORE_SKIPPED",
            "enable_empty_annotation": False,
        }
        return _object(self._ask("POST", "/api/projects/", json=settings, what="a new project"))

    def rows(self, project: int) -> dict[tuple[str, str | None], set[str]]:
        """The ids of the rows in a project, by their marks (pool, campaign)."""
        rows: dict[tuple[str, str | None], set[str]] = {}
        for task in self._tasks(project):
            data = _object(task.get("data"))
            if ROW in data:
                mark = data.get(CAMPAIGN)
                marks = str(data.get(POOL)), None if mark is None else str(mark)
                rows.setdefault(marks, set()).add(str(data[ROW]))
        return rows

    def send(self, project: int, tasks: Sequence[Mapping[str, Any]]) -> int:
        """Add tasks in order, and check that Label Studio added all of them; returns how many."""
        sent = 0
        for size, body in _batches(tasks):
            try:
                response = self._ask(
                    "POST",
                    f"/api/projects/{project}/import",
                    content=body,
                    what=f"project {project}",
                )
            except LabelStudioError as error:
                raise LabelStudioError(
                    f"{error} ({sent} of {len(tasks)} tasks were sent; repeat evgp campaign push "
                    "to send the others, none of them twice)"
                ) from error
            count = _object(response).get("task_count")
            if count != size:
                raise LabelStudioError(
                    f"Label Studio added {count} of {size} tasks to project {project}; check the "
                    "project, then repeat evgp campaign push"
                )
            sent += size
        return sent

    def export(self, project: int) -> object:
        """The full JSON export: every task with all its annotations, including skipped ones."""
        return self._ask(
            "GET",
            f"/api/projects/{project}/export",
            params={"exportType": "JSON", "download_all_tasks": "true"},
            what=f"project {project}",
        )

    def people(self) -> dict[int, str]:
        """The e-mail address of each user, by number."""
        users = self._ask("GET", "/api/users/", what="the list of users")
        if not isinstance(users, list):
            raise _unexpected("a list of users", users)
        return {
            user["id"]: str(user.get("email") or user.get("username") or f"user {user['id']}")
            for user in map(_object, users)
            if isinstance(user.get("id"), int)
        }

    def _tasks(self, project: int) -> Iterator[dict[str, Any]]:
        page, seen = 1, 0
        while True:
            listing = _object(
                self._ask(
                    "GET",
                    "/api/tasks/",
                    params={
                        "project": project, "page": page, "page_size": _PAGE,
                        "fields": "task_only", "include": "id,data",
                    },
                    what=f"project {project}",
                )
            )  # fmt: skip
            tasks, total = listing.get("tasks"), listing.get("total")
            if not isinstance(tasks, list) or not isinstance(total, int):
                raise _unexpected("a list of tasks", listing)
            yield from map(_object, tasks)
            page, seen = page + 1, seen + len(tasks)
            if seen >= total or not tasks:
                return

    def _ask(self, method: str, path: str, *, what: str = "", **options: Any) -> Any:
        """Send a request, and return the response as JSON."""
        status, body, kind = self._send(method, path, **options)
        if status == 401 and self._personal:
            self._access = None  # it expires after some minutes
            status, body, kind = self._send(method, path, **options)
        if 200 <= status < 300:
            return self._parse(body, kind)
        raise LabelStudioError(self._explain(status, body, what))

    def _send(self, method: str, path: str, **options: Any) -> tuple[int, bytes, str]:
        if self._personal and self._access is None:
            self._access = self._exchange()
        header = f"Bearer {self._access}" if self._personal else f"Token {self._token}"
        return self._stream(method, path, {"authorization": header}, **options)

    def _exchange(self) -> str:
        """Exchange the personal access token for a short-lived one."""
        status, body, kind = self._stream(
            "POST", "/api/token/refresh/", {}, json={"refresh": self._token}
        )
        if status != 200:
            raise LabelStudioError(self._explain(status, body, "the exchange of the token"))
        access = _object(self._parse(body, kind)).get("access")
        if not isinstance(access, str):
            raise _unexpected("a token", access)
        return access

    def _stream(
        self, method: str, path: str, headers: dict[str, str], **options: Any
    ) -> tuple[int, bytes, str]:
        """Status, body and content type of a response, within limits on size and time."""
        if "content" in options:
            headers = headers | {"content-type": "application/json"}
        try:
            with self._http.stream(method, self.url + path, headers=headers, **options) as reply:
                parts, size, start = [], 0, monotonic()
                for part in reply.iter_bytes():
                    size += len(part)
                    seconds = monotonic() - start
                    if seconds > (self._http.timeout.read or 0) + size / _MIN_RATE:
                        raise LabelStudioError(
                            f"{self.url} is too slow: it sent {size:,} bytes in {seconds:.0f} s; "
                            "check the server, and try again"
                        )
                    if size > _MAX_BYTES:
                        raise LabelStudioError(
                            f"{self.url} sent more than {_MAX_BYTES:,} bytes in one response"
                        )
                    parts.append(part)
                return reply.status_code, b"".join(parts), reply.headers.get("content-type", "")
        except httpx.TimeoutException as error:
            raise LabelStudioError(
                f"{self.url} did not respond within {self._http.timeout.read:.0f} s; check that "
                "it is up, and try again"
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise LabelStudioError(
                f"no complete response from {self.url} ({type(error).__name__}); check that Label "
                "Studio is up there, and try again"
            ) from error

    def _parse(self, body: bytes, kind: str) -> Any:
        check_json(body, self.url, LabelStudioError)
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            shown = kind.partition(";")[0] or "something else"
            got = "incomplete JSON" if "json" in shown else shown
            raise LabelStudioError(
                f"expected JSON from {self.url}, got {got}; is this the address of Label Studio?"
            ) from error

    def _explain(self, status: int, body: bytes, what: str) -> str:
        if status == 401:
            return (
                f"{self.url} does not accept the token (401); create a new one in Account & "
                f"Settings, and set ${TOKEN}"
            )
        if status == 403:
            return f"this user has no access to {what or 'this server'} (403); ask its owner"
        if status == 404:
            return (
                f"{self.url} has no {what or 'Label Studio API'} (404); check the number and the "
                "address"
            )
        if 300 <= status < 400:
            return (
                f"{self.url} redirects elsewhere ({status}); use the address that it redirects to"
            )
        if status == 413:
            return f"{self.url} rejected {what} as too large (413); use images="
        detail = self._detail(body) if status < 500 else ""
        return (
            f"{self.url} answered {status} for {what or 'a request'}"
            + (f" ({detail})" if detail else "")
            + ("; see its log, and try again" if status >= 500 else "; fix that, and try again")
        )

    def _detail(self, body: bytes) -> str:
        """The server's own error message, shortened, and without the token."""
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            return ""
        if isinstance(message, dict):
            message = message.get("validation_errors") or message.get("detail") or message
        text = " ".join(str(message).split())[:300]
        for secret in (self._token, self._access):
            text = text.replace(secret, "...") if secret else text
        return printable(text)


def from_environment(url: str | None) -> LabelStudio:
    """Connect to `url` or $LABEL_STUDIO_URL, with the token of $LABEL_STUDIO_API_KEY."""
    address = url or os.environ.get(ADDRESS)
    if not address:
        raise LabelStudioError(
            f"the address of Label Studio is missing; pass url=, or set ${ADDRESS}, for "
            "example to http://localhost:8080"
        )
    token = os.environ.get(TOKEN)
    if not token:
        raise LabelStudioError(
            "the token of Label Studio is missing; copy it from Account & Settings in Label "
            f"Studio, and set ${TOKEN}"
        )
    return LabelStudio(address, token)


def checked_url(url: str) -> str:
    """The address of Label Studio, checked to contain no password.

    >>> checked_url("http://localhost:8080/")
    'http://localhost:8080'
    """
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError as error:
        raise LabelStudioError(f"invalid address of Label Studio ({error})") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise LabelStudioError(
            "expected an address of Label Studio such as http://localhost:8080, got "
            f"{parts.scheme or 'no scheme'}://{parts.hostname or '...'}"
        )
    if parts.username is not None or parts.password is not None:
        raise LabelStudioError(
            f"the address of Label Studio must not contain a name or password; set ${TOKEN} instead"
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def is_unencrypted(url: str) -> bool:
    """Whether the token would be sent to another machine without encryption.

    >>> is_unencrypted("http://localhost:8080"), is_unencrypted("http://example.org")
    (False, True)
    """
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname not in _LOOPBACK


def _batches(tasks: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, bytes]]:
    """Lists of tasks as JSON, each below a limit, with the number of tasks."""
    parts: list[bytes] = []
    for task in tasks:
        text = json.dumps(task, ensure_ascii=False, allow_nan=False).encode()
        if parts and (len(parts) == _BATCH or sum(map(len, parts)) + len(text) > _BATCH_BYTES):
            yield len(parts), b"[" + b",".join(parts) + b"]"
            parts = []
        parts.append(text)
    if parts:
        yield len(parts), b"[" + b",".join(parts) + b"]"


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _unexpected("an object", value)
    return value


def _unexpected(expected: str, got: object) -> LabelStudioError:
    return LabelStudioError(
        f"expected {expected} from Label Studio, got {type(got).__name__}; is it version 1.13 or "
        "newer?"
    )
