"""The organiser's page: what it shows, what each of its forms does, and for whom."""

import re

import pytest

from support.server.live_server import make_folder, make_predictions

BOARD_FORMS = {
    "pause": {},
    "resume": {},
    "show": {"visibility": "hidden"},
    "amend": {"group": "texts", "title": "Another"},
    "close": {"name": "{slug}"},
    "add": {"name": "New"},
    "invite": {"days": "3"},
    "trust": {"role": "evaluator"},
    "end": {"token": "0" * 16},
    "dump": {"passphrase": "correct horse battery", "again": "correct horse battery"},
}
TEAM_FORMS = ("rotate", "revoke", "disqualify", "reinstate")


@pytest.fixture
def team(live_server):
    return live_server.join("Alpha")


def entries(live_server):
    return live_server.call("GET", "/boards/first/ledger?limit=1000", live_server.organiser).text


def token_in(page):
    return re.search(r'<pre class="token"[^>]*>(lb_[^<]+)</pre>', page).group(1)


def status(live_server):
    return live_server.call("GET", "/boards/first", live_server.organiser).json()["status"]


def test_it_is_for_organisers_only(live_server, desk_of, team):
    own = live_server.issue_token("organiser")
    for token in (live_server.organiser, own):
        assert desk_of(token).see().status_code == 200
        assert desk_of(token).see(f"/teams/{team[0]}").status_code == 200
    for end in ("", f"/teams/{team[0]}"):
        public = desk_of(None).see(end)
        assert public.status_code == 401
        assert f'href="/login?next=/boards/{live_server.slug}/organise{end}"' in public.text
        for token in (team[1], live_server.issue_token("evaluator")):
            said = desk_of(token).see(end)
            assert (said.status_code, "an organiser&#39;s token" in said.text) == (403, True)
    live_server.boards.create(make_folder(f"{live_server.slug}-other"))
    stranger = live_server.issue_token("organiser", f"{live_server.slug}-other")
    assert desk_of(stranger).see().status_code == 401


@pytest.mark.parametrize("who", ["public", "team", "evaluator"])
def test_no_form_works_for_anybody_else(live_server, desk_of, team, who):
    token = {"public": None, "team": team[1]}.get(who)
    desk = desk_of(live_server.issue_token("evaluator") if who == "evaluator" else token)
    before = desk.state()
    wanted = 401 if who == "public" else 403
    for do, fields in BOARD_FORMS.items():
        filled = {name: value.format(slug=live_server.slug) for name, value in fields.items()}
        assert desk.send(do, **filled).status_code == wanted, do
    for do in TEAM_FORMS:
        assert desk.send(do, f"/teams/{team[0]}").status_code == wanted, do
    assert desk.state() == before


def test_no_form_works_without_the_word_of_this_browser(live_server, desk, desk_of, team):
    other = desk_of(live_server.organiser)
    before, strange = desk.state(), {"Origin": "https://evil.example"}
    forms = [("", do, fields) for do, fields in BOARD_FORMS.items()]
    forms += [(f"/teams/{team[0]}", do, {}) for do in TEAM_FORMS]
    own, others = desk.word(), other.word()
    for end, do, fields in forms:
        data = {
            "do": do,
            **{name: each.format(slug=live_server.slug) for name, each in fields.items()},
        }
        for word, headers in ((None, {}), ("guess", {}), (others, {}), (own, strange)):
            sent = data if word is None else {**data, "csrf": word}
            said = desk.browser.post(desk.place + end, data=sent, headers=headers)
            assert said.status_code == 403, (do, word)
            assert "did not come from a page of this server" in said.text
    assert desk.state() == before


def test_a_form_that_there_is_not_is_refused(desk, team):
    desk.refused("dance", 400, "no such form")
    desk.refused("pause", 400, "no such form", f"/teams/{team[0]}")
    desk.refused("amend", 400, "no such form", group="loss")
    assert desk.send("revoke", "/teams/" + "0" * 16).status_code == 404


def test_the_meter_says_where_questions_went(empty_server, desk_of):
    live_server = empty_server
    live_server.create_board(questions=50, teams=4, per_team=11)
    one, two = live_server.join("One")[1], live_server.join("Two")[1]
    for at in range(11):
        live_server.submit(one, make_predictions(90 - 2 * at))
    live_server.submit(two, make_predictions(80))
    board = live_server.boards.open(live_server.slug)
    caller = live_server.boards.by_token(live_server.organiser, live_server.slug)
    board.amending.pause(caller)
    board.amending.resume(caller, 8)
    page = desk_of(live_server.organiser).see().text
    facts = dict(re.findall(r"<dt>([^<]+)</dt><dd>([0-9,]+)", page))
    # 42 are shared: 10 for each of 4, and 2 for the pool, of which One has taken 1.
    assert facts == {
        "Questions used": "20", "Visible changes": facts["Visible changes"], "Teams": "2",
        "Each team's share": "10", "Pool": "1", "Charged": "8",
    }  # fmt: skip
    assert int(facts["Visible changes"]) == board.book.at().changes > 5
    rows = re.findall(r'/teams/[0-9a-f]{16}">(\w+)</a>.*?number">(\d+)</td>.*?">(\d+)<', page)
    assert rows == [("One", "11", "0"), ("Two", "1", "9")]


def test_pausing_and_resuming(live_server, desk, team):
    page = desk.done("pause", "paused")
    assert "Resume the board" in page
    assert "Pause the board" not in page
    assert status(live_server) == "paused"
    assert live_server.submit(team[1], make_predictions(30)).status_code == 409
    desk.refused("resume", 422, "whole number", charge="many")
    desk.done("resume", "charged", charge="2")
    assert live_server.submit(team[1], make_predictions(30)).status_code == 201
    assert '"kind":"paused"' in entries(live_server)
    assert '"charged":2' in entries(live_server)
    desk.refused("resume", 422, "pause it before", charge="2")


def test_who_sees_what(live_server, desk, team):
    live_server.submit(team[1], make_predictions(30))
    for visibility in ("anonymous", "frozen", "hidden", "public"):
        page = desk.done("show", visibility, visibility=visibility)
        assert re.search(f'value="{visibility}" checked', page)
        seen = live_server.call("GET", "/boards/first").json()
        assert seen["visibility"] == visibility
    desk.refused("show", 422, "must be", visibility="secret")


def test_closing_needs_the_name(live_server, desk, team):
    live_server.submit(team[1], make_predictions(30))
    for wrong in ("", "First", live_server.slug.upper()):
        page = desk.refused("close", 422, "Nothing was changed", name=wrong)
        assert f'spellcheck="false" value="{wrong}"' in page
    assert status(live_server) == "open"
    seen = desk.seen("texts")
    page = desk.done("close", "closed", name=f" {live_server.slug} ")
    assert status(live_server) == "closed"
    assert "Close the board for good" not in page
    assert "Pause the board" not in page
    desk.refused("pause", 409, "closed")
    desk.refused("amend", 409, "closed", group="texts", title="x", seen=seen)
    desk.refused("add", 409, "no more teams", name="Late")
    desk.refused("close", 409, "closed", name=live_server.slug)
    desk.done("show", "hidden", visibility="hidden")


def test_a_board_that_was_cut_short_in_closing_can_go_on(live_server, desk):
    board = live_server.boards.open(live_server.slug)

    def cut(turn):
        turn.view.change(
            "UPDATE main.board SET status = 'closing' WHERE book = ?", (turn.view.number,)
        )

    board.queue.do(cut)
    page = desk.see().text
    assert "that was cut short" in page
    assert "Close the board for good" in page
    desk.done("resume", "resumed")
    assert status(live_server) == "open"


def test_a_token_is_shown_in_one_reply_and_nowhere_else(live_server, desk, team):
    made = {
        "team": desk.send("add", name="Beta <b>"),
        "invitation": desk.send("invite", days="1.5"),
        "evaluator": desk.send("trust", role="evaluator"),
        "organiser": desk.send("trust", role="organiser"),
        "team again": desk.send("rotate", f"/teams/{team[0]}"),
    }
    for what, said in made.items():
        assert said.status_code == 200, what
        assert said.headers["cache-control"] == "private, no-store"
        token = token_in(said.text)
        assert token.startswith(f"lb_{what.partition(' ')[0]}_")
        assert said.text.count(token) == 1
        for page in (desk.see(), desk.see(f"/teams/{team[0]}")):
            assert token not in page.text
        assert token not in live_server.log.getvalue()
        assert token not in entries(live_server)
        assert token not in str(said.headers)
    assert "Beta &lt;b&gt;" in made["team"].text
    beta = token_in(made["team"].text)
    assert live_server.call("GET", "/boards/first/team", beta).json()["name"] == "Beta <b>"
    assert (
        live_server.call("GET", "/boards/first/team", team[1]).status_code == 401
    )  # it was rotated
    alpha = token_in(made["team again"].text)
    assert live_server.call("GET", "/boards/first/team", alpha).json()["name"] == "Alpha"
    invitation = token_in(made["invitation"].text)
    body = {"name": "Gamma", "invitation": invitation}
    assert live_server.call("POST", "/boards/first/teams", json=body).status_code == 201
    for role in ("evaluator", "organiser"):
        token = token_in(made[role].text)
        assert live_server.call("GET", "/boards/first/teams", token).status_code == 200


def test_what_cannot_be_made_is_said_and_the_form_stays_filled_in(live_server, desk, team):
    page = desk.refused("add", 409, "Another team has this name", name="alpha")
    assert (
        'id="in-name" name="name" maxlength="64" required autocomplete="off" value="alpha"' in page
    )
    desk.refused("add", 422, "needs a name", name="")
    page = desk.refused("invite", 422, "at most 366 days", days="400")
    assert 'value="400"' in page
    desk.refused("invite", 422, "number of days", days="a week")
    desk.refused("trust", 422, "evaluator or an organiser", role="team")
    desk.refused("end", 404, "no such token", token="0" * 16)
    evil = '"><script>alert(1)</script>\u202e'
    page = desk.refused("add", 422, "cannot be seen", name=evil)
    assert "<script>alert" not in page
    for at in range(3):
        live_server.join(f"Team {at}")
    desk.refused("add", 409, "places on this board are taken", name="One more")


def test_tokens_are_listed_without_their_words_and_can_be_ended(live_server, desk_of, team):
    own, other = live_server.issue_token("organiser"), live_server.issue_token("evaluator")
    desk = desk_of(own)
    live_server.call("POST", "/boards/first/invitations", live_server.organiser)
    page = desk.see().text
    rows = re.findall(r'<tr><th scope="row">(\w+)(.*?)</th>.*?value="([0-9a-f]{16})"', page)
    assert [row[0] for row in rows] == ["organiser", "evaluator", "invitation"]
    assert ["yours" in row[1] for row in rows] == [True, False, False]
    assert "1 team has a token" in page
    for token in (own, other, team[1]):
        assert token not in page
    desk.done("end", "ended", token=rows[1][2])
    assert live_server.call("GET", "/boards/first/teams", other).status_code == 401
    said = desk.send("end", token=rows[0][2])  # one's own
    assert said.status_code == 303
    assert desk.browser.get(said.headers["location"]).status_code == 401


def test_the_page_of_a_team(live_server, desk, team):
    end = f"/teams/{team[0]}"
    live_server.submit(team[1], make_predictions(30), query="?message=%3Cb%3Ehello")
    page = desk.see(end).text
    assert "&lt;b&gt;hello" in page
    assert "Reinstate" not in page
    page = desk.done("disqualify", "disqualified", end)
    assert "Reinstate the team" in page
    assert live_server.call("GET", "/boards/first/leaderboard").json()["rows"] == []
    assert f'"asker":"{team[0]}"' in entries(live_server)
    assert "badge-bad" in desk.see().text
    desk.done("reinstate", "reinstated", end)
    assert len(live_server.call("GET", "/boards/first/leaderboard").json()["rows"]) == 1
    page = desk.done("revoke", "revoked", end)
    assert "It has no token" in page
    assert live_server.call("GET", "/boards/first/team", team[1]).status_code == 401
    assert token_in(desk.send("rotate", end).text)
    assert "It has a token" in desk.see(end).text


def test_what_was_done_is_said_in_our_own_words_only(desk):
    for word in ("<b>x</b>", "nothing", "public&done=x", "paused"):  # which it is not
        page = desk.see(f"?done={word}").text
        assert 'role="status"' not in page
    assert "Everybody sees the standings" in desk.see("?done=public").text


def test_many_teams_come_in_pages(empty_server, desk_of):
    live_server = empty_server
    live_server.create_board(questions=1000, teams=250)
    names = [f"Team {at:03}" for at in range(203)]
    for name in names:
        live_server.join(name)
    desk, seen, end = desk_of(live_server.organiser), [], ""
    while end is not None:
        page = desk.see(end).text
        found = re.findall(r'organise/teams/[0-9a-f]{16}">([^<]+)<', page)
        assert len(found) <= 100
        seen += found
        more = re.search(r'organise(\?after=\d+)#teams">Next', page)
        end = more and more.group(1)
    assert seen == names
    assert desk.see("?after=x").status_code == 422
    assert "No team comes after these" in desk.see("?after=99999").text
