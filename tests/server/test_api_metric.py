"""API values are in the board's metric; the field ``loss`` is the loss behind them."""

import csv
import io
import json
from dataclasses import replace

import pytest

from ladderboard.errors import BrokenLedger
from ladderboard.verify._receipts import read_receipts
from support.server.live_server import make_predictions


@pytest.mark.parametrize(
    ("loss", "to_metric"),
    [("accuracy", lambda loss: 1 - loss), ("{name: mse, range: [0, 2]}", lambda loss: 4 * loss)],
)
def test_all_replies_show_the_metric_and_the_loss(empty_server, loss, to_metric, tmp_path):
    live_server = empty_server
    rules = {"loss": loss, "mechanism": "{name: ladder, step: 0.01}"}
    baselines = "[{name: Elsewhere, value: 0.25}]"
    live_server.create_board(**rules, questions=50, teams=2, baselines=baselines)
    _, token = live_server.join("Ada")
    submission = live_server.submit(token, make_predictions(10, 30)).json()
    loss_value = submission["loss"]
    assert 0 < loss_value < 0.5
    assert submission["released"] == pytest.approx(to_metric(loss_value), abs=1e-12)
    assert submission["display"]["released"] == pytest.approx(submission["released"], abs=1e-4)
    assert (submission["score"], submission["score_loss"]) == (submission["released"], loss_value)
    bound = submission["bound"]
    expected = sorted((to_metric(bound["loss"]["low"]), to_metric(bound["loss"]["high"])))
    assert [bound["low"], bound["high"]] == pytest.approx(expected)
    assert bound["low"] <= submission["released"] <= bound["high"]
    assert f"{submission['display']['released']:g}" in submission["reason"]

    # The ledger records losses; a receipt is checked against them.
    (tmp_path / "answer.json").write_text(json.dumps(submission))
    (receipt,) = read_receipts(tmp_path / "answer.json")
    lines = live_server.call("GET", "/boards/first/ledger").content.splitlines()
    entry = json.loads(lines[submission["entry"]])
    receipt.check_entry(submission["entry"], entry)
    with pytest.raises(BrokenLedger):
        replace(receipt, answer={**submission, "loss": loss_value / 2}).check_entry(
            submission["entry"], entry
        )

    board = live_server.call("GET", "/boards/first").json()
    assert (board["best"]["released"], board["best"]["loss"]) == (
        submission["released"],
        loss_value,
    )
    assert board["bound"]["low"] <= submission["released"] <= board["bound"]["high"]
    page = live_server.call("GET", "/boards/first/leaderboard").json()
    (row,), (declared,) = page["rows"], page["declared"]
    assert (row["released"], row["loss"]) == (submission["released"], loss_value)
    assert (declared["value"], declared["loss"]) == (pytest.approx(to_metric(0.25)), 0.25)
    (record,) = live_server.call("GET", "/boards/first/records").json()["records"]
    assert (record["released"], record["loss"]) == (submission["released"], loss_value)
    (listed,) = live_server.call("GET", "/boards/first/submissions", token).json()["submissions"]
    assert (listed["released"], listed["loss"]) == (submission["released"], loss_value)

    final = live_server.call("POST", "/boards/first/close", live_server.organiser).json()
    assert final == live_server.call("GET", "/boards/first/finals").json()
    (row,) = final["rows"]
    assert row["score"] == pytest.approx(to_metric(row["loss"]), abs=1e-12)
    assert row["low"] < row["score"] < row["high"]


def test_a_csv_has_metric_and_loss(empty_server):
    live_server = empty_server
    live_server.create_board(
        loss="accuracy", questions=50, teams=2, mechanism="{name: ladder, step: 0.01}"
    )
    _, token = live_server.join("Ada")
    submission = live_server.submit(token, make_predictions(10)).json()
    with live_server.browser() as browser:
        response = browser.get(f"/boards/{live_server.slug}/standings.csv")
    (row,) = csv.DictReader(io.StringIO(response.text))
    assert float(row["released"]) == submission["released"] == pytest.approx(1 - float(row["loss"]))


def test_page_api_and_csv_show_the_mean_rank_that_orders_them(empty_server):
    server = empty_server
    server.create_board(
        metric="accuracy",
        loss=None,
        metrics="[{name: f1_macro, show: live}]",
        leaderboard_metric="mean_rank",
        mechanism="{name: ladder, step: 0.01}",
        baselines="[{name: Elsewhere, value: 0.25}]",
        teams=3,
    )
    for name, errors in {"Ada": 60, "Bob": 30}.items():
        assert server.submit(server.join(name)[1], make_predictions(errors)).status_code == 201
    server.join("Zoe")
    page = server.call("GET", "/boards/first/leaderboard").json()
    assert page["ranked_by"] == "mean_rank"
    rows = [(row["team"]["name"], row["rank"], row["mean_rank"]) for row in page["rows"]]
    assert rows == [("Bob", 1, 1.0), ("Ada", 2, 2.0), ("Zoe", None, None)]
    assert server.call("GET", "/boards/first").json()["leaderboard_metric"] == "mean_rank"
    table = server.call("GET", "/boards/first/leaderboard?format=csv").text
    lines = list(csv.DictReader(io.StringIO(table)))
    assert [line["mean_rank"] for line in lines] == ["1.0", "2.0", ""]
    text = server.client.get(f"/boards/{server.slug}/leaderboard").text
    assert "Mean rank" in text
    rules = server.client.get(f"/boards/{server.slug}/rules").text
    assert "ordered by the mean of a team&#39;s ranks in accuracy and macro-F1" in rules
    names = [text.index(f"<td>{name}") for name in ("Bob", "Ada", "Zoe", "Elsewhere")]
    assert names == sorted(names)
