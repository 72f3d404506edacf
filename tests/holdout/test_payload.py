"""Refusals of predictions that cannot be encoded."""

import os
import tempfile
from pathlib import Path

import pytest

from ladderboard.errors import InvalidPredictions, InvalidSetting
from ladderboard.holdout import encode_predictions


@pytest.fixture
def folder():
    """A folder with a short path; messages cut long ones."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


def test_a_path_is_shown_as_it_was_typed(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    message = {
        "none/none.csv": "There is no file 'none/none.csv'.",
        "./folder": "'./folder' is a folder, not a file.",
        f"{folder}/pipe": f"'{folder}/pipe' is not a regular file.",
        "a\0b": r"There is no file 'a\x00b'.",
    }
    for path, format_reply in message.items():
        with pytest.raises(InvalidPredictions) as caught:
            encode_predictions(path)
        assert str(caught.value) == format_reply


@pytest.mark.parametrize("form", ["xls", 7, ["csv"]])
def test_formats_and_their_aliases(form):
    named = "format must be 'csv', 'tsv', 'parquet', 'arrow', 'jsonl' or 'npy'; got "
    with pytest.raises(InvalidSetting, match=named):
        encode_predictions(b"", form)
    assert encode_predictions(b"", "feather") == encode_predictions(b"", "arrow")
