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

from ladderboard._formatting import format_decimals, format_time
from ladderboard.board._access import PUBLIC, check_permission
from ladderboard.board._model import (
    DELIVERY,
    WEBHOOK,
    DeliveryRow,
    ListedWebhook,
    WebhookEvent,
    WebhookFormat,
    WebhookRow,
    make_document,
)
from ladderboard.board._repository import (
    claim_delivery,
    count_webhooks,
    delete_deliveries_before,
    delete_webhook,
    find_team,
    insert,
    is_subscribed,
    is_test_waiting,
    is_unqueued,
    list_subscribed_slugs,
    list_webhooks,
    queue_deliveries,
    read_board,
    read_webhook,
    record_attempt,
)
from ladderboard.errors import Conflict, InvalidSetting, LadderboardError, NotAllowed, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.board._access import Caller
    from ladderboard.board._board import BoardContext
    from ladderboard.board._boards import Board
    from ladderboard.board._model import BoardRow
    from ladderboard.board._repository import DueDelivery
    from ladderboard.ledger import BookTransaction, ReadView, Storage

    OpenBoard = Callable[[str], Board]

EVENTS: tuple[str, ...] = get_args(WebhookEvent)
"""The events that can be subscribed to. Besides, ``test`` is sent to one webhook when asked for."""
FORMATS: tuple[str, ...] = get_args(WebhookFormat)
MAX_WEBHOOKS = 1_000
"""Subscriptions of a board."""
MAX_URL_LENGTH = 2_000
DEADLINE_SECONDS = 86_400
"""How long before a deadline it counts as near."""
CLAIM_SECONDS = 60
"""A claimed delivery without a result after this time is due again: its server crashed."""
RETRY_SECONDS = (10, 60, 300, 1_800, 7_200, 21_600, 43_200)
"""How long to wait after each failed attempt; the attempt after the last wait is final."""
_RESULT_SECONDS = 30 * 86_400  # for which a delivery with a result is stored
_RESULT_ROWS = 10
_SECRET_CONTEXT = "webhook {}"  # noqa: S105 - what a secret is encrypted for
_DEADLINE_EVENT = "deadline_near"
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
            count, last = count_webhooks(view)
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
            insert(view, WEBHOOK, row)
            return WebhookWithSecret(number, url, format_secret(secret))

        return self._board.queue.run(subscribe)

    def list(self, caller: Caller) -> list[dict[str, Any]]:
        """Return the subscriptions, each with its last result."""
        check_permission(caller, "run")
        with self._board.reading() as view:
            webhooks = list_webhooks(view)
        return [
            make_document(ListedWebhook, row, events=row.events.split(), **status)
            for row, status in webhooks
        ]

    def remove(self, caller: Caller, number: int) -> None:
        """End a subscription; its waiting deliveries are not sent."""
        check_permission(caller, "run")

        def delete(transaction: BookTransaction) -> None:
            read_webhook(transaction.view, number)
            delete_webhook(transaction.view, number)

        self._board.queue.run(delete)

    def test(self, caller: Caller, number: int) -> None:
        """Send a test to one receiver."""
        check_permission(caller, "run")
        test_id = _event_id(self._board)

        def queue_test(transaction: BookTransaction) -> None:
            view, now = transaction.view, transaction.now
            read_webhook(view, number)
            if is_test_waiting(view, number):
                return
            row = DeliveryRow(webhook=number, id=test_id, event="test", time=now, due=now)
            insert(view, DELIVERY, row)

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


def queue_event(
    board: BoardContext,
    transaction: BookTransaction,
    event: str,
    *,
    team: str | None = None,
    event_id: str | None = None,
) -> None:
    """Queue an event for its subscriptions, in the transaction that makes it.

    ``team`` is the id of the team that it is about; an event with the same id is queued once.
    """
    view = transaction.view
    if is_subscribed(view, event):
        queue_deliveries(view, event, event_id or _event_id(board), transaction.now, team)


# What a server does: claim what is due, send it, and record the results.


class Delivery(NamedTuple):
    """A delivery that was claimed: where it goes, and what it says."""

    key: tuple[int, int, str]
    attempts: int
    url: str
    headers: dict[str, str]
    body: bytes


class DeliveryResult(NamedTuple):
    """The result of an attempt; ``final`` if another attempt could not change it."""

    delivery: Delivery
    delivered: bool
    result: str
    final: bool = False


def claim_and_sign_deliveries(
    storage: Storage, open_board: OpenBoard, due: list[DueDelivery], now: int, url: str | None
) -> list[Delivery]:
    """Claim deliveries for this process, and return those that no other process has claimed.

    ``url`` is the server's public address, for links.
    """
    if not due:
        return []
    with storage.write_tables() as view:
        claimed = [
            (item.key, claim)
            for item in due
            if (claim := claim_delivery(view, item, now, now + CLAIM_SECONDS)) is not None
        ]
    contents: dict[tuple[int, str], dict[str, Any]] = {}
    deliveries = []
    for key, (delivery, target, kind, encrypted, slug) in claimed:
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
    """Record the results of attempts; failed ones are due again, up to a number of attempts."""
    if not results:
        return
    with storage.write_tables() as view:
        for delivery, delivered, result, final in results:
            due = None
            if not delivered and not final and delivery.attempts <= len(RETRY_SECONDS):
                due = now + RETRY_SECONDS[delivery.attempts - 1]
            attempt = delivery.key, delivery.attempts
            record_attempt(view, *attempt, due, now, result[:200], delivered)


def announce_deadlines(storage: Storage, open_board: OpenBoard) -> None:
    """Queue the deadlines that are near, each once; call it every minute or so."""
    for slug in list_subscribed_slugs(storage.query_tables, _DEADLINE_EVENT):
        board = open_board(slug)
        with board.reading() as view:
            now = board.book.environment.current_time(view)
            deadline = board.rules_of(read_board(view)).deadline
            if deadline is None or not deadline - DEADLINE_SECONDS <= now < deadline:
                continue
            # The same in every process, so that the deadline is queued once.
            event_id = hashlib.sha256(f"{board.book.name} {deadline}".encode()).hexdigest()[:32]
            missing = is_unqueued(view, _DEADLINE_EVENT, event_id)
        if missing:
            board.queue.run(partial(queue_event, board, event=_DEADLINE_EVENT, event_id=event_id))


def delete_old_deliveries(storage: Storage, now: int) -> None:
    """Forget deliveries that had their result a month ago."""
    with storage.write_tables() as view:
        delete_deliveries_before(view, now - _RESULT_SECONDS)


# What a delivery says.


def describe_event(board: Board, delivery: DeliveryRow, url: str | None) -> dict[str, Any]:
    """Return what a delivery says: only what the public sees of the board now.

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
    page = None if url is None else f"{url.rstrip('/')}/boards/{board.slug}"
    content["board"] = {"slug": board.slug, "title": rules.title, "url": page}
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
        for item in rows:
            score = format_decimals(item["display"], shown.digits)
            text += f"\n{item['rank']}. {item['team']}: {shown.name} {score}"
    return {**content, "text": f"{text}\n{page}" if page else text}


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
