"""The close commits to the standings, and the bundle opens every commitment."""

import hashlib
import json
import stat

import pytest

from ladderboard.board import write_board_bundle
from ladderboard.errors import InvalidState, NotOpen
from ladderboard.holdout import ALIGNED_FORMAT, AlignedPredictions, sample_digest
from ladderboard.ledger import Commitment, Entry, digest, encode
from support.verify.board_history import make_full_history, read_bundle


@pytest.fixture(scope="module", params=["board", "team"])
def full_history(request, postgres, tmp_path_factory):
    """Return a board with a full history, on each kind of ladder, and its bundle."""
    folder = tmp_path_factory.mktemp("lived")
    first, second, board = make_full_history(folder, postgres.url(), ladder=request.param)
    head = write_board_bundle(board, folder / "bundle", labels=True, submissions=True)
    yield board, folder / "bundle", head
    first.close()
    second.close()


def of_kind(records, kind):
    return [content for record_kind, content in records if record_kind == kind]


def closed_entry(records):
    entries = [Entry(form).read() for form, _ in of_kind(records, "entry")]
    return next(entry for entry in entries if entry["kind"] == "closed")


def closed_board(boards, make_folder, organiser, **settings):
    board = boards.create(make_folder(**settings))
    board.closer.close(organiser)
    return board


def test_the_close_commits_to_the_standings(
    boards, make_folder, join, submit, predict, organiser, tmp_path
):
    (tmp_path / "half.csv").write_bytes(predict(150))
    folder = make_folder(baselines="[{name: Half, file: half.csv}]", teams="9", ladder="team")
    folder.baselines["Half"] = tmp_path / "half.csv"
    board = boards.create(folder)
    errors = {"Ada": 60, "Bob": 20, "Cyd": 60, "Dan": 200, "Eve": 1, "Fay": None}
    for name, count in errors.items():
        caller, team = join(boards, board, name)
        if count is not None:
            submit(board, caller, predict(count, len(name)))
        if name == "Eve":
            board.teams.disqualify(organiser, team.id)
    rows = board.as_seen_by(organiser).leaderboard()["rows"]
    board.closer.close(organiser)
    write_board_bundle(board, tmp_path / "bundle")
    records = read_bundle(tmp_path / "bundle")
    (standings,) = of_kind(records, "standings")
    content = standings["content"]
    (names,) = of_kind(records, "teams")
    assert [row["name"] for row in content] == ["Half", *[None] * 6]
    assert [(names.get(row["team"]), row["rank"]) for row in content] == [
        (None, None), ("Ada", 2), ("Bob", 1), ("Cyd", 2), ("Dan", 4), ("Eve", None),
        ("Fay", None),
    ]  # fmt: skip
    ranks = {row["team"]: row["rank"] for row in content if not row["disqualified"]}
    assert ranks == {row["team"]["id"]: row["rank"] for row in rows}
    assert [row["baseline"] for row in content] == [True, *[False] * 6]
    assert [row["disqualified"] for row in content] == [*[False] * 5, True, False]
    values = {row["team"]["id"]: row["released"] for row in rows}
    assert values == {row["team"]: row["released"] for row in content if not row["disqualified"]}
    assert [type(row["since"]) for row in content] == [*[int] * 6, type(None)]
    committed = Commitment("standings", content, standings["salt"])
    assert committed.hash.hex() == closed_entry(records)["standings"]


def test_changes_while_the_finals_are_scored_are_noticed(
    boards, make_folder, join, submit, predict, organiser, monkeypatch
):
    board = boards.create(make_folder())
    ada, _ = join(boards, board, "Ada")
    submit(board, ada, predict(20))
    read_stored = board.read_stored_file

    def stored(location):
        monkeypatch.setattr(board, "read_stored_file", read_stored)
        board.amendments.resume(organiser)
        submit(board, ada, predict(5))
        return read_stored(location)

    monkeypatch.setattr(board, "read_stored_file", stored)
    with pytest.raises(NotOpen, match="Close it again"):
        board.closer.close(organiser)
    assert board.row().final is None
    assert board.closer.close(organiser)["selected"] == 1
    assert board.book.check() == 2


def test_a_bundle_needs_a_closed_board(boards, make_folder, organiser, tmp_path):
    board = boards.create(make_folder())
    path = tmp_path / "bundle"
    for status in ("open", "closing"):
        with pytest.raises(NotOpen, match=f"is {status}; .* reveal the labels"):
            write_board_bundle(board, path, labels=True)
        with board.book.storage.write_transaction(board.book.name) as view:
            view.execute("UPDATE main.board SET status = 'closing' WHERE book = ?", (view.book_id,))
    assert not path.exists()
    board.closer.close(organiser)
    head = write_board_bundle(board, path)
    assert head == board.book.head()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    content = path.read_bytes()
    with pytest.raises(InvalidState, match="already"):
        write_board_bundle(board, path, labels=True)
    assert path.read_bytes() == content
    assert [path_.name for path_ in tmp_path.glob("*bundle*")] == ["bundle"]


def test_without_labels_neither_they_nor_their_salt_are_there(
    boards, make_folder, join, submit, predict, organiser, tmp_path
):
    board = boards.create(make_folder())
    ada, _ = join(boards, board, "Ada")
    submit(board, ada, predict(20))
    board.closer.close(organiser)
    path = tmp_path / "bundle"
    write_board_bundle(board, path)
    records = read_bundle(path)
    assert [kind for kind, _ in records if kind != "entry"] == [
        "bundle", "key", "standings", "finals", "teams", "end",
    ]  # fmt: skip
    assert (records[0][1]["labels"], records[0][1]["submissions"]) == (False, False)
    assert board.book.read_encrypted("salt of the holdout") not in path.read_bytes()
    assert board.book.read_encrypted("marking") not in path.read_bytes()
    write_board_bundle(board, tmp_path / "open", labels=True)
    assert board.book.read_encrypted("salt of the holdout") in (tmp_path / "open").read_bytes()
    assert board.book.read_encrypted("marking") not in (tmp_path / "open").read_bytes()


def test_a_long_history_is_in_one_bundle(full_history):
    board, path, head = full_history
    records = read_bundle(path)
    counts = {}
    for kind, _ in records[:-1]:
        counts[kind] = counts.get(kind, 0) + 1
    assert records[-1] == ["end", counts]
    assert hashlib.sha256(path.read_bytes()[:-32]).digest() == path.read_bytes()[-32:]
    assert records[0] == ["bundle", {
        "format": 2, "of": "board", "book": board.book.name, "entries": head.entries,
        "head": head.hash, "labels": True, "submissions": True,
    }]  # fmt: skip
    entries = of_kind(records, "entry")
    assert [form for form, _ in entries] == [entry.encoded for entry, _ in board.book.entries()]
    fields = [Entry(form).read() for form, _ in entries]
    kinds = {field["kind"] for field in fields}
    assert kinds == {
        "opened", "ladder", "question", "moved", "amended", "paused", "resumed", "disqualified",
        "closed",
    }  # fmt: skip
    assert counts["entry"] == head.entries
    assert Entry(entries[-1][0]).hash == head.hash
    (finals,) = of_kind(records, "finals")
    assert digest("finals", finals).hex() == closed_entry(records)["finals"]
    (standings,) = of_kind(records, "standings")
    committed = Commitment("standings", standings["content"], standings["salt"])
    assert committed.hash.hex() == closed_entry(records)["standings"]


def test_every_secret_side_opens_its_entry(full_history):
    board, path, _ = full_history
    records = read_bundle(path)
    (key,) = of_kind(records, "key")
    first_entry = Entry(of_kind(records, "entry")[0][0]).read()
    key_commitment = Commitment("key", hashlib.sha256(key["key"]).digest(), key["salt"])
    assert key_commitment.hash.hex() == first_entry["key"]
    questions = 0
    for form, secret in of_kind(records, "entry"):
        fields = Entry(form).read()
        assert (secret is None) == (fields["kind"] != "question")
        if secret is not None:
            questions += 1
            secret_commitment = Commitment("secret", secret["content"], secret["salt"])
            submission_commitment = Commitment(
                "submission", secret["submission"], secret["submission_salt"]
            )
            assert (secret_commitment.hash.hex(), submission_commitment.hash.hex()) == (
                fields["secret"],
                fields["submission"],
            )
    assert questions == board.book.chain_state().asked


def test_the_labels_of_every_epoch_open_their_commitment(full_history):
    _, path, _ = full_history
    records = read_bundle(path)
    fields = [Entry(form).read() for form, _ in of_kind(records, "entry")]
    commitments = [field["holdout"] for field in fields if "holdout" in field]
    holdouts = of_kind(records, "holdout")
    assert [holdout["epoch"] for holdout in holdouts] == [0, 1, 2]
    for holdout, hashed in zip(holdouts, commitments, strict=True):
        committed = Commitment("holdout", sample_digest(holdout["sample"]), holdout["salt"])
        assert committed.hash.hex() == hashed
    assert len({encode(holdout["sample"]["labels"]) for holdout in holdouts}) == 3


def test_every_file_comes_after_each_entry_that_it_was_scored_for(full_history):
    board, path, _ = full_history
    scorer = board.scorer()
    read, secret, bodies = [], None, {}
    for kind, content in read_bundle(path):
        if kind == "entry":
            secret = content[1]
        elif kind == "file":
            read.append((content, secret, []))
        elif kind == "part":
            assert 0 < len(content) <= 2**20
            read[-1][2].append(content)
    for file, entries, parts in read:
        body = b"".join(parts)
        assert (len(body), hashlib.sha256(body).digest()) == (file["size"], file["sha256"])
        aligned = file["format"] == ALIGNED_FORMAT
        submission = (
            AlignedPredictions.unpack(body) if aligned else scorer.read(body, format=file["format"])
        )
        assert submission.digest == entries["submission"]
        assert bodies.setdefault(file["id"], body) == body
    assert len(read) == board.book.chain_state().asked
    replayed = board.row().replayed
    assert replayed >= 6
    assert len(bodies) == board.book.chain_state().asked - replayed == 18
    assert max(len(parts) for _, _, parts in read) == 4
    # Marked as selected only after its last entry, as often as in the final ranking.
    last = {file["id"]: index for index, (file, _, _) in enumerate(read)}
    selected = [index for index, (file, _, _) in enumerate(read) if file["selected"]]
    assert all(last[read[index][0]["id"]] == index for index in selected)
    final = json.loads(board.row().final)
    assert len(selected) == final["selected"]
    assert {row["submission"] for row in final["rows"]} <= {
        read[index][0]["id"] for index in selected
    }


def test_a_board_that_was_closed_before_standings_were_kept(
    boards, make_folder, organiser, tmp_path
):
    board = closed_board(boards, make_folder, organiser)
    with board.book.storage.write_transaction(board.book.name) as view:
        view.execute("DELETE FROM main.kept WHERE book = ? AND name = 'standings'", (view.book_id,))
    write_board_bundle(board, tmp_path / "bundle")
    assert "standings" not in dict(read_bundle(tmp_path / "bundle"))
