"""Teams, tokens, invitations, selections, and what organisers do."""

import csv
import io
import json

import pytest

from ladderboard.ledger import iter_checked_entries
from ladderboard.server import Rate
from support.server.live_server import assert_problem, make_predictions


def register(live_server, name, **fields):
    return live_server.call("POST", "/boards/first/teams", json={"name": name, **fields})


def test_registering_returns_a_token_and_checks_names(live_server):
    response = register(live_server, "  Alpha   Team ")
    assert response.status_code == 201
    assert response.json()["name"] == "Alpha Team"
    assert response.json()["token"].startswith("lb_team_")
    assert (
        live_server.call("GET", "/boards/first/team", response.json()["token"]).status_code == 200
    )
    assert_problem(register(live_server, "ALPHA team"), 409, "taken")
    for name in ("", " ", "a\u202eb", "a\x1b[31mb", "x" * 65, "a\nb"):
        assert register(live_server, name).status_code == 422, name
    for body in ({"name": 3}, {}, {"name": "a", "more": 1}, [], "x"):
        response = live_server.call("POST", "/boards/first/teams", json=body)
        assert assert_problem(response, 422, "invalid")["errors"]


def test_a_full_board_takes_no_more_teams(empty_server):
    empty_server.create_board(teams=2)
    for name in ("One", "Two"):
        assert register(empty_server, name).status_code == 201
    assert_problem(register(empty_server, "Three"), 409, "taken")


def test_an_invitation_is_valid_once_and_until_it_expires(empty_server):
    live_server = empty_server
    live_server.create_board(registration="invited", teams=9)
    assert_problem(register(live_server, "Alpha"), 403, "not_allowed")
    path = "/boards/first/invitations"
    invitation = live_server.call("POST", path, live_server.organiser).json()["invitation"]
    late = live_server.call("POST", path, live_server.organiser, json={"days": 0.5}).json()[
        "invitation"
    ]
    assert register(live_server, "Alpha", invitation=invitation).status_code == 201
    assert_problem(register(live_server, "Beta", invitation=invitation), 403, "not_allowed")
    assert_problem(
        register(live_server, "Beta", invitation="lb_invitation_guess"), 403, "not_allowed"
    )
    live_server.clock.now += 43200
    assert_problem(register(live_server, "Beta", invitation=late), 403, "not_allowed")
    for days in (0, -1, 367, "7"):
        assert_problem(
            live_server.call("POST", path, live_server.organiser, json={"days": days}),
            422,
            "invalid",
        )
    response = live_server.call(
        "POST", "/boards/first/teams", live_server.organiser, json={"name": "Beta"}
    )
    assert response.status_code == 201


def test_registrations_from_an_address_are_limited(make_server):
    live_server = make_server(registrations=Rate(2, 60.0))
    live_server.create_board(teams=9)
    for name in ("One", "Two"):
        assert register(live_server, name).status_code == 201
    response = register(live_server, "Three")
    assert_problem(response, 429, "rate")
    assert 0 < int(response.headers["retry-after"]) <= 60
    token = live_server.join("Team")[1]
    assert_problem(
        live_server.call("POST", "/boards/first/teams", token, json={"name": "Three"}), 429, "rate"
    )
    response = live_server.call(
        "POST", "/boards/first/teams", live_server.organiser, json={"name": "Three"}
    )
    assert response.status_code == 201


def test_failed_tokens_from_an_address_are_limited(make_server):
    live_server = make_server(failures=Rate(3, 60.0))
    live_server.create_board()
    good, unseen = live_server.join("Good")[1], live_server.join("Unseen")[1]
    path = "/boards/first/team"
    assert live_server.call("GET", path, good).status_code == 200
    for _ in range(3):
        assert_problem(live_server.call("GET", path, "wrong"), 401, "no_token")
    response = live_server.call("GET", path, "wrong")
    assert_problem(response, 429, "rate")
    assert 0 < int(response.headers["retry-after"]) <= 60
    # Other clients at the address are not shut out.
    assert live_server.call("GET", path, unseen).status_code == 200
    assert live_server.call("GET", path, good).status_code == 200
    assert live_server.call("GET", "/boards").status_code == 200


def test_a_boards_organiser_cannot_touch_other_boards(live_server):
    organiser_token = live_server.issue_token("organiser")
    other_slug = f"other-{live_server.slug}"
    live_server.create_board(other_slug)
    for path, status in (("/boards/first/pause", 200), (f"/boards/{other_slug}/pause", 401)):
        assert live_server.call("POST", path, organiser_token).status_code == status
    assert live_server.call("GET", "/metrics", organiser_token).status_code == 401
    assert live_server.call("GET", "/metrics", live_server.organiser).status_code == 200
    assert_problem(
        live_server.call("POST", "/boards/first/tokens", organiser_token, json={"role": "team"}),
        422,
        "invalid",
    )


def test_pausing_amending_selecting_and_closing(live_server):
    team, token = live_server.join("Alpha")
    ids = [
        live_server.submit(token, make_predictions(wrong, wrong)).json()["id"]
        for wrong in (30, 20, 10)
    ]
    organiser = live_server.organiser
    assert live_server.call("POST", "/boards/first/pause", organiser).json()["status"] == "paused"
    assert_problem(live_server.submit(token, make_predictions(1)), 409, "not_open")
    resumed = live_server.call("POST", "/boards/first/resume", organiser, json={"charge": 3}).json()
    assert resumed["status"] == "open"
    assert live_server.call("GET", "/boards/first").json()["used"] == 6
    assert_problem(
        live_server.call("POST", "/boards/first/resume", organiser, json={"charge": -1}),
        422,
        "invalid",
    )
    amended = live_server.call(
        "PATCH", "/boards/first/rules", organiser, json={"title": "New", "questions": 200}
    )
    assert (amended.json()["title"], amended.json()["questions"]) == ("New", 200)
    body = assert_problem(
        live_server.call(
            "PATCH", "/boards/first/rules", organiser, json={"loss": "brier", "no": 1}
        ),
        422,
        "invalid_rules",
    )
    assert len(body["errors"]) == 2
    assert_problem(live_server.call("GET", "/boards/first/finals"), 404, "not_found")
    path = "/boards/first/selections"
    assert live_server.call("GET", path, token).json() == {"submissions": []}
    response = live_server.call("PUT", path, token, json={"submissions": [ids[1]]})
    assert response.json() == {"submissions": [ids[1]]}
    assert_problem(
        live_server.call("PUT", path, token, json={"submissions": ["0" * 32]}), 404, "not_found"
    )
    assert_problem(
        live_server.call("PUT", path, token, json={"submissions": ids}), 422, "invalid_setting"
    )
    final = live_server.call("POST", "/boards/first/close", organiser).json()
    assert final["rows"][0]["team"] == {"id": team, "name": "Alpha"}
    assert final["rows"][0]["score"] == 0.2  # of the selected submission
    assert live_server.call("GET", "/boards/first/finals").json() == final
    assert_problem(live_server.call("POST", "/boards/first/close", organiser), 409, "not_open")
    assert_problem(live_server.call("PUT", path, token, json={"submissions": []}), 409, "not_open")


def test_the_leaderboard_comes_in_pages_and_as_csv(empty_server):
    live_server = empty_server
    live_server.create_board(teams=9)
    for index, name in enumerate(["=cmd|'/C calc'!A0", "+1", "@a", 'Ünï, "quoted"', "plain"]):
        live_server.submit(live_server.join(name)[1], make_predictions(50 + 10 * index))
    path = "/boards/first/leaderboard"
    all_rows = live_server.call("GET", path).json()["rows"]
    pages, cursor = [], ""
    while cursor is not None:
        response = live_server.call("GET", f"{path}?limit=2{cursor}")
        pages += response.json()["rows"]
        next_ = response.json()["next"]
        cursor = None if next_ is None else f"&cursor={next_}"
        assert ("link" in response.headers) == (next_ is not None)
    assert pages == all_rows
    assert [row["rank"] for row in all_rows] == [1, 2, 3, 4, 5]
    by_query = live_server.call("GET", f"{path}?format=csv")
    by_accept = live_server.call("GET", path, headers={"Accept": "text/csv"})
    assert by_query.content == by_accept.content
    assert by_query.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(by_query.text)))
    names = [row["name"] for row in rows]
    assert names == ["'=cmd|'/C calc'!A0", "'+1", "'@a", 'Ünï, "quoted"', "plain"]
    assert [float(row["released"]) for row in rows] == [row["released"] for row in all_rows]
    for query in (
        "?limit=0",
        "?limit=1001",
        "?limit=x",
        "?format=xml",
        "?limt=3",
        "?limit=1&limit=2",
    ):
        assert_problem(live_server.call("GET", path + query), 422, "invalid")
    assert_problem(live_server.call("GET", f"{path}?cursor=nonsense"), 422, "invalid_setting")
    link = live_server.call("GET", f"{path}?limit=2&format=csv").headers["link"]
    assert live_server.call("GET", link.split(">")[0][1:]).text.startswith("rank,team,name")


def test_the_ledger_is_served_byte_for_byte(live_server):
    token = live_server.join("Alpha")[1]
    for wrong in (30, 20, 10):
        live_server.submit(token, make_predictions(wrong))
    path = "/boards/first/ledger"
    response = live_server.call("GET", path)
    assert response.headers["content-type"] == "application/x-ndjson"
    lines = response.content.split(b"\n")
    assert lines.pop() == b""
    board = live_server.boards.open(live_server.slug)
    entries = [entry for entry, _ in iter_checked_entries(iter(lines), board.book.name)]
    assert response.headers["ledger-entries"] == str(len(lines)) == "6"
    assert response.headers["ledger-head"] == entries[-1].hash.hex()
    part = live_server.call("GET", f"{path}?first=1&limit=2").content
    assert part == b"\n".join(lines[1:3]) + b"\n"
    assert live_server.call("GET", f"{path}?first=6").content == b""
    assert live_server.call("GET", f"{path}?first=100").content == b""
    summary = live_server.call("GET", "/boards/first").json()
    assert summary["head"] == {"entries": 6, "hash": response.headers["ledger-head"]}
    assert b"Alpha" not in response.content


def test_public_replies_have_an_etag(live_server):
    token = live_server.join("Alpha")[1]
    for path in ("", "/leaderboard", "/records", "/ledger"):
        response = live_server.call("GET", f"/boards/first{path}")
        assert response.headers["cache-control"] == "public, no-cache"
        tag = response.headers["etag"]
        for headers in (tag, f'"x", W/{tag}', "*"):
            cached = live_server.call(
                "GET", f"/boards/first{path}", headers={"If-None-Match": headers}
            )
            assert (cached.status_code, cached.content) == (304, b"")
            assert cached.headers["etag"] == tag
        as_team = live_server.call(
            "GET", f"/boards/first{path}", token, headers={"If-None-Match": tag}
        )
        assert as_team.status_code == 200
        assert "etag" not in as_team.headers
        assert as_team.headers["cache-control"] == "private, no-store"
    old_tag = live_server.call("GET", "/boards/first/leaderboard").headers["etag"]
    live_server.submit(token, make_predictions(30))
    headers = {"If-None-Match": old_tag}
    assert live_server.call("GET", "/boards/first/leaderboard", headers=headers).status_code == 200


def test_the_list_shows_a_hidden_boards_numbers_to_its_organiser(live_server):
    token = live_server.join("Alpha")[1]
    live_server.submit(token, make_predictions(30))
    live_server.amend(visibility="hidden")
    as_organiser = {
        board["slug"]: board
        for board in live_server.call("GET", "/boards", live_server.organiser).json()["boards"]
    }
    as_public = {
        board["slug"]: board for board in live_server.call("GET", "/boards").json()["boards"]
    }
    assert as_organiser[live_server.slug]["used"] == 1
    assert as_public[live_server.slug]["used"] is None
    assert live_server.call("GET", "/boards", "wrong").status_code == 401


@pytest.mark.parametrize("name", ["x\u2028x", "x\u200bx", "\x9bm", "x\ufeffx"])
def test_names_with_control_characters_are_refused(live_server, name):
    response = register(live_server, name)
    assert response.status_code == 422
    assert response.content.isascii()
    assert json.loads(response.content)
