"""The drill: a backup restored where nobody asks, and recomputed; and the day it is needed."""

from __future__ import annotations

import secrets
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.board._backup import strange_in, wrong_with
from ladderboard.board._boards import Boards
from ladderboard.board._database import is_shared, open_schema
from ladderboard.board._restore import read_header, restore_board
from ladderboard.board._store_database import DatabaseStore
from ladderboard.board._store_mixed import MixedStore
from ladderboard.board._tables import SERVER
from ladderboard.errors import BrokenDump, InvalidSetting, LadderboardError, Taken, WrongKey
from ladderboard.ledger import Entry, SqliteStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ladderboard.board._backup import Backup, Kept
    from ladderboard.board._store import Store
    from ladderboard.ledger import Reading, SecretKey, SqlStorage

__all__ = ["Checked", "Since", "check_backup", "restore_backup", "since"]

_SLUGS = "SELECT main.board.slug, main.book.name FROM main.board JOIN main.book ON book = id"


class Checked(NamedTuple):
    """What came of a board: how many questions its ledger counts, and what is wrong if anything."""

    board: str
    questions: int | None = None
    wrong: str | None = None


class Since(NamedTuple):
    """What a database has that a backup lacks: by board, entries and questions; and whole boards.

    A board whose ledger is not the continuation of the backup's is among the ``strange``.
    """

    entries: dict[str, int]
    questions: dict[str, int]
    lacking: tuple[str, ...]
    strange: tuple[str, ...]


def check_backup(
    backup: Backup,
    *,
    passphrase: str | None = None,
    secret_key: str | SecretKey | None = None,
    scratch: str | None = None,
    tell: Callable[[Checked], None] = lambda _: None,
) -> list[Checked]:
    """Restore every board into a database that goes afterwards, and recompute every release.

    ``scratch`` is the address of a PostgreSQL database, in which a schema is made for it; a file
    among the temporary ones if left out. What is secret in it is encrypted with a key that is not
    kept.
    """
    found = []
    with _scratch(scratch) as boards:
        for kept in backup.boards:
            found.append(_try(boards, backup, kept, passphrase, secret_key))
            tell(found[-1])
    for name in strange_in(backup):
        found.append(Checked(name, wrong="is in the folder, and the manifest does not name it."))
        tell(found[-1])
    return found


def _try(
    boards: Boards, backup: Backup, kept: Kept, words: str | None, key: str | SecretKey | None
) -> Checked:
    wrong = wrong_with(backup, kept)
    if wrong is not None:
        return Checked(kept.board, wrong=wrong)
    try:
        path = backup.path / kept.file
        slug = restore_board(boards, path, passphrase=words, secret_key=key)
    except WrongKey:  # the file is as it was written
        raise
    except LadderboardError as error:
        return Checked(kept.board, wrong=f"{kept.file} cannot be restored: {error}")
    if slug != kept.board or kept.book not in boards.storage.books():
        return Checked(kept.board, wrong=f"{kept.file} holds another board, {slug!r:.80}.")
    with boards.storage.reading(kept.book) as view:
        at = view.at()
        if not _continues(view, kept):
            told = "its ledger ends elsewhere than the manifest says."
            return Checked(kept.board, wrong=f"{kept.file} is of another time: {told}")
        return Checked(kept.board, at.asked + at.charged)


def _continues(view: Reading, kept: Kept) -> bool:
    """Tell whether a ledger goes on from where a backup's ends."""
    if not 0 < kept.entries <= view.at().entries:
        return False
    form = next(iter(view.entries(kept.entries - 1, kept.entries)))
    return Entry(form).hash.hex() == kept.head


@contextmanager
def _scratch(url: str | None) -> Iterator[Boards]:
    """Give a database that goes at the end; whoever finds what is left of it finds no secrets."""
    if url is not None and not is_shared(url):
        raise InvalidSetting(
            "scratch must be postgresql+psycopg://...; left out, it is a file among the temporary "
            "ones."
        )
    with tempfile.TemporaryDirectory(prefix="ladderboard-drill-") as folder, ExitStack() as stack:
        storage: SqlStorage
        store: Store
        if url is None:
            storage = SqliteStorage(Path(folder, "boards.db"), create=True)
            store = MixedStore(storage, Path(folder, "files"))
            stack.callback(storage.close)
        else:
            storage = made = open_schema(url, f"ladderboard_drill_{secrets.token_hex(8)}")
            store = DatabaseStore(storage)
            stack.callback(storage.close)
            stack.callback(made.remove)
        key = Path(folder, "key")
        boards = Boards(storage, store, key_file=key)
        key.unlink()
        yield boards


def since(backup: Backup, storage: SqlStorage, checked: list[Checked]) -> Since:
    """Compare a backup that was checked with the database that it may have to stand in for."""
    questions = {each.board: each.questions for each in checked if each.questions is not None}
    with storage.reading(SERVER) as server:
        there: dict[str, str] = dict(server.run(_SLUGS))
    found = Since({}, {}, tuple(sorted(set(there) - {each.board for each in backup.boards})), ())
    for kept in backup.boards:
        if there.get(kept.board) != kept.book:
            found = found._replace(strange=(*found.strange, kept.board))
            continue
        with storage.reading(kept.book) as view:
            at = view.at()
            if not _continues(view, kept):
                found = found._replace(strange=(*found.strange, kept.board))
                continue
        found.entries[kept.board] = at.entries - kept.entries
        if kept.board in questions:
            found.questions[kept.board] = at.asked + at.charged - questions[kept.board]
    return found


def restore_backup(
    boards: Boards,
    backup: Backup,
    *,
    passphrase: str | None = None,
    secret_key: str | SecretKey | None = None,
    tell: Callable[[str, bool], None] = lambda _slug, _new: None,
) -> None:
    """Put all boards of a backup into a database that has no others.

    A board that is there already stays as it is, so that what was interrupted can be done again.
    ``tell`` is called with each board, and whether it is new.
    """
    keys = {"passphrase": passphrase, "secret_key": secret_key}
    told = (wrong_with(backup, kept) or _exchanged(backup, kept, **keys) for kept in backup.boards)
    wrong = [said for said in told if said is not None]
    if wrong:
        raise BrokenDump(f"The backup is not whole, and nothing was restored. {' '.join(wrong)}")
    with boards.storage.reading(SERVER) as view:
        there: dict[str, str] = dict(view.run(_SLUGS))
    others = [
        slug for slug, book in there.items() if book not in {kept.book for kept in backup.boards}
    ]
    if others:
        raise Taken(
            f"The database holds other boards than the backup ({', '.join(others)}); restore into "
            "a new one, or one board at a time with ladderboard board restore."
        )
    for kept in backup.boards:
        new = kept.board not in there
        if new:
            path = backup.path / kept.file
            restore_board(boards, path, passphrase=passphrase, secret_key=secret_key)
        tell(kept.board, new)


def _exchanged(backup: Backup, kept: Kept, **keys: Any) -> str | None:
    """Return what is wrong with a whole dump that is not the one the manifest was written for."""
    held = read_header(backup.path / kept.file, **keys)
    if (held.slug, held.book) != (kept.board, kept.book):
        return f"{kept.file} holds another board, {held.slug!r:.80}."
    if (held.entries, held.head.hex()) != (kept.entries, kept.head):
        return f"{kept.file} is of another time: its ledger ends elsewhere than the manifest says."
    return None
