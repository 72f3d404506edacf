"""``guard export``, ``backup`` and ``restore``."""

import hashlib
import json
import shutil
import stat
import struct

import pytest

import ladderboard as lb


def test_an_export_can_be_followed_with_nothing_but_a_hash(run, made):
    """As somebody would who has never seen our code."""
    for name in ("half", "good"):
        run("ask", "guard.db", f"{name}.csv")
    found = run("export", "guard.db", "--out", "ledger.jsonl", "--json").json
    previous, kinds = "00" * 32, []
    for number, line in enumerate((made / "ledger.jsonl").read_bytes().splitlines()):
        entry = json.loads(line)
        assert (entry["number"], entry["previous"]) == (number, previous)
        prefix = b"ladderboard:1:entry\n" + struct.pack(">Q", len(line))
        previous = hashlib.sha256(prefix + line).hexdigest()
        kinds.append(entry["kind"])
    assert kinds == ["opened", "ladder", "question", "question"]
    assert (found["head"], found["entries"]) == (previous, 4)
    assert (made / "ledger.jsonl").read_bytes().endswith(b"}\n")


def test_an_export_is_advised_upon_and_never_overwrites(run, made):
    done = run("export", "guard.db", "--out", "ledger.jsonl")
    assert "head" in done.out
    before = (made / "ledger.jsonl").read_bytes()
    run("ask", "guard.db", "half.csv")
    done = run("export", "guard.db", "--out", "ledger.jsonl")
    assert (done.code, done.out) == (2, "")
    assert "already" in done.err
    assert (made / "ledger.jsonl").read_bytes() == before
    assert run("export", "guard.db", "--out", "nowhere/ledger.jsonl").code == 4


def test_an_export_needs_no_key_and_tells_no_secret(run, made):
    words = ("--labels", "labels.csv", "--questions", "5", "--key-file", "key")
    ladder = '{"mechanism": "ladder", "step": 0.1, "grid": 0.05}'
    run("create", "sealed.db", *words, "--mechanism", ladder)
    run("ask", "sealed.db", "good.csv", "--key-file", "key")
    run("ask", "sealed.db", "near.csv", "--key-file", "key")
    (made / "key").unlink()
    assert run("export", "sealed.db", "--out", "ledger.jsonl").code == 0
    told = json.loads((made / "ledger.jsonl").read_text().splitlines()[-1])
    assert (told["value"], told["improved"]) == (0.25, False)
    assert not {"risk", "losses", "labels", "key", "state"} & set(told)
    assert "0.2475" not in (made / "ledger.jsonl").read_text()  # the risk of near.csv


def test_half_an_export_is_none(run, made, monkeypatch):
    def broken(forms, book=None):
        yield from []
        raise lb.errors.BrokenLedger("Entry 0 of the ledger is not as it was written.")

    monkeypatch.setattr("ladderboard.holdout._export.iter_checked_entries", broken)
    done = run("export", "guard.db", "--out", "ledger.jsonl")
    assert done.code == 4
    assert not (made / "ledger.jsonl").exists()


def test_a_copy_answers_only_after_it_was_charged(run, made):
    run("ask", "guard.db", "half.csv")
    done = run("backup", "guard.db", "copy.db")
    assert done.code == 0
    assert "ladderboard guard restore copy.db --charge N" in done.out
    assert stat.S_IMODE((made / "copy.db").stat().st_mode) == 0o600
    error = run("ask", "copy.db", "good.csv", "--json")
    assert (error.code, error.json["error"]["code"]) == (4, "old_copy")
    found = run("restore", "copy.db", "--charge", "2", "--json").json
    assert (found["charged"], found["remaining"]) == (2, 2)
    assert run("ask", "copy.db", "good.csv", "--json").json["remaining"] == 1
    assert "2 of them charged for an old copy" in run("status", "copy.db").out
    assert run("status", "copy.db", "--check").code == 0


def test_an_old_copy_that_was_put_back_is_refused(run, made):
    run("ask", "guard.db", "half.csv")
    shutil.copy("guard.db", "old.db")
    run("ask", "guard.db", "good.csv")
    shutil.copy("old.db", "guard.db")
    for verb in (["ask", "guard.db", "near.csv"], ["status", "guard.db"]):
        done = run(*verb)
        assert (done.code, done.out) == (4, "")
        assert "guard restore" in done.err
    assert run("export", "guard.db", "--out", "ledger.jsonl").code == 4
    assert run("restore", "guard.db", "--charge", "0").code == 2
    done = run("restore", "guard.db", "--charge", "1")
    assert done == (0, "1 question was charged; 3 left. The ledger records it.\n", "")
    assert run("ask", "guard.db", "near.csv").code == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["restore", "guard.db", "--charge", "-1"], "at least 0"),
        (["restore", "guard.db", "--charge", "6"], "No more than 5 can be charged"),
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
def test_what_is_refused_changes_nothing(run, made, everything, words, sentence):
    (made / "left.db-wal").touch()
    (made / "key").write_text("ab" * 32)
    before = everything()
    files = sorted(path.name for path in made.glob("*[!lm]"))  # without -wal and -shm
    done = run(*words, "--json")
    assert done.code == 2
    assert sentence in done.json["error"]["message"]
    assert everything() == before
    assert sorted(path.name for path in made.glob("*[!lm]")) == files


def _cut(path):
    path.write_bytes(path.read_bytes()[: 4096 + 100])


def _overwritten(path):
    path.write_bytes(path.read_bytes()[:4096].ljust(path.stat().st_size, b"x"))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_text("id,label\n"),
        lambda path: path.write_bytes(b""),
        _cut,
        _overwritten,
    ],
    ids=["another file", "empty", "cut", "overwritten"],
)
@pytest.mark.parametrize(
    "words", [["ask", "guard.db", "half.csv"], ["status", "guard.db"], ["backup", "guard.db", "to"]]
)
def test_a_damaged_guard_is_for_its_owner(run, made, spoil, words):
    spoil(made / "guard.db")
    done = run(*words)
    assert (done.code, done.out) == (4, "")
    assert not (made / "to").exists()


def test_a_wrong_key_file_is_for_who_typed_it(run, made):
    (made / "other").write_text("ab" * 32)
    run("create", "s.db", "--labels", "labels.csv", "--questions", "5", "--key-file", "key")
    for words in ([], ["--key-file", "other"], ["--key-file", "nothing"]):
        assert run("ask", "s.db", "half.csv", *words).code == 2
    assert run("ask", "s.db", "half.csv", "--key-file", "key").code == 0


@pytest.fixture
def killed(run, made):
    """A guard with a copy after one question, and three more in a log that nobody emptied."""
    run("ask", "guard.db", "half.csv")
    run("backup", "guard.db", "copy.db")
    guard = lb.Holdout.open("guard.db")
    for name in ("good", "near"):
        guard.ask(made / f"{name}.csv")
    for end in ("", "-wal", "-shm", ".mark"):  # as a kill leaves them
        shutil.copy(f"guard.db{end}", f"kept.db{end}")
    guard.close()
    for end in ("", "-wal", "-shm", ".mark"):
        (made / f"guard.db{end}").unlink(missing_ok=True)
        (made / f"kept.db{end}").rename(f"guard.db{end}")
    assert (made / "guard.db-wal").stat().st_size
    return made


def test_a_copy_beside_the_log_of_another_file_is_refused_and_stays_whole(run, killed):
    shutil.copy("copy.db", "guard.db")
    for words in (["restore", "guard.db", "--charge", "2"], ["status", "guard.db"]):
        done = run(*words)
        assert (done.code, done.out) == (4, "")
        assert "guard.db-wal beside it is another file's" in done.err
    with pytest.raises(lb.errors.InvalidState, match="another file's"):
        lb.Holdout.restore("guard.db", 2)
    assert (killed / "guard.db").read_bytes() == (killed / "copy.db").read_bytes()
    for end in ("-wal", "-shm"):
        (killed / f"guard.db{end}").rename(f"away{end}")
    assert run("restore", "guard.db", "--charge", "1").code == 2  # the mark knows of two
    assert run("restore", "guard.db", "--charge", "2").code == 0
    assert run("status", "guard.db", "--check").code == 0


def test_a_restored_copy_with_a_log_of_its_own_is_fine(run, killed):
    guard = lb.Holdout.restore("copy.db", 1)
    guard.ask(killed / "near.csv")
    assert (killed / "copy.db-wal").stat().st_size
    assert run("status", "copy.db").code == 0
    assert run("restore", "copy.db", "--charge", "0").code == 0
    guard.close()


def test_a_copy_is_put_in_place_and_the_old_file_kept(run, killed):
    done = run("restore", "guard.db", "--from", "copy.db", "--charge", "1")
    assert done.code == 2  # the mark knows of two
    assert not list(killed.glob("*.re[ps]*"))  # nothing was moved
    found = run("status", "guard.db", "--json").json
    assert found["asked"] == 3
    done = run("restore", "guard.db", "--from", "copy.db", "--charge", "2")
    assert done == (0, "2 questions were charged; 2 left. The ledger records it.\n", "")
    assert run("status", "guard.db", "--check").code == 0
    (killed / "guard.db.replaced-1.mark").write_bytes(b"")
    assert lb.ledger.SqliteStorage("guard.db.replaced-1").books()
    assert run("restore", "guard.db", "--from", "copy.db", "--charge", "3").code == 0
    assert (killed / "guard.db.replaced-2").exists()


def test_a_copy_can_be_put_where_nothing_is(run, killed):
    assert run("restore", "new.db", "--from", "copy.db", "--charge", "1").code == 0
    assert run("restore", "new.db", "--from", "nothing.db", "--charge", "1").code == 2
    (killed / "folder").mkdir()
    for name in ("folder", "unix:x"):
        assert run("restore", name, "--from", "copy.db", "--charge", "1").code == 2
    assert run("restore", "new.db", "--from", "new.db", "--charge", "1").code == 2
    assert run("status", "new.db", "--check").code == 0


def test_a_damaged_copy_is_not_charged(run, made):
    run("ask", "guard.db", "half.csv")
    run("backup", "guard.db", "copy.db")
    whole = (made / "copy.db").read_bytes()
    found = []
    for page in range(1, len(whole) // 4096):
        start = 4096 * page
        (made / "copy.db").write_bytes(whole[:start] + b"\xff" * 64 + whole[start + 64 :])
        found.append(run("restore", "copy.db", "--charge", "1").code)
        assert not (made / "copy.db.mark").exists() or found[-1] == 0
        for end in ("-wal", "-shm", ".mark"):
            (made / f"copy.db{end}").unlink(missing_ok=True)
    assert set(found) == {4}
