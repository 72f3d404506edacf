"""EvalAI's API: the requests of its remote evaluation, with the standard library only.

A library that logs what it requests would log the signed addresses of submissions.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import re
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from ladderboard import _settings
from ladderboard.errors import InvalidPredictions, InvalidSetting, ServerUnreachable
from ladderboard.files import refuse

_TIMEOUT = 60.0
_PIECE = 2**16
_LARGEST_ANSWER = 2**24
_QUEUE = re.compile(r"[\w-]+", re.ASCII)
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,8}", re.ASCII)


class RequestFailed(ServerUnreachable):
    """One request came to nothing; the line is there, and others may do better."""


class _NoRedirects(HTTPRedirectHandler):
    """Goes nowhere else: a redirected request would take the token along."""

    def redirect_request(self, *_: Any) -> None:
        """Follow nobody."""


class EvalAiApi:
    """Sends what EvalAI's own remote worker sends, and reads what comes back.

    Parameters
    ----------
    server
        The address of EvalAI, ``https://eval.ai``.
    token
        The challenge host's. It goes to this server only, and into no message.
    challenge, queue
        The number of the challenge, and the name of its queue.
    """

    def __init__(self, server: str, token: str, challenge: int, queue: str) -> None:
        if not _is_private(server) or urlsplit(server).path not in {"", "/"}:
            raise InvalidSetting(
                "EvalAI's address is like https://eval.ai, and a token is not sent in the clear "
                f"to another machine; got {_settings.safe_repr(server)}."
            )
        if not isinstance(token, str) or not re.fullmatch("[!-~]+", token):
            raise InvalidSetting("The token must be one word of plain characters.")
        if not isinstance(queue, str) or not _QUEUE.fullmatch(queue):
            raise InvalidSetting(
                "A queue's name has letters, digits, - and _; EvalAI shows it to the challenge's "
                f"hosts. Got {_settings.safe_repr(queue)}."
            )
        self.server = server.rstrip("/")
        self._token, self._queue = token, queue
        self._update = f"challenge/{challenge}/update_submission/"
        self._proxied = build_opener(_NoRedirects)
        self._direct = build_opener(_NoRedirects, ProxyHandler({}))

    def receive(self) -> tuple[dict[str, Any], str] | None:
        """Return the next message and the handle to delete it by; None if there is none."""
        said = self._call("GET", f"challenge/queues/{self._queue}/")
        body, handle = said.get("body"), said.get("receipt_handle")
        return (body, str(handle)) if isinstance(body, dict) else None

    def delete(self, handle: str) -> None:
        """Take a message off the queue."""
        self._call("POST", f"queues/{self._queue}/", {"receipt_handle": handle})

    def submission(self, number: int) -> dict[str, Any]:
        """Return what EvalAI knows of a submission."""
        return self._call("GET", f"submission/{number}")

    def running(self, number: int, worker: str) -> None:
        """Say that a worker has taken up a submission."""
        told = {"submission": number, "job_name": worker, "submission_status": "RUNNING"}
        self._call("PATCH", self._update, told)

    def finished(self, phase: int, number: int, result: list[dict[str, Any]], said: str) -> None:
        """Say what came out."""
        self._over(phase, number, "FINISHED", result=json.dumps(result), stdout=said)

    def failed(self, phase: int, number: int, said: str) -> None:
        """Say why nothing came out."""
        self._over(phase, number, "FAILED", stderr=said)

    def _over(self, phase: int, number: int, status: str, **said: str) -> None:
        told = {"challenge_phase": phase, "submission": number, "submission_status": status}
        self._call("PUT", self._update, told | {"stdout": "", "stderr": "", "metadata": ""} | said)

    def download(self, url: Any, folder: Path, most_bytes: int) -> Path:
        """Fetch a submission's file, without the token; refuse one that is too large."""
        whole = urljoin(f"{self.server}/", url) if isinstance(url, str) and url else ""
        if not _is_private(whole):
            raise RequestFailed("The submission's file has no address that can be fetched.")
        suffix = Path(urlsplit(whole).path).suffix
        path = folder / f"submission{suffix if _SUFFIX.fullmatch(suffix) else ''}"
        request = Request(whole)  # noqa: S310 - the scheme was looked at
        size = 0
        try:
            with self._open(request) as answer, path.open("wb") as file:
                while piece := answer.read(_PIECE):
                    size += len(piece)
                    if size > most_bytes:
                        break
                    file.write(piece)
                cut = answer.length  # what was promised and did not come
        except HTTPError as error:
            error.close()
            raise RequestFailed(
                f"The submission's file could not be fetched: {error.code}."
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise RequestFailed(
                f"The submission's file could not be fetched: {type(error).__name__}."
            ) from None
        if size > most_bytes:
            said = f"The file is larger than {most_bytes:,} bytes, the most that is taken."
            refuse(InvalidPredictions, "too_many_bytes", said)
        if cut:
            raise RequestFailed("The submission's file could not be fetched: it was cut off.")
        return path

    def _open(self, request: Request) -> Any:
        """Send a request: one that is not encrypted stays on this machine, and off its proxy."""
        opener = self._direct if request.type == "http" else self._proxied
        return opener.open(request, timeout=_TIMEOUT)

    def _call(self, method: str, path: str, told: dict[str, Any] | None = None) -> dict[str, Any]:
        data = None if told is None else urlencode(told).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        url = f"{self.server}/api/jobs/{path}"
        request = Request(url, data, headers, method=method)  # noqa: S310 - the scheme was looked at
        try:
            with self._open(request) as answer:
                read = json.loads(answer.read(_LARGEST_ANSWER))
        except HTTPError as error:
            with error:
                raise RequestFailed(_refused(self.server, error)) from None
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "reason", None) or type(error).__name__
            raise ServerUnreachable(f"EvalAI at {self.server} cannot be reached: {why}.") from None
        except (ValueError, RecursionError):
            read = None
        if not isinstance(read, dict):
            raise RequestFailed(f"What answers at {self.server} is not EvalAI.")
        return read


def _refused(server: str, error: HTTPError) -> str:
    """Return a refusal in words: EvalAI says why in ``error``, or in ``detail``."""
    try:
        read = json.loads(error.read(_PIECE))
        why = str(read.get("error") or read.get("detail") or read)
    except (ValueError, RecursionError, AttributeError, OSError, http.client.HTTPException):
        why = "no reason"
    return f"EvalAI at {server} refused: {error.code}, {_settings.safe_repr(why)}."


def _is_private(url: Any) -> bool:
    """Return whether nobody on the way can listen to what goes to an address."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is None or not parts.hostname or parts.username or parts.password:
            return False
        if parts.scheme == "https" or parts.hostname == "localhost":
            return parts.scheme in {"http", "https"}
        return parts.scheme == "http" and ipaddress.ip_address(parts.hostname).is_loopback
    except ValueError:
        return False
