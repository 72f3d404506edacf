"""A guard's file: creating and opening it, its key file, and restoring it from a copy."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ladderboard._atomic_file import SQLITE_SUFFIXES, absolute_path, atomic_write
from ladderboard.errors import InvalidSetting, InvalidState, StaleCopy, storage_error
from ladderboard.files import DeclaredColumns
from ladderboard.holdout._sample import (
    check_same_sample,
    decode_sample,
    describe_sample,
    encode_sample,
    sample_digest,
)
from ladderboard.holdout._scorer import Scorer
from ladderboard.ledger import (
    GATE_STATE,
    KEY_BYTES,
    Book,
    Cipher,
    GateState,
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

_IS_COPY_QUERY = "SELECT count(*) FROM kept WHERE name = 'copy' AND length(value) > 0"
SAMPLE = "sample"
"""The name under which the labelled sample is stored."""
_STALE_HINT = (
    "If you moved the file, move {0}.mark too. To continue with an old copy, state how many "
    "questions may have been answered since it was made: ladderboard guard restore {0} --charge N"
)


def make_key_file(path: Path | str) -> bytes:
    """Return the key in a file; create the file if it does not exist."""
    path = Path(path)
    key = os.urandom(KEY_BYTES)
    try:
        atomic_write(path, f"{key.hex()}\n".encode(), replace=False)
    except FileExistsError:
        return read_key_file(path)
    except OSError as error:
        raise storage_error(error, f"The key file {path} cannot be made") from None
    return key


def read_key_file(path: Path | str) -> bytes:
    """Return the key in a file, or refuse it. The contents are never shown."""
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
    """Refuse a copy next to the write-ahead log of another file: SQLite would apply that log to it.

    A copy that was never opened has no log. If there is one, the file is read without it.
    """
    log_files = [
        f"{path}{suffix}" for suffix in ("-wal", "-journal") if _file_size(f"{path}{suffix}")
    ]
    if not log_files:
        return
    uri = f"file:{quote(os.fsencode(path))}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as database:
            is_copy = database.execute(_IS_COPY_QUERY).fetchone()[0]
    except sqlite3.Error:
        return  # not a copy of a guard; opening it will report what is wrong
    if is_copy:
        raise InvalidState(
            f"{path} is a copy, and {' and '.join(log_files)} next to it belongs to "
            "another file, or to an interrupted restore; SQLite would mix them. Move it and "
            f"{path}-shm away, then restore again. Nothing was changed."
        )


@contextmanager
def replace_with_copy(path: Path, copy: Path) -> Iterator[None]:
    """Replace a file by a copy; the old file is kept as ``FILE.replaced-N``.

    Files are moved, and opened only by SQLite; a process that has the old file open is refused its
    next question. If the ``with`` block fails, the old file is restored.
    """
    if copy == path:
        raise InvalidSetting("The copy is the file itself; leave --from out.")
    refuse_foreign_wal(copy)
    draft = path.with_name(f"{path.name}.restoring-{os.urandom(4).hex()}")
    with closing(SqliteStorage(copy)) as storage:
        storage.backup(draft)
    old = _unused_name(path)
    replaced = False
    try:
        _move(path, old)
        draft.rename(path)
        replaced = True
        yield
    except BaseException:
        draft.unlink(missing_ok=True)
        if replaced:
            for suffix in ("", *SQLITE_SUFFIXES):
                Path(f"{path}{suffix}").unlink(missing_ok=True)
        _move(old, path)
        raise


def _move(path: Path, target: Path) -> None:
    for suffix in ("", *SQLITE_SUFFIXES):
        if os.path.lexists(f"{path}{suffix}"):
            Path(f"{path}{suffix}").rename(f"{target}{suffix}")


def _unused_name(path: Path) -> Path:
    count = 1
    while os.path.lexists(f"{path}.replaced-{count}"):
        count += 1
    return path.with_name(f"{path.name}.replaced-{count}")


def _file_size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


@dataclass(frozen=True)
class GuardFile:
    """The path of a guard's file, and everything else needed to open it in any process.

    Parameters
    ----------
    path, key_file
        The file, and the key file if the secret data is encrypted.
    loss, mechanism
        Custom ones, which the file cannot name.
    environment
        Clock and salts, for tests.
    limits
        The maximum size of predictions; the default limits if None.
    """

    path: Path
    key_file: Path | None = None
    loss: Loss | None = None
    mechanism: Mechanism | None = None
    environment: LedgerEnvironment | None = None
    limits: Limits | None = None

    @classmethod
    def resolve(cls, path: Path | str, key_file: Path | str | None, **options: Any) -> GuardFile:
        """Return a guard file with absolute paths."""
        key_path = None if key_file is None else absolute_path(key_file)
        return cls(absolute_path(path), key_path, **options)

    def for_other_process(self) -> GuardFile:
        """Return it for another process, which has its own clock and salts."""
        return replace(self, environment=None)

    def create(
        self,
        table: HoldoutTable,
        scorer: Scorer,
        mechanism: Mechanism,
        rules: dict[str, Any],
        key: bytes | None,
    ) -> Book:
        """Create the file completely, or not at all."""
        if self.path.exists():  # before a key file is created
            raise InvalidState(f"{self.path} exists already; open it, or choose another name.")
        opening = Opening(
            n=scorer.grouping.n,
            loss=scorer.loss.describe(),
            mechanism=mechanism.describe(),
            rules=rules,
            holdout=sample_digest(describe_sample(table)),
        )
        environment = LedgerEnvironment() if self.environment is None else self.environment
        name = environment.salt()[:16].hex()
        encryption = None if self.key_file is None else Cipher(make_key_file(self.key_file), name)
        gate_state = {GATE_STATE: GateState().encode()} if "gate" in rules else {}
        storage, high_water = SqliteStorage(self.path, create=True), HighWaterMark(self.path)
        try:
            return Book.create(
                storage,
                opening,
                name=name,
                mechanism=mechanism,
                key=key,
                extra_secrets={SAMPLE: encode_sample(table), **gate_state},
                encryption=encryption,
                high_water=high_water,
                environment=environment,
            )
        except BaseException:  # leave no incomplete file
            storage.close()
            for path in (self.path, f"{self.path}-wal", f"{self.path}-shm", high_water.path):
                Path(path).unlink(missing_ok=True)
            raise

    def open(self, read_labels: Callable[..., HoldoutTable] | None = None) -> tuple[Book, Scorer]:
        """Open the file; labels returned by ``read_labels`` must be the stored ones."""
        try:
            return self._open(read_labels)
        except StaleCopy as error:
            raise StaleCopy(
                f"{error} {_STALE_HINT.format(self.path)}", missing=error.missing
            ) from None

    def _open(
        self, read_labels: Callable[..., HoldoutTable] | None = None, *, stale: bool = False
    ) -> tuple[Book, Scorer]:
        storage = SqliteStorage(self.path)
        name = self._read_book_name(storage)
        encryption = None if self.key_file is None else Cipher(read_key_file(self.key_file), name)
        book = Book(
            storage,
            name,
            mechanism=self.mechanism,
            encryption=encryption,
            high_water=HighWaterMark(self.path),
            environment=self.environment,
            allow_stale=stale,
        )
        if book.max_ladders is None:
            # Files of older versions allowed any number of ladders but were calibrated for one:
            # start no further ones.
            book.max_ladders = max(1, len(book.ladders_in_use()))
        table = decode_sample(book.read_encrypted(SAMPLE))
        loss = loss_of(book.opening["loss"] if self.loss is None else self.loss)
        if loss.describe() != book.opening["loss"]:
            loss = loss.with_inferred_classes(table.labels)
        if loss.describe() != book.opening["loss"]:
            raise InvalidSetting("This guard was created with another loss.")
        if read_labels is not None:
            check_same_sample(table, read_labels(labelled=loss.uses_labels))
        columns = DeclaredColumns.read(book.opening["rules"].get("columns"))
        served = self.limits is not None
        scorer = Scorer(table, loss, columns=columns, may_be_labels=served)
        return book, scorer if self.limits is None else scorer.with_limits(self.limits)

    def _read_book_name(self, storage: SqliteStorage) -> str:
        books = storage.books()
        if not books:
            raise InvalidState(f"{self.path} is incomplete; delete it, and create it again.")
        if len(books) > 1:
            raise InvalidState(f"{self.path} holds {len(books)} books; a guard's file holds one.")
        return books[0]

    def restore(self, charge: int, copy: Path | None = None) -> tuple[Book, Scorer]:
        """Continue with an old copy: the file itself, or ``copy``, which replaces it first.

        If the copy cannot be opened or is damaged, nothing is charged.
        """
        if copy is not None:
            with replace_with_copy(self.path, copy):
                return self.restore(charge)
        refuse_foreign_wal(self.path)
        book, _ = self._open(stale=True)
        self._check_integrity()
        adopt_copy(
            book.storage,
            book.name,
            charge,
            high_water=HighWaterMark(self.path),
            environment=self.environment,
        )
        self._truncate_wal()
        return self.open()

    def _check_integrity(self) -> None:
        """Check every page now, before questions are charged."""
        try:
            with closing(connect_sqlite(self.path)) as database:
                result = database.execute("PRAGMA integrity_check(1)").fetchone()[0]
        except sqlite3.Error as error:
            raise translate_sqlite_error(error, self.path) from None
        if result != "ok":
            raise InvalidState(f"{self.path} is damaged; nothing was charged. Take another copy.")

    def _truncate_wal(self) -> None:
        """Write the log into the file, so that the file alone shows that it was restored."""
        with suppress(sqlite3.Error), closing(connect_sqlite(self.path)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
