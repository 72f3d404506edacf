"""Who may do what when: every route of the application, every role, every state of a board."""

import re

import pytest

from ladderboard.server import Rate
from ladderboard.server._pages._static import wheel_url
from support.server.live_server import make_predictions

ROLES = ("public", "team", "other", "evaluator", "organiser", "ended", "foreign")
STATES = ("open", "paused", "hidden", "anonymous", "frozen", "closed")
B = "/api/v1/boards/{board}"
STRANGE = (401, 401)  # a token that has ended, and one of another board

# For each route: what public, team, other team, evaluator and organiser get; and in which states
# something else. A refusal by role comes before one by state, but not before what is wrong anyway.
LOOK = {"": (200,) * 5}
STANDINGS = {"": (200,) * 5, "hidden": (403, 403, 403, 200, 200)}
OWN = {"": (401, 200, 200, 403, 403)}
ALL = {"": (401, 403, 403, 200, 200)}


def run(done, closed=None):
    """What only organisers do, and perhaps not after the close."""
    said = {"": (401, 403, 403, 403, done)}
    return said if closed is None else {**said, "closed": (401, 403, 403, 403, closed)}


EXPECTED = {
    "GET /api/v1/boards": {**LOOK, "strange": (401, 200)},
    f"GET {B}": LOOK,
    f"GET {B}/leaderboard": STANDINGS,
    f"GET {B}/records": STANDINGS,
    f"GET {B}/ledger": LOOK,
    f"GET {B}/finals": {"": (404,) * 5, "closed": (200,) * 5},
    f"POST {B}/submissions": {
        "": (401, 201, 201, 201, 201),
        "paused": (401, 409, 409, 409, 409),
        "closed": (401, 409, 409, 409, 409),
    },
    f"GET {B}/submissions": {"": (401, 200, 200, 200, 200)},
    f"GET {B}/submissions/{{submission}}": {"": (401, 200, 404, 200, 200)},
    f"GET {B}/team": OWN,
    f"POST {B}/team/token": OWN,
    f"GET {B}/selections": OWN,
    f"PUT {B}/selections": {
        "": (401, 200, 404, 403, 403),
        "closed": (401, 409, 409, 403, 403),
    },
    f"POST {B}/teams": {"": (201,) * 5, "closed": (409,) * 5},
    f"GET {B}/teams": ALL,
    f"POST {B}/teams/{{team}}/token": {"": (401, 200, 403, 403, 200)},
    f"DELETE {B}/teams/{{team}}/token": run(204),
    f"PUT {B}/teams/{{team}}/disqualification": run(204),
    f"DELETE {B}/teams/{{team}}/disqualification": run(204),
    f"POST {B}/invitations": run(201),
    f"POST {B}/tokens": run(201),
    f"GET {B}/tokens": run(200),
    f"DELETE {B}/tokens/{{token}}": run(404),  # there is none of this id
    f"POST {B}/pause": run(200, 409),
    f"POST {B}/resume": run(200, 409),
    f"PATCH {B}/rules": run(200, 409),
    f"POST {B}/close": run(200, 409),
    "GET /healthz": {"": (200,) * 5, "strange": (200, 200)},
    "GET /openapi.json": {"": (200,) * 5, "strange": (200, 200)},
    # For whoever runs all boards: the organiser of one is a stranger there.
    "GET /metrics": {"": (401, 401, 401, 401, 200)},
    "GET /": {"": (200,) * 5, "strange": (401, 200)},
    "GET /boards/{board}": {"": (200,) * 5},
    "GET /boards/{board}/standings.csv": STANDINGS,
    "GET /boards/{board}/standings.json": STANDINGS,
    "GET /boards/{board}/ledger.jsonl": LOOK,
    "GET /boards/{board}/submit": {"": (200,) * 5},
    # A form needs a word from a page of ours, whatever token comes along.
    "POST /boards/{board}/submit": {"": (403,) * 5, "strange": (403, 403)},
    "GET /boards/{board}/organise": run(200),
    "POST /boards/{board}/organise": {"": (403,) * 5, "strange": (403, 403)},
    "GET /boards/{board}/organise/teams/{team}": run(200),
    "POST /boards/{board}/organise/teams/{team}": {"": (403,) * 5, "strange": (403, 403)},
    "GET /boards/{board}/play": {"": (404,) * 5},  # this board does not play
    "GET /boards/{board}/attack": run(200),
    "GET /boards/{board}/attack/progress": run(200),
    "POST /boards/{board}/attack": {"": (403,) * 5, "strange": (403, 403)},
    "POST /boards/{board}/attack/cancel": {"": (403,) * 5, "strange": (403, 403)},
    "POST /boards/{board}/selections": {"": (403,) * 5, "strange": (403, 403)},
    "POST /boards/{board}/token": {"": (403,) * 5, "strange": (403, 403)},
    "GET /boards/{board}/join": {"": (200,) * 5},
    "POST /boards/{board}/join": {"": (403,) * 5, "strange": (403, 403)},
    "GET /login": {"": (200,) * 5, "strange": (200, 200)},
    "POST /session": {"": (403,) * 5, "strange": (403, 403)},
    "POST /session/end": {"": (403,) * 5, "strange": (403, 403)},
    "GET /static/{name}": {"": (200,) * 5, "strange": (200, 200)},
    "GET /install/{name}": {"": (200,) * 5, "strange": (200, 200)},
}
BODIES = {
    f"PUT {B}/selections": {"submissions": ["{submission}"]},
    f"POST {B}/teams": {"name": "New {role}"},
    f"POST {B}/tokens": {"role": "evaluator"},
    f"PATCH {B}/rules": {"title": "Another"},
}


# After one of these a board is not what it was for the others.
LASTING = {f"DELETE {B}/teams/{{team}}/token"} | {
    f"{each} {B}/{what}"
    for each, what in (("POST", "pause"), ("POST", "resume"), ("PATCH", "rules"), ("POST", "close"))
}


def routes_of(app):
    return {
        f"{method} {route.path}"
        for route in app.routes
        for method in (route.methods or ()) - {"HEAD"}
    }


class Stage:
    """A board in a state, with somebody in every role."""

    def __init__(self, live_server, state):
        live_server.reset()
        live_server.create_board(teams=9)
        self.live_server, self.slug = live_server, live_server.slug
        self.team, team = live_server.join("Team")
        _, other = live_server.join("Other")
        _, ended = live_server.join("Ended")
        self.tokens = {
            "public": None,
            "team": team,
            "other": other,
            "evaluator": live_server.issue_token("evaluator"),
            "organiser": live_server.organiser,
            "ended": ended,
            "foreign": live_server.elsewhere,
        }
        self.submission = live_server.submit(team, make_predictions(40)).json()["id"]
        live_server.submit(other, make_predictions(50))
        gone = live_server.call("POST", "/boards/first/team/token", ended)
        assert gone.status_code == 200
        if state == "paused":
            live_server.call("POST", "/boards/first/pause", live_server.organiser)
        elif state == "closed":
            assert (
                live_server.call("POST", "/boards/first/close", live_server.organiser).status_code
                == 200
            )
        elif state != "open":
            live_server.amend(visibility=state)

    def ask(self, route, role):
        method, path = route.split()
        path = path.format(
            board=self.slug,
            team=self.team,
            submission=self.submission,
            token="0" * 16,
            name=wheel_url().rpartition("/")[2] if "/install/" in path else "style.css",
        )
        more = {}
        if route == f"POST {B}/submissions":
            more = {"content": make_predictions(30 + ROLES.index(role)), "headers": {}}
            more["headers"]["Content-Type"] = "text/csv"
        if route in {f"POST {B}/submissions", f"GET {B}/submissions"} and role in ROLES[3:5]:
            path += f"?team={self.team}"
        if route in BODIES:
            text = {"{submission}": self.submission, "New {role}": f"New {role}"}
            more["json"] = {
                key: [text[each] for each in value] if isinstance(value, list)
                else text.get(value, value)
                for key, value in BODIES[route].items()
            }  # fmt: skip
        if method == "POST" and not path.startswith("/api"):
            more["data"] = {"csrf": "guess"}
        headers = more.pop("headers", {})
        if self.tokens[role] is not None:
            headers["Authorization"] = f"Bearer {self.tokens[role]}"
        client = self.live_server.client
        client.cookies.clear()
        return client.request(method, path, headers=headers, **more)


def elsewhere(live_server):
    """Return the token of a team on another board."""
    live_server.create_board("elsewhere")
    return live_server.join("Stranger", "elsewhere")[1]


def test_the_table_has_every_route_and_no_other(live_server):
    assert routes_of(live_server.app) == set(EXPECTED)


@pytest.mark.parametrize("state", STATES)
def test_every_route_answers_every_role_as_it_must(make_server, state):
    """Most share one board, first those that read; what has lasting effects has its own."""
    many = Rate(10**6, 1.0)
    live_server = make_server(failures=many, registrations=many)
    live_server.elsewhere = elsewhere(live_server)
    shared, wrong = Stage(live_server, state), []
    for route, table in sorted(EXPECTED.items(), key=lambda each: not each[0].startswith("GET")):
        stage = Stage(live_server, state) if route in LASTING else shared
        wanted = (*table.get(state, table[""]), *table.get("strange", STRANGE))
        for role, status in zip(ROLES, wanted, strict=True):
            # A team that gives itself another token is known by that one afterwards.
            said = stage.ask(route, role)
            if said.status_code != status:
                wrong.append(f"{route} as {role}: {said.status_code}, not {status}")
            if said.status_code == 200 and route.endswith("/token"):
                stage.tokens["team" if "{team}" in route else role] = said.json()["token"]
            assert_shape(route, said)
    assert not wrong


def assert_shape(route, said):
    """Every reply: headers of ours, and refusals as problem documents or pages."""
    assert said.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in said.headers["content-security-policy"]
    assert "Authorization, Cookie" in said.headers["vary"]
    if said.status_code == 401 and "/api/" in route:
        assert said.headers["www-authenticate"] == "Bearer"
    if said.status_code >= 400 and re.search("/api/|/metrics|/healthz", route):
        assert said.headers["content-type"] == "application/problem+json"
        assert said.json()["status"] == said.status_code
    if said.request.headers.get("authorization") and "/api/" in route:
        assert said.headers["cache-control"] == "private, no-store"


def test_every_token_that_is_not_good_gets_the_same_answer(live_server):
    ended = live_server.join("Ended")[1]
    live_server.call("POST", "/boards/first/team/token", ended)
    made = live_server.call("POST", "/boards/first/invitations", live_server.organiser).json()
    invitation = made["invitation"]
    tokens = [
        "wrong", "lb_team_" + "A" * 43, ended, elsewhere(live_server), invitation, "x" * 5000,
        "a b c",
    ]  # fmt: skip
    said = [live_server.call("GET", "/boards/first/team", each) for each in tokens]
    said += [
        live_server.call("GET", "/boards/first/team", headers={"Authorization": given})
        for given in ("Basic YTpi", "Bearer", "bearer lb_team_x", "lb_team_x")
    ]
    first = said[0]
    for each in said:
        assert each.status_code == 401
        assert each.content == first.content
        assert {*each.headers} == {*first.headers}


@pytest.mark.parametrize("place", ["", "/team", "/leaderboard", "/tokens"])
def test_a_board_that_is_not_there_is_the_same_for_everybody(live_server, place):
    """So that a mistyped name is not blamed on a token, and no token is told to be good."""
    known = [live_server.join("Ada")[1], live_server.organiser]
    path = f"/boards/no-such-board{place}"
    said = [live_server.call("GET", path, each) for each in (*known, "lb_team_wrong", None)]
    assert {each.status_code for each in said} == {404}
    assert len({each.content for each in said}) == 1
    assert said[0].json()["detail"] == "There is no such board."
