"""Draws are checked in batches, in a second process too: what is found does not depend on that."""

import select
import subprocess
import sys

import pytest

from ladderboard.errors import BrokenLedger
from ladderboard.ledger import encode
from ladderboard.tape import DiscreteGaussian, Tape
from ladderboard.verify import _replay, verify_bundle
from ladderboard.verify._replay import DrawChecker
from support.verify.bundle_forge import BundleForge
from support.verify.bundles import KEY, MECHANISMS, copy_records, make_bundle, read_records

LAWS = (DiscreteGaussian(1000), DiscreteGaussian(50))
NOISE = "its noise was not drawn from the key"


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    path = make_bundle(folder, MECHANISMS["calibrated"], questions=30, ladders=2)
    return read_records(path)


@pytest.fixture
def long_forge(records):
    return BundleForge(copy_records(records))


@pytest.fixture
def helpers(monkeypatch):
    """Start a second process for short bundles too; give the list of those that were started."""
    started = []

    class Recorded(subprocess.Popen):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    monkeypatch.setattr(_replay, "_LONG", 1)
    monkeypatch.setattr(_replay, "_BATCH", 4)
    monkeypatch.setattr(_replay, "count_cores", lambda: 2)
    return started


@pytest.fixture(params=[1, 2], ids=["one core", "two cores"])
def cores(request, helpers, monkeypatch):
    """Verify with this many cores, and see that a second process was used, and that it ended."""
    monkeypatch.setattr(_replay, "count_cores", lambda: request.param)
    yield request.param
    assert len(helpers) == request.param - 1
    assert all(helper.returncode is not None for helper in helpers)


def change_draws(forge, index):
    forge.of("question")[index].secret["content"]["draws"][0] += 1


@pytest.mark.usefixtures("cores")
def test_a_long_bundle_that_is_right(long_forge, write_forged):
    result = verify_bundle(write_forged(long_forge))
    assert result.releases == result.questions == 30


@pytest.mark.usefixtures("cores")
@pytest.mark.parametrize("index", [0, 14, 29])
def test_the_first_wrong_draws_are_named(long_forge, check_refused, index):
    for at in {index, 29}:
        change_draws(long_forge, at)
    check_refused(long_forge, NOISE, long_forge.number("question", index))


@pytest.mark.usefixtures("cores")
@pytest.mark.parametrize("distance", [0, 1, 9])
def test_wrong_draws_come_before_a_wrong_release(long_forge, check_refused, distance):
    change_draws(long_forge, 12)
    long_forge.of("question")[12 + distance].fields["value"] = 0.123
    check_refused(long_forge, NOISE, long_forge.number("question", 12))


@pytest.mark.usefixtures("cores")
def test_a_wrong_release_comes_before_wrong_draws(long_forge, check_refused):
    change_draws(long_forge, 12)
    long_forge.of("question")[11].fields["value"] = 0.123
    message = "its release does not follow from its risk and noise"
    check_refused(long_forge, message, long_forge.number("question", 11))


@pytest.mark.usefixtures("cores")
@pytest.mark.parametrize("draws", [[0.5, 1, 2], [1, 2], ["1", 2, 3], [10**40, 1, 2]])
def test_draws_that_no_law_makes(long_forge, check_refused, draws):
    long_forge.of("question")[7].secret["content"]["draws"] = draws
    change_draws(long_forge, 20)
    check_refused(long_forge, NOISE, long_forge.number("question", 7))


@pytest.mark.usefixtures("cores")
def test_an_interrupt_leaves_no_process(long_forge, write_forged):
    def interrupt(entries, total):
        if entries:
            raise KeyboardInterrupt

    path = write_forged(long_forge)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("ladderboard.verify._check._PROGRESS_INTERVAL", 10)
        with pytest.raises(KeyboardInterrupt):
            verify_bundle(path, on_progress=interrupt)


@pytest.mark.parametrize("program", ["/nonexistent/python", "/bin/false", ""])
def test_without_a_second_process_everything_is_checked_here(
    long_forge, write_forged, helpers, monkeypatch, program
):
    monkeypatch.setattr(sys, "executable", program)
    assert verify_bundle(write_forged(long_forge)).releases == 30
    change_draws(long_forge, 14)
    with pytest.raises(BrokenLedger, match=NOISE) as caught:
        verify_bundle(write_forged(long_forge))
    assert caught.value.entry == long_forge.number("question", 14)
    assert all(helper.returncode is not None for helper in helpers)


def hand_over(checker, questions, *, wrong=()):
    for question in questions:
        draws = Tape(key=KEY).draw(LAWS, ladder=0, question=question, context=b"context")
        encoded = encode([draws[0] + (question in wrong), draws[1]])
        checker.draw((question, 0, question, b"context", encoded))


def wait_for_answers(checker):
    while checker._outstanding:
        assert select.select([checker._answers], [], [], 120)[0], "the second process is silent"
        checker._read_answers()


def test_the_second_process_answers(helpers, monkeypatch):
    checker = DrawChecker(KEY, LAWS, 100)
    try:
        monkeypatch.setattr(DrawChecker, "check_batch", lambda *_: pytest.fail("checked here"))
        hand_over(checker, range(1, 9))
        assert len(checker._outstanding) == 2
        wait_for_answers(checker)
    finally:
        checker.close()
    assert helpers[0].returncode is not None


@pytest.mark.usefixtures("helpers")
def test_the_second_process_finds_wrong_draws():
    checker = DrawChecker(KEY, LAWS, 100)
    try:
        hand_over(checker, range(1, 13), wrong={6, 7, 11})
        for check in (lambda: wait_for_answers(checker), checker.finish):
            with pytest.raises(BrokenLedger, match=NOISE) as caught:
                check()
            assert caught.value.entry == 6
    finally:
        checker.close()


def test_the_second_process_ends_with_its_standard_input(helpers):
    checker = DrawChecker(KEY, LAWS, 100)
    helpers[0].stdin.close()  # as when this process is killed
    try:
        assert helpers[0].wait(120) == 0
    finally:
        helpers[0].stdin = None
        checker.close()


def test_one_core_starts_no_process(helpers, monkeypatch):
    monkeypatch.setattr(_replay, "count_cores", lambda: 1)
    DrawChecker(KEY, LAWS, 100).close()
    assert not helpers
