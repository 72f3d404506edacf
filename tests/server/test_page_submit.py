"""The page to submit with: who sees what, the reply in words, refusals item by item."""

import json
import re
from html import unescape

import pytest

from support.server.live_server import csrf_token, make_predictions

INLINE = "time|code|strong|a"


@pytest.fixture
def browser(live_server):
    with live_server.browser() as made:
        yield made


def words(page):
    """Return a page's text, as somebody reads it."""
    text = re.sub(rf"</?({INLINE})( [^>]*)?>", "", page)
    return " ".join(unescape(re.sub("<[^>]+>", " ", text)).split())


def part(page, role):
    """Return the words of the reply, or of the refusal."""
    return words(re.search(rf'<div [^>]*role="{role}" id="reply".*?</div>\n', page, re.DOTALL)[0])


class Team:
    """A team before its browser."""

    def __init__(self, live_server, browser, name="Alpha"):
        self.live_server, self.browser = live_server, browser
        self.id, self.token = live_server.join(name)
        assert live_server.sign_in(browser, self.token).status_code == 303
        self.path = f"/boards/{live_server.slug}/submit"

    def look(self, query=""):
        return self.browser.get(self.path + query)

    def send(self, body, name="p.csv", **data):
        action = re.search(r'action="(/boards/[^"]+csrf=[^"]+)"', self.look().text).group(1)
        return self.browser.post(action, files={"file": (name, body)}, data=data)

    def post(self, what, **data):
        """Send another form of the page."""
        word = re.search(r'name="csrf" value="([^"]+)"', self.look().text).group(1)
        return self.browser.post(
            f"/boards/{self.live_server.slug}/{what}", data={"csrf": word, **data}
        )

    def used(self):
        return self.live_server.call("GET", "/boards/first/team", self.token).json()["submissions"]


@pytest.fixture
def team(live_server, browser):
    return Team(live_server, browser)


def test_the_public_is_told_how_to_come_in(live_server, browser):
    page = browser.get(f"/boards/{live_server.slug}/submit")
    assert page.status_code == 200
    assert f'name="next" value="/boards/{live_server.slug}/submit"' in page.text
    assert f'href="/boards/{live_server.slug}/join"' in page.text
    assert 'type="file"' not in page.text
    for registration, said in (("invited", "by invitation"), ("organiser", "Ask them for a token")):
        live_server.amend(registration=registration)
        assert said in words(browser.get(f"/boards/{live_server.slug}/submit").text)


def test_the_form_to_sign_in_leads_back_here(live_server, browser):
    _, token = live_server.join("Alpha")
    path = f"/boards/{live_server.slug}/submit"
    word = csrf_token(browser.get(path).text)
    said = browser.post("/session", data={"token": token, "csrf": word, "next": path})
    assert (said.status_code, said.headers["location"]) == (303, path)


def test_a_token_of_another_board_is_said_to_be_one(live_server, browser):
    other = f"{live_server.slug}-other"
    live_server.create_board(other)
    live_server.sign_in(browser, live_server.join("Alpha", other)[1])
    page = words(browser.get(f"/boards/{live_server.slug}/submit").text)
    assert "with a token that is not for this board" in page


@pytest.mark.parametrize("role", ["evaluator", "organiser"])
def test_who_has_no_team_sees_who_submits(live_server, browser, role):
    live_server.sign_in(browser, live_server.issue_token(role))
    page = browser.get(f"/boards/{live_server.slug}/submit").text
    assert f"signed in as an {role}" in words(page)
    assert (
        f"submit {live_server.url}/boards/{live_server.slug} -f predictions.csv --team TEAM" in page
    )
    assert 'type="file"' not in page


def test_a_team_is_told_how_a_file_must_look_and_what_is_left(empty_server):
    empty_server.create_board(window="{questions: 3, hours: 24}", files="{bytes: 20 kB}")
    with empty_server.browser() as browser:
        page = Team(empty_server, browser).look()
    assert "Alpha: 25 questions left, 3 of them now (at most 3 in any 24 hours)." in words(
        page.text
    )
    assert "at most 20 kB" in page.text
    assert "400 rows" in page.text
    assert "id,prediction\n0,...\n1,..." in page.text
    assert page.headers["cache-control"] == "private, no-store"


def test_the_reply_is_a_sentence_in_the_metric_shown(empty_server):
    live_server = empty_server
    live_server.create_board(loss="accuracy", display="{name: accuracy, digits: 3}")
    with live_server.browser() as browser:
        team = Team(live_server, browser)
        page = team.send(make_predictions(60)).text
        first = part(page, "status")
        assert first.startswith("A new best: 0.800; 24 questions left.")
        receipt = re.search(r'copy="the receipt"><code>({.+?})</code>', page).group(1)
        place = re.search(r'href="(/api/v1/boards/[^"]+)">part of the submission', page).group(1)
        assert browser.get(place).json()["receipt"] == json.loads(receipt)
        same = part(team.send(make_predictions(61)).text, "status")
        seen = "gains below about 0.01 may go unseen"
        assert same.startswith(f"Your best stays 0.800; {seen}; 23 questions left.")
        assert "does not mean that this model is no better" in same
        better = part(team.send(make_predictions(30)).text, "status")
        assert better.startswith("A new best: 0.900 (was 0.800); 22 questions left.")
        before = "The same predictions were answered before, as your submission 1; nothing was"
        again = part(team.send(make_predictions(60)).text, "status")
        assert again.startswith(f"{before} counted. Then your best became 0.800; 22 questions left")
        assert team.used() == 3


def test_the_reply_says_what_can_be_promised(empty_server):
    live_server = empty_server
    live_server.create_board(
        loss="accuracy", questions=4, teams=1, mechanism="{name: ladder, step: 0.1}"
    )
    with live_server.browser() as browser:
        said = part(Team(live_server, browser).send(make_predictions(60)).text, "status")
    bound = live_server.boards.open(live_server.slug).as_seen_by(
        live_server.boards.caller_by_token(live_server.organiser, live_server.slug)
    )
    told = bound.summary()["bound"]
    found = re.search(
        r"With confidence 95%, the best of your models so far truly has accuracy "
        r"between ([0-9.]+) and ([0-9.]+)\.",
        said,
    )
    low, high = map(float, found.groups())
    # Rounded outwards, to the four digits that are shown.
    assert told["low"] - 1e-4 <= low <= told["low"]
    assert told["high"] <= high <= told["high"] + 1e-4


def test_a_ladder_of_the_whole_board(empty_server):
    live_server = empty_server
    live_server.create_board(loss="accuracy", ladder="board", display="{name: accuracy, digits: 2}")
    live_server.submit(live_server.join("Beta")[1], make_predictions(60))
    with live_server.browser() as browser:
        team = Team(live_server, browser)
        said = part(team.send(make_predictions(90)).text, "status")
        assert said.startswith("The best of the whole board stays 0.80; gains below")
        said = part(team.send(make_predictions(30)).text, "status")
        assert said.startswith("A new best of the whole board: 0.90 (was 0.80);")
        live_server.amend(visibility="hidden")
        page = team.send(make_predictions(80)).text
        said = part(page, "status")
        assert said.startswith("The best of the whole board stays what it was, which is not shown ")
        assert "while the standings are hidden" in said
        assert "With confidence" not in said
        assert "not shown" in words(page[page.index("<tbody>") :])


def test_one_that_learns_nothing_has_no_record(empty_server):
    live_server = empty_server
    live_server.create_board(mechanism="{name: ladder, step: 0.5}")
    with live_server.browser() as browser:
        page = Team(live_server, browser).send(make_predictions(299)).text
    said = part(page, "status")
    assert said.startswith("Your team has no record yet: no gain large enough was seen; gains ")
    assert "no record" in words(page[page.index("<tbody>") :])


def test_a_window_and_a_budget_that_are_used_up(empty_server):
    live_server = empty_server
    live_server.create_board(per_team=3, window="{questions: 2, hours: 1}")
    with live_server.browser() as browser:
        team = Team(live_server, browser)
        team.send(make_predictions(60))
        live_server.clock.now += 600
        said = part(team.send(make_predictions(50)).text, "status")
        assert "; 1 question left, none of them now; next at 09:00 UTC." in said
        refused = team.send(make_predictions(40))
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "3000")
        told = part(refused.text, "alert")
        assert "The next is at 2027-01-15 09:00 UTC. Nothing was counted." in told
        live_server.clock.now += 3000
        said = part(team.send(make_predictions(40)).text, "status")
        assert "no questions left: your team has asked all its 3." in said
        page = team.look().text
        assert "nothing to send" in page
        assert 'type="file"' not in page


def test_refusals_list_everything_with_ids(team):
    rows = "".join(f"{at},1\n" for at in range(385))
    said = team.send(f"id,prediction\n{rows}3,1\n<i>x</i>,\n".encode())
    assert said.status_code == 422
    told = part(said.text, "alert")
    assert told.startswith("4 things are wrong with this file. Nothing was counted.")
    assert "Missing from the file: 15 ids: 385, 386, 387," in told
    assert "394 and 5 more" in told
    assert "More than once in the file: 1 id: 3" in told
    assert "<code>&lt;i&gt;x&lt;/i&gt;</code>" in said.text
    assert "<i>x" not in said.text
    assert team.used() == 0


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"", 422, "One thing is wrong with this file. Nothing was counted."),
        (b"\x00\x01\x02" * 50, 422, "One thing is wrong with this file. Nothing was counted."),
        (b"id,guess_a,guess_b\n1,2,3\n", 422, "wrong with this file. Nothing was counted."),
        (b"id,prediction\n" + b"x" * 30_000, 413, "which is the limit here. Nothing was counted."),
    ],
)
def test_files_that_are_none(empty_server, body, status, said):
    empty_server.create_board(files="{bytes: 20 kB}")
    with empty_server.browser() as browser:
        team = Team(empty_server, browser)
        page = team.send(body)
        assert page.status_code == status
        assert said in part(page.text, "alert")
        assert team.used() == 0


def test_a_message_that_cannot_be_is_refused_in_words(team):
    said = team.send(make_predictions(3), message="x" * 501)
    assert said.status_code == 422
    assert "at most 500 characters. Nothing was counted." in part(said.text, "alert")


def test_a_session_that_ended_is_said_to_have_ended(live_server, team):
    action = re.search(r'action="(/boards/[^"]+csrf=[^"]+)"', team.look().text).group(1)
    live_server.call("POST", "/boards/first/team/token", team.token)
    said = team.browser.post(action, files={"file": ("p.csv", make_predictions(3))})
    assert said.status_code == 401
    assert "Your session has ended. Sign in again below." in part(said.text, "alert")
    assert 'name="token"' in said.text


@pytest.mark.parametrize(
    ("do", "said"),
    [
        (
            lambda live_server: live_server.call(
                "POST", "/boards/first/pause", live_server.organiser
            ),
            "is paused",
        ),
        (
            lambda live_server: live_server.call(
                "POST", "/boards/first/close", live_server.organiser
            ),
            "is closed",
        ),
        (
            lambda live_server: live_server.amend(end="2027-01-15T08:30:00Z"),
            "deadline was 2027-01-15 08:30 UTC",
        ),
        (
            lambda live_server: live_server.amend(start="2027-02-01T00:00:00Z"),
            "opens at 2027-02-01 00:00 UTC",
        ),
    ],
)
def test_a_board_that_takes_nothing_says_why(live_server, team, do, said):
    do(live_server)
    live_server.clock.now += 3600
    page = team.look().text
    assert said in words(page)
    assert 'type="file"' not in page


def test_own_history_is_paged_and_ones_own(live_server, team):
    other = live_server.join("Beta")[1]
    live_server.submit(other, make_predictions(20), query="?message=secret-of-beta")
    for at in range(23):
        live_server.submit(team.token, make_predictions(60 - 2 * at), query=f"?message=note-{at}-")
    page = team.look().text
    numbers = [int(match_) for match_ in re.findall(r'<tr><td class="number">(\d+)<', page)]
    assert numbers == list(range(23, 3, -1))
    assert "secret-of-beta" not in page
    older = re.search(r'href="(/boards/[^"]+before=\d+)#history"', page).group(1)
    page = team.browser.get(older).text
    numbers = [int(match_) for match_ in re.findall(r'<tr><td class="number">(\d+)<', page)]
    assert numbers == [3, 2, 1]
    assert "note-2-" in page
    assert "before=" not in page
    assert team.look("?before=0").status_code == 422


def test_selecting_for_the_finals(empty_server):
    live_server = empty_server
    live_server.create_board(finals="{selections: 2}")
    with live_server.browser() as browser:
        team = Team(live_server, browser)
        assert "final ranking" not in words(team.look().text)
        said = [
            live_server.submit(team.token, make_predictions(60 - at)).json() for at in range(23)
        ]
        ids = [each["id"] for each in said]
        default = "You have selected none, so your latest 2 submissions with a new best take part"
        assert default in words(team.look().text)
        done = team.post("selections", submission=[ids[0], ids[22]])
        assert done.status_code == 303
        assert done.headers["location"] == f"/boards/{live_server.slug}/submit#finals"
        page = team.look().text
        assert "You have selected 2; these alone take part." in words(page)
        assert re.findall(r'value="(\w{32})"[^>]* checked', page) == [ids[22], ids[0]]
        assert "Submission 1, on another page of the table" in words(page)
        for wanted, status, why in (
            (ids[:3], 422, "At most 2 can be selected, not 3."),
            (["0" * 32], 404, "There is no such submission."),
        ):
            refused = team.post("selections", submission=wanted)
            assert refused.status_code == status
            assert why in part(refused.text, "alert")
        assert team.post("selections", submission=["x"] * 300).status_code == 422
        chosen = live_server.call("GET", "/boards/first/selections", team.token).json()
        assert chosen["submissions"] == [ids[0], ids[22]]
        assert team.post("selections").status_code == 303
        assert default in words(team.look().text)
        live_server.call("POST", "/boards/first/close", live_server.organiser)
        page = team.look().text
        assert "what is selected stays" in page
        assert 'name="submission"' not in page
        refused = team.post("selections", submission=[ids[0]])
        assert refused.status_code == 409
        assert "Selections cannot change" in part(refused.text, "alert")


def test_only_a_team_selects(live_server, browser):
    live_server.sign_in(browser, live_server.organiser)
    word = csrf_token(browser.get(f"/boards/{live_server.slug}/submit").text)
    for what in ("selections", "token"):
        said = browser.post(f"/boards/{live_server.slug}/{what}", data={"csrf": word})
        assert said.status_code == 403
        assert "own token" in part(said.text, "alert")


def test_another_token_is_shown_once_and_keeps_the_browser_signed_in(live_server, team):
    said = team.post("token")
    assert said.status_code == 200
    assert said.headers["cache-control"] == "private, no-store"
    made = re.search(r'data-copy="the token"[^>]*>(lb_team_[\w-]{43})<', said.text).group(1)
    assert made != team.token
    assert live_server.call("GET", "/boards/first/team", team.token).status_code == 401
    assert live_server.call("GET", "/boards/first/team", made).json()["name"] == "Alpha"
    page = team.look()
    assert "Alpha" in page.text
    assert made not in page.text
    assert made not in live_server.log.getvalue()
    # The forms of the page that showed it are good in the new session.
    word = re.search(r'name="csrf" value="([^"]+)"', said.text).group(1)
    assert team.browser.post("/session/end", data={"csrf": word}).status_code == 303
