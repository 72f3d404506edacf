"""The submit page: replies to valid and invalid files, with and without a script."""

import json

import pytest

from support.server.live_server import make_predictions

VALID_FILE = make_predictions(60)
LINES = VALID_FILE.decode().splitlines()


def join_lines(*lines):
    return "\n".join(lines).encode()


INVALID_FILES = {
    "missing ids": (
        join_lines(*LINES[:20], *LINES[23:]),
        ["One thing is wrong with this file Nothing was counted.", "3 missing ids: 19, 20, 21"],
    ),
    "many missing ids": (
        join_lines(*LINES[:300]),
        ["101 missing ids: 299, 300, 301", "and 91 more"],
    ),
    "ids that come twice": (
        join_lines(*LINES, LINES[5], LINES[9]),
        ["2 duplicate ids: 4, 8"],
    ),
    "values that are none": (
        join_lines(*LINES[:8], "7,nan", "8,", "9,maybe", *LINES[11:]),
        ["7", "8", "9", "Nothing was counted"],
    ),
    "other columns": (
        join_lines("id,name,guess", *(f"{line},1" for line in LINES[1:])),
        ["'name'", "Nothing was counted"],
    ),
    "two mistakes at once": (
        join_lines(*LINES[:20], *LINES[23:], LINES[5], "zebra,1"),
        ["3 things are wrong", "19, 20, 21", "zebra", "1 duplicate id"],
    ),
    "no table at all": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4, ["Nothing was counted"]),
    "nothing": (b"", ["empty", "Nothing was counted"]),
}


@pytest.fixture
def submit_page(make_board, live_server):
    """Give the path of a small board's submit page, and the token of a team."""
    slug = make_board(finals="{selections: 2}")
    return f"/boards/{slug}/submit", live_server.join("Alpha")[1]


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_replies_to_valid_files(visit, live_server, submit_page, script):
    path, token = submit_page
    team = visit(token, script=script)
    assert team.open(path) == 200
    assert "Alpha: 25 submissions left" in team.text()
    reply = team.submit_file(VALID_FILE)
    assert reply.startswith("New best: 0.8 Accuracy 0.8 is the first score. 24 submissions left.")
    assert "What a score promises" in reply
    reply = team.submit_file(make_predictions(59))
    assert reply.startswith(
        "No measurable improvement Your best: accuracy 0.8. "
        "Improvements smaller than about 0.01 may not be detected. 23 submissions left."
    )
    assert script == bool(team.page.locator("main time[title*='your time']").count())
    reply = team.submit_file(VALID_FILE)
    assert reply.startswith(
        "Duplicate of submission 1 Not counted. "
        "After submission 1 your best was accuracy 0.8. 23 submissions left."
    )
    team.page.get_by_label("Message").fill("half as many mistakes <b>")
    reply = team.submit_file(make_predictions(30))
    assert reply.startswith("New best: 0.9 Accuracy went from 0.8 to 0.9. 22 submissions left.")
    rows = team.page.get_by_role("region", name="Your submissions").get_by_role("row")
    history = [" ".join(row.split()) for row in rows.all_inner_texts()]
    assert len(history) == 4
    assert history[1].startswith("3 0.9 ▲ yes just now half as many mistakes <b>")
    assert history[3].startswith("1 0.8 ▲ yes just now")
    team.open(path.replace("/submit", "/leaderboard"))
    row = team.page.get_by_role("row", name="Alpha").first.inner_text()
    assert "0.9" in row.split()


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_errors_of_invalid_files_are_listed_and_cost_nothing(visit, submit_page, script):
    path, token = submit_page
    team = visit(token, script=script)
    team.monitor.expect_statuses(422)
    team.open(path)
    for kind, (body, expected) in INVALID_FILES.items():
        reply = team.submit_file(body)
        assert [phrase for phrase in expected if phrase not in reply] == [], (kind, reply)
        assert team.page.locator("#reply").get_attribute("role") == "alert"
    assert "Alpha: 25 submissions left" in team.text()
    assert team.submit_file(VALID_FILE).startswith("New best: 0.8 ")


def test_a_checked_file_stays_chosen(visit, submit_page):
    path, token = submit_page
    team = visit(token)
    team.open(path)
    team.choose_file(VALID_FILE, "trees.csv")
    team.page.get_by_label("Message").fill("deeper trees")
    team.page.get_by_role("button", name="Check only").click()
    team.page.wait_for_selector("#reply")
    assert team.text("#reply").endswith("The file is still chosen: you can submit it.")
    assert "trees.csv" in team.text("#drop")
    team.page.get_by_role("button", name="Submit").click()
    team.page.wait_for_selector("#reply h2:has-text('New best: 0.8')")
    assert "deeper trees" in team.text("main")


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_files_that_are_too_large_are_refused(visit, make_board, live_server, script):
    slug = make_board(files="{bytes: 8000}")
    team = visit(live_server.join("Alpha")[1], script=script)
    if not script:
        team.monitor.expect_statuses(413)
    team.open(f"/boards/{slug}/submit")
    assert "at most 8 kB" in team.text()
    reply = team.submit_file(join_lines(*LINES * 4), "all of it.csv")
    expected = "all of it.csv has 9.21 kB; at most 8 kB are taken. Nothing was sent."
    assert reply == (
        expected if script else "The file is larger than 8 kB, the limit of this board. "
        "Nothing was counted."
    )  # fmt: skip


def large_file(wrong):
    """Return valid predictions in a large file."""
    rows = (line.split(",") for line in make_predictions(wrong).decode().splitlines()[1:])
    padding = " " * 1500
    return "".join(
        f'{{"id": {id_},{padding}"prediction": {value}}}\n' for id_, value in rows
    ).encode()


class ThrottledConnection:
    """A visitor's connection with limited upload speed."""

    def __init__(self, visitor):
        self._session = visitor.context.new_cdp_session(visitor.page)
        self._session.send("Network.enable")

    def set(self, bytes_per_second):
        conditions = {"offline": False, "latency": 0, "downloadThroughput": -1}
        conditions["uploadThroughput"] = bytes_per_second
        self._session.send("Network.emulateNetworkConditions", conditions)


def test_an_upload_shows_progress_and_can_be_cancelled(visit, submit_page):
    path, token = submit_page
    team = visit(token)
    page = team.page
    team.open(path)
    connection = ThrottledConnection(team)
    connection.set(200_000)
    team.choose_file(large_file(60), "predictions.jsonl")
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
    connection.set(-1)
    page.get_by_role("button", name="Submit").click()  # the file is still chosen
    page.get_by_role("heading", name="New best: 0.8").wait_for()


def test_a_broken_connection_is_reported(visit, submit_page):
    path, token = submit_page
    team = visit(token)
    team.open(path)
    team.monitor.allow_abort("/submit?csrf=")
    team.monitor.allow_abort("/static/icon.svg")
    team.context.set_offline(True)
    assert team.submit_file(VALID_FILE) == (
        "The connection broke. Sending the same file again is safe: it is counted once."
    )
    team.context.set_offline(False)
    assert team.submit_file(VALID_FILE).startswith("New best: 0.8 ")


def test_a_file_can_be_dropped_on_the_page(visit, submit_page):
    path, token = submit_page
    team = visit(token)
    page = team.page
    team.open(path)
    files = page.evaluate_handle(
        """(files) => {
          const data = new DataTransfer();
          for (const [name, body] of files) data.items.add(new File([body], name));
          return data;
        }""",
        [["mine.csv", VALID_FILE.decode()]],
    )
    zone = page.locator("#drop")
    background = zone.evaluate("(each) => getComputedStyle(each).backgroundColor")
    zone.dispatch_event("dragover", {"dataTransfer": files})
    assert zone.evaluate("(each) => getComputedStyle(each).backgroundColor") != background
    zone.dispatch_event("drop", {"dataTransfer": files})
    assert zone.evaluate("(each) => getComputedStyle(each).backgroundColor") == background
    assert "mine.csv, 2.3" in zone.inner_text()
    page.get_by_role("button", name="Submit").click()
    page.get_by_role("heading", name="New best: 0.8").wait_for()


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_selecting_submissions_for_the_finals(visit, live_server, submit_page, script):
    path, token = submit_page
    for wrong in (60, 50, 40):
        live_server.submit(token, make_predictions(wrong))
    team = visit(token, script=script)
    page = team.page
    team.open(path)
    assert "the 2 with the best exact public scores are taken" in team.text()
    boxes = page.get_by_role("checkbox")
    assert boxes.count() == 3
    boxes.nth(1).check()
    boxes.nth(2).check()
    if script:
        assert "2 of 2 selected" in team.text()
    page.get_by_role("button", name="Save the selection").click()
    page.get_by_text("You have selected 2.").wait_for()
    chosen = live_server.call("GET", "/boards/first/selections", token).json()
    submissions = live_server.call("GET", "/boards/first/submissions", token).json()["submissions"]
    assert {submission["number"] for submission in submissions if submission["selected"]} == {
        1,
        2,
    }, chosen
    boxes.nth(0).check()
    if script:
        assert "3 of 2 selected: 1 too many" in team.text()
    team.monitor.expect_statuses(422)
    page.get_by_role("button", name="Save the selection").click()
    page.get_by_role("alert").wait_for()
    assert "2" in team.text("[role=alert]")
    submissions = live_server.call("GET", "/boards/first/submissions", token).json()["submissions"]
    assert {submission["number"] for submission in submissions if submission["selected"]} == {1, 2}
    assert json.dumps(submissions).count("selected") == 3
