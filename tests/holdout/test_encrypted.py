"""The secret side under a key: nothing of it is in any file in clear."""

import contextlib
import itertools
import os
import sqlite3
import struct
import subprocess
import sys

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import BrokenLedger, InvalidSetting, InvalidState
from ladderboard.ledger import encode

N = 997
KEY = bytes(range(100, 132))
LABELS = np.random.default_rng(0).choice(["aardvark", "zyzzyva"], size=N)


def model(*seed):
    return np.random.default_rng(seed).choice(["aardvark", "zyzzyva"], size=N)


def make(folder, *, sealed, labels=LABELS):
    key_file = folder / "secret.key" if sealed else None
    guard = lb.Holdout.create(
        folder / "guard.db",
        labels=labels,
        classes="any",  # those of the labels would be published
        questions=99,
        ladders=2,
        mechanism=lb.ShakyLadder(step=0.01, compare_noise=0.02, release_noise=0.005, grid=0.005),
        key=KEY,
        key_file=key_file,
    )
    other = guard.ladder("other")
    for at in range(1, 10):
        guard.ask(model(at))
        other.ask(model(at))
    return guard, key_file


def secrets_of(guard):
    """Forms in which a secret would be found in a file."""
    book = guard._book
    found = {"key": KEY, "key in hex": KEY.hex().encode(), "a label": b"zyzzyva"}
    found["which labels"] = (
        np.unique(LABELS, return_inverse=True)[1].astype(np.int8).tobytes()[600:640]
    )
    session = book.mechanism.start(n=N, tape=lb.Tape(key=KEY))
    for at in range(1, 10):
        predictions = model(at)
        risk = float((predictions != LABELS).mean())
        submission = guard._scorer.read(predictions).digest
        session.ask(risk=risk, context=submission)
        for order in "<>":
            found[f"risk {at} {order}"] = struct.pack(f"{order}d", risk)
        found[f"risk {at} in decimals"] = repr(risk).encode()
        found[f"draws {at}"] = encode(list(session.draws))
        found[f"submission {at}"] = submission
    found["state"] = encode(session.progress["state"])
    found["state, named"] = b"slack"
    for name in ("marking", "salt of the holdout", "salt of the key"):
        found[name] = book.read_encrypted(name)
    return found


def everything(folder):
    """The bytes of all files but the key's own."""
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.name != "secret.key"}


def seen(folder, secrets):
    return {
        name
        for name, secret in secrets.items()
        if any(secret in whole for whole in everything(folder).values())
    }


@pytest.fixture
def sealed(tmp_path):
    return make(tmp_path, sealed=True)


def test_nothing_secret_is_in_any_file(tmp_path, sealed):
    guard, _ = sealed
    secrets = secrets_of(guard)
    assert set(everything(tmp_path)) == {
        "guard.db",
        "guard.db-wal",
        "guard.db-shm",
        "guard.db.mark",
    }
    assert seen(tmp_path, secrets) == set()
    guard.backup(tmp_path / "copy.db")
    guard.close_for_good()
    with contextlib.closing(sqlite3.connect(tmp_path / "guard.db")) as link:
        link.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert seen(tmp_path, secrets) == set()


def test_without_a_key_file_the_search_would_find_it(tmp_path):
    guard, _ = make(tmp_path, sealed=False)
    secrets = secrets_of(guard)
    lacking = set(secrets) - seen(tmp_path, secrets)
    assert not [each for each in lacking if not each.endswith(("decimals", "<", "hex"))]


def test_the_key_file_is_needed(tmp_path, sealed):
    _, key_file = sealed
    path = tmp_path / "guard.db"
    with pytest.raises(InvalidState, match="give the key file"):
        lb.Holdout.open(path)
    other = tmp_path / "other.key"
    other.write_text("ab" * 32)
    with pytest.raises(InvalidState, match="wrong"):
        lb.Holdout.open(path, key_file=other)
    for wrong in ("", "ab" * 31, "zz" * 32, "ab" * 33, "\0" * 64):
        other.write_text(wrong)
        with pytest.raises(InvalidSetting, match="not a key file") as refused:
            lb.Holdout.open(path, key_file=other)
        assert not wrong or wrong not in str(refused.value)
    with pytest.raises(InvalidSetting, match="cannot be read"):
        lb.Holdout.open(path, key_file=tmp_path / "none.key")
    assert lb.Holdout.open(path, key_file=key_file).check() == 18


def test_a_key_file_is_not_taken_for_a_guard_without(tmp_path):
    make(tmp_path, sealed=False)
    (tmp_path / "some.key").write_text("ab" * 32)
    with pytest.raises(InvalidState, match="leave the key file out"):
        lb.Holdout.open(tmp_path / "guard.db", key_file=tmp_path / "some.key")


def test_one_key_file_for_two_guards(tmp_path):
    """Each has a key of its own made from it: what is secret in one does not fit the other."""
    paths = [tmp_path / name for name in ("one.db", "two.db")]
    for path in paths:
        lb.Holdout.create(path, labels=[0, 1], questions=9, key_file=tmp_path / "key").ask([0, 0])
    links = [sqlite3.connect(path) for path in paths]
    value = links[0].execute("SELECT value FROM kept WHERE name = 'key'").fetchone()
    links[1].execute("UPDATE kept SET value = ? WHERE name = 'key'", value)
    for link in links:
        link.commit()
        link.close()
    with pytest.raises(InvalidState):
        lb.Holdout.open(paths[1], key_file=tmp_path / "key")
    assert lb.Holdout.open(paths[0], key_file=tmp_path / "key").check() == 1


SWAPS = {
    "secret sides": ("secret", "packed", "place", lb.Holdout.check),
    "states": ("ladder", "state", "number", lambda guard: guard.released),
    "what is kept": ("kept", "value", "name", repr),
}


@pytest.mark.parametrize("name", SWAPS)
def test_rows_that_were_swapped_are_found_out(tmp_path, sealed, name):
    guard, key_file = sealed
    table, column, by, look = SWAPS[name]
    path = tmp_path / "guard.db"
    del guard
    with contextlib.closing(sqlite3.connect(path)) as link:
        rows = link.execute(f"SELECT {by}, {column} FROM {table} ORDER BY {by}").fetchall()
        (first, one), (second, two) = rows[:2]
        change = f"UPDATE {table} SET {column} = ? WHERE {by} = ?"
        link.executemany(change, [(two, first), (one, second)])
        link.commit()
    with pytest.raises(InvalidState, match="cannot be decrypted"):
        look(lb.Holdout.open(path, key_file=key_file))


@pytest.mark.parametrize(("table", "column"), [each[:2] for each in SWAPS.values()])
def test_a_changed_bit_is_found_out(tmp_path, sealed, table, column):
    _, key_file = sealed
    path = tmp_path / "guard.db"
    with contextlib.closing(sqlite3.connect(path)) as link:
        key = {"secret": "place", "ladder": "number", "kept": "name"}[table]
        rows = link.execute(f"SELECT {key}, {column} FROM {table}").fetchall()
        for (which, value), at in itertools.product(rows[:1], (0, 1, 14, 40, -1)):
            wrong = bytearray(value)
            wrong[at] ^= 1
            change = f"UPDATE {table} SET {column} = ? WHERE {key} = ?"
            link.execute(change, (bytes(wrong), which))
            link.commit()
            with pytest.raises((InvalidState, BrokenLedger)):
                lb.Holdout.open(path, key_file=key_file).check()
            link.execute(change, (value, which))
            link.commit()
    assert lb.Holdout.open(path, key_file=key_file).check() == 18


def test_no_two_are_sealed_alike(tmp_path, sealed):
    """Nonces are fresh: the same content twice is not seen to be the same."""
    with contextlib.closing(sqlite3.connect(tmp_path / "guard.db")) as link:
        packed = [row[0] for row in link.execute("SELECT packed FROM secret")]
        packed += [row[0] for row in link.execute("SELECT value FROM kept")]
    nonces = {each[1:13] for each in packed}
    assert len(nonces) == len(packed) == 18 + 5
    assert len({len(each) for each in packed[:18]}) == 1


def test_the_key_file_is_its_owners_only_and_is_taken_again(tmp_path):
    before = os.umask(0)
    try:
        _, key_file = make(tmp_path, sealed=True)
    finally:
        os.umask(before)
    assert key_file.stat().st_mode & 0o777 == 0o600
    written = key_file.read_text()
    lb.Holdout.create(tmp_path / "two.db", labels=[0, 1], questions=9, key_file=key_file)
    assert key_file.read_text() == written


def test_no_key_or_label_is_told_by_what_breaks(tmp_path):
    """A process with the key that breaks down prints no secret: not in a repr, not in a message."""
    guard, key_file = make(tmp_path, sealed=True)
    own = bytes.fromhex(key_file.read_text())
    shown = [repr(guard), str(guard), repr(guard._book), repr(guard._scorer), repr(guard.status())]
    shown += [repr(guard._book.encryption), repr(vars(guard)), repr(guard._book.ladder_sessions)]
    code = f"import ladderboard as lb; lb.Holdout.open({str(tmp_path / 'guard.db')!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    shown.append(done.stderr)
    for text in shown:
        for secret in (KEY, own):
            assert secret.hex() not in text
            assert repr(secret) not in text
        assert "zyzzyva" not in text


def test_labels_are_kept_in_a_size_that_does_not_tell_them(tmp_path):
    sizes = set()
    for at, labels in enumerate((LABELS, ["a"] * N, [*["a"] * (N - 1), "b" * 300])):
        folder = tmp_path / str(at)
        folder.mkdir()
        make(folder, sealed=True, labels=labels)
        sizes.add((folder / "guard.db").stat().st_size)
    assert len(sizes) == 1
