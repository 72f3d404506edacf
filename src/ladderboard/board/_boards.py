"""All boards of one database, and opening that database by its address."""

from __future__ import annotations

import json
import math
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard import _settings
from ladderboard.board._access import (
    Caller,
    Role,
    comparable_name,
    hash_token,
    new_token,
    recount_pooled,
)
from ladderboard.board._amendments import Amendments
from ladderboard.board._board import BoardContext
from ladderboard.board._data import DataFiles
from ladderboard.board._finals import BoardCloser
from ladderboard.board._folder import make_scorers
from ladderboard.board._model import BOARD, BoardRow
from ladderboard.board._people import (
    Erasure,
    Identities,
    Members,
    Teams,
    Terms,
    caller_of,
    new_credential,
)
from ladderboard.board._repository import (
    BOARD_SCHEMA,
    WEBHOOK_SCHEMA,
    add_signing_key,
    delete_session,
    end_server_organisers,
    find_book,
    find_credential,
    find_signed_in,
    find_team_by_name,
    find_version,
    has_server_organiser,
    insert,
    insert_server_credential,
    is_listed,
    is_open_to_public,
    list_places_in_folder,
    list_slugs,
    list_slugs_open_first,
    lock_server,
    read_board,
    read_signing_key,
    read_versions,
    sample_key,
    to_json,
    upload_statements,
)
from ladderboard.board._rules import SECRET_VISIBILITIES
from ladderboard.board._store import DatabaseStore, MixedStore
from ladderboard.board._submissions import IncomingSubmission, SubmissionService
from ladderboard.board._view import View
from ladderboard.board._webhooks import Webhooks
from ladderboard.errors import (
    Conflict,
    InvalidInput,
    InvalidRules,
    InvalidSetting,
    InvalidState,
    NotAllowed,
    NotFound,
    StaleCopy,
)
from ladderboard.holdout import (
    describe_further,
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
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager

    from ladderboard.board._folder import BoardFolder
    from ladderboard.board._store import SubmissionStore
    from ladderboard.board._submissions import (
        AuthorizedUpload,
        SubmissionAnswer,
        SubmissionRequest,
    )
    from ladderboard.holdout import Scorer
    from ladderboard.ledger import (
        BookTransaction,
        Encryption,
        PostgresStorage,
        WriteView,
    )
    from ladderboard.mechanisms import Mechanism

SERVER = "server"
"""What secrets that belong to all boards are encrypted for, in place of a book's name."""
_SIGNING_KEY = "kept signing key"
_STALE_HINT = (
    "If you moved the database, move its .mark files too. To continue with an old copy, state how "
    "many submissions may have been answered since: ladderboard board resume {} --charge N"
)
_MAX_SUMMARIES = 1000  # of 5 KB each
_MAX_TOKENS = 10_000  # whose teams are remembered
_SQLITE = "sqlite:///"
_INVITATIONS = {"invitation", "member"}  # nobody signs in with these
_UNKNOWN_TOKEN = "This token is unknown or was revoked."  # noqa: S105 - a message
_POSTGRES = ("postgresql://", "postgresql+psycopg://", "postgres://")


class Board(BoardContext):
    """One board, with everything that can be done with it. Made by :class:`Boards`.

    Its services know only the context, neither the board nor each other.
    """

    def __init__(self, book: Book, store: SubmissionStore, slug: str) -> None:
        super().__init__(book, store, slug)
        self.teams = Teams(self)
        """Teams, invitations and tokens."""
        self.erasure = Erasure(self)
        """Removes names and identities."""
        self.identities = Identities(self)
        """People who sign in, and who of them may register."""
        self.members = Members(self)
        """People in teams, and organisers by person."""
        self.terms = Terms(self)
        """Terms that teams accept before they submit."""
        self.data = DataFiles(self)
        """Files for participants, and a sample submission."""
        self.submissions = SubmissionService(self)
        """Submissions, from the first check to the answer."""
        self.amendments = Amendments(self)
        """Pausing, resuming, amending rules and correcting labels."""
        self.closer = BoardCloser(self)
        """Selecting submissions for the finals, and closing the board."""
        self.webhooks = Webhooks(self)
        """Receivers of the board's events."""

    def as_seen_by(self, caller: Caller) -> View:
        """Return a view with what the caller may see; everything is read through it."""
        return View(self, caller)

    def submit(
        self,
        caller: Caller,
        incoming: IncomingSubmission,
        team: str | None = None,
        authorized: AuthorizedUpload | None = None,
    ) -> SubmissionAnswer:
        """Answer a submission."""
        return self.submissions.submit(caller, incoming, team, authorized)

    def submit_all(
        self, requests: Sequence[SubmissionRequest], recorded: Callable[[], None] = lambda: None
    ) -> list[SubmissionAnswer | Exception]:
        """Answer submissions together; see ``SubmissionService.submit_all``."""
        return self.submissions.submit_all(requests, recorded)


class CachedSummary(NamedTuple):
    """A board's summary as JSON; ``version`` is None if it must not be reused.

    It is current from ``since`` until the next phase starts or ends, unless the board changes.
    """

    encoded: bytes
    version: tuple[Any, ...] | None = None
    since: float = 0
    until: float = 0

    def fields(self) -> dict[str, Any]:
        """Return the summary."""
        fields: dict[str, Any] = json.loads(self.encoded)
        return fields


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
        self._summaries: dict[str, CachedSummary] = {}
        self._open_to_public: dict[str, tuple[tuple[int, int], bool]] = {}
        self._teams_by_token: dict[bytes, tuple[int, int]] = {}  # each with its book
        self._lock = threading.Lock()
        storage.ensure_schema(BOARD_SCHEMA)
        storage.ensure_schema(WEBHOOK_SCHEMA)
        with storage.read_tables() as view:
            is_new = read_signing_key(view.query) is None
        if is_new:
            encrypted = self._server_cipher().encrypt(_SIGNING_KEY, self.environment.salt())
            with storage.write_tables() as view:
                add_signing_key(view, encrypted)
        self.signing_key()  # refuses a key file that does not match the database

    def _server_cipher(self) -> Encryption:
        return self.cipher(SERVER) or NoEncryption()

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
        with self.storage.read_tables() as view:
            encrypted = read_signing_key(view.query)
        if encrypted is None:
            raise InvalidState("The server's signing key is missing.")
        return self._server_cipher().decrypt(_SIGNING_KEY, encrypted)

    def list(self) -> list[str]:
        """Return the slugs of all boards, oldest first."""
        with self.storage.read_tables() as view:
            return list_slugs(view)

    def list_page(
        self, limit: int, after: str | None = None, *, unlisted: bool = True
    ) -> tuple[str, ...]:
        """Return up to ``limit`` slugs, oldest first, that come after the board ``after``."""
        with self.storage.read_tables() as view:
            if after is not None:
                known = find_book(view, after) is not None if unlisted else is_listed(view, after)
                if not known:
                    raise InvalidSetting("Invalid cursor. Start without one.")
            return tuple(list_slugs(view, limit, after, unlisted=unlisted))

    def list_open_first(
        self, limit: int, skip: int = 0, *, unlisted: bool = True
    ) -> tuple[str, ...]:
        """Return up to ``limit`` slugs after the first ``skip``, closed boards last."""
        with self.storage.read_tables() as view:
            return tuple(list_slugs_open_first(view, limit, skip, unlisted=unlisted))

    def summaries(
        self, slugs: Sequence[str], callers: Callable[[str], Caller]
    ) -> tuple[CachedSummary, ...]:
        """Return summaries of boards, each as its caller sees it.

        One statement reads the versions of all; summaries that it shows to be current are reused.
        """
        versions = read_versions(self.storage.query_tables, slugs)
        clock, known, summaries = self.environment.clock(), self._summaries, []
        for slug in slugs:
            version, now = versions.get(slug, (None, None))
            now = clock if now is None or not self.environment.uses_system_clock else now
            summary = known.get(slug)
            if (
                summary is None
                or summary.version is None
                or summary.version != version
                or not summary.since <= now < summary.until
            ):
                summary = self._make_summary(slug, version, now, callers(slug))
            summaries.append(summary)
        return tuple(summaries)

    def _make_summary(
        self, slug: str, version: tuple[Any, ...] | None, now: int, caller: Caller
    ) -> CachedSummary:
        board = self.open(slug)
        fields = board.as_seen_by(caller).summary()
        encoded = json.dumps(fields, separators=(",", ":"), allow_nan=False).encode("ascii")
        row = None if version is None else board.row()
        # Hidden and frozen boards: the response time would tell whether somebody submitted. With
        # sign-in, the names of organisers may change alone.
        if row is None or row.visibility in SECRET_VISIBILITIES or fields["sign_in"] is not None:
            return CachedSummary(encoded)
        ends = (end for phase in board.rules_of(row).phases for end in (phase.start, phase.end))
        until = min((end for end in ends if end is not None and end > now), default=math.inf)
        if len(self._summaries) >= _MAX_SUMMARIES:
            self._summaries.clear()
        self._summaries[slug] = CachedSummary(encoded, version, now, until)
        return self._summaries[slug]

    def read_ahead(self, slug: str, tokens: Iterable[bytes]) -> AbstractContextManager[None]:
        """Read what this thread needs to authorize uploads in the block, in one message.

        ``tokens`` are the hashes of the uploads' tokens.
        """
        senders = [(token, self._teams_by_token.get(token)) for token in tokens]
        return self.storage.read_ahead(upload_statements(slug, senders))

    def open_if_public(self, slug: str) -> Board | None:
        """Return a board; None if there is no such board, or it is for its members only."""
        return self.open(slug) if self._is_open_to_public(slug) else None

    def _is_open_to_public(self, slug: str) -> bool:
        """Return whether there is such a board, and it is not for its members only.

        The rules are searched once per change: a search takes time that grows with their length,
        and would tell a members' board from one that is missing.
        """
        query = self.storage.query_tables
        version = find_version(query, slug)
        if version is None:
            return False
        known_version, is_open = self._open_to_public.get(slug, (None, False))
        if known_version != version:
            is_open = is_open_to_public(query, slug)
            self._open_to_public[slug] = (version, is_open)
        return is_open

    def _book_name(self, slug: str) -> str:
        """Return the name of a board's book; ``NotFound`` if there is no such board."""
        with self.storage.read_tables() as view:
            name = find_book(view, slug)
        if name is None:
            raise NotFound("There is no such board.")
        return name

    def open(self, slug: str) -> Board:
        """Return a board by its slug; ``NotFound`` if there is none."""
        with self._lock:
            board = self._open.get(slug)
        if board is not None:
            return board
        name = self._book_name(slug)
        try:
            book = Book(
                self.storage,
                name,
                mechanism=self._mechanism,
                encryption=self.cipher(name),
                high_water=self.high_water_mark(name),
                environment=self.environment,
            )
        except StaleCopy as error:
            message = f"{slug}: {error} {_STALE_HINT.format(slug)}"
            raise StaleCopy(message, missing=error.missing) from None
        with self._lock:
            return self._open.setdefault(slug, Board(book, self.store, slug))

    def adopt_old_copy(self, slug: str, charge: int) -> Board:
        """Continue one board on an old copy of the database.

        ``charge`` is how many questions may have been answered after the copy was made.
        """
        name = self._book_name(slug)
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
        scorers = make_scorers(table, rules, "public")
        scorer, live = scorers[0], [scorers[number] for number in rules.live_metrics]
        worth = int(scorer.grouping.effective_n)
        mechanism = self._mechanism or rules.mechanism_for(worth)
        if mechanism.needs == "losses" and (
            scorer.grouping.weight is not None or not rules.loss.is_mean
        ):
            raise InvalidSetting(
                f"{mechanism.name} compares losses; it takes neither weights nor statistics."
            )
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
                "zero_one": all(other.zero_one for other in live),
                # Other mechanisms have no such price; a statistic has no losses; with several live
                # metrics one test would have to pay for the releases of all.
                **(
                    {"proven": True}
                    if rules.mechanism is None
                    and self._mechanism is None
                    and rules.loss.is_mean
                    and len(live) == 1
                    else {}
                ),
                **({} if scorer.promise is None else {"promise": scorer.promise}),
                **describe_further(live),
                "board": described,
            },
            holdout=sample_digest(describe_sample(table)),
        )
        name = self.environment.salt()[-16:].hex()

        def insert_board(view: WriteView) -> None:
            row = BoardRow(
                slug=rules.slug,
                rules=to_json(described),
                visibility=rules.visibility,
                made=self.environment.clock(),
            )
            insert(view, BOARD, row)

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
        if folder.data:
            board.data.replace(Caller(Role.ORGANISER), folder.data)
        if folder.people:
            board.identities.extend_list(Caller(Role.ORGANISER), folder.people)
        submit_baselines(board, folder)
        return board

    def create_first_token(self) -> str | None:
        """Return a token for an organiser of all boards; None if one was issued before."""
        token = new_token("organiser", self.environment.salt)
        credential = new_credential(token, "organiser", self.environment.clock())
        with self.storage.write_tables() as view:
            lock_server(view)
            if has_server_organiser(view):
                return None
            insert_server_credential(view, credential)
        return token

    def issue_token(self, role: Role = Role.ORGANISER, *, end_others: bool = False) -> str:
        """Return a new token for all boards; ``end_others`` revokes the organisers' older ones."""
        token = new_token(role.name.lower(), self.environment.salt)
        now = self.environment.clock()
        with self.storage.write_tables() as view:
            lock_server(view)
            if end_others:
                end_server_organisers(view, now)
            insert_server_credential(view, new_credential(token, role.name.lower(), now))
        return token

    def caller_by_token(self, token: str, slug: str | None = None) -> Caller:
        """Return the caller that a token stands for, on one board or on all; refuse others.

        A token of one board is not valid on another. The refusal is the same for a token that
        never existed, one that was revoked, and one of another board.
        """
        return self.caller_by_token_hash(hash_token(token), slug)

    def caller_by_token_hash(self, hashed: bytes, slug: str | None = None) -> Caller:
        """As :meth:`caller_by_token`, from the hash of a token or a session, as cookies hold it."""
        query = self.storage.query_tables
        match = find_credential(query, hashed)
        signed_in = find_signed_in(query, hashed) if match is None else None
        if signed_in is not None and signed_in.slug == slug:
            if signed_in.expires > self.environment.clock():
                return caller_of(signed_in.identity, hashed)
            raise NotAllowed(_UNKNOWN_TOKEN)
        if match is not None and match.credential.role not in _INVITATIONS:
            credential, expires = match.credential, match.credential.expires
            valid_here = match.book is None or (slug is not None and match.slug == slug)
            if valid_here and (expires is None or expires > self.environment.clock()):
                if match.book is not None and credential.team is not None:
                    if len(self._teams_by_token) >= _MAX_TOKENS:
                        self._teams_by_token.clear()
                    self._teams_by_token[hashed] = (match.book, credential.team)
                return Caller(Role[credential.role.upper()], credential.team, hashed)
        raise NotAllowed(_UNKNOWN_TOKEN)

    def slug_of_token(self, hashed: bytes) -> str | None:
        """Return the slug of a token's only board; None if it is for all boards or was revoked."""
        query = self.storage.query_tables
        match = find_credential(query, hashed) or find_signed_in(query, hashed)
        return None if match is None else match.slug

    def sign_out(self, hashed: bytes) -> None:
        """End the session of a person who signed in; a token stays valid."""
        with self.storage.write_tables() as view:
            delete_session(view, hashed)

    def remove_orphaned_files(self) -> int:
        """Remove submitted files that a crash left without a row; return how many."""
        with self.storage.read_tables() as view:
            places = list_places_in_folder(view)
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
            team = find_team_by_name(view, comparable_name(name))
        if team is not None and team.kind != "baseline":
            team = None
        if team is not None and team.used:
            continue
        caller = (
            board.teams.add_baseline(name) if team is None else Caller(Role.ORGANISER, team.number)
        )
        submission = IncomingSubmission(
            scorer.read(path), board.book.environment.clock(), message="baseline"
        )
        board.submit(caller, submission)
