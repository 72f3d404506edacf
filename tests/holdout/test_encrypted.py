"""Encryption: no file contains a secret in plain form."""

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
    for number in range(1, 10):
        guard.ask(model(number))
        other.ask(model(number))
    return guard, key_file


def secrets_of(guard):
    """Forms in which a secret would be found in a file."""
    book = guard._book
    secrets = {"key": KEY, "key in hex": KEY.hex().encode(), "a label": b"zyzzyva"}
    secrets["which labels"] = (
        np.unique(LABELS, return_inverse=True)[1].astype(np.int8).tobytes()[600:640]
    )
    session = book.mechanism.start(n=N, tape=lb.Tape(key=KEY))
    for number in range(1, 10):
        predictions = model(number)
        risk = float((predictions != LABELS).mean())
        submission = guard._scorer.read(predictions).digest
        session.ask(risk=risk, context=submission)
        for order in "<>":
            secrets[f"risk {number} {order}"] = struct.pack(f"{order}d", risk)
        secrets[f"risk {number} in decimals"] = repr(risk).encode()
        secrets[f"draws {number}"] = encode(list(session.draws))
        secrets[f"submission {number}"] = submission
    secrets["state"] = encode(session.mutable_state["state"])
    secrets["state, named"] = b"slack"
    for name in ("marking", "salt of the holdout", "salt of the key"):
        secrets[name] = book.read_encrypted(name)
    return secrets


def everything(folder):
    """The bytes of all files but the key's own."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "secret.key"}


def find_secrets(folder, secrets):
    return {
        name
        for name, secret in secrets.items()
        if any(secret in content for content in everything(folder).values())
    }


@pytest.fixture
def sealed(tmp_path):
    return make(tmp_path, sealed=True)


def test_no_file_contains_a_secret(tmp_path, sealed):
    guard, _ = sealed
    secrets = secrets_of(guard)
    assert set(everything(tmp_path)) == {
        "guard.db",
        "guard.db-wal",
        "guard.db-shm",
        "guard.db.mark",
    }
    assert find_secrets(tmp_path, secrets) == set()
    guard.backup(tmp_path / "copy.db")
    guard.close_for_good()
    with contextlib.closing(sqlite3.connect(tmp_path / "guard.db")) as link:
        link.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert find_secrets(tmp_path, secrets) == set()


def test_unencrypted_secrets_are_found_by_the_search(tmp_path):
    guard, _ = make(tmp_path, sealed=False)
    secrets = secrets_of(guard)
    not_found = set(secrets) - find_secrets(tmp_path, secrets)
    assert not [name for name in not_found if not name.endswith(("decimals", "<", "hex"))]


def test_opening_needs_the_key_file(tmp_path, sealed):
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


def test_a_key_file_is_refused_for_an_unencrypted_guard(tmp_path):
    make(tmp_path, sealed=False)
    (tmp_path / "some.key").write_text("ab" * 32)
    with pytest.raises(InvalidState, match="leave the key file out"):
        lb.Holdout.open(tmp_path / "guard.db", key_file=tmp_path / "some.key")


def test_one_key_file_for_two_guards(tmp_path):
    """Each guard derives its own key, so encrypted data of one is invalid in the other."""
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
def test_swapped_encrypted_rows_are_detected(tmp_path, sealed, name):
    guard, key_file = sealed
    table, column, by, look = SWAPS[name]
    path = tmp_path / "guard.db"
    del guard
    with contextlib.closing(sqlite3.connect(path)) as link:
        rows = link.execute(f"SELECT {by}, {column} FROM {table} ORDER BY {by}").fetchall()
        (first, first_value), (second, second_value) = rows[:2]
        change = f"UPDATE {table} SET {column} = ? WHERE {by} = ?"
        link.executemany(change, [(second_value, first), (first_value, second)])
        link.commit()
    with pytest.raises(InvalidState, match="cannot be decrypted"):
        look(lb.Holdout.open(path, key_file=key_file))


@pytest.mark.parametrize(("table", "column"), [swap[:2] for swap in SWAPS.values()])
def test_a_changed_bit_is_detected(tmp_path, sealed, table, column):
    _, key_file = sealed
    path = tmp_path / "guard.db"
    with contextlib.closing(sqlite3.connect(path)) as link:
        key = {"secret": "place", "ladder": "number", "kept": "name"}[table]
        rows = link.execute(f"SELECT {key}, {column} FROM {table}").fetchall()
        for (row_key, value), position in itertools.product(rows[:1], (0, 1, 14, 40, -1)):
            wrong = bytearray(value)
            wrong[position] ^= 1
            change = f"UPDATE {table} SET {column} = ? WHERE {key} = ?"
            link.execute(change, (bytes(wrong), row_key))
            link.commit()
            with pytest.raises((InvalidState, BrokenLedger)):
                lb.Holdout.open(path, key_file=key_file).check()
            link.execute(change, (value, row_key))
            link.commit()
    assert lb.Holdout.open(path, key_file=key_file).check() == 18


def test_equal_contents_are_encrypted_differently(tmp_path, sealed):
    """Nonces are fresh, so equal contents have different ciphertexts."""
    with contextlib.closing(sqlite3.connect(tmp_path / "guard.db")) as link:
        packed = [row[0] for row in link.execute("SELECT packed FROM secret")]
        packed += [row[0] for row in link.execute("SELECT value FROM kept")]
    nonces = {value[1:13] for value in packed}
    assert len(nonces) == len(packed) == 18 + 5
    assert len({len(value) for value in packed[:18]}) == 1


def test_the_key_file_is_private_and_reused(tmp_path):
    before = os.umask(0)
    try:
        _, key_file = make(tmp_path, sealed=True)
    finally:
        os.umask(before)
    assert key_file.stat().st_mode & 0o777 == 0o600
    written = key_file.read_text()
    lb.Holdout.create(tmp_path / "two.db", labels=[0, 1], questions=9, key_file=key_file)
    assert key_file.read_text() == written


def test_errors_reveal_no_key_or_label(tmp_path):
    """No repr and no error message of a process with the key contains a secret."""
    guard, key_file = make(tmp_path, sealed=True)
    file_key = bytes.fromhex(key_file.read_text())
    shown = [repr(guard), str(guard), repr(guard._book), repr(guard._scorer), repr(guard.status())]
    shown += [repr(guard._book.encryption), repr(vars(guard)), repr(guard._book.ladder_sessions)]
    code = f"import ladderboard as lb; lb.Holdout.open({str(tmp_path / 'guard.db')!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    shown.append(done.stderr)
    for text in shown:
        for secret in (KEY, file_key):
            assert secret.hex() not in text
            assert repr(secret) not in text
        assert "zyzzyva" not in text


def test_the_size_of_stored_labels_reveals_nothing(tmp_path):
    sizes = set()
    for number, labels in enumerate((LABELS, ["a"] * N, [*["a"] * (N - 1), "b" * 300])):
        folder = tmp_path / str(number)
        folder.mkdir()
        make(folder, sealed=True, labels=labels)
        sizes.add((folder / "guard.db").stat().st_size)
    assert len(sizes) == 1
