"""Closing a board that was restored from a copy."""

import pytest

from ladderboard.board import Caller, Role, dump_board, restore_board
from ladderboard.errors import NotOpen
from ladderboard.ledger import SecretKey

ORGANISER = Caller(Role.ORGANISER)
KEY = SecretKey.make()


def test_the_close_of_a_restored_board_locks_selections(
    make_boards, make_board, open_board, tmp_path, monkeypatch
):
    source, target = make_boards(), make_boards()
    make_board(source)
    dump_board(source, "digits", tmp_path / "dump", public_key=KEY.public)
    restore_board(target, tmp_path / "dump", secret_key=KEY)
    restored = open_board(target)
    team = Caller(Role.TEAM, 2)
    submission_id = restored.board.as_seen_by(team).submissions()[-1]["id"]
    score = type(restored.board.closer)._score_finalists

    def choose_meanwhile(self, *args, **kwargs):
        with pytest.raises(NotOpen, match="Selections"):
            restored.board.closer.select_submissions(team, [submission_id])
        return score(self, *args, **kwargs)

    restored.board.closer.select_submissions(team, [])
    monkeypatch.setattr(type(restored.board.closer), "_score_finalists", choose_meanwhile)
    restored.board.closer.close(ORGANISER)
    assert restored.status == "closed"
