"""All boards of one database, and opening that database by its address."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from ladderboard import _settings
from ladderboard.board._access import Caller, Role, comparable_name, hash_token, new_token
from ladderboard.board._board import Board
from ladderboard.board._folder import split_mask
from ladderboard.board._limits import recount_pooled
from ladderboard.board._store import DatabaseStore, MixedStore
from ladderboard.board._submissions import IncomingSubmission
from ladderboard.board._tables import (
    BOARD_SCHEMA,
    SERVER_BOOK,
    is_searchable,
    read_board,
    sample_key,
    to_json,
)
from ladderboard.board._teams import add_credential
from ladderboard.errors import (
    Conflict,
    InvalidInput,
    InvalidRules,
    InvalidSetting,
    InvalidState,
    NotAllowed,
    NotFound,
)
from ladderboard.holdout import (
    Scorer,
    describe_sample,
    encode_sample,
    make_key_file,
    sample_digest,
)
from ladderboard.ledger import (
    Book,
    Cipher,
    HighWaterMark,
    LedgerEnvironment,
    NoEncryption,
    Opening,
    SqliteStorage,
    Storage,
    adopt_copy,
)

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ladderboard.board._folder import BoardFolder
    from ladderboard.board._store import SubmissionStore
    from ladderboard.ledger import (
        BookTransaction,
        Encryption,
        PostgresStorage,
        ReadView,
        WriteView,
    )
    from ladderboard.mechanisms import Mechanism

_FIND_BASELINE = (
    "SELECT number, used FROM main.team WHERE book = ? AND folded = ? AND kind = 'baseline'"
)
_ALL_SLUGS = "SELECT slug FROM main.board ORDER BY book"
_SLUGS_AFTER = (
    "SELECT slug FROM main.board WHERE book > (SELECT book FROM main.board WHERE slug = ?) "
    "ORDER BY book LIMIT ?"
)
_OPEN_FIRST = (
    "SELECT slug FROM main.board ORDER BY CASE status WHEN 'closed' THEN 1 ELSE 0 END, book "
    "LIMIT ? OFFSET ?"
)
_BOOK_BY_SLUG = (
    "SELECT main.book.name FROM main.board JOIN main.book ON main.book.id = main.board.book "
    "WHERE main.board.slug = ?"
)
_INSERT_BOARD = (
    "INSERT INTO main.board (book, slug, rules, status, visibility, horizon, seen_epoch, epoch, "
    "amended, teams, pooled, replayed, stored, made) "
    "VALUES (?, ?, ?, 'open', ?, 2, 0, 0, 0, 0, 0, 0, 0, ?)"
)
_CREDENTIAL_BY_HASH = (
    "SELECT role, team, book, expires FROM main.credential "
    "WHERE hash = ? AND ended IS NULL AND role <> 'invitation'"
)
_FILES_IN_FOLDER = "SELECT place FROM main.submission WHERE place LIKE '%/%'"  # those in a folder
_ANY_ORGANISER = "SELECT 1 FROM main.credential WHERE book = ? AND role = 'organiser'"
_END_ORGANISERS = (
    "UPDATE main.credential SET ended = ? WHERE book = ? AND role = 'organiser' AND ended IS NULL"
)
_BOOK_NUMBER = "SELECT book FROM main.board WHERE slug = ?"
_SLUG_BY_CREDENTIAL = (
    "SELECT main.board.slug FROM main.credential "
    "JOIN main.board ON main.board.book = main.credential.book "
    "WHERE main.credential.hash = ? AND main.credential.ended IS NULL"
)

_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgresql+psycopg://", "postgres://")


class Boards:
    """The boards of a server, on SQLite or PostgreSQL.

    Parameters
    ----------
    storage
        The database.
    store
        Stores submitted files.
    key_file
        Encrypts labels and other secrets; created if missing.
    environment
        Clock and salts, for tests.
    mechanism
        For tests: the mechanism of new boards, instead of the one in their rules.
    """

    def __init__(
        self,
        storage: Storage,
        store: SubmissionStore,
        *,
        key_file: Path | str | None = None,
        environment: LedgerEnvironment | None = None,
        mechanism: Mechanism | None = None,
    ) -> None:
        self.storage, self.store = storage, store
        self.environment = LedgerEnvironment() if environment is None else environment
        self._mechanism = mechanism
        self._key = None if key_file is None else make_key_file(key_file)
        self._open: dict[str, Board] = {}
        self._lock = threading.Lock()
        storage.ensure_schema(BOARD_SCHEMA)
        if SERVER_BOOK not in storage.books():
            try:
                with storage.add_book(SERVER_BOOK) as view:
                    view.set_value(
                        "signing key",
                        self._encrypt_value(SERVER_BOOK, "signing key", self.environment.salt()),
                    )
            except InvalidState:  # another process created it first
                if SERVER_BOOK not in storage.books():
                    raise
        self.signing_key()  # refuses a key file that does not match the database

    def _encrypt_value(self, book: str, name: str, content: bytes) -> bytes:
        return (self.cipher(book) or NoEncryption()).encrypt(f"kept {name}", content)

    def cipher(self, book: str) -> Encryption | None:
        """Return the cipher for the secret side of a book; None without a key file."""
        return None if self._key is None else Cipher(self._key, book)

    def high_water_mark(self, book: str) -> HighWaterMark | None:
        """Return the mark that detects an old copy of a book; None on PostgreSQL."""
        if not isinstance(self.storage, SqliteStorage):
            return None
        mark = HighWaterMark(f"{self.storage.path}.{book}")
        mark.rename_from(
            HighWaterMark(f"{self.storage.path}.{book[:8]}"), book
        )  # its name until 0.1
        return mark

    def signing_key(self) -> bytes:
        """Return the key that cookies are signed with."""
        with self.storage.read_transaction(SERVER_BOOK) as view:
            encrypted = view.get_value("signing key")
        if encrypted is None:
            raise InvalidState("The server's signing key is missing.")
        return (self.cipher(SERVER_BOOK) or NoEncryption()).decrypt("kept signing key", encrypted)

    def list(self) -> list[str]:
        """Return the slugs of all boards, oldest first."""
        with self._read_server_book() as view:
            return [row[0] for row in view.query(_ALL_SLUGS)]

    def list_page(self, limit: int, after: str | None = None) -> tuple[str, ...]:
        """Return up to ``limit`` slugs, oldest first, that come after the board ``after``."""
        with self._read_server_book() as view:
            if after is None:
                return tuple(row[0] for row in view.query(f"{_ALL_SLUGS} LIMIT ?", (limit,)))
            if not (is_searchable(after) and view.query(_BOOK_BY_SLUG, (after,))):
                raise InvalidSetting("Invalid cursor. Start without one.")
            return tuple(row[0] for row in view.query(_SLUGS_AFTER, (after, limit)))

    def list_open_first(self, limit: int, skip: int = 0) -> tuple[str, ...]:
        """Return up to ``limit`` slugs after the first ``skip``, closed boards last."""
        with self._read_server_book() as view:
            return tuple(row[0] for row in view.query(_OPEN_FIRST, (limit, skip)))

    def _read_server_book(self) -> AbstractContextManager[ReadView]:
        return self.storage.read_transaction(SERVER_BOOK)

    def open(self, slug: str) -> Board:
        """Return a board by its slug; ``NotFound`` if there is none."""
        with self._lock:
            board = self._open.get(slug)
        if board is not None:
            return board
        with self._read_server_book() as view:
            rows = view.query(_BOOK_BY_SLUG, (slug,)) if is_searchable(slug) else []
        if not rows:
            raise NotFound("There is no such board.")
        name = rows[0][0]
        book = Book(
            self.storage,
            name,
            mechanism=self._mechanism,
            encryption=self.cipher(name),
            high_water=self.high_water_mark(name),
            environment=self.environment,
        )
        with self._lock:
            return self._open.setdefault(slug, Board(book, self.store, slug))

    def adopt_old_copy(self, slug: str, charge: int) -> Board:
        """Continue one board on an old copy of the database.

        ``charge`` is how many questions may have been answered after the copy was made.
        """
        with self._read_server_book() as view:
            rows = view.query(_BOOK_BY_SLUG, (slug,)) if is_searchable(slug) else []
            if not rows:
                raise NotFound("There is no such board.")
        name = rows[0][0]
        with self.storage.read_transaction(name) as view:
            budget = int(json.loads(read_board(view).rules)["questions"])
        mark, environment = self.high_water_mark(name), self.environment
        adopt_copy(
            self.storage, name, charge, high_water=mark, environment=environment, budget=budget
        )
        with self._lock:
            self._open.pop(slug, None)
        board = self.open(slug)

        def count(transaction: BookTransaction) -> None:
            view = transaction.view
            recount_pooled(view, board.rules_of(read_board(view)), transaction.chain_state)

        board.queue.run(count)
        return board

    def create(self, folder: BoardFolder) -> Board:
        """Create a board: commit to its holdout, key and rules, and submit its baselines."""
        rules = folder.rules
        table = folder.table if rules.loss.uses_labels else folder.table.without_labels()
        scorer = Scorer(table, rules.loss, rules.files.limits, rows=split_mask(table, "public"))
        worth = int(scorer.grouping.effective_n)
        mechanism = self._mechanism or rules.mechanism_for(worth)
        if mechanism.needs == "losses" and scorer.grouping.weight is not None:
            raise InvalidSetting(f"{mechanism.name} compares losses; it takes no weights.")
        if rules.slug in self.list():
            raise Conflict(f"There is a board {rules.slug!r} already.")
        check_baselines(scorer, folder)
        described = rules.describe()
        opening = Opening(
            n=scorer.grouping.n,
            loss=rules.loss.describe(),
            mechanism=mechanism.describe(),
            rules={
                "questions": rules.questions,
                "beta": rules.beta,
                "rows": len(table),
                "kind": table.kind,
                "worth": worth,
                "weighted": scorer.grouping.weight is not None,
                "zero_one": scorer.zero_one,
                "board": described,
            },
            holdout=sample_digest(describe_sample(table)),
        )
        name = self.environment.salt()[-16:].hex()

        def insert_board(view: WriteView) -> None:
            visibility = rules.visibility
            values = (
                view.book_id,
                rules.slug,
                to_json(described),
                visibility,
                self.environment.clock(),
            )
            view.execute(_INSERT_BOARD, values)

        Book.create(
            self.storage,
            opening,
            name=name,
            mechanism=mechanism,
            key=self.environment.salt(),
            extra_secrets={sample_key(0): encode_sample(table)},
            encryption=self.cipher(name),
            high_water=self.high_water_mark(name),
            environment=self.environment,
            also_write=insert_board,
        )
        board = self.open(rules.slug)
        submit_baselines(board, folder)
        return board

    def create_first_token(self) -> str | None:
        """Return a token for an organiser of all boards; None if one was issued before."""
        token = new_token("organiser", self.environment.salt)
        with self.storage.write_transaction(SERVER_BOOK) as view:
            if view.query(_ANY_ORGANISER, (view.book_id,)):
                return None
            add_credential(view, token, "organiser", self.environment.clock())
        return token

    def issue_token(self, role: Role = Role.ORGANISER, *, end_others: bool = False) -> str:
        """Return a new token for all boards; ``end_others`` revokes the organisers' older ones."""
        token = new_token(role.name.lower(), self.environment.salt)
        with self.storage.write_transaction(SERVER_BOOK) as view:
            if end_others:
                view.execute(_END_ORGANISERS, (self.environment.clock(), view.book_id))
            add_credential(view, token, role.name.lower(), self.environment.clock())
        return token

    def caller_by_token(self, token: str, slug: str | None = None) -> Caller:
        """Return the caller that a token stands for, on one board or on all; refuse others.

        A token of one board is not valid on another. The refusal is the same for a token that
        never existed, one that was revoked, and one of another board.
        """
        return self.caller_by_token_hash(hash_token(token), slug)

    def caller_by_token_hash(self, hashed: bytes, slug: str | None = None) -> Caller:
        """As :meth:`caller_by_token`, from the hash of a token, which sessions store."""
        with self._read_server_book() as view:
            rows = view.query(_CREDENTIAL_BY_HASH, (hashed,))
            if rows:
                role, team, book, expires = rows[0]
                books = [] if slug is None else view.query(_BOOK_NUMBER, (slug,))
                valid_here = book in {view.book_id, *(row[0] for row in books)}
                expired = expires is not None and expires <= self.environment.clock()
                if valid_here and not expired:
                    return Caller(Role[role.upper()], team, hashed)
        raise NotAllowed("This token is unknown or was revoked.")

    def slug_of_token(self, hashed: bytes) -> str | None:
        """Return the slug of a token's only board; None if it is for all boards or was revoked."""
        with self._read_server_book() as view:
            rows = view.query(_SLUG_BY_CREDENTIAL, (hashed,))
        return rows[0][0] if rows else None

    def remove_orphaned_files(self) -> int:
        """Remove submitted files that a crash left without a row; return how many."""
        with self._read_server_book() as view:
            places = {row[0] for row in view.query(_FILES_IN_FOLDER)}
        return self.store.sweep(places.__contains__)

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._open.clear()
        self.storage.close()


def is_shared(url: str) -> bool:
    """Return whether several processes may serve from a database.

    >>> is_shared("boards.db"), is_shared("postgresql+psycopg://me@there/boards")
    (False, True)
    """
    return url.startswith(_POSTGRES)


def open_boards(
    url: Path | str,
    *,
    create: bool = False,
    key_file: Path | str | None = None,
    store: SubmissionStore | None = None,
    environment: LedgerEnvironment | None = None,
) -> Boards:
    """Open the boards in a database.

    Parameters
    ----------
    url
        A path or ``sqlite:///path`` for SQLite; ``postgresql+psycopg://user:password@host/name``.
    create
        Create the database if it is missing.
    key_file
        Encrypts everything secret; created if missing.
    store
        Stores submitted files; by default in the database, except that beside an SQLite file those
        larger than a megabyte go to ``FILE.submissions``.
    environment
        Clock and salts, for tests.
    """
    storage = open_storage(url, create=create)
    if store is None:
        store = DatabaseStore(storage)
        if isinstance(storage, SqliteStorage):
            path = storage.path
            store = MixedStore(storage, path.with_name(f"{path.name}.submissions"))
    try:
        return Boards(storage, store, key_file=key_file, environment=environment)
    except BaseException:
        storage.close()
        raise


def open_storage(url: Path | str, *, create: bool = False) -> Storage:
    """Open the database at a path or an address, without its boards."""
    address = str(url)
    if is_shared(address):
        return open_postgres_schema(address, create=create)
    path = _sqlite_path(address)
    return SqliteStorage(path, create=create and not path.exists())


def open_postgres_schema(
    url: str, schema: str = "ladderboard", *, create: bool = True
) -> PostgresStorage:
    """Open a schema of a PostgreSQL database."""
    from ladderboard.ledger import PostgresStorage  # noqa: PLC0415 - not needed for a file

    address = url.replace("postgres://", "postgresql://", 1)
    return PostgresStorage(address, create=create, schema=schema)


def _sqlite_path(address: str) -> Path:
    if address.startswith(_SQLITE):
        address = address.removeprefix(_SQLITE)
    elif "://" in address:
        scheme = address.partition("://")[0]
        raise InvalidSetting(
            f"database must be a path, sqlite:///path or postgresql+psycopg://...; got {scheme}://..."
        )
    if _settings.has_libpq_password(address):
        raise InvalidSetting(
            "database must be a path, sqlite:///path or postgresql+psycopg://user@host/name."
        )
    if not address or address == ":memory:":
        raise InvalidSetting(
            "database must be a file; one in memory is lost when the server stops."
        )
    return Path(address)


def check_baselines(scorer: Scorer, folder: BoardFolder) -> None:
    """Refuse a folder with a baseline that cannot be scored, before the board is created."""
    for name, path in folder.baselines.items():
        try:
            scorer.read(path)
        except InvalidInput as error:
            raise InvalidRules(
                f"The baseline {name!r} cannot be scored: {error}", problems=error.problems
            ) from None


def submit_baselines(board: Board, folder: BoardFolder) -> None:
    """Submit each baseline that was not submitted yet, as after a crash."""
    scorer = board.scorer()
    for name, path in folder.baselines.items():
        with board.reading() as view:
            rows = view.query(_FIND_BASELINE, (view.book_id, comparable_name(name)))
        if rows and rows[0][1]:
            continue
        caller = Caller(Role.ORGANISER, rows[0][0]) if rows else board.teams.add_baseline(name)
        submission = IncomingSubmission(
            scorer.read(path), board.book.environment.clock(), message="baseline"
        )
        board.submit(caller, submission)
