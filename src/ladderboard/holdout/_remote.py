"""A guard that is kept by another process, usually under another user."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import urlencode

from ladderboard import _settings
from ladderboard.bounds import Certificate
from ladderboard.errors import GuardUnreachable, InvalidInput
from ladderboard.holdout._payload import encode_predictions
from ladderboard.holdout._reply import Reply
from ladderboard.holdout._status import (
    LadderStatus,
    Meter,
    QuestionRecord,
    Status,
    Takes,
    check_ladder_name,
    takes_of,
)
from ladderboard.holdout._transport import GuardTransport
from ladderboard.ledger import ChainState
from ladderboard.mechanisms import Mechanism
from ladderboard.mechanisms import mechanism as mechanism_of

if TYPE_CHECKING:
    from types import TracebackType

_ROOT = "/api/v1/guard"
_TIMEOUT = 300.0
_HASH = re.compile("[0-9a-f]{64}")


class RemoteHoldout:
    """A guard behind ``ladderboard guard serve``; made by ``Holdout.connect``.

    It is asked as a :class:`Holdout` is, and raises what that would raise; ``GuardUnreachable``
    where nobody answers. Files and labels stay with the one who serves. Safe with threads and
    after a fork; it can be pickled.

    Parameters
    ----------
    url
        ``http://127.0.0.1:8765`` or ``unix:/path/of.sock``.
    token
        Where the guard wants one; from the environment's LADDERBOARD_TOKEN if not given.
    timeout
        Seconds to wait for an answer.
    line, ladder
        Or a line that is there already, and the name of a ladder.
    """

    def __init__(
        self,
        url: str = "",
        *,
        token: str | None = None,
        timeout: float = _TIMEOUT,
        transport: GuardTransport | None = None,
        ladder: str = "",
    ) -> None:
        self._transport = GuardTransport(url, token, timeout) if transport is None else transport
        self._name = ladder
        self._takes: Takes | None = None

    def ask(
        self,
        predictions: Any,
        *,
        training: float | None = None,
        format: str | None = None,  # noqa: A002 - the word people use
        ladder: str = "",
    ) -> Reply:
        """Ask about a model by its predictions, as ``Holdout.ask`` does.

        Should the connection break, the question is sent once more. It is not asked twice: the
        reply may then say that the same predictions were asked before.
        """
        if training is not None:
            training = _settings.number("training", training, at_least=0, at_most=1)
        if ladder:
            check_ladder_name(ladder)
        data, kind = encode_predictions(predictions, format)
        name = ladder or self._name
        query = _query(ladder=name, training=None if training is None else repr(training))
        said = self._transport.post(f"{_ROOT}/questions{query}", data, kind)
        with _Understood(self._transport.url):
            bound = Certificate.read(said["bound"])
            return Reply(
                released=_maybe(said["released"]),
                improved=bool(said["improved"]),
                question=int(said["question"]),
                remaining=int(said["remaining"]),
                reason=_sentence(said["reason"]),
                score=_maybe(said["score"]),
                ladder=str(said["ladder"]),
                again=bool(said["again"]),
                certify=lambda: bound,
            )

    def ladder(self, name: str) -> RemoteHoldout:
        """Return another ladder on the same holdout and budget; its first question starts it."""
        check_ladder_name(name)
        other = type(self)(transport=self._transport, ladder=name)
        other._takes = self._takes  # noqa: SLF001 - of its own kind
        return other

    @property
    def ladders(self) -> int:
        """How many ladders there may be."""
        said = self._meter()
        with _Understood(self._transport.url):
            return int(said["ladders"])

    def check_ladder(self, name: str = "") -> None:
        """Raise ``TooManyLadders`` if a question on a ladder, by default this one, would."""
        if name:
            check_ladder_name(name)
        self._transport.get(f"{_ROOT}/ladder{_query(ladder=name or self._name)}")

    @property
    def takes(self) -> Takes:
        """What it is asked with, predictions or scores; it never changes, and is asked for once."""
        if self._takes is None:
            opening = self.status().opening
            with _Understood(self._transport.url):
                self._takes = takes_of(opening)
        return self._takes

    @property
    def remaining(self) -> int:
        """How many questions are left, over all ladders."""
        said = self._meter()
        with _Understood(self._transport.url):
            return int(said["remaining"])

    @property
    def released(self) -> float | None:
        """The estimate that stands on this ladder; 1 before the first question."""
        said = self._meter()
        with _Understood(self._transport.url):
            return _maybe(said["released"])

    @property
    def certificate(self) -> Certificate:
        """What can be promised now about the best model asked on this ladder."""
        said = self._meter()
        with _Understood(self._transport.url):
            return Certificate.read(said["bound"])

    @property
    def head(self) -> str:
        """The hash of the ledger's last entry; keep it, and nobody can rewrite what came before."""
        said = self._meter()
        with _Understood(self._transport.url):
            return _hash(said["head"])

    def summary(self) -> GuardSummary:
        """Return the little that changes with every question, without the history."""
        said = self._meter()
        with _Understood(self._transport.url):
            return GuardSummary.read(said)

    @property
    def meter(self) -> Meter:
        """How many questions are allowed, were used and are left."""
        return self.status().meter

    def status(self) -> RemoteStatus:
        """Return everything that is public, with the history."""
        said = self._transport.get(_ROOT)
        with _Understood(self._transport.url):
            return RemoteStatus.read(said)

    def _meter(self) -> dict[str, Any]:
        return self._transport.get(f"{_ROOT}/meter{_query(ladder=self._name)}")

    def close(self) -> None:
        """Close idle connections; asking opens them again."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        named = f", ladder={self._name!r}" if self._name else ""
        return f"RemoteHoldout({self._transport.url!r}{named})"

    def __reduce__(self) -> tuple[Any, ...]:
        transport = self._transport
        return _reconnect, (
            type(self),
            transport.url,
            transport.given,
            transport.timeout,
            self._name,
        )


@dataclass(frozen=True)
class GuardSummary:
    """Where a guard stands: the budget over all ladders, and the value of one of them."""

    ladder: str
    released: float | None
    bound: Certificate
    questions: int
    asked: int
    charged: int
    remaining: int
    closed: bool

    @classmethod
    def read(cls, said: dict[str, Any]) -> GuardSummary:
        """Return what a guard said in short."""
        return cls(
            ladder=str(said["ladder"]),
            released=_maybe(said["released"]),
            bound=Certificate.read(said["bound"]),
            questions=int(said["questions"]),
            asked=int(said["asked"]),
            charged=int(said["charged"]),
            remaining=int(said["remaining"]),
            closed=bool(said["closed"]),
        )


@dataclass(frozen=True)
class RemoteStatus(Status):
    """A status that came over the line: the certificate is the one that the guard wrote."""

    bound: Certificate

    @property
    def certificate(self) -> Certificate:
        """What can be promised about the best model asked on any ladder."""
        return self.bound

    @classmethod
    def read(cls, said: dict[str, Any]) -> RemoteStatus:
        """Return the status that a guard described."""
        opening = dict(said["opening"])
        at = ChainState(
            entries=int(said["entries"]),
            head=bytes.fromhex(said["head"]),
            time=int(said["time"]),
            asked=int(said["asked"]),
            changes=int(said["changes"]),
            ladders=len(said["ladders"]),
            lost=int(said["lost"]),
            charged=int(said["charged"]),
            closed=bool(said["closed"]),
        )
        return cls(
            opening=opening,
            meter=Meter(_mechanism(opening["mechanism"]), dict(opening["rules"]), at),
            ladders=tuple(LadderStatus(**each) for each in said["ladders"]),
            history=tuple(QuestionRecord(**each) for each in said["history"]),
            commitment=_hash(said["commitment"]),
            head=_hash(said["head"]),
            bound=Certificate.read(said["bound"]),
        )


@dataclass(frozen=True)
class _Foreign(Mechanism):
    """A mechanism that only the guard has; here it can be named, and nothing else."""

    name: ClassVar[str] = "foreign"
    described: dict[str, Any]

    def describe(self) -> dict[str, Any]:
        """Return what the guard's own said."""
        return self.described

    def begin(self, setup: Any, draws: Any) -> Any:
        """It cannot be started here."""
        raise NotImplementedError

    def advance(self, setup: Any, state: Any, observation: Any, draws: Any) -> Any:
        """Nor asked."""
        raise NotImplementedError


def _mechanism(described: dict[str, Any]) -> Mechanism:
    try:
        return mechanism_of(described)
    except InvalidInput:
        return _Foreign(described)


class _Understood:
    """Turns an answer that is not a guard's into a sentence."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, KeyError | TypeError | ValueError):
            raise GuardUnreachable(f"What answers at {self._url} is not a guard of ours.") from None


def _hash(value: Any) -> str:
    """Return a hash; anything else is no guard's, and may be meant for a terminal."""
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise ValueError
    return value


def _sentence(value: Any) -> str:
    """Return a sentence, which a guard writes without control characters."""
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError
    return value


def _maybe(value: Any) -> float | None:
    return None if value is None else float(value)


def _query(**given: str | None) -> str:
    kept = {name: each for name, each in given.items() if each}
    return f"?{urlencode(kept)}" if kept else ""


def _reconnect(
    cls: type[RemoteHoldout], url: str, token: str | None, timeout: float, ladder: str
) -> RemoteHoldout:
    return cls(url, token=token, timeout=timeout, ladder=ladder)
