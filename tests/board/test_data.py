"""Files for participants: stored, listed, for teams only, dumped; and the sample submission."""

import hashlib

import pytest

from ladderboard.board import (
    PUBLIC,
    Caller,
    Role,
    check_board,
    dump_board,
    open_boards,
    read_data_files,
    read_folder,
    read_rules,
    restore_board,
)
from ladderboard.errors import InvalidRules, InvalidSetting, NotAllowed, NotFound
from ladderboard.ledger import SecretKey

ORGANISER, TEAM = Caller(Role.ORGANISER), Caller(Role.TEAM, 1)
CONTENT = b"x,y\n1,2\n" * 200_000  # more than what is stored in the database


@pytest.fixture
def files(tmp_path):
    paths = {"train.csv": tmp_path / "train.csv", "readme.txt": tmp_path / "readme.txt"}
    paths["train.csv"].write_bytes(CONTENT)
    paths["readme.txt"].write_text("Hello")
    return paths


@pytest.fixture
def make_board(boards, make_folder, files):
    def make(**settings):
        folder = make_folder(**settings)
        folder.data = files
        return boards.create(folder)

    return make


def read(board, caller, name):
    row, content = board.data.open(caller, name)
    with content:
        return row, content.read()


def test_files_are_listed_with_size_and_checksum_and_read(make_board):
    board = make_board()
    listed = board.data.summary(PUBLIC)
    assert [file["name"] for file in listed["files"]] == ["readme.txt", "train.csv"]
    row, content = read(board, PUBLIC, "train.csv")
    assert (content, row.size) == (CONTENT, len(CONTENT))
    assert row.digest == listed["files"][1]["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    with pytest.raises(NotFound):
        board.data.open(PUBLIC, "holdout.csv")


def test_a_board_may_keep_its_data_for_teams(make_board):
    link = "{name: images.zip, url: 'https://a.org/b'}"
    board = make_board(data=f"{{members: true, links: [{link}]}}")
    assert board.data.summary(PUBLIC)["allowed"] is False
    assert [file["url"] for file in board.data.summary(PUBLIC)["files"]] == [None] * 3
    for read_as_public in (
        lambda: board.data.open(PUBLIC, "train.csv"),
        lambda: board.data.sample(PUBLIC),
    ):
        with pytest.raises(NotAllowed, match="for its teams"):
            read_as_public()
    board.teams.create(ORGANISER, "Alpha")
    assert read(board, TEAM, "readme.txt")[1] == b"Hello"
    assert board.data.summary(TEAM)["allowed"] is True
    assert board.data.summary(TEAM)["files"][-1]["url"] == "https://a.org/b"
    assert board.data.sample(TEAM)


def stored_files(tmp_path):
    return [path for path in (tmp_path / "files").rglob("*") if path.is_file()]


def test_files_are_replaced_by_the_organiser_only(boards, make_board, files, tmp_path):
    board = make_board()
    stored = len(stored_files(tmp_path))
    with pytest.raises(NotAllowed):
        board.data.replace(TEAM, {})
    board.data.replace(ORGANISER, {"readme.txt": files["readme.txt"]})
    assert [file["name"] for file in board.data.summary(PUBLIC)["files"]] == ["readme.txt"]
    assert len(stored_files(tmp_path)) < stored
    assert boards.remove_orphaned_files() == 0


def test_a_dump_holds_the_files(boards, make_board, tmp_path):
    make_board()
    key = SecretKey.make()
    dump_board(boards, "first", tmp_path / "dump", public_key=key.public, move=True)
    target = open_boards(tmp_path / "other.db", create=True)
    restore_board(target, tmp_path / "dump", secret_key=key)
    assert read(target.open("first"), PUBLIC, "train.csv")[1] == CONTENT
    target.close()


def test_a_sample_submission_can_be_submitted_and_does_not_follow_the_labels(
    boards, make_folder, join, submit
):
    board = boards.create(make_folder())
    sample = board.data.sample(PUBLIC)
    lines = sample.decode().splitlines()
    assert lines[0] == "id,prediction"
    assert lines[1:] == [f"{row},0" for row in range(400)]
    caller, _ = join(boards, board, "Team")
    assert not submit(board, caller, sample).again
    assert board.data.sample(PUBLIC) is sample


CLASSES = "{name: log_loss, classes: [cat, dog]}"
LAYOUTS = {  # a metric, declared columns, the holdout's header and rows, the sample's header
    "auc": ("roc_auc", "{id: image_id, prediction: target}", "image_id,target", "{0},{1}"),
    "ids alone": ("roc_auc", "{id: image_id}", "image_id,label", "{0},{1}"),
    "prediction alone": ("accuracy", "{prediction: target}", "id,target", "{0},{1}"),
    "labels alone": ("accuracy", "{label: truth}", "id,truth", "{0},{1}"),
    "two ids": (
        "accuracy", "{id: [trip, time], prediction: late}", "trip,time,late", "a{0},{0},{1}",
    ),
    "two targets": ("{name: mcrmse, range: [10, 20]}", "{id: row, prediction: [lat, lng]}",
                    "row,lat,lng", "{0},1{1},1{1}"),
    "two labels": ("{name: mcrmse, range: [-9, 9]}", "{id: row, label: [lat, lng]}", "row,lat,lng",
                   "{0},{1},-{1}"),
    "one target": ("{name: rmse, range: [10, 20]}", "{id: row, prediction: price}", "row,price",
                   "{0},1{1}"),
    "several labels": ("multilabel_log_loss", "{id: row}", "row,label_1,label_2", "{0},{1},1"),
    "lists": ("map@5", "{id: user, prediction: items}", "user,items", "{0},a{1} b"),
    "masks": ("{name: dice, of: sets}", "{id: image, prediction: tags}", "image,tags", "{0},a{1}"),
    "classes": (CLASSES, "{id: image}", "image,label", "{0},{2}"),
    "class columns": (CLASSES, "{id: image, prediction: [cat, dog], label: animal}",
                      "image,animal", "{0},{2}"),
    "one of two": (CLASSES, "{id: image, prediction: dog, label: y}", "image,y", "{0},{2}"),
    "classes without ids": (CLASSES, "{prediction: [a, b], label: animal}", "id,animal", "{0},{2}"),
    "three classes": ("{name: roc_auc, classes: [cat, dog, eel]}", "{id: image}", "image,label",
                      "{0},{3}"),
    "text": ("wer", "{id: line, prediction: text}", "line,text",
             "{0},word{1}"),
    "scores": ("score", "{id: task}", "task", "{0}"),
    "nothing declared": ("kappa", None, "id,label", "{0},{1}"),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_generated_sample_is_one_that_the_board_takes(
    boards, make_folder, join, submit, tmp_path, layout
):
    metric, columns, header, row = LAYOUTS[layout]
    folder = tmp_path / "board"
    folder.mkdir()
    rules = [f"metric: {metric}", "submissions: 100", "teams: 4", "mechanism: exact"]
    rules += [] if columns is None else [f"columns: {columns}"]
    (folder / "board.yaml").write_text("\n".join(rules))
    animals = ("cat", "dog", "eel")
    lines = [row.format(at, at % 2, animals[at % 2], animals[at % 3]) for at in range(200)]
    (folder / "holdout.csv").write_text("\n".join([header, *lines]))
    content = read_folder(folder)
    board = boards.create(content)
    sample = board.data.sample(PUBLIC)
    assert len(sample.splitlines()) == 201
    assert len(board.scorer().read(sample).values) == 200
    declared = content.rules.columns
    first_line = sample.decode().splitlines()[0].split(",")
    assert first_line[0] == (declared.id[0] if declared and declared.id else "id")
    warnings = " ".join(check_board(content).warnings)
    assert "the Data page offers one with equal predictions" in warnings


def test_the_check_warns_of_a_generated_sample_that_would_be_refused(
    make_folder, tmp_path, monkeypatch
):
    from ladderboard.board._check import _report

    (tmp_path / "board.yaml").write_text("slug: a\nmetric: accuracy\nsubmissions: 100\nteams: 4\n")
    lines = [f"{at},{at % 2}" for at in range(200)]
    (tmp_path / "holdout.csv").write_text("\n".join(["id,label", *lines]))
    monkeypatch.setattr(_report, "make_sample", lambda *_: b"id,prediction\n0,0\n")
    assert "would refuse the one that the Data page makes" in " ".join(
        check_board(tmp_path).warnings
    )


def test_the_sample_of_the_organiser_is_offered_instead(boards, make_folder, tmp_path):
    folder = make_folder()
    folder.data = {"sample_submission.csv": tmp_path / "mine.csv"}
    (tmp_path / "mine.csv").write_text("id,prediction\n0,1\n")
    assert boards.create(folder).data.sample(PUBLIC) == b"id,prediction\n0,1\n"


def test_data_in_a_folder(tmp_path):
    (tmp_path / "data").mkdir()
    for name in ("train.csv", ".hidden"):
        (tmp_path / "data" / name).write_text("x")
    (tmp_path / "sample_submission.csv").write_text("id,prediction\n")
    assert sorted(read_data_files(tmp_path)) == ["sample_submission.csv", "train.csv"]
    (tmp_path / "data/a b").write_text("x")
    (tmp_path / "data/out").symlink_to("/etc/passwd")
    with pytest.raises(InvalidRules) as refused:
        read_data_files(tmp_path)
    assert "must be inside the folder" in str(refused.value)
    assert "The name of a data file" in str(refused.value)


def test_a_large_file_is_refused(boards, make_folder, tmp_path):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2**28 + 1)
    board = boards.create(make_folder())
    with pytest.raises(InvalidSetting, match=r"data\.links"):
        board.data.replace(ORGANISER, {"large": tmp_path / "large"})


RULES = "slug: first\nloss: accuracy\nquestions: 100\nteams: 4\n"


def test_links_are_rules():
    rules = read_rules(
        f"{RULES}data: {{links: [{{name: a, url: 'https://a.org/b', bytes: 1 kB}}]}}"
    )
    (link,) = rules.describe()["data"]["links"]
    assert link == {"name": "a", "url": "https://a.org/b", "bytes": 1000, "sha256": None}
    assert "data" not in read_rules(RULES).describe()


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("{name: a, url: 'javascript:alert(1)'}", "must begin with https://"),
        ("{name: a}", r"data.links\[0\].url is missing"),
        ("{name: a, url: 'https://a.org', sha256: abc}", "64 hex digits"),
    ],
)
def test_wrong_links_are_refused(link, message):
    with pytest.raises(InvalidRules, match=message):
        read_rules(f"{RULES}data: {{links: [{link}]}}\n")
