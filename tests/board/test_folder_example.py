"""The example that ``ladderboard board new --example`` makes: ready, new each time, beatable."""

import subprocess
import sys

import numpy as np
import pytest

from ladderboard.board import check_board, read_folder, write_example_board
from ladderboard.board._check._report import FolderGrader


@pytest.fixture
def example_folder(tmp_path):
    folder = tmp_path / "demo"
    folder.mkdir()
    assert set(write_example_board(folder, np.random.default_rng(1))) == {
        path for path in folder.rglob("*") if path.is_file()
    }
    return folder


def accuracy(folder):
    """Run the participant's script with NumPy only, and score its file."""
    script = folder / "data/example_submission.py"
    block_imports = "for name in ('ladderboard', 'sklearn', 'polars'): sys.modules[name] = None"
    code = f"import runpy, sys\n{block_imports}\nrunpy.run_path({str(script)!r})"
    result = subprocess.run(
        [sys.executable, "-I", "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == "predictions.csv holds 4000 predictions.\n"
    table = read_folder(folder)
    aligned = FolderGrader(table).scorer.read(folder / "predictions.csv").values
    return np.mean(aligned == table.table.labels)


def test_the_example_is_ready_without_a_warning(example_folder):
    report = check_board(example_folder)
    assert (report.ok, report.warnings) == (True, ())
    assert not report.promise.is_trivial
    assert sum("can be scored" in fact for fact in report.facts) == 2


def test_the_scripts_suggestion_improves_by_more_than_the_resolution(
    example_folder,
):
    straight = accuracy(example_folder)
    script = example_folder / "data/example_submission.py"
    text = script.read_text()
    assert "Add (cups - 62) ** 2" in text
    script.write_text(text.replace("cups])", "cups, (cups - 62) ** 2])"))
    assert 0.7 < straight < 0.78  # 0.74
    assert accuracy(example_folder) > straight + 0.08  # 0.85, and the step is 0.055


def test_participants_can_download_what_the_description_names(example_folder):
    folder = read_folder(example_folder)
    assert {name for name in folder.data if f"`{name}`" in folder.rules.description} == {
        "train.csv",
        "test.csv",
        "example_submission.py",
    }


def test_participants_get_no_label_of_the_holdout(example_folder):
    head, *rows = (example_folder / "data/test.csv").read_text().splitlines()
    table = read_folder(example_folder)
    assert head == "id,temperature,strength,waited"
    assert [row.split(",")[0] for row in rows] == list(table.table.ids)
    assert (int(table.public.sum()), int(table.private.sum())) == (3_000, 1_000)
    assert table.public[:200].sum() not in {0, 200}  # an id does not reveal its split


def test_each_example_board_has_new_labels(tmp_path):
    labels = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_example_board(tmp_path / name)
        labels.append((tmp_path / name / "holdout.csv").read_text())
    assert labels[0] != labels[1]
