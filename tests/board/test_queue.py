"""The write queue: waiting submissions share a transaction."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ladderboard.board import PUBLIC, Boards, FolderStore, IncomingSubmission, SubmissionRequest
from ladderboard.board._repository import list_submissions, read_team, update_board
from ladderboard.errors import LadderboardError, NotAllowed, NotOpen, StorageFailed
from ladderboard.ledger import SqliteStorage


@pytest.fixture
def board(tmp_path, make_folder):
    storage = SqliteStorage(tmp_path / "boards.db", create=True)
    boards = Boards(storage, FolderStore(tmp_path / "files"))
    yield boards.create(make_folder(questions="1000"))
    boards.close()


class CountingTransactions:
    """Counts the transactions of a book and makes some commits fail."""

    def __init__(self, book, fail=()):
        self.count, self._transaction, self._fail = 0, book.transaction, set(fail)
        book.transaction = self

    def __call__(self, prefetch):
        self.count += 1
        if self.count in self._fail:
            return _Uncertain(self._transaction(prefetch))
        return self._transaction(prefetch)


class _Uncertain:
    """A transaction that commits and then reports an uncertain outcome."""

    def __init__(self, transaction):
        self._transaction = transaction

    def __enter__(self):
        return self._transaction.__enter__()

    def __exit__(self, *exc_info):
        self._transaction.__exit__(*exc_info)
        raise StorageFailed("The line went dead.", uncertain=True)


def run_concurrently(queue, jobs):
    """Run jobs in threads that all wait while the first one holds the transaction."""
    started = threading.Barrier(len(jobs) + 1)

    def run(work):
        started.wait()
        return queue.run(work)

    with ThreadPoolExecutor(len(jobs)) as pool:
        with queue._leader_lock:
            futures = {name: pool.submit(run, work) for name, work in jobs.items()}
            started.wait()
            while len(queue._waiting) < len(jobs):
                pass
        return {name: future.exception() or future.result() for name, future in futures.items()}


def append_entry_job(kind):
    return lambda transaction: transaction.append_entry(kind, {}).entries


def test_waiting_submissions_share_one_commit(board):
    turns = CountingTransactions(board.book)
    results = run_concurrently(
        board.queue, {index: append_entry_job("paused") for index in range(20)}
    )
    assert turns.count == 1
    assert sorted(results.values()) == list(range(3, 23))


def test_a_refused_submission_does_not_disturb_the_others(board):
    def refused(transaction):
        raise NotOpen("no")

    turns = CountingTransactions(board.book)
    jobs = {0: append_entry_job("paused"), 1: refused, 2: append_entry_job("paused")}
    results = run_concurrently(board.queue, jobs)
    assert isinstance(results.pop(1), NotOpen)
    assert sorted(results.values()) == [3, 4]
    assert turns.count == 1


@pytest.mark.parametrize("error", [NotOpen("late"), RuntimeError("bug")])
def test_a_submission_that_fails_after_writing_leaves_nothing(board, error):
    def broken(transaction):
        transaction.append_entry("moved", {})
        raise error

    results = run_concurrently(
        board.queue, {0: append_entry_job("paused"), 1: broken, 2: append_entry_job("paused")}
    )
    assert results.pop(1) is error
    assert sorted(results.values()) == [3, 4]
    kinds = [fields["kind"] for _, fields in board.book.entries()]
    assert kinds == ["opened", "ladder", "paused", "paused"]


def test_a_commit_with_an_unknown_outcome_is_looked_up(board, submit, predict, join, tmp_path):
    boards = Boards(board.book.storage, board.store)
    caller, _ = join(boards, board, "Ada")
    CountingTransactions(board.book, fail={1})
    answer = submit(board, caller, predict(30))
    assert answer.release.value == 0.1
    assert board.book.chain_state().asked == 1
    assert board.book.check() == 1
    row = board.as_seen_by(PUBLIC).leaderboard()["rows"][0]
    assert (row["released"], row["submissions"]) == (0.1, 1)
    assert board.read_stored_file(stored_location(board)) == board.scorer().read(predict(30)).packed


def stored_location(board):
    with board.reading() as view:
        return view.query("SELECT place FROM main.submission")[0][0]


def test_a_broken_storage_raises_and_a_retry_works(board, submit, predict, join):
    boards = Boards(board.book.storage, board.store)
    caller, _ = join(boards, board, "Ada")
    CountingTransactions(board.book, fail={1, 2})
    with pytest.raises(LadderboardError, match="line went dead"):
        submit(board, caller, predict(30))
    retried = submit(board, caller, predict(30))
    assert retried.again
    assert board.book.chain_state().asked == 1
    assert board.read_stored_file(stored_location(board)) == board.scorer().read(predict(30)).packed


def test_files_without_a_row_are_swept_after_a_crash(board, submit, predict, join, tmp_path):
    boards = Boards(board.book.storage, board.store)
    caller, _ = join(boards, board, "Ada")
    submit(board, caller, predict(30))
    orphan = board.store.prepare("00c0ffee" * 4, b"never asked").location
    assert boards.remove_orphaned_files() == 0  # its row may be on the way
    for path in (tmp_path / "files").rglob("*"):
        os.utime(path, (0, 0))
    assert boards.remove_orphaned_files() == 1
    with pytest.raises(LadderboardError):
        board.read_stored_file(orphan)
    assert board.read_stored_file(stored_location(board)) == board.scorer().read(predict(30)).packed


def test_jobs_of_a_transaction_see_changes_of_others(boards, make_folder, submit, predict, join):
    board = boards.create(make_folder(questions="1000"))
    ada, bob = (join(boards, board, name)[0] for name in ("Ada", "Bob"))
    submit(board, ada, predict(90))

    def enlarge(transaction):
        row = board.read_row(transaction.view)
        update_board(transaction.view, stored=row.stored + 1000)

    jobs = [
        lambda: submit(board, ada, predict(80)),
        lambda: submit(board, bob, predict(70)),
        lambda: board.queue.run(enlarge),
        lambda: submit(board, ada, predict(60)),
        lambda: submit(board, bob, predict(50)),
    ]
    turns = CountingTransactions(board.book)
    with ThreadPoolExecutor(len(jobs)) as pool:
        with board.queue._leader_lock:
            futures = []
            for job in jobs:
                futures.append(pool.submit(job))
                while len(board.queue._waiting) < len(futures):
                    pass
        results = [future.result() for future in futures]
    assert turns.count == 1
    del results[2]
    assert [answer.number for answer in results] == [2, 1, 3, 2]
    sizes = [row.size for team in (1, 2) for row in stored_rows(board, team)]
    assert len(sizes) == 5
    row = board.row()
    assert (row.stored, row.best) == (sum(sizes) + 1000, round(50 / 300, 2))
    assert board.book.check() == 5


def stored_rows(board, team):
    with board.reading() as view:
        return list_submissions(view, team, before=None, limit=10)


def test_more_jobs_than_a_transaction_takes_are_all_done(board):
    turns = CountingTransactions(board.book)
    assert board.queue.run_all([]) == []
    jobs = board.queue.run_all([(append_entry_job("paused"), None)] * 150)
    assert [job.get_result() for job in jobs] == list(range(3, 153))
    assert turns.count == 3
    assert board.queue.run(append_entry_job("paused")) == 153


def test_submissions_that_are_answered_together_share_a_commit(boards, make_folder, predict, join):
    board = boards.create(make_folder(questions="1000"))
    ada, bob, eve = (join(boards, board, name)[0] for name in ("Ada", "Bob", "Eve"))
    scorer, now = board.scorer(), board.book.environment.clock()

    def sent(caller, errors, **options):
        return SubmissionRequest(
            caller, IncomingSubmission(scorer.read(predict(errors)), now, **options)
        )

    def send_all():
        return board.submissions.submit_all(
            [
                sent(eve, 60),
                sent(ada, 90),
                sent(ada, 90),
                sent(bob, 80, message="x" * 501),
                sent(bob, 75),
                sent(PUBLIC, 45),
            ],
            lambda: committed_then.append(len(stored_rows(board, ada.team))),
        )

    committed_then = []
    turns = CountingTransactions(board.book)
    *answers, stranger = send_all()
    eves, adas, repeated, refused, bobs = answers
    assert turns.count == 1
    assert committed_then == [0]
    assert [answer.team for answer in (eves, adas, bobs)] == [
        team_id(board, caller) for caller in (eve, ada, bob)
    ]
    # In the order in which they came: neither that of teams nor that of values.
    assert [answer.release.value for answer in (eves, adas, bobs)] == [0.2, 0.3, 0.25]
    assert eves.entry < adas.entry < bobs.entry
    assert (repeated.id, repeated.again) == (adas.id, True)
    assert "at most 500 characters" in str(refused)
    assert isinstance(stranger, NotAllowed)
    assert board.book.check() == 3
    again = send_all()
    assert turns.count == 1
    assert committed_then == [0]
    assert [answer.id for answer in again[:3]] == [eves.id, adas.id, adas.id]
    assert again[4].id == bobs.id
    assert board.book.check() == 3


def team_id(board, caller):
    with board.reading() as view:
        return read_team(view, caller.team).id
