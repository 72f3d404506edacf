"""The maximum number of ladders is declared at creation and enforced everywhere."""

import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import TooManyLadders

FORMATS = Path(__file__).parent / "formats"
N = 100
LABELS = np.arange(N) % 2


def wrong(count):
    """Return predictions that are wrong for the first ``count`` examples."""
    return np.where(np.arange(N) < count, 1 - LABELS, LABELS)


def make(path, **settings):
    settings = {"questions": 20, "mechanism": lb.Ladder(step=0.02, grid=0.01), **settings}
    return lb.Holdout.create(path, labels=LABELS, **settings)


def test_a_guard_has_one_ladder_unless_more_are_declared(path):
    guard = make(path)
    guard.ask(wrong(30))
    entries = guard.status().meter.chain_state.entries
    for _ in range(3):
        with pytest.raises(TooManyLadders, match=r"'study' cannot be started.*--ladders 2"):
            guard.ladder("study").ask(wrong(20))
        with pytest.raises(TooManyLadders):
            guard.ask(wrong(20), ladder="other")
    assert (guard.remaining, guard.status().meter.chain_state.entries) == (19, entries)
    assert guard.ask(wrong(20)).question == 2
    assert guard.check() == 2


def test_any_name_may_be_the_one_ladder(path):
    """The unnamed ladder counts from its first question on, like every other."""
    guard = make(path).ladder("study")
    assert guard.ask(wrong(30)).question == 1
    assert guard.ask(wrong(20)).question == 2
    with pytest.raises(TooManyLadders, match="'study'"):
        lb.Holdout.open(path).ask(wrong(10))
    assert guard.remaining == 18


@pytest.mark.parametrize("first", ["", "a"])
def test_no_more_ladders_than_declared(path, first):
    guard = make(path, ladders=3)
    assert guard.ladders == 3
    assert guard.status().opening["rules"]["ladders"] == 3
    for name in (first, "b", "c"):
        assert (guard.ladder(name) if name else guard).ask(wrong(30)).question == 1
    for name in {"", "a", "d"} - {first}:
        with pytest.raises(TooManyLadders, match="All 3 ladders are in use"):
            (guard.ladder(name) if name else guard).ask(wrong(20))
    for name in (first, "b", "c"):
        assert (guard.ladder(name) if name else guard).ask(wrong(20)).question == 2
    assert guard.remaining == 14


@pytest.mark.parametrize("bad", [0, -1, 1.5, "2", 21, None])
def test_the_number_of_ladders_is_between_one_and_the_budget(path, bad):
    with pytest.raises(lb.errors.InvalidSetting, match="ladders must be"):
        make(path, ladders=bad)
    assert not path.exists()


def test_the_number_is_committed_to(path, tmp_path):
    guard, other = make(path), make(tmp_path / "two.db", ladders=2)
    assert guard.status().opening["rules"]["ladders"] == 1
    assert other.status().opening["commitment"] != guard.status().opening["commitment"]


def test_the_cap_holds_in_other_processes_and_copies(path):
    guard = make(path, ladders=2)
    guard.ask(wrong(30))
    copy = pickle.loads(pickle.dumps(guard))
    script = (
        "import sys, ladderboard as lb, numpy as np\n"
        f"guard = lb.Holdout.open({str(path)!r})\n"
        "def ask(name):\n"
        "    try: return guard.ask(np.zeros(100, int), ladder=name).question\n"
        "    except lb.errors.TooManyLadders: return 'refused'\n"
        "print([ask(name) for name in sys.argv[1:]])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "x", "y"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[1, 'refused']"
    for opened in (guard, copy):
        with pytest.raises(TooManyLadders):
            opened.ask(wrong(10), ladder="y")


def test_threads_cannot_start_more_ladders_than_declared(path):
    guard = make(path, ladders=3)

    def ask(number):
        try:
            return guard.ask(wrong(number), ladder=f"study {number}").question
        except TooManyLadders:
            return None

    with ThreadPoolExecutor(8) as pool:
        questions = list(pool.map(ask, range(16)))
    assert questions.count(1) == 3
    assert guard.remaining == 17


def test_the_cap_holds_after_a_restore(path, tmp_path):
    guard = make(path, ladders=2)
    guard.ask(wrong(30))
    guard.backup(tmp_path / "copy.db")
    guard.ask(wrong(30), ladder="lost")
    guard.close()
    guard = lb.Holdout.restore(path, 1, copy=tmp_path / "copy.db")
    guard.ask(wrong(20), ladder="second")
    with pytest.raises(TooManyLadders):
        guard.ask(wrong(20), ladder="third")


def test_check_ladder_before_asking(path):
    guard = make(path)
    guard.check_ladder("study")
    guard.ladder("study").check_ladder()
    guard.ask(wrong(30))
    guard.check_ladder()
    with pytest.raises(TooManyLadders):
        guard.check_ladder("study")
    with pytest.raises(TooManyLadders):
        guard.ladder("study").check_ladder()


def test_a_search_is_refused_before_its_first_model(path):
    guard = make(path)
    guard.ask(wrong(30))
    lb.Judge(guard)
    with pytest.raises(TooManyLadders):
        lb.Judge(guard.ladder("search"))
    sklearn = pytest.importorskip("ladderboard.adapters.sklearn")
    with pytest.raises(TooManyLadders):
        sklearn.GuardScorer(guard.ladder("search"), np.zeros((N, 1)))
    assert guard.remaining == 19


def test_calibration_is_for_the_declared_number(tmp_path):
    for ladders in (1, 10):
        guard = lb.Holdout.create(
            tmp_path / f"{ladders}.db", labels=LABELS, questions=100, ladders=ladders
        )
        expected = lb.GrowingLadder.calibrated(N, 100, teams=ladders, accounts=ladders)
        assert guard.meter.mechanism == expected
    assert expected != lb.GrowingLadder.calibrated(N, 100)


def test_certificates_are_for_the_declared_number(path, tmp_path):
    """Certificates count the declared ladders from the first question, not those in use."""
    widths = []
    for ladders in (1, 2, 20):
        guard = make(tmp_path / f"{ladders}.db", ladders=ladders)
        for count in (40, 30, 20, 10):
            guard.ask(wrong(count))
        widths.append(guard.certificate.half_width)
        assert (f"all {ladders} ladders" in " ".join(guard.certificate.assumptions)) is (
            ladders > 1
        )
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


def test_a_guard_of_an_older_version_opens_and_starts_no_new_ladder(tmp_path):
    """Its rules name no number of ladders, and it was calibrated for one."""
    for name in ("1.db", "1.db.mark"):
        shutil.copy(FORMATS / name, tmp_path / name)
    guard = lb.Holdout.open(tmp_path / "1.db")
    status = guard.status()
    assert "ladders" not in status.opening["rules"]
    assert [ladder.name for ladder in status.ladders] == ["", "second"]
    assert guard.ladders == 2
    with pytest.raises(TooManyLadders, match="older version"):
        guard.ask(["cat"] * status.opening["rules"]["rows"], ladder="new")
    assert guard.remaining == status.meter.remaining
    for name in ("", "second"):
        guard.check_ladder(name)
    assert guard.check() == 4


# The attack that this stops: one question on each of many ladders, and a vote in which each counts
# by its first answer, which is nearly exact.


def vote(ask, rng, n, k):
    """Ask k coin-flip models, each on a ladder of its own; return what their vote predicts."""
    score = np.zeros(n)
    for number in range(k):
        guess = rng.integers(2, size=n)
        score += (0.5 - ask(guess, number)) * (2 * guess - 1)
    return (score > 0).astype(int)


def expected(mechanism, n, k):
    """Return the accuracy of that vote: k answers with this noise and grid, normal as n grows."""
    settings = mechanism.comparison(n)
    noise = n * (settings.release_noise**2 + settings.grid**2 / 12)
    return NormalDist().cdf(np.sqrt(k / n) / 2 / np.sqrt(0.25 + noise))


def test_the_attack_over_new_ladders_is_refused(path):
    """It used to leave an accuracy of .81 on labels that are coin flips."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=1000)
    guard = lb.Holdout.create(path, labels=labels, questions=1000)
    with pytest.raises(TooManyLadders):
        vote(lambda guess, number: guard.ask(guess, ladder=f"{number}").released, rng, 1000, 1000)
    assert guard.remaining == 999  # one question was asked, on the first name


def check_vote(ask, rng, labels, mechanism):
    """Check that a vote is as weak as the noise for that many ladders implies.

    It is off by 3.7 standard errors once in 10^4, and 6 are between this noise and that for one.
    """
    n = k = len(labels)
    right = float((vote(ask, rng, n, k) == labels).mean())
    assert abs(right - expected(mechanism, n, k)) < 3.7 * 0.5 / np.sqrt(n)
    single_ladder = lb.GrowingLadder.calibrated(n, k)
    assert expected(single_ladder, n, k) - expected(mechanism, n, k) > 6 * 0.5 / np.sqrt(n)


def test_noise_is_calibrated_for_the_declared_ladders(path):
    rng = np.random.default_rng(1)
    labels = rng.integers(2, size=1000)
    guard = lb.Holdout.create(path, labels=labels, questions=1000, ladders=1000)
    mechanism, tape = guard.meter.mechanism, lb.Tape(seed=1)

    def ask(guess, number):
        session = mechanism.start(n=1000, tape=tape, ladder=number)
        return session.ask(risk=float((guess != labels).mean())).value

    check_vote(ask, rng, labels, mechanism)


@pytest.mark.slow
def test_a_guard_is_calibrated_for_its_declared_ladders(path):
    rng = np.random.default_rng(2)
    labels = rng.integers(2, size=1000)
    guard = lb.Holdout.create(path, labels=labels, questions=1000, ladders=1000)
    mechanism = guard.meter.mechanism
    check_vote(
        lambda guess, number: guard.ask(guess, ladder=f"{number}").released, rng, labels, mechanism
    )
    assert guard.remaining == 0
    assert guard.check() == 1000


def test_a_reply_names_the_gain_that_its_own_ladder_shows(tmp_path):
    """By the changes of this ladder and of those that may belong to the same attacker."""
    mechanism = lb.GrowingLadder(step=1, accounts=2, sharing=1, sharing_cap=3)
    guard = lb.Holdout.create(
        tmp_path / "a.db", LABELS, questions=99, ladders=3, mechanism=mechanism, key=b"k" * 32
    )
    for count in (80, 60, 40, 20):
        assert guard.ladder("busy").ask(wrong(count)).improved
    assert guard.ladder("quiet").ask(wrong(50)).improved
    for name, changes, others in (("busy", 4, 1), ("quiet", 1, 4)):
        reply = guard.ladder(name).ask(wrong(90))
        gain = mechanism.smallest_visible_gain(
            n=N, released=reply.released, changes=changes, others=others
        )
        assert not reply.improved
        assert f"smaller than about {gain:.2g} may" in str(reply)
        assert guard.status().smallest_visible_gain(name) == gain
    assert guard.status().smallest_visible_gain() == guard.status().smallest_visible_gain("busy")


def test_the_gain_follows_the_released_standard_error(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.linspace(0, 600, N)
    guard = lb.Holdout.create(
        tmp_path / "a.db", labels, loss=lb.loss("squared", range=(0, 600)), questions=9
    )
    predictions = np.clip(labels + 6 * rng.standard_normal(N), 0, 600)
    first, again = guard.ask(predictions), guard.ask(predictions[::-1])
    assert first.improved
    assert not again.improved
    assert 0 < guard.status().smallest_visible_gain() < first.released
    gain = guard.status().smallest_visible_gain()
    assert f"smaller than about {gain:.2g} may" in str(again)
