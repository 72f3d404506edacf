"""The Play page: enabled by the rules, drawn from recorded games, for any query."""

import html
import json
import re
from itertools import accumulate, product
from pathlib import Path

import pytest

import ladderboard as lb
from ladderboard.server._pages import _play as play
from ladderboard.server._pages._play import gap_text

RECORDED = json.loads((Path(lb.__file__).parent / "server/_pages/play.json").read_text())
CHOICES = [
    play.PlayChoice(*values)
    for values in product(RECORDED["n"], RECORDED["questions"], RECORDED["noise"])
]
BOARD_KEYS = ("exact", "ladder", "growing_ladder")


@pytest.fixture
def get_page(empty_server):
    empty_server.create_board(play="true")

    def get(**typed):
        return empty_server.client.get(f"/boards/{empty_server.slug}/play", params=typed)

    return get


def animation_data(page):
    return json.loads(html.unescape(re.search('data-animation="([^"]+)"', page).group(1)))


def recorded_accuracies(choice, board, attack):
    """Return the recorded accuracies: the best so far at each frame."""
    noise = choice.noise if board == "growing_ladder" else None
    (scene,) = [
        scene
        for scene in RECORDED["scenes"]
        if (scene["n"], scene["questions"], scene["board"], scene["noise"], scene["attack"])
        == (choice.n, choice.questions, board, noise, attack)
    ]
    return [value / 10_000 for value in accumulate(scene["shown"], max)]


def test_only_boards_with_play_enabled_have_the_page(get_page, empty_server):
    assert get_page().status_code == 200
    link = f'href="/boards/{empty_server.slug}/play"'
    assert link in empty_server.client.get(f"/boards/{empty_server.slug}").text
    empty_server.reset()
    empty_server.create_board()
    response = get_page()
    assert (response.status_code, "not enabled on this board" in response.text) == (404, True)
    assert "/play" not in empty_server.client.get(f"/boards/{empty_server.slug}").text


def test_an_amendment_enables_and_disables_the_page(get_page, empty_server):
    empty_server.amend(play=False)
    assert get_page().status_code == 404
    empty_server.amend(play=True)
    assert get_page().status_code == 200
    api = empty_server.call("GET", "/boards/first").json()
    assert api["play"] is True


@pytest.mark.parametrize("choice", CHOICES[::7], ids=str)
def test_the_page_shows_the_recorded_games(get_page, choice):
    page = get_page(**choice._asdict()).text
    shown = animation_data(page)["shown"]
    assert shown == {
        board: {attack: recorded_accuracies(choice, board, attack) for attack in play.ATTACKS}
        for board in BOARD_KEYS
    }
    for value in (str(choice.n), str(choice.questions), choice.noise):
        assert f'<option value="{value}" selected>' in page
    listed = re.findall(
        '<b class="play-shown">([0-9.]+)</b> <span class="play-gap">(.*?)</span>', page
    )
    ends = [shown[board][attack][-1] for board in BOARD_KEYS for attack in play.ATTACKS]
    assert [float(value) for value, _ in listed] == [round(end, 3) for end in ends]
    assert [text for _, text in listed] == [gap_text(end - 0.75) for end in ends]
    table = re.findall(r'<td class="number">([01]\.\d{3})</td>', page.partition('id="numbers"')[2])
    assert [float(cell) for cell in table[-6:]] == [round(end, 3) for end in ends]
    assert f"mean of {RECORDED['games']} games" in page


def test_the_charts_are_complete_without_a_script(get_page):
    page = get_page().text
    assert len(re.findall('<svg viewBox="0 0 340 264" role="img"', page)) == 3
    assert len(re.findall('<path d="M[^"]+" class="play-line', page)) == 6
    assert len(re.findall('class="play-label ', page)) == 6
    assert "<button>Show</button>" in page
    assert "style=" not in page
    assert "<button" not in page.partition('id="play"')[2].partition("</section>")[0]
    scripts = re.findall("<script[^>]*>[^<]*", page)
    assert all("src=" in script and script.endswith(">") for script in scripts)


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_labels_stay_inside_the_chart_and_do_not_overlap(choice):
    for key in BOARD_KEYS:
        board = play.simulated_board(choice, key)
        svg = play.draw_board(board, choice.questions)
        heights = [
            float(height)
            for height in re.findall(r'<text x="323" y="([0-9.]+)" class="play-label', svg)
        ]
        assert len(heights) == 2
        assert all(12 <= height <= 262 for height in heights)
        assert abs(heights[0] - heights[1]) >= 12
        assert "nan" not in svg


@pytest.mark.parametrize(
    "typed", [{"n": "7"}, {"n": "1,000"}, {"questions": ""}, {"noise": '<b>"'}, {"n": "9" * 9999}]
)
def test_invalid_choices_are_reported_and_defaults_are_shown(get_page, typed):
    response = get_page(**typed)
    assert response.status_code == 200
    (key,) = typed
    name = {"n": "Hidden labels", "questions": "Submissions", "noise": "Noise"}[key]
    assert f"{name} cannot be " in response.text
    assert response.text.count('role="alert"') == 1
    assert "<b>&#34;" not in response.text
    assert animation_data(response.text) == animation_data(get_page().text)


def test_the_claims_of_the_page_hold_for_every_choice():
    for choice in CHOICES:
        exact, ladder, shaky = (play.simulated_board(choice, key) for key in BOARD_KEYS)
        assert exact.patient.gap > ladder.patient.gap > 0
        assert exact.majority.gap > ladder.majority.gap
        if choice.noise == "calibrated":
            assert ladder.patient.gap > shaky.patient.gap > 0
            silent = play.simulated_board(choice._replace(noise="none"), "growing_ladder")
            loud = play.simulated_board(choice._replace(noise="double"), "growing_ladder")
            assert silent.patient.gap > shaky.patient.gap
            # Random guesses gain nearly the same, up to a fifth of 1/sqrt(n).
            assert silent.majority.gap < shaky.majority.gap + 0.2 / choice.n**0.5
            assert shaky.majority.gap < loud.majority.gap
            assert silent.undetected_gain < shaky.undetected_gain < loud.undetected_gain
            assert loud.patient.gap > shaky.patient.gap - 0.01
    for noise, questions in product(RECORDED["noise"], RECORDED["questions"]):
        for key in BOARD_KEYS:
            gaps = [
                play.simulated_board(play.PlayChoice(n, questions, noise), key).patient.gap
                for n in RECORDED["n"]
            ]
            assert gaps == sorted(gaps, reverse=True)
    for n, key in product(RECORDED["n"], BOARD_KEYS[:2]):
        gaps = [
            play.simulated_board(play.PlayChoice(n, questions, "none"), key).patient.gap
            for questions in RECORDED["questions"]
        ]
        assert gaps == sorted(gaps)
