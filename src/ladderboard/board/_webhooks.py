"""Webhooks: subscriptions to a board's events, the queue of deliveries, and what they say.

An event is queued in the transaction that makes it, as a row for each subscription. Servers claim
rows that are due, send them, and record the results. What a delivery says is read when it is sent,
as the public sees the board then. Subscriptions are not dumped: a copy must not call people again.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, get_args
from urllib.parse import urlsplit

from ladderboard._formatting import format_time
from ladderboard.board._access import PUBLIC, check_permission
from ladderboard.board._model import (
    DeliveryRow,
    ListedWebhook,
    Table,
    WebhookEvent,
    WebhookFormat,
    WebhookRow,
    make_document,
)
from ladderboard.board._repository import find_team, insert, read_board
from ladderboard.errors import Conflict, InvalidSetting, LadderboardError, NotAllowed, NotFound
from ladderboard.ledger import SchemaModule

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.board._access import Caller
    from ladderboard.board._board import BoardContext
    from ladderboard.board._boards import Board
    from ladderboard.board._model import BoardRow
    from ladderboard.ledger import BookTransaction, ReadView, Storage

    OpenBoard = Callable[[str], Board]

EVENTS: tuple[str, ...] = get_args(WebhookEvent)
"""The events that can be subscribed to. Besides, ``test`` is sent to one webhook when asked for."""
FORMATS: tuple[str, ...] = get_args(WebhookFormat)
MAX_WEBHOOKS = 1_000
"""Subscriptions of a board."""
MAX_URL_LENGTH = 2_000
DEADLINE_SECONDS = 86_400
"""How long before the deadline it is near."""
CLAIM_SECONDS = 60
"""A delivery that was claimed and has no result after so long is due again: its server crashed."""
RETRY_SECONDS = (10, 60, 300, 1_800, 7_200, 21_600, 43_200)
"""How long to wait after each failed attempt; after one more the delivery has failed."""
_KEPT_SECONDS = 30 * 86_400  # of deliveries with a result
_RESULT_ROWS = 10
_SECRET_CONTEXT = "webhook {}"  # noqa: S105 - what a secret is encrypted for
_SENTENCES = {
    "registration_waiting": "A registration waits for the organiser.",
    "registration_approved": "A registration was approved{team}.",
    "deadline_near": "The deadline is {deadline}.",
    "paused": "The board is paused.",
    "closed": "The board is closed.",
    "results": "The final ranking is out.",
    "test": "This is a test.",
}
_MARKDOWN = re.compile(r"([\\*_~`|>\[\]()#@<:-])")


_WEBHOOK = Table("webhook", WebhookRow, ("number",), "PRIMARY KEY (book, number)")
_DELIVERY = Table("delivery", DeliveryRow, ("webhook", "id"), "PRIMARY KEY (book, webhook, id)")
WEBHOOK_SCHEMA = SchemaModule(
    "webhook",
    (
        (
            _WEBHOOK.create(),
            _DELIVERY.create(),
            "CREATE INDEX {prefix}delivery_due ON {on}delivery (due)",
        ),
    ),
)


class WebhookWithSecret(NamedTuple):
    """A new subscription and the secret that its deliveries are signed with, shown once."""

    number: int
    url: str
    secret: str


class Webhooks:
    """The subscriptions of one board."""

    def __init__(self, board: BoardContext) -> None:
        self._board = board

    def add(
        self, caller: Caller, url: str, events: tuple[str, ...] = EVENTS, kind: str = "json"
    ) -> WebhookWithSecret:
        """Subscribe a receiver to events; return the secret that deliveries are signed with."""
        check_permission(caller, "run")
        url = check_url(url)
        if kind not in FORMATS:
            raise InvalidSetting("The format of a webhook is json, slack or discord.")
        wanted = [event for event in EVENTS if event in events]
        if not wanted or set(events) - set(EVENTS):
            raise InvalidSetting(f"A webhook needs events out of {', '.join(EVENTS)}.")
        book = self._board.book
        secret = book.environment.salt()

        def subscribe(transaction: BookTransaction) -> WebhookWithSecret:
            view = transaction.view
            count, last = view.query(_COUNT_WEBHOOKS, (view.book_id,))[0]
            if count >= MAX_WEBHOOKS:
                raise Conflict(f"A board has at most {MAX_WEBHOOKS:,} webhooks.")
            number = last + 1
            row = WebhookRow(
                number=number,
                url=url,
                format=kind,
                events=f" {' '.join(wanted)} ",
                secret=book.encryption.encrypt(_SECRET_CONTEXT.format(number), secret),
                made=transaction.now,
            )
            insert(view, _WEBHOOK, row)
            return WebhookWithSecret(number, url, format_secret(secret))

        return self._board.queue.run(subscribe)

    def list(self, caller: Caller) -> list[dict[str, Any]]:
        """Return the subscriptions, each with its last result."""
        check_permission(caller, "run")
        with self._board.reading() as view:
            rows = view.query(_SELECT_WEBHOOKS, (view.book_id,))
            waiting = dict(view.query(_COUNT_WAITING, (view.book_id,)))
            tried = {row[0]: row[1:] for row in view.query(_SELECT_LAST, (view.book_id,))}
        webhooks = []
        for row in map(_WEBHOOK.read, rows):
            last, delivered, result = tried.get(row.number, (None, None, ""))
            listed = make_document(
                ListedWebhook,
                row,
                events=row.events.split(),
                last=last,
                delivered=None if delivered is None else delivered != 0,
                result=result,
                waiting=waiting.get(row.number, 0),
            )
            webhooks.append(listed)
        return webhooks

    def remove(self, caller: Caller, number: int) -> None:
        """End a subscription; what waits for it is not sent."""
        check_permission(caller, "run")

        def delete(transaction: BookTransaction) -> None:
            view = transaction.view
            _read_webhook(view, number)
            for statement in _DELETE_WEBHOOK:
                view.execute(statement, (view.book_id, number))

        self._board.queue.run(delete)

    def test(self, caller: Caller, number: int) -> None:
        """Send a test to one receiver."""
        check_permission(caller, "run")
        test_id = _event_id(self._board)

        def queue_test(transaction: BookTransaction) -> None:
            view, now = transaction.view, transaction.now
            _read_webhook(view, number)
            if view.query(_COUNT_TESTS, (view.book_id, number))[0][0]:
                return  # one is on its way
            row = DeliveryRow(webhook=number, id=test_id, event="test", time=now, due=now)
            insert(view, _DELIVERY, row)

        self._board.queue.run(queue_test)


def check_url(url: str) -> str:
    """Return the URL of a receiver, or refuse it; its addresses are checked when it is called."""
    try:
        parts = urlsplit(url)
        valid = (
            parts.scheme in {"http", "https"}
            and bool(parts.hostname)
            and parts.username is None
            and parts.password is None
            and parts.port != 0
            and not parts.fragment
        )
    except ValueError:
        valid = False
    if not valid or len(url) > MAX_URL_LENGTH or not url.isascii() or not url.isprintable():
        raise InvalidSetting(
            "The URL of a webhook must be like https://example.org/hook, in ASCII, with neither "
            f"a password nor a fragment, of at most {MAX_URL_LENGTH:,} characters."
        )
    if " " in url:
        raise InvalidSetting("The URL of a webhook must have no spaces.")
    return url


def _event_id(board: BoardContext) -> str:
    return board.book.environment.salt()[-16:].hex()


def _read_webhook(view: ReadView, number: int) -> WebhookRow:
    rows = view.query(_SELECT_WEBHOOK, (view.book_id, number))
    if not rows:
        raise NotFound("There is no such webhook.")
    return _WEBHOOK.read(rows[0])


_SELECT_WEBHOOKS = _WEBHOOK.select("WHERE book = ? ORDER BY number")
_SELECT_WEBHOOK = _WEBHOOK.select("WHERE book = ? AND number = ?")
_COUNT_WEBHOOKS = "SELECT COUNT(*), COALESCE(MAX(number), 0) FROM main.webhook WHERE book = ?"
_COUNT_WAITING = (
    "SELECT webhook, COUNT(*) FROM main.delivery WHERE book = ? AND due IS NOT NULL "
    "GROUP BY webhook"
)
_COUNT_TESTS = (
    "SELECT COUNT(*) FROM main.delivery WHERE book = ? AND webhook = ? AND event = 'test' "
    "AND due IS NOT NULL"
)
_SELECT_LAST = (
    "SELECT webhook, last, delivered, result FROM ("
    "SELECT webhook, last, delivered, result, ROW_NUMBER() OVER "
    "(PARTITION BY webhook ORDER BY last DESC, time DESC, id) AS place "
    "FROM main.delivery WHERE book = ? AND last IS NOT NULL AND result <> '') AS tried "
    "WHERE place = 1"
)
_DELETE_WEBHOOK = (
    "DELETE FROM main.delivery WHERE book = ? AND webhook = ?",
    "DELETE FROM main.webhook WHERE book = ? AND number = ?",
)
_HAS_SUBSCRIPTION = "SELECT 1 FROM main.webhook WHERE book = ? AND events LIKE ? LIMIT 1"
_QUEUE_EVENT = (
    "INSERT INTO main.delivery (book, webhook, id, event, team, time, attempts, due, last, result, "
    "delivered) SELECT book, number, ?, ?, ?, ?, 0, ?, NULL, '', 0 FROM main.webhook "
    "WHERE book = ? AND events LIKE ? ON CONFLICT DO NOTHING"
)


def queue_event(
    board: BoardContext, transaction: BookTransaction, event: str, *, team: str | None = None
) -> None:
    """Queue an event for its subscriptions, in the transaction that makes it.

    ``team`` is the id of the team that it is about.
    """
    if transaction.view.query(_HAS_SUBSCRIPTION, (transaction.view.book_id, f"% {event} %")):
        _insert_event(transaction, _event_id(board), event, team)


def _insert_event(
    transaction: BookTransaction, event_id: str, event: str, team: str | None = None
) -> None:
    book, now = transaction.view.book_id, transaction.now
    values = (event_id, event, team, now, now, book, f"% {event} %")
    transaction.view.execute(_QUEUE_EVENT, values)


# What a server does: claim what is due, send it, and record the results.


class Delivery(NamedTuple):
    """A delivery that was claimed: where it goes, and what it says."""

    key: tuple[int, int, str]
    attempts: int
    url: str
    headers: dict[str, str]
    body: bytes


class DeliveryResult(NamedTuple):
    """What came of an attempt; ``final`` if another would bring nothing else."""

    delivery: Delivery
    delivered: bool
    result: str
    final: bool = False


class DueDelivery(NamedTuple):
    """A delivery that is due, by its key, and where it goes."""

    key: tuple[int, int, str]
    due: int
    url: str


_SELECT_DUE = (
    "SELECT d.book, d.webhook, d.id, d.due, w.url FROM main.delivery d "
    "JOIN main.webhook w ON w.book = d.book AND w.number = d.webhook "
    "WHERE d.due <= ? AND d.attempts < 20 ORDER BY d.due, d.time LIMIT ?"
)
# Of several servers that try, one changes the row.
_CLAIM = (
    "UPDATE main.delivery SET due = ?, last = ?, attempts = attempts + 1 "
    "WHERE book = ? AND webhook = ? AND id = ? AND due = ?"
)
_SELECT_CLAIMED = _DELIVERY.select(
    "JOIN main.webhook w ON w.book = d.book AND w.number = d.webhook "
    "JOIN main.board b ON b.book = d.book WHERE d.book = ? AND d.webhook = ? AND d.id = ?",
    alias="d",
    extra="w.url, w.format, w.secret, b.slug",
)
_RECORD_RESULT = (
    "UPDATE main.delivery SET due = ?, last = ?, result = ?, delivered = ? "
    "WHERE book = ? AND webhook = ? AND id = ? AND attempts = ? AND due IS NOT NULL"
)
_DELETE_OLD = "DELETE FROM main.delivery WHERE due IS NULL AND time < ?"
_SELECT_DEADLINE_SLUGS = (
    "SELECT slug FROM main.board b WHERE b.status IN ('open', 'paused') AND EXISTS "
    "(SELECT 1 FROM main.webhook w WHERE w.book = b.book AND w.events LIKE ?)"
)
_COUNT_UNQUEUED = (
    "SELECT COUNT(*) FROM main.webhook w WHERE w.book = ? AND w.events LIKE ? AND NOT EXISTS "
    "(SELECT 1 FROM main.delivery d WHERE d.book = w.book AND d.webhook = w.number AND d.id = ?)"
)
_DEADLINE = "% deadline_near %"


def list_due_deliveries(storage: Storage, now: int, limit: int) -> list[DueDelivery]:
    """Return deliveries that are due, those that have waited longest first."""
    rows = storage.query_tables(_SELECT_DUE, (now, limit))
    return [DueDelivery((book, webhook, id_), due, url) for book, webhook, id_, due, url in rows]


def claim_deliveries(
    storage: Storage, open_board: OpenBoard, due: list[DueDelivery], now: int, url: str | None
) -> list[Delivery]:
    """Claim deliveries for this process, and return those that no other process has claimed.

    ``url`` is the server's public address, for links.
    """
    if not due:
        return []
    with storage.write_tables() as view:
        claimed = [
            item.key
            for item in due
            if view.execute(_CLAIM, (now + CLAIM_SECONDS, now, *item.key, item.due))
        ]
        rows = [view.query(_SELECT_CLAIMED, key)[0] for key in claimed]
    contents: dict[tuple[int, str], dict[str, Any]] = {}
    deliveries = []
    for key, row in zip(claimed, rows, strict=True):
        target, kind, encrypted, slug = row[-4:]
        delivery = _DELIVERY.read(row)
        try:
            board, known = open_board(slug), (key[0], delivery.id)
            if known not in contents:
                contents[known] = describe_event(board, delivery, url)
            encryption = board.book.encryption
            secret = encryption.decrypt(_SECRET_CONTEXT.format(delivery.webhook), bytes(encrypted))
        except LadderboardError:
            continue  # such as an old copy of a board; it is due again later
        body = encode_body({**contents[known], "webhook": delivery.webhook}, kind)
        headers = {"Content-Type": "application/json", **sign(secret, delivery.id, now, body)}
        deliveries.append(Delivery(key, delivery.attempts, target, headers, body))
    return deliveries


def record_delivery_results(storage: Storage, results: list[DeliveryResult], now: int) -> None:
    """Record what came of attempts; those that failed are due again later, unless too often."""
    if not results:
        return
    with storage.write_tables() as view:
        for delivery, delivered, result, final in results:
            due = None
            if not delivered and not final and delivery.attempts <= len(RETRY_SECONDS):
                due = now + RETRY_SECONDS[delivery.attempts - 1]
            values = (due, now, result[:200], int(delivered), *delivery.key, delivery.attempts)
            view.execute(_RECORD_RESULT, values)


def announce_deadlines(storage: Storage, open_board: OpenBoard) -> None:
    """Queue the deadlines that are near, each once; call it every minute or so."""
    for (slug,) in storage.query_tables(_SELECT_DEADLINE_SLUGS, (_DEADLINE,)):
        board = open_board(slug)
        with board.reading() as view:
            now = board.book.environment.current_time(view)
            deadline = board.rules_of(read_board(view)).deadline
            if deadline is None or not deadline - DEADLINE_SECONDS <= now < deadline:
                continue
            # The same in every process, so that the deadline is queued once.
            event_id = hashlib.sha256(f"{board.book.name} {deadline}".encode()).hexdigest()[:32]
            missing = view.query(_COUNT_UNQUEUED, (view.book_id, _DEADLINE, event_id))[0][0]
        if missing:
            board.queue.run(partial(_insert_event, event_id=event_id, event="deadline_near"))


def delete_old_deliveries(storage: Storage, now: int) -> None:
    """Forget deliveries that had their result a month ago."""
    with storage.write_tables() as view:
        view.execute(_DELETE_OLD, (now - _KEPT_SECONDS,))


# What a delivery says.


def describe_event(board: Board, delivery: DeliveryRow, url: str | None) -> dict[str, Any]:
    """Return what a delivery says: nothing but what the public sees of the board now.

    Of a board for its members only, the public sees nothing.
    """
    event = delivery.event
    with board.reading() as view:
        row = read_board(view)
        team = _public_team(view, row, delivery.team)
    rules = board.rules_of(row)
    content: dict[str, Any] = {
        "id": delivery.id,
        "event": event,
        "time": format_time(delivery.time),
        "board": None,
        "text": "",
    }
    if rules.listing == "members":
        text = _SENTENCES[event].format(team="", deadline="near")
        return {**content, "text": f"A board for its members only: {text}"}
    place = None if url is None else f"{url.rstrip('/')}/boards/{board.slug}"
    content["board"] = {"slug": board.slug, "title": rules.title, "url": place}
    deadline = None if rules.deadline is None else format_time(rules.deadline)
    words = {"team": f": {team['name'] or team['id']}" if team else "", "deadline": deadline}
    text = f"{rules.title}: {_SENTENCES[event].format(**words)}"
    if event == "registration_approved":
        content["team"] = team
    elif event == "deadline_near":
        content["deadline"] = deadline
    elif event == "results":
        content["results"] = rows = _public_results(board)
        shown = rules.final_display
        lines = [
            f"{item['rank']}. {item['team']}: {shown.name} {item['display']:.{shown.digits}f}"
            for item in rows
        ]
        text = "\n".join([text, *lines])
    return {**content, "text": f"{text}\n{place}" if place else text}


def _public_team(view: ReadView, row: BoardRow, team_id: str | None) -> dict[str, Any] | None:
    """Return a team as the public sees it: new teams of hidden and frozen boards do not show."""
    if team_id is None or row.visibility not in {"public", "anonymous"}:
        return None
    try:
        team = find_team(view, team_id)
    except NotFound:
        return None
    if team.disqualified:
        return None
    return {"id": team.id, "name": team.name if row.visibility == "public" else None}


def _public_results(board: Board) -> list[dict[str, Any]]:
    """Return the first teams of the final ranking, as the public sees it."""
    try:
        final = board.as_seen_by(PUBLIC).finals()
    except (NotAllowed, NotFound):
        return []
    rows = [row for row in final["rows"] if row["rank"] is not None]
    return [
        {
            "rank": row["rank"],
            "ranks": row["ranks"],
            "team": row["team"]["name"] or row["team"]["id"],
            "display": row["display"],
        }
        for row in rows[:_RESULT_ROWS]
    ]


def encode_body(content: dict[str, Any], kind: str) -> bytes:
    r"""Return the body of a delivery: our JSON, or what Slack or Discord accept.

    Names are untrusted: none can mention people or a channel, or change the text's format.

    >>> encode_body({"text": "Digits: <!channel> is *paused*"}, "slack")
    b'{"text":"Digits: &lt;!channel&gt; is *paused*","mrkdwn":false}'
    >>> encode_body({"text": "@everyone"}, "discord")
    b'{"content":"\\\\@everyone","allowed_mentions":{"parse":[]}}'
    """
    text = content["text"]
    if kind == "slack":
        escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        content = {"text": escaped, "mrkdwn": False}
    elif kind == "discord":
        # A message has at most 2,000 characters; links stay whole.
        lines = [
            line if _is_link(line) else _MARKDOWN.sub(r"\\\1", line) for line in text.split("\n")
        ]
        content = {"content": "\n".join(lines)[:1_900], "allowed_mentions": {"parse": []}}
    return json.dumps(content, separators=(",", ":")).encode()


def _is_link(line: str) -> bool:
    return line.startswith(("http://", "https://"))


def format_secret(secret: bytes) -> str:
    """Return a secret as people copy it, in the form of standardwebhooks.com."""
    return f"whsec_{base64.b64encode(secret).decode()}"


def sign(secret: bytes, event_id: str, now: int, body: bytes) -> dict[str, str]:
    """Return the headers that sign a delivery: an HMAC over its id, the time and the body.

    >>> secret = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")  # standardwebhooks.com
    >>> event, body = "msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}'
    >>> sign(secret, event, 1614265330, body)["webhook-signature"]
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    signed = b".".join((event_id.encode(), str(now).encode(), body))
    code = base64.b64encode(hmac.digest(secret, signed, "sha256")).decode()
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(now),
        "webhook-signature": f"v1,{code}",
    }
