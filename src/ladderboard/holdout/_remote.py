"""A guard served by another process, usually of another user."""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import urlencode

from ladderboard import _settings
from ladderboard.bounds import Certificate
from ladderboard.errors import GuardUnreachable, InvalidInput
from ladderboard.holdout._payload import encode_predictions
from ladderboard.holdout._reply import Reply, best_interval, metric_interval, metric_value
from ladderboard.holdout._status import (
    InputKind,
    LadderStatus,
    Meter,
    QuestionRecord,
    Status,
    check_ladder_name,
    read_input_kind,
)
from ladderboard.holdout._transport import GuardTransport
from ladderboard.holdout._verdict import OUTCOMES, GateStatus, LookRecord, Verdict
from ladderboard.ledger import ChainState
from ladderboard.mechanisms import Mechanism
from ladderboard.mechanisms import mechanism as mechanism_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.holdout._reply import Interval

_ROOT = "/api/v1/guard"
_GATE_ROOT = "/api/v1/gate"
_TIMEOUT = 300.0
_HASH = re.compile("[0-9a-f]{64}")


class _Remote:
    """A connection to something that is served; closed at the end of a ``with`` block."""

    _transport: GuardTransport

    def close(self) -> None:
        """Close idle connections; the next request opens new ones."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RemoteHoldout(_Remote):
    """A guard behind ``ladderboard guard serve``; made by ``Holdout.connect``.

    It has the interface of a :class:`Holdout` and raises the same errors, and
    ``GuardUnreachable`` if there is no answer. File and labels stay with the serving process. Safe
    with threads and after a fork; it can be pickled.

    Parameters
    ----------
    url
        ``http://127.0.0.1:8765`` or ``unix:/path/of.sock``.
    token
        If the guard requires one; by default the environment variable LADDERBOARD_TOKEN.
    timeout
        Seconds to wait for an answer.
    transport, ladder
        An existing transport instead of a URL, and the name of a ladder.
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
        self._ladder = ladder
        self._opening: dict[str, Any] | None = None

    def ask(
        self,
        predictions: Any,
        *,
        training: float | None = None,
        format: str | None = None,  # noqa: A002 - the word people use
        ladder: str = "",
    ) -> Reply:
        """Ask about a model by its predictions, as ``Holdout.ask`` does.

        If the connection breaks, the question is sent once more. It is counted once: the reply may
        then say that the same predictions were asked before.
        """
        if training is not None:
            training = _settings.number("training", training, at_least=0, at_most=1)
        if ladder:
            check_ladder_name(ladder)
        data, media_type = encode_predictions(predictions, format)
        name = ladder or self._ladder
        query = _query(ladder=name, training=None if training is None else repr(training))
        answer = self._transport.post(f"{_ROOT}/questions{query}", data, media_type)
        with _reading_answer(self._transport.url):
            bound, released = Certificate.read(answer["bound"]), _optional_float(answer["released"])
            has_metric, again = answer.get("metric") is not None, bool(answer["again"])
            interval = _optional_ends(answer.get("interval"))  # older versions send none

            def locate(bound: Certificate) -> Interval | None:
                if has_metric:
                    return interval
                if again and bound.differences:  # from the best now, which the answer lacks
                    return self._in_ladder(name).interval
                return metric_interval(bound, shown=None, released=released)

            return Reply(
                released=released,
                improved=bool(answer["improved"]),
                question=int(answer["question"]),
                remaining=int(answer["remaining"]),
                reason=_check_sentence(answer["reason"]),
                score=_optional_float(answer["score"]),
                ladder=str(answer["ladder"]),
                again=again,
                certify=lambda: bound,
                proven=None if answer.get("proven") is None else bool(answer["proven"]),
                metric=str(answer["metric"]) if has_metric else None,
                value=_optional_float(answer.get("value")) if has_metric else released,
                locate=locate,
            )

    def ladder(self, name: str) -> RemoteHoldout:
        """Return another ladder on the same holdout and budget; its first question starts it."""
        check_ladder_name(name)
        return self._in_ladder(name)

    def _in_ladder(self, name: str) -> RemoteHoldout:
        other = type(self)(transport=self._transport, ladder=name)
        other._opening = self._opening  # noqa: SLF001 - same class
        return other

    @property
    def ladders(self) -> int:
        """The maximum number of ladders."""
        answer = self._get_meter()
        with _reading_answer(self._transport.url):
            return int(answer["ladders"])

    def check_ladder(self, name: str = "") -> None:
        """Raise ``TooManyLadders`` if a question on a ladder (default: this one) would raise it."""
        if name:
            check_ladder_name(name)
        self._transport.get(f"{_ROOT}/ladder{_query(ladder=name or self._ladder)}")

    @property
    def takes(self) -> InputKind:
        """Whether questions are predictions or scores."""
        opening = self._read_opening()
        with _reading_answer(self._transport.url):
            return read_input_kind(opening)

    def _read_opening(self) -> dict[str, Any]:
        """Return the guard's first entry, which never changes and is fetched once."""
        if self._opening is None:
            self._opening = self.status().opening
        return self._opening

    @property
    def _shown(self) -> dict[str, Any] | None:
        """The description of the metric; None if the guard has a loss only."""
        opening = self._read_opening()
        with _reading_answer(self._transport.url):
            shown: dict[str, Any] | None = opening["rules"].get("metric")
            return shown

    @property
    def remaining(self) -> int:
        """The number of questions left, over all ladders."""
        answer = self._get_meter()
        with _reading_answer(self._transport.url):
            return int(answer["remaining"])

    @property
    def released(self) -> float | None:
        """The loss of the best so far on this ladder; 1 before the first question."""
        answer = self._get_meter()
        with _reading_answer(self._transport.url):
            return _optional_float(answer["released"])

    @property
    def metric(self) -> str | None:
        """The name of the metric; None if the guard has a loss only."""
        shown = self._shown
        return None if shown is None else str(shown["title"])

    @property
    def value(self) -> float | None:
        """``released`` in the metric; the loss itself without one."""
        return metric_value(self.released, self._shown)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where the best true value lies: the ends of ``certificate`` in the metric."""
        summary = self.summary()
        return best_interval(summary.bound, shown=self._shown, released=summary.released)

    @property
    def certificate(self) -> Certificate:
        """The certificate for the best model asked on this ladder so far, about its loss."""
        answer = self._get_meter()
        with _reading_answer(self._transport.url):
            return Certificate.read(answer["bound"])

    @property
    def head(self) -> str:
        """The hash of the ledger's last entry; keep it to detect rewritten entries."""
        answer = self._get_meter()
        with _reading_answer(self._transport.url):
            return _check_hash(answer["head"])

    def summary(self) -> GuardSummary:
        """Return the values that change with every question, without the history."""
        answer = self._get_meter()
        with _reading_answer(self._transport.url):
            return GuardSummary.read(answer)

    @property
    def meter(self) -> Meter:
        """The numbers of questions allowed, used and left."""
        return self.status().meter

    def status(self) -> RemoteStatus:
        """Return everything public, with the history."""
        answer = self._transport.get(_ROOT)
        with _reading_answer(self._transport.url):
            return RemoteStatus.read(answer)

    def _get_meter(self) -> dict[str, Any]:
        return self._transport.get(f"{_ROOT}/meter{_query(ladder=self._ladder)}")

    def __repr__(self) -> str:
        ladder = f", ladder={self._ladder!r}" if self._ladder else ""
        return f"RemoteHoldout({self._transport.url!r}{ladder})"

    def __reduce__(self) -> tuple[Any, ...]:
        transport = self._transport
        return _reconnect, (
            type(self),
            transport.url,
            transport.given_token,
            transport.timeout,
            self._ladder,
        )


class RemoteGate(_Remote):
    """A gate behind ``ladderboard gate serve``; made by ``Gate.connect``.

    It has the interface of a :class:`Gate` and raises the same errors, and ``GuardUnreachable`` if
    there is no answer. Safe with threads and after a fork; it can be pickled.

    Parameters
    ----------
    url, token, timeout
        As for :class:`RemoteHoldout`.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: float = _TIMEOUT) -> None:
        self._transport = GuardTransport(url, token, timeout)

    def check(
        self,
        predictions: Any,
        *,
        margin: float | None = None,
        format: str | None = None,  # noqa: A002 - the word people use
    ) -> Verdict:
        """Compare a candidate with the incumbent, as ``Gate.check`` does.

        If the connection breaks, the look is sent once more. It is counted once.
        """
        data, media_type = encode_predictions(predictions, format)
        query = _query(margin=None if margin is None else repr(float(margin)))
        answer = self._transport.post(f"{_GATE_ROOT}/looks{query}", data, media_type)
        with _reading_answer(self._transport.url):
            if answer["outcome"] not in OUTCOMES:
                raise ValueError
            return Verdict(**{field.name: answer[field.name] for field in fields(Verdict)})

    def promote(self, predictions: Any, *, format: str | None = None) -> int:  # noqa: A002
        """Make a model the incumbent, if the gate's owner allows it; return its number."""
        data, media_type = encode_predictions(predictions, format)
        answer = self._transport.post(f"{_GATE_ROOT}/incumbent", data, media_type)
        with _reading_answer(self._transport.url):
            return int(answer["incumbent"])

    def status(self) -> GateStatus:
        """Return everything public, with the history."""
        answer = self._transport.get(_GATE_ROOT)
        with _reading_answer(self._transport.url):
            history = tuple(LookRecord(**record) for record in answer["history"])
            names = [field.name for field in fields(GateStatus)]
            return GateStatus(**{name: answer[name] for name in names} | {"history": history})

    @property
    def takes(self) -> InputKind:
        """Whether candidates are predictions or scores."""
        answer = self._transport.get(_GATE_ROOT)
        with _reading_answer(self._transport.url):
            return "scores" if answer["takes"] == "scores" else "predictions"

    @property
    def remaining(self) -> int:
        """The number of looks left."""
        return self.status().remaining

    @property
    def head(self) -> str:
        """The hash of the ledger's last entry; keep it to detect rewritten entries."""
        with _reading_answer(self._transport.url):
            return _check_hash(self.status().head)

    def __repr__(self) -> str:
        return f"RemoteGate({self._transport.url!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        transport = self._transport
        return partial(
            RemoteGate, transport.url, token=transport.given_token, timeout=transport.timeout
        ), ()


def connect_served(url: str) -> RemoteGate | RemoteHoldout:
    """Connect to what is served at a URL, a gate or a guard."""
    gate = RemoteGate(url)
    with suppress(GuardUnreachable):
        gate.status()
        return gate
    gate.close()
    guard = RemoteHoldout(url)
    guard.summary()  # raises if it is neither
    return guard


@dataclass(frozen=True)
class GuardSummary:
    """The state of a guard: the budget over all ladders, and the value of one of them."""

    ladder: str
    released: float | None
    bound: Certificate
    questions: int
    asked: int
    charged: int
    remaining: int
    closed: bool

    @classmethod
    def read(cls, answer: dict[str, Any]) -> GuardSummary:
        """Return the summary in a guard's answer."""
        return cls(
            ladder=str(answer["ladder"]),
            released=_optional_float(answer["released"]),
            bound=Certificate.read(answer["bound"]),
            questions=int(answer["questions"]),
            asked=int(answer["asked"]),
            charged=int(answer["charged"]),
            remaining=int(answer["remaining"]),
            closed=bool(answer["closed"]),
        )


@dataclass(frozen=True)
class RemoteStatus(Status):
    """The status of a served guard, with the certificate that the guard computed."""

    bound: Certificate

    @property
    def certificate(self) -> Certificate:
        """The certificate for the best model asked on any ladder."""
        return self.bound

    @classmethod
    def read(cls, answer: dict[str, Any]) -> RemoteStatus:
        """Return the status in a guard's answer."""
        opening = dict(answer["opening"])
        chain_state = ChainState(
            entries=int(answer["entries"]),
            head=bytes.fromhex(answer["head"]),
            time=int(answer["time"]),
            asked=int(answer["asked"]),
            changes=int(answer["changes"]),
            ladders=len(answer["ladders"]),
            lost=int(answer["lost"]),
            charged=int(answer["charged"]),
            closed=bool(answer["closed"]),
        )
        return cls(
            opening=opening,
            meter=Meter(_read_mechanism(opening["mechanism"]), dict(opening["rules"]), chain_state),
            ladders=tuple(LadderStatus(**ladder) for ladder in answer["ladders"]),
            history=tuple(QuestionRecord(**record) for record in answer["history"]),
            commitment=_check_hash(answer["commitment"]),
            head=_check_hash(answer["head"]),
            bound=Certificate.read(answer["bound"]),
        )


@dataclass(frozen=True)
class _RemoteMechanism(Mechanism):
    """A custom mechanism of the guard, which can be described here but not run."""

    name: ClassVar[str] = "foreign"
    described: dict[str, Any]

    def describe(self) -> dict[str, Any]:
        """Return the description of the guard's mechanism."""
        return self.described

    def begin(self, setup: Any, draws: Any) -> Any:
        """Not available here."""
        raise NotImplementedError

    def advance(self, setup: Any, state: Any, observation: Any, draws: Any) -> Any:
        """Not available here."""
        raise NotImplementedError


def _read_mechanism(described: dict[str, Any]) -> Mechanism:
    try:
        return mechanism_of(described)
    except InvalidInput:
        return _RemoteMechanism(described)


@contextmanager
def _reading_answer(url: str) -> Iterator[None]:
    """Raise ``GuardUnreachable`` if an answer does not have the form of a guard's."""
    try:
        yield
    except (KeyError, TypeError, ValueError):
        raise GuardUnreachable(f"The server at {url} is not a guard.") from None


def _check_hash(value: Any) -> str:
    """Return a hash; refuse other text, which may contain terminal escapes."""
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise ValueError
    return value


def _check_sentence(value: Any) -> str:
    """Return a sentence; refuse control characters, which a guard never writes."""
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError
    return value


def _optional_float(value: Any) -> float | None:
    return None if value is None else float(value)


def _optional_ends(value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    low, high = map(float, value)
    return low, high


def _query(**parameters: str | None) -> str:
    present = {name: value for name, value in parameters.items() if value}
    return f"?{urlencode(present)}" if present else ""


def _reconnect(
    cls: type[RemoteHoldout], url: str, token: str | None, timeout: float, ladder: str
) -> RemoteHoldout:
    return cls(url, token=token, timeout=timeout, ladder=ladder)
