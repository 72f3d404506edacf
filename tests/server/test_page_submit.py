"""The submit page: who sees what, replies, refusals, the history and selections."""

import re
from html import unescape

import pytest

from ladderboard.server import Rate
from support.server.live_server import csrf_token, make_predictions

INLINE_TAGS = "time|code|strong|a"


def page_text(page):
    """Return the visible text of a page."""
    text = re.sub(rf"</?({INLINE_TAGS})( [^>]*)?>", "", page)
    return " ".join(unescape(re.sub("<[^>]+>", " ", text)).split())


def notice_text(page, role):
    """Return the text of the reply or of the refusal."""
    return page_text(
        re.search(rf'<div [^>]*role="{role}" id="reply".*?</div>\n', page, re.DOTALL)[0]
    )


class TeamBrowser:
    """A team that is signed in to the submit page."""

    def __init__(self, live_server, browser):
        self.live_server, self.browser = live_server, browser
        self.id, self.token = live_server.join("Alpha")
        assert live_server.sign_in(browser, self.token).status_code == 303
        self.path = f"/boards/{live_server.slug}/submit"

    def look(self, query=""):
        return self.browser.get(self.path + query)

    def send(self, body, name="p.csv", **data):
        action = re.search(r'action="(/boards/[^"]+csrf=[^"]+)"', self.look().text).group(1)
        return self.browser.post(action, files={"file": (name, body)}, data=data)

    def check(self, body):
        action = re.search(r'formaction="([^"]+)"', self.look().text).group(1)
        return self.browser.post(action, files={"file": ("p.csv", body)})

    def post(self, path, **data):
        """Send another form of the page."""
        csrf = re.search(r'name="csrf" value="([^"]+)"', self.look().text).group(1)
        return self.browser.post(
            f"/boards/{self.live_server.slug}/{path}", data={"csrf": csrf, **data}
        )

    def used(self):
        return self.live_server.call("GET", "/boards/first/team", self.token).json()["submissions"]


@pytest.fixture
def team(live_server, browser):
    return TeamBrowser(live_server, browser)


def test_the_public_sees_how_to_sign_in_or_join(live_server, browser):
    page = browser.get(f"/boards/{live_server.slug}/submit")
    assert page.status_code == 200
    assert f'name="next" value="/boards/{live_server.slug}/submit"' in page.text
    assert f'href="/boards/{live_server.slug}/join"' in page.text
    assert 'type="file"' not in page.text
    for registration, text in (
        ("invited", "need an invitation"),
        ("organiser", "Ask them for a token"),
    ):
        live_server.amend(registration=registration)
        assert text in page_text(browser.get(f"/boards/{live_server.slug}/submit").text)


def test_a_token_of_another_board_is_explained(live_server, browser):
    other = f"{live_server.slug}-other"
    live_server.create_board(other)
    live_server.sign_in(browser, live_server.join("Alpha", other)[1])
    page = page_text(browser.get(f"/boards/{live_server.slug}/submit").text)
    assert "your token is for another board" in page


@pytest.mark.parametrize("role", ["evaluator", "organiser"])
def test_staff_see_how_to_submit_for_a_team(live_server, browser, role):
    live_server.sign_in(browser, live_server.issue_token(role))
    page = browser.get(f"/boards/{live_server.slug}/submit").text
    assert f"signed in as an {role}" in page_text(page)
    assert (
        f"submit {live_server.url}/boards/{live_server.slug} -f predictions.csv --team TEAM" in page
    )
    assert 'type="file"' not in page


def test_a_team_sees_the_file_format_and_its_questions_left(empty_server):
    empty_server.create_board(window="{questions: 3, hours: 24}", files="{bytes: 20 kB}")
    with empty_server.browser() as browser:
        page = TeamBrowser(empty_server, browser).look()
    assert "Alpha: 25 submissions left, 3 available now (at most 3 in any 24 hours)." in page_text(
        page.text
    )
    assert "at most 20 kB" in page.text
    assert "400 rows" in page.text
    assert "id,prediction\n0,...\n1,..." in page.text
    assert "A file without ids is matched by position." in page.text
    assert page.headers["cache-control"] == "private, no-store"


def test_the_reply_uses_the_displayed_metric(empty_server):
    live_server = empty_server
    live_server.create_board(loss="accuracy", display="{name: accuracy, digits: 3}")
    with live_server.browser() as browser:
        team = TeamBrowser(live_server, browser)
        page = team.send(make_predictions(60)).text
        first = notice_text(page, "status")
        assert first.startswith(
            "New best: 0.8 Accuracy 0.8 is the first score. 24 submissions left."
        )
        receipt = browser.get(re.search(r'href="(/boards/[^"]+/receipts/[^"]+)"', page).group(1))
        assert receipt.headers["content-disposition"].startswith("attachment")
        submission = f"/api/v1{receipt.url.path}".replace("/receipts/", "/submissions/")
        assert browser.get(submission).json()["receipt"] == receipt.json()
        row = re.search(r"<tbody>.*?</tr>", team.look().text, re.DOTALL)[0]
        assert f'href="{receipt.url.path}" download' in row
        unchanged = notice_text(team.send(make_predictions(61)).text, "status")
        gains = "Improvements smaller than about 0.01 may not be detected."
        assert unchanged.startswith(
            f"No measurable improvement Your best: accuracy 0.8. {gains} 23 submissions left."
        )
        better = notice_text(team.send(make_predictions(30)).text, "status")
        assert better.startswith(
            "New best: 0.9 Accuracy went from 0.8 to 0.9. 22 submissions left."
        )
        again = notice_text(team.send(make_predictions(60)).text, "status")
        assert again.startswith(
            "Duplicate of submission 1 Not counted. After submission 1 your best was accuracy 0.8. "
            "22 submissions left"
        )
        assert team.used() == 3


def test_the_rules_show_the_bound(empty_server):
    live_server = empty_server
    live_server.create_board(
        loss="accuracy", questions=4, teams=1, mechanism="{name: ladder, step: 0.1}"
    )
    with live_server.browser() as browser:
        TeamBrowser(live_server, browser).send(make_predictions(60))
        rules = page_text(browser.get(f"/boards/{live_server.slug}/rules").text)
    view = live_server.boards.open(live_server.slug).as_seen_by(
        live_server.boards.caller_by_token(live_server.organiser, live_server.slug)
    )
    bound = view.summary()["bound"]
    match = re.search(
        r"With confidence 95%, the true accuracy of the best model submitted so far "
        r"lies between (0\.\d\d) and ([01]\.\d\d)\.",
        rules,
    )
    low, high = map(float, match.groups())
    # Rounded outwards, to two digits of its width.
    assert bound["low"] - 0.01 < low <= bound["low"]
    assert bound["high"] <= high < bound["high"] + 0.01


def test_replies_on_a_board_with_one_ladder(empty_server):
    live_server = empty_server
    live_server.create_board(loss="accuracy", ladder="board", display="{name: accuracy, digits: 2}")
    live_server.submit(live_server.join("Beta")[1], make_predictions(60))
    with live_server.browser() as browser:
        team = TeamBrowser(live_server, browser)
        reply = notice_text(team.send(make_predictions(90)).text, "status")
        assert reply.startswith(
            "No measurable improvement The best of the whole board: accuracy 0.8. "
        )
        reply = notice_text(team.send(make_predictions(30)).text, "status")
        assert reply.startswith("New best of the whole board: 0.9 Accuracy went from 0.8 to 0.9.")
        live_server.amend(visibility="hidden")
        page = team.send(make_predictions(80)).text
        reply = notice_text(page, "status")
        assert reply.startswith(
            "No measurable improvement The best of the whole board is unchanged; it is not shown "
        )
        assert "while the standings are hidden" in reply
        assert "With confidence" not in reply
        assert "not shown" in page_text(page[page.index("<tbody>") :])


def test_a_submission_without_a_release_leaves_no_record(empty_server):
    live_server = empty_server
    live_server.create_board(mechanism="{name: ladder, step: 0.5}")
    with live_server.browser() as browser:
        page = TeamBrowser(live_server, browser).send(make_predictions(299)).text
    reply = notice_text(page, "status")
    assert reply.startswith("No score yet No measurable improvement so far. ")
    assert "none yet" in page_text(page[page.index("<tbody>") :])


def test_replies_when_a_window_or_the_budget_is_used_up(empty_server):
    live_server = empty_server
    live_server.create_board(per_team=3, window="{questions: 2, hours: 1}")
    with live_server.browser() as browser:
        team = TeamBrowser(live_server, browser)
        live_server.clock.now += 20  # times are rounded up, in replies as in refusals
        team.send(make_predictions(60))
        live_server.clock.now += 600
        reply = notice_text(team.send(make_predictions(50)).text, "status")
        assert ". 1 submission left, none available now; next at 09:01 UTC." in reply
        refused = team.send(make_predictions(40))
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "3000")
        alert = notice_text(refused.text, "alert")
        assert "The next is at 2027-01-15 09:01 UTC. Nothing was counted." in alert
        live_server.clock.now += 3000
        reply = notice_text(team.send(make_predictions(40)).text, "status")
        assert "No submissions left: your team has used all its 3." in reply
        page = team.look().text
        assert "no submissions left" in page
        assert 'type="file"' not in page


def test_a_file_can_be_checked_when_no_submission_is_left_today(empty_server):
    live_server = empty_server
    live_server.create_board(per_team=3, window="{questions: 1, hours: 1}")
    with live_server.browser() as browser:
        team = TeamBrowser(live_server, browser)
        team.send(make_predictions(60))
        assert team.send(b"id,prediction\n0,1\n").status_code == 429
        refused = team.check(b"id,prediction\n0,1\n")
        assert refused.status_code == 422
        assert "399 missing ids" in notice_text(refused.text, "alert")
        valid = team.check(make_predictions(50))
        assert valid.status_code == 200
        assert "The file can be scored Nothing was counted." in notice_text(valid.text, "status")
        plain = team.check(b"\n".join([b"prediction", *[b"1"] * 400]))
        assert "matched by position. Nothing was counted." in notice_text(plain.text, "status")
        rows = make_predictions(50).decode().split()
        table = "\n".join([",id,prediction", *(f"7,{row}" for row in rows[1:])])
        text = notice_text(team.check(table.encode()).text, "status")
        assert "The predictions are in the column 'prediction'; not used: ''." in text
        assert team.used() == 1
        action = re.search(r'formaction="([^"]+)"', team.look().text).group(1)
        body = {"file": ("p.csv", make_predictions(50))}
        assert browser.post(action.split("?")[0], files=body).status_code == 403
        live_server.call("POST", "/boards/first/pause", live_server.organiser)
        assert browser.post(action, files=body).status_code == 409


def test_checks_are_limited_like_invalid_files(make_server):
    live_server = make_server(invalid=Rate(2, 1e6))
    live_server.create_board()
    with live_server.browser() as browser:
        team = TeamBrowser(live_server, browser)
        statuses = [team.check(make_predictions(50)).status_code for _ in range(3)]
        assert statuses == [200, 200, 429]
        assert team.send(make_predictions(50)).status_code == 429


def test_scores_in_the_history_have_the_same_decimals(empty_server):
    live_server = empty_server
    live_server.create_board(loss="accuracy", display="{name: accuracy, digits: 3}")
    with live_server.browser() as browser:
        team = TeamBrowser(live_server, browser)
        for errors in (75, 60):
            live_server.submit(team.token, make_predictions(errors))
        assert "<strong>0.80</strong>" in team.look().text


def test_refusals_list_all_errors_with_ids(team):
    rows = "".join(f"{number},1\n" for number in range(385))
    response = team.send(f"id,prediction\n{rows}3,1\n<i>x</i>,\n".encode())
    assert response.status_code == 422
    alert = notice_text(response.text, "alert")
    assert alert.startswith("4 things are wrong with this file Nothing was counted.")
    assert "15 missing ids: 385, 386, 387," in alert
    assert "394 and 5 more" in alert
    assert "1 duplicate id: 3" in alert
    assert "<code>&lt;i&gt;x&lt;/i&gt;</code>" in response.text
    assert "<i>x" not in response.text
    assert team.used() == 0


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 422, "One thing is wrong with this file Nothing was counted."),
        (b"\x00\x01\x02" * 50, 422, "One thing is wrong with this file Nothing was counted."),
        (b"id,guess_a,guess_b\n1,2,3\n", 422, "wrong with this file Nothing was counted."),
        (b"id,prediction\n" + b"x" * 30_000, 413, "the limit of this board. Nothing was counted."),
    ],
)
def test_unreadable_files_are_refused(empty_server, body, status, message):
    empty_server.create_board(files="{bytes: 20 kB}")
    with empty_server.browser() as browser:
        team = TeamBrowser(empty_server, browser)
        page = team.send(body)
        assert page.status_code == status
        assert message in notice_text(page.text, "alert")
        assert team.used() == 0


def test_an_ended_session_is_explained(live_server, team):
    action = re.search(r'action="(/boards/[^"]+csrf=[^"]+)"', team.look().text).group(1)
    live_server.call("POST", "/boards/first/team/token", team.token)
    response = team.browser.post(action, files={"file": ("p.csv", make_predictions(3))})
    assert response.status_code == 401
    assert "Your session has ended Sign in again below." in notice_text(response.text, "alert")
    assert 'name="token"' in response.text


@pytest.mark.parametrize(
    ("change", "message"),
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
def test_a_board_that_accepts_nothing_explains_why(live_server, team, change, message):
    change(live_server)
    live_server.clock.now += 3600
    page = team.look().text
    assert message in page_text(page)
    assert 'type="file"' not in page
    assert ("available now" in page or "submissions left" in page) == (message != "is closed")


def test_the_history_is_paginated_and_private(live_server, team):
    other = live_server.join("Beta")[1]
    live_server.submit(other, make_predictions(20), query="?message=secret-of-beta")
    for number in range(23):
        live_server.submit(
            team.token, make_predictions(60 - 2 * number), query=f"?message=note-{number}-"
        )
    page = team.look().text
    numbers = [int(number) for number in re.findall(r'<tr><td class="number">(\d+)<', page)]
    assert numbers == list(range(23, 16, -1))
    assert "secret-of-beta" not in page
    for expected in (list(range(16, 9, -1)), list(range(9, 2, -1)), [2, 1]):
        older = re.search(r'href="(/boards/[^"]+before=\d+)#history"', page).group(1)
        page = team.browser.get(older).text
        numbers = [int(number) for number in re.findall(r'<tr><td class="number">(\d+)<', page)]
        assert numbers == expected
    assert "note-1-" in page
    assert "before=" not in page
    assert team.look("?before=0").status_code == 422


def test_selecting_for_the_finals(empty_server):
    live_server = empty_server
    live_server.create_board(finals="{selections: 2}")
    with live_server.browser() as browser:
        team = TeamBrowser(live_server, browser)
        assert "final ranking" not in page_text(team.look().text)
        answers = [
            live_server.submit(team.token, make_predictions(60 - number)).json()
            for number in range(23)
        ]
        ids = [answer["id"] for answer in answers]
        default = "the 2 with the best exact public scores are taken."
        assert default in page_text(team.look().text)
        response = team.post("selections", submission=[ids[0], ids[22]])
        assert response.status_code == 303
        place = f"/boards/{live_server.slug}/submit?done=selected#finals"
        assert response.headers["location"] == place
        assert "Saved." in page_text(team.look("?done=selected").text)
        page = team.look().text
        assert "Saved." not in page_text(page)
        assert "You have selected 2." in page_text(page)
        assert re.findall(r'value="(\w{32})"[^>]* checked', page) == [ids[22], ids[0]]
        assert "Submission 1, on another page of the table" in page_text(page)
        for submission, status, message in (
            (ids[:3], 422, "At most 2 submissions can be selected, not 3."),
            (["0" * 32], 404, "There is no such submission."),
        ):
            refused = team.post("selections", submission=submission)
            assert refused.status_code == status
            assert message in notice_text(refused.text, "alert")
            assert "Nothing was counted" not in refused.text
        assert team.post("selections", submission=["x"] * 300).status_code == 422
        chosen = live_server.call("GET", "/boards/first/selections", team.token).json()
        assert chosen["submissions"] == [ids[0], ids[22]]
        assert team.post("selections").status_code == 303
        assert default in page_text(team.look().text)
        live_server.call("POST", "/boards/first/close", live_server.organiser)
        page = team.look().text
        assert "The selection is final." in page
        assert (
            "2 submissions of yours were scored on private examples; the table marks them. "
            "Submission 23 counted for the final ranking."
        ) in page_text(page)
        assert "After the close" not in page_text(page)
        assert page.count("<td>scored</td>") == 2
        took_part = live_server.call("GET", "/boards/first/selections", team.token).json()
        assert took_part["submissions"] == ids[21:]
        assert 'name="submission"' not in page
        refused = team.post("selections", submission=[ids[0]])
        assert refused.status_code == 409
        assert "Selections cannot change" in notice_text(refused.text, "alert")


def test_the_history_has_scores_of_new_bests_only_and_warns_if_the_best_is_not_selected(
    empty_server,
):
    live_server = empty_server
    live_server.create_board(loss="accuracy", finals="{selections: 2}")
    with live_server.browser() as browser:
        team = TeamBrowser(live_server, browser)
        ids = [
            live_server.submit(team.token, make_predictions(errors)).json()["id"]
            for errors in (60, 90, 30)
        ]
        page = team.look().text
        rows = re.findall(r'<tr><td class="number">(\d)</td><td class="number">(.*?)</td>', page)
        assert rows == [("3", "<strong>0.9</strong>"), ("2", "–"), ("1", "<strong>0.8</strong>")]
        assert "Only a new best has a score." in page_text(page)
        warning = "Submission 3 has your best score, and it is not selected."
        empty = "Only what you select is scored: the other place stays empty."
        for selected, warned, incomplete in (
            ([], False, False),
            ([ids[1]], True, True),
            (ids[:2], True, False),
            ([ids[2]], False, True),
            (ids[1:], False, False),
        ):
            team.post("selections", submission=selected)
            text = page_text(team.look().text)
            assert (warning in text, empty in text) == (warned, incomplete), selected


def test_every_score_is_in_the_history_if_all_are_released(empty_server):
    live_server = empty_server
    live_server.create_board(loss="accuracy", mechanism="exact")
    with live_server.browser() as browser:
        team = TeamBrowser(live_server, browser)
        for errors in (60, 90):
            live_server.submit(team.token, make_predictions(errors))
        page = team.look().text
        rows = re.findall(r'<tr><td class="number">(\d)</td><td class="number">(.*?)</td>', page)
        assert rows == [("2", "0.7"), ("1", "<strong>0.8</strong>")]
        assert "Only a new best" not in page_text(page)


def test_only_teams_can_select_or_rotate_tokens(live_server, browser):
    live_server.sign_in(browser, live_server.organiser)
    csrf = csrf_token(browser.get(f"/boards/{live_server.slug}/submit").text)
    for path in ("selections", "token"):
        response = browser.post(f"/boards/{live_server.slug}/{path}", data={"csrf": csrf})
        assert response.status_code == 403
        assert "own token" in notice_text(response.text, "alert")


def test_a_rotated_token_is_shown_once_and_the_browser_stays_signed_in(live_server, team):
    response = team.post("token")
    assert response.status_code == 200
    assert response.headers["cache-control"] == "private, no-store"
    new_token = re.search(r'data-copy="the token"[^>]*>(lb_team_[\w-]{43})<', response.text).group(
        1
    )
    assert new_token != team.token
    assert live_server.call("GET", "/boards/first/team", team.token).status_code == 401
    assert live_server.call("GET", "/boards/first/team", new_token).json()["name"] == "Alpha"
    page = team.look()
    assert "Alpha" in page.text
    assert new_token not in page.text
    assert new_token not in live_server.log.getvalue()
    # The forms of that response work in the new session.
    csrf = re.search(r'name="csrf" value="([^"]+)"', response.text).group(1)
    assert team.browser.post("/session/end", data={"csrf": csrf}).status_code == 303


def test_a_new_best_has_its_rank_and_the_digits_of_the_others(empty_server):
    live_server = empty_server
    display = "{name: accuracy, digits: 2}"
    live_server.create_board(mechanism="exact", loss="accuracy", display=display)
    live_server.submit(live_server.join("Other")[1], make_predictions(0))
    with live_server.browser() as browser:
        team = TeamBrowser(live_server, browser)
        team.send(make_predictions(36))  # 0.88
        page = team.send(make_predictions(30)).text
        reply = notice_text(page, "status")
        assert reply.startswith("New best: 0.90 Accuracy went from 0.88 to 0.90. ")
        assert "submissions left. Now rank 2. See the leaderboard" in reply
        assert page.count("submissions left") == 1
        live_server.call("POST", "/boards/first/close", live_server.organiser)
        page = page_text(team.look().text)
        assert "Submissions are closed" in page
        assert "Send predictions" not in page
        assert re.search(r"Your final rank: =?1, accuracy [01][.]", page)
