"""All boards of a database: the key file, and folders that are refused."""

import pytest

from ladderboard.board import Boards, FolderStore
from ladderboard.errors import InvalidRules, WrongKey


def test_a_database_has_one_key_file_or_none(storage, boards, tmp_path):
    with pytest.raises(WrongKey, match="not encrypted"):
        Boards(storage, boards.store, key_file=tmp_path / "key")


def test_an_encrypted_database_needs_its_key_file(storage, tmp_path):
    store = FolderStore(tmp_path / "files")
    Boards(storage, store, key_file=tmp_path / "key")
    Boards(storage, store, key_file=tmp_path / "key")
    with pytest.raises(WrongKey):
        Boards(storage, store, key_file=tmp_path / "another")
    with pytest.raises(WrongKey):
        Boards(storage, store)


def test_a_baseline_that_cannot_be_scored_stops_the_creation(boards, make_folder, tmp_path):
    (tmp_path / "bad.csv").write_text("id,prediction\n0,1\n")
    folder = make_folder()
    folder.baselines["Half"] = tmp_path / "bad.csv"
    with pytest.raises(InvalidRules, match="'Half' cannot be scored"):
        boards.create(folder)
    assert boards.list() == []
