"""The calibrated experiment: what the growing ladder shows, and what it leaves to attackers.

Tables beside constant steps (``ShakyLadder.calibrated``) and exact scores: *sees*, the smallest
gain that is shown; *protects* and *accounts*, the largest bias over all attacks; *honest* and
*searches*, what it costs analysts that resemble people. Every figure has a standard error, and
every line that the settings must keep is printed beside the figure. Gains, errors and biases are in
units of 1/sqrt(n).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ladderboard.analysts import (
    Breakthroughs,
    DigitsWorld,
    OneBitAttack,
    Plateau,
    RandomSearch,
    ShiftedMajority,
    SteadyImprovement,
    draw_classifiers,
)
from ladderboard.arena._runner import ExperimentRun, repetition_seed
from ladderboard.bounds import certificate, proven_better
from ladderboard.mechanisms import (
    Exact,
    GrowingLadder,
    Mechanism,
    Observation,
    Setup,
    ShakyLadder,
    VisibleChange,
    leaderboard_error,
)
from ladderboard.tape import NumpyTape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ladderboard.analysts import Analyst, HonestAnalyst

GROWING, CONSTANT, EXACT = "growing", "constant steps", "exact scores"
_POWER = 0.95
_BETA = 0.05
_SEARCH_GAMES = 60  # for each level of noise; all of them have the same models
_TEAMS = 20


def _make_mechanism(
    label: str, n: int, questions: int, teams: int = 1, accounts: int | None = None
) -> Mechanism:
    """Return the mechanism of a column; ``label`` may name a protection of the growing ladder."""
    if label == EXACT:
        return Exact()
    if label == CONSTANT:
        return ShakyLadder.calibrated(n=n, questions=questions, teams=teams)
    protection = label.partition(", ")[2] or "balanced"
    ladder = GrowingLadder.calibrated(n, questions, teams, accounts, protection)
    return ladder.for_board() if teams > 1 else ladder


class Mean(NamedTuple):
    """A mean and its standard error."""

    mean: float
    error: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Mean:
        """Return the mean of some values; the standard error of one value is unknown."""
        array = np.array(list(values))
        error = array.std(ddof=1) / math.sqrt(len(array)) if len(array) > 1 else math.nan
        return cls(float(array.mean()), float(error))

    def __str__(self) -> str:
        return f"{self.mean:.2f}" + ("" if math.isnan(self.error) else f" ± {self.error:.2f}")


class Line(NamedTuple):
    """A measured figure, what it must not exceed, and what it is."""

    what: str
    figure: float
    error: float
    limit: float

    @property
    def is_within(self) -> bool:
        """Whether the figure is at most the limit, up to two standard errors."""
        return self.figure <= self.limit + 2 * (0.0 if math.isnan(self.error) else self.error)


@dataclass(frozen=True)
class MeasureTask:
    """A task whose result is a list of numbers, one for each game."""

    kind: str
    settings: tuple[tuple[str, Any], ...]
    games: int
    seed: int

    @property
    def weight(self) -> float:
        """Roughly how long it takes."""
        settings = dict(self.settings)
        return self.games * (settings["n"] * settings.get("questions", 100)) ** 0.7 + 1_000

    def describe(self) -> dict[str, Any]:
        """Return what is measured."""
        return {
            "kind": self.kind,
            "settings": dict(self.settings),
            "games": self.games,
            "seed": self.seed,
        }

    def accepts(self, result: Any) -> bool:
        """Return whether a stored result belongs to this task."""
        return isinstance(result, dict) and len(result.get("values", ())) == self.games

    def run(self, threads: int | None) -> dict[str, Any]:
        """Measure."""
        values = _MEASURES[self.kind](games=self.games, seed=self.seed, **dict(self.settings))
        return {"values": [float(value) for value in values]}


# What is measured: functions of the settings that return one number for each game.


def measure_gains(
    *,
    label: str,
    n: int,
    questions: int,
    released: float,
    changes: int,
    teams: int,
    accounts: int,
    games: int,
    seed: int,
) -> NDArray[np.float64]:
    """Return, for each draw of noise, the smallest gain below ``released`` that is shown.

    All ladders changed ``changes`` times. The gain is found by asking, with the same noise.
    """
    mechanism = _make_mechanism(label, n, questions, teams, accounts)
    setup = Setup(n, 0.0, 1.0)
    rng = np.random.default_rng([seed, n, questions, changes])
    columns = [law.simulate(rng, games + 1).tolist() for law in mechanism.laws]
    rows = list(zip(*columns, strict=True)) or [()] * (games + 1)
    state = mechanism.begin(setup, rows[-1])
    best = round(released * 10**12) if isinstance(state.best, int) else released
    fields = {"best": best, "changes": changes}
    state = state._replace(**{name: fields[name] for name in fields if name in state._fields})
    others = changes * mechanism.shared_ladders

    def is_shown(gain: float, draws: tuple[int, ...]) -> bool:
        question = Observation(max(released - gain, 0.0), None, None, others=others)
        return mechanism.advance(setup, state, question, draws).improved

    gains = []
    for draws in rows[:games]:
        low, high = 0.0, released
        for _ in range(14):
            middle = (low + high) / 2
            low, high = (low, middle) if is_shown(middle, draws) else (middle, high)
        gains.append(high)
    return np.array(gains) * math.sqrt(n)


def measure_placed_attack(
    *,
    label: str,
    n: int,
    questions: int,
    known: float,
    abstains: bool,
    teams: int,
    accounts: int,
    games: int,
    seed: int,
) -> NDArray[np.float64]:
    """Return the biases of the planned attack, which holds as many accounts as it may."""
    from ladderboard.arena._kernels import placed_attack_biases  # noqa: PLC0415 - needs numba

    return placed_attack_biases(
        _make_mechanism(label, n, questions, teams, accounts),
        n=n,
        questions=questions,
        known=known,
        abstains=abstains,
        accounts=accounts,
        games=games,
        seed=seed,
    )


def measure_quiet_attack(*, n: int, questions: int, games: int, seed: int) -> NDArray[np.float64]:
    """Return the biases of the attack by quiet guesses on steps that follow the model."""
    from ladderboard.arena._kernels import quiet_attack_biases  # noqa: PLC0415 - needs numba

    mechanism = GrowingLadder.calibrated(n, questions, scale="model")
    return quiet_attack_biases(mechanism, n=n, questions=questions, games=games, seed=seed)


def measure_played_attack(
    *, n: int, questions: int, alternates: bool, teams: int, accounts: int, games: int, seed: int
) -> NDArray[np.float64]:
    """Return the biases of the attack by quiet and loud models, played on real sessions."""
    from ladderboard.arena._kernels import best_played_attack  # noqa: PLC0415 - needs numba

    mechanism = GrowingLadder.calibrated(n, questions, teams, accounts, scale="model")
    mechanism = mechanism.for_board() if teams > 1 else mechanism
    attack = best_played_attack(
        mechanism,
        n=n,
        questions=questions,
        games=max(games // 3, 2),
        alternates=alternates,
        accounts=accounts,
        seed=seed,
    )
    return attack.biases(mechanism, n=n, questions=questions, games=games, seed=seed + 1)


def measure_analyst(
    *, label: str, n: int, questions: int, analyst: str, games: int, seed: int
) -> list[float]:
    """Return the biases of an attack in the arena."""
    mechanism, player = _make_mechanism(label, n, questions), _OTHER_ATTACKS[analyst]
    return [
        math.sqrt(n)
        * player.play_against(
            mechanism,
            n=n,
            questions=questions,
            seed=repetition_seed(seed, analyst, n, questions, game),
        ).bias
        for game in range(games)
    ]


def measure_honest(
    *, label: str, n: int, questions: int, analyst: str, games: int, seed: int
) -> list[float]:
    """Return the leaderboard errors of an honest analyst."""
    mechanism, player = _make_mechanism(label, n, questions), _HONEST[analyst]
    errors = []
    for game in range(games):
        game_seed = repetition_seed(seed, analyst, n, questions, game)
        rng = np.random.default_rng(game_seed)
        true_risks = player.true_risks(questions, rng)
        session = mechanism.start(n=n, tape=NumpyTape(seed=game_seed))
        releases = session.ask_many(rng.binomial(n, true_risks) / n)
        errors.append(math.sqrt(n) * leaderboard_error(true_risks, releases.value))
    return errors


def measure_searches(
    *,
    labels: tuple[str, ...],
    sizes: tuple[int, ...],
    n: int,
    questions: int,
    noise: float,
    games: int,
    seed: int,
) -> NDArray[np.float64]:
    """Return the excess of the winner of searches, then their numbers of records, flat.

    The same fitted models are asked on new holdouts, in a new order; all mechanisms get the same.
    The winner is the last model that the board showed as the best. Its excess is how much worse it
    is than the best model, in thousandths, over ``n`` examples that holdouts are drawn from. The
    result is an array of (excess, records), mechanisms, sizes and games.
    """
    wrong = _fit_classifiers(questions, n, noise, seed)
    true_risks = wrong.mean(axis=1)
    results = np.empty((2, len(labels), len(sizes), games // (2 * len(labels) * len(sizes))))
    for column, size in enumerate(sizes):
        mechanisms = [_make_mechanism(label, size, questions) for label in labels]
        for game in range(results.shape[-1]):
            rng = np.random.default_rng([seed, size, game])
            order = rng.permutation(questions)
            risks = wrong[order][:, rng.choice(n, size, replace=False)].mean(axis=1)
            tape_seed = int(rng.integers(2**32))
            for row, mechanism in enumerate(mechanisms):
                session = mechanism.start(n=size, tape=NumpyTape(seed=tape_seed))
                improved = np.flatnonzero(session.ask_many(risks).improved)
                winner = order[improved[-1] if len(improved) else 0]
                excess = 1_000 * (true_risks[winner] - true_risks.min())
                results[:, row, column, game] = excess, len(improved)
    return results.ravel()


def measure_proven(
    *, analyst: str, n: int, questions: int, noise: float, pool: int, games: int, seed: int
) -> NDArray[np.float64]:
    """Return the records after the first, how many are proven, and how many falsely, flat.

    The models of an honest analyst err independently of each other, which makes two of them
    hardest to tell apart. With ``pool``, they are fitted classifiers, asked on ``n`` of that many
    examples.
    """
    mechanism = _make_mechanism(GROWING, n, questions)
    price = partial(
        certificate, n, questions, mechanism=mechanism, beta=_BETA, amendable=True, proven=True
    )  # as a guard's
    results = np.zeros((3, games // 3))
    wrong = _fit_classifiers(questions, pool, noise, seed) if pool else None
    for game in range(results.shape[-1]):
        rng = np.random.default_rng([seed, n, game])
        if wrong is None:
            true_risks = _HONEST[analyst].true_risks(questions, rng)
            counts = rng.binomial(n, true_risks)
            losses = [partial(_draw_losses, n, count, rng) for count in counts.tolist()]
        else:
            order, rows = rng.permutation(questions), rng.choice(pool, n, replace=False)
            true_risks = wrong.mean(axis=1)[order]
            losses = [partial(np.take, wrong[model], rows) for model in order]
            counts = np.array([model_losses().sum() for model_losses in losses])
        session = mechanism.start(n=n, tape=NumpyTape(seed=int(rng.integers(2**32))))
        releases = session.ask_many(counts / n)
        records = np.flatnonzero(releases.improved).tolist()
        released = [
            VisibleChange(record + 1, float(releases.value[record]), 0) for record in records
        ]
        for index, record in enumerate(records[1:], 1):
            nats = price(changes=released[:index], asked=record + 1).nats or math.inf
            before, after = losses[records[index - 1]](), losses[record]()
            proven = proven_better(before, after, nats + math.log(_BETA / 2), _BETA, binary=True)
            is_false = proven and true_risks[record] >= true_risks[records[index - 1]]
            results[:, game] += 1, proven, is_false
    return results.ravel()


def _draw_losses(n: int, count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return this many losses of 1 at random places."""
    losses = np.arange(n) < count
    rng.shuffle(losses)
    return losses


@lru_cache(maxsize=4)  # for each level of noise: fitting takes a minute
def _fit_classifiers(count: int, examples: int, noise: float, seed: int) -> NDArray[np.bool_]:
    """Return where fitted classifiers are wrong on many examples."""
    rng = np.random.default_rng(seed)
    classifiers = draw_classifiers(count, rng, noise=noise)
    world = DigitsWorld(examples, rng, noise=noise)
    return np.array([world.losses(classifier) > 0 for classifier in classifiers])


_MEASURES: dict[str, Callable[..., Any]] = {
    "gain": measure_gains,
    "placed": measure_placed_attack,
    "quiet": measure_quiet_attack,
    "played": measure_played_attack,
    "analyst": measure_analyst,
    "honest": measure_honest,
    "searches": measure_searches,
    "proven": measure_proven,
}
_OTHER_ATTACKS: dict[str, Analyst] = {
    "one bit": OneBitAttack(),
    "walking": ShiftedMajority(walk=True),
}
_HONEST: dict[str, HonestAnalyst] = {
    "random search": RandomSearch(worst=0.3, best=0.03),
    "steady improvement": SteadyImprovement(),
    "plateau": Plateau(),
    "breakthroughs": Breakthroughs(),
}


def exact_scores_bias(n: int, questions: int) -> float:
    """Return the bias that exact scores leave, times sqrt(n).

    Random guesses, each weighed by its luck, add up to k - 1 squared deviations: the vote is right
    on an example with probability Phi(sqrt((k - 1)/n)).

    >>> round(exact_scores_bias(1_000, 1_000), 1)
    10.8
    """
    return math.sqrt(n) * (NormalDist().cdf(math.sqrt(max(questions - 1, 0) / n)) - 0.5)


@dataclass(frozen=True)
class Sizes:
    """Which sizes and how many games."""

    gain_sizes: tuple[tuple[int, int], ...]
    attack_sizes: tuple[tuple[int, int], ...]
    known: tuple[float, ...]
    sybil_sizes: tuple[tuple[int, int], ...]
    played_sizes: tuple[tuple[int, int], ...]
    search_sizes: tuple[int, ...]
    search_models: int
    search_noises: tuple[float, ...]  # of the pixels: data sets of different difficulty
    draws: int
    games: int  # at one million examples times questions; more for less


_FULL = Sizes(
    gain_sizes=tuple((n, k) for n in (1_000, 5_000, 10_000, 100_000) for k in (100, 1_000)),
    attack_sizes=tuple((n, k) for n in (1_000, 10_000, 100_000) for k in (100, 1_000, 10_000)),
    known=(0.0, 0.3, 0.5, 0.8, 0.9),
    sybil_sizes=((1_000, 100), (1_000, 1_000), (10_000, 1_000), (10_000, 10_000)),
    played_sizes=(
        *((n, k) for n in (1_000, 10_000) for k in (100, 1_000, 10_000)),
        (100_000, 100),
        (100_000, 1_000),
    ),
    search_sizes=(1_000, 2_500, 5_000),
    search_models=300,
    search_noises=(1.0, 1.5, 2.0),
    draws=2_000,
    games=60,
)
_QUICK = Sizes(
    gain_sizes=((1_000, 100),),
    attack_sizes=((200, 50),),
    known=(0.0, 0.5),
    sybil_sizes=((200, 50),),
    played_sizes=((200, 50),),
    search_sizes=(500,),
    search_models=10,
    search_noises=(1.0,),
    draws=100,
    games=1,
)
# How many times as many games as at a million examples times questions.
_MOST_GAMES, _FEWEST_GAMES = 3.0, 0.2


class _Study:
    """Collects tasks, runs them once, and returns estimates by name."""

    def __init__(self, run: ExperimentRun, plan: Sizes) -> None:
        self.run, self.plan = run, plan
        self._tasks: dict[tuple[Any, ...], MeasureTask] = {}
        self._results: dict[tuple[Any, ...], list[float]] = {}

    def games(self, n: int, questions: int) -> int:
        """Return how many games to play at a size."""
        if self.run.repetitions is not None:
            return self.run.repetitions
        factor = (10**6 / (n * questions)) ** 0.5
        return max(round(self.plan.games * min(max(factor, _FEWEST_GAMES), _MOST_GAMES)), 2)

    def add(self, kind: str, games: int, **settings: Any) -> tuple[Any, ...]:
        """Add a task, and return its name."""
        name = (kind, *settings.values())
        self._tasks[name] = MeasureTask(kind, tuple(settings.items()), games, self.run.seed)
        return name

    def play(self) -> None:
        """Run all tasks."""
        results = self.run.run_tasks(list(self._tasks.values()), "calibration")
        self._results = {
            name: result["values"] for name, result in zip(self._tasks, results, strict=True)
        }

    def mean(self, *names: tuple[Any, ...]) -> Mean:
        """Return the mean over the games of one task or of several."""
        return Mean.of(value for name in names for value in self._results[name])

    def values(self, name: tuple[Any, ...]) -> list[float]:
        """Return the results of a task."""
        return self._results[name]

    def quantile(self, name: tuple[Any, ...]) -> Mean:
        """Return the gain that is shown with probability 0.95, with its standard error."""
        values = np.sort(self._results[name])
        spread = math.sqrt(_POWER * (1 - _POWER) / len(values))
        low, middle, high = np.quantile(
            values, [_POWER - spread, _POWER, min(_POWER + spread, 1.0)], method="higher"
        )
        return Mean(float(middle), float(high - low) / 2)


def calibrated_experiment(
    out: Path | str,
    *,
    quick: bool = False,
    repetitions: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    cluster: str | None = None,
    progress: bool = False,
) -> list[Path]:
    """Measure what the default shows, protects and costs; return the files written.

    ``table.md`` has the tables and every line with its limit, ``lines.csv`` the lines,
    ``figures.csv`` every figure with its standard error.
    """
    run = ExperimentRun(out, quick, repetitions, seed, workers, cluster, progress)
    study = _Study(run, _QUICK if quick else _FULL)
    parts: Sequence[Any] = [
        part(study)
        for part in (
            _SeesTable,
            _ProtectsTable,
            _AccountsTable,
            _PlayedTable,
            _HonestTable,
            _SearchTable,
            _ProvenTable,
        )
    ]
    study.play()
    for part in parts:
        part.fill()
    lines = [line for part in parts for line in part.lines]
    run.write_csv("figures.csv", [row for part in parts for row in part.rows])
    run.write_csv("lines.csv", [{**line._asdict(), "kept": line.is_within} for line in lines])
    run.write("table.md", _markdown(parts, lines, quick=quick))
    return run.written


class _Table:
    """A part of the experiment: its tasks, then its rows, its lines and its text."""

    title = ""
    text = ""

    def __init__(self, study: _Study) -> None:
        self.study, self.plan = study, study.plan
        self.rows: list[dict[str, Any]] = []
        self.lines: list[Line] = []
        self.markdown: list[str] = []
        self.request()

    def request(self) -> None:
        """Add the tasks."""

    def fill(self) -> None:
        """Fill rows, lines and the Markdown table from the results."""

    def note(self, what: str, n: int, questions: int, label: str, figure: Mean) -> None:
        """Keep a figure for the table of all figures."""
        self.rows.append(
            {
                "table": self.title,
                "n": n,
                "questions": questions,
                "what": what,
                "mechanism": label,
                "figure": figure.mean,
                "standard_error": figure.error,
            }
        )

    def limit(self, what: str, figure: Mean, limit: float) -> None:
        """Keep a line that the settings must not exceed."""
        self.lines.append(Line(what, figure.mean, figure.error, limit))

    def head(self, *columns: str) -> None:
        """Begin the Markdown table."""
        self.markdown += [f"| {' | '.join(columns)} |", f"|---{'|---:' * (len(columns) - 1)}|"]

    def row(self, *cells: object) -> None:
        """Add a row to the Markdown table."""
        self.markdown.append(f"| {' | '.join(map(str, cells))} |")


def _size_text(n: int, questions: int) -> str:
    return f"{n:,}, {questions:,}"


class _SeesTable(_Table):
    title = "Sees"
    text = (
        "The gain of the public score over the released value that is shown with probability 0.95, "
        "in units of 1/√n, at a released risk R after some changes; with 20 teams all of them have "
        "changed as often. Exact scores show a gain of one example."
    )
    # Label, released value, changes, teams, accounts, limit in units of 1/sqrt(n).
    cases = (
        ("first, R = 0.1", 0.1, 0, 1, 1, None),
        ("after 3, R = 0.1", 0.1, 3, 1, 1, 1.6),
        ("after 8, R = 0.1", 0.1, 8, 1, 1, 3.0),
        ("after 3, R = 0.3", 0.3, 3, 1, 1, 2.5),
        ("20 teams, 2 accounts, after 3, R = 0.1", 0.1, 3, _TEAMS, 2, 1.8),
        ("20 teams, all accounts, after 3, R = 0.1", 0.1, 3, _TEAMS, _TEAMS, 3.5),
    )
    organiser = ("organiser: n = 1,828, 20 teams, R = 0.2", 1_828, 1_000, 0.2, 0.055)

    def _case(self, label: str, n: int, questions: int, case: tuple[Any, ...]) -> Any:
        _, released, changes, teams, accounts, _ = case
        return self.study.add(
            "gain",
            self.plan.draws,
            label=label,
            n=n,
            questions=questions,
            released=released,
            changes=changes,
            teams=teams,
            accounts=accounts,
        )

    def request(self) -> None:
        self.names = {
            (label, n, questions, case[0]): self._case(label, n, questions, case)
            for label in (GROWING, CONSTANT)
            for n, questions in self.plan.gain_sizes
            for case in self.cases
        }
        what, n, questions, released, _ = self.organiser
        case = (what, released, 3, _TEAMS, 2, None)
        self.organised = {
            label: self._case(label, n, questions, case) for label in (GROWING, CONSTANT)
        }

    def fill(self) -> None:
        self.head("n, questions", *(case[0] for case in self.cases))
        for label in (GROWING, CONSTANT):
            for n, questions in self.plan.gain_sizes:
                cells = []
                for case in self.cases:
                    figure = self.study.quantile(self.names[label, n, questions, case[0]])
                    self.note(case[0], n, questions, label, figure)
                    cells.append(str(figure))
                    if label == GROWING and case[-1] is not None:
                        self.limit(f"{case[0]}; {_size_text(n, questions)}", figure, case[-1])
                self.row(f"{label}: {_size_text(n, questions)}", *cells)
        what, n, questions, _, limit = self.organiser
        for label, name in self.organised.items():
            figure = self.study.quantile(name)
            figure = Mean(figure.mean / math.sqrt(n), figure.error / math.sqrt(n))
            self.note(what, n, questions, label, figure)
            self.markdown += ["", f"{what}, {label}: {figure.mean:.4f} ± {figure.error:.4f}."]
            if label == GROWING:
                self.limit(what, figure, limit)


class _ProtectsTable(_Table):
    title = "Protects"
    text = (
        "The largest mean bias over all attacks, in units of 1/√n: the planned attack with 0 to "
        "90% of the labels known, with and without abstention; walking; one bit. *by* names the "
        "attack on the growing ladder. Exact scores are attacked by a weighted vote of guesses. "
        "`open` and `strict` meet the planned attack with no label known."
    )
    labels = (GROWING, CONSTANT, *(f"{GROWING}, {name}" for name in ("open", "strict")))

    def request(self) -> None:
        self.names: dict[tuple[str, int, int], dict[str, Any]] = {}
        for n, questions in self.plan.attack_sizes:
            for label in self.labels:
                self.names[label, n, questions] = dict(self._attacks(label, n, questions))

    def _attacks(self, label: str, n: int, questions: int) -> Iterable[tuple[str, Any]]:
        games = self.study.games(n, questions)
        # The variants of a protection meet the attack that gains most.
        all_attacks = label in {GROWING, CONSTANT}
        for known in self.plan.known if all_attacks else (0.0,):
            for abstains in (True, False) if all_attacks else (True,):
                name = f"{known:.0%} known{'' if abstains else ', no abstention'}"
                yield (
                    name,
                    self.study.add(
                        "placed",
                        games if not known and abstains else max(games // 3, 2),
                        label=label,
                        n=n,
                        questions=questions,
                        known=known,
                        abstains=abstains,
                        teams=1,
                        accounts=1,
                    ),
                )
        if not all_attacks or n * questions > 10**7:
            return
        for name in _OTHER_ATTACKS:
            yield (
                name,
                self.study.add(
                    "analyst",
                    max(games // 8, 2),
                    label=label,
                    n=n,
                    questions=questions,
                    analyst=name,
                ),
            )

    def _largest(self, label: str, n: int, questions: int) -> tuple[Mean, str]:
        figures = {
            name: self.study.mean(task) for name, task in self.names[label, n, questions].items()
        }
        for name, figure in figures.items():
            self.note(name, n, questions, label, figure)
        best = max(figures, key=lambda name: figures[name].mean)
        return figures[best], best

    def fill(self) -> None:
        self.head(
            "n, questions", *self.labels, EXACT, "growing : constant", "growing : exact", "by"
        )
        for n, questions in self.plan.attack_sizes:
            largest = {label: self._largest(label, n, questions) for label in self.labels}
            exact = exact_scores_bias(n, questions)
            ours, today = largest[GROWING][0], largest[CONSTANT][0]
            ratio = _ratio(ours, today)
            of_exact = Mean(ours.mean / exact, ours.error / exact)
            self.row(
                _size_text(n, questions),
                *(str(figure) for figure, _ in largest.values()),
                f"{exact:.2f}",
                ratio,
                of_exact,
                largest[GROWING][1],
            )
            self.limit(f"bias : constant steps; {_size_text(n, questions)}", ratio, 1.2)
            self.limit(f"bias : exact scores; {_size_text(n, questions)}", of_exact, 0.55)


class _AccountsTable(_Table):
    title = "Accounts"
    text = (
        "Bias of an attacker with several of 20 teams, and relative to that with one ladder and as "
        "many questions. *Quiet*: an upper estimate for losses that are not zero-one, where steps "
        "follow the model and guesses can be as quiet as wanted; one ladder."
    )
    cases = ((2, 1.35), (_TEAMS, 1.3))

    def _task(self, n: int, questions: int, teams: int, accounts: int) -> Any:
        return self.study.add(
            "placed",
            self.study.games(n, questions),
            label=GROWING,
            n=n,
            questions=questions,
            known=0.0,
            abstains=True,
            teams=teams,
            accounts=accounts,
        )

    def request(self) -> None:
        self.names = {
            (size, accounts): self._task(*size, _TEAMS if accounts > 1 else 1, accounts)
            for size in self.plan.sybil_sizes
            for accounts in (1, 2, _TEAMS)
        }
        self.quiet = {
            (n, questions): self.study.add(
                "quiet", max(self.study.games(n, questions) // 3, 2), n=n, questions=questions
            )
            for n, questions in self.plan.sybil_sizes
        }

    def fill(self) -> None:
        self.head(
            "n, questions", "one ladder", "2 of 20 teams", "all 20", "2 : 1", "20 : 1", "quiet"
        )
        for size in self.plan.sybil_sizes:
            one, *several = (
                self.study.mean(self.names[size, accounts]) for accounts in (1, 2, _TEAMS)
            )
            for accounts, figure in zip((1, 2, _TEAMS), (one, *several), strict=True):
                self.note(f"{accounts} accounts", *size, GROWING, figure)
            ratios = [_ratio(figure, one) for figure in several]
            quiet = self.study.mean(self.quiet[size])
            self.note("quiet", *size, GROWING, quiet)
            self.row(_size_text(*size), one, *several, *ratios, quiet)
            for (accounts, limit), ratio in zip(self.cases, ratios, strict=True):
                self.limit(f"{accounts} accounts : one; {_size_text(*size)}", ratio, limit)


class _PlayedTable(_Table):
    title = "Quiet and loud models"
    text = (
        "Losses that are not zero-one, where steps follow the model: bias, in units of 1/√n, of an "
        "attack that is played on real sessions, the best of eighteen by start, loudness and "
        "patience. *Alternating*: a quiet model takes each record, and loud guesses are compared "
        "with it. The limit is 1.2 times what constant steps leave under zero-one loss."
    )
    # Label, whether it alternates, teams, accounts, limit as a multiple of one ladder's bias.
    cases = (
        ("steady", False, 1, 1, None),
        ("alternating", True, 1, 1, None),
        ("2 of 20 teams", False, _TEAMS, 2, 1.35),
        ("all 20", False, _TEAMS, _TEAMS, 1.3),
    )

    def request(self) -> None:
        self.names = {
            (size, case[0]): self.study.add(
                "played",
                max(self.study.games(*size) // 2, 2),
                n=size[0],
                questions=size[1],
                alternates=case[1],
                teams=case[2],
                accounts=case[3],
            )
            for size in self.plan.played_sizes
            for case in self.cases
        }
        self.constant = {
            size: self.study.add(
                "placed",
                self.study.games(*size),
                label=CONSTANT,
                n=size[0],
                questions=size[1],
                known=0.0,
                abstains=True,
                teams=1,
                accounts=1,
            )
            for size in self.plan.played_sizes
        }

    def fill(self) -> None:
        self.head(
            "n, questions", *(case[0] for case in self.cases), "constant steps", "2 : 1", "20 : 1"
        )
        for size in self.plan.played_sizes:
            figures = [self.study.mean(self.names[size, case[0]]) for case in self.cases]
            for case, figure in zip(self.cases, figures, strict=True):
                self.note(case[0], *size, GROWING, figure)
            constant = self.study.mean(self.constant[size])
            one = max(figures[:2])
            ratios = [_ratio(figure, one) for figure in figures[2:]]
            self.row(_size_text(*size), *figures, constant, *ratios)
            self.limit(f"played : constant; {_size_text(*size)}", _ratio(one, constant), 1.2)
            for case, ratio in zip(self.cases[2:], ratios, strict=True):
                self.limit(f"played, {case[0]} : one; {_size_text(*size)}", ratio, case[-1])


class _HonestTable(_Table):
    title = "Honest"
    text = "Mean leaderboard error in units of 1/√n."
    labels = (GROWING, CONSTANT, EXACT)

    def request(self) -> None:
        self.names = {
            (label, n, questions, name): self.study.add(
                "honest",
                2 * self.study.games(n, questions),
                label=label,
                n=n,
                questions=questions,
                analyst=name,
            )
            for n, questions in self.plan.attack_sizes
            for name in _HONEST
            for label in self.labels
        }

    def fill(self) -> None:
        self.head("analyst, n, questions", *self.labels)
        for n, questions in self.plan.attack_sizes:
            for name in _HONEST:
                figures = {
                    label: self.study.mean(self.names[label, n, questions, name])
                    for label in self.labels
                }
                for label, figure in figures.items():
                    self.note(name, n, questions, label, figure)
                self.row(f"{name}: {_size_text(n, questions)}", *figures.values())
                if name == "random search":
                    self.limit(f"random search; {_size_text(n, questions)}", figures[GROWING], 0.7)
                if name == "steady improvement":
                    ratio = _ratio(figures[GROWING], figures[CONSTANT])
                    self.limit(f"steady : constant; {_size_text(n, questions)}", ratio, 1.6)


class _SearchTable(_Table):
    title = "Searches"
    text = (
        "How much worse the winner of a search over digit classifiers is than its best model, in "
        "thousandths of risk, over three levels of noise on the images; in brackets how often the "
        "board changed. The winner is the last record. On a board, a team that selects nothing "
        "goes into the final ranking with its best exact public score: the winner by exact scores."
    )
    labels = (GROWING, f"{GROWING}, open", f"{GROWING}, strict", CONSTANT, EXACT)

    def request(self) -> None:
        self.sizes = self.plan.search_sizes
        games = min(self.study.run.repetitions or self.plan.games, _SEARCH_GAMES)
        self.shape = (2, len(self.labels), len(self.sizes), games)
        self.names = [
            self.study.add(
                "searches",
                math.prod(self.shape),
                labels=self.labels,
                sizes=self.sizes,
                n=6 * max(self.sizes),
                questions=self.plan.search_models,
                noise=noise,
            )
            for noise in self.plan.search_noises
        ]

    def fill(self) -> None:
        models = self.plan.search_models
        results = np.concatenate(
            [np.reshape(self.study.values(name), self.shape) for name in self.names], axis=-1
        )
        self.head(f"n, {models} models", *self.labels, "growing : constant")
        for column, n in enumerate(self.sizes):
            excess, records = results[:, :, column]
            figures = {label: Mean.of(row) for label, row in zip(self.labels, excess, strict=True)}
            for label, figure in figures.items():
                self.note("search", n, models, label, figure)
            ours, exact = figures[GROWING], figures[EXACT]
            cells = [
                f"{figure} ({changes:.1f})"
                for figure, changes in zip(figures.values(), records.mean(axis=1), strict=True)
            ]
            self.row(f"{n:,}", *cells, _ratio(ours, figures[CONSTANT]))
            # Not a ratio: exact scores may leave next to nothing.
            beyond = Mean(ours.mean - 2 * exact.mean, math.hypot(ours.error, 2 * exact.error))
            self.limit(f"search - twice exact scores; {_size_text(n, models)}", beyond, 0.0)


class _ProvenTable(_Table):
    title = "Proven records"
    text = (
        "How many new bests there are after the first, and how many of them are proven better than "
        "the best before. The models of honest analysts err independently, which makes two of them "
        "hardest to tell apart; those of searches are the classifiers above, as if two classes "
        "were declared. *False*: proven, and the true risk is not lower."
    )

    def _task(self, analyst: str, n: int, questions: int, games: int, noise: float = 0.0) -> Any:
        return self.study.add(
            "proven",
            3 * games,
            analyst=analyst,
            n=n,
            questions=questions,
            noise=noise,
            pool=6 * max(self.plan.search_sizes) if noise else 0,
        )

    def request(self) -> None:
        self.names = {
            (name, n, questions): [
                self._task(name, n, questions, max(self.study.games(n, questions) // 2, 2))
            ]
            for name in _HONEST
            for n, questions in self.plan.attack_sizes
            if n * questions <= 10**7
        } | {
            ("search", n, self.plan.search_models): [
                self._task(
                    "search",
                    n,
                    self.plan.search_models,
                    min(self.study.run.repetitions or self.plan.games, _SEARCH_GAMES),
                    noise,
                )
                for noise in self.plan.search_noises
            ]
            for n in self.plan.search_sizes
        }

    def fill(self) -> None:
        self.head("analyst, n, questions", "records after the first", "proven", "false")
        for (name, n, questions), tasks in self.names.items():
            records, proven, false = np.concatenate(
                [np.reshape(self.study.values(task), (3, -1)) for task in tasks], axis=-1
            )
            figures = [Mean.of(values) for values in (records, proven, false)]
            for what, figure in zip(("records", "proven", "false"), figures, strict=True):
                self.note(f"{name}: {what}", n, questions, GROWING, figure)
            self.row(f"{name}: {_size_text(n, questions)}", *figures)


def _ratio(first: Mean, second: Mean) -> Mean:
    """Return the ratio of two independent means, with its standard error."""
    if not second.mean:
        return Mean(math.inf if first.mean else 1.0, math.nan)
    ratio = first.mean / second.mean
    spread = math.hypot(first.error / (first.mean or 1.0), second.error / second.mean)
    return Mean(ratio, abs(ratio) * spread)


def _markdown(parts: Sequence[_Table], lines: Sequence[Line], *, quick: bool) -> str:
    """Return the tables, and the lines that are not kept, or that all are."""
    text = ["# The growing ladder, constant steps and exact scores", ""]
    if quick:
        text += ["A quick run: a few games at small sizes, to see what is measured.", ""]
    for part in parts:
        text += [f"## {part.title}", "", part.text, "", *part.markdown, ""]
    broken = [line for line in lines if not line.is_within]
    text += ["## Lines", "", f"{len(lines) - len(broken)} of {len(lines)} are kept."]
    text += [""] if broken else []
    text += [
        f"- {line.what}: {Mean(line.figure, line.error)}, at most {line.limit:g} wanted"
        for line in broken
    ]
    return "\n".join(text) + "\n"
