"""What request handlers share: boards, thread pools, settings, rate limits, the page cache."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import inspect
import json
import threading
from collections import Counter, OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from ladderboard.board import PUBLIC as NOBODY
from ladderboard.board import Board, Role
from ladderboard.errors import NotFound, storage_error
from ladderboard.server._auth import (
    SESSION_COOKIE,
    Authenticator,
    CookieSessions,
    InvalidToken,
)
from ladderboard.server._problems import RequestRefused
from ladderboard.server._rate_limits import RateLimiter, UploadQueue, client_address
from ladderboard.server._sign_in import SignInFlow

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    from starlette.types import Receive, Scope, Send

    from ladderboard.board import Boards, Caller, SubmissionAnswer, SubmissionRequest
    from ladderboard.errors import LadderboardError
    from ladderboard.server._log import Metrics, ServerLog
    from ladderboard.server._sandbox import ParserPool, Spec
    from ladderboard.server._settings import Settings
    from ladderboard.server._uploads import Spool

_MAX_PAGES = 64
_MAX_BATCH = 64  # calls
_MIN_BESIDE = 4  # calls in a batch that starts before the last one has ended
_GATHER_SECONDS = 0.003  # that a batch waits for submissions that are being read
_BUSY = 4  # requests under way, from which on others are about to come
_MAX_BATCHED = 2**14  # numbers; more of them, and texts, are scored in parallel
PRIVATE: list[dict[str, list[str]]] = [{"token": []}, {"session": []}]
"""In a route's ``openapi_extra``: the route needs a token."""
_NOTHING: dict[str, str] = {}
_JSON = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


class CachedPage(NamedTuple):
    """A page, plain and gzipped, or JSON with its ETag and the cursor of the next page."""

    content: bytes
    packed: bytes = b""
    tag: str = ""
    next: str | None = None


class PageCache:
    """The most recently requested pages of one server. Thread-safe."""

    def __init__(self) -> None:
        self._pages: OrderedDict[Hashable, CachedPage] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> CachedPage | None:
        """Return the page of a key, None if it is not cached."""
        with self._lock:
            page = self._pages.get(key)
            if page is not None:
                self._pages.move_to_end(key)
            return page

    def put(self, key: Hashable, page: CachedPage) -> None:
        """Add a page, and forget the ones that were not requested for longest."""
        with self._lock:
            self._pages[key] = page
            while len(self._pages) > _MAX_PAGES:
                self._pages.popitem(last=False)


Key = TypeVar("Key")
Argument = TypeVar("Argument")
Result = TypeVar("Result")


class _Batch(Generic[Argument, Result]):
    """Calls that run together; ``lets_next_start`` is True when they only wait for a disk."""

    def __init__(self, calls: list[tuple[Argument, asyncio.Future[Result]]]) -> None:
        self.calls = calls
        self.lets_next_start = False

    def is_passed_by(self, waiting: Sequence[object]) -> bool:
        """Return whether calls that wait start now: smaller batches would take longer in all."""
        return self.lets_next_start and len(waiting) >= max(len(self.calls), _MIN_BESIDE)


class Batches(Generic[Key, Argument, Result]):
    """Runs calls in threads; those with one key that arrive during a batch are the next batch.

    So a busy server changes threads once for many calls, and commits once. A batch also waits a few
    milliseconds for calls that are about to come, but not for more than wait already.

    Parameters
    ----------
    threads
        Run the batches.
    run
        Gets a key, the arguments of its calls and a function; returns their results and exceptions.
        It may call the function, in its thread, when it only waits for a disk. Then the next batch
        of the key starts beside it, if as many calls wait.
    seconds
        How long a batch waits for calls at most.
    about_to_come
        Returns how many calls with a key are about to come, but for those that were announced.
    """

    def __init__(
        self,
        threads: Executor,
        run: Callable[[Key, list[Argument], Callable[[], None]], Sequence[Result | Exception]],
        seconds: float = _GATHER_SECONDS,
        about_to_come: Callable[[], int] = int,
    ) -> None:
        self._threads, self._run, self._seconds = threads, run, seconds
        self._about_to_come = about_to_come
        self._waiting: dict[Key, list[tuple[Argument, asyncio.Future[Result]]]] = {}
        self._running: dict[Key, _Batch[Argument, Result]] = {}
        """By key: the batch that was started last, until it ends."""
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        """By the keys whose batches gather now."""
        self._announced: Counter[Key] = Counter()

    @contextlib.contextmanager
    def announce(self, key: Key) -> Iterator[Callable[[], None]]:
        """Announce a call that comes in the block; give the function to say that it has come."""
        announced = [key]
        self._announced[key] += 1

        def come() -> None:
            if announced:
                announced.clear()
                self._announced[key] -= 1
                if not self._announced[key]:
                    del self._announced[key]

        try:
            yield come
        finally:
            come()
            if key in self._timers:
                self._start_or_gather(key)

    async def call(self, key: Key, argument: Argument) -> Result:
        """Return the result of a call."""
        result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append((argument, result))
        if key in self._running:
            self._start_beside(key)
        else:
            self._start_or_gather(key)
        try:
            return await result
        except OSError as error:
            raise _disk_error(error) from error

    def _start_or_gather(self, key: Key) -> None:
        """Start the next batch of a key, now or when others have come."""
        others = self._announced[key] + self._about_to_come()
        if len(self._waiting[key]) >= min(others, _MAX_BATCH):
            self._start(key)
        elif key not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[key] = loop.call_later(self._seconds, self._start, key)

    def _start_beside(self, key: Key) -> None:
        """Start the next batch of a key if the last one lets it and enough calls wait."""
        running = self._running.get(key)
        if running is not None and running.is_passed_by(self._waiting.get(key, ())):
            self._start(key)

    def _start(self, key: Key) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        calls = self._waiting.pop(key)
        if len(calls) > _MAX_BATCH:
            self._waiting[key] = calls[_MAX_BATCH:]
        batch = self._running[key] = _Batch(calls[:_MAX_BATCH])
        # Without a future of the executor, which takes as long as all the rest.
        self._threads.submit(self._run_batch, asyncio.get_running_loop(), key, batch)

    def _run_batch(
        self, loop: asyncio.AbstractEventLoop, key: Key, batch: _Batch[Argument, Result]
    ) -> None:
        def let_next_start() -> None:
            batch.lets_next_start = True
            if batch.is_passed_by(self._waiting.get(key, ())):
                with contextlib.suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(self._start_beside, key)

        try:
            arguments = [argument for argument, _ in batch.calls]
            outcomes = self._run(key, arguments, let_next_start)
        except BaseException as error:  # noqa: BLE001 - raised for each call
            outcomes = [error] * len(batch.calls)  # type: ignore[list-item]
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(self._deliver, key, batch, outcomes)

    def _deliver(
        self, key: Key, batch: _Batch[Argument, Result], outcomes: Sequence[Result | Exception]
    ) -> None:
        if self._running.get(key) is batch:
            del self._running[key]
            waiting = [call for call in self._waiting.pop(key, ()) if not call[1].done()]
            if waiting:
                self._waiting[key] = waiting
                self._start_or_gather(key)
        for (_, result), outcome in zip(batch.calls, outcomes, strict=True):
            if result.done():  # cancelled, because the server stops
                continue
            if isinstance(outcome, BaseException):
                result.set_exception(outcome)
            else:
                result.set_result(outcome)


def _attempt(read: Callable[[], Result]) -> Result | Exception:
    try:
        return read()
    except Exception as error:  # noqa: BLE001 - raised for the call that it belongs to
        return error


def _read_once(
    _: Hashable, reads: list[Callable[[], Result]], __: Callable[[], None]
) -> list[Result | Exception]:
    """Read once for all calls, each of which was made before."""
    return [_attempt(reads[0])] * len(reads)


def _disk_error(error: OSError) -> LadderboardError:
    return storage_error(error, f"{error.filename or 'The disk'} cannot be used")


class _Authorization(NamedTuple):
    request: Request
    work: Callable[[], Any]


class ServerContext:
    """Everything that is shared by the handlers of one server."""

    spool: Spool
    """Holds large bodies; set when the lifespan starts."""

    def __init__(
        self,
        boards: Boards,
        parsers: ParserPool,
        *,
        settings: Settings,
        log: ServerLog,
        metrics: Metrics,
    ) -> None:
        self.boards, self.parsers = boards, parsers
        self.settings, self.log, self.metrics = settings, log, metrics
        self.sessions = CookieSessions(boards, settings)
        self.authenticator = Authenticator(boards, self.sessions, settings)
        self.sign_in = SignInFlow(boards, settings)
        self.registration_limiter = RateLimiter(
            settings.registrations,
            "Too many registrations from your address; wait.",
            settings.timer,
        )
        self.invalid_limiter = RateLimiter(
            settings.invalid, "Too many files were checked or invalid; wait.", settings.timer
        )
        self.uploads = UploadQueue()
        self.parser_specs: dict[str, tuple[Hashable, Spec]] = {}
        """By slug: the parser specification of a board, and the key that it depends on."""
        self.authorized_uploads: dict[Hashable, Any] = {}
        """Of teams that submitted a moment ago; see ``accept_submission``."""
        self.pages = PageCache()
        self._threads = ThreadPoolExecutor(settings.threads, "board-reader")
        self._writers = ThreadPoolExecutor(settings.threads, "board-writer")
        self._submissions = Batches(self._writers, self._submit_all)
        self._authorizations: Batches[str, _Authorization, Any] = Batches(
            self._threads,
            self._authorize_all,
            _GATHER_SECONDS / 4,
            lambda: metrics.under_way // _BUSY,
        )
        self._public_reads: Batches[Hashable, Callable[[], Any], Any] = Batches(
            self._threads, _read_once
        )

    def close(self) -> None:
        """Wait for running work, and stop the threads."""
        self._threads.shutdown()
        self._writers.shutdown()

    def limit_registrations(self, request: Request) -> None:
        """Count a registration from an address; refuse it after too many."""
        self.registration_limiter.check(client_address(request))
        self.registration_limiter.record(client_address(request))

    def announce_submission(
        self, board: Board
    ) -> contextlib.AbstractContextManager[Callable[[], None]]:
        """Announce a submission that is being read; see ``Batches.announce``."""
        return self._submissions.announce(board)

    async def submit(
        self, board: Board, request: SubmissionRequest, come: Callable[[], None]
    ) -> SubmissionAnswer:
        """Answer a submission; one that is scored quickly together with others to its board."""
        come()
        predictions = request.incoming.submission.read
        if predictions.size > _MAX_BATCHED or predictions.dtype.kind == "T":
            return await self.run_in_thread(board.submit, *request, write=True)
        return await self._submissions.call(board, request)

    def _submit_all(
        self,
        board: Board,
        requests: list[SubmissionRequest],
        let_next_start: Callable[[], None],
    ) -> list[SubmissionAnswer | Exception]:
        if self.boards.storage.reads_ahead:  # a server's commit is short, and its workers compete
            return board.submit_all(requests)
        return board.submit_all(requests, let_next_start)

    async def authorize_upload(
        self, slug: str, request: Request, work: Callable[..., Result], *arguments: object
    ) -> Result:
        """Call a function that authorizes a request to a board in a thread, after others."""
        work = functools.partial(work, request, slug, *arguments)
        result: Result = await self._authorizations.call(slug, _Authorization(request, work))
        return result

    def _authorize_all(
        self, slug: str, calls: list[_Authorization], _: Callable[[], None]
    ) -> list[Any]:
        reading: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        if self.boards.storage.reads_ahead:
            hashes = [self.authenticator.token_hash(call.request) for call in calls]
            reading = self.boards.read_ahead(slug, hashes)
        with reading:
            return [_attempt(call.work) for call in calls]

    async def read_together(self, key: Hashable, read: Callable[[], Result]) -> Result:
        """Return what ``read`` returns in a thread; calls with one key that wait share one reading.

        So the result must depend on nothing but the key and the database.
        """
        result: Result = await self._public_reads.call(key, read)
        return result

    async def run_in_thread(
        self, work: Callable[..., Result], *arguments: object, write: bool = False
    ) -> Result:
        """Call a function that may wait for a database or a disk in a thread.

        ``write`` uses other threads, so that waiting for the database's writer blocks no reader.
        """
        threads = self._writers if write else self._threads
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, work, *arguments)
        except OSError as error:
            raise _disk_error(error) from error


class ThreadedRoute(APIRoute):
    """A route whose handler runs in a thread of the server's pool, unless it is a coroutine.

    FastAPI would run it in a thread of anyio, which cannot be abandoned when the server stops.
    Valid parameters of paths, queries and headers are read here, because FastAPI takes a third of
    the event loop's time for that. It reads bodies and forms, and words what is invalid.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **settings: Any) -> None:
        if not inspect.iscoroutinefunction(endpoint):
            endpoint = _run_in_thread(endpoint)
        super().__init__(path, endpoint, **settings)
        needed = self.dependant
        self._fields = (needed.path_params, needed.query_params, needed.header_params)
        self._reads_parameters = not (
            needed.dependencies or needed.body_params or needed.cookie_params
        )
        self._defaults = {
            field.name: field.default
            for fields in self._fields
            for field in fields
            if not field.field_info.is_required()
        }
        self._through_fastapi, self.app = self.app, self._answer

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        self.check(request)
        parameters = self._read_parameters(request)
        if parameters is None:
            await self._through_fastapi(scope, receive, send)
            return
        response: Response = await self.endpoint(request=request, **parameters)
        await response(scope, receive, send)

    def check(self, request: Request) -> None:
        """Refuse a request by its header, before its parameters and its body are read."""

    def _read_parameters(self, request: Request) -> dict[str, Any] | None:
        """Return the handler's parameters; None if one is invalid, or not read here."""
        if not self._reads_parameters:
            return None
        sources = (
            request.path_params,
            request.query_params if request.scope["query_string"] else _NOTHING,
            request.headers,
        )
        parameters = dict(self._defaults)
        for source, fields in zip(sources, self._fields, strict=True):
            for field in fields:
                text = source.get(field.alias)
                if text is not None:
                    parameters[field.name], errors = field.validate(text)
                    if errors:
                        return None
                elif field.name not in parameters:
                    return None
        return parameters


def _run_in_thread(handler: Callable[..., Response]) -> Callable[..., Awaitable[Response]]:
    @functools.wraps(handler)
    async def run(request: Request, **parameters: Any) -> Response:
        work = functools.partial(handler, request, **parameters)
        return await get_context(request).run_in_thread(work)

    return run


class ApiRoute(ThreadedRoute):
    """A route that checks headers and parameters before it reads the body."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **settings: Any) -> None:
        super().__init__(path, endpoint, **settings)
        self._offered = tuple(self._media_types())
        self._known = {parameter.alias for parameter in self.dependant.query_params}

    def check(self, request: Request) -> None:
        """Refuse media types, query parameters and JSON that the route does not take."""
        accept = request.headers.get("accept", "*/*")
        if "*/*" not in accept and not _accepts(accept, self._offered):
            message = f"Available as {' or '.join(self._offered)}."
            raise RequestRefused(406, "not_acceptable", message)
        if request.scope["query_string"]:
            _check_query(request, self._known)
        if self.body_field is not None:
            _check_json(request)

    def _media_types(self) -> list[str]:
        """Return the response media types of this route."""
        extra: dict[str, Any] = self.openapi_extra or {}
        types: list[str] = extra.get("x-types", ["application/json"])
        return types


def _check_query(request: Request, known: set[str]) -> None:
    """Refuse unknown parameters: a typo would change what is done."""
    names = [name for name, _ in request.query_params.multi_items()]
    if len(set(names)) != len(names) or not known.issuperset(names):
        listed = f"only {' and '.join(sorted(known))}, each once" if known else "no parameters"
        raise RequestRefused(422, "invalid", f"This takes {listed}.")


def _check_json(request: Request) -> None:
    media_type, _, parameters = request.headers.get("content-type", "").partition(";")
    charset = parameters.partition("charset=")[2].split(";")[0].strip(' "').lower()
    has_body = {"content-type", "transfer-encoding", "content-length"} & set(request.headers)
    if not has_body or request.headers.get("content-length") == "0":
        return  # no body: FastAPI checks whether one is needed
    if media_type.strip().lower() != "application/json" or charset not in {"", "utf-8"}:
        raise RequestRefused(415, "content_type", "Send this as application/json.")


def _accepts(accept: str, offered: tuple[str, ...]) -> bool:
    for item in accept.split(","):
        kind, *parameters = [part.strip().lower() for part in item.split(";")]
        if any(
            part.replace(" ", "").startswith("q=0") and not part.strip("q=0. ")
            for part in parameters
        ):
            continue
        if any(kind in {offer, f"{offer.partition('/')[0]}/*"} for offer in offered):
            return True
        if kind == "*/*":
            return True
    return False


def needs_token(request: Request) -> bool:
    """Tell whether the route of a request is described as one that needs a token."""
    extra = getattr(request.scope.get("route"), "openapi_extra", None) or {}
    return extra.get("security") is PRIVATE


def get_context(request: Request) -> ServerContext:
    """Return the context of a request's application."""
    context: ServerContext = request.app.state.context
    return context


def open_board(request: Request, slug: str, *, csrf_checked: bool = False) -> tuple[Board, Caller]:
    """Return a board and the authenticated caller. Reads the database: call it in a thread."""
    context = get_context(request)
    board = _open_visible(context, request, slug)  # before the token: which boards are is public
    return board, context.authenticator.authenticate(request, slug, csrf_checked=csrf_checked)


def open_page(request: Request, slug: str) -> tuple[Board, Caller]:
    """Return a board and the caller of a page; an invalid session counts as the public."""
    context = get_context(request)
    board = _open_visible(context, request, slug)
    return board, context.authenticator.authenticate_visitor(request, slug)


def _open_visible(context: ServerContext, request: Request, slug: str) -> Board:
    """Return a board; one for members only does not exist for others.

    For a board that does not exist the same is done, so that it takes as long. A wrong token is not
    counted, as it is not where there is no board.
    """
    board = context.boards.open_if_public(slug)
    if board is None:
        credentials = context.authenticator.read_credentials(request)
        try:
            caller = context.authenticator.resolve(credentials, slug)
        except InvalidToken:
            caller = NOBODY
        if caller.role == Role.PUBLIC:
            raise NotFound("There is no such board.")
        board = context.boards.open(slug)
    return board


def log_erasure(request: Request, board: str, team: str | None, person: int | None = None) -> None:
    """Log which team or person was erased: by id and number, never by name."""
    get_context(request).log.write(
        "erased",
        request=request.scope["ladderboard.request"],
        board=board,
        team=team,
        person=person,
    )


def is_public(request: Request) -> bool:
    """Tell whether a request has no credentials, so that its response may be shared."""
    return "authorization" not in request.headers and SESSION_COOKIE not in request.cookies


def make_tag(body: bytes) -> str:
    """Return the ETag of a body."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def make_response(
    request: Request,
    content: Any,
    status: int = 200,
    *,
    media_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
    tag: str | None = None,
) -> Response:
    """Return a response; a public one has an ETag, the hash of its body."""
    body = content if isinstance(content, bytes) else _JSON.encode(content).encode("ascii")
    all_headers = dict(headers or {})
    if request.method != "GET" or status != 200 or not is_public(request):
        all_headers["Cache-Control"] = "private, no-store"
        return Response(body, status, all_headers, media_type)
    tag = make_tag(body) if tag is None else tag
    all_headers |= {"Cache-Control": "public, no-cache", "ETag": tag}
    if_none_match = request.headers.get("if-none-match", "")
    known_tags = {tag_text.strip().removeprefix("W/") for tag_text in if_none_match.split(",")}
    if known_tags & {tag, "*"}:
        return Response(b"", 304, all_headers)
    return Response(body, 200, all_headers, media_type)
