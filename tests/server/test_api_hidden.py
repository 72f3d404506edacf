"""Hidden, anonymous and frozen hold on every path: planted names and numbers are looked for."""

import html
import json
import re

import pytest

from support.server.live_server import make_predictions

NAME = "Zyzzyva-Q7 & Söhne"
MESSAGE = "plan nine from outer space"
WRONG = 131  # of 300: a loss of 0.43666..., shown as 0.4367
NUMBERS = (b"0.43666", b"0.4367", b"0.43667")


def spellings(text):
    """Return how a text may stand in a reply."""
    return {
        text.encode(),
        html.escape(text).encode(),
        json.dumps(text)[1:-1].encode(),
        text.replace("&", "&#38;").encode(),
        text.split()[0].encode(),
    }


def everything(live_server, token, ids):
    """Return the bytes of every GET that the application has, with headers, as somebody."""
    for route in live_server.app.routes:
        if "GET" not in (route.methods or ()):
            continue
        path = route.path.format(board=live_server.slug, name="style.css", **ids)
        queries = [""]
        if route.path.endswith("/leaderboard"):
            queries += ["?format=csv", "?limit=1"]
        for query in queries:
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            live_server.client.cookies.clear()
            said = live_server.client.get(path + query, headers=headers)
            kept = [f"{k}: {v}".encode() for k, v in said.headers.items() if k != "x-request-id"]
            # A refusal leads back to the address that was asked for.
            content = said.content.replace(f"next={path}".encode(), b"")
            yield path + query, b"\n".join([*kept, content])


@pytest.fixture
def busy_board(make_server):
    """A board on which a team is busy, and another one that looks on."""
    live_server = make_server()
    live_server.create_board(teams=9, mechanism="{name: exact}")
    team, token = live_server.join(NAME)
    _, other = live_server.join("Bystander")
    live_server.submit(other, make_predictions(200))
    return live_server, team, token, other


def plant(live_server, token):
    said = live_server.submit(token, make_predictions(WRONG), query=f"?message={MESSAGE}")
    assert said.status_code == 201
    assert any(each in said.content for each in NUMBERS)
    return {"submission": said.json()["id"]}


def look(live_server, ids, tokens):
    for token in tokens:
        yield from everything(live_server, token, ids)


def test_what_is_public_is_found_by_this_test(busy_board):
    live_server, team, token, other = busy_board
    ids = {"team": team, **plant(live_server, token)}
    said = b"".join(each for _, each in look(live_server, ids, [None, other]))
    assert any(each in said for each in spellings(NAME))
    assert any(each in said for each in NUMBERS)
    assert MESSAGE.encode() not in said  # nobody's business but the team's
    assert MESSAGE.encode() in b"".join(each for _, each in look(live_server, ids, [token]))


def test_a_hidden_board_shows_neither_names_nor_numbers(busy_board):
    live_server, team, token, other = busy_board
    live_server.amend(visibility="hidden")
    ids = {"team": team, **plant(live_server, token)}
    for path, said in look(live_server, ids, [None, other]):
        assert not any(each in said for each in (*spellings(NAME), *NUMBERS)), path
        assert not any(each in said for each in (team.encode(), ids["submission"].encode())), path
    own = b"".join(each for _, each in look(live_server, ids, [token]))
    assert any(each in own for each in NUMBERS)
    everything_ = b"".join(each for _, each in look(live_server, ids, [live_server.organiser]))
    assert any(each in everything_ for each in spellings(NAME))


def test_an_anonymous_board_shows_no_names(busy_board):
    live_server, team, token, other = busy_board
    live_server.amend(visibility="anonymous")
    ids = {"team": team, **plant(live_server, token)}
    for path, said in look(live_server, ids, [None, other]):
        assert not any(each in said for each in spellings(NAME)), path
    for role in (token, live_server.issue_token("evaluator"), live_server.organiser):
        said = b"".join(each for _, each in look(live_server, ids, [role]))
        assert any(each in said for each in spellings(NAME))


def test_a_frozen_board_shows_nothing_that_came_after(busy_board):
    live_server, team, token, other = busy_board
    live_server.amend(visibility="frozen")
    before = dict(everything(live_server, None, {"team": team, "submission": "0" * 32}))
    live_server.clock.now += 100
    ids = {"team": team, **plant(live_server, token)}
    live_server.join("Latecomer")
    for path, said in look(live_server, ids, [None, other]):
        assert not any(each in said for each in NUMBERS), path
        assert b"Latecomer" not in said, path
    # Not a byte changes for the public; the pages have words of their own in their forms.
    after = dict(everything(live_server, None, ids))
    for path, said in before.items():
        path_now = path.replace("0" * 32, ids["submission"])
        if path.startswith("/api"):
            assert after[path_now] == said, path
        if path == "/" or path.startswith("/boards"):
            assert blind(after[path_now]) == blind(said), path


def blind(page):
    """Return a page without what is drawn anew for every visitor."""
    page = re.sub(rb'(csrf" value="|csrf=)[^"]+', b"", page)
    return re.sub(rb"set-cookie: [^\n]+", b"", page)


def test_who_is_disqualified_is_shown_nowhere(busy_board):
    live_server, team, token, other = busy_board
    ids = {"team": team, **plant(live_server, token)}
    path = f"/boards/first/teams/{team}/disqualification"
    assert live_server.call("PUT", path, live_server.organiser).status_code == 204
    for path_, said in look(live_server, ids, [None, other]):
        assert not any(each in said for each in spellings(NAME)), path_
    assert live_server.call("GET", "/boards/first/team", token).json()["disqualified"] is True
    assert live_server.call("DELETE", path, live_server.organiser).status_code == 204
    said = b"".join(each for _, each in look(live_server, ids, [None]))
    assert any(each in said for each in spellings(NAME))


def test_log_and_metrics_name_nobody(busy_board):
    live_server, team, token, _ = busy_board
    ids = {"team": team, **plant(live_server, token)}
    list(look(live_server, ids, [None, token, live_server.organiser]))
    live_server.submit(token, b"nonsense")
    metrics = live_server.call("GET", "/metrics", live_server.organiser).text
    for said in (live_server.log.getvalue(), metrics):
        for each in (
            NAME,
            "Zyzzyva",
            MESSAGE,
            token,
            team,
            live_server.slug + "/",
            "0.4366",
            "message=",
        ):
            assert each not in said
    lines = [json.loads(each) for each in live_server.log.getvalue().splitlines()]
    assert {"time", "event", "request", "method", "route", "status", "ms", "bytes"} == set(lines[0])
    assert "/api/v1/boards/{board}/submissions" in {each["route"] for each in lines}


@pytest.mark.parametrize("visibility", ["hidden", "anonymous"])
def test_registering_does_not_tell_which_names_there_are(busy_board, visibility):
    live_server, *_ = busy_board
    live_server.amend(visibility=visibility)

    def register(name, token=None):
        return live_server.call("POST", "/boards/first/teams", token, json={"name": name})

    taken, free = register(f" {NAME.upper()}"), register("Nobody has this")
    assert (taken.status_code, free.status_code) == (201, 201)
    assert taken.json()["name"] == NAME.upper()
    assert taken.json().keys() == free.json().keys()
    own = live_server.call("GET", "/boards/first/team", taken.json()["token"]).json()
    assert own["name"] == NAME.upper()
    # The organiser sees all names, and is told as before.
    assert register(NAME, live_server.organiser).status_code == 409


def test_names_are_told_apart_when_they_are_shown(busy_board):
    live_server, team, token, _ = busy_board
    live_server.amend(visibility="hidden")
    made = live_server.call("POST", "/boards/first/teams", json={"name": NAME}).json()
    for each in (token, made["token"]):
        assert live_server.submit(each, make_predictions(150)).status_code == 201
    live_server.amend(visibility="public")
    listed = live_server.call("GET", "/boards/first/leaderboard").json()["rows"]
    names = {each["team"]["id"]: each["team"]["name"] for each in listed}
    assert names[team] == NAME
    assert names[made["id"]] == f"{NAME} ({made['id'][:4]})"
    said = live_server.call("POST", "/boards/first/teams", json={"name": names[made["id"]]})
    assert said.status_code == 409
