"""What the API says is in the board's metric; ``loss`` is the loss behind it."""

import csv
import io
import json
from dataclasses import replace

import pytest

from ladderboard.errors import BrokenLedger
from ladderboard.verify._receipts import read_receipts
from support.server.live_server import make_predictions


@pytest.mark.parametrize(
    ("loss", "shown"),
    [("accuracy", lambda loss: 1 - loss), ("{name: mse, range: [0, 2]}", lambda loss: 4 * loss)],
)
def test_a_board_speaks_of_its_metric_everywhere(empty_server, loss, shown, tmp_path):
    live_server = empty_server
    rules = {"loss": loss, "mechanism": "{name: ladder, step: 0.01}"}
    baselines = "[{name: Elsewhere, value: 0.25}]"
    live_server.create_board(**rules, questions=50, teams=2, baselines=baselines)
    _, token = live_server.join("Ada")
    told = live_server.submit(token, make_predictions(10, 30)).json()
    inside = told["loss"]
    assert 0 < inside < 0.5
    assert told["released"] == pytest.approx(shown(inside), abs=1e-12)
    assert told["display"]["released"] == pytest.approx(told["released"], abs=1e-4)
    assert (told["score"], told["score_loss"]) == (told["released"], inside)
    bound = told["bound"]
    ends = sorted((shown(bound["loss"]["low"]), shown(bound["loss"]["high"])))
    assert [bound["low"], bound["high"]] == pytest.approx(ends)
    assert bound["low"] <= told["released"] <= bound["high"]
    assert f"{told['display']['released']:.4f}" in told["reason"]

    # The ledger has losses: a kept answer is compared with them.
    (tmp_path / "answer.json").write_text(json.dumps(told))
    (receipt,) = read_receipts(tmp_path / "answer.json")
    lines = live_server.call("GET", "/boards/first/ledger").content.splitlines()
    entry = json.loads(lines[told["entry"]])
    receipt.check_entry(told["entry"], entry)
    with pytest.raises(BrokenLedger):
        replace(receipt, answer={**told, "loss": inside / 2}).check_entry(told["entry"], entry)

    board = live_server.call("GET", "/boards/first").json()
    assert (board["best"]["released"], board["best"]["loss"]) == (told["released"], inside)
    assert board["bound"]["low"] <= told["released"] <= board["bound"]["high"]
    page = live_server.call("GET", "/boards/first/leaderboard").json()
    (row,), (declared,) = page["rows"], page["declared"]
    assert (row["released"], row["loss"]) == (told["released"], inside)
    assert (declared["value"], declared["loss"]) == (pytest.approx(shown(0.25)), 0.25)
    (record,) = live_server.call("GET", "/boards/first/records").json()["records"]
    assert (record["released"], record["loss"]) == (told["released"], inside)
    (listed,) = live_server.call("GET", "/boards/first/submissions", token).json()["submissions"]
    assert (listed["released"], listed["loss"]) == (told["released"], inside)

    final = live_server.call("POST", "/boards/first/close", live_server.organiser).json()
    assert final == live_server.call("GET", "/boards/first/finals").json()
    (row,) = final["rows"]
    assert row["score"] == pytest.approx(shown(row["loss"]), abs=1e-12)
    assert row["low"] < row["score"] < row["high"]


def test_a_csv_has_metric_and_loss(empty_server):
    live_server = empty_server
    live_server.create_board(
        loss="accuracy", questions=50, teams=2, mechanism="{name: ladder, step: 0.01}"
    )
    _, token = live_server.join("Ada")
    told = live_server.submit(token, make_predictions(10)).json()
    with live_server.browser() as browser:
        said = browser.get(f"/boards/{live_server.slug}/standings.csv")
    (row,) = csv.DictReader(io.StringIO(said.text))
    assert float(row["released"]) == told["released"] == pytest.approx(1 - float(row["loss"]))
