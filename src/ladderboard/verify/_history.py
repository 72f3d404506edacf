"""Check the public history of a ledger: rules, amendments, limits of teams, duplicates."""

from __future__ import annotations

import hashlib
import math
from array import array
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ladderboard._formatting import format_decimals
from ladderboard.errors import InvalidInput
from ladderboard.files import DeclaredColumns
from ladderboard.ledger import broken_entry, digest
from ladderboard.losses import display_release
from ladderboard.verify._chain import has_exact_keys, is_int, is_release_value, same_encoding

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.losses import DisplayForm, Loss

_DECIDED = ("n", "loss", "mechanism", "rules", "holdout", "key")
_GUARD_RULES = {"questions", "beta", "rows", "kind", "worth", "weighted"}
# Missing in ledgers of older versions, or where they are not needed.
_OPTIONAL_RULES = {"zero_one", "ladders", "proven", "gate", "promise", "metric", "columns"}
_OPTIONAL_BOARD_RULES = {"zero_one", "promise", "proven", "answers", "further"}
_GATE_RULES = {"margin", "worse", "test", "guard"}
_FIXED_RULES = {
    "slug",
    "loss",
    "mechanism",
    "beta",
    "ladder",
    "baselines",
    "metrics",
    "leaderboard_metric",
    "final_metric",
    "accounts",
    "protection",
    "columns",
}  # from the first question on
# Rules that are absent unless they are set: an amendment adds them, or removes them with null.
_UNSET_RULES = {"play", "sign_in", "data", "listing", "terms", "organisers", "prizes"}
_FIXED_DISPLAY = ("direction", "as")
_MAX_DIGITS = 10  # of a printed number; a board shows at most as many
_DIGEST_WORDS = 3  # of 8 bytes each: a collision of 24 bytes cannot be found


class LedgerRules:
    """The rules in force at an entry; the ledger commits to them."""

    def __init__(self, opening: dict[str, Any]) -> None:
        self._decided = {name: opening[name] for name in _DECIDED}
        if digest("opening", self._decided).hex() != opening["commitment"]:
            raise broken_entry(0, "its commitment is not the hash of its fields")
        rules = opening["rules"]
        self.is_board = "board" in rules
        later = _OPTIONAL_BOARD_RULES if self.is_board else _OPTIONAL_RULES
        wanted = (
            _GUARD_RULES
            | ({"board"} if self.is_board else set())
            | {name for name in later if name in rules}
        )
        if not has_exact_keys(rules, wanted):
            raise broken_entry(0, "its rules are not those of a board or a guard")
        if rules.get("proven", True) is not True:
            raise broken_entry(0, "its rule about proven records is not true")
        if "ladders" in rules and not is_int(rules["ladders"], at_least=1):
            raise broken_entry(0, "its number of ladders is not a positive integer")
        if not is_int(rules["questions"], at_least=1):
            raise broken_entry(0, "its budget is not a positive integer")
        if "gate" in rules and not has_exact_keys(rules["gate"], _GATE_RULES):
            raise broken_entry(0, "its rules of a gate are not complete")
        if self.is_board:
            self._check_board(opening)
        self.max_file = (1, 1)
        """The largest size in bytes and number of rows that a file was ever allowed to have."""
        if self.is_board:
            self._raise_file_limits(self.board["files"])

    @staticmethod
    def _check_board(opening: dict[str, Any]) -> None:
        """Refuse board rules that contradict the loss, mechanism, budget or beta in use."""
        rules, board = opening["rules"], opening["rules"]["board"]
        pairs = [(rules[name], board[name]) for name in ("questions", "beta")]
        pairs.append((_describe_by_name(opening["loss"], "loss"), board["loss"]))
        if board["mechanism"] != "calibrated":
            pairs.append((_describe_by_name(opening["mechanism"], "mechanism"), board["mechanism"]))
        answers = sum(metric.get("show") == "live" for metric in board.get("metrics", ())) + 1
        pairs.append((rules.get("answers", 1), answers))
        pairs.append((len(rules.get("further", ())), answers - 1))
        if not all(same_encoding(first, second) for first, second in pairs):
            raise broken_entry(0, "its board rules contradict its loss, mechanism, budget or beta")

    @property
    def questions(self) -> int:
        """The budget: how many questions may be asked."""
        allowed: int = self._decided["rules"]["questions"]
        return allowed

    @property
    def columns(self) -> DeclaredColumns | None:
        """The declared columns of submissions, if any."""
        rules = self.board if self.is_board else self._decided["rules"]
        try:
            return DeclaredColumns.read(rules.get("columns"))
        except InvalidInput:
            raise broken_entry(0, "its columns are not names of columns") from None

    @cached_property
    def gate(self) -> dict[str, Any] | None:
        """The rules of a gate, if there is one."""
        rules: dict[str, Any] | None = self._decided["rules"].get("gate")
        return rules

    @cached_property
    def max_ladders(self) -> int | None:
        """How many ladders a guard may use; None if that was not declared."""
        declared: int | None = self._decided["rules"].get("ladders")
        return declared

    @property
    def label_description(self) -> dict[str, Any]:
        """What the first entry states about the labels."""
        rules: dict[str, Any] = self._decided["rules"]
        return {"n": self._decided["n"], **rules}

    @property
    def board(self) -> dict[str, Any]:
        """The rules of a board."""
        board: dict[str, Any] = self._decided["rules"]["board"]
        return board

    @property
    def metrics(self) -> list[MetricRule]:
        """The metrics of a board; the first decides the leaderboard."""
        if not self.is_board:
            return []
        board, display = self.board, self.board["display"]
        return [
            MetricRule(self._decided["loss"], display["name"], display["as"], display["digits"]),
            *(MetricRule.read(item) for item in board.get("metrics", ())),
        ]

    @property
    def guard_metric(self) -> ShownMetric | None:
        """How a guard shows its answers; None if it shows the loss."""
        shown = self._decided["rules"].get("metric")
        if shown is None:
            return None
        if not math.isfinite(shown["unit"]):
            raise broken_entry(0, "the unit of its metric is not a number")
        return ShownMetric(shown["title"], shown["as"], shown["unit"], _MAX_DIGITS)

    @cached_property
    def live_metrics(self) -> list[int]:
        """The places of the metrics that answer every submission; 0 is the first."""
        further = self.board.get("metrics", ()) if self.is_board else ()
        live = [number for number, item in enumerate(further, 1) if item.get("show") == "live"]
        return [0, *live]

    @property
    def ranks_by_mean(self) -> bool:
        """Whether the mean of the ranks in the live metrics decides the leaderboard."""
        return bool(self.board.get("leaderboard_metric") == "mean_rank")

    @property
    def final_metric(self) -> int | None:
        """Which metric decides the final ranking; None for the mean of the ranks."""
        name = self.board.get("final_metric")
        if name == "mean_rank":
            return None
        titles = [metric.title for metric in self.metrics]
        return 0 if name is None else titles.index(name)

    def find_ranking_metric(self, *, final: bool) -> int | None:
        """Return which metric decides a ranking; None for the mean of the ranks."""
        if final:
            return self.final_metric
        return None if self.ranks_by_mean else 0

    @property
    def terms(self) -> str | None:
        """The version of the terms that a team must have accepted; None without terms."""
        text = self.board.get("terms")
        return None if text is None else hashlib.sha256(str(text).encode()).hexdigest()

    @property
    def holdout(self) -> str:
        """The commitment to the current labels."""
        shown: str = self._decided["holdout"]
        return shown

    @cached_property
    def baselines(self) -> list[str]:
        """The names of the baselines that are files, normalised like names of teams."""
        names = [
            baseline["name"]
            for baseline in self.board["baselines"]
            if baseline.get("file") is not None
        ]
        return [" ".join(name.split()) for name in names]

    def amend(self, number: int, fields: dict[str, Any]) -> None:
        """Apply an amendment; refuse one that changes a fixed rule."""
        if not self.is_board:
            raise broken_entry(number, "it amends a guard, whose rules cannot change")
        changes = fields["changes"]
        if "labels" in changes:
            self._decided["holdout"] = fields["holdout"]
        else:
            self._apply_changes(number, changes)
        if digest("opening", self._decided).hex() != fields["commitment"]:
            raise broken_entry(number, "its commitment is not the hash of the amended rules")

    def _apply_changes(self, number: int, changes: dict[str, Any]) -> None:
        before = self.board
        if _FIXED_RULES & changes.keys():
            raise broken_entry(
                number, f"it changes {min(_FIXED_RULES & changes.keys())}, which cannot change"
            )
        if not changes or not changes.keys() <= before.keys() | _UNSET_RULES:
            raise broken_entry(number, "it changes nothing, or an unknown rule")
        board = {
            name: value
            for name, value in {**before, **changes}.items()
            if value is not None or name not in _UNSET_RULES
        }
        for name in _FIXED_DISPLAY:
            if not same_encoding(board["display"][name], before["display"][name]):
                raise broken_entry(number, f"it changes display.{name}, which cannot change")
        fewer = board["teams"] < before["teams"]
        # Where everybody may register, an attacker may hold as many ladders as there are teams.
        unknown = board["registration"] == "open" and board.get("accounts") is None
        more = unknown and board["ladder"] == "team" and board["teams"] != before["teams"]
        if fewer or more:
            raise broken_entry(
                number, "it changes the number of teams in a way that is not allowed"
            )
        rules = {**self._decided["rules"], "questions": board["questions"], "board": board}
        if not is_int(board["questions"], at_least=1):
            raise broken_entry(number, "its budget is not a positive integer")
        self._decided["rules"] = rules
        self._raise_file_limits(board["files"])

    def _raise_file_limits(self, files: dict[str, Any]) -> None:
        size, rows = self.max_file
        self.max_file = max(size, files["bytes"]), max(rows, files["rows"])


def _describe_by_name(described: dict[str, Any], what: str) -> dict[str, Any]:
    """Return a description with the key ``name``, as in a board's rules."""
    return {("name" if key == what else key): value for key, value in described.items()}


class MetricRule(NamedTuple):
    """A metric in the rules of a board: its described loss, and how it is shown."""

    loss: dict[str, Any]
    title: str
    form: DisplayForm
    digits: int

    @classmethod
    def read(cls, item: dict[str, Any]) -> MetricRule:
        """Return one of the further metrics."""
        settings = dict(item)
        title, form, digits = (settings.pop(key) for key in ("title", "as", "digits"))
        settings.pop("show", None)
        return cls({"loss": settings.pop("name"), **settings}, title, form, digits)

    def shown_with(self, loss: Loss | None) -> ShownMetric | None:
        """Return how the metric is shown; None for a custom loss, whose unit is unknown."""
        if loss is None:
            return None
        digits = min(max(self.digits, 0), _MAX_DIGITS)
        return ShownMetric(self.title, self.form, loss.display_unit(self.form), digits)


class ShownMetric(NamedTuple):
    """How a board or a guard shows a loss."""

    title: str
    form: DisplayForm
    unit: float
    digits: int

    def value(self, loss: float | None) -> float | None:
        """Return a released loss as it is shown."""
        if loss is None:
            return None
        return round(display_release(self.form, loss, self.unit), self.digits)

    def text(self, loss: float) -> str:
        """Return a released loss as it is printed, after the metric's name.

        >>> ShownMetric("accuracy", "complement", 1.0, 4).text(0.21)
        'accuracy 0.79'
        """
        return f"{self.title} {format_decimals(self.value(loss) or 0.0, self.digits)}"


class TeamBest(NamedTuple):
    """The best value that was released to a team, and when."""

    released: float | None
    since: int | None


class HistoryChecker:
    """Checks entries in order against the rules that were in force when they were written."""

    def __init__(self, opening: dict[str, Any]) -> None:
        if opening["kind"] != "opened":
            raise broken_entry(0, "it is not an opening")
        self.opening = opening
        self.rules = LedgerRules(opening)
        """The rules after the last entry."""
        self.epoch = 0
        self.questions = self.looks = self.answers = self._charged = 0
        self._awaited: list[tuple[int, str]] = []  # metrics of the last submission, and its team
        self.ladder_questions: list[int] = []
        """The number of questions on each ladder."""
        self.closed: dict[str, Any] | None = None
        """The closing entry, if there was one."""
        self.last_question_time = 0
        """The time of the last question."""
        self.best_by_team: dict[str, TeamBest] = {}
        self.best_by_metric: dict[tuple[str, int], float | None] = {}
        """The best value that was released to a team in each further live metric."""
        self.questions_by_team: dict[str, int] = {}
        """The number of questions of each team, without repeats after corrected labels."""
        self.disqualified: set[str] = set()
        self.best_at_close: dict[str, TeamBest] = {}
        self.disqualified_at_close: set[str] = set()
        self.is_repeat = False
        """Whether the last question was repeated because labels were corrected."""
        self._paused = False
        self._repeated_by: set[str] = set()
        self._accepted: dict[str, str] = {}
        self._merged: set[str] = set()
        self.without_terms: set[str] = set()
        """Teams that asked without having accepted the terms of then, as only baselines may."""
        self._ladder_by_team: dict[tuple[str | None, int, int], int] = {}
        self._team_by_ladder: dict[int, tuple[str | None, int, int]] = {}
        self._checks: dict[str, Callable[[int, dict[str, Any]], None]] = {
            "question": self._check_question,
            "look": self._check_look,
            "promoted": self._check_promotion,
            "ladder": self._check_ladder,
            "opened": self._check_opened,
            "amended": self._check_amendment,
            "restored": self._check_restored,
            "resumed": self._check_resumed,
            "paused": self._pause,
            "disqualified": lambda _, fields: self.disqualified.add(fields["asker"]),
            "reinstated": lambda _, fields: self.disqualified.discard(fields["asker"]),
            "closed": self._check_close,
            "accepted": self._check_accepted,
            "merged": self._check_merge,
            "appointed": self._check_person,
            "dismissed": self._check_person,
        }

    def check_entry(self, number: int, fields: dict[str, Any]) -> None:
        """Check one entry; entries of unknown kinds are accepted."""
        taker = self._checks.get(fields["kind"])
        if taker is not None:
            taker(number, fields)

    def _check_opened(self, number: int, _fields: dict[str, Any]) -> None:
        if number:
            raise broken_entry(number, "it opens a ledger that is already open")

    def _check_ladder(self, number: int, fields: dict[str, Any]) -> None:
        if self.closed is not None:
            raise broken_entry(number, "it starts a ladder after the close")
        if type(fields["ladder"]) is not int or fields["ladder"] != len(self.ladder_questions):
            raise broken_entry(number, "it does not start the next ladder")
        self.ladder_questions.append(0)

    def _check_promotion(self, number: int, _fields: dict[str, Any]) -> None:
        if self.rules.gate is None or self.closed is not None:
            raise broken_entry(number, "it promotes without a gate, or after the close")

    def _check_look(self, number: int, fields: dict[str, Any]) -> None:
        self._check_promotion(number, fields)
        self._check_budget(number, "look")
        self.looks += 1

    def _check_budget(self, number: int, unit: str) -> None:
        if self.closed is not None:
            raise broken_entry(number, f"it is a {unit} after the close")
        if self.questions + self.looks + self._charged >= self.rules.questions:
            raise broken_entry(number, f"it is a {unit} past the budget")

    def _check_question(self, number: int, fields: dict[str, Any]) -> None:
        ladder, question = fields["ladder"], fields["question"]
        is_further = self._check_metric(number, fields)
        if not is_further:
            self._check_budget(number, "question")
        if self.rules.gate is not None and not self.rules.gate["guard"]:
            raise broken_entry(number, "it is a question to a gate without a guard")
        if type(ladder) is not int or not 0 <= ladder < len(self.ladder_questions):
            raise broken_entry(number, "its ladder was not started")
        if question != self.ladder_questions[ladder] + 1 or type(question) is not int:
            raise broken_entry(number, "it is not the next question on its ladder")
        if type(fields["improved"]) is not bool:
            raise broken_entry(number, "its field improved is not true or false")
        if not (is_release_value(fields["value"]) and is_release_value(fields["score"])):
            raise broken_entry(number, "its release is not a number")
        self.ladder_questions[ladder] += 1
        self.questions += not is_further
        self.answers += 1
        declared = self.rules.max_ladders if question == 1 else None
        if declared is not None and sum(map(bool, self.ladder_questions)) > declared:
            raise broken_entry(number, "it is asked on more ladders than were declared")
        self.last_question_time = fields["time"]
        if self.rules.is_board:
            self._check_team(number, fields)

    def _check_metric(self, number: int, fields: dict[str, Any]) -> bool:
        """Check that every submission is answered by all live metrics, in order.

        Returns whether the entry is about a further one.
        """
        metric = fields.get("metric", 0)
        if metric or "metric" in fields:
            expected = self._awaited.pop(0) if self._awaited else None
            if type(metric) is not int or (metric, fields["asker"]) != expected:
                raise broken_entry(number, "its metric is not the next of its submission")
            return True
        if self._awaited:
            raise broken_entry(number, "the submission before it was not answered by all metrics")
        if len(self.rules.live_metrics) > 1:
            self._awaited = [(metric, fields["asker"]) for metric in self.rules.live_metrics[1:]]
        return False

    def _check_team(self, number: int, fields: dict[str, Any]) -> None:
        """Check the limits of a team, and record its best released value."""
        asker, board = fields["asker"], self.rules.board
        if type(asker) is not str or asker in self._merged:
            raise broken_entry(number, "it names no team, or one that was merged into another")
        metric = fields.get("metric", 0)
        if metric:
            self._check_ladder_of_team(number, fields["ladder"], asker, metric)
            best = self.best_by_metric.get((asker, metric))
            self.best_by_metric[asker, metric] = fields["value"] if fields["improved"] else best
            return
        self.is_repeat = self._paused
        if self._paused:
            if not self.epoch or asker not in self.questions_by_team or asker in self._repeated_by:
                raise broken_entry(number, "it is a question while the board was paused")
            self._repeated_by.add(asker)
        else:
            self.questions_by_team[asker] = self.questions_by_team.get(asker, 0) + 1
            if self.questions_by_team[asker] > board["per_team"]:
                raise broken_entry(number, "it is a question past the limit of its team")
            if len(self.questions_by_team) > board["teams"] + len(self.rules.baselines):
                raise broken_entry(number, "more teams asked than the rules allow")
            if self.rules.terms not in {None, self._accepted.get(asker)}:
                self.without_terms.add(asker)
                if len(self.without_terms) > len(self.rules.baselines):
                    raise broken_entry(number, "its team has not accepted the terms")
        self._check_ladder_of_team(number, fields["ladder"], asker)
        if fields["improved"]:
            self.best_by_team[asker] = TeamBest(fields["value"], fields["time"])

    def _check_ladder_of_team(self, number: int, ladder: int, asker: str, metric: int = 0) -> None:
        """Check that a team stays on one ladder: a second one would be a second draw of noise."""
        team = asker if self.rules.board["ladder"] == "team" else None
        climb = (team, self.epoch, metric)
        if self._ladder_by_team.setdefault(climb, ladder) != ladder:
            raise broken_entry(
                number, "it was asked on another ladder than the team's earlier questions"
            )
        if self._team_by_ladder.setdefault(ladder, climb) != climb:
            raise broken_entry(number, "it was asked on another team's ladder")

    def _check_accepted(self, number: int, fields: dict[str, Any]) -> None:
        self._check_person(number, fields)
        if fields["terms"] != self.rules.terms or type(fields["asker"]) is not str:
            raise broken_entry(number, "it accepts terms that the board does not have")
        self._accepted[fields["asker"]] = fields["terms"]

    def _check_merge(self, number: int, fields: dict[str, Any]) -> None:
        """Check that teams are merged before either has submitted, and once."""
        self._check_person(number, fields)
        teams = [fields["asker"], fields["into"]]
        if self.closed is not None or len(set(teams)) < len(teams):
            raise broken_entry(number, "it merges a team with itself, or after the close")
        if not all(type(team) is str for team in teams) or self._merged & set(teams):
            raise broken_entry(number, "it merges a team that does not exist")
        if self.questions_by_team.keys() & set(teams):
            raise broken_entry(number, "it merges a team that has submitted")
        self._merged.add(fields["asker"])

    def _check_person(self, number: int, fields: dict[str, Any]) -> None:
        if not self.rules.is_board or not is_int(fields.get("person", 1), at_least=1):
            raise broken_entry(number, "it names no person of a board")

    def _check_amendment(self, number: int, fields: dict[str, Any]) -> None:
        changes = fields["changes"]
        corrected = "labels" in changes
        if self.closed is not None and changes.keys() != {"visibility"}:
            raise broken_entry(number, "it changes a rule that is fixed after the close")
        if corrected is not ("holdout" in fields):
            raise broken_entry(
                number,
                "it corrects labels without committing to them, or commits without a correction",
            )
        if corrected:
            epoch = changes["labels"]
            if type(epoch) is not int or epoch != self.epoch + 1 or len(changes) > 1:
                raise broken_entry(number, "it is not the next correction of labels")
            self.epoch = epoch
            self.best_by_team.clear()
            self.best_by_metric.clear()
            self._repeated_by.clear()
        self.rules.amend(number, fields)

    def _check_restored(self, number: int, fields: dict[str, Any]) -> None:
        self._charge(number, fields)
        self._paused = self.rules.is_board

    def _check_resumed(self, number: int, fields: dict[str, Any]) -> None:
        self._charge(number, fields)
        self._paused = False

    def _charge(self, number: int, fields: dict[str, Any]) -> None:
        if not is_int(fields["charged"]):
            raise broken_entry(number, "its charge is not a number of questions")
        self._charged += fields["charged"]

    def _pause(self, _number: int, _fields: dict[str, Any]) -> None:
        self._paused = True

    def _check_close(self, number: int, fields: dict[str, Any]) -> None:
        if self._awaited:
            raise broken_entry(number, "the submission before it was not answered by all metrics")
        if self.closed is not None:
            raise broken_entry(number, "it closes a ledger that is already closed")
        if type(fields["values"]) is not list or len(fields["values"]) != len(
            self.ladder_questions
        ):
            raise broken_entry(number, "it does not have one value for every ladder")
        self.closed = fields
        self.best_at_close, self.disqualified_at_close = (
            dict(self.best_by_team),
            set(self.disqualified),
        )


class DuplicateChecker:
    """Finds submissions that were answered twice.

    The same predictions of a team on a ladder are answered once: a second answer would be a second
    draw of noise about one model. Needs 37 bytes of memory per question.
    """

    def __init__(self) -> None:
        self._digests = bytearray()
        self._numbers: dict[str | None, int] = {}
        self._askers, self._ladders, self._entries = array("I"), array("I"), array("I")
        self._is_replay = array("b")

    def add_question(
        self, number: int, ladder: int, asker: str | None, submission: bytes, *, is_replay: bool
    ) -> None:
        """Add a question; ``is_replay`` says that it must repeat an earlier one."""
        self._digests += submission[: 8 * _DIGEST_WORDS]
        self._askers.append(self._numbers.setdefault(asker, len(self._numbers)))
        self._ladders.append(ladder)
        self._entries.append(number)
        self._is_replay.append(is_replay)

    def check(self) -> None:
        """Refuse the first unexpected duplicate, or the first replay without an original."""
        if not self._entries:
            return
        digests = np.frombuffer(self._digests, np.uint64).reshape(-1, _DIGEST_WORDS)
        askers, ladders, entries = (
            np.frombuffer(column, np.uint32)
            for column in (self._askers, self._ladders, self._entries)
        )
        columns = [askers, *digests.T]
        order = np.lexsort((entries, ladders, *columns))
        alike = np.ones(len(order) - 1, bool)
        for column in columns:
            alike &= column[order[1:]] == column[order[:-1]]
        twice = alike & (ladders[order[1:]] == ladders[order[:-1]])
        if twice.any():
            first = int(entries[order[1:][twice]].min())
            raise broken_entry(first, "the same predictions were answered before it on its ladder")
        # Ladders are numbered as they start, so the first of equal rows is the earliest.
        first_asked = order[np.concatenate(([True], ~alike))]
        is_repeat = np.frombuffer(self._is_replay, np.int8)[first_asked] != 0
        wrong = entries[first_asked[is_repeat]]
        if len(wrong):
            raise broken_entry(int(wrong.min()), "it is a question while the board was paused")
