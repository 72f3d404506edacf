"""What a storage promises to several threads at once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ladderboard.testing._promise import promise

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.ledger import Storage, Writing

__all__ = ["check_isolation", "check_writers"]

_THREADS = 4
_TURNS = 15
_PATIENCE = 120.0  # seconds after which a thread counts as stuck


def check_isolation(
    make: Callable[[], Storage], name: str, grow: Callable[[Writing], bytes]
) -> None:
    """Check that a reader sees one moment, and keeps nobody from writing."""
    storage, errors = make(), list[BaseException]()

    def write() -> None:
        with storage.writing(name) as book:
            grow(book)
            book.set_state(0, b"%d" % book.at().entries)
            book.keep("entries", b"%d" % book.at().entries)

    write()
    with storage.reading(name) as view:
        _run([write], errors)
        before = (view.at().entries, len(list(view.entries())), view.state(0), view.kept("entries"))
        promise(before == (2, 2, b"2", b"2"), "A view must stay as it was when its block began.")
        with storage.reading(name) as second:
            after = (second.at().entries, second.state(0), second.kept("entries"))
            promise(after == (3, b"3", b"3"), "A block that begins later must see what came since.")
    with storage.writing(name) as book:
        grow(book)
        with storage.reading(name) as view:
            promise(view.at().entries == 3, "What is not committed must be seen by nobody else.")
    storage.close()
    _raise(errors)


def check_writers(make: Callable[[], Storage], name: str, grow: Callable[[Writing], bytes]) -> None:
    """Check that writers take turns, in one storage and in several of the same database."""
    shared, errors = make(), list[BaseException]()
    own = [make() for _ in range(_THREADS // 2)]

    def write(storage: Storage) -> None:
        for _ in range(_TURNS):
            with storage.writing(name) as book:
                state = int(book.state(0) or b"")
                grow(book)
                book.mark(b"%d" % state, book.at().entries - 1)
                book.set_state(0, b"%d" % (state + 1))

    def read() -> None:
        for _ in range(_TURNS):
            with shared.reading(name) as view:
                told = (view.at().entries - 1, int(view.state(0) or b""))
                counted = len(list(view.entries())) - 1
            promise(told == (counted, counted), "A reader must never see half of a block.")

    writers = [*own, *[shared] * (_THREADS - len(own))]
    _run([*(lambda storage=storage: write(storage) for storage in writers), read], errors)
    _raise(errors)
    total = _THREADS * _TURNS
    with shared.reading(name) as view:
        promise(view.state(0) == b"%d" % total, "No update may be lost among those who write.")
        promise(view.at().entries == total + 1, "Every block must leave its entry.")
        found = [view.find(b"%d" % state) for state in range(total)]
        promise(found == list(range(1, total + 1)), "Writers must take turns.")
    for storage in (shared, *own):
        storage.close()


def _run(tasks: list[Callable[[], None]], errors: list[BaseException]) -> None:
    def guarded(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:  # noqa: BLE001 - told by the thread that checks
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(task,), daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_PATIENCE)
        promise(not thread.is_alive(), "Readers and writers must not keep each other waiting.")


def _raise(errors: list[BaseException]) -> None:
    for error in errors:
        sentence = f"Threads must not disturb each other: {type(error).__name__}: {error}"
        raise AssertionError(sentence) from error
