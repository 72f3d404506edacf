"""Hidden, anonymous and frozen boards leak no planted name or number on any path."""

import html
import json
import re

import pytest

from support.server.live_server import make_predictions

NAME = "Zyzzyva-Q7 & Söhne"
MESSAGE = "plan nine from outer space"
WRONG = 131  # of 300: a loss of 0.43666..., shown as 0.4367
NUMBERS = (b"0.43666", b"0.4367", b"0.43667")


def encodings_of(text):
    """Return the ways in which a text may be encoded in a reply."""
    return {
        text.encode(),
        html.escape(text).encode(),
        json.dumps(text)[1:-1].encode(),
        text.replace("&", "&#38;").encode(),
        text.split()[0].encode(),
    }


def fetch_every_route(live_server, token, ids):
    """Yield path and reply (headers and body) of every GET route, as the holder of a token."""
    for route in live_server.app.routes:
        if "GET" not in (route.methods or ()):
            continue
        path = route.path.format(
            board=live_server.slug, name="style.css", provider="none", section="access", **ids
        )
        queries = [""]
        if route.path.endswith("/leaderboard"):
            queries += ["?format=csv", "?limit=1"]
        for query in queries:
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            headers["Accept-Encoding"] = "identity"  # compressed, lengths depend on ids
            live_server.client.cookies.clear()
            response = live_server.client.get(path + query, headers=headers)
            headers_sent = [
                f"{k}: {v}".encode() for k, v in response.headers.items() if k != "x-request-id"
            ]
            # A refusal links back to the requested address.
            content = response.content.replace(f"next={path}".encode(), b"")
            yield path + query, b"\n".join([*headers_sent, content])


@pytest.fixture
def busy_board(make_server):
    """A board with a team, its token and the token of another team that watches."""
    live_server = make_server()
    live_server.create_board(teams=9, mechanism="{name: exact}")
    team, token = live_server.join(NAME)
    _, other_token = live_server.join("Bystander")
    live_server.submit(other_token, make_predictions(200))
    return live_server, team, token, other_token


def submit_planted_values(live_server, token):
    response = live_server.submit(token, make_predictions(WRONG), query=f"?message={MESSAGE}")
    assert response.status_code == 201
    assert any(number in response.content for number in NUMBERS)
    return {"submission": response.json()["id"]}


def fetch_as_each(live_server, ids, tokens):
    for token in tokens:
        yield from fetch_every_route(live_server, token, ids)


def test_public_names_and_numbers_are_found(busy_board):
    live_server, team, token, other_token = busy_board
    ids = {"team": team, **submit_planted_values(live_server, token)}
    content = b"".join(reply for _, reply in fetch_as_each(live_server, ids, [None, other_token]))
    assert any(encoding in content for encoding in encodings_of(NAME))
    assert any(number in content for number in NUMBERS)
    assert MESSAGE.encode() not in content  # only the team may read it
    assert MESSAGE.encode() in b"".join(
        reply for _, reply in fetch_as_each(live_server, ids, [token])
    )


def test_a_hidden_board_shows_neither_names_nor_numbers(busy_board):
    live_server, team, token, other_token = busy_board
    live_server.amend(visibility="hidden")
    ids = {"team": team, **submit_planted_values(live_server, token)}
    for path, reply in fetch_as_each(live_server, ids, [None, other_token]):
        assert not any(secret in reply for secret in (*encodings_of(NAME), *NUMBERS)), path
        assert not any(
            identifier in reply for identifier in (team.encode(), ids["submission"].encode())
        ), path
    team_content = b"".join(reply for _, reply in fetch_as_each(live_server, ids, [token]))
    assert any(number in team_content for number in NUMBERS)
    organiser_content = b"".join(
        reply for _, reply in fetch_as_each(live_server, ids, [live_server.organiser])
    )
    assert any(encoding in organiser_content for encoding in encodings_of(NAME))


def test_an_anonymous_board_shows_no_names(busy_board):
    live_server, team, token, other_token = busy_board
    live_server.amend(visibility="anonymous")
    ids = {"team": team, **submit_planted_values(live_server, token)}
    for path, content in fetch_as_each(live_server, ids, [None, other_token]):
        assert not any(encoding in content for encoding in encodings_of(NAME)), path
    for role in (token, live_server.issue_token("evaluator"), live_server.organiser):
        content = b"".join(reply for _, reply in fetch_as_each(live_server, ids, [role]))
        assert any(encoding in content for encoding in encodings_of(NAME))


def test_a_frozen_board_shows_nothing_newer_than_the_freeze(busy_board):
    live_server, team, token, other_token = busy_board
    live_server.amend(visibility="frozen")
    live_server.clock.now += 1  # from then on the feed has a time of its last change
    replies_before = dict(
        fetch_every_route(live_server, None, {"team": team, "submission": "0" * 32})
    )
    live_server.clock.now += 100
    ids = {"team": team, **submit_planted_values(live_server, token)}
    live_server.join("Latecomer")
    for path, reply in fetch_as_each(live_server, ids, [None, other_token]):
        assert not any(number in reply for number in NUMBERS), path
        assert b"Latecomer" not in reply, path
    # For the public not a byte changes, except for the CSRF tokens in the pages' forms.
    replies_after = dict(fetch_every_route(live_server, None, ids))
    for path, reply in replies_before.items():
        path_now = path.replace("0" * 32, ids["submission"])
        if path.startswith("/api"):
            assert replies_after[path_now] == reply, path
        if path == "/" or path.startswith("/boards"):
            assert without_csrf(replies_after[path_now]) == without_csrf(reply), path


def without_csrf(page):
    """Return a page without its CSRF token and cookie."""
    page = re.sub(rb'(csrf" value="|csrf=)[^"]+', b"", page)
    return re.sub(rb"set-cookie: [^\n]+", b"", page)


def test_a_disqualified_team_is_not_shown(busy_board):
    live_server, team, token, other_token = busy_board
    ids = {"team": team, **submit_planted_values(live_server, token)}
    path = f"/boards/first/teams/{team}/disqualification"
    assert live_server.call("PUT", path, live_server.organiser).status_code == 204
    for path_, content in fetch_as_each(live_server, ids, [None, other_token]):
        assert not any(encoding in content for encoding in encodings_of(NAME)), path_
    assert live_server.call("GET", "/boards/first/team", token).json()["disqualified"] is True
    assert live_server.call("DELETE", path, live_server.organiser).status_code == 204
    content = b"".join(reply for _, reply in fetch_as_each(live_server, ids, [None]))
    assert any(encoding in content for encoding in encodings_of(NAME))


def test_log_and_metrics_contain_no_names_tokens_or_scores(busy_board):
    live_server, team, token, _ = busy_board
    ids = {"team": team, **submit_planted_values(live_server, token)}
    list(fetch_as_each(live_server, ids, [None, token, live_server.organiser]))
    live_server.submit(token, b"nonsense")
    metrics = live_server.call("GET", "/metrics", live_server.organiser).text
    for text in (live_server.log.getvalue(), metrics):
        for secret in (
            NAME,
            "Zyzzyva",
            MESSAGE,
            token,
            team,
            live_server.slug + "/",
            "0.4366",
            "message=",
        ):
            assert secret not in text
    lines = [json.loads(line) for line in live_server.log.getvalue().splitlines()]
    assert {"time", "event", "request", "method", "route", "status", "ms", "bytes"} == set(lines[0])
    assert "/api/v1/boards/{board}/submissions" in {line["route"] for line in lines}


@pytest.mark.parametrize("visibility", ["hidden", "anonymous"])
def test_registering_does_not_reveal_existing_names(busy_board, visibility):
    live_server, *_ = busy_board
    live_server.amend(visibility=visibility)

    def register(name, token=None):
        return live_server.call("POST", "/boards/first/teams", token, json={"name": name})

    taken, free = register(f" {NAME.upper()}"), register("Nobody has this")
    assert (taken.status_code, free.status_code) == (201, 201)
    assert taken.json()["name"] == NAME.upper()
    assert taken.json().keys() == free.json().keys()
    own_team = live_server.call("GET", "/boards/first/team", taken.json()["token"]).json()
    assert own_team["name"] == NAME.upper()
    # The organiser sees all names, and still gets the conflict.
    assert register(NAME, live_server.organiser).status_code == 409


def test_equal_names_get_a_suffix_when_they_become_public(busy_board):
    live_server, team, token, _ = busy_board
    live_server.amend(visibility="hidden")
    team_2 = live_server.call("POST", "/boards/first/teams", json={"name": NAME}).json()
    for team_token in (token, team_2["token"]):
        assert live_server.submit(team_token, make_predictions(150)).status_code == 201
    live_server.amend(visibility="public")
    listed = live_server.call("GET", "/boards/first/leaderboard").json()["rows"]
    names = {row["team"]["id"]: row["team"]["name"] for row in listed}
    assert names[team] == NAME
    assert names[team_2["id"]] == f"{NAME} ({team_2['id'][:4]})"
    response = live_server.call("POST", "/boards/first/teams", json={"name": names[team_2["id"]]})
    assert response.status_code == 409
