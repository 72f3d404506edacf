"""What two worlds with the same salts cannot show: disclosed salts, and hashes that leak.

A commitment hides its content only as long as its salt is secret. So no salt is disclosed before
the close, except that of a submission to its own team. With fresh salts in every run, hashes show
neither their content nor which contents are equal: all that remains is which hashes are the same,
and that must be the same in two worlds that differ in labels and splits.
"""

import hashlib
import itertools
import json
import re

import numpy as np
import pytest

from ladderboard.board import Caller, Role, View
from ladderboard.holdout import Scorer, describe_sample, sample_digest
from ladderboard.ledger import (
    Book,
    Commitment,
    Opening,
    Receipt,
    SecretSide,
    _book,
    digest,
    write_array,
)
from ladderboard.server import _middleware
from support.two_worlds.board_session import holdout_table
from support.two_worlds.disclosures import (
    check_disclosures,
    check_receipt_routes,
    check_receipts,
    find_disclosures,
)

WORD = re.compile(rb"[\w-]{16,}")  # every hash, id, token and signature
HEX = re.compile(rb"(?:[0-9a-f]{16}){1,4}")
KEY = hashlib.sha256(b"the noise key of all runs").digest()


@pytest.fixture
def run_fresh(run_world, monkeypatch):
    """Run one world twice and the other once, with the same noise and clock, the rest fresh."""

    def run(script):
        create = Book.create
        keyed = staticmethod(lambda *args, **options: create(*args, **{**options, "key": KEY}))
        monkeypatch.setattr(Book, "create", keyed)
        worlds_and_seeds = ((0, b"a"), (0, b"b"), (1, b"c"))
        return [
            run_world(world, hide=False, seed=seed, script=script)
            for world, seed in worlds_and_seeds
        ]

    return run


class SecretSpy:
    """Records secrets, for the leaks below to disclose."""

    def __init__(self, monkeypatch):
        self.secrets, self.side, self.rows = {}, None, None
        keep_secret, commit, score = _book._decrypt_value, SecretSide.commit_and_pack, Scorer.score

        def spy_on_book(view, name, encryption):
            self.secrets[name] = keep_secret(view, name, encryption)
            return self.secrets[name]

        def spy_on_side(side):
            self.side = side
            return commit(side)

        def spy_on_scorer(scorer, submission):
            self.rows = scorer._scored_rows(submission.values)
            return score(scorer, submission)

        monkeypatch.setattr(_book, "_decrypt_value", spy_on_book)
        monkeypatch.setattr(SecretSide, "commit_and_pack", spy_on_side)
        monkeypatch.setattr(Scorer, "score", spy_on_scorer)


def leak_in_receipt(monkeypatch, spy):
    describe = Receipt.describe
    monkeypatch.setattr(
        Receipt, "describe", lambda receipt: {**describe(receipt), "opens": spy.side.salt.hex()}
    )


def leak_by_one_salt(monkeypatch, spy):
    """Use one salt for both sides of an entry: the receipt's salt opens the other, too."""
    commitment = property(lambda side: Commitment("secret", side.content, side.submission_salt))
    commit = SecretSide.commit_and_pack
    monkeypatch.setattr(SecretSide, "commitment", commitment)
    monkeypatch.setattr(
        SecretSide, "commit_and_pack", lambda side: commit(side._replace(salt=side.submission_salt))
    )


def leak_on_board(monkeypatch, spy):
    summary = View.summary

    def leaking(view):
        return {**summary(view), "salt": [*view._board.book.read_encrypted("salt of the holdout")]}

    monkeypatch.setattr(View, "summary", leaking)


def leak_in_log(monkeypatch, spy):
    log_request = _middleware.RequestMiddleware._log_request

    def write(middleware, reply, seconds):
        log_request(middleware, reply, seconds)
        middleware._log.write("drawn", key=spy.secrets["key"][:16].hex())

    monkeypatch.setattr(_middleware.RequestMiddleware, "_log_request", write)


def leak_submissions(monkeypatch, spy):
    """Show every submission to everyone."""
    submission_of = View.submission

    def leaking(view, submission):
        return submission_of(View(view._board, Caller(Role.ORGANISER)), submission)

    monkeypatch.setattr(View, "submission", leaking)


DISCLOSURES = {
    "receipt": (leak_in_receipt, "secret"),
    "one salt": (leak_by_one_salt, "secret, submission"),
    "board": (leak_on_board, "salt of the holdout"),
    "log": (leak_in_log, "key"),
    "everybody": (leak_submissions, "submission"),
}


@pytest.mark.parametrize("name", DISCLOSURES)
def test_disclosed_salts_are_found(run_world, monkeypatch, name):
    leak, secret = DISCLOSURES[name]
    leak(monkeypatch, SecretSpy(monkeypatch))
    server = run_world(0, hide=False, script="run_few_submissions")
    disclosures = find_disclosures(server)
    assert {disclosure.secret for disclosure in disclosures if not disclosure.allowed} == {secret}


def test_closing_discloses_no_secret_salt(run_world):
    server = run_world(0, hide=False, script="run_to_close")
    assert {"standings"} in server.salt_uses.domains.values()
    disclosures = find_disclosures(server)
    assert disclosures
    assert all(disclosure.allowed for disclosure in disclosures)


def test_hashes_leak_nothing(run_fresh, tmp_path):
    servers = run_fresh("run_all_hashes")
    assert first_difference(*servers) is None
    for server in servers:
        assert guess_holdouts(server) == []
        check_disclosures(server)
        check_receipt_routes(server)
        checked = check_receipts(server, tmp_path)
        assert checked.receipts
        assert checked.entries == len(server.entries)
    # The hashes of a chain are distinct, and none occurs in another run.
    hashes = [hashes_of(server) for server in servers]
    assert {name for name, _ in hashes[0]} == {"holdout", "key", "submission", "secret", "previous"}
    assert [name for name, _ in hashes[0]].count("holdout") == 2  # labels were corrected
    values = [[value for _, value in pairs] for pairs in hashes]
    assert all(len({*hash_values}) == len(hash_values) > 30 for hash_values in values)
    assert {*values[0]} & {*values[1]} == {*values[0]} & {*values[2]} == {"0" * 64}


def hashes_of(server):
    """Return every hash in a chain except commitments to rules, which recur with the rules."""
    fields = [item for entry in server.entries for item in json.loads(entry).items()]
    hashes = [(name, value) for name, value in fields if re.fullmatch("[0-9a-f]{64}", f"{value}")]
    return [pair for pair in hashes if pair[0] != "commitment"]


def salt_holdout(monkeypatch, make_salt):
    """Make the salt of the labels from the noise key and the id of the ledger."""
    create, make_commitments, names = Book.create, Opening.make_commitments, []

    def create_and_record_name(storage, opening, *, name, **options):
        names.append(name)
        return create(storage, opening, name=name, **options)

    def salted(opening, key, salts):
        return make_commitments(opening, key, (make_salt(key, bytes.fromhex(names[-1])), salts[1]))

    monkeypatch.setattr(Book, "create", staticmethod(create_and_record_name))
    monkeypatch.setattr(Opening, "make_commitments", salted)


def hash_without_salt(monkeypatch, spy):
    salt_holdout(monkeypatch, lambda key, name: b"")


def hash_with_key(monkeypatch, spy):
    """The noise key, published at the close, lets anyone try labels that were not opened."""
    salt_holdout(monkeypatch, lambda key, name: hashlib.sha256(b"salt" + key).digest())


def hash_with_public_salt(monkeypatch, spy):
    """Use a fresh salt that is public."""
    salt_holdout(monkeypatch, lambda key, name: name)


def hash_risks_alike(monkeypatch, spy):
    """Use one salt for all risks: equal risks get equal hashes."""
    commit = SecretSide.commit_and_pack
    alike = property(lambda side: Commitment("secret", side.risk, spy.secrets["marking"]))

    def shown(side):
        submission, _, packed = commit(side)
        return submission, side.commitment.hash, packed

    monkeypatch.setattr(SecretSide, "commitment", alike)
    monkeypatch.setattr(SecretSide, "commit_and_pack", shown)


def hash_public_rows(monkeypatch, spy):
    """Put the digest of the scored rows into the receipt: it shows which rows are public."""
    describe = Receipt.describe

    def leaking(receipt):
        rows = digest("predictions", write_array(np.asarray(spy.rows)))
        return {**describe(receipt), "submission": rows.hex()}

    monkeypatch.setattr(Receipt, "describe", leaking)


HASHES = {
    "no salt": (hash_without_salt, "both"),
    "key": (hash_with_key, "apart"),
    "public salt": (hash_with_public_salt, "guessed"),
    "risks alike": (hash_risks_alike, "apart"),
    "public rows": (hash_public_rows, "apart"),
}


@pytest.mark.parametrize("name", HASHES)
def test_leaking_hashes_are_found(run_fresh, monkeypatch, name):
    leak, detected_by = HASHES[name]
    leak(monkeypatch, SecretSpy(monkeypatch))
    servers = run_fresh("run_few_submissions")
    assert (first_difference(*servers) is not None) == (detected_by in {"apart", "both"})
    assert bool(guess_holdouts(servers[0])) == (detected_by in {"guessed", "both"})


def visible_texts(server):
    """Return all texts that the public or a team can see, in order."""
    replies = [(reply.path.split("/")[-1], b"%d %b%b" % (reply.status, reply.headers, reply.body))
            for reply in server.replies]  # fmt: skip
    outputs = {step["step"]: step["output"] for step in server.steps}
    lines = [
        (name, text.encode()) for name in ("log", "logging", "warnings") for text in outputs[name]
    ]
    return [*replies, *lines, *(("entry", entry) for entry in server.entries)]


def visible_words(server):
    return {word for _, text in visible_texts(server) for word in WORD.findall(text)}


def first_difference(first, repeated, second):
    """Return where two worlds differ, or None, with fresh words numbered in order of appearance.

    Words that two runs of one world have in common do not depend on salts and stay as they are.
    """
    common = visible_words(first) & visible_words(repeated)
    left, right = (number_words(server, common) for server in (first, second))
    for left_text, right_text in zip(left, right, strict=False):
        if left_text != right_text:
            return left_text, right_text
    return None if len(left) == len(right) else (len(left), len(right))


def number_words(server, common):
    numbers = {}

    def name(match):
        run = match[0]
        return run if run in common else numbers.setdefault(run, b"<%d>" % len(numbers))

    return [WORD.sub(name, text) for _, text in visible_texts(server)]


def guess_holdouts(server):
    """Return the holdouts whose hash is found by trying all visible salts."""
    visible = visible_words(server)
    salts = {bytes.fromhex(word.decode()) for word in visible if HEX.fullmatch(word)}
    guessed = []
    for world, corrected in itertools.product((0, 1), (False, True)):
        content = sample_digest(describe_sample(holdout_table(world, corrected=corrected)))
        tried = [digest("holdout", {"salt": salt, "content": content})
                 for salt in (b"", bytes(32), *salts)]  # fmt: skip
        if {hash_.hex().encode() for hash_ in (*tried, content)} & visible:
            guessed.append((world, corrected))
    return guessed
