"""Unlisted boards are missing from lists only; a members' board looks like one that is missing."""

import time

import pytest
from scipy import stats

from ladderboard.board import _boards
from ladderboard.board._repository import is_open_to_public
from ladderboard.errors import InvalidRules, InvalidSetting
from ladderboard.server import Rate, write_site
from support.server.live_server import make_predictions

SECRET, MISSING = "secret-board", "absent-board"  # names of the same length
PARAMETERS = {
    "team": "0" * 16, "submission": "0" * 32, "token": "0" * 16, "name": "train.csv",
    "number": "1", "provider": "university", "section": "access",
}  # fmt: skip
BODIES = {
    "teams": {"name": "New"}, "tokens": {"role": "evaluator"}, "rules": {"title": "Another"},
    "people": {"people": ["ada@example.edu"]}, "selections": {"submissions": []},
    "{number}": {"approve": True}, "merge": {"into": "0" * 16},
    "membership": {"invitation": "lb_member_x"}, "terms": {"version": "0" * 64},
    "webhooks": {"url": "https://example.invalid/hook"},
}  # fmt: skip
CHANGING = {"x-request-id"}


@pytest.fixture
def server(make_server):
    """A server with a members' board, an unlisted one and a public one."""
    unlimited = Rate(10**6, 1.0)
    live_server = make_server(failures=unlimited, registrations=unlimited)
    rules = {"registration": "organiser", "listing": "members", "description": "long " * 4_000}
    live_server.create_board(SECRET, **rules)
    live_server.create_board("unlisted", listing="unlisted")
    live_server.create_board("first")
    return live_server


def slugs(server, token=None):
    return [board["slug"] for board in server.call("GET", "/boards", token).json()["boards"]]


def test_lists_show_listed_boards_to_all_but_the_server_s_organiser(server):
    assert slugs(server) == slugs(server, server.join("Team", SECRET)[1]) == ["first"]
    assert slugs(server, server.issue_token("organiser", "first")) == ["first"]
    assert slugs(server, server.organiser) == [SECRET, "unlisted", "first"]
    page = server.client.get("/").text
    assert "/boards/first" in page
    assert "unlisted" not in page
    assert SECRET not in page
    headers = {"Authorization": f"Bearer {server.organiser}"}
    assert SECRET in server.client.get("/", headers=headers).text


def test_a_cursor_tells_nothing_about_boards_that_are_not_listed(server):
    answers = {
        slug: server.call("GET", f"/boards?cursor={slug}") for slug in (SECRET, MISSING, "unlisted")
    }
    assert {answer.status_code for answer in answers.values()} == {422}
    assert len({answer.content for answer in answers.values()}) == 1


def test_an_unlisted_board_opens_by_its_link(server):
    assert server.client.get("/boards/unlisted").status_code == 200
    assert server.call("GET", "/boards/unlisted").json()["listing"] == "unlisted"
    token = server.join("Team", "unlisted")[1]
    assert server.submit(token, make_predictions(30), slug="unlisted").status_code == 201


def test_members_use_their_board(server):
    team = server.join("Team", SECRET)[1]
    assert server.submit(team, make_predictions(30), slug=SECRET).status_code == 201
    for token in (team, server.organiser, server.issue_token("evaluator", SECRET)):
        assert server.call("GET", f"/boards/{SECRET}").status_code == 404
        assert server.call("GET", f"/boards/{SECRET}", token).status_code == 200
    with server.browser() as browser:
        assert browser.get(f"/boards/{SECRET}").status_code == 404
        server.sign_in(browser, team)
        assert browser.get(f"/boards/{SECRET}").status_code == 200
        assert browser.get(f"/boards/{SECRET}/submit").status_code == 200


def requests(app):
    """Return method and path of every route below a board."""
    return sorted(
        (method, route.path)
        for route in app.routes
        if "{board}" in route.path
        for method in route.methods or ()
    )


def send(server, browser, method, path, slug, token):
    options = {"headers": {} if token is None else {"Authorization": f"Bearer {token}"}}
    if path.endswith("/submissions") and method == "POST":
        options |= {"content": make_predictions(30)}
        options["headers"]["Content-Type"] = "text/csv"
    elif not path.startswith("/api"):
        options |= {"data": {"csrf": "guess"}} if method == "POST" else {}
    elif path.endswith("/team/members/{number}") and method == "PUT":
        options["json"] = {"role": "owner"}
    elif path.rpartition("/")[2] in BODIES and method in {"POST", "PUT", "PATCH"}:
        options["json"] = BODIES[path.rpartition("/")[2]]
    return browser.request(method, path.format(board=slug, **PARAMETERS), **options)


@pytest.mark.parametrize("caller", ["public", "wrong", "foreign", "session"])
def test_a_members_board_cannot_be_told_from_a_missing_one(server, caller):
    foreign = server.join("Stranger", "first")[1]
    tokens = {"public": None, "wrong": "lb_team_wrong", "foreign": foreign, "session": None}
    statuses = set()
    with server.browser() as browser:
        if caller == "session":
            server.sign_in(browser, foreign)
        for method, path in requests(server.app):
            answers = []
            for slug in (SECRET, MISSING):
                response = send(server, browser, method, path, slug, tokens[caller])
                headers = {
                    name: value for name, value in response.headers.items() if name not in CHANGING
                }
                content = response.text.replace(slug, "SLUG")
                answers.append((response.status_code, content, headers))
            assert answers[0] == answers[1], (method, path)
            statuses.add(answers[0][0])
    assert 404 in statuses
    assert statuses <= {404, 403, 422}  # 403: a form without its CSRF token


def test_the_rules_are_searched_once_per_change(server, monkeypatch):
    """The time of a search grows with the rules, so it would tell the boards apart."""
    searched = []

    def is_open(query, slug):
        searched.append(slug)
        return is_open_to_public(query, slug)

    monkeypatch.setattr(_boards, "is_open_to_public", is_open)
    for slug in (SECRET, MISSING, "first", SECRET, MISSING, "first"):
        expected = 200 if slug == "first" else 404
        assert server.client.get(f"/boards/{slug}").status_code == expected
    assert searched == [SECRET, "first"]
    server.amend(SECRET, listing="listed")
    assert server.client.get(f"/boards/{SECRET}").status_code == 200
    server.amend(SECRET, listing="members")
    assert server.client.get(f"/boards/{SECRET}").status_code == 404


def test_the_rules_of_a_members_board():
    from ladderboard.board import read_rules

    rules = "slug: a\nloss: accuracy\nquestions: 100\nlisting: {}\nregistration: {}\n"
    with pytest.raises(InvalidRules, match="goes with registration: organiser"):
        read_rules(rules.format("members", "invited"))
    with pytest.raises(InvalidRules, match="'listed', 'unlisted' or 'members'"):
        read_rules(rules.format("hidden", "invited"))
    members = read_rules(rules.format("members", "organiser"))
    assert members.describe()["listing"] == "members"
    assert "listing" not in members.amended({"listing": "listed"}).describe()


def test_a_title_that_looks_like_a_rule_changes_nothing(server):
    server.create_board("quoted", title='\'x","listing":"members\'')
    assert server.client.get("/boards/quoted").status_code == 200
    assert "quoted" in slugs(server)


def test_a_members_board_becomes_no_public_folder(server, tmp_path):
    assert server.call("POST", f"/boards/{SECRET}/close", server.organiser).status_code == 200
    with pytest.raises(InvalidSetting, match="for its members only"):
        write_site(server.boards.open(SECRET), tmp_path / "site")


TIMED = {
    "api": ("/api/v1/boards/{}", {}),
    "page": ("/boards/{}", {}),
    "terms": ("/api/v1/boards/{}/terms", {}),
    "wrong token": ("/api/v1/boards/{}/team", {"Authorization": "Bearer lb_team_wrong"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TIMED)
def test_response_times_do_not_tell_them_apart(server, name):
    """A Mann-Whitney test on 600 pairs of requests; all four fail by chance once in 250 runs."""
    (path, headers), times = TIMED[name], {SECRET: [], MISSING: []}
    server.join("Team", SECRET)
    for at in range(650):
        for slug in (SECRET, MISSING) if at % 2 else (MISSING, SECRET):
            start = time.perf_counter()
            assert server.client.get(path.format(slug), headers=headers).status_code == 404
            if at >= 50:
                times[slug].append(time.perf_counter() - start)
    assert stats.mannwhitneyu(times[SECRET], times[MISSING]).pvalue > 0.001
