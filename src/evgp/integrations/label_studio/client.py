"""Label Studio over HTTP: projects, tasks, annotations; every wrong answer is one sentence."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from evgp._errors import EvgpError
from evgp._extras import lacking
from evgp._reading import check_json
from evgp.integrations.label_studio.config import printable
from evgp.integrations.label_studio.tasks import CAMPAIGN, POOL, ROW

try:
    import httpx
except ImportError as error:
    raise ImportError(lacking("label-studio")) from error

TOKEN, ADDRESS = "LABEL_STUDIO_API_KEY", "LABEL_STUDIO_URL"
_MOST_BYTES = 2**30  # of one answer
_PACE = 50_000  # bytes a second that an answer must have, beyond the time-out
_BATCH_BYTES = 2**23  # of tasks in one request; Label Studio takes 250 MB
_BATCH = 250
_PAGE = 100
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class LabelStudioError(EvgpError, RuntimeError):
    """Label Studio did not do what it was asked for."""


class LabelStudio:
    """A Label Studio at an address; the token is sent to it alone, and never told.

    The token is a legacy one, or a personal access token, which is exchanged for a short-lived one.
    """

    def __init__(self, url: str, token: str, *, timeout: float = 60.0) -> None:
        self.url = checked_url(url)
        self._token = token.strip()
        if not self._token or not self._token.isascii() or not self._token.isprintable():
            raise LabelStudioError(
                f"expected a token in ${TOKEN}, got none that could be sent; copy it from Account "
                "& Settings in Label Studio"
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
        told = _object(self._ask("GET", "/api/projects/", params={"title": title, "page_size": 50}))
        found = told.get("results")
        if not isinstance(found, list):
            raise _strange("a list of projects", told)
        return [one for one in map(_object, found) if one.get("title") == title]

    def create(self, title: str, config: str) -> dict[str, Any]:
        """A new project, whose tasks are shown in their order, skipped ones never again."""
        given = {
            "title": title,
            "label_config": config,
            "sampling": "Sequential sampling",
            "show_skip_button": True,
            "skip_queue": "IGNORE_SKIPPED",
            "enable_empty_annotation": False,
        }
        return _object(self._ask("POST", "/api/projects/", json=given, what="a new project"))

    def rows(self, project: int) -> dict[tuple[str, str | None], set[str]]:
        """The ids of the rows that are in a project, by their marks: of the pool, the campaign."""
        made: dict[tuple[str, str | None], set[str]] = {}
        for task in self._tasks(project):
            data = _object(task.get("data"))
            if ROW in data:
                mark = data.get(CAMPAIGN)
                marks = str(data.get(POOL)), None if mark is None else str(mark)
                made.setdefault(marks, set()).add(str(data[ROW]))
        return made

    def send(self, project: int, tasks: Sequence[Mapping[str, Any]]) -> int:
        """Add tasks, in their order; how many there are then is counted, not believed."""
        sent = 0
        for size, body in _batches(tasks):
            try:
                told = self._ask(
                    "POST",
                    f"/api/projects/{project}/import",
                    content=body,
                    what=f"project {project}",
                )
            except LabelStudioError as error:
                raise LabelStudioError(
                    f"{error} ({sent} of {len(tasks)} tasks were sent; evgp campaign push again "
                    "sends the others, and none twice)"
                ) from error
            count = _object(told).get("task_count")
            if count != size:
                raise LabelStudioError(
                    f"expected {size} tasks to be added to project {project}, got {count}; see "
                    "the project, then evgp campaign push again"
                )
            sent += size
        return sent

    def export(self, project: int) -> object:
        """The full JSON export: every task with all its annotations, skipped ones included."""
        return self._ask(
            "GET",
            f"/api/projects/{project}/export",
            params={"exportType": "JSON", "download_all_tasks": "true"},
            what=f"project {project}",
        )

    def people(self) -> dict[int, str]:
        """The e-mail address of each user, by number."""
        told = self._ask("GET", "/api/users/", what="the list of users")
        if not isinstance(told, list):
            raise _strange("a list of users", told)
        return {
            one["id"]: str(one.get("email") or one.get("username") or f"user {one['id']}")
            for one in map(_object, told)
            if isinstance(one.get("id"), int)
        }

    def _tasks(self, project: int) -> Iterator[dict[str, Any]]:
        page, seen = 1, 0
        while True:
            told = _object(
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
            tasks, total = told.get("tasks"), told.get("total")
            if not isinstance(tasks, list) or not isinstance(total, int):
                raise _strange("a list of tasks", told)
            yield from map(_object, tasks)
            page, seen = page + 1, seen + len(tasks)
            if seen >= total or not tasks:
                return

    def _ask(self, method: str, path: str, *, what: str = "", **given: Any) -> Any:
        """One request and what it was answered with, as JSON."""
        status, body, kind = self._sent(method, path, **given)
        if status == 401 and self._personal:
            self._access = None  # it lives for minutes only
            status, body, kind = self._sent(method, path, **given)
        if 200 <= status < 300:
            return self._read(body, kind)
        raise LabelStudioError(self._refused(status, body, what))

    def _sent(self, method: str, path: str, **given: Any) -> tuple[int, bytes, str]:
        if self._personal and self._access is None:
            self._access = self._exchanged()
        header = f"Bearer {self._access}" if self._personal else f"Token {self._token}"
        return self._raw(method, path, {"authorization": header}, **given)

    def _exchanged(self) -> str:
        """A short-lived token for the personal one."""
        status, body, kind = self._raw(
            "POST", "/api/token/refresh/", {}, json={"refresh": self._token}
        )
        if status != 200:
            raise LabelStudioError(self._refused(status, body, "the exchange of the token"))
        found = _object(self._read(body, kind)).get("access")
        if not isinstance(found, str):
            raise _strange("a token", "none")
        return found

    def _raw(
        self, method: str, path: str, headers: dict[str, str], **given: Any
    ) -> tuple[int, bytes, str]:
        if "content" in given:
            headers = headers | {"content-type": "application/json"}
        try:
            with self._http.stream(method, self.url + path, headers=headers, **given) as answer:
                parts, size, begun = [], 0, monotonic()
                for part in answer.iter_bytes():
                    size += len(part)
                    if monotonic() - begun > (self._http.timeout.read or 0) + size / _PACE:
                        raise LabelStudioError(
                            f"expected an answer of {self.url} in time, got {size:,} bytes of it "
                            f"in {monotonic() - begun:.0f} s; see what keeps it, and try again"
                        )
                    if size > _MOST_BYTES:
                        raise LabelStudioError(
                            f"expected at most {_MOST_BYTES:,} bytes from {self.url}, got more"
                        )
                    parts.append(part)
                return answer.status_code, b"".join(parts), answer.headers.get("content-type", "")
        except httpx.TimeoutException as error:
            raise LabelStudioError(
                f"expected an answer of {self.url} within {self._http.timeout.read:.0f} s, got "
                "none; see whether it is up, and try again"
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise LabelStudioError(
                f"expected a whole answer of {self.url}, got {type(error).__name__}; see whether "
                "Label Studio is up there, and try again"
            ) from error

    def _read(self, body: bytes, kind: str) -> Any:
        check_json(body, self.url, LabelStudioError)
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            shown = kind.partition(";")[0] or "something else"
            got = "half of it" if "json" in shown else shown
            raise LabelStudioError(
                f"expected JSON from {self.url}, got {got}; is this the address of Label Studio?"
            ) from error

    def _refused(self, status: int, body: bytes, what: str) -> str:
        if status == 401:
            return (
                f"expected a token that {self.url} knows, got 401; make a new one in Account & "
                f"Settings, and set ${TOKEN}"
            )
        if status == 403:
            return f"expected a user who may use {what or 'this'}, got 403; ask its owner"
        if status == 404:
            return (
                f"expected {what or 'the interface of Label Studio'} at {self.url}, got 404; check "
                "the number and the address"
            )
        if 300 <= status < 400:
            return (
                f"expected Label Studio at {self.url}, got a redirection ({status}); give the "
                "address that it leads to"
            )
        if status == 413:
            return f"expected {self.url} to take {what}, got 413 (too large); use --images"
        told = self._detail(body) if status < 500 else ""
        return (
            f"expected {self.url} to answer for {what or 'Label Studio'}, got {status}"
            + (f" ({told})" if told else "")
            + ("; see its log, and try again" if status >= 500 else "; fix that, and try again")
        )

    def _detail(self, body: bytes) -> str:
        """What the server says of an error, in few letters, and without the token."""
        try:
            told = json.loads(body)
        except (ValueError, RecursionError):
            return ""
        if isinstance(told, dict):
            told = told.get("validation_errors") or told.get("detail") or told
        text = " ".join(str(told).split())[:300]
        for secret in (self._token, self._access):
            text = text.replace(secret, "...") if secret else text
        return printable(text)


def from_environment(url: str | None) -> LabelStudio:
    """The Label Studio of --url or $LABEL_STUDIO_URL, with the token of $LABEL_STUDIO_API_KEY."""
    address = url or os.environ.get(ADDRESS)
    if not address:
        raise LabelStudioError(
            f"expected the address of Label Studio in --url or ${ADDRESS}, got none; for example "
            "http://localhost:8080"
        )
    token = os.environ.get(TOKEN)
    if not token:
        raise LabelStudioError(
            f"expected a token in ${TOKEN}, got none; copy it from Account & Settings in Label "
            "Studio"
        )
    return LabelStudio(address, token)


def checked_url(url: str) -> str:
    """An address without anything secret in it.

    >>> checked_url("http://localhost:8080/")
    'http://localhost:8080'
    """
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError as error:
        raise LabelStudioError(
            f"expected an address of Label Studio, got one that is none ({error})"
        ) from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise LabelStudioError(
            "expected an address of Label Studio such as http://localhost:8080, got "
            f"{parts.scheme or 'no scheme'}://{parts.hostname or '...'}"
        )
    if parts.username is not None or parts.password is not None:
        raise LabelStudioError(
            f"expected no name or password in the address of Label Studio; set ${TOKEN} instead"
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def is_open(url: str) -> bool:
    """Does the token travel to another machine without encryption?

    >>> is_open("http://localhost:8080"), is_open("http://example.org"), is_open("https://a.org")
    (False, True, False)
    """
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname not in _LOOPBACK


def _batches(tasks: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, bytes]]:
    """Lists of tasks as JSON, none of them large."""
    parts: list[bytes] = []
    for task in tasks:
        made = json.dumps(task, ensure_ascii=False, allow_nan=False).encode()
        if parts and (len(parts) == _BATCH or sum(map(len, parts)) + len(made) > _BATCH_BYTES):
            yield len(parts), b"[" + b",".join(parts) + b"]"
            parts = []
        parts.append(made)
    if parts:
        yield len(parts), b"[" + b",".join(parts) + b"]"


def _object(told: object) -> dict[str, Any]:
    if not isinstance(told, dict):
        raise _strange("an object", told)
    return told


def _strange(wanted: str, got: object) -> LabelStudioError:
    return LabelStudioError(
        f"expected {wanted} from Label Studio, got {type(got).__name__}; is it version 1.13 or "
        "newer?"
    )
