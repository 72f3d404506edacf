"""What two worlds with the same salts cannot show: salts that are told, and hashes that tell.

A commitment hides what it binds from whoever does not know its salt. So nobody is told one before
the close, but that of their own submission. And with salts that are fresh in every play, hashes
show neither what they are of nor which of it is equal: all that is left of them is which hashes are
the same, and that is the same in two worlds that differ in labels and splits.
"""

import hashlib
import itertools
import json
import re

import numpy as np
import pytest

from ladderboard.board import Caller, Role, View
from ladderboard.holdout import Scorer, describe_sample, sample_digest
from ladderboard.ledger import Book, Commitment, Opening, Receipt, SecretSide, digest, write_array
from ladderboard.server import _middleware
from support.two_worlds.board_session import holdout_table
from support.two_worlds.disclosures import (
    check_disclosures,
    check_receipt_routes,
    check_receipts,
    find_disclosures,
)

RUN = re.compile(rb"[\w-]{16,}")  # every hash, id, token and signature, and long words
HEX = re.compile(rb"(?:[0-9a-f]{16}){1,4}")
KEY = hashlib.sha256(b"the noise key of all plays").digest()


@pytest.fixture
def run_fresh(run_world, monkeypatch):
    """Play one world twice and the other once; all is fresh in each but the noise and the clock."""

    def run(script):
        make = Book.create
        keyed = staticmethod(lambda *args, **how: make(*args, **{**how, "key": KEY}))
        monkeypatch.setattr(Book, "create", keyed)
        fresh = ((0, b"a"), (0, b"b"), (1, b"c"))
        return [run_world(world, hide=False, seed=seed, script=script) for world, seed in fresh]

    return run


class Ear:
    """Hears what is secret, for leaks to tell."""

    def __init__(self, monkeypatch):
        self.kept, self.side, self.rows = {}, None, None
        kept, written, score = Book._kept, SecretSide.commit_and_pack, Scorer.score

        def hear_kept(own, view, what):
            self.kept[what] = kept(own, view, what)
            return self.kept[what]

        def hear_side(own):
            self.side = own
            return written(own)

        def hear_rows(own, submission):
            self.rows = own._scored(submission.values)
            return score(own, submission)

        monkeypatch.setattr(Book, "_kept", hear_kept)
        monkeypatch.setattr(SecretSide, "commit_and_pack", hear_side)
        monkeypatch.setattr(Scorer, "score", hear_rows)


def tell_in_receipt(monkeypatch, ear):
    describe = Receipt.describe
    monkeypatch.setattr(
        Receipt, "describe", lambda own: {**describe(own), "opens": ear.side.salt.hex()}
    )


def tell_by_one_salt(monkeypatch, ear):
    """One salt for both sides of an entry: that of the receipt opens the other, too."""
    commitment = property(lambda own: Commitment("secret", own.content, own.submission_salt))
    written = SecretSide.commit_and_pack
    monkeypatch.setattr(SecretSide, "commitment", commitment)
    monkeypatch.setattr(
        SecretSide, "commit_and_pack", lambda own: written(own._replace(salt=own[-1]))
    )


def tell_on_board(monkeypatch, ear):
    summary = View.summary

    def told(own):
        return {**summary(own), "salt": [*own._board.book.read_encrypted("salt of the holdout")]}

    monkeypatch.setattr(View, "summary", told)


def tell_in_log(monkeypatch, ear):
    note = _middleware.RequestMiddleware._log_request

    def write(own, reply, seconds):
        note(own, reply, seconds)
        own._log.write("drawn", key=ear.kept["key"][:16].hex())

    monkeypatch.setattr(_middleware.RequestMiddleware, "_log_request", write)


def tell_everybody(monkeypatch, ear):
    """Show any submission to anybody."""
    one = View.submission

    def told(own, submission):
        return one(View(own._board, Caller(Role.ORGANISER)), submission)

    monkeypatch.setattr(View, "submission", told)


TOLD = {
    "receipt": (tell_in_receipt, "secret"),
    "one salt": (tell_by_one_salt, "secret, submission"),
    "board": (tell_on_board, "salt of the holdout"),
    "log": (tell_in_log, "key"),
    "everybody": (tell_everybody, "submission"),
}


@pytest.mark.parametrize("name", TOLD)
def test_salts_that_are_told_are_found(run_world, monkeypatch, name):
    leak, what = TOLD[name]
    leak(monkeypatch, Ear(monkeypatch))
    server = run_world(0, hide=False, script="run_short")
    found = find_disclosures(server)
    assert {each.secret for each in found if not each.allowed} == {what}


def test_the_end_alone_tells_no_salt(run_world):
    server = run_world(0, hide=False, script="run_to_close")
    assert {"standings"} in server.salt_uses.domains.values()
    disclosures = find_disclosures(server)
    assert disclosures
    assert all(disclosure.allowed for disclosure in disclosures)


def test_hashes_tell_nothing(run_fresh, tmp_path):
    servers = run_fresh("run_all_hashes")
    assert first_difference(*servers) is None
    for server in servers:
        assert guess_holdouts(server) == []
        check_disclosures(server)
        check_receipt_routes(server)
        checked = check_receipts(server, tmp_path)
        assert checked.receipts
        assert checked.entries == len(server.entries)
    # Every hash of a chain is its own, and none comes in another play.
    hashes = [hashes_of(server) for server in servers]
    assert {each for each, _ in hashes[0]} == {"holdout", "key", "submission", "secret", "previous"}
    assert [name for name, _ in hashes[0]].count("holdout") == 2  # labels were corrected
    values = [[value for _, value in each] for each in hashes]
    assert all(len({*each}) == len(each) > 30 for each in values)
    assert {*values[0]} & {*values[1]} == {*values[0]} & {*values[2]} == {"0" * 64}


def hashes_of(server):
    """Return every hash in a chain but those of all rules, which come again when rules do."""
    fields = [item for each in server.entries for item in json.loads(each).items()]
    hashes = [(name, value) for name, value in fields if re.fullmatch("[0-9a-f]{64}", f"{value}")]
    return [each for each in hashes if each[0] != "commitment"]


def salt_holdout(monkeypatch, made):
    """Make the salt of the labels from the noise key and the id of the ledger."""
    create, hidden, names = Book.create, Opening.make_commitments, []

    def named(storage, opening, *, name, **how):
        names.append(name)
        return create(storage, opening, name=name, **how)

    def salted(own, key, salts):
        return hidden(own, key, (made(key, bytes.fromhex(names[-1])), salts[1]))

    monkeypatch.setattr(Book, "create", staticmethod(named))
    monkeypatch.setattr(Opening, "make_commitments", salted)


def hash_without_salt(monkeypatch, ear):
    salt_holdout(monkeypatch, lambda key, name: b"")


def hash_with_key(monkeypatch, ear):
    """Who is told the noise key at the close can try labels, although they were not opened."""
    salt_holdout(monkeypatch, lambda key, name: hashlib.sha256(b"salt" + key).digest())


def hash_with_public_salt(monkeypatch, ear):
    """A salt that is fresh, and that everybody is told."""
    salt_holdout(monkeypatch, lambda key, name: name)


def hash_risks_alike(monkeypatch, ear):
    """One salt for all risks: equal ones have equal hashes."""
    written = SecretSide.commit_and_pack
    alike = property(lambda own: Commitment("secret", own.risk, ear.kept["marking"]))

    def shown(own):
        submission, _, packed = written(own)
        return submission, own.commitment.hash, packed

    monkeypatch.setattr(SecretSide, "commitment", alike)
    monkeypatch.setattr(SecretSide, "commit_and_pack", shown)


def hash_public_rows(monkeypatch, ear):
    """A receipt with the digest of what was scored: it shows which rows are public."""
    describe = Receipt.describe

    def told(own):
        rows = digest("predictions", write_array(np.asarray(ear.rows)))
        return {**describe(own), "submission": rows.hex()}

    monkeypatch.setattr(Receipt, "describe", told)


HASHES = {
    "no salt": (hash_without_salt, "both"),
    "key": (hash_with_key, "apart"),
    "public salt": (hash_with_public_salt, "guessed"),
    "risks alike": (hash_risks_alike, "apart"),
    "public rows": (hash_public_rows, "apart"),
}


@pytest.mark.parametrize("name", HASHES)
def test_hashes_that_tell_are_found(run_fresh, monkeypatch, name):
    leak, by = HASHES[name]
    leak(monkeypatch, Ear(monkeypatch))
    found = run_fresh("run_short")
    assert (first_difference(*found) is not None) == (by in {"apart", "both"})
    assert bool(guess_holdouts(found[0])) == (by in {"guessed", "both"})


def said_by(server):
    """Return everything that is public or somebody's own, in the order in which it came."""
    said = [(each.path.split("/")[-1], b"%d %b%b" % (each.status, each.headers, each.body))
            for each in server.replies]  # fmt: skip
    kept = {each["step"]: each["output"] for each in server.steps}
    lines = [(at, each.encode()) for at in ("log", "logging", "warnings") for each in kept[at]]
    return [*said, *lines, *(("entry", each) for each in server.entries)]


def runs(server):
    return {each for _, text in said_by(server) for each in RUN.findall(text)}


def first_difference(one, again, other):
    """Return where two worlds part, or None, when fresh things go by the order of their coming.

    What two runs of one world have in common owes nothing to salts, and stays as it is.
    """
    common = runs(one) & runs(again)
    left, right = (named(each, common) for each in (one, other))
    for mine, its in zip(left, right, strict=False):
        if mine != its:
            return mine, its
    return None if len(left) == len(right) else (len(left), len(right))


def named(server, common):
    names = {}

    def name(found):
        run = found[0]
        return run if run in common else names.setdefault(run, b"<%d>" % len(names))

    return [RUN.sub(name, text) for _, text in said_by(server)]


def guess_holdouts(server):
    """Return the holdouts that can be found among the hashes, by trying all visible salts."""
    seen = runs(server)
    salts = {bytes.fromhex(each.decode()) for each in seen if HEX.fullmatch(each)}
    found = []
    for world, corrected in itertools.product((0, 1), (False, True)):
        content = sample_digest(describe_sample(holdout_table(world, corrected=corrected)))
        tried = [digest("holdout", {"salt": salt, "content": content})
                 for salt in (b"", bytes(32), *salts)]  # fmt: skip
        if {each.hex().encode() for each in (*tried, content)} & seen:
            found.append((world, corrected))
    return found
