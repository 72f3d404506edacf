"""``guard export``, ``backup`` and ``restore``."""

import hashlib
import json
import shutil
import stat
import struct

import pytest

import ladderboard as lb


def test_an_export_is_verified_with_a_hash_only(run_guard, guard_folder):
    """Verified by independent code, with hashlib and json only."""
    for name in ("half", "good"):
        run_guard("ask", "guard.db", f"{name}.csv")
    report = run_guard("export", "guard.db", "--out", "ledger.jsonl", "--json").json
    previous, kinds = "00" * 32, []
    for number, line in enumerate((guard_folder / "ledger.jsonl").read_bytes().splitlines()):
        entry = json.loads(line)
        assert (entry["number"], entry["previous"]) == (number, previous)
        prefix = b"ladderboard:1:entry\n" + struct.pack(">Q", len(line))
        previous = hashlib.sha256(prefix + line).hexdigest()
        kinds.append(entry["kind"])
    assert kinds == ["opened", "ladder", "question", "question"]
    assert (report["head"], report["entries"]) == (previous, 4)
    assert (guard_folder / "ledger.jsonl").read_bytes().endswith(b"}\n")


def test_an_export_prints_advice_and_never_overwrites(run_guard, guard_folder):
    result = run_guard("export", "guard.db", "--out", "ledger.jsonl")
    assert "head" in result.out
    first_export = (guard_folder / "ledger.jsonl").read_bytes()
    run_guard("ask", "guard.db", "half.csv")
    result = run_guard("export", "guard.db", "--out", "ledger.jsonl")
    assert (result.code, result.out) == (2, "")
    assert "already" in result.err
    assert (guard_folder / "ledger.jsonl").read_bytes() == first_export
    assert run_guard("export", "guard.db", "--out", "nowhere/ledger.jsonl").code == 4


def test_an_export_needs_no_key_and_holds_no_secret(run_guard, guard_folder):
    arguments = ("--labels", "labels.csv", "--questions", "5", "--key-file", "key")
    ladder = '{"mechanism": "ladder", "step": 0.1, "grid": 0.05}'
    run_guard("create", "sealed.db", *arguments, "--mechanism", ladder)
    run_guard("ask", "sealed.db", "good.csv", "--key-file", "key")
    run_guard("ask", "sealed.db", "near.csv", "--key-file", "key")
    (guard_folder / "key").unlink()
    assert run_guard("export", "sealed.db", "--out", "ledger.jsonl").code == 0
    data = json.loads((guard_folder / "ledger.jsonl").read_text().splitlines()[-1])
    assert (data["value"], data["improved"]) == (0.25, False)
    assert not {"risk", "losses", "labels", "key", "state"} & set(data)
    assert "0.2475" not in (guard_folder / "ledger.jsonl").read_text()  # the risk of near.csv


def test_a_failed_export_leaves_no_file(run_guard, guard_folder, monkeypatch):
    def broken(forms, book=None):
        yield from []
        raise lb.errors.BrokenLedger("Entry 0 of the ledger was changed.")

    monkeypatch.setattr("ladderboard.holdout._export.iter_checked_entries", broken)
    result = run_guard("export", "guard.db", "--out", "ledger.jsonl")
    assert result.code == 4
    assert not (guard_folder / "ledger.jsonl").exists()


def test_a_copy_answers_only_after_it_was_charged(run_guard, guard_folder):
    run_guard("ask", "guard.db", "half.csv")
    result = run_guard("backup", "guard.db", "copy.db")
    assert result.code == 0
    assert "ladderboard guard restore copy.db --charge N" in result.out
    assert stat.S_IMODE((guard_folder / "copy.db").stat().st_mode) == 0o600
    error = run_guard("ask", "copy.db", "good.csv", "--json")
    assert (error.code, error.json["error"]["code"]) == (4, "old_copy")
    report = run_guard("restore", "copy.db", "--charge", "2", "--json").json
    assert (report["charged"], report["remaining"]) == (2, 2)
    assert run_guard("ask", "copy.db", "good.csv", "--json").json["remaining"] == 1
    assert "2 of them charged for an old copy" in run_guard("status", "copy.db").out
    assert run_guard("status", "copy.db", "--check").code == 0


def test_an_old_copy_that_was_put_back_is_refused(run_guard, guard_folder):
    run_guard("ask", "guard.db", "half.csv")
    shutil.copy("guard.db", "old.db")
    run_guard("ask", "guard.db", "good.csv")
    shutil.copy("old.db", "guard.db")
    for verb in (["ask", "guard.db", "near.csv"], ["status", "guard.db"]):
        result = run_guard(*verb)
        assert (result.code, result.out) == (4, "")
        assert "guard restore" in result.err
    assert run_guard("export", "guard.db", "--out", "ledger.jsonl").code == 4
    assert run_guard("restore", "guard.db", "--charge", "0").code == 2
    result = run_guard("restore", "guard.db", "--charge", "1")
    assert result == (0, "1 question was charged; 3 left. The ledger records it.\n", "")
    assert run_guard("ask", "guard.db", "near.csv").code == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["restore", "guard.db", "--charge", "-1"], "at least 0"),
        (["restore", "guard.db", "--charge", "6"], "Questions left: 5"),
        (["restore", "guard.db", "--charge", "few"], "Expected a whole number"),
        (["restore", "nothing.db", "--charge", "1"], "There is no file nothing.db"),
        (["restore", "unix:/run/guard.sock", "--charge", "1"], "needs the guard's file"),
        (["restore", "guard.db", "--charge", "1", "--key-file", "none"], "cannot be read"),
        (["backup", "guard.db", "half.csv"], "half.csv exists already"),
        (["backup", "guard.db", "nowhere/copy.db"], "There is no directory nowhere"),
        (["backup", "guard.db", "left.db"], "left.db-wal belongs to another file"),
        (["status", "guard.db", "--key-file", "key"], "leave the key file out"),
        (["create", "guard.db", "--labels", "labels.csv", "--questions", "3"], "exists already"),
        (
            ["create", "left.db", "--labels", "labels.csv", "--questions", "3"],
            "left.db-wal belongs",
        ),
        (["backup", "nothing.db", "copy.db"], "There is no file nothing.db"),
        (["backup", "http://127.0.0.1:8765", "copy.db"], "needs the guard's file"),
        (["export", ".", "--out", "ledger.jsonl"], ". is a directory"),
        (["export", "unix:x", "--out", "ledger.jsonl"], "needs the guard's file"),
        (["export", "guard.db", "--out", "--json"], "--out needs a value"),
        (["status", "nothing.db"], "There is no file nothing.db"),
        (["status", "unix:/run/guard.sock", "--check"], "--check needs the secret side"),
    ],
)
def test_what_is_refused_changes_nothing(
    run_guard, guard_folder, guard_contents, arguments, sentence
):
    (guard_folder / "left.db-wal").touch()
    (guard_folder / "key").write_text("ab" * 32)
    contents_before = guard_contents()
    files = sorted(path.name for path in guard_folder.glob("*[!lm]"))  # without -wal and -shm
    result = run_guard(*arguments, "--json")
    assert result.code == 2
    assert sentence in result.json["error"]["message"]
    assert guard_contents() == contents_before
    assert sorted(path.name for path in guard_folder.glob("*[!lm]")) == files


def _truncate(path):
    path.write_bytes(path.read_bytes()[: 4096 + 100])


def _overwrite(path):
    path.write_bytes(path.read_bytes()[:4096].ljust(path.stat().st_size, b"x"))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_text("id,label\n"),
        lambda path: path.write_bytes(b""),
        _truncate,
        _overwrite,
    ],
    ids=["another file", "empty", "cut", "overwritten"],
)
@pytest.mark.parametrize(
    "arguments",
    [["ask", "guard.db", "half.csv"], ["status", "guard.db"], ["backup", "guard.db", "to"]],
)
def test_a_damaged_guard_exits_with_4(run_guard, guard_folder, spoil, arguments):
    spoil(guard_folder / "guard.db")
    result = run_guard(*arguments)
    assert (result.code, result.out) == (4, "")
    assert not (guard_folder / "to").exists()


@pytest.fixture
def killed_guard(run_guard, guard_folder):
    """A guard with a copy made after one question and three more in its write-ahead log."""
    run_guard("ask", "guard.db", "half.csv")
    run_guard("backup", "guard.db", "copy.db")
    guard = lb.Holdout.open("guard.db")
    for name in ("good", "near"):
        guard.ask(guard_folder / f"{name}.csv")
    for end in ("", "-wal", "-shm", ".mark"):  # as a kill leaves them
        shutil.copy(f"guard.db{end}", f"kept.db{end}")
    guard.close()
    for end in ("", "-wal", "-shm", ".mark"):
        (guard_folder / f"guard.db{end}").unlink(missing_ok=True)
        (guard_folder / f"kept.db{end}").rename(f"guard.db{end}")
    assert (guard_folder / "guard.db-wal").stat().st_size
    return guard_folder


def test_a_copy_beside_the_write_ahead_log_of_another_file_is_refused_unchanged(
    run_guard, killed_guard
):
    shutil.copy("copy.db", "guard.db")
    for arguments in (["restore", "guard.db", "--charge", "2"], ["status", "guard.db"]):
        result = run_guard(*arguments)
        assert (result.code, result.out) == (4, "")
        assert "guard.db-wal next to it belongs to another file" in result.err
    with pytest.raises(lb.errors.InvalidState, match="another file"):
        lb.Holdout.restore("guard.db", 2)
    assert (killed_guard / "guard.db").read_bytes() == (killed_guard / "copy.db").read_bytes()
    for end in ("-wal", "-shm"):
        (killed_guard / f"guard.db{end}").rename(f"away{end}")
    assert run_guard("restore", "guard.db", "--charge", "1").code == 2  # the mark knows of two
    assert run_guard("restore", "guard.db", "--charge", "2").code == 0
    assert run_guard("status", "guard.db", "--check").code == 0


def test_a_restored_copy_with_its_own_write_ahead_log_is_accepted(run_guard, killed_guard):
    guard = lb.Holdout.restore("copy.db", 1)
    guard.ask(killed_guard / "near.csv")
    assert (killed_guard / "copy.db-wal").stat().st_size
    assert run_guard("status", "copy.db").code == 0
    assert run_guard("restore", "copy.db", "--charge", "0").code == 0
    guard.close()


def test_restore_replaces_the_file_and_keeps_the_old_one(run_guard, killed_guard):
    result = run_guard("restore", "guard.db", "--from", "copy.db", "--charge", "1")
    assert result.code == 2  # the mark knows of two
    assert not list(killed_guard.glob("*.re[ps]*"))  # nothing was moved
    report = run_guard("status", "guard.db", "--json").json
    assert report["asked"] == 3
    result = run_guard("restore", "guard.db", "--from", "copy.db", "--charge", "2")
    assert result == (0, "2 questions were charged; 2 left. The ledger records it.\n", "")
    assert run_guard("status", "guard.db", "--check").code == 0
    (killed_guard / "guard.db.replaced-1.mark").write_bytes(b"")
    assert lb.ledger.SqliteStorage("guard.db.replaced-1").books()
    assert run_guard("restore", "guard.db", "--from", "copy.db", "--charge", "3").code == 0
    assert (killed_guard / "guard.db.replaced-2").exists()


def test_restore_to_a_path_without_a_file(run_guard, killed_guard):
    assert run_guard("restore", "new.db", "--from", "copy.db", "--charge", "1").code == 0
    assert run_guard("restore", "new.db", "--from", "nothing.db", "--charge", "1").code == 2
    (killed_guard / "folder").mkdir()
    for name in ("folder", "unix:x"):
        assert run_guard("restore", name, "--from", "copy.db", "--charge", "1").code == 2
    assert run_guard("restore", "new.db", "--from", "new.db", "--charge", "1").code == 2
    assert run_guard("status", "new.db", "--check").code == 0


def test_a_damaged_copy_is_not_charged(run_guard, guard_folder):
    run_guard("ask", "guard.db", "half.csv")
    run_guard("backup", "guard.db", "copy.db")
    intact = (guard_folder / "copy.db").read_bytes()
    codes = []
    for page in range(1, len(intact) // 4096):
        start = 4096 * page
        (guard_folder / "copy.db").write_bytes(intact[:start] + b"\xff" * 64 + intact[start + 64 :])
        codes.append(run_guard("restore", "copy.db", "--charge", "1").code)
        assert not (guard_folder / "copy.db.mark").exists() or codes[-1] == 0
        for end in ("-wal", "-shm", ".mark"):
            (guard_folder / f"copy.db{end}").unlink(missing_ok=True)
    assert set(codes) == {4}
