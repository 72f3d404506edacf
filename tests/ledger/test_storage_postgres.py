"""A real PostgreSQL server: what is refused, what is said, and what a lost connection leaves."""

import contextlib
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from ladderboard.errors import InvalidSetting, InvalidState, MissingDependency, StorageFailed
from ladderboard.ledger import PostgresStorage
from ladderboard.ledger._storage import _postgres
from support.credentials import random_secret
from support.postgres import PASSWORD, PostgresServer


@pytest.fixture
def storage(postgres, schema):
    opened = PostgresStorage(postgres.url(), schema=schema)
    yield opened
    opened.close()


def writing(storage, grow, *actions):
    """Change the book and do something more, all in one block."""
    with storage.write_transaction("b") as book:
        change(book, grow)
        for act in actions:
            act(book)


def seen(storage):
    with storage.read_transaction("b") as book:
        return book.chain_state().entries, book.ladder_state(0), book.find_by_dedupe_key(b"new")


def change(book, grow):
    grow(book, b"secret")
    book.add_dedupe_key(b"new", 1)
    book.set_ladder_state(0, b"after")


BEFORE, AFTER = (1, b"state", None), (2, b"after", 1)


@pytest.fixture
def kill(postgres):
    """End all connections that are open, on the server's side."""

    def end():
        ended = postgres.run(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        assert (True,) in ended

    return end


def test_an_invalid_address_is_refused():
    for url in ("mysql://x/y", "guard.db", "sqlite:///x", "", "postgresql:/x"):
        with pytest.raises(InvalidSetting, match="must look like"):
            PostgresStorage(url)
    for schema in ('a"b', "", "Upper", "x" * 41, "a b", "1a", "é"):
        with pytest.raises(InvalidSetting, match="schema's name"):
            PostgresStorage("postgresql://u@h/d", schema=schema)


@pytest.mark.parametrize(
    "middle",
    ["t:hun@ter2@", "t:hun/ter2@", "t:hun?ter2@", "t:hunter2%zz@", "t:p@h:ter2"],
)
def test_an_address_that_falls_apart_is_not_quoted(postgres, middle):
    with pytest.raises(InvalidSetting) as caught:
        PostgresStorage(f"postgresql://{middle}127.0.0.1:{postgres.port}/postgres")
    assert "ter2" not in str(caught.value)
    assert "hun" not in str(caught.value)


def test_no_message_holds_a_password(postgres, schema):
    wrong = random_secret()
    with pytest.raises(StorageFailed, match="Cannot connect to") as caught:
        PostgresStorage(postgres.url(password=wrong), schema=schema)
    assert wrong not in str(caught.value)
    assert caught.value.__suppress_context__
    with pytest.raises(StorageFailed) as caught:
        PostgresStorage("postgresql://u:hunter2@127.0.0.1:1/d")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(InvalidState) as nothing:
        PostgresStorage(postgres.url(), schema="empty")
    storage = PostgresStorage(postgres.url(), schema=schema)
    assert PASSWORD not in str(nothing.value) + repr(storage) + str(storage)
    storage.close()


def test_a_schema_of_others_is_left_alone(postgres):
    postgres.run("CREATE SCHEMA theirs")
    postgres.run("CREATE TABLE theirs.book (id INT)")
    for create in (True, False):
        with pytest.raises(InvalidState, match="is not a ledger's"):
            PostgresStorage(postgres.url(), schema="theirs", create=create)
    assert postgres.run("SELECT count(*) FROM theirs.book") == [(0,)]
    postgres.run("CREATE SCHEMA prepared")  # by somebody who may, for somebody who may not
    PostgresStorage(postgres.url(), schema="prepared", create=True).close()
    PostgresStorage(postgres.url(), schema="prepared", create=True).close()
    with pytest.raises(InvalidState, match="holds no ledger"):
        PostgresStorage(postgres.url(), schema="nowhere")


def test_a_server_without_fsync_is_refused():
    server = PostgresServer(fsync="off")
    try:
        with pytest.raises(StorageFailed, match="fsync = off"):
            PostgresStorage(server.url(), create=True)
        assert server.run("SELECT 1 FROM pg_namespace WHERE nspname = 'ladderboard'") == []
    finally:
        server.stop()


@pytest.mark.parametrize("setting", ["off", "local", "remote_write", "on", "remote_apply"])
def test_commits_that_do_not_wait_are_refused(postgres, schema, setting, grow):
    url = postgres.url(query=f"?options=-csynchronous_commit%3D{setting}")
    if setting == "off":
        with pytest.raises(StorageFailed, match="synchronous_commit = off"):
            PostgresStorage(url, schema=schema)
        return
    with PostgresStorage(url, schema=schema) as storage:
        with storage.write_transaction("b") as book:
            change(book, grow)
        assert seen(storage) == AFTER


def test_a_server_whose_settings_become_unsafe_is_refused(grow):
    server = PostgresServer()
    try:
        storage = PostgresStorage(server.url(), create=True)
        with storage.add_book("b") as book:
            grow(book)
        for name in ("fsync", "full_page_writes", "synchronous_commit"):
            server.run(f"ALTER SYSTEM SET {name} = off")
            server.run("SELECT pg_reload_conf()")
            while server.run(f"SHOW {name}") != [("off",)]:
                pass
            blocks = (storage.write_transaction("b"), storage.add_book("c"))
            for block in blocks:
                with pytest.raises(StorageFailed, match=f"{name} = off"), block as book:
                    grow(book)
            server.run(f"ALTER SYSTEM RESET {name}")
            server.run("SELECT pg_reload_conf()")
            while server.run(f"SHOW {name}") != [("on",)]:
                pass
        with storage.write_transaction("b") as book:
            grow(book)
        assert storage.books() == ["b"]
        storage.close()
    finally:
        server.stop()


def test_a_database_in_another_encoding_is_refused(postgres):
    postgres.run("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(StorageFailed, match="UTF8"):
        PostgresStorage(postgres.url().replace("/postgres", "/latin"), create=True)


def test_an_idle_connection_that_was_lost_is_opened_again(storage, kill):
    for block in (storage.read_transaction, storage.write_transaction):
        assert seen(storage) == BEFORE
        kill()
        with block("b") as book:
            assert book.chain_state().entries == 1
    kill()
    assert storage.books() == ["b"]


def test_a_connection_lost_inside_a_block_leaves_nothing(storage, kill, grow):
    assert seen(storage) == BEFORE
    with pytest.raises(StorageFailed) as caught:
        writing(storage, grow, lambda _: kill(), lambda book: book.set_value("more", b""))
    assert not caught.value.uncertain
    assert seen(storage) == BEFORE
    with storage.write_transaction("b") as book:
        change(book, grow)
    assert seen(storage) == AFTER


def test_a_connection_lost_at_commit_is_uncertain(storage, kill, grow):
    assert seen(storage) == BEFORE
    with pytest.raises(StorageFailed, match="may or may not") as caught:
        writing(storage, grow, lambda _: kill())
    assert caught.value.uncertain
    assert seen(storage) == BEFORE  # whole or not at all; here the server never got to it
    with storage.write_transaction("b") as book:
        change(book, grow)
    assert seen(storage) == AFTER


def test_an_answer_lost_after_the_commit_is_uncertain(storage, grow, monkeypatch):
    assert seen(storage) == BEFORE
    run, lost = _postgres.CommandRunner.run, []

    def lose(runner, commands, *rest):
        results = run(runner, commands, *rest)
        if commands[-1].text == b"COMMIT":
            lost.append(runner)
            raise psycopg.OperationalError("the connection is lost")
        return results

    monkeypatch.setattr(_postgres.CommandRunner, "run", lose)
    with (
        pytest.raises(StorageFailed, match="may or may not") as caught,
        storage.write_transaction("b") as book,
    ):
        change(book, grow)
    monkeypatch.undo()
    assert caught.value.uncertain
    assert seen(storage) == AFTER
    assert len(lost) == 1  # the next transaction has a connection of its own


@pytest.fixture
def messages(monkeypatch):
    """Return a list that grows by the number of commands of each message."""
    run, messages_ = _postgres.CommandRunner.run, []

    def count(runner, commands, *rest):
        messages_.append(len(commands))
        return run(runner, commands, *rest)

    monkeypatch.setattr(_postgres.CommandRunner, "run", count)
    return messages_


def test_a_write_takes_two_messages(storage, grow, messages):
    assert seen(storage) == BEFORE
    messages.clear()
    with storage.write_transaction("b") as book:
        grow(book, b"secret")
        book.add_dedupe_key(b"new", 1, defer=True)
        book.set_ladder_state(0, b"after", defer=True)
        assert (book.find_by_dedupe_key(b"new"), book.ladder_state(0)) == (1, b"after")
    # Begin (two), lock and state; then entry, secret, key, ladder and commit.
    assert messages == [4, 5]
    assert seen(storage) == AFTER


NAME = "SELECT name FROM main.book WHERE id = ?"


def test_what_is_read_ahead_is_one_message_and_stays_in_its_block(storage, messages):
    with storage.read_latest("b") as book:
        number = book.book_id
    known, missing = (NAME, (number,)), (NAME, (-1,))
    messages.clear()
    with storage.read_ahead([known, missing, known]):
        assert storage.query_tables(*known) == [("b",)]
        with storage.read_latest("b") as book:
            assert book.query_prefetched(*missing) == []
            assert storage.query_tables(*known) is storage.query_tables(*known)
            assert messages == [2]
            assert storage.query_tables(NAME, (-2,)) == []  # was not read ahead
            book.read_ahead([known])
            assert messages == [2, 1, 1]  # only the state of the chain
            assert (book.chain_state().entries, book.now() is None) == (1, False)
            assert messages == [2, 1, 1]
        with ThreadPoolExecutor(1) as other:
            assert other.submit(storage.query_tables, *known).result() == [("b",)]
        assert messages == [2, 1, 1, 1]
    assert storage.query_tables(*known) == [("b",)]
    assert messages == [2, 1, 1, 1, 1]


def test_a_connection_lost_after_reading_ahead_fails_once(storage, kill):
    known = (NAME, (-1,))
    with storage.read_ahead([known]):
        kill()
        assert storage.query_tables(*known) == []
        with pytest.raises(StorageFailed):
            storage.query_tables(NAME, (-2,))
        assert storage.query_tables(NAME, (-2,)) == []  # on another connection


def test_the_connection_used_last_is_used_next(storage):
    query = "SELECT pg_backend_pid()"
    with storage.read_transaction("b") as first, storage.read_transaction("b") as second:
        processes = [view.query(query)[0][0] for view in (first, second)]
    assert processes[0] != processes[1]  # the second block ends first, then the first
    assert [storage.query_tables(query)[0][0] for _ in range(3)] == processes[:1] * 3


def test_prefetched_rows_are_those_under_the_lock(postgres, schema, storage, grow):
    statement = "SELECT name FROM main.book WHERE id = ?"
    assert seen(storage) == BEFORE
    with storage.write_transaction("b", lambda book: [(statement, (book,))]) as book:
        before = book.query_prefetched(statement, (book.book_id,))
        postgres.run(f"INSERT INTO {schema}.book (name) VALUES ('c')")
        assert book.query_prefetched(statement, (book.book_id,)) is before
        book.drop_prefetched()
        again = book.query_prefetched(statement, (book.book_id,))
        assert again is not before
        assert again == before == [("b",)]
        grow(book, b"secret")
    assert seen(storage)[0] == 2


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda book: book.add_dedupe_key(b"new", 1, defer=True), "belongs to an entry"),
        (lambda book: book.set_ladder_state(9, b"after", defer=True), "no ladder 9"),
    ],
)
def test_a_deferred_change_of_no_row_commits_nothing(storage, grow, act, message):
    with storage.write_transaction("b") as book:
        book.add_dedupe_key(b"new", 0)
    before = seen(storage)
    with pytest.raises(InvalidState, match=message):
        writing_only(storage, grow, act)
    assert seen(storage) == before


def writing_only(storage, grow, act):
    with storage.write_transaction("b") as book:
        grow(book, b"secret")
        act(book)


def test_text_with_nul_is_refused_and_ends_the_transaction(storage, grow):
    statement = "SELECT id FROM main.book WHERE name = ?"
    with pytest.raises(StorageFailed, match="NUL"):
        writing_only(storage, grow, lambda book: book.query(statement, ("b\0",)))
    assert seen(storage) == BEFORE


def test_a_commit_that_the_server_refuses_is_certain(postgres, schema, storage, grow):
    postgres.run(
        f"ALTER TABLE {schema}.mark ADD CONSTRAINT late UNIQUE (number) "
        "DEFERRABLE INITIALLY DEFERRED"
    )
    with pytest.raises(StorageFailed, match="unique") as caught:
        writing(storage, grow, lambda book: book._change("UPDATE main.mark SET number = 0", ()))
    assert not caught.value.uncertain
    assert seen(storage) == BEFORE


def test_an_error_that_is_swallowed_does_not_commit_the_rest(storage, grow):
    def swallow(book):
        with pytest.raises(StorageFailed, match="division by zero"):
            book.query("SELECT 1 / 0", ())

    with pytest.raises(StorageFailed, match="cannot go on") as caught:
        writing(storage, grow, swallow)
    assert not caught.value.uncertain
    assert seen(storage) == BEFORE


def test_books_are_written_to_side_by_side(storage, grow):
    with storage.add_book("c") as book:
        grow(book)
    done = []

    def other():
        with storage.write_transaction("c") as book:
            grow(book)
        done.append(True)

    with storage.write_transaction("b") as book:
        grow(book)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(60)
        assert done
        with pytest.raises(InvalidState, match="already"), storage.write_transaction("b"):
            pass


def test_waiting_for_others_has_an_end(storage, monkeypatch, grow):
    monkeypatch.setattr(_postgres, "_WRITE", _postgres._WRITE.replace("'30s'", "'50ms'"))
    errors = []

    def other():
        try:
            with storage.write_transaction("b"):
                pass
        except StorageFailed as error:
            errors.append((str(error), error.uncertain))

    with storage.write_transaction("b") as book:
        grow(book)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(errors) == 1
    assert "lock timeout" in errors[0][0]
    assert not errors[0][1]


def test_numbers_of_books_are_not_used_again(postgres, schema, storage):
    with pytest.raises(ValueError, match="stop"), storage.add_book("never"):
        raise ValueError("stop")
    with storage.add_book("c"):
        pass
    ids = postgres.run(f"SELECT id FROM {schema}.book ORDER BY id")
    assert len(ids) == 2
    assert ids[1][0] > ids[0][0] + 1  # the one that was undone stays used


def test_a_storage_travels_as_its_address(storage):
    copy = pickle.loads(pickle.dumps(storage))
    assert seen(copy) == BEFORE
    copy.close()


def test_without_the_driver_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(MissingDependency, match=r"ladderboard\[server\]"):
        PostgresStorage("postgresql://u@h/d")


def test_where_the_server_takes_no_more_connections_blocks_wait_for_each_other():
    server = PostgresServer(max_connections="8", superuser_reserved_connections="3")
    try:
        password = random_secret()
        server.run(f"CREATE ROLE plain LOGIN PASSWORD '{password}'")
        server.run("GRANT CREATE ON DATABASE postgres TO plain")
        url = server.url(password=password).replace("tester", "plain")
        storage = PostgresStorage(url, create=True)
        with storage.add_book("b") as book:
            book.set_value("x", b"y")
        together, failed = threading.Barrier(12), []

        def look():
            together.wait()
            try:
                for _ in range(20):
                    with storage.read_transaction("b") as book:
                        book.get_value("x")
            except StorageFailed as error:
                failed.append(error)

        threads = [threading.Thread(target=look) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed
        ((connections,),) = server.run(
            "SELECT count(*) FROM pg_stat_activity WHERE usename = 'plain'"
        )
        assert 1 < connections <= 5
        # Without a connection to wait for, the error comes at once.
        storage.close()
        others = []
        while len(others) < 5:
            with contextlib.suppress(psycopg.OperationalError):  # the last ones are being closed
                others.append(psycopg.connect(url))
        with pytest.raises(StorageFailed, match="Cannot connect"), storage.read_transaction("b"):
            pass
        for other in others:
            other.close()
        storage.close()
    finally:
        server.stop()
