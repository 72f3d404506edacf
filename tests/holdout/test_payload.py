"""Refusals of predictions that cannot be encoded."""

import os

import pytest

from ladderboard.errors import InvalidPredictions, InvalidSetting
from ladderboard.holdout import encode_predictions


def test_a_path_is_shown_as_it_was_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    message = {
        "none/none.csv": "There is no file 'none/none.csv'.",
        "./folder": "'./folder' is a folder, not a file.",
        f"{tmp_path}/pipe": f"'{tmp_path}/pipe' is not a regular file.",
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
