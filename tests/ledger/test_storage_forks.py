"""Forks while other threads write and close: what was told stands, and nobody waits for ever."""

import os
import signal
import threading
import time

import pytest

from ladderboard.ledger import SqliteStorage

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


def write(storage, grow):
    """Append an entry and return its place."""
    with storage.write_transaction("b") as book:
        grow(book)
        return book.chain_state().entries - 1


def test_a_fork_waits_for_a_block_whose_storage_was_closed(file, in_a_child, grow):
    storage, inside, go = SqliteStorage(file), threading.Event(), threading.Event()

    def slow():
        with storage.write_transaction("b") as book:
            grow(book)
            inside.set()
            go.wait()

    thread = threading.Thread(target=slow)
    thread.start()
    inside.wait()
    storage.close()
    threading.Timer(0.1, go.set).start()
    assert in_a_child(lambda: (go.is_set(), write(storage, grow))) == "(True, 2)"
    thread.join()
    assert not storage._pool._free
    assert write(storage, grow) == 3
    storage.close()


def test_a_fork_waits_for_a_link_that_is_being_closed(file, in_a_child, grow, monkeypatch):
    storage, closing, go = SqliteStorage(file), threading.Event(), threading.Event()
    write(storage, grow)
    (connection,) = storage._pool._free
    really = connection.close

    def close():
        closing.set()
        go.wait()
        really()

    monkeypatch.setattr(connection, "close", close)
    thread = threading.Thread(target=storage.close)
    thread.start()
    closing.wait()
    threading.Timer(0.1, go.set).start()
    assert in_a_child(lambda: (go.is_set(), write(storage, grow))) == "(True, 2)"
    thread.join()
    storage.close()


def test_a_child_of_a_fork_while_a_link_was_opened_for_too_long_refuses(
    file, in_a_child, grow, monkeypatch
):
    monkeypatch.setattr("ladderboard.ledger._storage._pool._FORK_TIMEOUT", 0.05)
    storage, opening, go = SqliteStorage(file), threading.Event(), threading.Event()
    storage.close()
    really = storage._pool._make

    def make():
        opening.set()
        go.wait()
        return really()

    storage._pool._make = make
    thread = threading.Thread(target=write, args=(storage, grow))
    thread.start()
    opening.wait()

    def child():
        go.set()
        return write(storage, grow)

    assert "forked inside a block" in in_a_child(child)
    go.set()
    thread.join()
    assert write(storage, grow) == 2
    storage.close()


def _end(children):
    """Wait for children, kill those that do not end, and return how many these were."""
    patience = time.monotonic() + 10
    while children and time.monotonic() < patience:
        children = [child for child in children if not os.waitpid(child, os.WNOHANG)[0]]
        time.sleep(0.01)
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return len(children)


def _stress(file, grow, seconds):
    """Two threads write, one closes, children write; return what was told and who hangs."""
    storage, stop, entry_numbers = SqliteStorage(file), threading.Event(), []

    def writer():
        while not stop.is_set():
            entry_numbers.append(write(storage, grow))

    def closer():
        while not stop.wait(0.002):
            storage.close()

    threads = [threading.Thread(target=work) for work in (writer, writer, closer)]
    for thread in threads:
        thread.start()
    reading, writing = os.pipe()
    children, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.05)
        child = os.fork()
        if child == 0:
            try:
                os.write(writing, b"%d\n" % write(storage, grow))
            finally:
                os._exit(0)
        children.append(child)
    stop.set()
    for thread in threads:
        thread.join()
    os.close(writing)
    hanging = _end(children)
    with os.fdopen(reading) as pipe:
        entry_numbers += [int(number) for number in pipe.read().split()]
    storage.close()
    return entry_numbers, hanging


@pytest.mark.parametrize("seconds", [4, pytest.param(60, marks=pytest.mark.slow)])
def test_threads_that_write_and_close_while_the_process_forks_lose_nothing(file, grow, seconds):
    entry_numbers, hanging = _stress(file, grow, seconds)
    assert not hanging
    with SqliteStorage(file) as storage, storage.read_transaction("b") as book:
        assert sorted(entry_numbers) == list(
            range(1, book.chain_state().entries)
        )  # each told once, and none lost
        assert list(book.entries()) == [
            b"entry %d" % index for index in range(len(entry_numbers) + 1)
        ]
