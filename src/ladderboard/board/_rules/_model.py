"""The rules of a board, and which of them may be amended after the start."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from ladderboard import _settings
from ladderboard._formatting import format_utc
from ladderboard.board._rules._parse import (
    CALIBRATED,
    MEAN_RANK,
    MappingReader,
    RuleProblems,
    equal_part,
    read_columns,
    read_rule_fields,
)
from ladderboard.board._rules._parts import DataRules, MetricRules, serialize_metric_release
from ladderboard.board._rules._yaml import read_yaml
from ladderboard.errors import InvalidSetting
from ladderboard.mechanisms import GrowingLadder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ladderboard.board._rules._parts import (
        Baseline,
        DisplayRules,
        FileRules,
        FinalsRules,
        PhaseRules,
        PrizeRules,
        RateLimitRules,
        SignInRules,
        TermsRules,
    )
    from ladderboard.files import DeclaredColumns
    from ladderboard.losses import Loss
    from ladderboard.mechanisms import Mechanism, Release

# Why a key cannot change after the start.
_FIXED_KEYS = {
    "slug": "it is the board's address, and tokens belong to it",
    "loss": "releases under two losses cannot be compared, and the commitment names this one",
    "mechanism": "the promise is about the mechanism that the commitment names",
    "beta": "published certificates have this probability of being false",
    "ladder": "releases on different ladders cannot be compared",
    "accounts": "the mechanism was calibrated for it",
    "protection": "the mechanism was calibrated for it",
    "baselines": "they were submitted and counted at the start",
    "columns": "submissions are read by these names",
    "metrics": "participants were promised these",
    "leaderboard_metric": "participants were promised a leaderboard by it",
    "final_metric": "participants were promised a final ranking by it",
}
# Other names of keys, as ``board.yaml`` may have them.
_CANONICAL_KEYS = {"questions": "submissions", "metric": "loss"}
_FIXED_DISPLAY_KEYS = ("direction", "as")
# Their defaults may differ from what participants were promised.
_REQUIRED_WHEN_AMENDED = ("display", "visibility", "registration")
_KNOWN_TEAMS_ACCOUNTS = 2
SECRET_VISIBILITIES = ("hidden", "frozen")
"""Visibilities under which teams do not see what other teams do."""
_MAPPING_KEYS = ("display", "finals", "files", "window", "sign_in", "data")


@dataclass(frozen=True, kw_only=True)
class Rules:
    r"""The settings of a board. Made by :func:`read_rules` or :meth:`of`.

    Every key of ``board.yaml`` is a field; docs/reference/board-yaml.md describes them.
    ``mechanism`` is None for the calibrated growing ladder; ``accounts`` and ``protection`` are
    None for their defaults.

    Examples
    --------
    >>> rules = read_rules("slug: digits\nmetric: accuracy\nsubmissions: 1000\nteams: 20\n")
    >>> rules.share, rules.pool, rules.ladders, rules.display.name
    (50, 0, 20, 'accuracy')
    >>> Rules.from_description(rules.describe()) == rules
    True
    """

    slug: str
    title: str
    description: str
    loss: Loss
    display: DisplayRules
    mechanism: Mechanism | None
    beta: float
    questions: int
    teams: int
    per_team: int
    window: RateLimitRules | None
    phases: tuple[PhaseRules, ...]
    ladder: Literal["team", "board"]
    registration: Literal["open", "invited", "organiser", "sign_in"]
    visibility: Literal["public", "hidden", "anonymous", "frozen"]
    baselines: tuple[Baseline, ...]
    finals: FinalsRules | None
    files: FileRules
    metrics: tuple[MetricRules, ...] = ()
    leaderboard_metric: str | None = None
    final_metric: str | None = None
    accounts: int | None = None
    protection: str | None = None
    columns: DeclaredColumns | None = None
    play: bool = False
    sign_in: SignInRules | None = None
    data: DataRules = field(default_factory=DataRules)
    listing: Literal["listed", "unlisted", "members"] = "listed"
    terms: TermsRules | None = None
    organisers: tuple[str, ...] = ()
    prizes: tuple[PrizeRules, ...] = ()

    @classmethod
    def from_description(cls, described: Mapping[str, Any]) -> Rules:
        """Return the rules from what ``describe`` returned."""
        return _build_rules(dict(described), RuleProblems(), None)

    @property
    def takes(self) -> Literal["predictions", "scores"]:
        """What submissions hold: predictions, or scores that evaluators gave to each example."""
        return "predictions" if self.loss.uses_labels else "scores"

    @cached_property
    def all_metrics(self) -> tuple[MetricRules, ...]:
        """All metrics of the board; the first decides the leaderboard."""
        return (MetricRules(self.loss, self.display, live=True), *self.metrics)

    @cached_property
    def live_metrics(self) -> tuple[int, ...]:
        """The places of the metrics that are shown while the board runs, from 0, the first."""
        return tuple(number for number, metric in enumerate(self.all_metrics) if metric.live)

    @property
    def answers(self) -> int:
        """The number of ladders that answer each submission, one for each live metric."""
        return len(self.live_metrics)

    @property
    def ranks_by_mean(self) -> bool:
        """Whether the mean of a team's ranks in the live metrics decides the leaderboard."""
        return self.leaderboard_metric == MEAN_RANK

    @property
    def final_metric_number(self) -> int | None:
        """Which of all metrics decides the final ranking; None for the mean of the ranks."""
        if self.final_metric == MEAN_RANK:
            return None
        names = [metric.display.name for metric in self.all_metrics]
        return 0 if self.final_metric is None else names.index(self.final_metric)

    @property
    def final_display(self) -> DisplayRules:
        """How the scores of the final ranking are shown."""
        return self.all_metrics[self.final_metric_number or 0].display

    @cached_property
    def scored_baseline_count(self) -> int:
        """The number of baselines that are files; each costs a question."""
        return sum(baseline.file is not None for baseline in self.baselines)

    @cached_property
    def share(self) -> int:
        """The number of questions reserved for each team."""
        return min(self.per_team, self.equal_part)

    @cached_property
    def equal_part(self) -> int:
        """An equal part of the questions; ``per_team`` where ``board.yaml`` leaves it out."""
        return equal_part(self.questions, self.scored_baseline_count, self.teams)

    @cached_property
    def team_quota(self) -> int:
        """The storage of one team in bytes; by default an equal part of the board's."""
        return self.files.team_quota or self.files.quota // self.teams

    @cached_property
    def pool(self) -> int:
        """The number of unreserved questions, for teams that used up their shares."""
        return self.questions - self.scored_baseline_count - self.teams * self.share

    @property
    def ladders(self) -> int:
        """The largest possible number of ladders."""
        teams = 1 if self.ladder == "board" else self.teams + self.scored_baseline_count
        return teams * self.answers

    @property
    def attacker_accounts(self) -> int:
        """How many ladders one attacker may hold: two if teams are known, all if anyone registers.

        With one ladder for all it is one; each has as many ladders as there are live metrics.
        """
        if self.accounts is not None:
            known = self.accounts
        else:
            known = self.teams if self.registration == "open" else _KNOWN_TEAMS_ACCOUNTS
        return min(known * self.answers, self.ladders)

    @property
    def selections(self) -> int:
        """The number of a team's submissions in the final ranking."""
        return 1 if self.finals is None else self.finals.selections

    @property
    def deadline(self) -> int | None:
        """The end of the last phase; None if it has none."""
        return self.phases[-1].end

    def phase_at(self, time: float) -> PhaseRules | None:
        """Return the phase at a time; None if the board is not open then."""
        return next((phase for phase in self.phases if phase.covers(time)), None)

    def next_start(self, time: float) -> int | None:
        """Return the start of the next phase after a time; None if there is none."""
        starts = (phase.start for phase in self.phases if phase.start is not None)
        return next((start for start in starts if start > time), None)

    def mechanism_for(self, n: int) -> Mechanism:
        """Return the mechanism for an effective number of ``n`` examples.

        Calibrated settings depend on questions and accounts, so use the rules that the board was
        created with. Amended rules do not change its mechanism. Steps depend on other teams only
        if an attacker may hold many accounts and the board does not hide others' activity.
        """
        if self.mechanism is not None:
            return self.mechanism
        mechanism = GrowingLadder.calibrated(
            n=n,
            questions=self.questions * self.answers,
            teams=self.ladders,
            accounts=self.attacker_accounts,
            protection=self.protection or "balanced",
            scale="value"
            if all(metric.loss.is_binary for metric in self.all_metrics if metric.live)
            else "model",
        )
        return mechanism.for_board(hides_others=self.visibility in SECRET_VISIBILITIES)

    def amended(self, changes: Mapping[str, Any], *, used: int | None = None) -> Rules:
        r"""Return the rules with some keys changed, written as in ``board.yaml``.

        ``start`` and ``end`` are those of the first phase and of the last. ``per_team`` stays an
        equal part if it is one. With ``used``, the questions used so far, the budget may be
        lowered to that.

        >>> rules = read_rules("slug: digits\nmetric: accuracy\nsubmissions: 1000\n")
        >>> after = rules.amended({"submissions": 2000})
        >>> after.questions, rules.per_team, after.per_team
        (2000, 20, 40)
        >>> rules.amended({"loss": "brier"})
        Traceback (most recent call last):
        ...
        ladderboard.errors.InvalidRules: Metric cannot change: releases under two losses cannot be
        compared, and the commitment names this one.
        """
        problems = RuleProblems(least_teams=self.teams)
        after = _build_rules(merge_changes(self, changes, problems), problems, None)
        check_amendment(self, after, used, problems)
        problems.refuse_if_any()
        return after

    def describe(self) -> dict[str, Any]:
        """Return every key with its value, JSON-able; equal rules have equal descriptions.

        ``metrics``, ``leaderboard_metric``, ``final_metric``, ``accounts``, ``protection``,
        ``columns``, ``play``, ``sign_in``, ``data``, ``listing``, ``terms``, ``organisers`` and
        ``prizes`` are included only if they are set, so that older boards keep their description.
        """
        window, finals, mechanism = self.window, self.finals, self.mechanism
        return {
            "slug": self.slug,
            "title": self.title,
            "description": self.description,
            "loss": {"name": self.loss.name, **self.loss.params},
            "display": self.display.describe(),
            "mechanism": CALIBRATED if mechanism is None else _describe_mechanism(mechanism),
            "beta": self.beta,
            "questions": self.questions,
            "teams": self.teams,
            "per_team": self.per_team,
            "window": None if window is None else window.describe(),
            "phases": [phase.describe() for phase in self.phases],
            "ladder": self.ladder,
            "registration": self.registration,
            "visibility": self.visibility,
            "baselines": [baseline.describe() for baseline in self.baselines],
            "finals": None if finals is None else finals.describe(),
            "files": self.files.describe(),
            **({"metrics": [metric.describe() for metric in self.metrics]} if self.metrics else {}),
            **({"leaderboard_metric": self.leaderboard_metric} if self.leaderboard_metric else {}),
            **({"final_metric": self.final_metric} if self.final_metric is not None else {}),
            **({"accounts": self.accounts} if self.accounts is not None else {}),
            **({"protection": self.protection} if self.protection is not None else {}),
            **({} if self.columns is None else {"columns": self.columns.describe()}),
            **({"play": True} if self.play else {}),
            **({} if self.sign_in is None else {"sign_in": self.sign_in.describe()}),
            **({} if self.data == DataRules() else {"data": self.data.describe()}),
            **({} if self.listing == "listed" else {"listing": self.listing}),
            **({} if self.terms is None else {"terms": self.terms.text}),
            **({"organisers": list(self.organisers)} if self.organisers else {}),
            **({"prizes": [prize.describe() for prize in self.prizes]} if self.prizes else {}),
        }


def serialize_releases(rules: Rules, releases: Sequence[Release]) -> list[dict[str, Any]]:
    """Return releases by the further live metrics, each in its metric."""
    return [
        serialize_metric_release(
            rules.all_metrics[number].display, release.value, improved=release.improved
        )
        for number, release in zip(rules.live_metrics[1:], releases, strict=False)
    ]


def serialize_values(rules: Rules, values: Sequence[float | None] | None) -> list[dict[str, Any]]:
    """Return released values by the further live metrics, each in its metric; None before any.

    With one ladder for all, a team has none of its own.
    """
    metrics = () if rules.ladder == "board" else rules.live_metrics[1:]
    return [
        serialize_metric_release(rules.all_metrics[number].display, value)
        for number, value in zip(metrics, values or (None,) * len(metrics), strict=True)
    ]


def format_further(rules: Rules, releases: Sequence[Release]) -> list[str]:
    """Return a sentence for each further live metric: its best, and whether it is a new one."""
    displays = [rules.all_metrics[number].display for number in rules.live_metrics[1:]]
    return [
        f"{display.name}: {'new best, ' if release.improved else 'best '}"
        f"{display.text(release.value)}."
        for display, release in zip(displays, releases, strict=False)
        if release.value is not None
    ]


def read_rules(text: str, *, where: str = "board.yaml", slug: str | None = None) -> Rules:
    r"""Return the rules that a YAML text holds.

    Parameters
    ----------
    text
        The content of ``board.yaml``.
    where
        The file's name in messages.
    slug
        The slug if the text has none: the folder's name.

    Raises
    ------
    InvalidRules
        ``problems`` lists everything that is wrong, each with its line.

    Examples
    --------
    >>> read_rules("slug: digits\nloss: acuracy\nquestion: 10\n")
    Traceback (most recent call last):
    ...
    ladderboard.errors.InvalidRules: 3 problems were found:
    - board.yaml: submissions is missing; try submissions: 1000.
    - board.yaml, line 2: loss: There is no metric named 'acuracy'; did you mean 'accuracy'?
    - board.yaml, line 3: there is no key 'question'; did you mean questions?
    """
    problems = RuleProblems(where)

    def note(code: str, sentence: str, line: int | None) -> None:
        problems.add(code, f"it {sentence}", line=line or 0)

    mapping, problems.lines = read_yaml(text, note)
    if mapping is None and not problems.entries:
        mapping = {}  # an empty file lacks everything
    if mapping is None:
        problems.refuse_if_any()
    return _build_rules(mapping, problems, slug)


def read_declared_columns(text: str) -> DeclaredColumns | None:
    """Return the names of columns in a YAML text whose other rules may be wrong, if any."""
    mapping, _ = read_yaml(text, lambda *_: None)
    try:
        return read_columns("columns", (mapping or {}).get("columns"))
    except InvalidSetting:
        return None


def merge_changes(
    before: Rules, changes: Mapping[str, Any], problems: RuleProblems
) -> dict[str, Any]:
    """Return the description with the changes; note those that are not allowed."""
    after = _describe_unchanged(before)
    changes = {_CANONICAL_KEYS.get(key, key): value for key, value in changes.items()}
    for key, value in changes.items():
        if key in _FIXED_KEYS:
            name = "metric" if key == "loss" else key
            problems.add("fixed", f"{name} cannot change: {_FIXED_KEYS[key]}.", key=key)
        elif value is None and key in _REQUIRED_WHEN_AMENDED:
            problems.add("bad_value", f"{key} cannot be left out; give its value.", key=key)
        else:
            after[key] = _merge_value(key, after.get(key), value)
    if after.get("registration") != "sign_in" and "sign_in" not in changes:
        after.pop("sign_in", None)  # it goes with that kind of registration
    display = changes.get("display")
    for key in _FIXED_DISPLAY_KEYS:
        if isinstance(display, dict) and key in display:
            reason = "people have seen numbers in the other direction"
            problems.add("fixed", f"display.{key} cannot change: {reason}.", key=f"display.{key}")
    if "phases" not in changes:
        # start is that of the first phase, end that of the last.
        for key, index in (("start", 0), ("end", -1)):
            if key in changes:
                after["phases"][index] = {**after["phases"][index], key: after.pop(key)}
                problems.names[f"phases[{index % len(after['phases'])}].{key}"] = key
    return after


def _describe_unchanged(before: Rules) -> dict[str, Any]:
    """Return what stays the same; an equal part follows ``submissions`` and ``teams``."""
    described = before.describe()
    described["submissions"] = described.pop("questions")  # the name in messages
    if before.per_team == before.equal_part:
        del described["per_team"]
    return described


def _merge_value(key: str, before: Any, value: Any) -> Any:
    """Return a key's value after a change; in a mapping only the given keys change."""
    if key not in _MAPPING_KEYS or not isinstance(value, dict):
        return value
    merged = dict(before or {})
    if key == "window":  # its description has this name
        value = {"questions" if name == "submissions" else name: value[name] for name in value}
    if key == "window" and any(name != "questions" for name in value):
        merged.pop("seconds", None)  # the new one may be in another unit
    return {**merged, **value}


def check_amendment(before: Rules, after: Rules, used: int | None, problems: RuleProblems) -> None:
    """Note a budget below what was used, and what cannot change or cannot be read here."""
    if after.terms is not None and after.terms.file is not None:
        problems.add(
            "bad_value",
            "terms must be the text itself; a file is read from the folder "
            "when the board is created or amended from it.",
            key="terms",
        )
    minimum = before.questions if used is None else used
    if after.questions < minimum:
        rule = f"at least {minimum}, the {'current number' if used is None else 'number used'}"
        problems.add(
            "bad_value",
            f"submissions must be {rule}; got {after.questions}.",
            key="questions",
        )
    if after.teams < before.teams:
        problems.add(
            "bad_value",
            f"teams cannot be lowered from {before.teams}: each team's submissions are reserved; "
            f"got {after.teams}.",
            key="teams",
        )
    if after.registration != before.registration and before.mechanism is None:
        _check_registration(before, after, problems)
    elif after.teams > before.teams and after.attacker_accounts > before.attacker_accounts:
        problems.add(
            "bad_value",
            f"teams cannot be raised from {before.teams}: the mechanism was calibrated for an "
            f"attacker with as many accounts; got {after.teams}.",
            key="teams",
        )


def past_deadline(rules: Rules, now: float) -> list[str]:
    """Return a sentence about a deadline that is past, if it is."""
    if rules.deadline is None or rules.deadline > now:
        return []
    return [f"The deadline {format_utc(rules.deadline)} is past: submissions will be refused."]


def warn_of_amendment(before: Rules, after: Rules, now: float) -> list[str]:
    r"""Return what an amendment would take from teams, for the organiser to confirm.

    >>> before = read_rules("slug: a\nmetric: accuracy\nsubmissions: 1000\nteams: 20\n")
    >>> print(*warn_of_amendment(before, before.amended({"teams": 25}), 0))
    Each team's reserved submissions fall from 50 to 40. Raise submissions to 1,250 to keep 50.
    """
    warnings = [] if after.deadline == before.deadline else past_deadline(after, now)
    if after.share < before.share and after.per_team >= after.equal_part:  # not by a lower per_team
        needed = after.teams * before.share + after.scored_baseline_count
        lowered = after.questions < before.questions  # then it is what the organiser wants
        warnings.append(
            f"Each team's reserved submissions fall from {before.share:,} to {after.share:,}."
            + ("" if lowered else f" Raise submissions to {needed:,} to keep {before.share:,}.")
        )
    return warnings


def _check_registration(before: Rules, after: Rules, problems: RuleProblems) -> None:
    """Note an opening to more accounts than the mechanism was calibrated for."""
    if after.attacker_accounts > before.attacker_accounts:
        problems.add(
            "bad_value",
            f"registration cannot become {after.registration}: the mechanism was calibrated for an "
            f"attacker with {before.attacker_accounts} of the teams, and then one person may hold "
            f"all {after.attacker_accounts}. Create a new board with registration: "
            f"{after.registration}, or invite the teams.",
            key="registration",
        )


def _build_rules(mapping: Any, problems: RuleProblems, slug: str | None) -> Rules:
    if not isinstance(mapping, dict):
        message = "it must hold keys with values, as in title: My board"
        problems.add("yaml", f"{message}; got {_settings.safe_repr(mapping)}.", line=1)
        problems.refuse_if_any()
    if not all(isinstance(key, str) for key in mapping):
        problems.add("yaml", "the keys of rules must be text.")
        problems.refuse_if_any()
    fields = read_rule_fields(MappingReader(mapping, problems), slug)
    problems.refuse_if_any()
    return Rules(**fields)


def _describe_mechanism(mechanism: Mechanism) -> dict[str, Any]:
    described = mechanism.describe()
    return {"name": described.pop("mechanism"), **described}
