"""The mark beside a file."""

import os
import stat
from multiprocessing import get_context

import pytest

from ladderboard.errors import StaleCopy, StorageFailed
from ladderboard.ledger import HighWaterMark, Position


def level(entries, book="b"):
    return Position(book, entries, entries - 2, f"{entries:064x}")


@pytest.fixture
def high_water(tmp_path):
    return HighWaterMark(tmp_path / "guard.db")


def test_there_is_none_at_first(high_water):
    assert high_water.read() is None


def test_it_rises_and_never_falls(high_water):
    for entries in (5, 4, 7, 6, 7):
        high_water.advance(level(entries))
    assert high_water.read() == level(7)


def test_only_the_owner_reads_it_and_its_size_stays(high_water):
    high_water.replace(level(1))
    size = high_water.path.stat().st_size
    high_water.advance(level(10**9))
    assert high_water.path.stat().st_size == size
    assert stat.S_IMODE(high_water.path.stat().st_mode) == 0o600


def test_the_owner_may_lower_it(high_water):
    high_water.advance(level(9))
    high_water.replace(level(3))
    assert high_water.read() == level(3)


def test_the_mark_of_the_same_book_is_renamed_and_no_other(high_water, tmp_path):
    old = HighWaterMark(tmp_path / "old")
    old.advance(level(9))
    high_water.rename_from(old, "c")
    assert (high_water.read(), old.read()) == (None, level(9))
    high_water.rename_from(old, "b")
    assert (high_water.read(), old.read()) == (level(9), None)


def test_another_book_takes_its_place(high_water):
    high_water.advance(level(9))
    high_water.advance(level(2, "c"))
    assert high_water.read() == level(2, "c")


@pytest.mark.parametrize("content", [b"", b"x", b"ladderboard mark 1 b 3 1 00", b"\xff" * 256])
def test_what_is_damaged_is_refused(high_water, content):
    high_water.path.write_bytes(content)
    with pytest.raises(StaleCopy, match="damaged"):
        high_water.read()
    assert high_water.read_if_intact() is None


def test_a_mark_that_cannot_be_opened_raises(high_water):
    high_water.path.mkdir()
    with pytest.raises(StorageFailed, match="cannot be written"):
        high_water.advance(level(1))


def _raise(path, start):
    water = HighWaterMark(path)
    for entries in range(start, 400, 2):
        water.advance(level(entries))


def test_two_processes_leave_the_higher_one(high_water):
    context = get_context("fork" if hasattr(os, "fork") else "spawn")
    path = high_water.path.with_suffix("")
    both = [context.Process(target=_raise, args=(path, start)) for start in (2, 3)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert high_water.read() == level(399)
