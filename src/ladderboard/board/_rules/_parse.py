"""Reads rules: from the mapping in ``board.yaml`` to checked fields, with all problems noted."""

from __future__ import annotations

import difflib
import re
from dataclasses import MISSING, fields
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from ladderboard import _settings
from ladderboard.board._rules._parts import (
    Baseline,
    DataLink,
    DataRules,
    DisplayRules,
    FileRules,
    FinalsRules,
    MetricRules,
    PhaseRules,
    PrizeRules,
    RateLimitRules,
    SignInRules,
    TermsRules,
)
from ladderboard.board._rules._text import read_long_text, read_short_text, read_time
from ladderboard.errors import InvalidInput, InvalidRules, InvalidSetting, Problem
from ladderboard.files import DeclaredColumns, Problems
from ladderboard.losses import HIGHER_FORMS, Metric, ZeroOne, loss_label, metric
from ladderboard.mechanisms import MECHANISMS, PROTECTIONS, Mechanism
from ladderboard.mechanisms import mechanism as mechanism_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.board._rules._yaml import Lines

T = TypeVar("T")
CALIBRATED = "calibrated"
MEAN_RANK = "mean_rank"
_SLUG = r"[a-z0-9][a-z0-9-]{0,62}"
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([kmgt]i?b|b)", re.IGNORECASE | re.ASCII)
_POWERS = "bkmgt"
_MAX_SIZE = 2**50
KNOWN_KEYS = (
    "slug", "title", "description", "loss", "metric", "metrics", "leaderboard_metric",
    "final_metric", "columns", "display", "mechanism", "beta", "submissions", "questions", "teams",
    "accounts", "protection", "per_team", "window", "start",
    "end", "phases", "ladder", "registration", "visibility", "baselines", "finals", "files",
    "play", "sign_in", "data", "listing", "terms", "organisers", "prizes",
)  # fmt: skip
DEFAULT_PHASE = "main"
_MAX_COUNT = 10**15
_DEFAULT_TEAMS = {"sign_in": 100, "invited": 50, "organiser": 50}
_DOMAIN = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")
_PROVIDER = re.compile("[a-z][a-z0-9_-]{0,31}")
_TIME_UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400}
_MAX_NAME_LENGTH = 40
_MAX_NAMES = 20
# Words that people write for keys.
_OTHER_WORDS = {
    "deadline": "end", "closes": "end", "closing": "end", "until": "end", "opens": "start",
    "opening": "start", "begin": "start", "name": "title", "limit": "window", "daily": "window",
    "per_day": "window", "budget": "submissions", "max_teams": "teams", "prize": "prizes",
    "evaluation": "metric",
}  # fmt: skip
_NOBODY: tuple[str, ...] = ()
MAX_TERMS = 50_000
"""The largest number of characters of a board's terms."""
_MAX_PRIZES = 50
_MAX_WINDOW_SECONDS = 100 * 366 * 86_400
_SHOWN_AS = ("loss", "complement", "scaled", "root", "percent")
_FALLBACK_METRIC = Metric("zero_one", ZeroOne())


def _capitalize(message: str) -> str:
    """Start with a capital letter, unless the message starts with a file name.

    >>> _capitalize("phases[0].end is missing."), _capitalize("holdout.csv: no row is public.")
    ('Phases[0].end is missing.', 'holdout.csv: no row is public.')
    """
    first = message.partition(" ")[0]
    if "." in first and "[" not in first:
        return message
    return f"{message[0].upper()}{message[1:]}"


class RuleProblems:
    """Collects the problems of a board's rules, each with its line.

    ``names`` has the names under which people gave keys, such as end for that of the last phase.
    ``least_teams`` is how many teams the rules must allow: an amendment cannot lower them.
    """

    def __init__(self, where: str = "", *, least_teams: int = 1) -> None:
        self.where, self.least_teams = where, least_teams
        self.lines: Lines = {}
        self.entries: list[tuple[int, Problem]] = []
        self.names: dict[str, str] = {}

    def add(self, code: str, message: str, *, key: str | None = None, line: int = 0) -> None:
        """Add a problem."""
        for path, name in self.names.items():
            message = message.replace(path, name)
        position = ", ".join(part for part in (self.where, f"line {line}" if line else "") if part)
        text = f"{position}: {message}" if position else _capitalize(message)
        ids = (str(line),) if line else ()
        self.entries.append((line, Problem(code, key, 1, ids, text)))

    def problems(self) -> list[Problem]:
        """Return all problems, sorted by line."""
        return [problem for _, problem in sorted(self.entries, key=lambda pair: pair[0])]

    def refuse_if_any(self) -> None:
        """Raise ``InvalidRules`` with all problems, if there are any."""
        every = Problems(InvalidRules)
        every.items = self.problems()
        every.refuse_if_any()

    def require(self, value: T | None) -> T:
        """Return a value that could be read; raise ``InvalidRules`` if there are any problems."""
        self.refuse_if_any()
        if value is None:
            raise InvalidRules("Something could not be read, and no problem was noted.")
        return value


class MappingReader:
    """Reads the keys of a mapping in ``board.yaml`` and collects their problems.

    Parameters
    ----------
    mapping
        The mapping as it was parsed.
    problems
        Collects problems.
    path
        The keys that lead to the mapping.
    """

    def __init__(
        self, mapping: Any, problems: RuleProblems, path: tuple[str | int, ...] = ()
    ) -> None:
        self.mapping: dict[str, Any] = mapping
        self.problems, self.path = problems, path
        self.wrong: set[str] = set()

    def name(self, key: str | None = None) -> str:
        """Return a key's name for messages, such as ``phases[0].end``."""
        path = self.path if key is None else (*self.path, key)
        parts = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in path]
        return "".join(parts).removeprefix(".")

    def add_problem(self, key: str | None, message: str, code: str = "bad_value") -> None:
        """Note a problem of a key, or of the whole mapping."""
        path = self.path if key is None else (*self.path, key)
        line = next(
            (self.problems.lines[path[:cut]] for cut in range(len(path), 0, -1)
             if path[:cut] in self.problems.lines),
            0,
        )  # fmt: skip
        self.wrong.add(key or "")
        self.problems.add(code, message, key=self.name(key) or None, line=line)

    def refuse_unknown(self, known: tuple[str, ...]) -> None:
        """Note unknown keys, each with the most similar known one."""
        for key in self.mapping:
            if key in known:
                continue
            others = {name: other for name, other in _OTHER_WORDS.items() if other in known}
            close = difflib.get_close_matches(str(key).lower(), (*known, *others), n=1, cutoff=0.7)
            hint = (
                f"did you mean {others.get(close[0], close[0])}?"
                if close
                else f"choose from {', '.join(known)}."
            )
            owner = f"{self.name()} has no" if self.path else "there is no"
            self.add_problem(key, f"{owner} key {_settings.safe_repr(key)}; {hint}", "unknown_key")

    def has(self, key: str) -> bool:
        """Return whether a key has a value."""
        return self.mapping.get(key) is not None

    def choose_name(self, *names: str) -> str:
        """Return which of a key's names is used: the first if none is; refuse two at once."""
        used = [name for name in names if self.has(name)]
        if len(used) > 1:
            message = f"{' and '.join(used)} are two names for one key; leave one out."
            self.add_problem(used[0], message)
        return used[0] if used else names[0]

    def read_key(self, key: str, read: Callable[[str, Any], T], default: T) -> T:
        """Return a key's value through ``read``; the default if it is missing or wrong."""
        if not self.has(key):
            return default
        try:
            return read(self.name(key), self.mapping[key])
        except InvalidInput as error:
            self.add_problem(key, str(error))
        return default

    def read_required(self, key: str, read: Callable[[str, Any], T], default: T, hint: str) -> T:
        """As ``read_key``, for a required key; ``hint`` says what to write."""
        if self.has(key):
            return self.read_key(key, read, default)
        self.add_problem(
            None if self.path else key, f"{self.name(key)} is missing; {hint}.", "missing_key"
        )
        self.wrong.add(key)
        return default

    def read_submapping(self, key: str, known: tuple[str, ...]) -> MappingReader | None:
        """Return a reader of the mapping under a key; None if it is missing."""
        if not self.has(key):
            return None
        return self._read_mapping(self.mapping[key], (*self.path, key), known)

    def read_submappings(self, key: str, known: tuple[str, ...]) -> list[MappingReader]:
        """Return readers of the mappings in the list under a key."""
        if not self.has(key):
            return []
        items = self.mapping[key]
        if not isinstance(items, list):
            self.add_problem(
                key, f"{self.name(key)} must be a list; got {_settings.safe_repr(items)}."
            )
            return []
        readers = [
            self._read_mapping(item, (*self.path, key, index), known)
            for index, item in enumerate(items)
        ]
        if None in readers:
            self.wrong.add(key)
        return [reader for reader in readers if reader is not None]

    def _read_mapping(
        self, mapping: Any, path: tuple[str | int, ...], known: tuple[str, ...]
    ) -> MappingReader | None:
        reader = MappingReader(mapping, self.problems, path)
        if not isinstance(mapping, dict) or not all(isinstance(key, str) for key in mapping):
            reader.add_problem(
                None,
                f"{reader.name()} must hold {', '.join(known)}; "
                f"got {_settings.safe_repr(mapping)}.",
            )
            self.wrong.add(str(path[len(self.path)]))
            return None
        reader.refuse_unknown(known)
        return reader


def read_slug(name: str, value: Any) -> str:
    """Return the board's slug, its name in URLs."""
    if isinstance(value, str) and re.fullmatch(_SLUG, value):
        return value
    raise InvalidSetting(
        f"{name} must be 1 to 63 letters a to z, digits and hyphens, and not begin with a hyphen; "
        f"got {_settings.safe_repr(value)}."
    )


def read_flag(name: str, value: Any) -> bool:
    """Return true or false; other spellings are refused as ambiguous."""
    if isinstance(value, bool):
        return value
    raise InvalidSetting(f"{name} must be true or false; got {_settings.safe_repr(value)}.")


def read_size(name: str, value: Any) -> int:
    """Return a number of bytes from an integer or from text with a unit.

    >>> read_size("bytes", "20 MB"), read_size("bytes", "1 GiB")
    (20000000, 1073741824)
    """
    if isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        unit = match[2].lower()
        size = float(match[1]) * (1024 if "i" in unit else 1000) ** _POWERS.index(unit[0])
        value = int(size) if size <= _MAX_SIZE else value
    elif isinstance(value, str):
        raise InvalidSetting(
            f"{name} must be a number of bytes, such as 20000000 or 20 MB; "
            f"got {_settings.safe_repr(value)}."
        )
    return _settings.integer(name, value, at_least=1, at_most=_MAX_SIZE)


def read_relative_path(name: str, value: Any) -> str:
    """Return the path of a file inside the board's folder."""
    path = read_short_text(name, value, max_length=500)
    parts = PurePosixPath(path).parts
    if path.startswith("/") or "\\" in path or ":" in path or ".." in parts or not parts:
        raise InvalidSetting(
            f"{name} must be a file in the board's folder, such as baselines/mean.csv; "
            f"got {_settings.safe_repr(value)}."
        )
    return str(PurePosixPath(path))


def read_loss(name: str, value: Any) -> Metric:
    """Return a loss and its display, from a name or from a mapping with parameters."""
    is_sum = isinstance(value, dict) and "sum" in value
    loss_name, params = (value, {}) if is_sum else _split_name(name, value, "accuracy")
    try:
        read = metric(loss_name, **params)
        read.check_settings()
    except InvalidInput as error:
        raise InvalidSetting(f"{name}: {_suggest_in_yaml(str(error), name)}") from None
    except (Exception, SystemExit) as error:  # a custom loss may raise anything
        raise InvalidSetting(
            f"{name}: {_settings.safe_repr(loss_name)} failed with {type(error).__name__}."
        ) from error
    return read


def read_columns(name: str, value: Any) -> DeclaredColumns | None:
    """Return the declared names of columns."""
    try:
        return DeclaredColumns.read(value)
    except InvalidInput as error:
        raise InvalidSetting(f"{name}: {error}") from None


def _suggest_in_yaml(sentence: str, key: str) -> str:
    """Return a message with the suggested loss written as in board.yaml.

    >>> _suggest_in_yaml('It needs a range; try lb.metric("rmse", range=(0, 100)).', "metric")
    'It needs a range; try metric: {name: rmse, range: [0, 100]}.'
    """

    def to_yaml(match: re.Match[str]) -> str:
        settings = match[2].replace("=", ": ").replace("(", "[").replace(")", "]")
        return f"{key}: {{name: {match[1]}{settings}}}"

    return re.sub(
        r'\b(?:lb\.)?(?:loss|metric)\("([^"]+)"((?:, \w+=\([^()]*\))*)\)', to_yaml, sentence
    )


def read_mechanism(name: str, value: Any) -> Mechanism | None:
    """Return a mechanism from a name or from a mapping with settings; None: calibrated."""
    mechanism_name, params = _split_name(name, value, CALIBRATED)
    if mechanism_name == CALIBRATED:
        if params:
            raise InvalidSetting(f"{name}: {CALIBRATED} takes no settings; they are measured.")
        return None
    kind = MECHANISMS.get(mechanism_name)
    if kind is None:
        raise InvalidSetting(
            f"{name} must be {CALIBRATED}, {', '.join(MECHANISMS)}; "
            f"got {_settings.safe_repr(mechanism_name)}."
        )
    if kind.needs_training:
        raise InvalidSetting(
            f"{name}: {mechanism_name} needs a training loss with every submission, and a "
            "submission has none."
        )
    known = {field.name: field.default is MISSING for field in fields(kind) if field.compare}
    lacking = [param for param, needed in known.items() if needed and param not in params]
    unknown = [param for param in params if param not in known]
    if lacking or unknown:
        there_is = f"it takes {', '.join(known)}" if known else "it takes no settings"
        mistake = (
            f"needs {', '.join(lacking)}"
            if lacking
            else f"has no {_settings.safe_repr(unknown[0])}"
        )
        raise InvalidSetting(f"{name}: {mechanism_name} {mistake}; {there_is}.")
    try:
        return mechanism_of({"mechanism": mechanism_name, **params})
    except InvalidInput as error:
        raise InvalidSetting(f"{name}: {error}") from None


def _split_name(name: str, value: Any, example: str) -> tuple[str, dict[str, Any]]:
    """Return name and settings, from a name alone or from a mapping with one."""
    params = dict(value) if isinstance(value, dict) else {"name": value}
    own_name = params.pop("name", None)
    if not isinstance(own_name, str) or not all(isinstance(param, str) for param in params):
        raise InvalidSetting(
            f"{name} must be a name, such as {example}, or a mapping with name and settings; "
            f"got {_settings.safe_repr(value)}."
        )
    return own_name, params


def read_rule_fields(keys: MappingReader, slug: str | None) -> dict[str, Any]:
    """Return the fields of ``Rules``; use them only if no problem was noted."""
    keys.refuse_unknown(KNOWN_KEYS)
    name = _read_slug_key(keys, slug)
    metric_key = keys.choose_name("metric", "loss")
    display = keys.read_required(metric_key, read_loss, _FALLBACK_METRIC, "try metric: accuracy")
    registration = keys.read_key(
        "registration",
        _choice_reader("open", "invited", "organiser", "sign_in"),
        "sign_in" if keys.has("sign_in") else "invited",
    )
    if display.loss.at_close_only:
        message = "a function of all examples is for the close only; put it under metrics"
        keys.add_problem(metric_key, f"{metric_key}: {message}.")
    baselines = _read_baselines(keys)
    shown = _read_display(keys, display)
    metrics = _read_metrics(keys, shown.name)
    mechanism = keys.read_key("mechanism", read_mechanism, None)
    ladder = keys.read_key("ladder", _choice_reader("team", "board"), "team")
    return {
        "slug": name,
        "title": keys.read_key("title", read_short_text, name),
        "description": keys.read_key("description", read_long_text, ""),
        "loss": display.loss,
        "display": shown,
        "metrics": metrics,
        "leaderboard_metric": _read_leaderboard_metric(
            keys, shown.name, metrics, mechanism, ladder
        ),
        "final_metric": _read_final_metric(keys, shown.name, metrics),
        "mechanism": mechanism,
        "beta": keys.read_key("beta", partial(_settings.number, at_least=1e-100, below=1), 0.05),
        **_read_budget(
            keys, registration, sum(baseline.file is not None for baseline in baselines)
        ),
        "window": _read_window(keys),
        "phases": _read_phases(keys),
        "ladder": ladder,
        "registration": registration,
        "protection": keys.read_key("protection", _choice_reader(*PROTECTIONS), None),
        "visibility": keys.read_key(
            "visibility", _choice_reader("public", "hidden", "anonymous", "frozen"), "public"
        ),
        "baselines": baselines,
        "finals": _read_finals(keys),
        "files": _read_files(keys),
        "columns": keys.read_key("columns", read_columns, None),
        "play": keys.read_key("play", read_flag, False),
        "sign_in": _read_sign_in(keys, registration),
        "data": _read_data(keys),
        "listing": _read_listing(keys, registration),
        "terms": _read_terms(keys),
        "organisers": keys.read_key("organisers", _read_names, _NOBODY),
        "prizes": _read_prizes(keys),
    }


def _choice_reader(*choices: str) -> Any:
    return partial(_settings.choice, choices=choices)


def _count_reader(at_least: int = 1, at_most: int = _MAX_COUNT) -> Any:
    return partial(_settings.integer, at_least=at_least, at_most=at_most)


def _read_slug_key(keys: MappingReader, slug: str | None) -> str:
    if keys.has("slug") or slug is None:
        return keys.read_required("slug", read_slug, "board", "try slug: my-board")
    try:
        return read_slug("slug", slug)
    except ValueError:
        keys.add_problem(
            "slug",
            f"slug is missing, and the folder's name {_settings.safe_repr(slug)} cannot be one; "
            "write one, such as slug: my-board.",
            "missing_key",
        )
        return "board"


def equal_part(questions: int, baselines: int, teams: int) -> int:
    """Return each team's equal share of the questions; 0 if there are too few."""
    return max(questions - baselines, 0) // teams


def _read_budget(keys: MappingReader, registration: str, baselines: int) -> dict[str, Any]:
    """Return questions, teams, accounts and per_team; every team must get a share."""
    budget_key = keys.choose_name("submissions", "questions")
    questions = keys.read_required(budget_key, _count_reader(), 1, f"try {budget_key}: 1000")
    if registration == "open":
        # What one person can gain by many accounts depends on how many there may be.
        hint = "with open registration, declare how many teams there may be; try teams: 20"
        teams = keys.read_required("teams", _count_reader(), 1, hint)
    else:
        teams = keys.read_key("teams", _count_reader(), _DEFAULT_TEAMS[registration])
    accounts = keys.read_key("accounts", _count_reader(at_most=teams), None)
    share = equal_part(questions, baselines, teams)
    per_team = keys.read_key("per_team", _count_reader(), max(share, 1))
    related = {budget_key, "teams", "per_team", "registration", "baselines"}
    if not related & keys.wrong:
        if not share:
            available = questions - baselines
            can_be_fewer = available >= keys.problems.least_teams
            fewer = f", or lower teams to at most {available:,}" if can_be_fewer else ""
            minus = f" less {baselines} for baselines" if baselines else ""
            default_note = "" if keys.has("teams") else " (the default)"
            keys.add_problem(
                budget_key,
                f"{questions:,} submissions{minus} leave none for each of {teams:,} teams"
                f"{default_note}; raise {budget_key} to at least {teams + baselines:,}{fewer}.",
                "no_share",
            )
        elif per_team > questions - baselines:
            keys.add_problem(
                "per_team",
                f"per_team must be at most {questions - baselines}, the board's submissions; "
                f"got {per_team}.",
            )
    return {"questions": questions, "teams": teams, "accounts": accounts, "per_team": per_team}


def _read_display(keys: MappingReader, metric_read: Metric) -> DisplayRules:
    """Return the display: the default of the loss's name, with what ``display`` changes."""
    part = keys.read_submapping("display", ("name", "direction", "digits", "as"))
    # A custom metric "module:name" is shown by its last part.
    shown_as, name = metric_read.shown_as, metric_read.label.rpartition(":")[2][:_MAX_NAME_LENGTH]
    if part is None:
        unit = metric_read.loss.display_unit(shown_as)
        return DisplayRules(name, shown_as=shown_as, unit=unit)
    direction = part.read_key("direction", _choice_reader("higher", "lower"), None)
    shown_as_typed = part.read_key("as", _choice_reader(*_SHOWN_AS), None)
    if (
        shown_as_typed is not None
        and direction is not None
        and (shown_as_typed in HIGHER_FORMS) != (direction == "higher")
    ):
        part.add_problem(
            "as",
            f"display.as: {shown_as_typed} is not better when {direction}; leave one of them out.",
        )
    if shown_as_typed is None and direction is not None and direction != metric_read.direction:
        shown_as_typed = "complement" if direction == "higher" else "loss"
    if shown_as_typed is not None and shown_as_typed != shown_as:
        shown_as, name = shown_as_typed, metric_read.loss.name
        if shown_as not in HIGHER_FORMS:
            name = loss_label(name)[:_MAX_NAME_LENGTH]
    return DisplayRules(
        part.read_key("name", partial(read_short_text, max_length=_MAX_NAME_LENGTH), name),
        part.read_key("digits", _count_reader(0, 10), 4),
        shown_as,
        metric_read.loss.display_unit(shown_as),
    )


def _read_metrics(keys: MappingReader, first: str) -> tuple[MetricRules, ...]:
    """Return the further metrics; each has another title."""
    items = keys.mapping.get("metrics") or []
    if not isinstance(items, list):
        message = "metrics must be a list, such as [log_loss, brier]"
        keys.add_problem("metrics", f"{message}; got {_settings.safe_repr(items)}.")
        return ()
    metrics: list[MetricRules] = []
    titles = [first]
    for number, item in enumerate(items):
        name = f"metrics[{number}]"
        try:
            metrics.append(_read_metric(name, item))
        except InvalidInput as error:
            keys.add_problem("metrics", str(error))
            continue
        title = metrics[-1].display.name
        if title.casefold() in [other.casefold() for other in titles]:
            message = f"{name} has the title {_settings.safe_repr(title)}, which another metric has"
            keys.add_problem("metrics", f"{message}; give it a title of its own.")
        titles.append(title)
    return tuple(metrics)


def _read_metric(name: str, item: Any) -> MetricRules:
    """Return a metric from its name, or from a mapping with settings and how it is shown."""
    settings = dict(item) if isinstance(item, dict) else {"name": item}
    title, form, digits = (settings.pop(key, None) for key in ("title", "as", "digits"))
    show = _settings.choice(f"{name}.show", settings.pop("show", "close"), ("live", "close"))
    read = read_loss(name, settings)
    if show == "live" and read.loss.at_close_only:
        raise InvalidSetting(f"{name}: a function of all examples is for the close only.")
    if form is None:
        form = read.shown_as
    _settings.choice(f"{name}.as", form, _SHOWN_AS)
    if title is None:
        title = read.label.rpartition(":")[2][:_MAX_NAME_LENGTH]
    return MetricRules(
        read.loss,
        DisplayRules(
            read_short_text(f"{name}.title", title, max_length=_MAX_NAME_LENGTH),
            4 if digits is None else _count_reader(0, 10)(f"{name}.digits", digits),
            form,
            read.loss.display_unit(form),
        ),
        show == "live",
    )


def _read_leaderboard_metric(
    keys: MappingReader,
    first: str,
    metrics: tuple[MetricRules, ...],
    mechanism: Mechanism | None,
    ladder: str,
) -> str | None:
    """Return ``mean_rank`` if that decides the leaderboard; None if the first metric does."""
    text = keys.read_key("leaderboard_metric", read_short_text, None)
    if text is None or "metrics" in keys.wrong or _fold_title(text) == _fold_title(first):
        return None
    problem = None
    if text != MEAN_RANK:
        problem = f"must be {first}, the metric that comes first, or {MEAN_RANK}; got "
        problem += f"{_settings.safe_repr(text)}"
    elif not any(metric.live for metric in metrics):
        problem = "mean_rank needs a second metric while the board runs; give one show: live"
    elif ladder == "board":
        problem = "mean_rank needs a ladder for each team; leave out ladder: board"
    elif mechanism is not None and mechanism.hides_value:
        problem = f"mean_rank needs scores, and {mechanism.name} shows none before the close"
    if problem is not None:
        keys.add_problem("leaderboard_metric", f"leaderboard_metric: {problem}.")
    return text


def _read_final_metric(
    keys: MappingReader, first: str, metrics: tuple[MetricRules, ...]
) -> str | None:
    """Return the title of the metric that decides the final ranking, or ``mean_rank``."""
    text = keys.read_key("final_metric", read_short_text, None)
    if text is None or "metrics" in keys.wrong:
        return None
    if text == MEAN_RANK and metrics:
        return text
    titles = [first, *(metric.display.name for metric in metrics)]
    names = {_fold_title(title): title for title in titles}
    typed = [keys.mapping.get("metric") or keys.mapping.get("loss")]
    typed += keys.mapping.get("metrics") or []
    for item, title in zip(typed, titles, strict=False):
        name = item.get("name") if isinstance(item, dict) else item
        names.setdefault(_fold_title(str(name)), title)
    if _fold_title(text) in names:
        return names[_fold_title(text)]
    choices = [*titles, *([MEAN_RANK] if metrics else [])]
    message = f"final_metric must be one of {', '.join(choices)}"
    keys.add_problem("final_metric", f"{message}; got {_settings.safe_repr(text)}.")
    return None


def _fold_title(title: str) -> str:
    return re.sub(r"[\s_-]+", " ", title).strip().casefold()


def _read_window(keys: MappingReader) -> RateLimitRules | None:
    part = keys.read_submapping("window", ("submissions", "questions", *_TIME_UNITS))
    if part is None:
        return None
    limit_key = part.choose_name("submissions", "questions")
    questions = part.read_required(
        limit_key, _count_reader(), 1, f"try window: {{{limit_key}: 5, days: 1}}"
    )
    units = [time_unit for time_unit in _TIME_UNITS if part.has(time_unit)]
    if len(units) != 1:
        part.add_problem(
            None,
            "window needs its length once, as in window: {submissions: 5, hours: 24}; "
            f"got {', '.join(units) or 'none'}.",
        )
        return None
    unit = _TIME_UNITS[units[0]]
    max_length = _MAX_WINDOW_SECONDS // unit
    length = part.read_key(units[0], partial(_settings.number, above=0, at_most=max_length), 1.0)
    return RateLimitRules(questions, max(round(length * unit), 1))


def _read_phases(keys: MappingReader) -> tuple[PhaseRules, ...]:
    """Return the phases in order; by default one that never ends."""
    has_times = keys.has("start") or keys.has("end")
    if has_times and keys.has("phases"):
        keys.add_problem("phases", "give either phases or one start and end.", "conflict")
        return ()
    if not keys.has("phases"):
        return _check_phase_order([_read_phase(keys, DEFAULT_PHASE)], [keys])
    parts = keys.read_submappings("phases", ("name", "start", "end"))
    phases = [
        _read_phase(
            part,
            part.read_key(
                "name", partial(read_short_text, max_length=_MAX_NAME_LENGTH), f"phase {number}"
            ),
        )
        for number, part in enumerate(parts, 1)
    ]
    if not phases and not keys.wrong & {"phases"}:
        keys.add_problem(
            "phases", "phases must have at least one; leave it out for a board that is always open."
        )
    return _check_phase_order(phases, parts)


def _read_phase(part: MappingReader, name: str) -> PhaseRules:
    start = part.read_key("start", read_time, None)
    return PhaseRules(name, start, part.read_key("end", partial(read_time, end=True), None))


def _check_phase_order(
    phases: list[PhaseRules], parts: list[MappingReader]
) -> tuple[PhaseRules, ...]:
    """Note phases that overlap, end before they begin, or lack a start or an end."""
    last = len(phases) - 1
    for index, (phase, part) in enumerate(zip(phases, parts, strict=True)):
        if index and phase.start is None and "start" not in part.wrong:
            part.add_problem(
                None, f"{part.name('start')} is missing; only the first phase may leave it out."
            )
        if index < last and phase.end is None and "end" not in part.wrong:
            part.add_problem(
                None, f"{part.name('end')} is missing; only the last phase may leave it out."
            )
        if phase.start is not None and phase.end is not None and phase.end <= phase.start:
            part.add_problem("end", f"{part.name('end')} must be later than {part.name('start')}.")
        previous_end = phases[index - 1].end if index else None
        if previous_end is not None and phase.start is not None and phase.start < previous_end:
            part.add_problem(
                "start",
                f"{part.name('start')} must not be earlier than the end of the phase before.",
            )
        if phase.name in [earlier.name for earlier in phases[:index]]:
            part.add_problem("name", f"{part.name('name')} must differ from those of other phases.")
    return tuple(phases)


def _read_baselines(keys: MappingReader) -> tuple[Baseline, ...]:
    baselines: list[Baseline] = []
    for part in keys.read_submappings("baselines", ("name", "file", "value", "source")):
        name = part.read_required("name", read_short_text, "baseline", "every baseline has one")
        if (
            name.casefold() in [baseline.name.casefold() for baseline in baselines]
            and not part.wrong
        ):
            part.add_problem(
                "name", f"{part.name('name')} must differ from those of other baselines."
            )
        file = part.read_key("file", read_relative_path, None)
        value = part.read_key("value", partial(_settings.number, at_least=0, at_most=1), None)
        if part.has("file") == part.has("value"):
            part.add_problem(
                None,
                f"{part.name()} needs either a file, which is submitted and counted, or a value, "
                "which is a loss from 0 to 1 from elsewhere.",
            )
        source = part.read_key("source", partial(read_short_text, max_length=300), "")
        if part.has("file") and part.has("source"):
            part.add_problem("source", f"{part.name('source')} goes with a value, not with a file.")
        if part.wrong:
            keys.wrong.add("baselines")
        baselines.append(Baseline(name, file, value, source))
    return tuple(baselines)


def _read_sign_in(keys: MappingReader, registration: str) -> SignInRules | None:
    """Return who may register by signing in; None if nobody signs in."""
    part = keys.read_submapping("sign_in", ("providers", "domains", "people", "approval"))
    if registration != "sign_in":
        if keys.has("sign_in"):
            keys.add_problem("sign_in", "sign_in goes with registration: sign_in.", "conflict")
        return None
    if part is None:
        return SignInRules()
    return SignInRules(
        part.read_key("providers", partial(_read_words, _PROVIDER, "github"), ()),
        part.read_key("domains", partial(_read_words, _DOMAIN, "example.edu"), ()),
        part.read_key("people", read_relative_path, None),
        part.read_key("approval", read_flag, False),
    )


def _read_listing(keys: MappingReader, registration: str) -> str:
    """Return who finds the board; only members can see the Join page of a members' board."""
    listing: str = keys.read_key(
        "listing", _choice_reader("listed", "unlisted", "members"), "listed"
    )
    if listing == "members" and registration != "organiser" and "registration" not in keys.wrong:
        keys.add_problem(
            "listing",
            "listing: members goes with registration: organiser; others cannot see the Join page.",
            "conflict",
        )
    return listing


def _read_data(keys: MappingReader) -> DataRules:
    """Return who may download the data, and links to files elsewhere."""
    part = keys.read_submapping("data", ("members", "links"))
    if part is None:
        return DataRules()
    links = [
        DataLink(
            link.read_required("name", read_short_text, "", "try name: train.csv"),
            link.read_required("url", _read_url, "", "try url: https://example.org/train.csv"),
            link.read_key("bytes", read_size, None),
            link.read_key("sha256", _read_sha256, None),
        )
        for link in part.read_submappings("links", ("name", "url", "bytes", "sha256"))
    ]
    return DataRules(part.read_key("members", read_flag, False), tuple(links))


def _read_terms(keys: MappingReader) -> TermsRules | None:
    """Return the terms: a text, or the file in the folder that has it."""
    if not isinstance(keys.mapping.get("terms"), dict):
        text = keys.read_key("terms", partial(read_long_text, max_length=MAX_TERMS), "")
        return TermsRules(text) if text.strip() else None
    part = keys.read_submapping("terms", ("file",))
    if part is None:
        return None
    file = part.read_required("file", read_relative_path, "", "try terms: {file: terms.md}")
    return TermsRules("", file)


def _read_names(name: str, value: Any) -> tuple[str, ...]:
    """Return a list of names, from a list or a single name."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or len(items) > _MAX_NAMES:
        raise InvalidSetting(
            f"{name} must be a list of at most {_MAX_NAMES} names; "
            f"got {_settings.safe_repr(value)}."
        )
    return tuple(read_short_text(name, item) for item in items)


def _read_url(name: str, value: Any) -> str:
    text = read_short_text(name, value, max_length=500)
    if re.match(r"https?://[^\s/]+", text) and " " not in text:
        return text
    raise InvalidSetting(
        f"{name} must begin with https:// or http://; got {_settings.safe_repr(value)}."
    )


def _read_sha256(name: str, value: Any) -> str:
    if isinstance(value, str) and re.fullmatch("[0-9a-fA-F]{64}", value):
        return value.lower()
    raise InvalidSetting(f"{name} must be 64 hex digits; got {_settings.safe_repr(value)}.")


def _read_words(pattern: re.Pattern[str], example: str, name: str, value: Any) -> tuple[str, ...]:
    """Return a list of words in lower case, from a list or a single word."""
    items = [value] if isinstance(value, str) else value
    if isinstance(items, list) and all(isinstance(item, str) for item in items):
        words = [item.strip().lower() for item in items]
        if words and all(map(pattern.fullmatch, words)):
            return tuple(dict.fromkeys(words))
    raise InvalidSetting(
        f"{name} must be a list such as [{example}]; got {_settings.safe_repr(value)}."
    )


def _read_finals(keys: MappingReader) -> FinalsRules | None:
    part = keys.read_submapping("finals", ("selections",))
    return (
        None if part is None else FinalsRules(part.read_key("selections", _count_reader(1, 100), 1))
    )


def _read_prizes(keys: MappingReader) -> tuple[PrizeRules, ...]:
    """Return the prizes for places in the final ranking."""
    parts = keys.read_submappings("prizes", ("name", "place", "to"))
    if len(parts) > _MAX_PRIZES:
        keys.add_problem("prizes", f"prizes must be at most {_MAX_PRIZES}; got {len(parts)}.")
    return tuple(
        PrizeRules(
            part.read_required("name", read_short_text, "", "try name: First prize"),
            part.read_key("place", _count_reader(1, 10_000), 1),
            part.read_key("to", _choice_reader("range", "band", "rank"), "range"),
        )
        for part in parts
    )


def _read_files(keys: MappingReader) -> FileRules:
    part = keys.read_submapping("files", ("bytes", "rows", "seconds", "quota", "team_quota"))
    usual = FileRules()
    if part is None:
        return usual
    return FileRules(
        part.read_key("bytes", read_size, usual.bytes),
        part.read_key("rows", _count_reader(), usual.rows),
        part.read_key("seconds", _count_reader(1, 3600), usual.seconds),
        part.read_key("quota", read_size, usual.quota),
        part.read_key("team_quota", read_size, None),
    )
