"""Teams, tokens, invitations, selections, and what organisers do."""

import csv
import io
import json

import pytest

from ladderboard.ledger import follow
from ladderboard.server import Rate


def problem(said, status, code):
    told = said.json()
    assert (said.status_code, told["code"]) == (status, code), said.text
    assert said.headers["content-type"] == "application/problem+json"
    return told


def register(hall, name, **more):
    return hall.call("POST", "/boards/first/teams", json={"name": name, **more})


def test_registering_tells_the_token_once(hall):
    said = register(hall, "  Alpha   Team ")
    assert said.status_code == 201
    assert said.json()["name"] == "Alpha Team"
    assert said.json()["token"].startswith("lb_team_")
    assert hall.call("GET", "/boards/first/team", said.json()["token"]).status_code == 200
    problem(register(hall, "ALPHA team"), 409, "taken")
    for name in ("", " ", "a\u202eb", "a\x1b[31mb", "x" * 65, "a\nb"):
        assert register(hall, name).status_code == 422, name
    for body in ({"name": 3}, {}, {"name": "a", "more": 1}, [], "x"):
        said = hall.call("POST", "/boards/first/teams", json=body)
        assert problem(said, 422, "invalid")["errors"]


def test_a_board_has_so_many_places(empty_hall):
    empty_hall.board(teams=2)
    for name in ("One", "Two"):
        assert register(empty_hall, name).status_code == 201
    problem(register(empty_hall, "Three"), 409, "taken")


def test_an_invitation_is_good_once_and_for_a_while(empty_hall):
    hall = empty_hall
    hall.board(registration="invited", teams=9)
    problem(register(hall, "Alpha"), 403, "not_allowed")
    path = "/boards/first/invitations"
    first = hall.call("POST", path, hall.organiser).json()["invitation"]
    late = hall.call("POST", path, hall.organiser, json={"days": 0.5}).json()["invitation"]
    assert register(hall, "Alpha", invitation=first).status_code == 201
    problem(register(hall, "Beta", invitation=first), 403, "not_allowed")
    problem(register(hall, "Beta", invitation="lb_invitation_guess"), 403, "not_allowed")
    hall.clock.now += 43200
    problem(register(hall, "Beta", invitation=late), 403, "not_allowed")
    for days in (0, -1, 367, "7"):
        problem(hall.call("POST", path, hall.organiser, json={"days": days}), 422, "invalid")
    said = hall.call("POST", "/boards/first/teams", hall.organiser, json={"name": "Beta"})
    assert said.status_code == 201


def test_registrations_from_an_address_are_limited(make_hall):
    hall = make_hall(registrations=Rate(2, 60.0))
    hall.board(teams=9)
    for name in ("One", "Two"):
        assert register(hall, name).status_code == 201
    said = register(hall, "Three")
    problem(said, 429, "rate")
    assert 0 < int(said.headers["retry-after"]) <= 60
    own = hall.join("Team")[1]
    problem(hall.call("POST", "/boards/first/teams", own, json={"name": "Three"}), 429, "rate")
    said = hall.call("POST", "/boards/first/teams", hall.organiser, json={"name": "Three"})
    assert said.status_code == 201


def test_failed_tokens_from_an_address_are_limited(make_hall):
    hall = make_hall(failures=Rate(3, 60.0))
    hall.board()
    good, unseen = hall.join("Good")[1], hall.join("Unseen")[1]
    path = "/boards/first/team"
    assert hall.call("GET", path, good).status_code == 200
    for _ in range(3):
        problem(hall.call("GET", path, "wrong"), 401, "no_token")
    said = hall.call("GET", path, "wrong")
    problem(said, 429, "rate")
    assert 0 < int(said.headers["retry-after"]) <= 60
    # Nobody is kept out by a neighbour's mistakes.
    assert hall.call("GET", path, unseen).status_code == 200
    assert hall.call("GET", path, good).status_code == 200
    assert hall.call("GET", "/boards").status_code == 200


def test_organisers_of_one_board_run_that_one(hall):
    own = hall.trusted("organiser")
    other = f"other-{hall.slug}"
    hall.board(other)
    for path, status in (("/boards/first/pause", 200), (f"/boards/{other}/pause", 401)):
        assert hall.call("POST", path, own).status_code == status
    assert hall.call("GET", "/metrics", own).status_code == 401
    assert hall.call("GET", "/metrics", hall.organiser).status_code == 200
    problem(hall.call("POST", "/boards/first/tokens", own, json={"role": "team"}), 422, "invalid")


def test_pausing_amending_and_the_end(hall, predict):
    team, token = hall.join("Alpha")
    ids = [hall.submit(token, predict(wrong, wrong)).json()["id"] for wrong in (30, 20, 10)]
    run = hall.organiser
    assert hall.call("POST", "/boards/first/pause", run).json()["status"] == "paused"
    problem(hall.submit(token, predict(1)), 409, "not_open")
    resumed = hall.call("POST", "/boards/first/resume", run, json={"charge": 3}).json()
    assert resumed["status"] == "open"
    assert hall.call("GET", "/boards/first").json()["used"] == 6
    problem(hall.call("POST", "/boards/first/resume", run, json={"charge": -1}), 422, "invalid")
    amended = hall.call(
        "PATCH", "/boards/first/rules", run, json={"title": "New", "questions": 200}
    )
    assert (amended.json()["title"], amended.json()["questions"]) == ("New", 200)
    told = problem(
        hall.call("PATCH", "/boards/first/rules", run, json={"loss": "brier", "no": 1}),
        422,
        "invalid_rules",
    )
    assert len(told["errors"]) == 2
    problem(hall.call("GET", "/boards/first/finals"), 404, "not_found")
    path = "/boards/first/selections"
    assert hall.call("GET", path, token).json() == {"submissions": []}
    said = hall.call("PUT", path, token, json={"submissions": [ids[1]]})
    assert said.json() == {"submissions": [ids[1]]}
    problem(hall.call("PUT", path, token, json={"submissions": ["0" * 32]}), 404, "not_found")
    problem(hall.call("PUT", path, token, json={"submissions": ids}), 422, "invalid_setting")
    final = hall.call("POST", "/boards/first/close", run).json()
    assert final["rows"][0]["team"] == {"id": team, "name": "Alpha"}
    assert final["rows"][0]["score"] == 0.2  # of what was selected
    assert hall.call("GET", "/boards/first/finals").json() == final
    problem(hall.call("POST", "/boards/first/close", run), 409, "not_open")
    problem(hall.call("PUT", path, token, json={"submissions": []}), 409, "not_open")


def test_the_standings_come_in_pages_and_as_csv(empty_hall, predict):
    hall = empty_hall
    hall.board(teams=9)
    for at, name in enumerate(["=cmd|'/C calc'!A0", "+1", "@a", 'Ünï, "quoted"', "plain"]):
        hall.submit(hall.join(name)[1], predict(50 + 10 * at))
    path = "/boards/first/leaderboard"
    whole = hall.call("GET", path).json()["rows"]
    pages, cursor = [], ""
    while cursor is not None:
        said = hall.call("GET", f"{path}?limit=2{cursor}")
        pages += said.json()["rows"]
        next_ = said.json()["next"]
        cursor = None if next_ is None else f"&cursor={next_}"
        assert ("link" in said.headers) == (next_ is not None)
    assert pages == whole
    assert [each["rank"] for each in whole] == [1, 2, 3, 4, 5]
    by_query = hall.call("GET", f"{path}?format=csv")
    by_accept = hall.call("GET", path, headers={"Accept": "text/csv"})
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
        problem(hall.call("GET", path + query), 422, "invalid")
    problem(hall.call("GET", f"{path}?cursor=nonsense"), 422, "invalid_setting")
    link = hall.call("GET", f"{path}?limit=2&format=csv").headers["link"]
    assert hall.call("GET", link.split(">")[0][1:]).text.startswith("rank,team,name")


def test_the_ledger_is_the_very_bytes(hall, predict):
    token = hall.join("Alpha")[1]
    for wrong in (30, 20, 10):
        hall.submit(token, predict(wrong))
    path = "/boards/first/ledger"
    whole = hall.call("GET", path)
    assert whole.headers["content-type"] == "application/x-ndjson"
    lines = whole.content.split(b"\n")
    assert lines.pop() == b""
    board = hall.boards.open(hall.slug)
    entries = [entry for entry, _ in follow(iter(lines), board.book.name)]
    assert whole.headers["ledger-entries"] == str(len(lines)) == "6"
    assert whole.headers["ledger-head"] == entries[-1].hash.hex()
    part = hall.call("GET", f"{path}?first=1&limit=2").content
    assert part == b"\n".join(lines[1:3]) + b"\n"
    assert hall.call("GET", f"{path}?first=6").content == b""
    assert hall.call("GET", f"{path}?first=100").content == b""
    summary = hall.call("GET", "/boards/first").json()
    assert summary["head"] == {"entries": 6, "hash": whole.headers["ledger-head"]}
    assert b"Alpha" not in whole.content


def test_what_everybody_gets_has_a_tag_of_its_bytes(hall, predict):
    token = hall.join("Alpha")[1]
    for path in ("", "/leaderboard", "/records", "/ledger"):
        said = hall.call("GET", f"/boards/first{path}")
        assert said.headers["cache-control"] == "public, no-cache"
        tag = said.headers["etag"]
        for held in (tag, f'"x", W/{tag}', "*"):
            again = hall.call("GET", f"/boards/first{path}", headers={"If-None-Match": held})
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["etag"] == tag
        own = hall.call("GET", f"/boards/first{path}", token, headers={"If-None-Match": tag})
        assert own.status_code == 200
        assert "etag" not in own.headers
        assert own.headers["cache-control"] == "private, no-store"
    before = hall.call("GET", "/boards/first/leaderboard").headers["etag"]
    hall.submit(token, predict(30))
    held = {"If-None-Match": before}
    assert hall.call("GET", "/boards/first/leaderboard", headers=held).status_code == 200


def test_one_sees_ones_own_board_in_the_list(hall, predict):
    token = hall.join("Alpha")[1]
    hall.submit(token, predict(30))
    hall.amend(visibility="hidden")
    own = {
        each["slug"]: each for each in hall.call("GET", "/boards", hall.organiser).json()["boards"]
    }
    public = {each["slug"]: each for each in hall.call("GET", "/boards").json()["boards"]}
    assert own[hall.slug]["used"] == 1
    assert public[hall.slug]["used"] is None
    assert hall.call("GET", "/boards", "wrong").status_code == 401


@pytest.mark.parametrize("name", ["x\u2028x", "x\u200bx", "\x9bm", "x\ufeffx"])
def test_names_that_a_terminal_would_obey_are_refused(hall, name):
    said = register(hall, name)
    assert said.status_code == 422
    assert said.content.isascii()
    assert json.loads(said.content)
