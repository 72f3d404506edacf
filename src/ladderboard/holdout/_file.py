"""A guard's file: opening it, its key file, and putting a copy back in its place."""

from __future__ import annotations

import os
import secrets
import sqlite3
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ladderboard.errors import InvalidSetting, InvalidState, StaleCopy, storage_error
from ladderboard.holdout._sample import (
    check_same_sample,
    decode_sample,
    describe_sample,
    encode_sample,
    sample_digest,
)
from ladderboard.holdout._scorer import Scorer
from ladderboard.ledger import (
    KEY_BYTES,
    Book,
    Cipher,
    HighWaterMark,
    LedgerEnvironment,
    Opening,
    SqliteStorage,
    adopt_copy,
    connect_sqlite,
    translate_sqlite_error,
)
from ladderboard.losses import loss as loss_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ladderboard.files import HoldoutTable, Limits
    from ladderboard.losses import Loss
    from ladderboard.mechanisms import Mechanism

_BESIDE = ("-wal", "-shm", "-journal")
_FLAGGED = "SELECT count(*) FROM kept WHERE name = 'copy' AND length(value) > 0"
SAMPLE = "sample"
"""The name under which the labelled sample is kept."""
_HINT = (
    "Who moved the file must move {0}.mark along. If this is an old copy to go on with, say how "
    "many questions may have been answered since it was made: ladderboard guard restore {0} "
    "--charge N"
)


def make_key_file(path: Path | str) -> bytes:
    """Return the key in a file, which is made if it is not there."""
    path = Path(path)
    key = secrets.token_bytes(KEY_BYTES)
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return read_key_file(path)
    except OSError as error:
        raise storage_error(error, f"The key file {path} cannot be made") from None
    try:
        with os.fdopen(file, "w", encoding="ascii") as opened:
            opened.write(key.hex() + "\n")
            opened.flush()
            os.fsync(opened.fileno())
    except OSError as error:
        with suppress(OSError):
            path.unlink()  # half a key opens nothing, and would be refused next time
        raise storage_error(error, f"The key file {path} cannot be made") from None
    return key


def read_key_file(path: Path | str) -> bytes:
    """Return the key in a file, or refuse. What the file holds is never shown."""
    try:
        with Path(path).open("rb") as file:
            key = bytes.fromhex(file.read(4 * KEY_BYTES).decode("ascii").strip())
    except OSError as error:
        raise InvalidSetting(f"The key file {path} cannot be read: {error.strerror}.") from None
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise InvalidSetting(f"{path} is not a key file: it must hold {2 * KEY_BYTES} hex digits.")
    return key


def refuse_foreign_wal(path: Path) -> None:
    """Refuse a copy beside which another file's log lies: SQLite would write that log into it.

    A copy that was never opened has no log. Where there is one, the file is looked at without it.
    """
    left = [f"{path}{end}" for end in ("-wal", "-journal") if _size(f"{path}{end}")]
    if not left:
        return
    uri = f"file:{quote(os.fsencode(path))}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as database:
            flagged = database.execute(_FLAGGED).fetchone()[0]
    except sqlite3.Error:
        return  # no copy of ours by itself; opening it will say what is wrong
    if flagged:
        raise InvalidState(
            f"{path} is a copy, and {' and '.join(left)} beside it is another file's, or of a "
            f"restore that was cut short; SQLite would mix them. Move it and {path}-shm away "
            "first, and restore again. Nothing was changed."
        )


@contextmanager
def replace_with_copy(path: Path, copy: Path) -> Iterator[None]:
    """Put a copy in the place of a file, which is kept as ``FILE.replaced-N``.

    Files are moved, never opened but by SQLite; whoever still has the old one open is refused its
    next question. If the block fails, all is as it was.
    """
    if copy == path:
        raise InvalidSetting("The copy is the file itself; leave --from out.")
    refuse_foreign_wal(copy)
    draft = path.with_name(f"{path.name}.restoring-{secrets.token_hex(4)}")
    with closing(SqliteStorage(copy)) as storage:
        storage.backup(draft)
    old = _unused(path)
    put = False
    try:
        _move(path, old)
        draft.rename(path)
        put = True
        yield
    except BaseException:
        draft.unlink(missing_ok=True)
        if put:
            for end in ("", *_BESIDE):
                Path(f"{path}{end}").unlink(missing_ok=True)
        _move(old, path)
        raise


def _move(path: Path, to: Path) -> None:
    for end in ("", *_BESIDE):
        if os.path.lexists(f"{path}{end}"):
            Path(f"{path}{end}").rename(f"{to}{end}")


def _unused(path: Path) -> Path:
    count = 1
    while os.path.lexists(f"{path}.replaced-{count}"):
        count += 1
    return path.with_name(f"{path.name}.replaced-{count}")


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


@dataclass(frozen=True)
class GuardFile:
    """Where a guard's file is, and everything else that opens it, here or in another process.

    Parameters
    ----------
    path, key_file
        The file, and the key file if its secret side is encrypted.
    loss, mechanism
        The owner's own, where the file cannot name them.
    environment
        Clock and salts, for tests.
    limits
        How large predictions may be; as for all files if None.
    """

    path: Path
    key_file: Path | None = None
    loss: Loss | None = None
    mechanism: Mechanism | None = None
    environment: LedgerEnvironment | None = None
    limits: Limits | None = None

    @classmethod
    def at(cls, path: Path | str, key_file: Path | str | None, **more: Any) -> GuardFile:
        """Return it with paths that mean the same wherever a process stands."""
        key_path = None if key_file is None else Path(key_file).absolute()
        return cls(Path(path).absolute(), key_path, **more)

    def elsewhere(self) -> GuardFile:
        """Return it for another process, which has its own clock and salts."""
        return replace(self, environment=None)

    def make(
        self,
        table: HoldoutTable,
        scorer: Scorer,
        mechanism: Mechanism,
        rules: dict[str, Any],
        key: bytes | None,
    ) -> Book:
        """Make the file, whole or not at all."""
        if self.path.exists():  # said before a key file is made for nothing
            raise InvalidState(f"{self.path} is there already; open it, or choose another name.")
        opening = Opening(
            n=scorer.grouping.n,
            loss=scorer.loss.describe(),
            mechanism=mechanism.describe(),
            rules=rules,
            holdout=sample_digest(describe_sample(table)),
        )
        environment = LedgerEnvironment() if self.environment is None else self.environment
        name = environment.salt()[:16].hex()
        seal = None if self.key_file is None else Cipher(make_key_file(self.key_file), name)
        storage, water = SqliteStorage(self.path, create=True), HighWaterMark(self.path)
        try:
            return Book.create(
                storage,
                opening,
                name=name,
                mechanism=mechanism,
                key=key,
                keep={SAMPLE: encode_sample(table)},
                encryption=seal,
                high_water=water,
                environment=environment,
            )
        except BaseException:  # half a guard is none
            storage.close()
            for each in (self.path, f"{self.path}-wal", f"{self.path}-shm", water.path):
                Path(each).unlink(missing_ok=True)
            raise

    def open(self, given: Callable[..., HoldoutTable] | None = None) -> tuple[Book, Scorer]:
        """Open the file; a holdout that is given must be the one in it."""
        try:
            return self._open(given)
        except StaleCopy as old:
            raise StaleCopy(f"{old} {_HINT.format(self.path)}", missing=old.missing) from None

    def _open(
        self, given: Callable[..., HoldoutTable] | None = None, *, stale: bool = False
    ) -> tuple[Book, Scorer]:
        storage = SqliteStorage(self.path)
        name = self._only_book(storage)
        seal = None if self.key_file is None else Cipher(read_key_file(self.key_file), name)
        book = Book(
            storage,
            name,
            mechanism=self.mechanism,
            encryption=seal,
            high_water=HighWaterMark(self.path),
            environment=self.environment,
            stale=stale,
        )
        if book.max_ladders is None:
            # An older version took any number, and calibrated for one: no more are started.
            book.max_ladders = max(1, len(book.ladders_in_use()))
        table = decode_sample(book.read_encrypted(SAMPLE))
        loss = loss_of(book.opening["loss"] if self.loss is None else self.loss)
        if loss.describe() != book.opening["loss"]:
            loss = loss.with_inferred_classes(table.labels)
        if loss.describe() != book.opening["loss"]:
            raise InvalidSetting("This was started with another loss.")
        if given is not None:
            check_same_sample(table, given(labelled=loss.uses_labels))
        scorer = Scorer(table, loss)
        return book, scorer if self.limits is None else scorer.with_limits(self.limits)

    def _only_book(self, storage: SqliteStorage) -> str:
        books = storage.books()
        if not books:
            raise InvalidState(f"{self.path} was never finished; delete it, and create it again.")
        if len(books) > 1:
            raise InvalidState(f"{self.path} holds {len(books)} books; a guard's file holds one.")
        return books[0]

    def restore(self, charge: int, copy: Path | None = None) -> tuple[Book, Scorer]:
        """Go on with an old copy, here already or put here now.

        What cannot be opened, or is damaged, is not charged either.
        """
        if copy is not None:
            with replace_with_copy(self.path, copy):
                return self.restore(charge)
        refuse_foreign_wal(self.path)
        book, _ = self._open(stale=True)
        self._refuse_damaged()
        adopt_copy(
            book.storage,
            book.name,
            charge,
            high_water=HighWaterMark(self.path),
            environment=self.environment,
        )
        self._empty_log()
        return self.open()

    def _refuse_damaged(self) -> None:
        """Look at every page: what is only found by the next question would be charged by then."""
        try:
            with closing(connect_sqlite(self.path)) as database:
                found = database.execute("PRAGMA integrity_check(1)").fetchone()[0]
        except sqlite3.Error as error:
            raise translate_sqlite_error(error, self.path) from None
        if found != "ok":
            raise InvalidState(f"{self.path} is damaged; nothing was charged. Take another copy.")

    def _empty_log(self) -> None:
        """Let the file itself, without its log, say that it is no copy any more."""
        with suppress(sqlite3.Error), closing(connect_sqlite(self.path)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
