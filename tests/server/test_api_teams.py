"""Teams, tokens, invitations, selections, and what organisers do."""

import csv
import io
import json

import pytest

from ladderboard.ledger import iter_checked_entries
from ladderboard.server import Rate
from support.server.live_server import make_predictions


def problem(said, status, code):
    told = said.json()
    assert (said.status_code, told["code"]) == (status, code), said.text
    assert said.headers["content-type"] == "application/problem+json"
    return told


def register(live_server, name, **more):
    return live_server.call("POST", "/boards/first/teams", json={"name": name, **more})


def test_registering_tells_the_token_once(live_server):
    said = register(live_server, "  Alpha   Team ")
    assert said.status_code == 201
    assert said.json()["name"] == "Alpha Team"
    assert said.json()["token"].startswith("lb_team_")
    assert live_server.call("GET", "/boards/first/team", said.json()["token"]).status_code == 200
    problem(register(live_server, "ALPHA team"), 409, "taken")
    for name in ("", " ", "a\u202eb", "a\x1b[31mb", "x" * 65, "a\nb"):
        assert register(live_server, name).status_code == 422, name
    for body in ({"name": 3}, {}, {"name": "a", "more": 1}, [], "x"):
        said = live_server.call("POST", "/boards/first/teams", json=body)
        assert problem(said, 422, "invalid")["errors"]


def test_a_board_has_so_many_places(empty_server):
    empty_server.create_board(teams=2)
    for name in ("One", "Two"):
        assert register(empty_server, name).status_code == 201
    problem(register(empty_server, "Three"), 409, "taken")


def test_an_invitation_is_good_once_and_for_a_while(empty_server):
    live_server = empty_server
    live_server.create_board(registration="invited", teams=9)
    problem(register(live_server, "Alpha"), 403, "not_allowed")
    path = "/boards/first/invitations"
    first = live_server.call("POST", path, live_server.organiser).json()["invitation"]
    late = live_server.call("POST", path, live_server.organiser, json={"days": 0.5}).json()[
        "invitation"
    ]
    assert register(live_server, "Alpha", invitation=first).status_code == 201
    problem(register(live_server, "Beta", invitation=first), 403, "not_allowed")
    problem(register(live_server, "Beta", invitation="lb_invitation_guess"), 403, "not_allowed")
    live_server.clock.now += 43200
    problem(register(live_server, "Beta", invitation=late), 403, "not_allowed")
    for days in (0, -1, 367, "7"):
        problem(
            live_server.call("POST", path, live_server.organiser, json={"days": days}),
            422,
            "invalid",
        )
    said = live_server.call(
        "POST", "/boards/first/teams", live_server.organiser, json={"name": "Beta"}
    )
    assert said.status_code == 201


def test_registrations_from_an_address_are_limited(make_server):
    live_server = make_server(registrations=Rate(2, 60.0))
    live_server.create_board(teams=9)
    for name in ("One", "Two"):
        assert register(live_server, name).status_code == 201
    said = register(live_server, "Three")
    problem(said, 429, "rate")
    assert 0 < int(said.headers["retry-after"]) <= 60
    own = live_server.join("Team")[1]
    problem(
        live_server.call("POST", "/boards/first/teams", own, json={"name": "Three"}), 429, "rate"
    )
    said = live_server.call(
        "POST", "/boards/first/teams", live_server.organiser, json={"name": "Three"}
    )
    assert said.status_code == 201


def test_failed_tokens_from_an_address_are_limited(make_server):
    live_server = make_server(failures=Rate(3, 60.0))
    live_server.create_board()
    good, unseen = live_server.join("Good")[1], live_server.join("Unseen")[1]
    path = "/boards/first/team"
    assert live_server.call("GET", path, good).status_code == 200
    for _ in range(3):
        problem(live_server.call("GET", path, "wrong"), 401, "no_token")
    said = live_server.call("GET", path, "wrong")
    problem(said, 429, "rate")
    assert 0 < int(said.headers["retry-after"]) <= 60
    # Nobody is kept out by a neighbour's mistakes.
    assert live_server.call("GET", path, unseen).status_code == 200
    assert live_server.call("GET", path, good).status_code == 200
    assert live_server.call("GET", "/boards").status_code == 200


def test_organisers_of_one_board_run_that_one(live_server):
    own = live_server.issue_token("organiser")
    other = f"other-{live_server.slug}"
    live_server.create_board(other)
    for path, status in (("/boards/first/pause", 200), (f"/boards/{other}/pause", 401)):
        assert live_server.call("POST", path, own).status_code == status
    assert live_server.call("GET", "/metrics", own).status_code == 401
    assert live_server.call("GET", "/metrics", live_server.organiser).status_code == 200
    problem(
        live_server.call("POST", "/boards/first/tokens", own, json={"role": "team"}), 422, "invalid"
    )


def test_pausing_amending_and_the_end(live_server):
    team, token = live_server.join("Alpha")
    ids = [
        live_server.submit(token, make_predictions(wrong, wrong)).json()["id"]
        for wrong in (30, 20, 10)
    ]
    run = live_server.organiser
    assert live_server.call("POST", "/boards/first/pause", run).json()["status"] == "paused"
    problem(live_server.submit(token, make_predictions(1)), 409, "not_open")
    resumed = live_server.call("POST", "/boards/first/resume", run, json={"charge": 3}).json()
    assert resumed["status"] == "open"
    assert live_server.call("GET", "/boards/first").json()["used"] == 6
    problem(
        live_server.call("POST", "/boards/first/resume", run, json={"charge": -1}), 422, "invalid"
    )
    amended = live_server.call(
        "PATCH", "/boards/first/rules", run, json={"title": "New", "questions": 200}
    )
    assert (amended.json()["title"], amended.json()["questions"]) == ("New", 200)
    told = problem(
        live_server.call("PATCH", "/boards/first/rules", run, json={"loss": "brier", "no": 1}),
        422,
        "invalid_rules",
    )
    assert len(told["errors"]) == 2
    problem(live_server.call("GET", "/boards/first/finals"), 404, "not_found")
    path = "/boards/first/selections"
    assert live_server.call("GET", path, token).json() == {"submissions": []}
    said = live_server.call("PUT", path, token, json={"submissions": [ids[1]]})
    assert said.json() == {"submissions": [ids[1]]}
    problem(
        live_server.call("PUT", path, token, json={"submissions": ["0" * 32]}), 404, "not_found"
    )
    problem(live_server.call("PUT", path, token, json={"submissions": ids}), 422, "invalid_setting")
    final = live_server.call("POST", "/boards/first/close", run).json()
    assert final["rows"][0]["team"] == {"id": team, "name": "Alpha"}
    assert final["rows"][0]["score"] == 0.2  # of what was selected
    assert live_server.call("GET", "/boards/first/finals").json() == final
    problem(live_server.call("POST", "/boards/first/close", run), 409, "not_open")
    problem(live_server.call("PUT", path, token, json={"submissions": []}), 409, "not_open")


def test_the_standings_come_in_pages_and_as_csv(empty_server):
    live_server = empty_server
    live_server.create_board(teams=9)
    for at, name in enumerate(["=cmd|'/C calc'!A0", "+1", "@a", 'Ünï, "quoted"', "plain"]):
        live_server.submit(live_server.join(name)[1], make_predictions(50 + 10 * at))
    path = "/boards/first/leaderboard"
    whole = live_server.call("GET", path).json()["rows"]
    pages, cursor = [], ""
    while cursor is not None:
        said = live_server.call("GET", f"{path}?limit=2{cursor}")
        pages += said.json()["rows"]
        next_ = said.json()["next"]
        cursor = None if next_ is None else f"&cursor={next_}"
        assert ("link" in said.headers) == (next_ is not None)
    assert pages == whole
    assert [each["rank"] for each in whole] == [1, 2, 3, 4, 5]
    by_query = live_server.call("GET", f"{path}?format=csv")
    by_accept = live_server.call("GET", path, headers={"Accept": "text/csv"})
    assert by_query.content == by_accept.content
    assert by_query.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(by_query.text)))
    names = [row["name"] for row in rows]
    assert names == ["'=cmd|'/C calc'!A0", "'+1", "'@a", 'Ünï, "quoted"', "plain"]
    assert [float(row["released"]) for row in rows] == [each["released"] for each in whole]
    for query in (
        "?limit=0",
        "?limit=1001",
        "?limit=x",
        "?format=xml",
        "?limt=3",
        "?limit=1&limit=2",
    ):
        problem(live_server.call("GET", path + query), 422, "invalid")
    problem(live_server.call("GET", f"{path}?cursor=nonsense"), 422, "invalid_setting")
    link = live_server.call("GET", f"{path}?limit=2&format=csv").headers["link"]
    assert live_server.call("GET", link.split(">")[0][1:]).text.startswith("rank,team,name")


def test_the_ledger_is_the_very_bytes(live_server):
    token = live_server.join("Alpha")[1]
    for wrong in (30, 20, 10):
        live_server.submit(token, make_predictions(wrong))
    path = "/boards/first/ledger"
    whole = live_server.call("GET", path)
    assert whole.headers["content-type"] == "application/x-ndjson"
    lines = whole.content.split(b"\n")
    assert lines.pop() == b""
    board = live_server.boards.open(live_server.slug)
    entries = [entry for entry, _ in iter_checked_entries(iter(lines), board.book.name)]
    assert whole.headers["ledger-entries"] == str(len(lines)) == "6"
    assert whole.headers["ledger-head"] == entries[-1].hash.hex()
    part = live_server.call("GET", f"{path}?first=1&limit=2").content
    assert part == b"\n".join(lines[1:3]) + b"\n"
    assert live_server.call("GET", f"{path}?first=6").content == b""
    assert live_server.call("GET", f"{path}?first=100").content == b""
    summary = live_server.call("GET", "/boards/first").json()
    assert summary["head"] == {"entries": 6, "hash": whole.headers["ledger-head"]}
    assert b"Alpha" not in whole.content


def test_what_everybody_gets_has_a_tag_of_its_bytes(live_server):
    token = live_server.join("Alpha")[1]
    for path in ("", "/leaderboard", "/records", "/ledger"):
        said = live_server.call("GET", f"/boards/first{path}")
        assert said.headers["cache-control"] == "public, no-cache"
        tag = said.headers["etag"]
        for held in (tag, f'"x", W/{tag}', "*"):
            again = live_server.call("GET", f"/boards/first{path}", headers={"If-None-Match": held})
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["etag"] == tag
        own = live_server.call("GET", f"/boards/first{path}", token, headers={"If-None-Match": tag})
        assert own.status_code == 200
        assert "etag" not in own.headers
        assert own.headers["cache-control"] == "private, no-store"
    before = live_server.call("GET", "/boards/first/leaderboard").headers["etag"]
    live_server.submit(token, make_predictions(30))
    held = {"If-None-Match": before}
    assert live_server.call("GET", "/boards/first/leaderboard", headers=held).status_code == 200


def test_one_sees_ones_own_board_in_the_list(live_server):
    token = live_server.join("Alpha")[1]
    live_server.submit(token, make_predictions(30))
    live_server.amend(visibility="hidden")
    own = {
        each["slug"]: each
        for each in live_server.call("GET", "/boards", live_server.organiser).json()["boards"]
    }
    public = {each["slug"]: each for each in live_server.call("GET", "/boards").json()["boards"]}
    assert own[live_server.slug]["used"] == 1
    assert public[live_server.slug]["used"] is None
    assert live_server.call("GET", "/boards", "wrong").status_code == 401


@pytest.mark.parametrize("name", ["x\u2028x", "x\u200bx", "\x9bm", "x\ufeffx"])
def test_names_that_a_terminal_would_obey_are_refused(live_server, name):
    said = register(live_server, name)
    assert said.status_code == 422
    assert said.content.isascii()
    assert json.loads(said.content)
