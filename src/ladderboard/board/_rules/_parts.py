"""The parts of a board's rules, and losses in its metric."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from ladderboard._formatting import format_decimals, format_gain, format_time, round_outwards
from ladderboard.board._model import MetricBound, MetricRelease, make_document
from ladderboard.files import Limits
from ladderboard.losses import HIGHER_FORMS, DisplayForm, display_release, display_risk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ladderboard.bounds import Certificate
    from ladderboard.losses import Loss


@dataclass(frozen=True)
class PhaseRules:
    """A time in which the board is open: from ``start`` up to, but excluding, ``end``.

    Both are seconds since 1970; None if the phase has no beginning or no end.
    """

    name: str
    start: int | None = None
    end: int | None = None

    def covers(self, time: float) -> bool:
        """Return whether a time lies in the phase."""
        return (self.start is None or self.start <= time) and (self.end is None or time < self.end)

    def describe(self) -> dict[str, Any]:
        """Return JSON-able fields, times as text."""
        times = {"start": self.start, "end": self.end}
        formatted = {
            key: None if time is None else format_time(time) for key, time in times.items()
        }
        return {"name": self.name, **formatted}


@dataclass(frozen=True)
class RateLimitRules:
    """The number of questions that a team may ask in any period of the given length."""

    questions: int
    seconds: int

    def describe(self) -> dict[str, Any]:
        """Return JSON-able fields."""
        return {"questions": self.questions, "seconds": self.seconds}


@dataclass(frozen=True)
class DisplayRules:
    """How a loss is shown to people: as which metric, with at most how many digits.

    ``shown_as`` is ``"loss"``, ``"scaled"`` (loss times ``unit``), ``"complement"`` (1 - that),
    ``"percent"`` (100 times that) or ``"root"`` (the root of the scaled loss); ``unit`` is the
    loss's own, such as the width of a range.
    """

    name: str
    digits: int = 4
    shown_as: DisplayForm = "loss"
    unit: float = 1.0

    @property
    def direction(self) -> Literal["higher", "lower"]:
        """Whether higher or lower shown values are better."""
        return "higher" if self.shown_as in HIGHER_FORMS else "lower"

    def metric_value(self, loss: float) -> float:
        """Return a loss as the shown metric, unrounded.

        >>> DisplayRules("accuracy", shown_as="complement").metric_value(0.25)
        0.75
        """
        return display_risk(self.shown_as, loss, self.unit)

    def text(self, loss: float | None) -> str:
        """Return a released loss as the printed metric, with its own digits; a dash for None.

        >>> DisplayRules("accuracy", digits=3, shown_as="complement").text(0.25)
        '0.75'
        """
        value = round_release(self, loss)
        return "-" if value is None else format_decimals(value, self.digits)

    def named_text(self, loss: float | None) -> str:
        """Return ``text`` with the metric's name before it.

        >>> DisplayRules("accuracy", shown_as="complement").named_text(0.245)
        'accuracy 0.755'
        """
        return "-" if loss is None else f"{self.name} {self.text(loss)}"

    def metric_gain(self, gain: float, best: float | None) -> float | None:
        """Return a gain in loss as a gain in the metric, measured from the best so far.

        None if every gain is reported, the best is perfect, or the metric is a root and there is no
        best.

        >>> DisplayRules("mae", shown_as="scaled", unit=100.0).metric_gain(0.021, 0.2)
        2.1
        """
        if self.shown_as == "root":
            if best is None:
                return None  # a gain in a root depends on the best
            size = self.metric_value(best) - self.metric_value(max(best - gain, 0.0))
        else:
            size = abs(self.metric_value(gain) - self.metric_value(0.0))
        return size or None

    def gain_text(self, gain: float, best: float | None) -> str | None:
        """Return ``metric_gain`` as text with two digits.

        >>> DisplayRules("accuracy", shown_as="complement").gain_text(0.0213, 0.2)
        '0.021'
        >>> DisplayRules("mae", shown_as="scaled", unit=100.0).gain_text(0.0213, 0.2)
        '2.1'
        >>> DisplayRules("rmse", shown_as="root", unit=100.0).gain_text(0.07, 0.16)
        '1'
        >>> DisplayRules("rmse", shown_as="root", unit=100.0).gain_text(0.07, 0.0)
        """
        return format_gain(self.metric_gain(gain, best))

    def format_interval(self, low: float, high: float) -> tuple[str, str]:
        """Return an interval of losses as printed in the metric, the lower number first.

        It is rounded outwards, so that it is still true.

        >>> DisplayRules("accuracy", digits=2, shown_as="complement").format_interval(0.111, 0.25)
        ('0.75', '0.89')
        """
        smallest, largest = sorted((self.metric_value(low), self.metric_value(high)))
        return round_outwards(smallest, largest, self.digits)

    def is_narrow(self, low: float, high: float) -> bool:
        """Return whether an interval of the metric covers at most 30% of its range.

        >>> accuracy = DisplayRules("accuracy", shown_as="complement")
        >>> accuracy.is_narrow(0.7, 0.9), accuracy.is_narrow(0.67, 1.0)
        (True, False)
        """
        return high - low <= _NARROW * abs(self.metric_value(1.0) - self.metric_value(0.0))

    def describe(self) -> dict[str, Any]:
        """Return JSON-able fields."""
        return {
            "name": self.name,
            "direction": self.direction,
            "digits": self.digits,
            "as": self.shown_as,
        }


@dataclass(frozen=True)
class MetricRules:
    """A metric of a board: its loss, and how it is shown.

    A ``live`` one has ladders of its own; the others are computed at the close.
    """

    loss: Loss
    display: DisplayRules
    live: bool = False

    def describe(self) -> dict[str, Any]:
        """Return JSON-able fields, as ``metrics`` in ``board.yaml`` has them."""
        shown = {"as": self.display.shown_as, "digits": self.display.digits}
        show = {"show": "live"} if self.live else {}
        title = {"title": self.display.name}
        return {"name": self.loss.name, **self.loss.params, **title, **shown, **show}

    def summarize(self) -> dict[str, Any]:
        """Return what the board's page and the API say about it."""
        loss = {"name": self.loss.name, **self.loss.params}
        return {**self.display.describe(), "loss": loss, "show": "live" if self.live else "close"}

    def serialize(self, risk: float) -> dict[str, Any]:
        """Return a risk in this metric, as a final ranking stores it."""
        shown = round_for_display(self.display, risk)
        return {"name": self.display.name, "score": risk, "display": shown}


@dataclass(frozen=True)
class Baseline:
    """Something to compare with: a submitted file, or a loss from elsewhere."""

    name: str
    file: str | None = None
    value: float | None = None
    source: str = ""

    def describe(self) -> dict[str, Any]:
        """Return JSON-able fields."""
        if self.file is not None:
            return {"name": self.name, "file": self.file}
        fields = {"name": self.name, "value": self.value}
        return {**fields, "source": self.source} if self.source else fields


@dataclass(frozen=True)
class FinalsRules:
    """How many of its submissions a team selects for the final ranking."""

    selections: int = 1

    def describe(self) -> dict[str, Any]:
        """Return JSON-able fields."""
        return {"selections": self.selections}


@dataclass(frozen=True)
class PrizeRules:
    """A prize for a place in the final ranking, and what counts as having it.

    ``to`` is ``range`` (every team whose range of ranks includes the place), ``band`` (every team
    of the band with that number) or ``rank`` (the teams with that rank).
    """

    name: str
    place: int = 1
    to: str = "range"

    def describe(self) -> dict[str, Any]:
        """Return JSON-able fields."""
        return dict(vars(self))

    def is_won_by(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row of a final ranking gets it; without ranges, the rank decides.

        >>> row = {"baseline": False, "rank": 2, "ranks": (1, 3), "band": 1}
        >>> [PrizeRules("First prize", 1, to).is_won_by(row) for to in ("range", "band", "rank")]
        [True, True, False]
        """
        if row["baseline"]:
            return False
        if row["ranks"] is None or self.to == "rank":
            return bool(row["rank"] == self.place)
        if self.to == "band":
            return bool(row["band"] == self.place)
        first, last = row["ranks"]
        return bool(first <= self.place <= last)


@dataclass(frozen=True)
class SignInRules:
    """Who may register a team by signing in.

    ``providers`` are names from the server's settings, all if empty. ``domains`` and ``people``, a
    file with a list, restrict registration to verified email addresses of these domains and to the
    people on the list. With ``approval`` the organiser approves each team.
    """

    providers: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    people: str | None = None
    approval: bool = False

    def describe(self) -> dict[str, Any]:
        """Return JSON-able fields. The list itself is not among them: rules are public."""
        fields = {**vars(self), "providers": list(self.providers), "domains": list(self.domains)}
        return {key: value for key, value in fields.items() if value}

    def summary(self) -> dict[str, Any]:
        """Return what the board's page and the API say: all fields, and whether there is a list."""
        lists = {"providers": list(self.providers), "domains": list(self.domains)}
        return {**lists, "people": self.people is not None, "approval": self.approval}


@dataclass(frozen=True)
class TermsRules:
    """What a team accepts before it submits, in Markdown; ``file`` is where the text is, unread."""

    text: str
    file: str | None = None

    @property
    def version(self) -> str:
        """The SHA-256 of the text in UTF-8, as acceptances in the ledger name it."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class DataLink:
    """A file for participants that is hosted elsewhere."""

    name: str
    url: str
    bytes: int | None = None
    sha256: str | None = None

    def describe(self) -> dict[str, Any]:
        """Return JSON-able fields."""
        return dict(vars(self))


@dataclass(frozen=True)
class DataRules:
    """Files for participants: links to those hosted elsewhere, and who may download the others."""

    members: bool = False
    links: tuple[DataLink, ...] = ()

    def describe(self) -> dict[str, Any]:
        """Return JSON-able fields."""
        return {"members": self.members, "links": [link.describe() for link in self.links]}


@lru_cache(maxsize=64)  # every submission asks for them
def _limits(max_bytes: int, max_rows: int) -> Limits:
    return Limits(bytes=max_bytes, rows=max_rows)


@dataclass(frozen=True)
class FileRules:
    """Limits on the size of submitted files and on the time to parse them.

    ``bytes`` and ``rows`` count after decompression; ``seconds`` limits parsing; ``quota`` limits
    the stored bytes of all submissions, ``team_quota`` those of one team, by default an equal part
    of ``quota``.
    """

    bytes: int = 100_000_000
    rows: int = 50_000_000
    seconds: int = 20
    quota: int = 10 * 2**30
    team_quota: int | None = None

    @property
    def limits(self) -> Limits:
        """The limits of a single file, as ``ladderboard.files`` has them."""
        return _limits(self.bytes, self.rows)

    def describe(self) -> dict[str, Any]:
        """Return JSON-able fields."""
        fields = dict(vars(self))
        if self.team_quota is None:
            del fields["team_quota"]
        return fields


_METRIC_DIGITS = 12  # 1 - 0.1 is 0.9
_NARROW = 0.3  # of the range of a metric: wider intervals are not shown


def round_for_display(display: DisplayRules, loss: float | None) -> float | None:
    """Return an exact loss in the board's metric, rounded to the digits of the display."""
    return None if loss is None else round(display.metric_value(loss), display.digits)


def round_release(display: DisplayRules, loss: float | None) -> float | None:
    """Return a released loss in the board's metric, as it is shown: with the digits it carries.

    >>> round_release(DisplayRules("RMSE", shown_as="root", unit=10_000.0), 0.0072)
    8.49
    """
    if loss is None:
        return None
    return round(display_release(display.shown_as, loss, display.unit), display.digits)


def to_metric(display: DisplayRules, loss: float | None) -> float | None:
    """Return a loss in the board's metric, with all its digits.

    >>> from ladderboard.board import DisplayRules
    >>> to_metric(DisplayRules("accuracy", shown_as="complement"), 0.1)
    0.9
    """
    return None if loss is None else round(display.metric_value(loss), _METRIC_DIGITS)


def serialize_metric_release(
    display: DisplayRules, value: float | None, *, improved: bool | None = None
) -> dict[str, Any]:
    """Return a released loss in a metric; ``improved`` is None for the best of a team."""
    return make_document(
        MetricRelease, display, **describe_release(display, value), improved=improved
    )


def describe_release(display: DisplayRules, value: float | None) -> dict[str, float | None]:
    """Return a released loss: in the metric, as it is, and as people see it."""
    return {
        "released": to_metric(display, value),
        "loss": value,
        "display": round_release(display, value),
    }


def _metric_ends(
    display: DisplayRules, certificate: Certificate, released: float | None
) -> dict[str, float | None]:
    """Return the ends of a certificate's interval in the metric, and how far they are.

    ``overfitting`` and ``hidden`` are distances from the value shown, None if they say nothing.
    """
    if released is None and certificate.differences:
        return dict.fromkeys(("low", "high", "overfitting", "hidden"))
    centre = released if certificate.differences and released is not None else 0.0
    smallest, largest = certificate.span
    first, last = max(centre + certificate.low, smallest), min(centre + certificate.high, largest)
    best, worst = display.metric_value(first), display.metric_value(last)
    overfitting = hidden = None
    if released is not None:
        shown = display.metric_value(released)
        overfitting = None if last >= largest else abs(shown - worst)
        hidden = None if first <= smallest else abs(best - shown)
    return {
        "low": min(best, worst),
        "high": max(best, worst),
        "overfitting": overfitting,
        "hidden": hidden,
    }


def serialize_bound(
    display: DisplayRules, certificate: Certificate, released: float | None
) -> dict[str, Any]:
    """Return a certificate in the board's metric: an interval for the best model's true value.

    ``released`` is the loss that the certificate is about. ``low`` and ``high`` are None if nothing
    was released; ``loss`` is the certificate in losses.
    """
    loss = certificate.describe()
    ends = _metric_ends(display, certificate, released)
    return make_document(
        MetricBound,
        certificate,
        **ends,
        beta=certificate.beta,
        vacuous=loss["vacuous"],
        theorem=certificate.theorem,
        assumptions=loss["assumptions"],
        loss=loss,
    )
