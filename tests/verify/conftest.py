"""Bundles to check, forgers, and both verifiers."""

import itertools
import re

import pytest

from ladderboard.errors import BrokenLedger
from ladderboard.verify import verify_bundle
from support.verify.board_history import (
    ORGANISER,
    close_and_bundle,
    holdout_table,
    small_board,
    submit_predictions,
)
from support.verify.bundle_forge import BundleForge
from support.verify.bundles import copy_records, read_records, write_records
from support.verify.second_verifier import run_second_verifier


@pytest.fixture(scope="module")
def plain_records(tmp_path_factory):
    """Give the records of a board of three teams and a baseline, each team with three questions."""
    folder = tmp_path_factory.mktemp("plain")
    with small_board(folder) as (board, teams):
        for index in range(9):
            submit_predictions(board, teams[index % 3], 10 + index)
        return read_records(close_and_bundle(board, folder / "bundle"))


@pytest.fixture(scope="module")
def corrected_records(tmp_path_factory):
    """Give the records of a board whose labels were corrected twice, after six questions each.

    The first time what was best was asked again, the second time nothing; three questions follow.
    """
    folder = tmp_path_factory.mktemp("corrected")
    with small_board(folder) as (board, teams):
        for epoch, replay in enumerate(("best", "none", None)):
            for index in range(3 if replay is None else 6):
                submit_predictions(board, teams[index % 3], 10 + 6 * epoch + index)
            if replay is not None:
                table = holdout_table(flip=5 + epoch)
                board.amendments.correct_labels(ORGANISER, table, replay=replay)
        return read_records(close_and_bundle(board, folder / "bundle"))


@pytest.fixture
def forge(plain_records):
    """Give the plain board to a forger."""
    return BundleForge(copy_records(plain_records))


@pytest.fixture
def forge_corrected(corrected_records):
    """Give the corrected board to a forger."""
    return BundleForge(copy_records(corrected_records))


@pytest.fixture
def write_forged(tmp_path):
    """Give a function that writes what was forged."""
    numbers = itertools.count(1)
    return lambda forged: write_records(tmp_path / f"forged {next(numbers)}", forged.records())


@pytest.fixture
def check_refused(write_forged):
    """Give a function that sees that something is refused, in these words, and for this entry."""

    def see(forged, message, entry=None):
        with pytest.raises(BrokenLedger, match=re.escape(message)) as caught:
            verify_bundle(write_forged(forged))
        assert caught.value.entry == entry

    return see


@pytest.fixture
def second_verifier():
    """Give a function that asks the second verifier, and returns the first line that it says."""
    return run_second_verifier
