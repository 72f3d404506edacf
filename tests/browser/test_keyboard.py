"""Submitting with the keyboard alone."""

from support.browser.keyboard import KeyboardUser
from support.server.live_server import make_predictions


def test_submitting_with_the_keyboard_alone(visit, make_board, live_server, tmp_path):
    slug = make_board(title="With keys alone")
    token = live_server.join("Alpha")[1]
    file = tmp_path / "predictions.csv"
    file.write_bytes(make_predictions(60))
    team = visit()
    page, keys = team.page, KeyboardUser(team)
    team.open("/")
    keys.focus("Skip to the content")
    keys.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    keys.follow("With keys alone")
    assert page.url.endswith(f"/boards/{slug}")
    keys.follow("Submit")
    assert page.url.endswith("/submit")
    keys.focus("Your team's token")
    keys.type(token)
    with page.expect_navigation():
        keys.press("Enter")
    assert "Alpha: 25 submissions left" in team.text()
    keys.focus("Predictions")
    with page.expect_file_chooser() as chooser:
        keys.press("Space")
    chooser.value.set_files(file)
    keys.focus("Message")
    keys.type("by hand")
    keys.focus("Submit")
    keys.press("Space")
    page.get_by_role("heading", name="New best: 0.8").wait_for()
    # The reply has the focus: screen readers read it, and Tab continues from there.
    assert page.evaluate("document.activeElement.id") == "reply"
    keys.focus("Predictions")
    assert "by hand" in team.text()


def test_a_refusal_gets_the_focus(visit, make_board, live_server):
    slug = make_board()
    team = visit(live_server.join("Alpha")[1])
    team.monitor.expect_statuses(422)
    team.open(f"/boards/{slug}/submit")
    team.choose_file(b"id,prediction\n1,1\n")
    keys = KeyboardUser(team)
    keys.focus("Message")
    keys.focus("Submit")
    keys.press("Enter")
    team.page.wait_for_selector("#reply")
    assert team.page.evaluate("document.activeElement.getAttribute('role')") == "alert"
    keys.focus("Predictions")
