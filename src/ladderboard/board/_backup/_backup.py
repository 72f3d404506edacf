"""Backups: a folder with a dump of every board of a database, and a manifest."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard._atomic_file import absolute_path, atomic_write, sync_path
from ladderboard._version import __version__
from ladderboard.board._backup._dump import dump_board
from ladderboard.board._backup._restore import read_header, restore_board
from ladderboard.board._boards import Boards, is_shared, open_postgres_schema
from ladderboard.board._repository import books_by_slug as read_books_by_slug
from ladderboard.board._store import DatabaseStore, MixedStore
from ladderboard.errors import (
    BrokenDump,
    Conflict,
    InvalidSetting,
    InvalidState,
    LadderboardError,
    StorageFailed,
    WrongKey,
)
from ladderboard.ledger import Entry, SqliteStorage, read_secret_key

try:
    import fcntl
except ImportError:  # Windows: the remains of a killed backup are not removed
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ladderboard.board._store import SubmissionStore
    from ladderboard.ledger import PublicKey, ReadView, SecretKey, Storage

FORMAT = 1
MANIFEST = "manifest.json"
_FOLDER_NAME = re.compile(r"(\d{8}T\d{6}Z)(?:-(\d+))?")
_FILE_NAME = re.compile(r"[a-z0-9][a-z0-9-]*\.dump")
_DRAFT_PREFIX = ".ladderboard-backup-"


class BackedUpBoard(NamedTuple):
    """A board in a backup: its dump file, and the head of its ledger."""

    board: str
    book: str
    file: str
    bytes: int
    sha256: str
    entries: int
    head: str


class Backup(NamedTuple):
    """A backup as its manifest describes it; ``without`` lists boards left out on request."""

    path: Path
    time: int
    ladderboard: str
    boards: tuple[BackedUpBoard, ...]
    without: tuple[str, ...]


class BackupCheck(NamedTuple):
    """The check of one board: the questions in its ledger, and what is wrong, if anything."""

    board: str
    questions: int | None = None
    wrong: str | None = None


class BackupGap(NamedTuple):
    """What a database has that a backup lacks: entries and questions by board, and whole boards.

    ``diverged_boards`` lists boards whose ledger does not continue the one in the backup.
    """

    entries: dict[str, int]
    questions: dict[str, int]
    missing_boards: tuple[str, ...]
    diverged_boards: tuple[str, ...]


def back_up(
    boards: Boards,
    folder: Path | str,
    *,
    passphrase: str | None = None,
    public_key: str | PublicKey | None = None,
    without: tuple[str, ...] = (),
    on_board: Callable[[BackedUpBoard], None] = lambda _: None,
) -> Backup:
    """Write all boards into a new folder inside ``folder``, named by the time, or nothing.

    The boards may be in use. Each dump is consistent; boards created during the backup are not in
    it. ``on_board`` is called with each board that was written.
    """
    folder = check_backup_folder(boards, folder, without)
    slugs = boards.list()
    now = boards.environment.clock()
    with _draft(folder) as draft:
        dumped = []
        for slug in slugs:
            if slug not in without:
                dumped.append(_dump_into(boards, slug, draft, passphrase, public_key))
                on_board(dumped[-1])
        backup = Backup(draft, now, __version__, tuple(dumped), without)
        write_manifest(backup)
        name = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        return backup._replace(path=_publish(draft, folder, name))


def check_backup_folder(boards: Boards, folder: Path | str, without: tuple[str, ...]) -> Path:
    """Return the absolute path of a folder for backups; refuse a bad one, or unknown boards.

    The folder may be missing if its parent exists.
    """
    folder = absolute_path(folder)
    if not folder.is_dir():
        if folder.exists() or folder.is_symlink():
            raise InvalidSetting(f"{folder} is not a folder. Name a folder for backups.")
        if not folder.parent.is_dir():
            raise InvalidSetting(f"There is no folder {folder.parent}. Create it first.")
    near = folder if folder.is_dir() else folder.parent
    if not os.access(near, os.W_OK | os.X_OK):
        raise StorageFailed(f"The backup cannot be written to {folder}: {near} is not writable.")
    slugs = boards.list()
    for slug in without:
        if slug not in slugs:
            raise InvalidSetting(f"There is no board {slug!r:.80} to leave out.")
    return folder


def _dump_into(
    boards: Boards, slug: str, draft: Path, passphrase: str | None, key: str | PublicKey | None
) -> BackedUpBoard:
    path = draft / f"{slug}.dump"
    try:
        head = dump_board(boards, slug, path, passphrase=passphrase, public_key=key, of_backup=True)
        book = boards.open(slug).book.name
    except InvalidSetting:  # an invalid key or passphrase
        raise
    except LadderboardError as error:
        raise StorageFailed(
            f"{slug} cannot be backed up: {error} No backup was written; earlier ones are "
            f"unchanged. To back up the other boards, use --without {slug}."
        ) from error
    size = path.stat().st_size
    return BackedUpBoard(
        slug, book, path.name, size, file_sha256(path), head.entries, head.hash.hex()
    )


@contextmanager
def _draft(folder: Path) -> Iterator[Path]:
    """Give a temporary folder to fill; it is removed at the end unless it was renamed."""
    if folder.is_dir():
        _sweep(folder)
    draft = folder / f"{_DRAFT_PREFIX}{secrets.token_hex(8)}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        draft.mkdir(mode=0o700)
        lock = _try_lock(draft)
        try:
            yield draft
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            if lock is not None:
                os.close(lock)
    except OSError as error:
        raise StorageFailed(
            f"The backup cannot be written to {folder}: {error.strerror}. Earlier backups are "
            "unchanged."
        ) from None


def _try_lock(draft: Path) -> int | None:
    """Lock a folder while it is filled; return None if it is locked or locks do not exist."""
    if fcntl is None:
        return None
    handle = os.open(draft, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _sweep(folder: Path) -> None:
    """Remove the remains of killed backups."""
    for draft in folder.glob(f"{_DRAFT_PREFIX}*"):
        with suppress(OSError):
            lock = _try_lock(draft)
            if lock is not None:
                shutil.rmtree(draft, ignore_errors=True)
                os.close(lock)


def _publish(draft: Path, folder: Path, name: str) -> Path:
    """Rename the folder to its final name, with the next number of the same time."""
    sync_path(draft)
    count = 1 + max((backup_number(path.name, name) for path in folder.iterdir()), default=0)
    while True:
        target = folder / (name if count == 1 else f"{name}-{count}")
        try:
            draft.rename(target)  # replaces at most an empty folder
        except OSError:
            if not os.path.lexists(target):
                raise
            count += 1  # another backup took the name
        else:
            sync_path(folder)
            return target


def prune_backups(newest: Backup, keep: int) -> list[Path]:
    """Remove the oldest backups beside ``newest`` so that ``keep`` are left; return the removed.

    Other folders, and backups with additional files, stay. So does the newest backup of a board
    that later ones lack.
    """
    if keep < 1:
        raise InvalidSetting(f"At least one backup must be kept; got {keep}.")
    folder = newest.path.parent
    older_backups = [path for path in list_backups(folder) if path != newest.path]
    newer = max(len(older_backups) - keep + 1, 0)
    safe = {board.book for board in newest.boards}.union(*map(_books_in, older_backups[newer:]))
    deleted = []
    for old_backup in reversed(older_backups[:newer]):
        try:
            books = _books_in(old_backup)
            if not books <= safe or list_unexpected_files(find_backup(old_backup)):
                safe |= books
                continue
            # Renamed first, so that a partly removed backup is never used.
            draft = folder / f"{_DRAFT_PREFIX}{secrets.token_hex(8)}"
            old_backup.rename(draft)
            shutil.rmtree(draft)
        except InvalidState:
            continue
        except OSError as error:
            raise StorageFailed(f"{old_backup} cannot be removed: {error.strerror}.") from None
        deleted.append(old_backup)
    return deleted[::-1]


def _books_in(path: Path) -> set[str]:
    """Return the books in a backup; none if it cannot be read."""
    try:
        return {board.book for board in find_backup(path).boards}
    except InvalidState:
        return set()


def check_backup(
    backup: Backup,
    *,
    passphrase: str | None = None,
    secret_key: str | SecretKey | None = None,
    scratch: str | None = None,
    on_board: Callable[[BackupCheck], None] = lambda _: None,
) -> list[BackupCheck]:
    """Restore every board into a temporary database, and recompute every release.

    ``scratch`` is the address of a PostgreSQL database for a temporary schema; the default is a
    temporary file. Its secrets are encrypted with a key that is not stored.
    """
    checks = []
    if isinstance(secret_key, str):  # a file that holds no key says nothing about the backup
        secret_key = read_secret_key(secret_key)
    with _scratch_database(scratch) as boards:
        for board in backup.boards:
            checks.append(_check_dump(boards, backup, board, passphrase, secret_key))
            on_board(checks[-1])
    for name in list_unexpected_files(backup):
        checks.append(BackupCheck(name, wrong="is in the folder but not in the manifest."))
        on_board(checks[-1])
    return checks


def _check_dump(
    boards: Boards,
    backup: Backup,
    board: BackedUpBoard,
    passphrase: str | None,
    key: SecretKey | None,
) -> BackupCheck:
    damage = find_damage(backup, board)
    if damage is not None:
        return BackupCheck(board.board, wrong=damage)
    try:
        path = backup.path / board.file
        slug = restore_board(boards, path, passphrase=passphrase, secret_key=key)
    except WrongKey:  # the file itself is intact
        raise
    except LadderboardError as error:
        return BackupCheck(board.board, wrong=f"{board.file} cannot be restored: {error}")
    if slug != board.board or board.book not in boards.storage.books():
        return BackupCheck(board.board, wrong=f"{board.file} holds another board, {slug!r:.80}.")
    with boards.storage.read_transaction(board.book) as view:
        state = view.chain_state()
        if not _continues_backup(view, board):
            reason = "its ledger does not match the manifest."
            return BackupCheck(board.board, wrong=f"{board.file} is from another time: {reason}")
        return BackupCheck(board.board, state.asked)


def _continues_backup(view: ReadView, board: BackedUpBoard) -> bool:
    """Return whether a ledger continues the one in a backup."""
    if not 0 < board.entries <= view.chain_state().entries:
        return False
    encoded = next(iter(view.entries(board.entries - 1, board.entries)))
    return Entry(encoded).hash.hex() == board.head


@contextmanager
def _scratch_database(url: str | None) -> Iterator[Boards]:
    """Give a temporary database whose remains, if any, reveal no secrets."""
    if url is not None and not is_shared(url):
        raise InvalidSetting(
            "scratch must be postgresql+psycopg://...; leave it out to use a temporary file."
        )
    with tempfile.TemporaryDirectory(prefix="ladderboard-drill-") as folder, ExitStack() as stack:
        storage: Storage
        store: SubmissionStore
        if url is None:
            storage = SqliteStorage(Path(folder, "boards.db"), create=True)
            store = MixedStore(storage, Path(folder, "files"))
            stack.callback(storage.close)
        else:
            storage = schema = open_postgres_schema(
                url, f"ladderboard_drill_{secrets.token_hex(8)}"
            )
            store = DatabaseStore(storage)
            stack.callback(storage.close)
            stack.callback(schema.drop_schema)
        key = Path(folder, "key")
        boards = Boards(storage, store, key_file=key)
        key.unlink()
        yield boards


def compare_with_database(
    backup: Backup, storage: Storage, checked: list[BackupCheck]
) -> BackupGap:
    """Return what the database has that a checked backup lacks."""
    questions = {board.board: board.questions for board in checked if board.questions is not None}
    with storage.read_tables() as server:
        books_by_slug = read_books_by_slug(server)
    gap = BackupGap(
        {}, {}, tuple(sorted(set(books_by_slug) - {board.board for board in backup.boards})), ()
    )
    for board in backup.boards:
        if books_by_slug.get(board.board) != board.book:
            gap = gap._replace(diverged_boards=(*gap.diverged_boards, board.board))
            continue
        with storage.read_transaction(board.book) as view:
            state = view.chain_state()
            if not _continues_backup(view, board):
                gap = gap._replace(diverged_boards=(*gap.diverged_boards, board.board))
                continue
        gap.entries[board.board] = state.entries - board.entries
        if board.board in questions:
            gap.questions[board.board] = state.asked - questions[board.board]
    return gap


def restore_backup(
    boards: Boards,
    backup: Backup,
    *,
    passphrase: str | None = None,
    secret_key: str | SecretKey | None = None,
    on_board: Callable[[str, bool], None] = lambda _slug, _new: None,
) -> None:
    """Restore all boards of a backup into a database that has no others.

    Boards that exist already stay as they are, so an interrupted restore can be repeated.
    ``on_board`` is called with each board, and whether it was restored.
    """
    keys = {"passphrase": passphrase, "secret_key": secret_key}
    problems = (
        find_damage(backup, board) or _find_wrong_dump(backup, board, **keys)
        for board in backup.boards
    )
    damage = [problem for problem in problems if problem is not None]
    if damage:
        raise BrokenDump(f"The backup is damaged. Nothing was restored. {' '.join(damage)}")
    with boards.storage.read_tables() as view:
        books_by_slug = read_books_by_slug(view)
    other_boards = [
        slug
        for slug, book in books_by_slug.items()
        if book not in {board.book for board in backup.boards}
    ]
    if other_boards:
        raise Conflict(
            f"The database has boards that are not in the backup ({', '.join(other_boards)}). "
            "Restore into a new one, or one board at a time with ladderboard board restore."
        )
    for board in backup.boards:
        new = board.board not in books_by_slug
        if new:
            path = backup.path / board.file
            restore_board(boards, path, passphrase=passphrase, secret_key=secret_key)
        on_board(board.board, new)


def _find_wrong_dump(backup: Backup, board: BackedUpBoard, **keys: Any) -> str | None:
    """Return what is wrong with an intact dump that is not the one in the manifest."""
    header = read_header(backup.path / board.file, **keys)
    if (header.slug, header.book) != (board.board, board.book):
        return f"{board.file} holds another board, {header.slug!r:.80}."
    if (header.entries, header.head.hex()) != (board.entries, board.head):
        return f"{board.file} is from another time: its ledger does not match the manifest."
    return None


def write_manifest(backup: Backup) -> None:
    """Write the manifest into the backup's folder, readable by its owner only."""
    fields = {"format": FORMAT, **backup._asdict(), "without": list(backup.without)}
    fields["boards"] = [board._asdict() for board in backup.boards]
    del fields["path"]
    content = json.dumps(fields, indent=1) + "\n"
    atomic_write(backup.path / MANIFEST, content.encode("ascii"), replace=False)


def find_backup(folder: Path | str) -> Backup:
    """Return the backup in a folder, or the newest one inside the folder."""
    folder = absolute_path(folder)
    if not folder.is_dir():
        raise InvalidSetting(f"There is no folder {folder}.")
    if (folder / MANIFEST).is_file():
        return _read_manifest(folder)
    backups = list_backups(folder)
    if not backups:
        raise InvalidSetting(
            f"There is no backup in {folder}. Create one with: ladderboard backup create {folder}"
        )
    return _read_manifest(backups[-1])


def list_backups(folder: Path) -> list[Path]:
    """Return the folders of backups inside a folder, oldest first."""
    backups = []
    for path in folder.iterdir():
        name = _FOLDER_NAME.fullmatch(path.name)
        if name and (path / MANIFEST).is_file() and not path.is_symlink():
            backups.append((name[1], int(name[2] or 1), path))
    return [path for *_, path in sorted(backups)]


def backup_number(name: str, time: str) -> int:
    """Return a backup's number among those of the same time; 0 if the name does not match.

    >>> backup_number("20270115T080000Z-2", "20270115T080000Z")
    2
    """
    match = _FOLDER_NAME.fullmatch(name)
    return int(match[2] or 1) if match and match[1] == time else 0


def _read_manifest(path: Path) -> Backup:
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
        number = manifest.pop("format")
        if type(number) is not int or number < 1:
            raise ValueError
        if number > FORMAT:
            raise InvalidState(
                f"{path} was written by a newer Ladderboard "
                f"({manifest.get('ladderboard')!r:.40}), in format {number} of backups; this one "
                f"reads {FORMAT}. Install a newer one."
            )
        boards = tuple(_parse_board(board) for board in manifest.pop("boards"))
        without = tuple(str(slug) for slug in manifest.pop("without"))
        if len({board.board for board in boards}) < len(boards):
            raise ValueError
        return Backup(
            path, int(manifest.pop("time")), str(manifest["ladderboard"]), boards, without
        )
    except OSError as error:
        raise InvalidState(f"{path / MANIFEST} cannot be read: {error.strerror}.") from None
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        if isinstance(error, InvalidState):
            raise
        raise InvalidState(f"{path / MANIFEST} is damaged. Use another backup.") from None


def _parse_board(fields: dict[str, Any]) -> BackedUpBoard:
    board = BackedUpBoard(**fields)
    if tuple(map(type, board)) != (str, str, str, int, str, int, str):
        raise TypeError
    if not _FILE_NAME.fullmatch(board.file):  # cannot lead outside the folder
        raise ValueError
    return board


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find_damage(backup: Backup, board: BackedUpBoard) -> str | None:
    """Return how a dump differs from its manifest; None if it is intact."""
    path = backup.path / board.file
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # reading a pipe might never end
            return f"{board.file} is not a file."
        size = status.st_size
        if size < board.bytes:
            return f"{board.file} is cut off: {size:,} of {board.bytes:,} bytes are left."
        if size > board.bytes or file_sha256(path) != board.sha256:
            return f"{board.file} was changed or replaced."
    except FileNotFoundError:
        return f"{board.file} is missing."
    except OSError as error:
        return f"{board.file} cannot be read: {error.strerror}."
    return None


def list_unexpected_files(backup: Backup) -> list[str]:
    """Return the names of files in a backup's folder that do not belong to it."""
    expected = {MANIFEST, *(board.file for board in backup.boards)}
    return sorted(path.name for path in backup.path.iterdir() if path.name not in expected)
