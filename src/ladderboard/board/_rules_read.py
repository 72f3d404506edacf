"""Reading rules: from what an organiser typed to fields, with everything that is wrong noted."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.board._rules_parts import (
    Baseline,
    Display,
    FileLimits,
    Finals,
    Phase,
    Window,
)
from ladderboard.board._rules_text import one_line, paragraphs
from ladderboard.board._rules_values import (
    inside,
    read_flag,
    read_loss,
    read_mechanism,
    read_size,
    read_slug,
)
from ladderboard.board._times import read_time
from ladderboard.losses import Metric, ZeroOne

if TYPE_CHECKING:
    from ladderboard.board._rules_keys import Keys

__all__ = ["KNOWN", "MAIN", "read_fields"]

KNOWN = (
    "slug", "title", "description", "loss", "display", "mechanism", "beta", "questions", "teams",
    "per_team", "window", "start", "end", "phases", "ladder", "registration", "visibility",
    "baselines", "finals", "files", "play",
)  # fmt: skip
MAIN = "main"
_MOST = 10**15
_TEAMS = {"open": 100, "invited": 50, "organiser": 50}
_LENGTHS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400}
_NAME = 40
_FOREVER = 100 * 366 * 86_400
_WAYS = ("loss", "complement", "scaled", "root")
_NOTHING = Metric("zero_one", ZeroOne())


def read_fields(keys: Keys, slug: str | None) -> dict[str, Any]:
    """Return the fields of ``Rules``; they are to be used only if nothing was noted."""
    keys.only(KNOWN)
    name = _slug(keys, slug)
    shown = keys.need("loss", read_loss, _NOTHING, "try loss: accuracy")
    registration = keys.take("registration", _choice("open", "invited", "organiser"), "invited")
    baselines = _baselines(keys)
    return {
        "slug": name,
        "title": keys.take("title", one_line, name),
        "description": keys.take("description", paragraphs, ""),
        "loss": shown.loss,
        "display": _display(keys, shown),
        "mechanism": keys.take("mechanism", read_mechanism, None),
        "beta": keys.take("beta", partial(_settings.number, at_least=1e-100, below=1), 0.05),
        **_budget(keys, registration, sum(each.file is not None for each in baselines)),
        "window": _window(keys),
        "phases": _phases(keys),
        "ladder": keys.take(
            "ladder", _choice("team", "board"), "board" if registration == "open" else "team"
        ),
        "registration": registration,
        "visibility": keys.take(
            "visibility", _choice("public", "hidden", "anonymous", "frozen"), "public"
        ),
        "baselines": baselines,
        "finals": _finals(keys),
        "files": _files(keys),
        "play": keys.take("play", read_flag, False),
    }


def _choice(*choices: str) -> Any:
    return partial(_settings.one_of, choices=choices)


def _count(at_least: int = 1, at_most: int = _MOST) -> Any:
    return partial(_settings.whole, at_least=at_least, at_most=at_most)


def _slug(keys: Keys, slug: str | None) -> str:
    if keys.has("slug") or slug is None:
        return keys.need("slug", read_slug, "board", "try slug: my-board")
    try:
        return read_slug("slug", slug)
    except ValueError:
        keys.bad(
            "slug",
            f"slug is missing, and the folder's name {_settings.shown(slug)} cannot stand for it; "
            "write one, such as slug: my-board.",
            "missing_key",
        )
        return "board"


def _budget(keys: Keys, registration: str, asked: int) -> dict[str, int]:
    """Return questions, teams and the limit of each; every team needs a share of its own."""
    questions = keys.need("questions", _count(), 1, "try questions: 1000")
    teams = keys.take("teams", _count(), _TEAMS[registration])
    left = max(questions - asked, 0) // teams
    per_team = keys.take("per_team", _count(), max(left, 1))
    related = {"questions", "teams", "per_team", "registration", "baselines"}
    if not related & keys.wrong:
        if not left:
            most = questions - asked
            fewer = f", or teams to at most {most}" if most > 0 else ""
            minus = f" less {asked} for baselines" if asked else ""
            said = "" if keys.has("teams") else " (as many as there may be if teams is left out)"
            keys.bad(
                "questions",
                f"{questions} questions{minus} leave none for each of {teams} teams{said}; raise "
                f"questions to at least {teams + asked}{fewer}.",
                "no_share",
            )
        elif per_team > questions - asked:
            keys.bad(
                "per_team",
                f"per_team must be at most {questions - asked}, the questions there are; "
                f"got {per_team}.",
            )
    return {"questions": questions, "teams": teams, "per_team": per_team}


def _display(keys: Keys, found: Metric) -> Display:
    """Return the display: as the loss's name says, unless something else was typed."""
    part = keys.part("display", ("name", "direction", "digits", "as"))
    # A function of the organiser's own goes by its last name.
    shown_as, name = found.shown_as, found.name.rpartition(":")[2][:_NAME]
    if part is None:
        return Display(name, shown_as=shown_as, unit=found.loss.unit)
    direction = part.take("direction", _choice("higher", "lower"), None)
    way = part.take("as", _choice(*_WAYS), None)
    if (
        way is not None
        and direction is not None
        and (way == "complement") != (direction == "higher")
    ):
        part.bad("as", f"display.as: {way} is not better when {direction}; leave one of them out.")
    if way is None and direction is not None and direction != found.direction:
        way = "complement" if direction == "higher" else "loss"
    if way is not None and way != shown_as:
        shown_as, name = way, found.loss.name
    return Display(
        part.take("name", partial(one_line, most=_NAME), name),
        part.take("digits", _count(0, 10), 4),
        shown_as,
        found.loss.unit,
    )


def _window(keys: Keys) -> Window | None:
    part = keys.part("window", ("questions", *_LENGTHS))
    if part is None:
        return None
    questions = part.need("questions", _count(), 1, "try window: {questions: 5, days: 1}")
    given = [each for each in _LENGTHS if part.has(each)]
    if len(given) != 1:
        part.bad(
            None,
            "window needs its length once, as in window: {questions: 5, hours: 24}; "
            f"got {', '.join(given) or 'none'}.",
        )
        return None
    unit = _LENGTHS[given[0]]
    most = _FOREVER // unit
    length = part.take(given[0], partial(_settings.number, above=0, at_most=most), 1.0)
    return Window(questions, max(round(length * unit), 1))


def _phases(keys: Keys) -> tuple[Phase, ...]:
    """Return phases in order; without any, one that never ends."""
    whole = keys.has("start") or keys.has("end")
    if whole and keys.has("phases"):
        keys.bad("phases", "give phases, or one start and end, not both.", "conflict")
        return ()
    if not keys.has("phases"):
        return _ordered([_phase(keys, MAIN)], [keys])
    parts = keys.parts("phases", ("name", "start", "end"))
    found = [
        _phase(part, part.take("name", partial(one_line, most=_NAME), f"phase {at}"))
        for at, part in enumerate(parts, 1)
    ]
    if not found and not keys.wrong & {"phases"}:
        keys.bad("phases", "phases must hold at least one; leave it out for a board always open.")
    return _ordered(found, parts)


def _phase(part: Keys, name: str) -> Phase:
    start = part.take("start", read_time, None)
    return Phase(name, start, part.take("end", partial(read_time, end=True), None))


def _ordered(found: list[Phase], parts: list[Keys]) -> tuple[Phase, ...]:
    """Note phases that overlap, end before they begin, or have no end where one follows."""
    last = len(found) - 1
    for at, (phase, part) in enumerate(zip(found, parts, strict=True)):
        if at and phase.start is None and "start" not in part.wrong:
            part.bad(None, f"{part.name('start')} is missing; only the first phase may leave it.")
        if at < last and phase.end is None and "end" not in part.wrong:
            part.bad(None, f"{part.name('end')} is missing; only the last phase may leave it out.")
        if phase.start is not None and phase.end is not None and phase.end <= phase.start:
            part.bad("end", f"{part.name('end')} must be later than {part.name('start')}.")
        before = found[at - 1].end if at else None
        if before is not None and phase.start is not None and phase.start < before:
            part.bad(
                "start",
                f"{part.name('start')} must not be earlier than the end of the phase before.",
            )
        if phase.name in [each.name for each in found[:at]]:
            part.bad("name", f"{part.name('name')} must differ from those of other phases.")
    return tuple(found)


def _baselines(keys: Keys) -> tuple[Baseline, ...]:
    found: list[Baseline] = []
    for part in keys.parts("baselines", ("name", "file", "value", "source")):
        name = part.need("name", one_line, "baseline", "every baseline has one")
        if name.casefold() in [each.name.casefold() for each in found] and not part.wrong:
            part.bad("name", f"{part.name('name')} must differ from those of other baselines.")
        file = part.take("file", inside, None)
        value = part.take("value", partial(_settings.number, at_least=0, at_most=1), None)
        if part.has("file") == part.has("value"):
            part.bad(
                None,
                f"{part.name()} needs either a file, which is asked and counted, or a value, which "
                "is a loss from 0 to 1 that was found elsewhere.",
            )
        source = part.take("source", partial(one_line, most=300), "")
        if part.has("file") and part.has("source"):
            part.bad("source", f"{part.name('source')} goes with a value, not with a file.")
        if part.wrong:
            keys.wrong.add("baselines")
        found.append(Baseline(name, file, value, source))
    return tuple(found)


def _finals(keys: Keys) -> Finals | None:
    part = keys.part("finals", ("selections",))
    return None if part is None else Finals(part.take("selections", _count(1, 100), 1))


def _files(keys: Keys) -> FileLimits:
    part = keys.part("files", ("bytes", "rows", "seconds", "quota", "team_quota"))
    usual = FileLimits()
    if part is None:
        return usual
    return FileLimits(
        part.take("bytes", read_size, usual.bytes),
        part.take("rows", _count(), usual.rows),
        part.take("seconds", _count(1, 3600), usual.seconds),
        part.take("quota", read_size, usual.quota),
        part.take("team_quota", read_size, None),
    )
