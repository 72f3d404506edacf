"""The arena: accepted participants, the order of rows, and the same rows from every backend."""

import dataclasses
import subprocess
import sys

import pytest

import ladderboard as lb
from ladderboard.arena import run
from ladderboard.errors import GameFailed, InvalidSetting
from ladderboard.mechanisms import ScoreMechanism

OWN = """
from dataclasses import dataclass
import ladderboard as lb

made = lb.Ladder(step=0.5)
number = 3

@dataclass(frozen=True)
class UserLadder(lb.Ladder):
    step: float = 0.25
    name = "own"

def by_size(n, k):
    return lb.Ladder(step=1 / n)

def guess(game):
    for _ in range(game.questions):
        game.ask(game.rng.integers(0, 2, game.n))
"""
SIZE = {"n": 100, "k": 10, "repetitions": 2}


def without_seconds(rows):
    return [dataclasses.replace(row, seconds=0) for row in rows]


def guess(game):
    for _ in range(game.questions):
        game.ask(game.rng.integers(0, 2, game.n))


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "own_participants.py").write_text(OWN)
    (tmp_path / "broken_participants.py").write_text("import no_such_thing_anywhere")
    monkeypatch.chdir(tmp_path)
    yield
    for name in ("own_participants", "broken_participants"):
        sys.modules.pop(name, None)
    sys.path[:] = [path for path in sys.path if path != str(tmp_path)]


def test_rows_come_in_a_fixed_order():
    rows = run(["exact", "ladder"], ["majority", guess], n=[100, 200], k=[5, 10], repetitions=2)
    order = [(row.n, row.k, row.analyst, row.mechanism, row.repetition) for row in rows]
    expected = [
        (n, k, analyst, mechanism, repetition)
        for n in (100, 200)
        for k in (5, 10)
        for analyst in ("majority", "guess")
        for mechanism in ("exact", "ladder")
        for repetition in (0, 1)
    ]
    assert order == expected


def test_mechanisms_are_compared_on_the_same_random_draws():
    rows = run(["exact", "rounded"], guess, **SIZE)
    assert [row.bias for row in rows[:2]] == [row.bias for row in rows[2:]]
    assert [row.seed for row in rows[:2]] == [row.seed for row in rows[2:]]
    assert rows[0].bias != rows[1].bias


def test_processes_give_the_same_rows():
    def play(workers):
        return run(
            {"a": lb.Exact(), "b": "shaky_ladder", "c": lambda n, k: lb.Noisy(sd=1 / k)},
            ["majority", guess],
            n=[100, 300],
            k=20,
            repetitions=3,
            workers=workers,
        )

    assert without_seconds(play(1)) == without_seconds(play(2))


@pytest.mark.parametrize(
    ("mechanism", "label"),
    [
        (lb.Exact(), "exact"),
        (lb.Exact, "exact"),
        ("ladder", "ladder"),
        (lambda n, k: lb.Ladder(step=1 / n), "<lambda>"),
        ({"mine": "exact"}, "mine"),
        ([{"mine": lb.Exact}], "mine"),
        ("own_participants:UserLadder", "own"),
        ("own_participants:made", "made"),
        ("own_participants:by_size", "by_size"),
        ("short=own_participants:by_size", "short"),
    ],
)
def test_accepted_forms_of_a_mechanism(own_module, mechanism, label):
    assert {row.mechanism for row in run(mechanism, "majority", **SIZE)} == {label}


@pytest.mark.parametrize(
    ("analyst", "label"),
    [
        (lb.analysts.MajorityAttack(), "majority"),
        (lb.analysts.MajorityAttack, "majority"),
        (guess, "guess"),
        ({"mine": guess}, "mine"),
        ("own_participants:guess", "guess"),
    ],
)
def test_accepted_forms_of_an_analyst(own_module, analyst, label):
    assert {row.analyst for row in run("exact", analyst, **SIZE)} == {label}


@pytest.mark.parametrize(
    ("mechanism", "analyst", "sentence"),
    [
        ("laddder", guess, r"'laddder'; .*bootstrap_ladder, .*ladder"),
        ("exact", "majorty", r"'majorty'; .*majority.*module:name"),
        ("no_such_module:UserLadder", guess, "'no_such_module'"),
        ("own_participants:Userr", guess, r"'Userr'; .*made, UserLadder, by_size, guess"),
        ("own_participants:number", guess, "A mechanism here is a Mechanism, a function"),
        (
            "broken_participants:UserLadder",
            guess,
            "broken_participants cannot be imported: No module named",
        ),
        ("own participants:UserLadder", guess, "as module:name"),
        (lb.Ladder, guess, "Ladder needs settings"),
        (lambda n: lb.Exact(), guess, r"failed when called with \(n, k\)"),
        (lambda n, k: 7, guess, r"must return a Mechanism for \(n, k\) = \(100, 10\); got 7"),
        (7, guess, "A mechanism here is a Mechanism, a function"),
        ([], guess, "at least one mechanism"),
        ("exact", [], "at least one analyst"),
        ("exact", 7, "An analyst here is an Analyst, a function"),
        ("exact", lb.Exact(), "An analyst here is an Analyst, a function"),
        ([lb.Ladder(step=0.1), lb.Ladder(step=0.2)], guess, "Two mechanisms are called 'ladder'"),
        ("exact", [guess, guess], "Two analysts are called 'guess'"),
    ],
)
def test_refusals_list_the_known_names(own_module, mechanism, analyst, sentence):
    with pytest.raises(InvalidSetting, match=sentence):
        run(mechanism, analyst, **SIZE)


@pytest.mark.parametrize(
    "settings", [{"n": 0}, {"k": []}, {"repetitions": 0}, {"workers": 0}, {"seed": -1}]
)
def test_wrong_numbers_are_refused_by_name(settings):
    (name,) = settings
    with pytest.raises(InvalidSetting, match=f"^{name} must be"):
        run("exact", guess, **{**SIZE, **settings})


def broken(game):
    game.ask(game.rng.integers(0, 2, game.n))
    return 1 / 0


@pytest.mark.parametrize(
    ("mechanism", "analyst", "sentence"),
    [
        ("exact", {"silent": lambda game: None}, "silent against exact.*asked no question"),
        (
            "exact",
            broken,
            r"broken against exact, n=100, k=10, repetition .: .*\(test_run.py, line",
        ),
        ("exact", {"quits": lambda game: sys.exit(3)}, "quits against exact.*SystemExit: 3"),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_game_that_fails_says_which(mechanism, analyst, sentence, workers):
    with pytest.raises(GameFailed, match=sentence):
        run(mechanism, analyst, **SIZE, workers=workers)


@pytest.mark.parametrize("answer", [float("nan"), float("inf"), "hello"])
def test_a_mechanism_with_invalid_answers_is_named(answer):
    class Odd(ScoreMechanism):
        name = "odd"

        def score(self, risk, draws):
            return answer

    with pytest.raises(GameFailed, match="majority against odd"):
        run(Odd, "majority", **SIZE)


def test_a_script_without_a_guard_works_with_several_workers(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import ladderboard as lb\n"
        "def guess(game):\n"
        "    game.ask(game.rng.integers(0, 2, game.n))\n"
        "print(len(lb.arena.run('exact', guess, n=50, k=3, repetitions=4, workers=2)))\n"
    )
    result = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, timeout=60
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "4\n", "")


def _end_the_process(game):
    import os

    os._exit(1)


def test_a_worker_that_dies_is_one_sentence():
    with pytest.raises(lb.errors.WorkerError, match="A worker process died"):
        run("exact", {"fatal": _end_the_process}, **SIZE, workers=2)


def test_participants_that_cannot_be_pickled_are_refused():
    import threading

    lock = threading.Lock()
    with pytest.raises(InvalidSetting, match="cannot be sent to another process"):
        run("exact", {"stuck": lambda game: lock.acquire()}, **SIZE, workers=2)
