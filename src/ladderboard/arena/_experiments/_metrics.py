"""The metrics experiment: attacks on AUC, F1, RMSE, QWK and MAP@k, in standard errors.

Each attack is played against exact scores and against the default protection, on labels that are
drawn given public inputs. The bias is how much better the attacker's last model looks on the
holdout than on new labels of the same inputs, in standard errors of that model. The method and the
table: docs/explanation/metrics.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ladderboard.analysts import ComparisonRule
from ladderboard.arena._experiments._calibrated import Mean
from ladderboard.arena._runner import ExperimentRun, repetition_seed
from ladderboard.losses import metric as make_metric
from ladderboard.mechanisms import Exact, GrowingLadder, Observation, Setup

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from ladderboard.mechanisms import Mechanism, Step

EXACT, BALANCED, TWO_ACCOUNTS = "exact scores", "balanced", "balanced, 2 accounts"
_LIMIT = 0.5  # of what exact scores leave
_NEW_LABELS = 60  # on which the last model is evaluated
_POSITIVES = 0.1
_LEAST_ERROR = 1e-9
_UNIT = 1e9  # attacks compute with risks in this unit, so that no grid counts as fine


class Score(NamedTuple):
    """A risk in [0, 1] and its standard error."""

    risk: float
    standard_error: float


class MetricWorld:
    """Inputs whose labels are random, the score that an honest model gives them, and a metric.

    A prediction is made from a number for each row, or for each row and class: the honest score,
    with some weight, and an attacker's guess. Rows that an attacker leaves out have the number 0,
    which is the same prediction for all: such models have small standard errors.
    """

    metric: ClassVar[str]
    width: ClassVar[int | None] = None
    options: ClassVar[dict[str, Any]] = {}

    def __init__(self, n: int) -> None:
        self.n = n
        rng = np.random.default_rng([0, n])
        self.shape = (n,) if self.width is None else (n, self.width)
        self.honest = rng.standard_normal(self.shape)
        self.loss = make_metric(self.metric, **self.options).loss

    @abstractmethod
    def draw_labels(self, rng: np.random.Generator) -> NDArray[Any]:
        """Return labels, given the inputs."""

    @abstractmethod
    def predict(self, numbers: NDArray[np.float64]) -> NDArray[Any]:
        """Return predictions from numbers with a standard deviation of 1."""

    def score(self, labels: NDArray[Any], numbers: NDArray[np.float64]) -> Score:
        """Return the risk of the predictions from some numbers."""
        losses, risk = self.loss.evaluate(labels, self.predict(numbers))
        error = float(losses.std()) / math.sqrt(self.n)
        return Score(float(losses.mean()) if risk is None else risk, error)


class _TwoClasses(MetricWorld):
    """A tenth of the rows is positive; the honest score has an AUC of about 0.8."""

    options: ClassVar[dict[str, Any]] = {"classes": (0, 1)}

    def __init__(self, n: int) -> None:
        super().__init__(n)
        rises = np.exp(1.3 * self.honest)
        low, high = 0.0, 1.0
        for _ in range(50):  # the share of positives rises with the factor
            middle = (low + high) / 2
            share = float((middle * rises / (1 + middle * rises)).mean())
            low, high = (middle, high) if share < _POSITIVES else (low, middle)
        self.chances = high * rises / (1 + high * rises)

    def draw_labels(self, rng: np.random.Generator) -> NDArray[Any]:
        return (rng.random(self.n) < self.chances).astype(np.int64)


class AucWorld(_TwoClasses):
    """Scores; rows that are left out are tied."""

    metric = "roc_auc"

    def predict(self, numbers: NDArray[np.float64]) -> NDArray[Any]:
        return numbers


class F1World(_TwoClasses):
    """Decisions; about 15% of the rows that are not left out are called positive."""

    metric = "f1"

    def predict(self, numbers: NDArray[np.float64]) -> NDArray[Any]:
        return (numbers > 1.04).astype(np.int64)


class RmseWorld(MetricWorld):
    """Labels 0 and 1: predictions of 1/2 have no luck, and those near it as little as wanted."""

    metric = "rmse"
    options: ClassVar[dict[str, Any]] = {"range": (0.0, 1.0)}

    def draw_labels(self, rng: np.random.Generator) -> NDArray[Any]:
        chances = np.clip(0.5 + 0.2 * self.honest, 0.02, 0.98)
        return (rng.random(self.n) < chances).astype(np.float64)

    def predict(self, numbers: NDArray[np.float64]) -> NDArray[Any]:
        return np.clip(0.5 + 0.2 * numbers, 0.0, 1.0)


class QwkWorld(MetricWorld):
    """Five grades; rows that are left out have the middle one."""

    metric = "qwk"
    options: ClassVar[dict[str, Any]] = {"classes": tuple(range(5))}
    _cuts = np.array([-1.28, -0.52, 0.52, 1.28])

    def draw_labels(self, rng: np.random.Generator) -> NDArray[Any]:
        worth = (self.honest + rng.standard_normal(self.n)) / math.sqrt(2)
        return self.predict(worth)

    def predict(self, numbers: NDArray[np.float64]) -> NDArray[Any]:
        return np.searchsorted(self._cuts, numbers)


class MapWorld(MetricWorld):
    """One of ten classes is right, three are named. Its value is computed on arrays, not on text.

    Rows that are left out name the classes 0, 1 and 2.
    """

    metric = "map_at_k"
    width = 10
    options: ClassVar[dict[str, Any]] = {"k": 3}

    def draw_labels(self, rng: np.random.Generator) -> NDArray[Any]:
        return (1.5 * self.honest + rng.gumbel(size=self.shape)).argmax(axis=1)

    def predict(self, numbers: NDArray[np.float64]) -> NDArray[Any]:
        left_out = ~numbers.any(axis=1)
        ranked = np.argsort(-numbers, axis=1, kind="stable")[:, :3]
        ranked[left_out] = (0, 1, 2)
        return ranked

    def score(self, labels: NDArray[Any], numbers: NDArray[np.float64]) -> Score:
        right = np.take_along_axis(numbers, labels[:, None], axis=1)
        place = 1 + (numbers > right).sum(axis=1)
        place = np.where(numbers.any(axis=1), place, 1 + labels)
        losses = 1 - (place <= 3) / place
        return Score(float(losses.mean()), float(losses.std()) / math.sqrt(self.n))


WORLDS: dict[str, type[MetricWorld]] = {
    "AUC": AucWorld,
    "F1": F1World,
    "RMSE": RmseWorld,
    "QWK": QwkWorld,
    "MAP@3": MapWorld,
}


@lru_cache(maxsize=8)
def make_world(metric: str, n: int) -> MetricWorld:
    """Return the world of a metric."""
    return WORLDS[metric](n)


class Target:
    """What is attacked: answers about one set of labels, on one ladder or several."""

    def __init__(
        self, world: MetricWorld, mechanism: Mechanism, ladders: int, rng: np.random.Generator
    ) -> None:
        self.world, self._rng = world, rng
        self.mechanism: Any = mechanism
        self.has_steps = mechanism.needs == "standard_error"
        self.setup = Setup(world.n, 0.0, 1.0)
        self.labels = world.draw_labels(rng)
        self.states = [mechanism.begin(self.setup, self._draw()) for _ in range(ladders)]
        self.changes = [0] * ladders

    def _draw(self) -> tuple[int, ...]:
        return tuple(int(law.simulate(self._rng, 1)[0]) for law in self.mechanism.laws)

    def ask(self, numbers: NDArray[np.float64], ladder: int = 0) -> Step:
        """Return the answer to a model."""
        risk, error = self.world.score(self.labels, numbers)
        question = Observation(min(max(risk, 0.0), 1.0), None, None, error)
        step = self.mechanism.advance(self.setup, self.states[ladder], question, self._draw())
        self.states[ladder] = step.state
        self.changes[ladder] += step.improved
        return step


class Kind(NamedTuple):
    """A kind of guess: its correlation with the honest score, and the share of rows not left out.

    ``mean`` and ``deviation`` are of the risk of such guesses on the holdout.
    """

    correlation: float
    share: float
    mean: float
    deviation: float
    standard_error: float

    def make(
        self, world: MetricWorld, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the numbers of a new guess, and what is random of it."""
        guess = rng.standard_normal(world.shape)
        honest = world.honest
        if self.share < 1:
            rows = rng.random(world.n) < self.share
            rows = rows if world.width is None else rows[:, None]
            guess, honest = np.where(rows, guess, 0.0), np.where(rows, honest, 0.0)
        return _mix(self.correlation, honest, guess), guess


def _mix(
    correlation: float, honest: NDArray[np.float64], guess: NDArray[np.float64]
) -> NDArray[np.float64]:
    return correlation * honest + math.sqrt(1 - correlation**2) * guess


_SURVEYED = np.linspace(-0.95, 0.95, 15)
_CORRELATIONS = np.linspace(-0.95, 0.95, 115)
_SHARES = (1.0, 0.25, 0.06, 0.015)
_TRIALS = 12
_DEGREES = (5, 2, 4)  # of polynomials in the correlation: mean, deviation in errors, error


def survey_kinds(board: Target, shares: tuple[float, ...], rng: np.random.Generator) -> list[Kind]:
    """Return kinds of guesses with their mean risk on this very holdout.

    A real attacker knows it only from honest data, so the attack is stronger than a real one.
    """
    world, kinds = board.world, []
    for share in shares:
        table = np.empty((len(_SURVEYED), 3))
        for row, correlation in enumerate(_SURVEYED.tolist()):
            kind = Kind(correlation, share, 0.0, 0.0, 0.0)
            scores = [world.score(board.labels, kind.make(world, rng)[0]) for _ in range(_TRIALS)]
            risks, errors = np.array(scores).T
            error = max(float(errors.mean()), _LEAST_ERROR)
            table[row] = risks.mean(), risks.std(ddof=1) / error, error
        # The figures of a few trials are noisy, and smooth functions of the correlation.
        means, ratios, errors = (
            np.polyval(np.polyfit(_SURVEYED, figures, degree), _CORRELATIONS)
            for figures, degree in zip(table.T, _DEGREES, strict=True)
        )
        errors = np.maximum(errors, _LEAST_ERROR)
        columns = _CORRELATIONS, means, np.clip(ratios, 0.05, 1.2) * errors, errors
        kinds += [
            Kind(correlation, share, mean, deviation, error)
            for correlation, mean, deviation, error in np.transpose(columns).tolist()
        ]
    return kinds


class _Votes:
    """The sum of guesses, each weighed by the luck that it is believed to have had."""

    def __init__(self, world: MetricWorld) -> None:
        self.world, self.sum = world, np.zeros(world.shape)

    def add(self, guess: NDArray[np.float64], luck: float) -> None:
        self.sum += luck * guess

    def models(self) -> list[NDArray[np.float64]]:
        """Return last models: the vote alone, and two with the honest score."""
        vote = self.sum / (self.sum.std() or 1.0)
        return [_mix(correlation, self.world.honest, vote) for correlation in (0.0, 0.5, 0.8)]


def majority(board: Target, questions: int, rng: np.random.Generator) -> list[NDArray[np.float64]]:
    """Random guesses, weighed by what is known about their luck: on exact scores, all of it."""
    kinds = survey_kinds(board, (1.0,), rng)
    kind, votes = kinds[len(kinds) // 2], _Votes(board.world)
    for _ in range(questions - 1):
        numbers, guess = kind.make(board.world, rng)
        votes.add(guess, _believed_luck(board, 0, kind, numbers))
    return votes.models()


def shifted(
    board: Target, questions: int, rng: np.random.Generator, *, shares: tuple[float, ...] = (1.0,)
) -> list[NDArray[np.float64]]:
    """Guesses whose mean is placed just above where they would be released.

    Where the quiet attack would place them; the honest score, with a positive or negative weight,
    puts them there. Of all kinds of guesses that are near that place the one with the most luck for
    its step is asked. On exact scores every place is as good as another.
    """
    from ladderboard.arena._kernels import QuietPlanner  # noqa: PLC0415 - needs numba

    if not board.has_steps:
        return majority(board, questions, rng)
    kinds = survey_kinds(board, shares, rng)
    votes = _Votes(board.world)
    ladders = len(board.states)
    planner = QuietPlanner(board.mechanism, board.world.n, questions // ladders)
    asked, silent = [0] * ladders, [0] * ladders
    chosen = [kinds[0]] * ladders
    replan_at = [0] * ladders
    for _ in range(questions - 1):
        ladder = min(range(ladders), key=lambda index: asked[index])
        asked[ladder] += 1
        if silent[ladder] >= replan_at[ladder]:
            left = max(questions // ladders - asked[ladder], 1)
            place = planner.place(board.changes[ladder], left)
            chosen[ladder] = _choose_kind(board, ladder, kinds, 0.0 if place is None else place)
            replan_at[ladder] = max(silent[ladder] + 1, int(1.25 * silent[ladder]))
        kind = chosen[ladder]
        before = board.changes[ladder]
        numbers, guess = kind.make(board.world, rng)
        votes.add(guess, _believed_luck(board, ladder, kind, numbers) / math.sqrt(kind.share))
        silent[ladder] += 1
        if board.changes[ladder] > before:
            silent[ladder] = replan_at[ladder] = 0
    return votes.models()


def quiet(board: Target, questions: int, rng: np.random.Generator) -> list[NDArray[np.float64]]:
    """As shifted, with guesses that leave out rows: the step is smaller, and there is more room."""
    return shifted(board, questions, rng, shares=_SHARES)


def alternating(
    board: Target, questions: int, rng: np.random.Generator
) -> list[NDArray[np.float64]]:
    """A quiet model holds the record, so that its class is released; then loud guesses follow."""
    world = board.world
    numbers, _ = Kind(0.0, _SHARES[-1], 0.0, 0.0, 0.0).make(world, rng)
    for ladder in range(len(board.states)):
        board.ask(numbers, ladder)
    return shifted(board, questions - len(board.states), rng, shares=(1.0, _SHARES[-1]))


def climb(board: Target, questions: int, rng: np.random.Generator) -> list[NDArray[np.float64]]:
    """Perturb the best model at random, and keep what helped."""
    world = board.world
    best, size = world.honest, 0.15
    value = board.ask(best).value
    for _ in range(questions - 2):
        candidate = best + size * rng.standard_normal(world.shape)
        step = board.ask(candidate / candidate.std())
        if step.improved and step.value is not None and (value is None or step.value < value):
            best, value = candidate / candidate.std(), step.value
    return [best]


ATTACKS: dict[str, Callable[[Target, int, Any], list[NDArray[np.float64]]]] = {
    "majority": majority,
    "shifted": shifted,
    "quiet": quiet,
    "alternating": alternating,
    "climb": climb,
}


def _rule(board: Target, ladder: int, kind: Kind) -> ComparisonRule:
    """Return the public settings of a ladder for a kind of guess."""
    question = Observation(kind.mean, None, None, kind.standard_error)
    rung = board.mechanism.rung(board.setup, board.states[ladder], question)
    step, compare, release, grid = (units * _UNIT / 1e12 for units in rung)
    return ComparisonRule(step=step, fresh=compare, release=release, grid=grid)


def _choose_kind(board: Target, ladder: int, kinds: list[Kind], wanted: float) -> Kind:
    """Return the kind near a place, in deviations above the step, with the most luck for it."""
    best = board.mechanism.value(board.states[ladder]) * _UNIT
    rated = []
    for kind in kinds:
        rule = _rule(board, ladder, kind)
        deviation = kind.deviation * _UNIT
        place = (kind.mean * _UNIT - best + rule.step) / math.hypot(deviation, rule.compare)
        rated.append((max(abs(place - wanted), 0.25), -deviation / rule.step, kind))
    return min(rated)[2]


def _believed_luck(board: Target, ladder: int, kind: Kind, numbers: NDArray[np.float64]) -> float:
    """Ask, and return the mean luck of the guess given the answer, in deviations."""
    if not board.has_steps:
        score = board.ask(numbers, ladder).score
        return 0.0 if score is None else (kind.mean - score) / kind.deviation
    rule, deviation = _rule(board, ladder, kind), kind.deviation * _UNIT
    best = board.mechanism.value(board.states[ladder]) * _UNIT
    distance = kind.mean * _UNIT - best
    step = board.ask(numbers, ladder)
    if step.improved and step.value is not None:
        return rule.luck_if_released(distance, deviation, best - step.value * _UNIT)
    return rule.luck_if_silent(distance, deviation)


def _make_mechanism(label: str, n: int, questions: int) -> tuple[Mechanism, int]:
    """Return a mechanism, and how many ladders the attacker holds."""
    if label == EXACT:
        return Exact(), 1
    if label == BALANCED:
        return GrowingLadder.calibrated(n, questions, scale="model"), 1
    return GrowingLadder.calibrated(n, questions, teams=20, scale="model").for_board(), 2


def play_attack(
    metric: str, label: str, attack: str, *, n: int, questions: int, seed: int
) -> list[float]:
    """Return the bias of each last model of a game, in its standard errors."""
    rng = np.random.default_rng(seed)
    world = make_world(metric, n)
    board = Target(world, *_make_mechanism(label, n, questions), rng)
    biases = []
    for numbers in ATTACKS[attack](board, questions, rng):
        new = [world.score(world.draw_labels(rng), numbers).risk for _ in range(_NEW_LABELS)]
        looks = world.score(board.labels, numbers).risk
        biases.append(float((np.mean(new) - looks) / np.std(new, ddof=1)))
    return biases


@dataclass(frozen=True)
class AttackTask:
    """Games of one attack on one metric and mechanism."""

    metric: str
    label: str
    attack: str
    n: int
    questions: int
    games: int
    seed: int

    @property
    def weight(self) -> float:
        """Roughly how long it takes."""
        return float(self.games * self.questions * self.n * (WORLDS[self.metric].width or 1))

    def describe(self) -> dict[str, Any]:
        """Return what is measured."""
        return asdict(self)

    def accepts(self, result: Any) -> bool:
        """Return whether a stored result belongs to this task."""
        return isinstance(result, dict) and len(result.get("biases", ())) == self.games

    def run(self, threads: int | None) -> dict[str, Any]:
        """Play."""
        name = f"{self.metric}, {self.label}, {self.attack}"
        return {
            "biases": [
                play_attack(
                    self.metric,
                    self.label,
                    self.attack,
                    n=self.n,
                    questions=self.questions,
                    seed=repetition_seed(self.seed, name, self.n, self.questions, game),
                )
                for game in range(self.games)
            ]
        }


# Ladders alone have something to be placed below, or a class to be held low.
_PLAYED = {
    EXACT: ("majority", "climb"),
    BALANCED: tuple(ATTACKS),
    TWO_ACCOUNTS: ("shifted", "quiet"),
}
_SIZE, _QUICK_SIZE = (5_000, 1_000), (1_000, 100)
_GAMES, _QUICK_GAMES = 6, 3


def metrics_experiment(
    out: Path | str,
    *,
    quick: bool = False,
    repetitions: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    cluster: str | None = None,
    progress: bool = False,
) -> list[Path]:
    """Attack metrics under exact scores and the default protection; return the files written.

    ``table.md`` has the largest bias by metric and mechanism, and what exact scores leave;
    ``figures.csv`` has every attack.
    """
    run = ExperimentRun(out, quick, repetitions, seed, workers, cluster, progress)
    n, questions = _QUICK_SIZE if quick else _SIZE
    games = run.repetitions or (_QUICK_GAMES if quick else _GAMES)
    tasks = [
        AttackTask(metric, label, attack, n, questions, games, run.seed)
        for metric in WORLDS
        for label, attacks in _PLAYED.items()
        for attack in attacks
    ]
    results = run.run_tasks(tasks, "attacks on metrics")
    figures = {
        (task.metric, task.label, task.attack): _strongest(result["biases"])
        for task, result in zip(tasks, results, strict=True)
    }
    run.write_csv(
        "figures.csv",
        [
            {
                "metric": metric,
                "mechanism": label,
                "attack": attack,
                "n": n,
                "questions": questions,
                "games": games,
                "bias": figure.mean,
                "standard_error": figure.error,
            }
            for (metric, label, attack), figure in figures.items()
        ],
    )
    run.write("table.md", _markdown(figures, n, questions, games))
    return run.written


def _strongest(biases: list[list[float]]) -> Mean:
    """Return the bias of the last model that is best over all games."""
    return max((Mean.of(column) for column in zip(*biases, strict=True)), key=_mean)


def _mean(figure: Mean) -> float:
    return figure.mean


def _markdown(figures: dict[tuple[str, str, str], Mean], n: int, questions: int, games: int) -> str:
    """Return the table of the largest biases."""
    text = (
        "The bias of the attacker's last model in its own standard errors, ± a standard error. "
        f"*Share*: of the bias that exact scores leave; at most {_LIMIT} is wanted of {BALANCED}."
    )
    lines = [
        f"# Attacks on metrics: {n:,} examples, {questions:,} questions, {games} games",
        "",
        text,
        "",
        f"| metric | {EXACT} | {' | '.join(ATTACKS)} | share | {TWO_ACCOUNTS} |",
        "|---" * (len(ATTACKS) + 4) + "|",
    ]
    for metric in WORLDS:
        exact, several = (
            max((figures[metric, label, attack] for attack in _PLAYED[label]), key=_mean)
            for label in (EXACT, TWO_ACCOUNTS)
        )
        by_attack = [figures[metric, BALANCED, attack] for attack in ATTACKS]
        share = max(figure.mean for figure in by_attack) / exact.mean
        cells = [metric, exact, *by_attack, f"{share:.2f}", several]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join([*lines, ""])
