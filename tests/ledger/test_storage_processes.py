"""Several processes on one database: forks, kills, and many writers at once."""

import multiprocessing
import os
import secrets
import signal
import threading
import time

import pytest

from ladderboard.ledger import PostgresStorage, SqliteStorage

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


@pytest.fixture(params=["sqlite", "postgres"])
def opener(request, tmp_path):
    """Give a function that opens the same database every time."""
    if request.param == "sqlite":
        path = request.getfixturevalue("file")
        return lambda: SqliteStorage(path)
    server, schema = request.getfixturevalue("postgres"), request.getfixturevalue("schema")
    return lambda: PostgresStorage(server.url(), schema=schema)


def entries(storage):
    with storage.read_transaction("b") as book:
        return book.chain_state().entries


def write(storage, grow):
    with storage.write_transaction("b") as book:
        grow(book)
        return book.chain_state().entries


def driver_connection(storage):
    """Return the driver's connection of an idle storage that has one at most."""
    connection = storage._pool.acquire()
    storage._pool.release(connection)
    return connection.connection


def test_a_fork_uses_connections_of_its_own(opener, in_a_child, grow):
    storage = opener()
    assert write(storage, grow) == 2
    inherited = driver_connection(storage)

    def child():
        reused = driver_connection(storage) is inherited
        return reused, write(storage, grow), write(storage, grow)

    assert in_a_child(child) == "(False, 3, 4)"
    assert write(storage, grow) == 5
    if isinstance(storage, PostgresStorage):
        assert driver_connection(storage) is inherited  # still good, though the child is gone
    storage.close()


def test_a_fork_inside_a_block_cannot_end_it(opener, in_a_child, grow):
    storage = opener()
    with storage.write_transaction("b") as book:
        grow(book)

        def go_on():
            grow(book)

        assert "StorageFailed" in in_a_child(go_on)

        output = in_a_child(lambda: entries(opener()))
        if isinstance(storage, SqliteStorage):  # whose locks would be the parent's in the child
            assert "StorageFailed" in output
            assert "forked inside a block" in output
        else:
            assert output == "1"
    assert in_a_child(lambda: entries(opener())) == "2"
    assert entries(storage) == 2
    storage.close()


def test_a_child_that_ends_a_block_of_its_parent_changes_nothing(opener, in_a_child, grow):
    storage = opener()
    block = storage.write_transaction("b")
    grow(block.__enter__())
    assert "StorageFailed" in in_a_child(lambda: block.__exit__(None, None, None))
    block.__exit__(None, None, None)
    assert write(storage, grow) == 3
    storage.close()


def test_a_fork_while_others_write_is_not_stuck(opener, grow):
    storage, inside, go = opener(), threading.Event(), threading.Event()

    def slow():
        with storage.write_transaction("b") as book:
            grow(book)
            inside.set()
            go.wait()

    thread = threading.Thread(target=slow)
    thread.start()
    inside.wait()
    threading.Timer(0.1, go.set).start()
    child = os.fork()
    if child == 0:
        try:
            write(storage, grow)
        finally:
            os._exit(entries(storage))
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert write(storage, grow) == 4
    storage.close()


def test_an_ordinary_end_of_a_child_closes_nothing_of_its_parent(opener, grow):
    """With an interpreter that finalises everything, unlike ``os._exit``."""
    storage = opener()
    write(storage, grow)
    block = storage.write_transaction("b")
    grow(block.__enter__())
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        # Threads of other libraries, which a fork leaves behind, may be waited for at the very end.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(2)
        import ctypes

        ctypes.pythonapi.Py_FinalizeEx()
        os._exit(0)
    os.waitpid(child, 0)
    block.__exit__(None, None, None)
    assert write(storage, grow) == 4
    storage.close()


def _work(make, count, grow):
    storage = make()
    for _ in range(count):
        with storage.write_transaction("b") as book:
            grow(book)
            state = int(book.ladder_state(0) or 0) + 1
            book.set_ladder_state(0, b"%d" % state)
    storage.close()


def test_processes_take_turns(opener, grow):
    storage = opener()
    with storage.write_transaction("b") as book:
        book.set_ladder_state(0, b"0")
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_work, args=(opener, 40, grow)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    with storage.read_transaction("b") as book:
        assert book.chain_state().entries == 161
        assert book.ladder_state(0) == b"160"
        assert list(book.entries()) == [b"entry %d" % number for number in range(161)]
    storage.close()


def _write_and_tell(make, grow, pipe):
    """Write for ever, and tell of every block once it has ended."""
    storage = make()
    while True:
        with storage.write_transaction("b") as book:
            grow(book)
            book.set_ladder_state(0, b"%d" % (int(book.ladder_state(0)) + 1))
        os.write(pipe, b".")


def test_a_killed_writer_leaves_complete_transactions_only(opener, grow):
    """Twelve kills, each after a first acknowledged block and a little longer than the last."""
    storage = opener()
    with storage.write_transaction("b") as book:
        book.set_ladder_state(0, b"0")
    for round_ in range(12):
        before = entries(storage)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                _write_and_tell(opener, grow, writing)
            finally:
                os._exit(1)
        os.close(writing)
        reported = os.read(reading, 1)
        time.sleep(0.0037 * round_)
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        with os.fdopen(reading, "rb") as pipe:
            reported += pipe.read()
        with storage.write_transaction("b") as book:  # waits for what the killed one may still hold
            stands, state = book.chain_state().entries, int(book.ladder_state(0))
            assert len(list(book.entries())) == stands == state + 1
        assert stands - before in {
            len(reported),
            len(reported) + 1,
        }  # one may be committed and not told
        assert reported
    storage.close()


def test_many_may_create_the_tables_at_once(postgres):
    schema = f"many_{secrets.token_hex(4)}"

    def make():
        try:
            PostgresStorage(postgres.url(), create=True, schema=schema).close()
        except BaseException:  # noqa: BLE001
            os._exit(1)
        os._exit(0)

    children = []
    for _ in range(8):
        child = os.fork()
        if child == 0:
            make()
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
    assert PostgresStorage(postgres.url(), schema=schema).books() == []


def test_one_of_many_makes_the_file(tmp_path):
    def make():
        try:
            SqliteStorage(tmp_path / "guard.db", create=True).close()
        except ValueError:
            os._exit(3)
        os._exit(0)

    children = []
    for _ in range(6):
        child = os.fork()
        if child == 0:
            make()
        children.append(child)
    codes = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
    assert codes == [0, 3, 3, 3, 3, 3]
    assert [path.name for path in tmp_path.iterdir()] == ["guard.db"]
