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


def test_it_is_for_organisers_only(live_server, open_organiser_page, team):
    own = live_server.issue_token("organiser")
    for token in (live_server.organiser, own):
        assert open_organiser_page(token).get().status_code == 200
        assert open_organiser_page(token).get(f"/teams/{team[0]}").status_code == 200
    for end in ("", f"/teams/{team[0]}"):
        public = open_organiser_page(None).get(end)
        assert public.status_code == 401
        assert f'href="/login?next=/boards/{live_server.slug}/organise{end}"' in public.text
        for token in (team[1], live_server.issue_token("evaluator")):
            said = open_organiser_page(token).get(end)
            assert (said.status_code, "an organiser&#39;s token" in said.text) == (403, True)
    live_server.boards.create(make_folder(f"{live_server.slug}-other"))
    stranger = live_server.issue_token("organiser", f"{live_server.slug}-other")
    assert open_organiser_page(stranger).get().status_code == 401


@pytest.mark.parametrize("who", ["public", "team", "evaluator"])
def test_no_form_works_for_anybody_else(live_server, open_organiser_page, team, who):
    token = {"public": None, "team": team[1]}.get(who)
    organiser_page = open_organiser_page(
        live_server.issue_token("evaluator") if who == "evaluator" else token
    )
    before = organiser_page.snapshot()
    wanted = 401 if who == "public" else 403
    for do, fields in BOARD_FORMS.items():
        filled = {name: value.format(slug=live_server.slug) for name, value in fields.items()}
        assert organiser_page.send(do, **filled).status_code == wanted, do
    for do in TEAM_FORMS:
        assert organiser_page.send(do, f"/teams/{team[0]}").status_code == wanted, do
    assert organiser_page.snapshot() == before


def test_no_form_works_without_the_word_of_this_browser(
    live_server, organiser_page, open_organiser_page, team
):
    other = open_organiser_page(live_server.organiser)
    before, strange = organiser_page.snapshot(), {"Origin": "https://evil.example"}
    forms = [("", do, fields) for do, fields in BOARD_FORMS.items()]
    forms += [(f"/teams/{team[0]}", do, {}) for do in TEAM_FORMS]
    own, others = organiser_page.csrf(), other.csrf()
    for end, do, fields in forms:
        data = {
            "do": do,
            **{name: each.format(slug=live_server.slug) for name, each in fields.items()},
        }
        for word, headers in ((None, {}), ("guess", {}), (others, {}), (own, strange)):
            sent = data if word is None else {**data, "csrf": word}
            said = organiser_page.client.post(organiser_page.path + end, data=sent, headers=headers)
            assert said.status_code == 403, (do, word)
            assert "did not come from a page of this server" in said.text
    assert organiser_page.snapshot() == before


def test_a_form_that_there_is_not_is_refused(organiser_page, team):
    organiser_page.send_refused("dance", 400, "no such form")
    organiser_page.send_refused("pause", 400, "no such form", f"/teams/{team[0]}")
    organiser_page.send_refused("amend", 400, "no such form", group="loss")
    assert organiser_page.send("revoke", "/teams/" + "0" * 16).status_code == 404


def test_the_meter_says_where_questions_went(empty_server, open_organiser_page):
    live_server = empty_server
    live_server.create_board(questions=50, teams=4, per_team=11)
    one, two = live_server.join("One")[1], live_server.join("Two")[1]
    for at in range(11):
        live_server.submit(one, make_predictions(90 - 2 * at))
    live_server.submit(two, make_predictions(80))
    board = live_server.boards.open(live_server.slug)
    caller = live_server.boards.caller_by_token(live_server.organiser, live_server.slug)
    board.amendments.pause(caller)
    board.amendments.resume(caller, 8)
    page = open_organiser_page(live_server.organiser).get().text
    facts = dict(re.findall(r"<dt>([^<]+)</dt><dd>([0-9,]+)", page))
    # 42 are shared: 10 for each of 4, and 2 for the pool, of which One has taken 1.
    assert facts == {
        "Questions used": "20", "Visible changes": facts["Visible changes"], "Teams": "2",
        "Each team's share": "10", "Pool": "1", "Charged": "8",
    }  # fmt: skip
    assert int(facts["Visible changes"]) == board.book.chain_state().changes > 5
    rows = re.findall(r'/teams/[0-9a-f]{16}">(\w+)</a>.*?number">(\d+)</td>.*?">(\d+)<', page)
    assert rows == [("One", "11", "0"), ("Two", "1", "9")]


def test_pausing_and_resuming(live_server, organiser_page, team):
    page = organiser_page.send_accepted("pause", "paused")
    assert "Resume the board" in page
    assert "Pause the board" not in page
    assert status(live_server) == "paused"
    assert live_server.submit(team[1], make_predictions(30)).status_code == 409
    organiser_page.send_refused("resume", 422, "whole number", charge="many")
    organiser_page.send_accepted("resume", "charged", charge="2")
    assert live_server.submit(team[1], make_predictions(30)).status_code == 201
    assert '"kind":"paused"' in entries(live_server)
    assert '"charged":2' in entries(live_server)
    organiser_page.send_refused("resume", 422, "Pause it before", charge="2")


def test_who_sees_what(live_server, organiser_page, team):
    live_server.submit(team[1], make_predictions(30))
    for visibility in ("anonymous", "frozen", "hidden", "public"):
        page = organiser_page.send_accepted("show", visibility, visibility=visibility)
        assert re.search(f'value="{visibility}" checked', page)
        seen = live_server.call("GET", "/boards/first").json()
        assert seen["visibility"] == visibility
    organiser_page.send_refused("show", 422, "must be", visibility="secret")


def test_closing_needs_the_name(live_server, organiser_page, team):
    live_server.submit(team[1], make_predictions(30))
    for wrong in ("", "First", live_server.slug.upper()):
        page = organiser_page.send_refused("close", 422, "Nothing was changed", name=wrong)
        assert f'spellcheck="false" value="{wrong}"' in page
    assert status(live_server) == "open"
    seen = organiser_page.seen_version("texts")
    page = organiser_page.send_accepted("close", "closed", name=f" {live_server.slug} ")
    assert status(live_server) == "closed"
    assert "Close the board for good" not in page
    assert "Pause the board" not in page
    organiser_page.send_refused("pause", 409, "closed")
    organiser_page.send_refused("amend", 409, "closed", group="texts", title="x", seen=seen)
    organiser_page.send_refused("add", 409, "no more teams", name="Late")
    organiser_page.send_refused("close", 409, "closed", name=live_server.slug)
    organiser_page.send_accepted("show", "hidden", visibility="hidden")


def test_a_board_that_was_cut_short_in_closing_can_go_on(live_server, organiser_page):
    board = live_server.boards.open(live_server.slug)

    def cut(turn):
        turn.view.execute(
            "UPDATE main.board SET status = 'closing' WHERE book = ?", (turn.view.book_id,)
        )

    board.queue.run(cut)
    page = organiser_page.get().text
    assert "that was cut short" in page
    assert "Close the board for good" in page
    organiser_page.send_accepted("resume", "resumed")
    assert status(live_server) == "open"


def test_a_token_is_shown_in_one_reply_and_nowhere_else(live_server, organiser_page, team):
    made = {
        "team": organiser_page.send("add", name="Beta <b>"),
        "invitation": organiser_page.send("invite", days="1.5"),
        "evaluator": organiser_page.send("trust", role="evaluator"),
        "organiser": organiser_page.send("trust", role="organiser"),
        "team again": organiser_page.send("rotate", f"/teams/{team[0]}"),
    }
    for what, said in made.items():
        assert said.status_code == 200, what
        assert said.headers["cache-control"] == "private, no-store"
        token = token_in(said.text)
        assert token.startswith(f"lb_{what.partition(' ')[0]}_")
        assert said.text.count(token) == 1
        for page in (organiser_page.get(), organiser_page.get(f"/teams/{team[0]}")):
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


def test_what_cannot_be_made_is_said_and_the_form_stays_filled_in(
    live_server, organiser_page, team
):
    page = organiser_page.send_refused("add", 409, "Another team has this name", name="alpha")
    assert (
        'id="in-name" name="name" maxlength="64" required autocomplete="off" value="alpha"' in page
    )
    organiser_page.send_refused("add", 422, "visible name", name="")
    page = organiser_page.send_refused("invite", 422, "at most 366 days", days="400")
    assert 'value="400"' in page
    organiser_page.send_refused("invite", 422, "number of days", days="a week")
    organiser_page.send_refused("trust", 422, "evaluator or an organiser", role="team")
    organiser_page.send_refused("end", 404, "no such token", token="0" * 16)
    evil = '"><script>alert(1)</script>\u202e'
    page = organiser_page.send_refused("add", 422, "invisible", name=evil)
    assert "<script>alert" not in page
    for at in range(3):
        live_server.join(f"Team {at}")
    organiser_page.send_refused("add", 409, "The board is full", name="One more")


def test_tokens_are_listed_without_their_words_and_can_be_ended(
    live_server, open_organiser_page, team
):
    own, other = live_server.issue_token("organiser"), live_server.issue_token("evaluator")
    organiser_page = open_organiser_page(own)
    live_server.call("POST", "/boards/first/invitations", live_server.organiser)
    page = organiser_page.get().text
    rows = re.findall(r'<tr><th scope="row">(\w+)(.*?)</th>.*?value="([0-9a-f]{16})"', page)
    assert [row[0] for row in rows] == ["organiser", "evaluator", "invitation"]
    assert ["yours" in row[1] for row in rows] == [True, False, False]
    assert "1 team has a token" in page
    for token in (own, other, team[1]):
        assert token not in page
    organiser_page.send_accepted("end", "ended", token=rows[1][2])
    assert live_server.call("GET", "/boards/first/teams", other).status_code == 401
    said = organiser_page.send("end", token=rows[0][2])  # one's own
    assert said.status_code == 303
    assert organiser_page.client.get(said.headers["location"]).status_code == 401


def test_the_page_of_a_team(live_server, organiser_page, team):
    end = f"/teams/{team[0]}"
    live_server.submit(team[1], make_predictions(30), query="?message=%3Cb%3Ehello")
    page = organiser_page.get(end).text
    assert "&lt;b&gt;hello" in page
    assert "Reinstate" not in page
    page = organiser_page.send_accepted("disqualify", "disqualified", end)
    assert "Reinstate the team" in page
    assert live_server.call("GET", "/boards/first/leaderboard").json()["rows"] == []
    assert f'"asker":"{team[0]}"' in entries(live_server)
    assert "badge-bad" in organiser_page.get().text
    organiser_page.send_accepted("reinstate", "reinstated", end)
    assert len(live_server.call("GET", "/boards/first/leaderboard").json()["rows"]) == 1
    page = organiser_page.send_accepted("revoke", "revoked", end)
    assert "It has no token" in page
    assert live_server.call("GET", "/boards/first/team", team[1]).status_code == 401
    assert token_in(organiser_page.send("rotate", end).text)
    assert "It has a token" in organiser_page.get(end).text


def test_what_was_done_is_said_in_our_own_words_only(organiser_page):
    for word in ("<b>x</b>", "nothing", "public&done=x", "paused"):  # which it is not
        page = organiser_page.get(f"?done={word}").text
        assert 'role="status"' not in page
    assert "Everybody sees the standings" in organiser_page.get("?done=public").text


def test_many_teams_come_in_pages(empty_server, open_organiser_page):
    live_server = empty_server
    live_server.create_board(questions=1000, teams=250)
    names = [f"Team {at:03}" for at in range(203)]
    for name in names:
        live_server.join(name)
    organiser_page, seen, end = open_organiser_page(live_server.organiser), [], ""
    while end is not None:
        page = organiser_page.get(end).text
        found = re.findall(r'organise/teams/[0-9a-f]{16}">([^<]+)<', page)
        assert len(found) <= 100
        seen += found
        more = re.search(r'organise(\?after=\d+)#teams">Next', page)
        end = more and more.group(1)
    assert seen == names
    assert organiser_page.get("?after=x").status_code == 422
    assert "No team comes after these" in organiser_page.get("?after=99999").text
