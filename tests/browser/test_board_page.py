"""The pages of boards in every state, downloads and snippets."""

import csv
import io
import json
import os
import re
import subprocess
import sys

import pytest


def table_rows(visitor, name):
    """Return the texts of the cells of a table, by the name of its section."""
    rows = visitor.page.get_by_role("region", name=name).first.get_by_role("row")
    return [row.split("\t") for row in rows.all_inner_texts()]


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_the_list_shows_every_board(visit, example_boards, script):
    visitor = visit(script=script)
    visitor.open("/")
    cards = [
        " ".join(text.split()) for text in visitor.page.locator(".cards > li").all_inner_texts()
    ]
    assert len(cards) == len(example_boards.boards)
    leaves, birds, beetles, digits = (
        f"{example_boards.live_server.call('GET', f'/boards/{slug}').json()['best']['display']:g}"
        for slug in ("leaves", "birdsong", "beetles-2026", "digits")
    )
    expected = {
        "Leaves of six trees": f"open Best accuracy {leaves} Teams 31 Deadline in 17 days",
        "Edible or not": "open standings hidden Best accuracy hidden Deadline none",
        "Birds by their song": f"open standings frozen Best accuracy {birds} Deadline none",
        "Beetles, 2026": f"closed Best public accuracy {beetles} Teams 6",
        "Seedlings in spring": "not open yet Teams 0 Opens in 45 days Deadline in 2 months",
        "Handwritten digits": f"open Best accuracy {digits} Teams 5 Deadline none",
    }
    for title, facts in expected.items():
        assert any(card.startswith(f"{title} {facts}") for card in cards), (title, cards)
    visitor.page.get_by_role("link", name="Leaves of six trees").click()
    assert visitor.page.get_by_role("heading", level=1).inner_text() == "Leaves of six trees"


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_standings_show_ties_baselines_and_the_own_team(visit, example_boards, script):
    board = example_boards["leaves"]
    own_team = board.teams[0]
    public, team = visit(script=script), visit(own_team.token, script=script)
    public.open("/boards/leaves/leaderboard")
    rows = table_rows(public, "Leaderboard")[1:]
    assert len(rows) == 25 + 1  # teams a page, and a baseline that is not a team
    public.page.get_by_role("link", name="Next page").click()
    rows += table_rows(public, "Leaderboard")[1:]
    ranked = [row for row in rows if row[0]]
    assert len(ranked) == 30
    values = [float(row[2]) for row in ranked]
    assert values == sorted(values, reverse=True)
    for rank, _, value, *_ in ranked:  # equal values share a rank, marked with =
        equal = [float(value) == other for other in values]
        assert rank == f"{'=' if sum(equal) > 1 else ''}{equal.index(True) + 1}"
    assert any(rank.startswith("=") for rank, *_ in ranked)
    names = {row[1] for row in rows}
    assert {"A botanist (measured on other leaves) baseline", "Always oak baseline"} <= names
    assert {"O'Hara & Sons <leaves>", "Φύλλα", "Нейролес"} <= names
    assert next(row for row in rows if row[1] == "Latecomers")[2] == "none yet"
    team.open("/boards/leaves/leaderboard")
    marked = [row for row in table_rows(team, "Leaderboard")[1:] if "you" in row[1].split()]
    assert [row[1].split()[0] for row in marked] == [own_team.name] * 2  # pinned, and in its place
    public.open("/boards/leaves")
    team.open("/boards/leaves")
    assert f"{own_team.name} you" in team.text()
    assert "you" not in public.text().split()


def test_the_board_page_shows_history_rules_and_meanings(visit, example_boards):
    public = visit()
    texts = []
    for tab in ("/rules", "/verify", ""):
        public.open(f"/boards/leaves{tab}")
        texts.append(public.text())
    page, page_text = public.page, " ".join(texts)
    chart = page.locator("section", has=page.get_by_role("heading", name="Best score over time"))
    assert chart.locator("svg:visible").count() == 1
    assert chart.locator("svg:visible path, svg:visible polyline").count() >= 2  # line and band
    public.open("/boards/leaves/verify")
    page.locator("summary").click()
    records = table_rows(public, "New bests")[1:]
    assert len(records) >= 5
    best = [float(row[1]) for row in records]
    assert best == sorted(best, reverse=True)  # newest first
    bounds = [row[2] for row in records if row[2] != "none"]  # wide ones are of no use
    assert bounds
    for bound in bounds:
        low, high = (float(part) for part in bound.split(" to "))
        assert low <= high
    for fact in (
        "1,500 submissions", "at most 5 in any 24 hours", "2027-02-01 12:00 UTC",
        "at most 40 teams",
        "Score", "Improved", "Bound", "there is no useful guarantee for the true accuracy",
    ):  # fmt: skip
        assert fact in page_text, fact
    board = example_boards.live_server.call("GET", "/boards/leaves").json()
    assert board["commitment"] in page_text
    assert board["head"]["hash"] in page_text


def test_downloads_are_complete_and_snippets_run(visit, example_boards, tmp_path):
    board = example_boards["leaves"]
    public = visit()
    public.context.grant_permissions(["clipboard-read", "clipboard-write"])
    public.open("/boards/leaves/verify")
    page = public.page
    public.monitor.allow_abort("/boards/leaves/")

    def download(name):
        downloads = page.get_by_role("region", name="Downloads")
        with page.expect_download() as downloading:
            downloads.get_by_role("link", name=name).first.click()
        return downloading.value.path().read_text(), downloading.value.suggested_filename

    text, name = download("CSV")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert name.endswith(".csv")
    assert {row["name"] for row in rows} == {"Always oak", *(team.name for team in board.teams)}
    text, _ = download("JSON")
    assert len(json.loads(text)["rows"]) == len(rows)
    text, _ = download("JSON Lines")
    assert (
        len(text.splitlines())
        == example_boards.live_server.call("GET", "/boards/leaves").json()["head"]["entries"]
    )
    # The copied snippet runs.
    public.open("/boards/leaves/submit")
    snippet = page.locator("pre", has_text="from ladderboard.client import Client")
    snippet.locator("xpath=following-sibling::button[1]").click()
    pasted = page.evaluate("navigator.clipboard.readText()")
    assert pasted == snippet.inner_text().strip()
    (tmp_path / "predictions.csv").write_bytes(board.make_predictions(0.4))
    environment = {
        **os.environ,
        "LADDERBOARD_TOKEN": board.teams[-1].token,
        "XDG_STATE_HOME": str(tmp_path),
    }
    completed = subprocess.run(
        [sys.executable, "-c", pasted], cwd=tmp_path, env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert re.match(r"A new best: \w+ 0\.\d+\. \d+ submissions left", completed.stdout), (
        completed.stderr
    )
