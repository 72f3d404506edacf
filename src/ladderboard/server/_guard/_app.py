"""The ASGI application of a guard: access checks, answers and refusals.

Every program on the machine can reach a port on loopback, and so can every web page in the user's
browser. A request from a page has an ``Origin`` header, or a ``Host`` header with the page's own
name (DNS rebinding), and is refused.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ladderboard import _settings
from ladderboard.errors import (
    BrokenLedger,
    BudgetSpent,
    DiskFull,
    InvalidPredictions,
    InvalidRisk,
    InvalidSetting,
    InvalidState,
    MissingDependency,
    ReadOnly,
    SessionClosed,
    StaleCopy,
    StorageFailed,
    TooManyLadders,
)
from ladderboard.files import Limits
from ladderboard.server._problems import (
    ProblemKind,
    ProblemTable,
    RequestRefused,
    problem_from_exception,
)
from ladderboard.server._uploads import declared_format, open_form

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Receive, Scope, Send

    from ladderboard.holdout import Gate, Holdout
    from ladderboard.server._uploads import MultipartForm

    Handler = Callable[[Request], Awaitable[Response]]
    from collections.abc import AsyncGenerator
    from types import TracebackType

    from starlette.requests import Request


MAX_BYTES = 2**28
_NO_TOKEN_PATHS = frozenset({"/healthz", "/health"})
_UNRECORDED = "Nothing was recorded, and no question was used"
_STORAGE = f"The guard's file cannot be used now; its owner's log says why. {_UNRECORDED}."
_FULL = (
    f"The disk of the guard's file is full. {_UNRECORDED}; ask again when its owner has freed "
    "space."
)
_READ_ONLY = f"The disk of the guard's file is read-only. {_UNRECORDED}."
_UNCERTAIN = (
    "The guard's file did not confirm the write. A retry is safe: the same predictions are "
    "never counted twice."
)
_NO_READER = "The guard has no reader for this file format; its owner's log says why. Try .npy."
_TRAINING = "This guard's mechanism needs training=, the mean loss on the training data."
_BROKEN = "Internal error in the guard; nothing was released. Its owner's log says where."
_KINDS: tuple[tuple[type[Exception], ProblemKind], ...] = (
    (InvalidPredictions, ProblemKind(422, "invalid_predictions")),
    (TooManyLadders, ProblemKind(409, "too_many_ladders")),
    (InvalidSetting, ProblemKind(400, "invalid_setting")),
    (InvalidRisk, ProblemKind(400, "invalid_setting", _TRAINING)),
    (BudgetSpent, ProblemKind(409, "budget_spent")),
    (SessionClosed, ProblemKind(409, "closed")),
    (DiskFull, ProblemKind(507, "disk_full", _FULL)),
    (ReadOnly, ProblemKind(503, "read_only", _READ_ONLY)),
    (StorageFailed, ProblemKind(503, "storage", _STORAGE)),
    (StaleCopy, ProblemKind(503, "storage", _STORAGE)),
    (BrokenLedger, ProblemKind(503, "storage", _STORAGE)),
    (InvalidState, ProblemKind(503, "storage", _STORAGE)),
    (MissingDependency, ProblemKind(503, "unavailable", _NO_READER)),
    (Exception, ProblemKind(500, "broken", _BROKEN)),
)
_PROBLEMS = ProblemTable(_KINDS, _UNCERTAIN, has_types=False)
_LOG = logging.getLogger("ladderboard.guard")
_THREADS = 4
_VALID = "Submission is valid."
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class AccessCheck:
    """Refuses browsers, host names other than the bound one, and wrong tokens.

    Parameters
    ----------
    hosts
        The allowed ``Host`` headers, in lower case; all if None, as on a Unix socket, which a web
        page cannot reach.
    token
        The bearer token that the ``Authorization`` header must have; none is needed if None.
    """

    def __init__(self, hosts: frozenset[str] | None, token: str | None) -> None:
        self._hosts = hosts
        self._token = None if token is None else token.encode("ascii")

    def __repr__(self) -> str:
        return f"AccessCheck({self._hosts}, token={'no' if self._token is None else '<hidden>'})"

    def check(self, scope: Scope) -> None:
        """Refuse a request that is not allowed."""
        headers = Headers(scope=scope)
        if self._hosts is not None:
            hosts = headers.getlist("host")
            if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
                raise RequestRefused(
                    403, "wrong_host", "This guard answers only under the address it was bound to."
                )
        if "origin" in headers or headers.get("sec-fetch-site", "none") != "none":
            raise RequestRefused(403, "browser", "This guard does not answer web pages.")
        if self._token is not None and scope["path"] not in _NO_TOKEN_PATHS:
            self._check_token(headers.getlist("authorization"))

    def _check_token(self, headers: list[str]) -> None:
        scheme, _, token = headers[0].partition(" ") if len(headers) == 1 else ("", "", "")
        matches = hmac.compare_digest(token.strip().encode("utf-8", "replace"), self._token or b"")
        if scheme.lower() != "bearer" or not matches:
            raise RequestRefused(
                401,
                "no_token",
                "This guard needs the token that its owner gave you; set LADDERBOARD_TOKEN.",
                {"WWW-Authenticate": "Bearer"},
            )


class GuardApp:
    """An ASGI application around one guard.

    Predictions are scored in threads; the guard alone decides what is released. The log gets one
    line per question, which does not depend on the answer.

    Parameters
    ----------
    holdout
        The guard.
    hosts
        The allowed ``Host`` headers; all if None, for a Unix socket only.
    token
        The bearer token that requests need; none if None.
    max_bytes
        The size limit of predictions, compressed and decompressed.
    ladder
        If given, the only ladder that is served; requests may omit it.
    grade
        Whether ``/validate`` and ``/health`` are served, too, as by mle-bench's grading server.
    """

    def __init__(
        self,
        holdout: Holdout,
        *,
        hosts: frozenset[str] | None,
        token: str | None = None,
        max_bytes: int = MAX_BYTES,
        ladder: str = "",
        grade: bool = False,
    ) -> None:
        self._only_ladder = ladder
        max_bytes = _settings.integer("max_bytes", max_bytes, at_least=1)
        self._holdout: Any = holdout.with_limits(Limits(bytes=max_bytes))
        self._access = AccessCheck(hosts, token)
        self._budget = MemoryBudget(max_bytes)
        self._threads = ThreadPoolExecutor(_THREADS, "guard")
        routes = [*self._routes(), Route("/healthz", self._log_errors(self._health))]
        if grade:
            routes += [
                Route("/validate", self._log_errors(self._validate), methods=["POST"]),
                Route("/health", self._log_errors(self._grading_health)),
            ]
        self._app = Starlette(routes=routes, exception_handlers={HTTPException: _on_http_error})

    def _routes(self) -> list[Route]:
        return [
            Route("/api/v1/guard", self._log_errors(self._status)),
            Route("/api/v1/guard/meter", self._log_errors(self._meter)),
            Route("/api/v1/guard/ladder", self._log_errors(self._ladder)),
            Route("/api/v1/guard/questions", self._log_errors(self._ask), methods=["POST"]),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        try:
            self._access.check(scope)
        except RequestRefused as refused:
            await problem_from_exception(refused, _PROBLEMS).response(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def close(self) -> None:
        """Wait for questions in progress, and stop the threads."""
        self._threads.shutdown()

    def _log_errors(self, handler: Handler) -> Handler:
        """Return a handler that turns exceptions into problem documents and writes the log."""

        async def wrapped(request: Request) -> Response:
            try:
                response = await handler(request)
                outcome = "answered"
            except ClientDisconnect:
                response, outcome = Response(status_code=400), "gone"
            except Exception as error:  # noqa: BLE001 - its text may hold secrets
                response, outcome, for_owner = problem_from_exception(error, _PROBLEMS)
                if for_owner:
                    _LOG.error("%s", _describe_for_owner(error))
            if request.method == "POST":
                self._log_post(request, outcome)
            response.headers.update(_HEADERS)
            return response

        return wrapped

    def _log_post(self, request: Request, outcome: str) -> None:
        if request.url.path == "/validate":
            _LOG.info("validation: %s", outcome)
            return
        name = request.query_params.get("ladder", self._only_ladder)
        _LOG.info("question on ladder %s: %s", _settings.safe_repr(name), outcome)

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def _health(self, request: Request) -> Response:
        await self._in_thread(lambda: self._holdout.remaining)
        return _json_response({"status": "ok"})

    async def _grading_health(self, request: Request) -> Response:
        await self._health(request)
        return _json_response({"status": "running"})

    async def _validate(self, request: Request) -> Response:
        """Return whether a submission is valid and, unless only that is wanted, the answer to it.

        The status is 200 for an invalid submission, too, as clients of mle-bench expect.
        """
        format_only = _parse_flag(_read_query(request, "format_only"), "format_only")
        form = open_form(request)
        declared = declared_format(request) if form is None else None

        def grade(data: bytes) -> dict[str, Any] | None:
            file_format = declared if form is None else form.format
            if format_only:
                self._holdout.validate(data, format=file_format)
                return None
            return self._grade(data, file_format)

        answer, valid, errors = None, True, []
        try:
            answer = await self._with_body(request, grade, form)
            result = _VALID if answer is None else f"{_VALID} {answer['reason']}"
        except InvalidPredictions as error:
            result, valid = f"Submission invalid! {error}", False
            errors = [asdict(problem) for problem in error.problems]
        except (BudgetSpent, SessionClosed) as error:  # raised only for a valid submission
            result = f"{_VALID} {error}"
        return _json_response(
            {"result": result, "valid": valid, "answer": answer, "errors": errors}
        )

    def _grade(self, data: bytes, file_format: str | None) -> dict[str, Any]:
        """Return the answer about a submission, with a ``reason``."""
        return self._holdout.ask(data, format=file_format, ladder=self._only_ladder).describe()

    async def _status(self, request: Request) -> Response:
        _read_query(request)
        return _json_response(await self._in_thread(self._describe))

    def _describe(self) -> dict[str, Any]:
        status = self._holdout.status()
        meter = status.meter.chain_state
        return {
            **status.describe(),
            "opening": status.opening,
            "entries": meter.entries,
            "changes": meter.changes,
            "lost": meter.lost,
            "time": meter.time,
        }

    async def _meter(self, request: Request) -> Response:
        name = self._ladder_name(_read_query(request, "ladder"))
        return _json_response(await self._in_thread(lambda: self._ladder_status(name)))

    async def _ladder(self, request: Request) -> Response:
        name = self._ladder_name(_read_query(request, "ladder"))
        await self._in_thread(lambda: self._holdout.check_ladder(name))
        return _json_response({"ladder": name, "ladders": self._holdout.ladders})

    def _ladder_name(self, query: dict[str, str]) -> str:
        """Return the ladder of a request; refuse one that is not served."""
        name = query.get("ladder", "")
        if self._only_ladder and name not in {"", self._only_ladder}:
            raise TooManyLadders(
                f"Only the ladder {self._only_ladder!r} is served here; omit ladder, or name it. "
                "No question was used."
            )
        return name or self._only_ladder

    def _ladder_status(self, name: str) -> dict[str, Any]:
        """Return the state that changes with every question, without reading the chain."""
        holdout = self._holdout
        released = (holdout.ladder(name) if name else holdout).released
        meter = holdout.meter
        return {
            "ladder": name,
            "released": released,
            "bound": meter.certificate(released).describe(),
            "questions": meter.budget,
            "asked": meter.chain_state.asked,
            "charged": meter.chain_state.charged,
            "remaining": meter.remaining,
            "closed": meter.chain_state.closed,
            "ladders": holdout.ladders,
            "head": meter.chain_state.head.hex(),
        }

    async def _ask(self, request: Request) -> Response:
        query = _read_query(request, "ladder", "training")
        name = self._ladder_name(query)
        training = _parse_number(query.get("training"))
        file_format = declared_format(request)
        reply = await self._with_body(
            request,
            lambda data: self._holdout.ask(
                data, training=training, format=file_format, ladder=name
            ).describe(),
        )
        return _json_response(reply, 200 if reply["again"] else 201)

    async def _with_body(
        self, request: Request, work: Callable[[Any], Any], form: MultipartForm | None = None
    ) -> Any:
        """Read the body within the memory budget, and call a function with it in a thread."""
        with self._budget.open_body() as body:
            data = await body.read(request, form)
            async with self._budget.slot(data):
                return await self._in_thread(lambda: work(data))


class GateApp(GuardApp):
    """An ASGI application around one gate.

    Parameters
    ----------
    gate
        The gate.
    promote
        Whether clients may promote an incumbent.
    options
        As for :class:`GuardApp`.
    """

    def __init__(self, gate: Gate, *, promote: bool = False, **options: Any) -> None:
        self._may_promote = promote
        super().__init__(gate, **options)  # type: ignore[arg-type] # the same methods, where used

    def _routes(self) -> list[Route]:
        return [
            Route("/api/v1/gate", self._log_errors(self._status)),
            Route("/api/v1/gate/looks", self._log_errors(self._look), methods=["POST"]),
            Route("/api/v1/gate/incumbent", self._log_errors(self._promote), methods=["POST"]),
        ]

    def _log_post(self, request: Request, outcome: str) -> None:
        actions = {"/validate": "validation", "/api/v1/gate/incumbent": "promotion"}
        _LOG.info("%s: %s", actions.get(request.url.path, "look"), outcome)

    def _describe(self) -> dict[str, Any]:
        return {**self._holdout.status().describe(), "takes": self._holdout.takes}

    def _grade(self, data: bytes, file_format: str | None) -> dict[str, Any]:
        return self._holdout.check(data, format=file_format).describe()

    async def _look(self, request: Request) -> Response:
        margin = _parse_number(_read_query(request, "margin").get("margin"), "margin")
        file_format = declared_format(request)
        verdict = await self._with_body(
            request,
            lambda data: self._holdout.check(data, margin=margin, format=file_format).describe(),
        )
        recorded = verdict["look"] and not verdict["again"]
        return _json_response(verdict, 201 if recorded else 200)

    async def _promote(self, request: Request) -> Response:
        _read_query(request)
        if not self._may_promote:
            raise RequestRefused(
                403,
                "not_allowed",
                "Clients cannot promote on this gate. Its owner can allow it with --promote.",
            )
        file_format = declared_format(request)
        number = await self._with_body(
            request, lambda data: self._holdout.promote(data, format=file_format)
        )
        return _json_response({"incumbent": number}, 201)


def _read_query(request: Request, *known: str) -> dict[str, str]:
    """Return the query parameters; refuse unknown ones, since a typo would cost a question."""
    pairs = request.query_params.multi_items()
    query = dict(pairs)
    if len(query) != len(pairs) or not query.keys() <= set(known):
        listed = f"only {' and '.join(known)}, each once" if known else "no parameters"
        raise RequestRefused(400, "invalid_setting", f"This takes {listed}.")
    return query


def _parse_flag(query: dict[str, str], name: str) -> bool:
    """Return a parameter that is true or false; false if it is missing."""
    text = query.get(name, "false")
    if text not in {"true", "false"}:
        raise RequestRefused(400, "invalid_setting", f"{name} must be true or false.")
    return text == "true"


def _parse_number(text: str | None, name: str = "training") -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        raise RequestRefused(400, "invalid_setting", f"{name} must be a number.") from None


def _json_response(content: dict[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(content, allow_nan=False), status, media_type="application/json")


async def _on_http_error(_request: Request, error: Exception) -> Response:
    """Return a problem document for an unknown path or a wrong method."""
    if not isinstance(error, HTTPException):  # Starlette's type allows it
        raise error
    details = {
        404: "Unknown path; see /api/v1/guard.",
        405: "Method not allowed.",
    }
    detail = details.get(error.status_code, "The request cannot be handled.")
    refused = RequestRefused(error.status_code, "not_found", detail, error.headers)
    return problem_from_exception(refused, _PROBLEMS).response


def _describe_for_owner(error: Exception) -> str:
    """Return the message of our own exception, or the location of any other."""
    if type(error).__module__.startswith("ladderboard."):
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    # The text of a foreign exception may hold anything, labels included.
    last = traceback.extract_tb(error.__traceback__)[-1:]
    location = "".join(f" at {frame.name}, line {frame.lineno}" for frame in last)
    return f"{type(error).__name__}{location}"


_SMALL_PART = 16  # bodies up to this fraction of the limit are read concurrently
_COMPRESSED_PREFIXES = (b"\x1f\x8b", b"PK", b"PAR1", b"ARROW1")
_TIMEOUT_SECONDS = 60.0  # seconds without data


class MemoryBudget:
    """Limits the memory of one body, and of all bodies that are received at once.

    Parameters
    ----------
    max_bytes
        The size limit of a body, compressed and decompressed.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._free = 2 * max_bytes
        self._large = asyncio.Lock()

    @asynccontextmanager
    async def slot(self, data: bytes) -> AsyncGenerator[None, None]:
        """Let small bodies be parsed at once, and large or compressed ones one at a time.

        A compressed body may hold a thousand times its size.
        """
        if len(data) <= self._max_bytes // _SMALL_PART and not data.startswith(
            _COMPRESSED_PREFIXES
        ):
            yield
            return
        async with self._large:
            yield

    def open_body(self) -> _BodyReader:
        """Return a reader for one body, a context manager."""
        return _BodyReader(self)

    def check(self, size: int) -> None:
        """Refuse a body that is too large."""
        if size > self._max_bytes:
            raise RequestRefused(
                413,
                "too_large",
                f"The predictions are larger than {self._max_bytes} bytes, the guard's limit.",
            )

    def reserve(self, count: int) -> None:
        """Reserve memory, or refuse."""
        if count > self._free:
            raise RequestRefused(
                503,
                "busy",
                "Too many uploads at once; send the predictions again.",
                {"Retry-After": "1"},
            )
        self._free -= count

    def release(self, count: int) -> None:
        """Free reserved memory."""
        self._free += count


class _BodyReader:
    """Reads one body; its memory is freed at the end of the ``with`` block."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._received = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._budget.release(self._received)
        self._received = 0

    async def read(self, request: Request, form: MultipartForm | None = None) -> bytes:
        """Return the whole body, or the file in its form; refuse one too large or too slow."""
        length = request.headers.get("content-length", "")
        if length.isdecimal():  # uvicorn checks that the body has this length
            self._budget.check(int(length[:20]))
        parts: list[bytes] = []
        stream = request.stream()
        try:
            while part := await self._next(stream):
                self._budget.check(self._received + len(part))
                self._budget.reserve(len(part))
                self._received += len(part)
                parts.extend([part] if form is None else form.feed(part))
        finally:
            await stream.aclose()
        if form is not None:
            form.end()
        return b"".join(parts)

    async def _next(self, stream: AsyncGenerator[bytes, None]) -> bytes:
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                return await anext(stream, b"")
        except TimeoutError:
            raise RequestRefused(408, "too_slow", "The upload stalled.") from None
