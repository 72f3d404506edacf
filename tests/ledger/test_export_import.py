"""A book in another database: the same chain, and the same answers from then on."""

import io
import secrets

import numpy as np
import pytest

from ladderboard.errors import (
    BrokenDump,
    BrokenLedger,
    IdempotencyKeyReused,
    LadderboardError,
    WrongKey,
)
from ladderboard.ledger import (
    Book,
    Cipher,
    LedgerEnvironment,
    NoEncryption,
    Opening,
    PostgresStorage,
    RecordReader,
    RecordWriter,
    ScoredQuestion,
    SecretKey,
    SqliteStorage,
    VaultReader,
    VaultWriter,
    check_book,
    digest,
    export_book,
    import_book,
)
from ladderboard.mechanisms import ParameterFreeLadder, ShakyLadder

N, BUDGET = 200, 60
KEY = SecretKey.make()


def cipher(name):
    return Cipher(bytes(range(32)), name)


def no_seal(name):
    return NoEncryption()


def a_file(request, tmp_path, name):
    return SqliteStorage(tmp_path / f"{name}.db", create=True)


def a_schema(request, tmp_path, name):
    server = request.getfixturevalue("postgres")
    return PostgresStorage(server.url(), create=True, schema=f"s_{secrets.token_hex(6)}")


@pytest.fixture(params=[(a_file, a_schema), (a_schema, a_file), (a_file, a_file)])
def places(request, tmp_path):
    storages = [make(request, tmp_path, f"{index}") for index, make in enumerate(request.param)]
    yield storages
    for storage in storages:
        storage.close()


def begin(storage, seal, mechanism=None):
    mechanism = (
        ShakyLadder(step=0.02, compare_noise=0.01, release_noise=0.005)
        if mechanism is None
        else mechanism
    )
    opening = Opening(
        N, {"name": "zero_one"}, mechanism.describe(), {"questions": BUDGET}, b"h" * 32
    )
    book = Book.create(
        storage, opening, name="b", encryption=seal("b"), extra_secrets={"sample": b"labels"}
    )
    with storage.write_transaction("b") as view:
        view.set_value("colour", b"blue")  # no secret
    rng = np.random.default_rng(1)
    for index in range(30):
        losses = (rng.random(N) < 0.5).astype(float)
        book.ask(question(index, losses, mechanism))
    return book


def question(at, losses, mechanism=None, idempotency_key=None):
    ladder, asker = [("", None), ("red", "red"), ("blue", "blue")][at % 3]
    given = losses if isinstance(mechanism, ParameterFreeLadder) else None
    return ScoredQuestion(
        digest("predictions", at),
        float(losses.mean()),
        losses=given,
        ladder=ladder,
        asker=asker,
        idempotency_key=f"key {at}" if idempotency_key is None else idempotency_key,
    )


def taken(book):
    file = io.BytesIO()
    vault = VaultWriter(file, KEY.public)
    records = RecordWriter(vault)
    with book.storage.read_transaction(book.name) as view:
        export_book(view, book.encryption, records)
    records.finish()
    vault.finish()
    return file.getvalue()


def put(form, storage, seal, name="b"):
    records = RecordReader(VaultReader(io.BytesIO(form), KEY))
    with storage.add_book(name) as view:
        import_book(view, name, seal(name), records)
        records.expect_end()
        check_book(view, name, seal(name))
    return Book(storage, name, encryption=seal(name))


@pytest.mark.parametrize(
    "seals",
    [(cipher, no_seal), (no_seal, cipher), (cipher, cipher)],
    ids=["opened", "closed", "both"],
)
def test_a_book_goes_on_elsewhere_as_it_would_have_here(places, seals):
    source = begin(places[0], seals[0])
    target = put(taken(source), places[1], seals[1])
    assert target.chain_state() == source.chain_state()
    assert [entry for entry, _ in target.entries()] == [entry for entry, _ in source.entries()]
    assert target.ladder_names() == source.ladder_names() == ["", "red", "blue"]
    assert target.read_encrypted("sample") == b"labels"
    with target.storage.read_transaction("b") as view:
        assert view.get_value("colour") == b"blue"
    assert target.check() == source.check() == 30
    rng = np.random.default_rng(2)
    for index in range(30, 45):
        losses = (rng.random(N) < 0.45 - index / 300).astype(float)
        here, there = (book.ask(question(index, losses)) for book in (source, target))
        assert there.release == here.release
        assert there.entry_number == here.entry_number
    assert target.check() == 45
    assert source.ladder_value("red") == target.ladder_value("red") < 1.0


def test_what_was_asked_before_is_known_and_keys_stay_used(places):
    target = put(taken(begin(places[0], no_seal)), places[1], cipher)
    losses = np.zeros(N)
    again = target.ask(question(7, losses))
    assert again.repeated
    with pytest.raises(IdempotencyKeyReused):
        target.ask(question(37, losses, idempotency_key="key 7"))


def test_losses_of_examples_go_along(places):
    mechanism = ParameterFreeLadder()
    source = begin(places[0], cipher, mechanism)
    target = put(taken(source), places[1], no_seal)
    rng = np.random.default_rng(3)
    for index in range(30, 36):
        losses = (rng.random(N) < 0.4).astype(float)
        here, there = (book.ask(question(index, losses, mechanism)) for book in (source, target))
        assert there.release == here.release


def altered(source, change):
    """Return records of a book, changed by someone who has the key."""
    reader = RecordReader(VaultReader(io.BytesIO(taken(source)), KEY))
    records = [
        (kind, content)
        for kind in ("entry", "ladder", "mark", "kept")
        for content in reader.read_section(kind)
    ]
    file = io.BytesIO()
    vault = VaultWriter(file, KEY.public)
    writer = RecordWriter(vault)
    for kind, content in change(records):
        writer.write_record(kind, content)
    writer.finish()
    vault.finish()
    return file.getvalue()


def _without(kind, number=0):
    def change(records):
        indices = [index for index, record in enumerate(records) if record[0] == kind]
        return [record for index, record in enumerate(records) if index != indices[number]]

    return change


def _with(*added):
    return lambda records: [*records, *added]


def _another_key(records):
    return [
        ("kept", ["key", bytes(32), True]) if record[1][0] == "key" else record
        for record in records
    ]


def _states_swapped(records):
    states = [content[2] for kind, content in records if kind == "ladder"]
    return [
        (kind, [*content[:2], states[(content[0] + 1) % 3]] if kind == "ladder" else content)
        for kind, content in records
    ]


def _a_mark_of_nothing(records):
    return [(kind, [content[0], 999] if kind == "mark" else content) for kind, content in records]


def _a_ladder_too_many(records):
    ladders = [("ladder", [3, "green", records[-1][1][1]])]
    position = next(position for position, record in enumerate(records) if record[0] == "mark")
    return records[:position] + ladders + records[position:]


def _no_secret(records):
    return [(kind, [content[0], None] if kind == "entry" else content) for kind, content in records]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_without("entry", 3), "does not follow|is numbered"),
        (_without("entry", -1), "entry 33, which is missing"),
        (_without("ladder", -1), "without an entry that starts"),
        (_without("kept", 1), "secret side is missing"),
        (_another_key, "noise key is not the one"),
        (_states_swapped, "does not follow from its questions"),
        (_a_mark_of_nothing, "entry 999, which is missing"),
        (_a_ladder_too_many, "without an entry that starts"),
        (_with(("kept", ["copy", b"1", False])), "no ledger has"),
        (_with(("kept", ["colour", b"\0blue", False])), "no ledger has"),
        (_no_secret, "its secret side is missing"),
        (_with(("strange", 1)), "does not write"),
        (lambda records: [], "no entry"),
    ],
)
def test_what_does_not_hold_together_is_refused(tmp_path, change, message):
    source = begin(SqliteStorage(tmp_path / "a.db", create=True), no_seal)
    target = SqliteStorage(tmp_path / "b.db", create=True)
    with pytest.raises(LadderboardError, match=message):
        put(altered(source, change), target, no_seal)
    assert target.books() == []


def test_a_book_is_not_put_under_another_name(tmp_path):
    source = begin(SqliteStorage(tmp_path / "a.db", create=True), no_seal)
    target = SqliteStorage(tmp_path / "b.db", create=True)
    with pytest.raises(BrokenLedger, match="another book"):
        put(taken(source), target, no_seal, "c")
    assert target.books() == []


def test_a_book_that_another_key_closed_is_not_taken(tmp_path):
    source = begin(SqliteStorage(tmp_path / "a.db", create=True), cipher)
    source.encryption = NoEncryption()
    with pytest.raises(WrongKey):
        taken(source)


def test_counts_are_compared(tmp_path):
    file = io.BytesIO()
    vault = VaultWriter(file, KEY.public)
    records = RecordWriter(vault)
    records._counts["entry"] = 1
    records.finish()
    vault.finish()
    with pytest.raises(BrokenDump, match="records are missing"):
        RecordReader(VaultReader(io.BytesIO(file.getvalue()), KEY)).expect_end()


@pytest.mark.parametrize("content", [b"", bytes(8), bytes(10240), b"x" * 20, b"x" * 10240])
def test_strange_records_are_refused(content):
    file = io.BytesIO()
    vault = VaultWriter(file, KEY.public)
    vault.write(content)
    vault.finish()
    with pytest.raises(BrokenDump):
        RecordReader(VaultReader(io.BytesIO(file.getvalue()), KEY)).read_record("entry")


def test_an_export_does_not_block_questions(tmp_path):
    source = begin(SqliteStorage(tmp_path / "a.db", create=True), no_seal)
    file = io.BytesIO()
    records = RecordWriter(VaultWriter(file, KEY.public))
    with source.storage.read_transaction("b") as view:
        before = view.chain_state()
        source.ask(question(50, np.ones(N)))
        export_book(view, source.encryption, records)
    assert records._counts["entry"] == before.entries < source.chain_state().entries


def test_the_time_of_the_world_is_not_needed(tmp_path):
    source = begin(SqliteStorage(tmp_path / "a.db", create=True), no_seal)
    target = put(taken(source), SqliteStorage(tmp_path / "b.db", create=True), no_seal)
    late = Book(target.storage, "b", environment=LedgerEnvironment(clock=lambda: 0))
    late.ask(question(51, np.ones(N)))
    assert late.chain_state().time == source.chain_state().time
