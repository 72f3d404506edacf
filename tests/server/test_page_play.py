"""The page Play: on boards that have it, from films computed once, whatever is typed."""

import html
import json
import re
from itertools import accumulate, product
from pathlib import Path

import pytest

import ladderboard as lb
from ladderboard.server._pages import _play as data
from ladderboard.server._pages import _play as drawing
from ladderboard.server._pages._play import gap_text

KEPT = json.loads((Path(lb.__file__).parent / "server/_pages/play.json").read_text())
CHOICES = [data.PlayChoice(*each) for each in product(KEPT["n"], KEPT["questions"], KEPT["noise"])]
ASKED = ("exact", "ladder", "shaky_ladder")


@pytest.fixture
def look(empty_server):
    empty_server.create_board(play="true")

    def get(**typed):
        return empty_server.client.get(f"/boards/{empty_server.slug}/play", params=typed)

    return get


def film_of(page):
    return json.loads(html.unescape(re.search('data-film="([^"]+)"', page).group(1)))


def kept(choice, board, attack):
    """Return what the file has, as accuracies, the best so far at each frame."""
    noise = choice.noise if board == "shaky_ladder" else None
    (scene,) = [
        each
        for each in KEPT["scenes"]
        if (each["n"], each["questions"], each["board"], each["noise"], each["attack"])
        == (choice.n, choice.questions, board, noise, attack)
    ]
    return [value / 10_000 for value in accumulate(scene["shown"], max)]


def test_only_boards_that_play_have_the_page(look, empty_server):
    assert look().status_code == 200
    link = f'href="/boards/{empty_server.slug}/play"'
    assert link in empty_server.client.get(f"/boards/{empty_server.slug}").text
    empty_server.reset()
    empty_server.create_board()
    said = look()
    assert (said.status_code, "This board has no page Play" in said.text) == (404, True)
    assert "/play" not in empty_server.client.get(f"/boards/{empty_server.slug}").text


def test_an_amendment_opens_and_closes_it(look, empty_server):
    empty_server.amend(play=False)
    assert look().status_code == 404
    empty_server.amend(play=True)
    assert look().status_code == 200
    api = empty_server.call("GET", "/boards/first").json()
    assert api["play"] is True


@pytest.mark.parametrize("choice", CHOICES[::7], ids=str)
def test_what_is_shown_is_what_was_computed(look, choice):
    page = look(**choice._asdict()).text
    shown = film_of(page)["shown"]
    assert shown == {
        board: {attack: kept(choice, board, attack) for attack in data.ATTACKS} for board in ASKED
    }
    for value in (str(choice.n), str(choice.questions), choice.noise):
        assert f'<option value="{value}" selected>' in page
    told = re.findall(
        '<b class="play-shown">([0-9.]+)</b> <span class="play-gap">(.*?)</span>', page
    )
    ends = [shown[board][attack][-1] for board in ASKED for attack in data.ATTACKS]
    assert [float(value) for value, _ in told] == [round(end, 3) for end in ends]
    assert [words for _, words in told] == [gap_text(end - 0.75) for end in ends]
    table = re.findall(r'<td class="number">([01]\.\d{3})</td>', page.partition('id="numbers"')[2])
    assert [float(each) for each in table[-6:]] == [round(end, 3) for end in ends]
    assert f"mean of {KEPT['games']} games" in page


def test_the_whole_picture_is_there_without_a_script(look):
    page = look().text
    assert len(re.findall('<svg viewBox="0 0 340 264" role="img"', page)) == 3
    assert len(re.findall('<path d="M[^"]+" class="play-line', page)) == 6
    assert len(re.findall('class="play-label ', page)) == 6
    assert "<button>Show</button>" in page
    assert "style=" not in page
    assert "<button" not in page.partition('id="play"')[2].partition("</section>")[0]
    scripts = re.findall("<script[^>]*>[^<]*", page)
    assert all("src=" in script and script.endswith(">") for script in scripts)


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_no_label_leaves_the_picture_or_covers_another(choice):
    for key in ASKED:
        board = data.simulated_board(choice, key)
        drawn = drawing.draw_board(board, choice.questions)
        places = [
            float(match_)
            for match_ in re.findall(r'<text x="323" y="([0-9.]+)" class="play-label', drawn)
        ]
        assert len(places) == 2
        assert all(12 <= place <= 262 for place in places)
        assert abs(places[0] - places[1]) >= 12
        assert "nan" not in drawn


@pytest.mark.parametrize(
    "typed", [{"n": "7"}, {"n": "1,000"}, {"questions": ""}, {"noise": '<b>"'}, {"n": "9" * 9999}]
)
def test_whatever_else_is_typed_is_said_and_the_usual_is_shown(look, typed):
    said = look(**typed)
    assert said.status_code == 200
    (key,) = typed
    assert f"There is nothing for {key} " in said.text
    assert said.text.count('role="alert"') == 1
    assert "<b>&#34;" not in said.text
    assert film_of(said.text) == film_of(look().text)


def test_the_sentences_hold_for_every_choice():
    for choice in CHOICES:
        exact, ladder, shaky = (data.simulated_board(choice, key) for key in ASKED)
        assert exact.patient.gap > ladder.patient.gap > 0
        assert exact.majority.gap > ladder.majority.gap
        if choice.noise == "calibrated":
            assert ladder.patient.gap > shaky.patient.gap > 0
            silent = data.simulated_board(choice._replace(noise="none"), "shaky_ladder")
            loud = data.simulated_board(choice._replace(noise="double"), "shaky_ladder")
            assert silent.patient.gap > shaky.patient.gap
            assert silent.majority.gap < shaky.majority.gap < loud.majority.gap
            assert silent.undetected_gain < shaky.undetected_gain < loud.undetected_gain
            assert loud.patient.gap > shaky.patient.gap - 0.01
    for noise, questions in product(KEPT["noise"], KEPT["questions"]):
        for key in ASKED:
            gaps = [
                data.simulated_board(data.PlayChoice(n, questions, noise), key).patient.gap
                for n in KEPT["n"]
            ]
            assert gaps == sorted(gaps, reverse=True)
    for n, key in product(KEPT["n"], ASKED[:2]):
        gaps = [
            data.simulated_board(data.PlayChoice(n, each, "none"), key).patient.gap
            for each in KEPT["questions"]
        ]
        assert gaps == sorted(gaps)
