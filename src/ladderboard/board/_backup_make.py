"""Making a backup while boards are in use, and letting old ones go."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ladderboard._version import __version__
from ladderboard.board._backup import (
    Backup,
    Kept,
    backups_in,
    digest_of,
    find_backup,
    number_of,
    strange_in,
    write_manifest,
)
from ladderboard.board._dump import dump_board
from ladderboard.errors import InvalidSetting, InvalidState, LadderboardError, StorageFailed

try:
    import fcntl
except ImportError:  # Windows: what a killed backup left stays there
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ladderboard.board._boards import Boards
    from ladderboard.ledger import PublicKey

__all__ = ["back_up", "check_place", "forget_old"]

_DRAFT = ".ladderboard-backup-"


def back_up(
    boards: Boards,
    folder: Path | str,
    *,
    passphrase: str | None = None,
    public_key: str | PublicKey | None = None,
    without: tuple[str, ...] = (),
    tell: Callable[[Kept], None] = lambda _: None,
) -> Backup:
    """Write all boards into a new folder inside ``folder``, named by the time; whole or not at all.

    The boards may be in use meanwhile. Each dump is of one moment, and boards that are made while
    others are written are not in it. ``tell`` is called with each board that is written.
    """
    folder = check_place(boards, folder, without)
    slugs = boards.list()
    now = boards.world.clock()
    with _draft(folder) as draft:
        kept = []
        for slug in slugs:
            if slug not in without:
                kept.append(_keep(boards, slug, draft, passphrase, public_key))
                tell(kept[-1])
        backup = Backup(draft, now, __version__, tuple(kept), without)
        write_manifest(backup)
        name = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        return backup._replace(path=_publish(draft, folder, name))


def check_place(boards: Boards, folder: Path | str, without: tuple[str, ...]) -> Path:
    """Return the whole path of a folder for backups; refuse what cannot be one, or be left out.

    It may be new where the folder around it is there.
    """
    folder = Path(os.path.abspath(folder))  # noqa: PTH100 - links are not followed
    if not folder.is_dir():
        if folder.exists() or folder.is_symlink():
            raise InvalidSetting(f"{folder} is no folder; name one for backups.")
        if not folder.parent.is_dir():
            raise InvalidSetting(f"There is no folder {folder.parent}; make it first.")
    near = folder if folder.is_dir() else folder.parent
    if not os.access(near, os.W_OK | os.X_OK):
        raise StorageFailed(f"The backup cannot be written to {folder}: {near} may not be written.")
    slugs = boards.list()
    for each in without:
        if each not in slugs:
            raise InvalidSetting(f"There is no board {each!r:.80} to leave out.")
    return folder


def _keep(
    boards: Boards, slug: str, draft: Path, words: str | None, key: str | PublicKey | None
) -> Kept:
    path = draft / f"{slug}.dump"
    try:
        head = dump_board(boards, slug, path, passphrase=words, public_key=key, of_backup=True)
        book = boards.open(slug).book.name
    except InvalidSetting:  # a key or a passphrase that is none
        raise
    except LadderboardError as error:
        raise StorageFailed(
            f"{slug} cannot be backed up: {error} Nothing was kept, and earlier backups are as "
            f"they were. If it is this board alone, --without {slug} backs up the others."
        ) from error
    size = path.stat().st_size
    return Kept(slug, book, path.name, size, digest_of(path), head.entries, head.hash.hex())


@contextmanager
def _draft(folder: Path) -> Iterator[Path]:
    """Give a folder to fill, which is gone at the end unless it got another name."""
    if folder.is_dir():
        _sweep(folder)
    draft = folder / f"{_DRAFT}{secrets.token_hex(8)}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        draft.mkdir(mode=0o700)
        lock = _lock(draft)
        try:
            yield draft
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            if lock is not None:
                os.close(lock)
    except OSError as error:
        raise StorageFailed(
            f"The backup cannot be written to {folder}: {error.strerror}. Earlier ones are as they "
            "were."
        ) from None


def _lock(draft: Path) -> int | None:
    """Lock a folder for as long as it is filled; None where somebody else does, or nobody can."""
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
    """Remove what a backup that was killed has left."""
    for draft in folder.glob(f"{_DRAFT}*"):
        with suppress(OSError):
            lock = _lock(draft)
            if lock is not None:
                shutil.rmtree(draft, ignore_errors=True)
                os.close(lock)


def _publish(draft: Path, folder: Path, name: str) -> Path:
    """Give the folder its name, which comes after all that begin with the same time."""
    _sync(draft)
    count = 1 + max((number_of(each.name, name) for each in folder.iterdir()), default=0)
    while True:
        made = folder / (name if count == 1 else f"{name}-{count}")
        try:
            draft.rename(made)  # which replaces an empty folder and nothing else
        except OSError:
            if not os.path.lexists(made):
                raise
            count += 1  # another one was quicker
        else:
            _sync(folder)
            return made


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def forget_old(made: Backup, keep: int) -> list[Path]:
    """Remove all backups beside one that was just made but the newest, so that ``keep`` are left.

    Return those that were removed. What is no backup of ours, or has something else in its folder,
    stays; so does the newest that holds a board which later ones lack.
    """
    if keep < 1:
        raise InvalidSetting(f"At least one backup must be kept; got {keep}.")
    folder = made.path.parent
    others = [each for each in backups_in(folder) if each != made.path]
    newer = max(len(others) - keep + 1, 0)
    safe = {kept.book for kept in made.boards}.union(*map(_books, others[newer:]))
    gone = []
    for each in reversed(others[:newer]):
        try:
            books = _books(each)
            if not books <= safe or strange_in(find_backup(each)):
                safe |= books
                continue
            # Under another name first: half of a backup is never taken for one.
            draft = folder / f"{_DRAFT}{secrets.token_hex(8)}"
            each.rename(draft)
            shutil.rmtree(draft)
        except InvalidState:
            continue
        except OSError as error:
            raise StorageFailed(f"{each} cannot be removed: {error.strerror}.") from None
        gone.append(each)
    return gone[::-1]


def _books(path: Path) -> set[str]:
    """Return which boards a backup holds; none where nobody can tell."""
    try:
        return {kept.book for kept in find_backup(path).boards}
    except InvalidState:
        return set()
