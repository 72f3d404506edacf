"""Every method of the client against a live server."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.client import Client
from ladderboard.errors import InvalidSetting, NotFound
from support.server.live_server import make_predictions

LABELS = np.arange(400) % 2


def predictions_with_errors(count):
    """Predictions with a given number of errors on the public split."""
    return {"id": list(range(400)), "prediction": (LABELS ^ (np.arange(400) < count)).tolist()}


def test_a_submission_is_answered_with_everything_that_a_guard_says(live_server, client):
    answer = client.submit(live_server.slug, make_predictions(60), message="first")
    assert isinstance(answer, lb.holdout.Reply)
    assert (answer.improved, answer.question, answer.number, answer.again) == (True, 1, 1, False)
    assert answer.released == pytest.approx(0.2, abs=0.01)
    assert (answer.remaining, answer.limit, answer.ladder) == (24, "team", "team")
    assert answer.reason == answer.raw["reason"]
    assert str(answer) == "A new best: zero-one loss 0.2. 24 submissions left."
    assert answer.bound.low <= answer.released <= answer.bound.high
    assert answer.team.name == "Ada"
    assert answer.time == dt.datetime.fromtimestamp(live_server.clock.now, dt.UTC)
    assert answer.describe() == answer.raw
    assert answer.receipt["entry"] == answer.entry
    assert "salt" not in repr(answer)
    assert json.loads(json.dumps(answer.describe()))["id"] == answer.id
    for field in fields(lb.holdout.Reply):
        assert hasattr(answer, field.name)


@pytest.mark.parametrize("form", ["path", "text path", "bytes", "file", "columns"])
def test_predictions_come_in_any_form(live_server, client, tmp_path, form):
    file = tmp_path / "predictions.csv"
    file.write_bytes(make_predictions(30))
    with file.open("rb") as handle:
        forms = {
            "path": file,
            "text path": str(file),
            "bytes": make_predictions(30),
            "file": handle,
            "columns": predictions_with_errors(30),
        }[form]
        assert client.submit(live_server.slug, forms).released == pytest.approx(0.1, abs=0.01)


def test_the_same_predictions_again_are_answered_once(live_server, client):
    first = client.submit(live_server.slug, predictions_with_errors(50))
    second = client.submit(live_server.slug, predictions_with_errors(50))
    assert (first.again, second.again) == (False, True)
    assert (second.id, second.remaining) == (first.id, first.remaining)


def test_a_board_is_described(live_server, client):
    client.submit(live_server.slug, predictions_with_errors(50))
    board = client.board(live_server.slug)
    assert (board.slug, board.title, board.status, board.used) == (
        live_server.slug,
        "First",
        "open",
        1,
    )
    assert (board.n, board.questions, board.window, board.deadline) == (300, 100, None, None)
    assert (board.display.direction, board.display.digits) == (
        "lower",
        board.raw["display"]["digits"],
    )
    assert board.best.released == pytest.approx(1 / 6, abs=0.01)
    assert board.slug in [listed.slug for listed in client.boards()]
    assert board.describe()["commitment"] == board.commitment


def test_submissions_and_standings_are_read_page_by_page(live_server, client, monkeypatch):
    monkeypatch.setattr("ladderboard.client._requests._PAGE_SIZE", 2)
    for errors in range(50, 55):
        client.submit(live_server.slug, predictions_with_errors(errors), message=f"{errors}")
    submissions = list(client.submissions(live_server.slug))
    assert [submission.message for submission in submissions] == ["54", "53", "52", "51", "50"]
    fetched = client.submission(live_server.slug, submissions[0].id)
    assert replace(fetched, receipt=None) == submissions[0]
    assert fetched.receipt["entry"] == fetched.entry
    for name in ("Bob", "Cleo"):
        with Client(live_server.url, live_server.join(name)[1]) as other_client:
            other_client.submit(
                live_server.slug, predictions_with_errors(20 if name == "Bob" else 90)
            )
    rows = list(client.leaderboard(live_server.slug))
    assert [row.team.name for row in rows] == ["Bob", "Ada", "Cleo"]
    assert [row.you for row in rows] == [False, True, False]
    assert [row.rank for row in rows] == [1, 2, 3]
    assert [record.team.name for record in client.records(live_server.slug)] == ["Ada", "Bob"]


def test_a_team_registers_rotates_its_token_selects_and_reads_the_finals(empty_server):
    live_server = empty_server
    live_server.create_board(finals="{selections: 2}", prizes="[{name: First prize}]")
    with Client(live_server.url) as nobody:
        registered = nobody.register(live_server.slug, "Dora")
    assert registered.token not in repr(registered)
    with Client(live_server.url, registered.token) as old:
        newer = old.rotate_token(live_server.slug)
    assert newer.id == registered.id
    assert newer.token != registered.token
    with Client(live_server.url, newer.token) as client:
        assert client.team(live_server.slug).name == "Dora"
        ids = [
            client.submit(live_server.slug, predictions_with_errors(errors)).id
            for errors in (40, 30)
        ]
        assert client.selections(live_server.slug) == ()
        assert (
            client.select(live_server.slug, [ids[1]])
            == (ids[1],)
            == client.selections(live_server.slug)
        )
        for strange in ([1], ids[0]):
            with pytest.raises(InvalidSetting, match="takes a list of submission ids"):
                client.select(live_server.slug, strange)
        with pytest.raises(NotFound):
            client.finals(live_server.slug)
        live_server.call("POST", "/boards/first/close", live_server.organiser)
        finals = client.finals(live_server.slug)
        assert [row.submission for row in finals.rows] == [ids[1]]
        assert finals.rows[0].low <= finals.rows[0].score <= finals.rows[0].high
        ((prize,), (rule,)) = finals.prizes, client.board(live_server.slug).prizes
        assert (prize.name, prize.place, prize.to) == (rule.name, rule.place, rule.to)
        assert [team.name for team in prize.teams] == ["Dora"]


def test_the_ledger_is_returned_byte_for_byte(live_server, client, monkeypatch):
    monkeypatch.setattr("ladderboard.client._requests._LEDGER_PAGE_SIZE", 2)
    for errors in range(4):
        client.submit(live_server.slug, predictions_with_errors(errors))
    entries = list(client.ledger(live_server.slug))
    assert len(entries) == client.board(live_server.slug).head.entries == 7
    assert list(client.ledger(live_server.slug, 3)) == entries[3:]


def test_an_evaluator_submits_for_a_team(live_server, token):
    team = (
        live_server.boards.open(live_server.slug)
        .as_seen_by(live_server.boards.caller_by_token(token, live_server.slug))
        .team()
    )
    with Client(live_server.url, live_server.issue_token("evaluator")) as client:
        answer = client.submit(live_server.slug, predictions_with_errors(10), team=team["id"])
        assert answer.team.id == team["id"]
        assert [
            submission.id for submission in client.submissions(live_server.slug, team["id"])
        ] == [answer.id]
        guard = client.guard(live_server.slug, team=team["id"])
        assert guard.remaining == 99
        guard.ask(predictions_with_errors(11))
        assert guard.remaining == 23


def test_what_a_board_accepts_is_requested_once(empty_server, monkeypatch):
    live_server = empty_server
    live_server.create_board()
    live_server.create_board("scored", loss="score")
    with Client(live_server.url) as client:
        calls, read_board = [], client.board
        monkeypatch.setattr(client, "board", lambda slug: calls.append(slug) or read_board(slug))
        guards = [client.guard(live_server.slug), client.guard("scored")]
        assert [guard.takes for guard in guards * 2] == ["predictions", "scores"] * 2
        assert calls == [live_server.slug, "scored"]


def test_a_client_can_be_pickled(live_server, client):
    client.board(live_server.slug)
    unpickled = pickle.loads(pickle.dumps(client))
    assert unpickled.team(live_server.slug).name == "Ada"
    unpickled.close()


def test_an_answer_can_be_pickled_and_shown(live_server, client):
    answer = client.submit(live_server.slug, predictions_with_errors(10))
    assert pickle.loads(pickle.dumps(answer)) == answer
    assert "Improved" in answer._repr_html_()


FORKED = """
import os, sys
from ladderboard.client import Client
client = Client(sys.argv[1], sys.argv[2])
first = client.team(sys.argv[3]).name
child = os.fork()
sys.stdout.write(f"{first} {client.team(sys.argv[3]).name}\\n")  # at once: both write
sys.stdout.flush()
if child:
    os.waitpid(child, 0)
"""


def test_a_client_works_after_a_fork(live_server, token):
    command = [sys.executable, "-c", FORKED, live_server.url, token, live_server.slug]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout == "Ada Ada\n" * 2
