"""A Codabench bundle becomes a board's folder."""

import shutil
import zipfile

import pytest

from ladderboard.board import check_board, import_codabench, read_folder
from ladderboard.errors import InvalidInput

COMPETITION = """\
title: Cactus spotting
version: 2
phases:
  - {index: 0, name: Final, max_submissions_per_day: 5, max_submissions: 80, tasks: [0]}
tasks:
  - {index: 0, name: Main, scoring_program: scoring_program/, reference_data: reference_data}
leaderboards:
  - title: Results
    key: main
    columns:
      - {title: AUC, key: auc_roc, index: 0, sorting: desc}
      - {title: Log loss, key: log_loss, index: 1, sorting: asc}
      - {title: Duration, key: duration, index: 2}
"""


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "bundle"
    (path / "reference_data").mkdir(parents=True)
    (path / "competition.yaml").write_text(COMPETITION)
    rows = [f"a{i}.jpg,{i % 3 % 2}" for i in range(1200)]
    text = "\n".join(["image,has_cactus", *rows]) + "\n"
    (path / "reference_data" / "truth.csv").write_text(text)
    return path


@pytest.fixture
def target(tmp_path):
    (tmp_path / "board").mkdir()
    return tmp_path / "board"


@pytest.mark.parametrize("zipped", [False, True])
def test_metrics_columns_limits_and_labels_are_imported(source, target, zipped):
    if zipped:
        with zipfile.ZipFile(source / "data.zip", "w") as bundle:
            bundle.write(source / "reference_data" / "truth.csv", "truth.csv")
        shutil.rmtree(source / "reference_data")
        (source / "data.zip").rename(source / "reference_data")
    _, sentence = import_codabench(source, target, None)
    assert sentence == "Guessed from truth.csv: ids are in 'image', labels in 'has_cactus'."
    folder = read_folder(target)
    assert (folder.rules.title, folder.rules.display.name) == ("Cactus spotting", "AUC")
    assert [metric.display.name for metric in folder.rules.metrics] == ["log loss"]
    assert (folder.rules.window.questions, folder.rules.per_team) == (5, 80)
    assert folder.rules.columns.describe() == {"id": ["image"], "prediction": ["has_cactus"]}
    assert folder.table.labels.tolist() == [i % 3 % 2 for i in range(1200)]
    assert check_board(target).ok


def test_labels_alone_get_ids(source, target):
    (source / "reference_data" / "truth.csv").unlink()
    (source / "reference_data" / "labels").write_text("".join(f"{i % 2}\n" for i in range(600)))
    text = COMPETITION.replace("auc_roc", "score").replace("AUC", "Score")
    (source / "competition.yaml").write_text(text.replace("log_loss", "b").replace("Log loss", "b"))
    with pytest.raises(InvalidInput, match="--metric NAME"):
        import_codabench(source, target, None)
    _, sentence = import_codabench(source, target, "accuracy")
    assert sentence == "Labels are the lines of labels, with ids from 0."
    assert len(read_folder(target).table) == 600


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("reference_data: ../../etc", "must be a file or folder in the bundle"),
        ("reference_data: nothing", "cannot be read"),
        ("reference_data: scoring", "must be one table; got none"),
    ],
)
def test_reference_data_that_cannot_be_used_is_named(source, target, text, message):
    (source / "scoring").mkdir()
    changed = COMPETITION.replace("reference_data: reference_data", text)
    (source / "competition.yaml").write_text(changed)
    with pytest.raises(InvalidInput, match=message):
        import_codabench(source, target, "accuracy")
    assert not list(target.iterdir())


def test_a_name_that_would_be_imported_is_no_metric(source, target):
    changed = COMPETITION.replace("auc_roc", "os:system").replace("title: AUC", "title: os:getcwd")
    (source / "competition.yaml").write_text(changed)
    import_codabench(source, target, None)
    assert read_folder(target).rules.loss.name == "log"
