"""A board that was restored from a copy, and its end."""

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
    there = open_board(target)
    team = Caller(Role.TEAM, 2)
    own = there.board.as_seen_by(team).submissions()[-1]["id"]
    score = type(there.board.closer)._score_finalists

    def choose_meanwhile(self, *given, **more):
        with pytest.raises(NotOpen, match="Selections"):
            there.board.closer.select_submissions(team, [own])
        return score(self, *given, **more)

    there.board.closer.select_submissions(team, [])
    monkeypatch.setattr(type(there.board.closer), "_score_finalists", choose_meanwhile)
    there.board.closer.close(ORGANISER)
    assert there.status == "closed"
