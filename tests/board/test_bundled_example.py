"""The bundled example: ready to serve, reproducible byte for byte, and its script works."""

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from ladderboard.board import check_board, read_folder
from ladderboard.board._check._report import FolderGrader

EXAMPLES = Path(__file__).parents[2] / "examples"
DIGITS = EXAMPLES / "digits"


def test_the_example_files_are_reproducible(tmp_path):
    runpy.run_path(str(EXAMPLES / "make_digits.py"))["main"](tmp_path)
    created = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*.csv")}
    committed = {
        path.relative_to(DIGITS): path.read_bytes()
        for path in DIGITS.rglob("*.csv")
        if path.name != "predictions.csv"  # written if the script was run
    }
    assert created == committed


def test_the_example_is_ready_without_a_warning():
    report = check_board(DIGITS)
    assert (report.ok, report.warnings) == (True, ())
    assert report.promise.resolution.usual_gain < 0.07
    assert sum("can be scored" in fact for fact in report.facts) == 2


def test_the_script_for_participants_needs_the_data_folder_and_numpy_only(tmp_path):
    shutil.copytree(DIGITS / "data", tmp_path / "data")
    script = tmp_path / "data/example_submission.py"
    code = f"""
import runpy, sys
for name in ("ladderboard", "sklearn", "pandas", "polars"):
    sys.modules[name] = None
runpy.run_path({str(script)!r})
"""
    result = subprocess.run(
        [sys.executable, "-I", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == "predictions.csv holds 1400 predictions.\n"
    folder = read_folder(DIGITS)
    grader = FolderGrader(folder)
    aligned = grader.scorer.read(tmp_path / "predictions.csv").values
    assert np.mean(aligned == folder.table.labels) > 0.85  # 0.89 here


def test_participants_can_download_what_the_description_names():
    folder = read_folder(DIGITS)
    assert {name for name in folder.data if f"`{name}`" in folder.rules.description} == {
        "train.csv",
        "test.csv",
        "example_submission.py",
    }


def test_participants_get_no_label_of_the_holdout():
    train, test = (
        [line.split(",") for line in (DIGITS / f"data/{name}.csv").read_text().splitlines()]
        for name in ("train", "test")
    )
    assert test[0] == ["id", *train[0][1:]]
    ids = [row[0] for row in test[1:]]
    assert ids == list(read_folder(DIGITS).table.ids)
    learned = {tuple(row[1:]) for row in train[1:]}
    assert not learned & {tuple(row[1:]) for row in test[1:]}


def test_the_source_and_its_licence_are_named():
    for page in (DIGITS / "README.md", DIGITS / "data/README.md"):
        assert "UCI Machine Learning" in page.read_text()
        assert "CC BY 4.0" in page.read_text()
