"""Kaggle's solution and sample submission become a board's folder."""

import pytest

from ladderboard.board import check_board, import_kaggle, read_folder
from ladderboard.errors import InvalidInput


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "cactus-spotting"
    path.mkdir()
    rows = [f"a{i}.jpg,{i % 3 % 2},{'Private' if i % 4 else 'Public'}" for i in range(1200)]
    (path / "solution.csv").write_text("\n".join(["image,has_cactus,Usage", *rows]) + "\n")
    sample = [f"a{i}.jpg,0.5" for i in range(1200)]
    (path / "sample_submission.csv").write_text("\n".join(["image,has_cactus", *sample]) + "\n")
    return path


def test_labels_split_metric_and_columns_are_imported(source, tmp_path):
    target = tmp_path / "board"
    target.mkdir()
    _, sentence = import_kaggle(source, target, "AUC")
    assert sentence == (
        "Guessed from the sample submission: ids are in 'image', predictions in 'has_cactus'."
    )
    folder = read_folder(target)
    assert (folder.rules.title, folder.rules.display.name) == ("Cactus spotting", "AUC")
    assert folder.rules.columns.describe() == {"id": ["image"], "prediction": ["has_cactus"]}
    assert (folder.public.sum(), folder.private.sum()) == (300, 900)
    assert folder.table.labels.tolist() == [i % 3 % 2 for i in range(1200)]
    report = check_board(target)
    assert report.ok
    assert "None" not in str(report)


def test_a_missing_file_is_named(source, tmp_path):
    (source / "sample_submission.csv").unlink()
    with pytest.raises(InvalidInput, match=r"needs sample_submission\.csv"):
        import_kaggle(source, tmp_path, "AUC")
    assert not (tmp_path / "board.yaml").exists()
