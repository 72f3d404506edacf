"""Numbers, counts, sizes, times and lists as text, and text that is safe to print.

Bounds are rounded so that they still hold as printed.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_MAX_DECIMALS = 15
_HUNDRED, _THOUSAND = 100, 1000
_ROUNDING_ERROR = 1e-9  # of a last digit: ignored when rounding outwards


def format_digits(value: float, digits: int) -> str:
    """Return a number with this many significant digits, large ones without an exponent.

    >>> format_digits(1634.2, 2), format_digits(0.01634, 2), format_digits(2e20, 2)
    ('1,600', '0.016', '2e+20')
    """
    text = f"{value:.{digits}g}"
    return f"{float(text):,.15g}" if "e+" in text or abs(value) >= _THOUSAND else text


def format_fixed(value: float, decimals: int) -> str:
    """Return a number with this many decimals, its thousands separated.

    >>> format_fixed(0.5, 3), format_fixed(22360.68, 1)
    ('0.500', '22,360.7')
    """
    return f"{value:,.{decimals}f}"


def parse_number(text: str) -> float:
    """Return the number that one of these functions has formatted.

    >>> parse_number("22,360.7"), parse_number("2e+20")
    (22360.7, 2e+20)
    """
    return float(text.replace(",", ""))


def round_up(value: float, digits: int = 4) -> str:
    """Return a number with this many significant digits, rounded up.

    >>> round_up(0.12301), round_up(0.1), round_up(-0.00251, 2), round_up(140_421.0)
    ('0.1231', '0.1', '-0.0025', '140,500')
    """
    text = format_digits(value, digits)
    if value == 0 or not math.isfinite(value) or parse_number(text) >= value:
        return text
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    last = math.floor(value * 10.0**decimals) + 1
    return format_digits(last / 10.0**decimals, digits)


def round_down(value: float, digits: int = 4) -> str:
    """Return a number with this many significant digits, rounded down.

    >>> round_down(0.12309), round_down(-0.12301)
    ('0.123', '-0.1231')
    """
    text = round_up(-value, digits)
    return text.removeprefix("-") if text.startswith("-") else f"-{text}" if value else "0"


def round_up_to(value: float, decimals: int) -> str:
    """Return a number with this many decimals, rounded up.

    >>> round_up_to(0.12301, 3), round_up_to(0.5, 4)
    ('0.124', '0.5000')
    """
    text = f"{value:.{decimals}f}"
    if float(text) >= value:
        return text
    return f"{(math.floor(value * 10**decimals) + 1) / 10**decimals:.{decimals}f}"


def round_outwards(low: float, high: float, decimals: int) -> tuple[str, str]:
    """Return the ends of an interval with this many decimals, rounded outwards.

    >>> round_outwards(0.12309, 0.45001, 3), round_outwards(-math.inf, 0.1 + 0.2, 1)
    (('0.123', '0.451'), ('-inf', '0.3'))
    """
    scale = 10**decimals
    lower = math.floor(low * scale + _ROUNDING_ERROR) if math.isfinite(low) else low * scale
    upper = math.ceil(high * scale - _ROUNDING_ERROR) if math.isfinite(high) else high * scale
    return f"{lower / scale:.{decimals}f}", f"{upper / scale:.{decimals}f}"


def format_interval(low: float, high: float, decimals: int) -> tuple[str, str]:
    """Return the ends of an interval, rounded outwards, with two digits of its width at most.

    >>> format_interval(0.51912, 0.99731, 3), format_interval(0.80513, 0.82031, 4)
    (('0.51', '1.00'), ('0.805', '0.821'))
    >>> format_interval(1037.5, 78122.4, 4)
    ('1,000', '79,000')
    """
    return format_intervals([(low, high)], decimals)[0]


def format_intervals(
    intervals: Sequence[tuple[float, float]], decimals: int
) -> list[tuple[str, str]]:
    """Return the same for a column of intervals: all have the decimals of the narrowest.

    >>> format_intervals([(0.51912, 0.99731), (0.80513, 0.82031)], 4)
    [('0.519', '0.998'), ('0.805', '0.821')]
    """
    widths = [width for low, high in intervals if 0 < (width := high - low) < math.inf]
    if widths:
        decimals = min(decimals, 1 - math.floor(math.log10(min(widths))))
    size = 10.0 ** max(-decimals, 0)  # large numbers are rounded before the point, too
    decimals = max(decimals, 0)
    rounded = [round_outwards(low / size, high / size, decimals) for low, high in intervals]
    return [
        (format_fixed(size * float(low), decimals), format_fixed(size * float(high), decimals))
        for low, high in rounded
    ]


def format_ends(low: float, high: float) -> str:
    """Return an interval in brackets, with the digits that its width carries.

    >>> format_ends(0.51912, 0.99731), format_ends(0.80513, 0.82031), format_ends(0, 1.2e-7)
    ('[0.51, 1]', '[0.805, 0.821]', '[0, 0.00000012]')
    """
    texts = format_interval(low, high, 6 if low == high else _MAX_DECIMALS)
    return f"[{', '.join(text.rstrip('0').rstrip('.') if '.' in text else text for text in texts)}]"


def format_decimals(value: float, decimals: int) -> str:
    """Return a number with at most this many decimals, without zeros at its end.

    From 100 on, each further digit before the point takes one from those behind it.

    >>> format_decimals(0.72, 4), format_decimals(0.75549, 4), format_decimals(-0.00001, 4)
    ('0.72', '0.7555', '0')
    >>> format_decimals(20.01849, 4), format_decimals(20018.49661, 4)
    ('20.0185', '20,018.5')
    """
    text = format_fixed(value, _useful_decimals(value, decimals))
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def shared_decimals(values: Iterable[float], decimals: int) -> int:
    """Return how many decimals a column of numbers needs, at most as many as given.

    >>> shared_decimals([0.8, 0.82, 1], 4), shared_decimals([], 4)
    (2, 0)
    """
    numbers = list(values)
    texts = (format_decimals(value, decimals) for value in numbers)
    needed = max((len(text.partition(".")[2]) for text in texts), default=0)
    return min(needed, _useful_decimals(max(map(abs, numbers), default=0.0), decimals))


def _useful_decimals(value: float, decimals: int) -> int:
    if abs(value) < _HUNDRED or not math.isfinite(value):
        return decimals
    return max(decimals + 1 - math.floor(math.log10(abs(value))), 0)


def format_column(values: Sequence[float], decimals: int) -> list[str]:
    """Return a column of numbers, all with the decimals that they need together.

    >>> format_column([0.8, 0.824], 4), format_column([0.123456], 4)
    (['0.800', '0.824'], ['0.1235'])
    """
    needed = shared_decimals(values, decimals)
    return [format_fixed(value, needed) for value in values]


def format_rank(rank: int | None, *, tied: bool) -> str:
    """Return a rank; a shared one begins with =.

    >>> format_rank(1, tied=True), format_rank(4, tied=False), format_rank(None, tied=False)
    ('=1', '4', '')
    """
    return "" if rank is None else f"={rank}" if tied else f"{rank}"


def format_rank_range(ranks: Sequence[int] | None) -> str:
    """Return the ranks that the data allow a team, as text.

    >>> format_rank_range([1, 3]), format_rank_range((2, 2)), format_rank_range(None)
    ('1 to 3', '2', '')
    """
    if ranks is None:
        return ""
    low, high = ranks
    return f"{low}" if low == high else f"{low} to {high}"


@lru_cache(maxsize=256)  # in every certificate of a board
def format_confidence(beta: float) -> str:
    """Return the confidence 1 - beta in percent, rounded down, so never 100%.

    >>> format_confidence(0.05), format_confidence(0.001), format_confidence(1e-9)
    ('95%', '99.9%', '99.9999%')
    """
    return f"{math.floor(1e6 * (1 - beta) + 1e-6) / 1e4:g}%"


def format_count(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, in singular or plural.

    >>> format_count(1, "row"), format_count(2_000, "id"), format_count(2, "entry", "entries")
    ('1 row', '2,000 ids', '2 entries')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def format_gain(gain: float | None) -> str | None:
    """Return a gain with two digits; None for no gain.

    >>> format_gain(0.02134), format_gain(5684.2), format_gain(None)
    ('0.021', '5,700', None)
    """
    return format_digits(gain, 2) if gain else None


def format_undetected_gains(gain: str) -> str:
    """Return the sentence about the smallest gain that answers show.

    >>> format_undetected_gains("0.02")
    'Improvements smaller than about 0.02 may not be detected.'
    """
    return f"Improvements smaller than about {gain} may not be detected."


def format_promise(overfitting: float | None, hidden: float | None, digits: int = 2) -> str:
    """Return what a certificate says about the score shown; None marks an end that says nothing.

    >>> print(format_promise(0.0351, 0.049))
    The score shown is at most 0.036 too good. The best model so far may be up to 0.049 better than
    the score shown.
    >>> format_promise(0.0351, None)
    'The score shown is at most 0.036 too good. The best model so far may be better by any amount.'
    >>> format_promise(None, None)
    'No useful guarantee: too few examples for this many answers.'
    """
    if overfitting is None and hidden is None:
        return "No useful guarantee: too few examples for this many answers."
    too_good = (
        "The score shown may be too good by an unknown amount."
        if overfitting is None
        else f"The score shown is at most {round_up(overfitting, digits)} too good."
    )
    better = (
        "The best model so far may be better by any amount."
        if hidden is None
        else f"The best model so far may be up to {round_up(hidden, digits)} better than the score "
        "shown."
    )
    return f"{too_good} {better}"


def format_promise_beside(
    ends: tuple[str, str],
    score: str,
    overfitting: float | None,
    hidden: float | None,
    *,
    higher_is_better: bool,
) -> str:
    """Return the same beside an interval and a score: the distances between them as printed.

    >>> print(format_promise_beside(("0.82", "0.99"), "0.91", 0.083, 0.073, higher_is_better=True))
    The score shown is at most 0.09 too good. The best model so far may be up to 0.08 better than
    the score shown.
    >>> format_promise_beside(("0.01", "0.13"), "0.06", None, 0.047, higher_is_better=False)[-53:]
    'so far may be up to 0.05 better than the score shown.'
    """
    low, high = map(parse_number, ends)
    below, above = (
        max(round(width, 12), 0.0)
        for width in (parse_number(score) - low, high - parse_number(score))
    )
    too_good, better = (below, above) if higher_is_better else (above, below)
    return format_promise(
        None if overfitting is None else too_good, None if hidden is None else better, digits=3
    )


def format_list(words: Sequence[str], last: str = "and") -> str:
    """Return words as a list for a sentence.

    >>> format_list(["a"]), format_list(["a", "b", "c"]), format_list(["a", "b"], "or")
    ('a', 'a, b and c', 'a or b')
    """
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def format_size(size: int) -> str:
    """Return a number of bytes with three digits and a unit.

    >>> [format_size(size) for size in (900, 20_000, 10_000_000, 2**30)]
    ['900 bytes', '20 kB', '10 MB', '1.07 GB']
    """
    for name, unit in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} bytes"


@lru_cache(maxsize=4096)  # pages show the same times many times
def format_time(seconds: int) -> str:
    """Return a Unix time in UTC, in ISO 8601.

    >>> format_time(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_utc(seconds: int, *, up: bool = False) -> str:
    """Return a Unix time for people: in UTC, to the minute; with ``up``, not before the time.

    >>> format_utc(90), format_utc(90, up=True)
    ('1970-01-01 00:01 UTC', '1970-01-01 00:02 UTC')
    """
    if up:
        seconds = -(-seconds // 60) * 60
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def rough_duration(seconds: int) -> str:
    """Return a duration in its largest unit, rounded down, at least one second.

    >>> [rough_duration(seconds) for seconds in (90, 3 * 86400 + 7000, 400 * 86400, 0)]
    ['1 minute', '3 days', '13 months', '1 second']
    """
    days = seconds // 86400
    if days >= 730:  # two years
        return format_count(days // 365, "year")
    if days >= 60:
        return format_count(days // 30, "month")
    units = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
    return next(
        (format_count(seconds // unit, name) for unit, name in units if seconds >= unit), "1 second"
    )


def printable(text: object, *, keep: str = "") -> str:
    r"""Return a text with control characters escaped, which a terminal would act on.

    Characters in ``keep`` stay.

    >>> printable("a\x1b[2Jb\u202ec"), printable("a\nb\ud800", keep="\n")
    ('a\\x1b[2Jb\\u202ec', 'a\nb\\ud800')
    """
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode()
        for char in str(text)
    )


def format_status(board: Mapping[str, Any], now: float) -> str:
    """Return the status of a board's summary in words; an open board may be outside its phases.

    >>> board = {"status": "open", "phase": None, "phases": [
    ...     {"name": "main", "start": "1970-01-02T00:00:00Z", "end": "1970-01-03T00:00:00Z"}]}
    >>> format_status(board, 0), format_status(board, 10**6)
    ('not open yet', 'deadline passed')
    """
    if board["status"] != "open" or board["phase"] is not None:
        return str(board["status"])
    starts = [phase["start"] for phase in board["phases"] if phase["start"] is not None]
    coming = next(
        (start for start in starts if datetime.fromisoformat(start).timestamp() > now), None
    )
    if coming is None:
        return "deadline passed"
    return "not open yet" if coming == board["phases"][0]["start"] else "between phases"
