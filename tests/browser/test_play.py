"""The Play page: the animation plays, pauses and follows the slider; it works without a script."""

import re
from pathlib import Path

import pytest

from ladderboard.board import read_folder

EXAMPLE = Path(__file__).parents[2] / "examples/digits"
PLAY_PATH = "/boards/digits/play"


def shown_accuracies(visitor):
    """Return the accuracies of the six curves, from the text beside the charts."""
    return [float(text) for text in visitor.page.locator(".play-shown").all_inner_texts()]


def questions_asked(visitor):
    return int(visitor.text(".play-controls output").split(" of ")[0].replace(",", ""))


def revealed_fraction(visitor):
    """Return the visible fraction of the curves, from 0 to 1."""
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
    """Give a visitor whose browser asks for reduced motion."""
    visitor = visit()
    visitor.open(PLAY_PATH)
    visitor.page.wait_for_selector(".play-controls")
    return visitor


@pytest.mark.parametrize("width", [390, 785])
def test_what_the_noise_buys_fits_into_its_card(still_visitor, width):
    still_visitor.page.set_viewport_size({"width": width, "height": 844})
    table = still_visitor.page.get_by_role("region", name="The Growing Ladder with")
    assert table.evaluate("region => region.scrollWidth - region.clientWidth") == 0


def test_reduced_motion_stops_the_animation_and_the_slider_works(still_visitor):
    page, final = still_visitor.page, shown_accuracies(still_visitor)
    page.wait_for_timeout(300)
    assert (questions_asked(still_visitor), revealed_fraction(still_visitor)) == (1_000, 1.0)
    slider = page.get_by_role("slider", name="Submissions made")
    slider.focus()
    page.keyboard.press("Home")
    assert questions_asked(still_visitor) == 10
    assert revealed_fraction(still_visitor) == pytest.approx(0.01)
    assert all(
        early <= last for early, last in zip(shown_accuracies(still_visitor), final, strict=True)
    )
    assert page.locator(".play-label:visible").count() == 0
    page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "20 of 1,000 submissions"
    announced = still_visitor.page.locator(".play-controls [aria-live]").text_content()
    assert announced.startswith("After 20 of 1,000 submissions. Exact scores: Patient attack shows")
    page.keyboard.press("End")
    assert (shown_accuracies(still_visitor), revealed_fraction(still_visitor)) == (final, 1.0)
    assert page.locator(".play-label:visible").count() == 6


def test_the_slider_shows_the_numbers_of_the_table(still_visitor):
    page = still_visitor.page
    rows = page.locator("#numbers ~ tbody tr").all_text_contents()
    for index in (0, 4, 9):
        accuracies = [float(text) for text in re.findall(r"[01]\.\d{3}", rows[index])]
        page.locator("#play-frame").fill(str(10 * (index + 1)))
        assert shown_accuracies(still_visitor) == accuracies
        texts = page.locator(".play-gap").all_inner_texts()
        gaps = [float(re.fullmatch("looks (.*) better than it is", text)[1]) for text in texts]
        assert gaps == pytest.approx([accuracy - 0.75 for accuracy in accuracies], abs=0.0011)


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_the_charts_order_the_boards_by_gain(visit, digits_board, script):
    visitor = visit(script=script)
    visitor.open(PLAY_PATH)
    assert visitor.page.locator(".play-panel h3").all_inner_texts() == [
        "Exact scores", "Ladder", "Growing Ladder",
    ]  # fmt: skip
    patient, majority = shown_accuracies(visitor)[::2], shown_accuracies(visitor)[1::2]
    for exact, ladder, shaky in (patient, majority):
        assert 0.75 < shaky < ladder < exact - 0.1
    for picture in visitor.page.locator(".play-panel svg[role=img]").all():
        assert picture.bounding_box()["height"] > 150


def test_the_animation_plays_and_pauses(visit, digits_board):
    visitor = visit(motion=True)
    visitor.open(PLAY_PATH)
    page = visitor.page
    page.get_by_role("button", name="Pause").click()  # it starts by itself
    page.get_by_role("button", name="Play").wait_for()
    before = questions_asked(visitor)
    assert before < 1_000
    page.wait_for_timeout(200)
    assert questions_asked(visitor) == before
    page.get_by_role("button", name="Play").click()
    live = page.locator(".play-controls [aria-live]")
    assert live.text_content() == ""  # nothing is announced while it plays
    page.get_by_role("button", name="Play").wait_for()  # at the end
    assert (questions_asked(visitor), revealed_fraction(visitor)) == (1_000, 1.0)
    assert live.text_content().startswith("After 1,000 of 1,000 submissions.")


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_choosing_other_settings(visit, digits_board, script):
    visitor = visit(script=script)
    visitor.open("/boards/digits")
    page = visitor.page
    page.get_by_role("link", name="Play", exact=True).click()
    small = shown_accuracies(visitor)
    page.get_by_label("Hidden labels", exact=True).select_option("10000")
    page.get_by_label("Growing Ladder's noise").select_option("as calibrated")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**n=10000**")
    assert all(
        larger < value for larger, value in zip(shown_accuracies(visitor), small, strict=True)
    )
    assert page.locator(".play-label:visible").count() == 6
    assert page.locator(".play-controls").count() == script
    visitor.open(f"{PLAY_PATH}?n=12")
    assert visitor.text("[role=alert]") == "Hidden labels cannot be '12'; showing 1,000."
    assert shown_accuracies(visitor) == small
