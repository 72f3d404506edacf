"""The organiser's page: who may open it, what it shows, and what its forms do."""

import html
import re

import pytest

from ladderboard.board import Caller, Role
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
    "subscribe": {"url": "https://example.invalid/", "event_closed": "yes"},
    "webhook": {"remove": "1"},
    "dump": {"passphrase": "correct horse battery", "again": "correct horse battery"},
}
TEAM_FORMS = ("rotate", "revoke", "disqualify", "reinstate")


def ledger_text(live_server):
    return live_server.call("GET", "/boards/first/ledger?limit=1000", live_server.organiser).text


def shown_token(page):
    return re.search(r'<pre class="token"[^>]*>(?:http\S+#)?(lb_[^<]+)</pre>', page).group(1)


def board_status(live_server):
    return live_server.call("GET", "/boards/first", live_server.organiser).json()["status"]


def test_only_organisers_can_open_the_page(live_server, open_organiser_page, team):
    board_token = live_server.issue_token("organiser")
    for token in (live_server.organiser, board_token):
        assert open_organiser_page(token).get().status_code == 200
        assert open_organiser_page(token).get(f"/teams/{team[0]}").status_code == 200
        assert open_organiser_page(token).get("/settings/nothing").status_code == 404
    pages = ("/teams", "/people", "/invitations", "/activity", "/settings", "/settings/limits")
    for suffix in ("", f"/teams/{team[0]}", *pages):
        assert open_organiser_page(board_token).get(suffix).status_code == 200
        public = open_organiser_page(None).get(suffix)
        assert public.status_code == 401
        assert f'href="/login?next=/boards/{live_server.slug}/organise{suffix}"' in public.text
        for token in (team[1], live_server.issue_token("evaluator")):
            response = open_organiser_page(token).get(suffix)
            assert (response.status_code, "an organiser&#39;s token" in response.text) == (
                403,
                True,
            )
    live_server.boards.create(make_folder(f"{live_server.slug}-other"))
    stranger = live_server.issue_token("organiser", f"{live_server.slug}-other")
    assert open_organiser_page(stranger).get().status_code == 401


def test_organisers_are_led_to_the_page_when_they_sign_in(live_server, browser):
    link = f'href="/boards/{live_server.slug}/organise"'
    assert link not in browser.get("/").text
    assert live_server.sign_in(browser, live_server.organiser).headers["location"] == "/"
    assert link in browser.get("/").text
    board_token = live_server.issue_token("organiser")
    signed_in = live_server.sign_in(browser, board_token)
    assert signed_in.headers["location"] == f"/boards/{live_server.slug}/organise"
    assert link not in browser.get("/").text  # other boards are not theirs


@pytest.mark.parametrize("role", ["public", "team", "evaluator"])
def test_forms_are_refused_without_an_organiser_token(live_server, open_organiser_page, team, role):
    token = {"public": None, "team": team[1]}.get(role)
    organiser_page = open_organiser_page(
        live_server.issue_token("evaluator") if role == "evaluator" else token
    )
    before = organiser_page.snapshot()
    expected = 401 if role == "public" else 403
    for action, fields in BOARD_FORMS.items():
        typed = {name: value.format(slug=live_server.slug) for name, value in fields.items()}
        assert organiser_page.send(action, **typed).status_code == expected, action
    for action in TEAM_FORMS:
        assert organiser_page.send(action, f"/teams/{team[0]}").status_code == expected, action
    assert organiser_page.snapshot() == before


def test_forms_need_the_csrf_token_of_their_session(
    live_server, organiser_page, open_organiser_page, team
):
    other = open_organiser_page(live_server.organiser)
    before, foreign_origin = organiser_page.snapshot(), {"Origin": "https://evil.example"}
    forms = [("", action, fields) for action, fields in BOARD_FORMS.items()]
    forms += [(f"/teams/{team[0]}", action, {}) for action in TEAM_FORMS]
    own_csrf, other_csrf = organiser_page.csrf(), other.csrf()
    for suffix, action, fields in forms:
        data = {
            "do": action,
            **{name: value.format(slug=live_server.slug) for name, value in fields.items()},
        }
        for csrf, headers in (
            (None, {}),
            ("guess", {}),
            (other_csrf, {}),
            (own_csrf, foreign_origin),
        ):
            form = data if csrf is None else {**data, "csrf": csrf}
            response = organiser_page.client.post(
                organiser_page.path + suffix, data=form, headers=headers
            )
            assert response.status_code == 403, (action, csrf)
            assert "came from another site" in response.text
    assert organiser_page.snapshot() == before


def test_unknown_forms_are_refused(organiser_page, team):
    organiser_page.send_refused("dance", 400, "no such form")
    organiser_page.send_refused("pause", 400, "no such form", f"/teams/{team[0]}")
    organiser_page.send_refused("amend", 400, "no such form", group="loss")
    assert organiser_page.send("revoke", "/teams/" + "0" * 16).status_code == 404


@pytest.mark.parametrize("metric", ["zero_one", "roc_auc"])
def test_the_overview_and_the_rules_state_the_same_gains(empty_server, open_organiser_page, metric):
    live_server = empty_server
    live_server.create_board(loss=metric, mechanism=None)
    page = html.unescape(open_organiser_page(live_server.organiser).get().text)
    before = re.search(r"Near [^<]*gains smaller than [^<]*", page)[0]
    assert "Near AUC 0.80," in before or metric != "roc_auc"  # by a model made from the labels
    rules = f"/boards/{live_server.slug}/rules"
    public = html.unescape(live_server.client.get(rules).text)
    assert (before in public) == (metric == "zero_one")  # others depend on labels, so nothing yet
    token = live_server.join("Ada")[1]
    released = live_server.submit(token, make_predictions(60)).json()["display"]["released"]
    pages = open_organiser_page(live_server.organiser).get(), live_server.client.get(rules)
    texts = [re.sub(r"\s+", " ", html.unescape(page.text)) for page in pages]
    gains = [re.search(r"Near [^<]*gains smaller than [^<]*", text) for text in texts]
    shared = [match[0].partition("eighth.")[0].strip() for match in gains]
    assert shared[0] == shared[1]
    assert f" {released:g}" in shared[0]


def test_the_overview_speaks_of_the_best_that_counts(empty_server, open_organiser_page):
    live_server = empty_server
    live_server.create_board(loss="roc_auc", mechanism=None)
    (_, honest), (cheat, perfect) = live_server.join("Ada"), live_server.join("Eve")
    best = live_server.submit(honest, make_predictions(60)).json()["display"]["released"]
    live_server.submit(perfect, make_predictions(0))
    organiser_page = open_organiser_page(live_server.organiser)
    assert f"Near AUC {best:.2f}, gains" not in organiser_page.get().text
    organiser_page.send_accepted("disqualify", "disqualified", f"/teams/{cheat}")
    assert f"Near AUC {best:.2f}, gains" in organiser_page.get().text


def test_the_meter_shows_how_questions_were_used(empty_server, open_organiser_page):
    live_server = empty_server
    live_server.create_board(questions=50, teams=4, per_team=11)
    one, two = live_server.join("One")[1], live_server.join("Two")[1]
    for number in range(11):
        live_server.submit(one, make_predictions(90 - 2 * number))
    live_server.submit(two, make_predictions(80))
    board = live_server.boards.open(live_server.slug)
    caller = live_server.boards.caller_by_token(live_server.organiser, live_server.slug)
    board.amendments.pause(caller)
    board.amendments.resume(caller, 8)
    organiser_page = open_organiser_page(live_server.organiser)
    page = organiser_page.get().text
    sentences = board.describe_resolution(board.row().best)
    assert all(sentence in html.unescape(page) for sentence in sentences)
    facts = dict(re.findall(r"<dt>([^<]+)</dt><dd>([^<]+?) *<", page))
    assert facts["Submissions"] == "20"
    assert facts["Teams"] == "2"
    page = organiser_page.get("/settings/limits").text
    # 42 are shared: 10 for each of 4, and 2 for the pool, of which One has taken 1.
    assert dict(re.findall(r"<dt>([^<]+)</dt><dd>([0-9,]+)", page)) == {
        "Used": "20", "Reserved for each team": "10", "Left in the shared pool": "1",
        "Taken off after a restore": "8",
    }  # fmt: skip
    page = organiser_page.get("/teams").text
    rows = re.findall(r'/teams/[0-9a-f]{16}">(\w+)</a>.*?number">(\d+)</td>.*?">(\d+)<', page)
    assert rows == [("One", "11", "0"), ("Two", "1", "9")]


def attention(organiser_page):
    """Return the sentences and links of what needs attention."""
    item = r'<li><span>([^<]+)</span> <a href="[^"]*/boards/[^/"]+([^"]*)">'
    return {html.unescape(text): path for text, path in re.findall(item, organiser_page.get().text)}


def test_the_overview_lists_what_needs_attention(empty_server, open_organiser_page):
    live_server = empty_server
    live_server.create_board(
        questions=10, teams=4, ladder="board", registration="invited", end="2027-02-15T00:00:00Z"
    )
    organiser_page = open_organiser_page(live_server.organiser)
    assert attention(organiser_page) == {
        "No teams yet. Send an invitation to each.": "/organise/invitations"
    }
    organiser_page.send("invite", days="3", count="4")
    assert attention(organiser_page) == {
        "No teams yet. Not used so far: 4 invitations.": "/organise/invitations"
    }
    crowded = "only the first teams to join get one."
    assert crowded not in organiser_page.get("/invitations").text
    organiser_page.send("invite", days="3", count="1")
    assert f"5 invitations for 4 free places: {crowded}" in organiser_page.get("/invitations").text
    board = live_server.boards.open(live_server.slug)
    caller = live_server.boards.caller_by_token(live_server.organiser, live_server.slug)
    tokens = [board.teams.create(caller, name).token for name in ("One", "Two", "Three", "Four")]
    full = {"All 4 places for teams are taken.": "/organise/settings/limits"}
    assert attention(organiser_page) == full
    for number in range(8):
        reply = live_server.submit(tokens[number % 4], make_predictions(90 - 3 * number))
        assert reply.status_code == 201
    used = {"80% of the submissions are used: 2 left.": "/organise/settings/limits"}
    assert attention(organiser_page) == used | full
    live_server.clock.now += 8 * 86_400
    organiser_page = open_organiser_page(live_server.organiser)  # the session has expired
    quiet = {"No submission for 8 days.": "/organise/activity"}
    assert attention(organiser_page) == used | full | quiet
    live_server.clock.now += 21 * 86_400
    organiser_page = open_organiser_page(live_server.organiser)
    sentences = attention(organiser_page)
    assert sentences["The deadline is in 1 day."] == "/organise/settings/times"
    live_server.clock.now += 3 * 86_400
    organiser_page = open_organiser_page(live_server.organiser)
    passed = "The deadline has passed. Close the board to publish the final ranking."
    assert next(iter(attention(organiser_page).items())) == (passed, "/organise/settings/close")
    board.amendments.pause(caller)
    assert attention(organiser_page)["The board is paused: it takes no submissions."] == (
        "/organise#resume"
    )
    board.closer.close(caller)
    assert attention(organiser_page) == {}
    page = organiser_page.get().text
    assert "The board is closed for good." in page
    assert f"ladderboard board close {live_server.slug} --out DIR/data/" in page  # the bundle
    assert f"ladderboard board data {live_server.slug} DIR" in page
    assert "What this board can show" not in page
    assert "<dt>Best public zero-one loss</dt>" in page


def test_the_overview_has_the_only_score_before_there_is_a_chart(live_server, organiser_page, team):
    assert "<p>No submissions yet. The chart" in organiser_page.get().text
    for errors in (60, 90):
        live_server.submit(team[1], make_predictions(errors))
    page = organiser_page.get().text
    assert "No submissions yet" not in page
    assert "<p>One score so far: zero-one loss 0.2. The chart starts" in page


def test_the_activity_lists_events_in_words(live_server, organiser_page, team):
    for wrong in (*range(90, 36, -6), 91, 92, 93):
        assert live_server.submit(team[1], make_predictions(wrong)).status_code == 201
    live_server.amend(title="Another")
    first = organiser_page.get("/activity").text
    rows = re.findall(r'<td class="organise-event">([^<]+)</td>', first)
    assert rows[0] == "Rules changed: title"
    assert rows[1] == "No measurable improvement"
    assert len(rows) == 10
    assert f'organise/teams/{team[0]}">Alpha</a>' in first
    before = re.search(r"/activity(\?before=\d+)", first).group(1)
    second = organiser_page.get(f"/activity{before}").text
    rows += re.findall(r'<td class="organise-event">([^<]+)</td>', second)
    assert len(rows) == 14
    assert rows[-1] == "Board created"
    assert sum(row.startswith("New best: ") for row in rows) == 9
    assert organiser_page.get("/activity?before=x").status_code == 422


def test_pausing_and_resuming(live_server, organiser_page, team):
    page = organiser_page.send_accepted("pause", "paused")
    assert "Resume the board" in page
    assert "Pause the board" not in page
    assert board_status(live_server) == "paused"
    assert live_server.submit(team[1], make_predictions(30)).status_code == 409
    organiser_page.send_refused("resume", 422, "whole number", charge="many")
    organiser_page.send_accepted("resume", "charged", charge="2")
    assert live_server.submit(team[1], make_predictions(30)).status_code == 201
    assert '"kind":"paused"' in ledger_text(live_server)
    assert '"charged":2' in ledger_text(live_server)
    organiser_page.send_refused("resume", 422, "Pause it before", charge="2")


def test_visibility_can_be_changed(live_server, organiser_page, team):
    live_server.submit(team[1], make_predictions(30))
    for visibility in ("anonymous", "frozen", "hidden", "public"):
        organiser_page.send_accepted("show", visibility, visibility=visibility)
        page = organiser_page.get("/settings/visibility").text
        assert re.search(f'value="{visibility}" checked', page)
        summary = live_server.call("GET", "/boards/first").json()
        assert summary["visibility"] == visibility
    organiser_page.send_refused("show", 422, "must be", visibility="secret")


def test_closing_needs_the_board_name(live_server, organiser_page, team):
    live_server.submit(team[1], make_predictions(30))
    for wrong in ("", "First", live_server.slug.upper()):
        page = organiser_page.send_refused("close", 422, "Nothing was changed", name=wrong)
        assert f'spellcheck="false" value="{wrong}"' in page
    assert board_status(live_server) == "open"
    version = organiser_page.seen_version("texts")
    page = organiser_page.send_accepted("close", "closed", name=f" {live_server.slug} ")
    assert board_status(live_server) == "closed"
    assert "Close the board for good" not in page
    assert "<dt>Closed</dt><dd>just now " in organiser_page.get("").text
    assert "Pause the board" not in page
    organiser_page.send_refused("pause", 409, "closed")
    organiser_page.send_refused("amend", 409, "closed", group="texts", title="x", seen=version)
    organiser_page.send_refused("add", 409, "no more teams", name="Late")
    organiser_page.send_refused("close", 409, "closed", name=live_server.slug)
    organiser_page.send_accepted("show", "hidden", visibility="hidden")


def test_an_interrupted_close_can_be_resumed(live_server, organiser_page):
    board = live_server.boards.open(live_server.slug)

    def cut(transaction):
        transaction.view.execute(
            "UPDATE main.board SET status = 'closing' WHERE book = ?", (transaction.view.book_id,)
        )

    board.queue.run(cut)
    page = organiser_page.get().text
    assert "Closing was interrupted" in page
    assert "Close the board for good" in organiser_page.get("/settings/close").text
    organiser_page.send_accepted("resume", "resumed")
    assert board_status(live_server) == "open"


def test_a_new_token_is_shown_once_and_nowhere_else(live_server, organiser_page, team):
    responses = {
        "team": organiser_page.send("add", name="Beta <b>"),
        "invitation": organiser_page.send("invite", days="1.5"),
        "evaluator": organiser_page.send("trust", role="evaluator"),
        "organiser": organiser_page.send("trust", role="organiser"),
        "team again": organiser_page.send("rotate", f"/teams/{team[0]}"),
    }
    for kind, response in responses.items():
        assert response.status_code == 200, kind
        assert response.headers["cache-control"] == "private, no-store"
        token = shown_token(response.text)
        assert token.startswith(f"lb_{kind.partition(' ')[0]}_")
        assert response.text.count(token) == 1
        for page in (organiser_page.get(), organiser_page.get(f"/teams/{team[0]}")):
            assert token not in page.text
        assert token not in live_server.log.getvalue()
        assert token not in ledger_text(live_server)
        assert token not in str(response.headers)
    assert "Beta &lt;b&gt;" in responses["team"].text
    beta = shown_token(responses["team"].text)
    assert live_server.call("GET", "/boards/first/team", beta).json()["name"] == "Beta <b>"
    assert (
        live_server.call("GET", "/boards/first/team", team[1]).status_code == 401
    )  # it was rotated
    alpha = shown_token(responses["team again"].text)
    assert live_server.call("GET", "/boards/first/team", alpha).json()["name"] == "Alpha"
    invitation = shown_token(responses["invitation"].text)
    body = {"name": "Gamma", "invitation": invitation}
    assert live_server.call("POST", "/boards/first/teams", json=body).status_code == 201
    for role in ("evaluator", "organiser"):
        token = shown_token(responses[role].text)
        assert live_server.call("GET", "/boards/first/teams", token).status_code == 200


def test_a_refused_form_shows_why_and_keeps_its_input(live_server, organiser_page, team):
    page = organiser_page.send_refused("add", 409, "Another team has this name", name="alpha")
    assert 'required autocomplete="off" aria-describedby="name-hint" value="alpha"' in page
    organiser_page.send_refused("add", 422, "visible name", name="")
    page = organiser_page.send_refused("invite", 422, "at most 366 days", days="400")
    assert 'value="400"' in page
    organiser_page.send_refused("invite", 422, "number of days", days="a week")
    organiser_page.send_refused("trust", 422, "evaluator or an organiser", role="team")
    organiser_page.send_refused("end", 404, "no such token", token="0" * 16)
    evil = '"><script>alert(1)</script>\u202e'
    page = organiser_page.send_refused("add", 422, "invisible", name=evil)
    assert "<script>alert" not in page
    for number in range(3):
        live_server.join(f"Team {number}")
    organiser_page.send_refused("add", 409, "The board is full", name="One more")


def test_tokens_are_listed_without_secrets_and_can_be_revoked(
    live_server, open_organiser_page, team
):
    organiser, other = live_server.issue_token("organiser"), live_server.issue_token("evaluator")
    organiser_page = open_organiser_page(organiser)
    live_server.call("POST", "/boards/first/invitations", live_server.organiser)
    page = organiser_page.get("/settings/access").text
    row = r'<tr><th scope="row">([\w ]+)(.*?)</th>.*?value="([0-9a-f]{16})"'
    rows = re.findall(row, page)
    assert [row[0].strip() for row in rows] == ["organiser", "evaluator"]
    assert ["yours" in row[1] for row in rows] == [True, False]
    invitations = organiser_page.get("/invitations").text
    invitation = re.findall(row, invitations)
    assert [row[0] for row in invitation] == ["new team"]
    page += invitations
    for token in (organiser, other, team[1]):
        assert token not in page
    reply = organiser_page.send("end", token=invitation[0][2], **{"from": "invitations"})
    assert reply.headers["location"] == f"{organiser_page.path}/invitations?done=ended"
    assert "No open invitations" in organiser_page.get("/invitations").text
    organiser_page.send_accepted("end", "ended", token=rows[1][2])
    assert live_server.call("GET", "/boards/first/teams", other).status_code == 401
    response = organiser_page.send("end", token=rows[0][2])  # the organiser's own token
    assert response.status_code == 303
    assert organiser_page.client.get(response.headers["location"]).status_code == 401


def test_managing_a_team_on_its_page(live_server, organiser_page, team):
    suffix = f"/teams/{team[0]}"
    live_server.submit(team[1], make_predictions(30), query="?message=%3Cb%3Ehello")
    page = organiser_page.get(suffix).text
    assert "&lt;b&gt;hello" in page
    assert "<strong>0.1</strong>" in page
    assert "Reinstate" not in page
    page = organiser_page.send_accepted("disqualify", "disqualified", suffix)
    assert "Reinstate the team" in page
    assert live_server.call("GET", "/boards/first/leaderboard").json()["rows"] == []
    assert f'"asker":"{team[0]}"' in ledger_text(live_server)
    assert "badge-bad" in organiser_page.get("/teams").text
    organiser_page.send_accepted("reinstate", "reinstated", suffix)
    assert len(live_server.call("GET", "/boards/first/leaderboard").json()["rows"]) == 1
    page = organiser_page.send_accepted("revoke", "revoked", suffix)
    assert "It has no token" in page
    assert live_server.call("GET", "/boards/first/team", team[1]).status_code == 401
    assert shown_token(organiser_page.send("rotate", suffix).text)
    assert "Its token was made" in organiser_page.get(suffix).text


def test_done_messages_come_from_known_codes_only(organiser_page):
    for code in ("<b>x</b>", "nothing", "public&done=x", "paused"):  # not the board's state
        page = organiser_page.get(f"?done={code}").text
        assert 'role="status"' not in page
    assert "Everybody sees the standings" in organiser_page.get("?done=public").text


def test_teams_are_paginated(empty_server, open_organiser_page):
    live_server = empty_server
    live_server.create_board(questions=1000, teams=250)
    names = [f"Team {number:03}" for number in range(203)]
    for name in reversed(names):
        live_server.join(name)
    organiser_page, listed, suffix = open_organiser_page(live_server.organiser), [], "/teams"
    while suffix is not None:
        page = organiser_page.get(suffix).text
        page_names = re.findall(r'organise/teams/[0-9a-f]{16}">([^<]+)<', page)
        assert len(page_names) <= 20
        listed += page_names
        next_link = re.search(r'organise(/teams\?page=\d+)">Next', page)
        suffix = next_link and next_link.group(1)
    assert listed == sorted(names)
    assert "Page 11 of 11" in page
    assert organiser_page.get("/teams?page=x").status_code == 422
    assert names[202] in organiser_page.get("/teams?page=99999").text


def test_webhooks_are_added_tested_and_removed(live_server, organiser_page):
    url = "https://hooks.example.invalid/a?b=<c>"
    refused = organiser_page.send_refused
    refused("subscribe", 422, "not public", url="http://[::1]/", event_closed="yes")
    refused("subscribe", 422, "must be like https://example.org/hook", url="x", event_closed="yes")
    page = refused("subscribe", 422, "needs events out of", url="https://example.invalid/")
    assert 'value="https://example.invalid/"' in page
    reply = organiser_page.send("subscribe", url=url, format="discord", event_closed="yes")
    assert reply.status_code == 200
    secret = re.search(r"whsec_[^<]+", reply.text).group(0)
    assert "Slack and Discord do not need it" in reply.text
    page = organiser_page.get("/settings/webhooks").text
    assert secret not in page
    assert "https://hooks.example.invalid/a?b=&lt;c&gt;" in page
    assert "nothing was sent yet" in page
    organiser_page.send_accepted("webhook", "tested", test="1")
    refused("webhook", 404, "There is no such webhook.", test="2")
    assert "No webhook yet" in organiser_page.send_accepted("webhook", "unsubscribed", remove="1")
    refused("webhook", 422, "webhook must be a whole number", remove="")


def test_many_webhooks_are_paged_failures_first(live_server, organiser_page):
    board = live_server.boards.open(live_server.slug)
    for number in range(102):
        board.webhooks.add(Caller(Role.ORGANISER), f"https://example.invalid/{number}", ("closed",))
    with live_server.boards.storage.write_tables() as view:
        view.execute(
            "INSERT INTO main.delivery (book, webhook, id, event, time, attempts, last, result, "
            "delivered) SELECT book, 102, 'e', 'closed', 1, 8, 1, 'answered 500', 0 "
            "FROM main.board WHERE slug = ?",
            (live_server.slug,),
        )
    path, urls = "/settings/webhooks", []
    page = organiser_page.get(path).text
    assert "answered 500" in page
    assert "The last delivery of 1 webhook failed." in organiser_page.get().text
    for number in range(1, 12):
        page = organiser_page.get(f"{path}?page={number}").text
        assert f"Page {number} of 11" in page
        urls += re.findall(r"<code>https://example.invalid/(\d+)<", page)
    assert urls == ["101", *map(str, range(101))]


def test_several_invitations_are_links_valid_until_the_deadline(empty_server, open_organiser_page):
    live_server = empty_server
    live_server.create_board(registration="invited", end="2027-02-14T08:00:00Z")
    page = open_organiser_page(live_server.organiser)
    form = re.sub(r"<[^>]*>", "", page.get("/invitations").text)
    assert "they expire at 2027-02-14 08:00 UTC, the deadline." in form
    shown = page.send("invite", days="", count="3").text
    links = re.search(r'<pre class="token"[^>]*>([^<]+)</pre>', shown)[1].split("\n")
    place = f"{live_server.url}/boards/{live_server.slug}/join#lb_invitation_"
    assert len(set(links)) == 3
    assert all(link.startswith(place) for link in links)
    listed = page.get("/invitations").text
    assert listed.count("new team") == 3
    assert listed.count('datetime="2027-02-14T08:00:00Z"') == 5  # also in the head and the hint
    page.send_refused("invite", 422, "At most 100 invitations", days="7", count="101")
    page.send("invite", days="7")
    board, caller = live_server.boards.open(live_server.slug), Caller(Role.ORGANISER)
    for end in ("2027-01-01", "2027-03-14"):  # the one for a week does not follow the deadline
        board.amendments.amend(caller, {"end": f"{end}T08:00:00Z"})
    listed = page.get("/invitations").text
    assert (listed.count("new team"), listed.count("2027-02-14")) == (4, 0)
    assert listed.count('datetime="2027-03-14T08:00:00Z"') == 5
    assert board.teams.register("Late", links[0].partition("#")[2]).token
    board.closer.close(caller)
    listed = page.get("/invitations").text
    assert "The board is closed: nobody can join any more" in listed
    assert "Revoke" not in listed
