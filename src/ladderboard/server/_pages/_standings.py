"""The rows of a board's tables, ready to be shown."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup, escape

from ladderboard._formatting import round_outwards
from ladderboard.server._pages._page import figure
from ladderboard.server._pages._words import percent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ladderboard.board import Display

__all__ = ["Final", "finals_table", "standings_table"]

_MOST = 100  # rows of a final ranking that a page shows


class Final(NamedTuple):
    """A row of the final ranking."""

    kind: str
    rank: str
    name: str
    note: str
    value: str
    public: str
    move: str
    low: str
    high: str


def standings_table(page: dict[str, Any] | None, digits: int) -> dict[str, Any] | None:
    """Return a page of the standings, with the baselines from elsewhere where they belong."""
    if page is None:
        return None
    rows = [(each["loss"], _row(each, digits)) for each in page["rows"]]
    for each in page["declared"]:
        name = f"{each['name']} ({each['source']})" if each["source"] else each["name"]
        row = _Line("aside", "", name, "baseline", figure(each["display"], digits), None, "")
        at = (at for at, (value, _) in enumerate(rows) if value is None or value > each["loss"])
        rows.insert(next(at, len(rows)), (each["loss"], row))
    return {
        "rows": Markup("\n".join(row.written() for _, row in rows)),  # noqa: S704 - see there
        "ties": any(each["tied"] for each in page["rows"]),
        "frozen": page["as_of"] if page["frozen"] else None,
        "next": page["next"],
    }


class _Line(NamedTuple):
    """A row of the standings; ``note`` says what it is besides a team."""

    kind: str
    rank: str
    name: str
    note: str
    value: str
    since: str | None
    asked: str

    def written(self) -> str:
        """Return it as HTML. Its columns look as their places say (style.css).

        A page has many of these rows, so they are written here and not by a template; the name is
        the only text that is not ours.

        >>> print(_Line("", "1=", "<b>", "", "0.780", None, "4").written())
        <tr><td>1=<td>&lt;b&gt;<td>0.780<td><td>4
        """
        kind, rank, name, note, value, since, asked = self
        start = f'<tr class="{kind}">' if kind else "<tr>"
        badge = f' <span class="badge">{note}</span>' if note else ""
        when = f'<time datetime="{since}">{since[:10]} {since[11:16]} UTC</time>' if since else ""
        return f"{start}<td>{rank}<td>{escape(name)}{badge}<td>{value}<td>{when}<td>{asked}"


def _row(each: dict[str, Any], digits: int) -> _Line:
    rank, note = each["rank"], ""
    if each["you"] or each["baseline"]:
        note = "you" if each["you"] else "baseline"
    return _Line(
        _KINDS[note],
        "" if rank is None else f"{rank}=" if each["tied"] else f"{rank}",
        _name(each["team"]),
        note,
        figure(each["display"], digits),
        each["since"],
        f"{each['submissions']:,}",
    )


_KINDS = {"": "", "you": "you", "baseline": "aside"}


def _name(team: dict[str, Any]) -> str:
    return str(team["id"] if team["name"] is None else team["name"])


def finals_table(
    final: dict[str, Any] | None, display: Display, team: dict[str, Any] | None
) -> dict[str, Any] | None:
    """Return the final ranking: the first rows, and one's own wherever it stands."""
    if final is None:
        return None
    own = None if team is None else team["id"]
    many = Counter(each["rank"] for each in final["rows"])
    rows = [
        _final(each, display, own, tied=each["rank"] is not None and many[each["rank"]] > 1)
        for each in _some(final["rows"], own)
    ]
    sure = {"sure": percent(final["beta"]), "sure_together": percent(min(2 * final["beta"], 1))}
    return {**final, **sure, "rows": rows, "all": len(final["rows"]), "shown": len(rows)}


def _some(rows: Iterable[dict[str, Any]], own: str | None) -> Iterable[dict[str, Any]]:
    return (each for at, each in enumerate(rows) if at < _MOST or each["team"]["id"] == own)


def _final(each: dict[str, Any], display: Display, own: str | None, *, tied: bool) -> Final:
    you = each["team"]["id"] == own
    return Final(
        "you" if you else "aside" if each["baseline"] else "",
        "" if each["rank"] is None else f"{each['rank']}{'=' if tied else ''}",
        _name(each["team"]),
        "you" if you else "baseline" if each["baseline"] else "",
        figure(each["display"], display.digits),
        "" if each["public_rank"] is None else str(each["public_rank"]),
        moved(each["move"]),
        *round_outwards(each["low"], each["high"], display.digits),
    )


def moved(move: int | None) -> str:
    """Return how far a team moved from its public rank to its final one.

    >>> moved(3), moved(-1), moved(0), moved(None)
    ('up 3', 'down 1', 'same', '')
    """
    if move is None:
        return ""
    return f"up {move}" if move > 0 else f"down {-move}" if move else "same"
