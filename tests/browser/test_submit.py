"""Submitting: what comes back for good files and bad ones, with a script and without."""

import json

import pytest

from support.server.live_server import make_predictions

GOOD = make_predictions(60)
LINES = GOOD.decode().splitlines()


def text(*lines):
    return "\n".join(lines).encode()


BAD = {
    "missing ids": (
        text(*LINES[:20], *LINES[23:]),
        ["One thing is wrong with this file. Nothing was counted.", "Missing", "3 ids: 19, 20, 21"],
    ),
    "many missing ids": (text(*LINES[:300]), ["101 ids: 299, 300, 301", "and 91 more"]),
    "ids that come twice": (text(*LINES, LINES[5], LINES[9]), ["More than once", "2 ids: 4, 8"]),
    "values that are none": (
        text(*LINES[:8], "7,nan", "8,", "9,maybe", *LINES[11:]),
        ["7", "8", "9", "Nothing was counted"],
    ),
    "other columns": (
        text("id,name,guess", *(f"{line},1" for line in LINES[1:])),
        ["'name'", "Nothing was counted"],
    ),
    "two mistakes at once": (
        text(*LINES[:20], *LINES[23:], LINES[5], "zebra,1"),
        ["3 things are wrong", "19, 20, 21", "zebra", "More than once"],
    ),
    "no table at all": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4, ["Nothing was counted"]),
    "nothing": (b"", ["empty", "Nothing was counted"]),
}


@pytest.fixture
def small(make_board, live_server):
    """Give a small board's page to submit on, and the token of a team."""
    slug = make_board(finals="{selections: 2}")
    return f"/boards/{slug}/submit", live_server.join("Alpha")[1]


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_good_files(visit, live_server, small, script):
    path, token = small
    team = visit(token, script=script)
    assert team.open(path) == 200
    assert "Alpha: 25 questions left" in team.text()
    said = team.submit_file(GOOD)
    assert said.startswith("A new best: 0.800; 24 questions left.")
    assert "With confidence 95%, the best of your models so far truly has accuracy between" in said
    said = team.submit_file(make_predictions(59))
    assert said.startswith(
        "Your best stays 0.800; gains below about 0.01 may go unseen; 23 questions left."
    )
    assert "does not mean that this model is no better" in said
    assert script == bool(team.page.locator("main time[title$='your time']").count())
    said = team.submit_file(GOOD)
    assert said.startswith(
        "The same predictions were answered before, as your submission 1; nothing was counted. "
        "Then your best became 0.800; 23 questions left."
    )
    team.page.get_by_label("Message").fill("half as many mistakes <b>")
    said = team.submit_file(make_predictions(30))
    assert said.startswith("A new best: 0.900 (was 0.800); 22 questions left.")
    rows = team.page.get_by_role("region", name="Your submissions").get_by_role("row")
    told = [" ".join(row.split()) for row in rows.all_inner_texts()]
    assert len(told) == 4
    assert told[1].startswith("3 0.900 yes 2027-01-15 08:00 UTC half as many mistakes <b>")
    assert told[3].startswith("1 0.800 yes 2027-01-15 08:00 UTC")
    team.open(path.removesuffix("/submit"))
    row = team.page.get_by_role("row", name="Alpha").first.inner_text()
    assert "0.900" in row


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_bad_files_are_listed_and_cost_nothing(visit, small, script):
    path, token = small
    team = visit(token, script=script)
    team.monitor.expect_statuses(422)
    team.open(path)
    for kind, (body, told) in BAD.items():
        said = team.submit_file(body)
        assert [each for each in told if each not in said] == [], (kind, said)
        assert team.page.locator("#reply").get_attribute("role") == "alert"
    assert "Alpha: 25 questions left" in team.text()
    assert team.submit_file(GOOD).startswith("A new best: 0.800; 24 questions left.")


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_file_that_is_too_large(visit, make_board, live_server, script):
    slug = make_board(files="{bytes: 8000}")
    team = visit(live_server.join("Alpha")[1], script=script)
    if not script:
        team.monitor.expect_statuses(413)
    team.open(f"/boards/{slug}/submit")
    assert "at most 8 kB" in team.text()
    said = team.submit_file(text(*LINES * 4), "all of it.csv")
    expected = "all of it.csv has 9.21 kB; at most 8 kB are taken. Nothing was sent."
    assert said == (
        expected if script else "Predictions are larger than 8000 bytes, which is the limit here. "
        "Nothing was counted."
    )  # fmt: skip


def big(wrong):
    """Return good predictions with much air in them."""
    rows = (line.split(",") for line in make_predictions(wrong).decode().splitlines()[1:])
    air = " " * 1500
    return "".join(f'{{"id": {at},{air}"prediction": {value}}}\n' for at, value in rows).encode()


class Line:
    """The way to the server, which can be made slow."""

    def __init__(self, visitor):
        self._session = visitor.context.new_cdp_session(visitor.page)
        self._session.send("Network.enable")

    def set(self, bytes_a_second):
        how = {"offline": False, "latency": 0, "downloadThroughput": -1}
        how["uploadThroughput"] = bytes_a_second
        self._session.send("Network.emulateNetworkConditions", how)


def test_progress_is_seen_and_sending_can_be_cancelled(visit, small):
    path, token = small
    team = visit(token)
    page = team.page
    team.open(path)
    line = Line(team)
    line.set(200_000)
    team.choose_file(big(60), "predictions.jsonl")
    page.get_by_role("button", name="Submit").click()
    half_way = "() => { const bar = document.querySelector('progress');"
    page.wait_for_function(half_way + " return bar && bar.value > 0.05 && bar.value < 0.95; }")
    assert page.get_by_role("progressbar", name="Sending").is_visible()
    assert page.get_by_role("button", name="Submit").is_disabled()
    team.monitor.allow_abort("/submit?csrf=")
    page.get_by_role("button", name="Cancel").click()
    page.wait_for_selector("#reply")
    assert "Sending the same file again is safe" in team.text("#reply")
    assert page.locator("progress").count() == 0
    assert (
        team.live_server.call("GET", "/boards/first/submissions", token).json()["submissions"] == []
    )
    line.set(-1)
    page.get_by_role("button", name="Submit").click()  # the file is still chosen
    page.get_by_text("A new best: 0.800; 24 questions left.").wait_for()


def test_a_connection_that_breaks(visit, small):
    path, token = small
    team = visit(token)
    team.open(path)
    team.monitor.allow_abort("/submit?csrf=")
    team.monitor.allow_abort("/static/icon.svg")
    team.context.set_offline(True)
    assert team.submit_file(GOOD) == (
        "The connection broke. Sending the same file again is safe: it is counted once."
    )
    team.context.set_offline(False)
    assert team.submit_file(GOOD).startswith("A new best: 0.800; 24 questions left.")


def test_a_file_is_dropped(visit, small):
    path, token = small
    team = visit(token)
    page = team.page
    team.open(path)
    files = page.evaluate_handle(
        """(files) => {
          const data = new DataTransfer();
          for (const [name, body] of files) data.items.add(new File([body], name));
          return data;
        }""",
        [["mine.csv", GOOD.decode()]],
    )
    zone = page.locator("#drop")
    plain = zone.evaluate("(each) => getComputedStyle(each).backgroundColor")
    zone.dispatch_event("dragover", {"dataTransfer": files})
    assert zone.evaluate("(each) => getComputedStyle(each).backgroundColor") != plain
    zone.dispatch_event("drop", {"dataTransfer": files})
    assert zone.evaluate("(each) => getComputedStyle(each).backgroundColor") == plain
    assert "mine.csv, 2.3" in zone.inner_text()
    page.get_by_role("button", name="Submit").click()
    page.get_by_text("A new best: 0.800; 24 questions left.").wait_for()


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_finals_are_selected(visit, live_server, small, script):
    path, token = small
    for wrong in (60, 50, 40):
        live_server.submit(token, make_predictions(wrong))
    team = visit(token, script=script)
    page = team.page
    team.open(path)
    assert "You have selected none, so your latest 2 submissions with a new best" in team.text()
    boxes = page.get_by_role("checkbox")
    assert boxes.count() == 3
    boxes.nth(1).check()
    boxes.nth(2).check()
    if script:
        assert "2 of 2 selected" in team.text()
    page.get_by_role("button", name="Save the selection").click()
    page.get_by_text("You have selected 2; these alone take part.").wait_for()
    chosen = live_server.call("GET", "/boards/first/selections", token).json()
    own = live_server.call("GET", "/boards/first/submissions", token).json()["submissions"]
    assert {each["number"] for each in own if each["selected"]} == {1, 2}, chosen
    boxes.nth(0).check()
    if script:
        assert "3 of 2 selected: 1 too many" in team.text()
    team.monitor.expect_statuses(422)
    page.get_by_role("button", name="Save the selection").click()
    page.get_by_role("alert").wait_for()
    assert "2" in team.text("[role=alert]")
    own = live_server.call("GET", "/boards/first/submissions", token).json()["submissions"]
    assert {each["number"] for each in own if each["selected"]} == {1, 2}
    assert json.dumps(own).count("selected") == 3
