"""The answer to a submission, and how the server's documents are parsed from JSON.

The documents themselves are dataclasses in ``ladderboard.board``. In all of them ``released``,
``score``, ``low`` and ``high`` are in the board's metric, ``display`` is ``released`` as it is
printed, and ``loss`` is the loss behind it.
"""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime
from functools import cache, cached_property
from html import escape
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ladderboard._formatting import format_count, format_decimals, format_gain, format_utc
from ladderboard.board import BoardInfo, MetricRelease, SubmissionReply
from ladderboard.bounds import Certificate
from ladderboard.client._config import check_board_name
from ladderboard.holdout import RESERVED_USED_UP, BoardAnswer, Reply, describe_board_answer

_WORST_LOSS = 1.0  # the value of a ladder before the first improvement
T = TypeVar("T")
_RAW = "raw"  # the field that keeps the whole document
_GUARD_ONLY = {"certify", "locate"}  # fields of a guard's reply that no server sends
# By field type: the type in JSON, and the function that converts it.
_CONVERTERS: dict[Any, tuple[Any, Callable[[Any], Any] | None]] = {
    datetime: (str, datetime.fromisoformat),
    Certificate: (dict, Certificate.read),
    float: ((int, float), float),
}


@dataclass(frozen=True, kw_only=True)
class SubmissionResult(SubmissionReply, Reply):
    """The answer to a submission: a guard's reply with a board's additions; prints as a sentence.

    ``released``, ``score``, ``visible_gain`` and ``bound`` are in the board's metric; ``loss`` and
    ``score_loss`` are the losses behind them. ``visible_gain`` is the smallest gain that surely
    shows now; None if every one does, or if it is withheld. ``bound`` is about the best on this
    ladder, and None if it would reveal other teams' activity. ``ladder`` is ``team`` or ``board``.
    ``remaining`` is what is left of the tightest of ``limits``, named by ``limit``;
    ``next_submission_at`` is None if no more questions will be available. ``receipt`` proves later
    that the submission was answered. ``metrics`` are the releases by further metrics. ``raw`` is
    the whole JSON document.
    """

    def __str__(self) -> str:
        remaining = _describe_remaining(self)
        return f"{_describe_result(self)} {remaining[0].upper()}{remaining[1:]}."

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """Where the best true value lies: the ends of ``bound``; None if it has none."""
        bound = self.bound
        if bound is None or bound.low is None or bound.high is None:
            return None
        return bound.low, bound.high

    def _repr_html_(self) -> str:
        """Show the sentence and the interval in a notebook."""
        headline = "Improved" if self.improved else "Not improved"
        bound = "" if self.bound is None else f"<p>{escape(str(self.bound))}</p>"
        return f"<p><b>{headline}.</b> {escape(str(self))}</p>{bound}"


def _describe_result(result: SubmissionResult) -> str:
    """Return the best, and this model's score if the mechanism releases it."""
    text, has_score = result.display.text, result.score not in {None, result.released}
    answer = BoardAnswer(
        improved=result.improved,
        again=result.again,
        number=result.number,
        ladder=result.ladder,
        best=None if result.released is None else text(result.display.released),
        score=text(result.display.score) if has_score else None,
        has_best=result.improved or result.loss is None or result.loss < _WORST_LOSS,
        gain=format_gain(result.visible_gain),
        proven=result.proven,
    )
    return " ".join([*describe_board_answer(answer), *map(_describe_metric, result.metrics)])


def _describe_metric(metric: MetricRelease) -> str:
    """Return the best by a further metric, and whether it is a new one."""
    if metric.display is None:
        return f"{metric.name}: no best yet."
    news = "new best, " if metric.improved else "best "
    return f"{metric.name}: {news}{format_decimals(metric.display, metric.digits)}."


def _describe_remaining(result: SubmissionResult) -> str:
    """Return how many submissions are left, and when the next is allowed if not now."""
    lasting = [limit.remaining for limit in result.limits if limit.name != "window"]
    remaining, following = min(lasting, default=result.remaining), result.next_submission_at
    if not remaining:
        return "no submissions left" if following is None else RESERVED_USED_UP
    submissions_left = f"{format_count(remaining, 'submission')} left"
    if result.remaining >= remaining:
        return submissions_left
    if result.remaining:
        return f"{submissions_left}, {result.remaining:,} available now"
    if following is None:
        return f"{submissions_left}, none available now"
    return f"{submissions_left}; the next at {format_utc(int(following.timestamp()), up=True)}"


def parse_model(model: Callable[..., T], document: Any) -> T:
    """Return a document as a dataclass; TypeError or ValueError if it does not fit.

    Unknown fields are ignored: the server may be newer. Fields with a default may be missing.
    """
    if not isinstance(document, dict):
        raise TypeError("an object was expected")
    values: dict[str, Any] = {}
    for name, kind, required in _model_fields(model):
        if name == _RAW:
            values[name] = document
        elif name in document:
            values[name] = _parse_value(kind, document[name])
        elif required:
            raise ValueError(f"{name} is missing")
    parsed = model(**values)
    if isinstance(parsed, BoardInfo):  # terminals show the slug, and people type it again
        check_board_name(parsed.slug)
    return parsed


@cache
def _model_fields(model: Any) -> list[tuple[str, Any, bool]]:
    # Reply imports these types for type checkers only.
    hints = get_type_hints(model, localns={"Callable": Callable, "Certificate": Certificate})
    return [
        (
            item.name,
            hints[item.name],
            item.default is MISSING and item.default_factory is MISSING,
        )
        for item in fields(model)
        if item.name not in _GUARD_ONLY
    ]


def _parse_value(kind: Any, value: Any) -> Any:
    origin = get_origin(kind)
    if origin in {Union, UnionType}:
        (inner,) = (option for option in get_args(kind) if option is not NoneType)
        return None if value is None else _parse_value(inner, value)
    if origin is Literal:  # a newer server may send other values
        return _require_type(type(get_args(kind)[0]), value)
    if origin is tuple:
        return tuple(_parse_value(get_args(kind)[0], item) for item in _require_type(list, value))
    if isinstance(kind, type) and is_dataclass(kind) and kind is not Certificate:
        return parse_model(kind, value)
    json_type, convert = _CONVERTERS.get(kind, (origin or kind, None))
    value = _require_type(json_type, value)
    return value if convert is None else convert(value)


def _require_type(kind: Any, value: Any) -> Any:
    """Return a value of a type; a bool does not count as a number."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError("a value has the wrong type")
    return value
