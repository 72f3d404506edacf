"""Play: the film runs, stands still and goes by hand; without a script all of it is there."""

import re
from pathlib import Path

import pytest

from ladderboard.board import read_folder

EXAMPLE = Path(__file__).parents[2] / "examples/digits"
PLACE = "/boards/digits/play"


def numbers(visitor):
    """Return what the six curves show, as the words beside the pictures say it."""
    return [float(text) for text in visitor.page.locator(".play-shown").all_inner_texts()]


def asked(visitor):
    return int(visitor.text(".play-controls output").split(" of ")[0].replace(",", ""))


def revealed(visitor):
    """Return how much of each picture is to be seen, from 0 to 1."""
    widths = visitor.page.locator("clipPath rect").evaluate_all(
        "all => all.map((each) => each.getAttribute('width') / 292)"
    )
    assert len(set(widths)) == 1
    return widths[0]


@pytest.fixture(scope="module")
def digits_board(live_server):
    """Create the example board."""
    return live_server.boards.create(read_folder(EXAMPLE))


@pytest.fixture
def still_visitor(visit, digits_board):
    """Give somebody who would rather have nothing move."""
    made = visit()
    made.open(PLACE)
    made.page.wait_for_selector(".play-controls")
    return made


def test_it_stands_still_for_who_wants_it_and_goes_by_hand(still_visitor):
    page, whole = still_visitor.page, numbers(still_visitor)
    page.wait_for_timeout(300)
    assert (asked(still_visitor), revealed(still_visitor)) == (1_000, 1.0)
    slider = page.get_by_role("slider", name="Questions asked")
    slider.focus()
    page.keyboard.press("Home")
    assert asked(still_visitor) == 10
    assert revealed(still_visitor) == pytest.approx(0.01)
    assert all(few <= all_ for few, all_ in zip(numbers(still_visitor), whole, strict=True))
    assert page.locator(".play-label:visible").count() == 0
    page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "20 of 1,000 questions"
    said = still_visitor.page.locator(".play-controls [aria-live]").text_content()
    assert said.startswith("After 20 of 1,000 questions. Exact scores: Patient attack shows")
    page.keyboard.press("End")
    assert (numbers(still_visitor), revealed(still_visitor)) == (whole, 1.0)
    assert page.locator(".play-label:visible").count() == 6


def test_numbers_and_words_by_hand_are_those_of_the_table(still_visitor):
    page = still_visitor.page
    rows = page.locator("#numbers ~ tbody tr").all_text_contents()
    for at in (0, 4, 9):
        found = [float(match_) for match_ in re.findall(r"[01]\.\d{3}", rows[at])]
        page.locator("#play-frame").fill(str(10 * (at + 1)))
        assert numbers(still_visitor) == found
        words = page.locator(".play-gap").all_inner_texts()
        gaps = [float(re.fullmatch("looks (.*) better than it is", word)[1]) for word in words]
        assert gaps == pytest.approx([each - 0.75 for each in found], abs=0.0011)


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_what_the_picture_is_there_to_say(visit, digits_board, script):
    visitor = visit(script=script)
    visitor.open(PLACE)
    assert visitor.page.locator(".play-panel h3").all_inner_texts() == [
        "Exact scores", "Ladder", "Shaky Ladder",
    ]  # fmt: skip
    patient, majority = numbers(visitor)[::2], numbers(visitor)[1::2]
    for exact, ladder, shaky in (patient, majority):
        assert 0.75 < shaky < ladder < exact - 0.1
    for picture in visitor.page.locator(".play-panel svg[role=img]").all():
        assert picture.bounding_box()["height"] > 150


def test_real_boards_have_none(visit, make_board):
    slug = make_board(title="In earnest")
    visitor = visit()
    visitor.monitor.expect_statuses(404)
    assert visitor.open(f"/boards/{slug}/play") == 404
    visitor.open(f"/boards/{slug}")
    tabs = visitor.page.get_by_role("navigation", name="In earnest")
    assert tabs.get_by_role("link").all_inner_texts() == ["Board", "Submit"]


def test_it_plays_and_pauses(visit, digits_board):
    visitor = visit(motion=True)
    visitor.open(PLACE)
    page = visitor.page
    page.get_by_role("button", name="Pause").click()  # it began by itself
    page.get_by_role("button", name="Play").wait_for()
    before = asked(visitor)
    assert before < 1_000
    page.wait_for_timeout(200)
    assert asked(visitor) == before
    page.get_by_role("button", name="Play").click()
    live = page.locator(".play-controls [aria-live]")
    assert live.text_content() == ""  # nothing is read aloud on the way
    page.get_by_role("button", name="Play").wait_for()  # it has come to its end
    assert (asked(visitor), revealed(visitor)) == (1_000, 1.0)
    assert live.text_content().startswith("After 1,000 of 1,000 questions.")


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_another_choice(visit, digits_board, script):
    visitor = visit(script=script)
    visitor.open("/boards/digits")
    page = visitor.page
    page.get_by_role("link", name="Play", exact=True).click()
    small = numbers(visitor)
    page.get_by_label("Hidden labels", exact=True).select_option("10000")
    page.get_by_label("Shaky Ladder's noise").select_option("as calibrated")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**n=10000**")
    assert all(large < each for large, each in zip(numbers(visitor), small, strict=True))
    assert page.locator(".play-label:visible").count() == 6
    assert page.locator(".play-controls").count() == script
    visitor.open(f"{PLACE}?n=12")
    assert visitor.text("[role=alert]") == "There is nothing for n '12'; this is 1,000."
    assert numbers(visitor) == small
