"""Hidden, anonymous and frozen hold on every path: planted names and numbers are looked for."""

import html
import json
import re

import pytest

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


def everything(hall, token, ids):
    """Return the bytes of every GET that the application has, with headers, as somebody."""
    for route in hall.app.routes:
        if "GET" not in (route.methods or ()):
            continue
        path = route.path.format(board=hall.slug, name="style.css", **ids)
        queries = [""]
        if route.path.endswith("/leaderboard"):
            queries += ["?format=csv", "?limit=1"]
        for query in queries:
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            hall.client.cookies.clear()
            said = hall.client.get(path + query, headers=headers)
            kept = [f"{k}: {v}".encode() for k, v in said.headers.items() if k != "x-request-id"]
            # A refusal leads back to the address that was asked for.
            content = said.content.replace(f"next={path}".encode(), b"")
            yield path + query, b"\n".join([*kept, content])


@pytest.fixture
def planted(make_hall, predict):
    """A board on which a team is busy, and another one that looks on."""
    hall = make_hall()
    hall.board(teams=9, mechanism="{name: exact}")
    team, token = hall.join(NAME)
    _, other = hall.join("Bystander")
    hall.submit(other, predict(200))
    return hall, team, token, other


def plant(hall, token, predict):
    said = hall.submit(token, predict(WRONG), query=f"?message={MESSAGE}")
    assert said.status_code == 201
    assert any(each in said.content for each in NUMBERS)
    return {"submission": said.json()["id"]}


def look(hall, ids, tokens):
    for token in tokens:
        yield from everything(hall, token, ids)


def test_what_is_public_is_found_by_this_test(planted, predict):
    hall, team, token, other = planted
    ids = {"team": team, **plant(hall, token, predict)}
    said = b"".join(each for _, each in look(hall, ids, [None, other]))
    assert any(each in said for each in spellings(NAME))
    assert any(each in said for each in NUMBERS)
    assert MESSAGE.encode() not in said  # nobody's business but the team's
    assert MESSAGE.encode() in b"".join(each for _, each in look(hall, ids, [token]))


def test_a_hidden_board_shows_neither_names_nor_numbers(planted, predict):
    hall, team, token, other = planted
    hall.amend(visibility="hidden")
    ids = {"team": team, **plant(hall, token, predict)}
    for path, said in look(hall, ids, [None, other]):
        assert not any(each in said for each in (*spellings(NAME), *NUMBERS)), path
        assert not any(each in said for each in (team.encode(), ids["submission"].encode())), path
    own = b"".join(each for _, each in look(hall, ids, [token]))
    assert any(each in own for each in NUMBERS)
    everything_ = b"".join(each for _, each in look(hall, ids, [hall.organiser]))
    assert any(each in everything_ for each in spellings(NAME))


def test_an_anonymous_board_shows_no_names(planted, predict):
    hall, team, token, other = planted
    hall.amend(visibility="anonymous")
    ids = {"team": team, **plant(hall, token, predict)}
    for path, said in look(hall, ids, [None, other]):
        assert not any(each in said for each in spellings(NAME)), path
    for role in (token, hall.trusted("evaluator"), hall.organiser):
        said = b"".join(each for _, each in look(hall, ids, [role]))
        assert any(each in said for each in spellings(NAME))


def test_a_frozen_board_shows_nothing_that_came_after(planted, predict):
    hall, team, token, other = planted
    hall.amend(visibility="frozen")
    before = dict(everything(hall, None, {"team": team, "submission": "0" * 32}))
    hall.clock.now += 100
    ids = {"team": team, **plant(hall, token, predict)}
    hall.join("Latecomer")
    for path, said in look(hall, ids, [None, other]):
        assert not any(each in said for each in NUMBERS), path
        assert b"Latecomer" not in said, path
    # Not a byte changes for the public; the pages have words of their own in their forms.
    after = dict(everything(hall, None, ids))
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


def test_who_is_disqualified_is_shown_nowhere(planted, predict):
    hall, team, token, other = planted
    ids = {"team": team, **plant(hall, token, predict)}
    path = f"/boards/first/teams/{team}/disqualification"
    assert hall.call("PUT", path, hall.organiser).status_code == 204
    for path_, said in look(hall, ids, [None, other]):
        assert not any(each in said for each in spellings(NAME)), path_
    assert hall.call("GET", "/boards/first/team", token).json()["disqualified"] is True
    assert hall.call("DELETE", path, hall.organiser).status_code == 204
    said = b"".join(each for _, each in look(hall, ids, [None]))
    assert any(each in said for each in spellings(NAME))


def test_log_and_metrics_name_nobody(planted, predict):
    hall, team, token, _ = planted
    ids = {"team": team, **plant(hall, token, predict)}
    list(look(hall, ids, [None, token, hall.organiser]))
    hall.submit(token, b"nonsense")
    metrics = hall.call("GET", "/metrics", hall.organiser).text
    for said in (hall.log.getvalue(), metrics):
        for each in (NAME, "Zyzzyva", MESSAGE, token, team, hall.slug + "/", "0.4366", "message="):
            assert each not in said
    lines = [json.loads(each) for each in hall.log.getvalue().splitlines()]
    assert {"time", "event", "request", "method", "route", "status", "ms", "bytes"} == set(lines[0])
    assert "/api/v1/boards/{board}/submissions" in {each["route"] for each in lines}


@pytest.mark.parametrize("visibility", ["hidden", "anonymous"])
def test_registering_does_not_tell_which_names_there_are(planted, visibility):
    hall, *_ = planted
    hall.amend(visibility=visibility)

    def register(name, token=None):
        return hall.call("POST", "/boards/first/teams", token, json={"name": name})

    taken, free = register(f" {NAME.upper()}"), register("Nobody has this")
    assert (taken.status_code, free.status_code) == (201, 201)
    assert taken.json()["name"] == NAME.upper()
    assert taken.json().keys() == free.json().keys()
    own = hall.call("GET", "/boards/first/team", taken.json()["token"]).json()
    assert own["name"] == NAME.upper()
    # The organiser sees all names, and is told as before.
    assert register(NAME, hall.organiser).status_code == 409


def test_names_are_told_apart_when_they_are_shown(planted, predict):
    hall, team, token, _ = planted
    hall.amend(visibility="hidden")
    made = hall.call("POST", "/boards/first/teams", json={"name": NAME}).json()
    for each in (token, made["token"]):
        assert hall.submit(each, predict(150)).status_code == 201
    hall.amend(visibility="public")
    listed = hall.call("GET", "/boards/first/leaderboard").json()["rows"]
    names = {each["team"]["id"]: each["team"]["name"] for each in listed}
    assert names[team] == NAME
    assert names[made["id"]] == f"{NAME} ({made['id'][:4]})"
    said = hall.call("POST", "/boards/first/teams", json={"name": names[made["id"]]})
    assert said.status_code == 409
