"""EvalAI's API for remote evaluation, with the standard library only.

An HTTP library that logs its requests would log the signed addresses of submissions.
"""

from __future__ import annotations

import http.client
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
_CHUNK_BYTES = 2**16
_MAX_RESPONSE_BYTES = 2**24
_QUEUE = re.compile(r"[\w-]+", re.ASCII)
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,8}", re.ASCII)


class RequestFailed(ServerUnreachable):
    """One request failed; the server is reachable, and other requests may succeed."""


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirects: a redirected request would send the token to another host."""

    def redirect_request(self, *_: Any) -> None:
        """Follow no redirect."""


class EvalAiApi:
    """The requests of EvalAI's own remote worker.

    Parameters
    ----------
    server
        The address of EvalAI, ``https://eval.ai``.
    token
        The challenge host's token. It is sent to this server only, and no message contains it.
    challenge, queue
        The number of the challenge, and the name of its queue.
    """

    def __init__(self, server: str, token: str, challenge: int, queue: str) -> None:
        if not _is_secure(server) or urlsplit(server).path not in {"", "/"}:
            raise InvalidSetting(
                "EvalAI's address is like https://eval.ai, and a token is not sent unencrypted "
                f"to another machine; got {_settings.safe_repr(server)}."
            )
        if not isinstance(token, str) or not re.fullmatch("[!-~]+", token):
            raise InvalidSetting("The token must be printable ASCII without spaces.")
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
        """Return the next message and the handle for deleting it; None if the queue is empty."""
        document = self._call("GET", f"challenge/queues/{self._queue}/")
        body, handle = document.get("body"), document.get("receipt_handle")
        return (body, str(handle)) if isinstance(body, dict) else None

    def delete(self, handle: str) -> None:
        """Delete a message from the queue."""
        self._call("POST", f"queues/{self._queue}/", {"receipt_handle": handle})

    def submission(self, number: int) -> dict[str, Any]:
        """Return EvalAI's data about a submission."""
        return self._call("GET", f"submission/{number}")

    def report_running(self, number: int, worker: str) -> None:
        """Report that a worker has started on a submission."""
        payload = {"submission": number, "job_name": worker, "submission_status": "RUNNING"}
        self._call("PATCH", self._update, payload)

    def report_finished(
        self, phase: int, number: int, result: list[dict[str, Any]], message: str
    ) -> None:
        """Report a submission's result."""
        self._report(phase, number, "FINISHED", result=json.dumps(result), stdout=message)

    def report_failed(self, phase: int, number: int, message: str) -> None:
        """Report why a submission has no result."""
        self._report(phase, number, "FAILED", stderr=message)

    def _report(self, phase: int, number: int, status: str, **output: str) -> None:
        payload = {"challenge_phase": phase, "submission": number, "submission_status": status}
        payload |= {"stdout": "", "stderr": "", "metadata": ""}
        self._call("PUT", self._update, payload | output)

    def download(self, url: Any, folder: Path, max_bytes: int) -> Path:
        """Download a submission's file, without the token; refuse one that is too large."""
        address = urljoin(f"{self.server}/", url) if isinstance(url, str) and url else ""
        if not _is_secure(address):
            raise RequestFailed("The submission's file has no usable address.")
        suffix = Path(urlsplit(address).path).suffix
        path = folder / f"submission{suffix if _SUFFIX.fullmatch(suffix) else ''}"
        request = _make_request(address)
        size = 0
        try:
            with self._open(request) as response, path.open("wb") as file:
                while chunk := response.read(_CHUNK_BYTES):
                    size += len(chunk)
                    if size > max_bytes:
                        break
                    file.write(chunk)
                missing = response.length  # bytes that were announced and did not arrive
        except HTTPError as error:
            error.close()
            raise RequestFailed(
                f"The submission's file could not be fetched: {error.code}."
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise RequestFailed(
                f"The submission's file could not be fetched: {type(error).__name__}."
            ) from None
        if size > max_bytes:
            message = f"The file is larger than {max_bytes:,} bytes, the maximum."
            refuse(InvalidPredictions, "too_many_bytes", message)
        if missing:
            raise RequestFailed("The submission's file could not be fetched: it was cut off.")
        return path

    def _open(self, request: Request) -> Any:
        """Send a request; an unencrypted one bypasses proxies, so it stays on this machine."""
        opener = self._direct if request.type == "http" else self._proxied
        return opener.open(request, timeout=_TIMEOUT)

    def _call(
        self, method: str, path: str, payload: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        data = None if payload is None else urlencode(payload).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        url = f"{self.server}/api/jobs/{path}"
        request = _make_request(url, data, headers, method)
        try:
            with self._open(request) as response:
                document = json.loads(response.read(_MAX_RESPONSE_BYTES))
        except HTTPError as error:
            with error:
                raise RequestFailed(_refusal_message(self.server, error)) from None
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "reason", None) or type(error).__name__
            raise ServerUnreachable(f"EvalAI at {self.server} cannot be reached: {why}.") from None
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise RequestFailed(f"{self.server} is not an EvalAI server.")
        return document


def _refusal_message(server: str, error: HTTPError) -> str:
    """Return a message for a refusal; EvalAI gives its reason in ``error`` or ``detail``."""
    try:
        document = json.loads(error.read(_CHUNK_BYTES))
        why = str(document.get("error") or document.get("detail") or document)
    except (ValueError, RecursionError, AttributeError, OSError, http.client.HTTPException):
        why = "no reason"
    return f"EvalAI at {server} refused: {error.code}, {_settings.safe_repr(why)}."


def _make_request(
    url: str,
    data: bytes | None = None,
    headers: dict[str, str] | None = None,
    method: str = "GET",
) -> Request:
    """Return a request to an address that ``_is_secure`` accepted."""
    return Request(url, data, headers or {}, method=method)  # noqa: S310 - checked before


def _is_secure(url: Any) -> bool:
    """Return whether a connection to an address is encrypted or stays on this machine."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is None or not parts.hostname or parts.username or parts.password:
            return False
        return parts.scheme == "https" or (
            parts.scheme == "http" and _settings.is_loopback(parts.hostname)
        )
    except ValueError:
        return False
