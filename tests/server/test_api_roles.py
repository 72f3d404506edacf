"""Permissions: every route of the application, for every role, in every state of a board."""

import hashlib
import re

import pytest

from ladderboard.board import Caller, Role
from ladderboard.server import Rate
from ladderboard.server._pages._static import wheel_url
from support.server.live_server import make_predictions

ROLES = ("public", "team", "other", "evaluator", "organiser", "ended", "foreign")
STATES = ("open", "paused", "hidden", "anonymous", "frozen", "closed", "members", "terms")
B = "/api/v1/boards/{board}"
TERMS = "Be fair."
STRANGE = (401, 401)  # a token that has ended, and one of another board

# For each route: the status for public, team, other team, evaluator and organiser, and states in
# which it differs. A refusal by role comes before one by state, but after errors in the request.
LOOK = {"": (200,) * 5}
STANDINGS = {"": (200,) * 5, "hidden": (403, 403, 403, 200, 200)}
OWN = {"": (401, 200, 200, 403, 403)}
ALL = {"": (401, 403, 403, 200, 200)}


def organisers_only(success, closed=None):
    """Return the statuses of a route for organisers only, perhaps refused after the close."""
    statuses = {"": (401, 403, 403, 403, success)}
    return statuses if closed is None else {**statuses, "closed": (401, 403, 403, 403, closed)}


EXPECTED = {
    "GET /api/v1/boards": {**LOOK, "strange": (401, 200)},
    f"GET {B}": LOOK,
    f"GET {B}/leaderboard": STANDINGS,
    f"GET {B}/records": STANDINGS,
    f"GET {B}/data": LOOK,
    f"GET {B}/ledger": LOOK,
    f"GET {B}/finals": {"": (404,) * 5, "closed": (200,) * 5},
    f"POST {B}/submissions": {
        "": (401, 201, 201, 201, 201),
        "paused": (401, 409, 409, 409, 409),
        "closed": (401, 409, 409, 409, 409),
        "terms": (401, 403, 403, 403, 403),
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
    f"POST {B}/teams": {
        "": (201,) * 5,
        "closed": (409,) * 5,
        "members": (404, 403, 403, 403, 201),
    },
    # People who signed in: see test_people.py. Here nobody signs in, and teams use tokens.
    f"GET {B}/registration": {"": (401, 403, 403, 403, 403)},
    f"GET {B}/team/members": OWN,
    f"PUT {B}/team/members/{{number}}": {"": (401, 404, 404, 403, 403)},
    f"DELETE {B}/team/members/{{number}}": {"": (401, 404, 404, 403, 403)},
    f"POST {B}/team/invitations": {"": (401, 409, 409, 403, 403)},
    f"DELETE {B}/team/invitations/{{token}}": {"": (401, 404, 404, 403, 403)},
    f"POST {B}/membership": {"": (401, 403, 403, 403, 403)},
    f"DELETE {B}/membership": {"": (401, 403, 403, 403, 403)},
    f"GET {B}/terms": {"": (404,) * 5, "terms": (200,) * 5},
    f"POST {B}/terms": {"": (401, 404, 404, 403, 403), "terms": (401, 200, 200, 403, 403)},
    f"DELETE {B}/registrations/{{number}}/sessions": organisers_only(404),
    f"PUT {B}/registrations/{{number}}/organiser": organisers_only(404),
    f"DELETE {B}/registrations/{{number}}/organiser": organisers_only(404),
    f"POST {B}/teams/{{team}}/merge": organisers_only(409),  # into itself, or after the close
    f"GET {B}/teams": ALL,
    f"POST {B}/teams/{{team}}/token": {"": (401, 200, 403, 403, 200)},
    f"DELETE {B}/teams/{{team}}/token": organisers_only(204),
    f"PUT {B}/teams/{{team}}/disqualification": organisers_only(204),
    f"DELETE {B}/teams/{{team}}/disqualification": organisers_only(204),
    f"POST {B}/erasure": OWN,
    f"PUT {B}/teams/{{team}}/erasure": organisers_only(200),
    f"PUT {B}/registrations/{{number}}/erasure": organisers_only(404),  # nobody signed in
    f"POST {B}/invitations": organisers_only(201),
    f"POST {B}/tokens": organisers_only(201),
    f"GET {B}/tokens": organisers_only(200),
    f"DELETE {B}/tokens/{{token}}": organisers_only(404),  # no token has this id
    f"GET {B}/registrations": organisers_only(200),
    f"PUT {B}/registrations/{{number}}": organisers_only(404),  # nobody signed in
    f"POST {B}/people": organisers_only(200),
    f"GET {B}/webhooks": organisers_only(200),
    f"POST {B}/webhooks": organisers_only(201),
    f"DELETE {B}/webhooks/{{number}}": organisers_only(204),
    f"POST {B}/webhooks/{{number}}/test": organisers_only(204),
    f"POST {B}/pause": organisers_only(200, 409),
    f"POST {B}/resume": organisers_only(200, 409),
    f"PATCH {B}/rules": organisers_only(200, 409),
    f"POST {B}/close": organisers_only(200, 409),
    "GET /healthz": {"": (200,) * 5, "strange": (200, 200)},
    "GET /openapi.json": {"": (200,) * 5, "strange": (200, 200)},
    # For the operator: the organiser of a single board may not read them.
    "GET /metrics": {"": (401, 401, 401, 401, 200)},
    "GET /": {"": (200,) * 5, "strange": (401, 200)},
    "GET /boards/{board}": {"": (200,) * 5},
    "GET /boards/{board}/leaderboard": {"": (200,) * 5},
    "GET /boards/{board}/rules": {"": (200,) * 5},
    "GET /boards/{board}/verify": {"": (200,) * 5},
    "GET /boards/{board}/receipts/{submission}": {"": (401, 200, 404, 200, 200)},
    "GET /boards/{board}/standings.csv": STANDINGS,
    "GET /boards/{board}/standings.json": STANDINGS,
    "GET /boards/{board}/finals.csv": {"": (404,) * 5, "closed": (200,) * 5},
    "GET /boards/{board}/records.atom": {"": (200,) * 5, "hidden": (404, 404, 404, 200, 200)},
    "GET /boards/{board}/ledger.jsonl": LOOK,
    "GET /boards/{board}/data": LOOK,
    "GET /boards/{board}/sample_submission.csv": LOOK,
    "GET /boards/{board}/data/{name}": {"": (404,) * 5},  # this board has no such file
    "GET /boards/{board}/submit": {"": (200,) * 5},
    # A form needs a CSRF token, whatever token is sent.
    "POST /boards/{board}/submit": {"": (403,) * 5, "strange": (403, 403)},
    "POST /boards/{board}/check": {"": (403,) * 5, "strange": (403, 403)},
    "GET /boards/{board}/organise": organisers_only(200),
    "POST /boards/{board}/organise": {"": (403,) * 5, "strange": (403, 403)},
    "GET /boards/{board}/organise/teams": organisers_only(200),
    "GET /boards/{board}/organise/people": organisers_only(200),
    "GET /boards/{board}/organise/invitations": organisers_only(200),
    "GET /boards/{board}/organise/activity": organisers_only(200),
    "GET /boards/{board}/organise/settings": organisers_only(200),
    "GET /boards/{board}/organise/settings/{section}": organisers_only(200),
    "GET /boards/{board}/organise/teams/{team}": organisers_only(200),
    "POST /boards/{board}/organise/teams/{team}": {"": (403,) * 5, "strange": (403, 403)},
    "GET /boards/{board}/team": {"": (303, 200, 200, 303, 303)},
    "POST /boards/{board}/team": {"": (403,) * 5, "strange": (403, 403)},
    "GET /boards/{board}/terms": {"": (404,) * 5, "terms": (200,) * 5},
    "POST /boards/{board}/terms": {"": (403,) * 5, "strange": (403, 403)},
    "GET /boards/{board}/play": {"": (404,) * 5},  # this board has no play page
    "POST /boards/{board}/selections": {"": (403,) * 5, "strange": (403, 403)},
    "POST /boards/{board}/token": {"": (403,) * 5, "strange": (403, 403)},
    "GET /boards/{board}/erase": {"": (200,) * 5},
    "POST /boards/{board}/erase": {"": (403,) * 5, "strange": (403, 403)},
    "GET /boards/{board}/join": {"": (200,) * 5},
    "POST /boards/{board}/join": {"": (403,) * 5, "strange": (403, 403)},
    # Nobody signs in on this board, and the server has no provider.
    "GET /boards/{board}/sign-in/{provider}": {"": (404,) * 5},
    "GET /sign-in/{provider}/callback": {"": (404,) * 5, "strange": (404, 404)},
    "GET /login": {"": (200,) * 5, "strange": (200, 200)},
    "POST /session": {"": (403,) * 5, "strange": (403, 403)},
    "POST /session/end": {"": (403,) * 5, "strange": (403, 403)},
    "GET /static/{name}": {"": (200,) * 5, "strange": (200, 200)},
    "GET /install/{name}": {"": (200,) * 5, "strange": (200, 200)},
}
LISTS = {"GET /", "GET /api/v1/boards"}
BODIES = {
    f"PUT {B}/selections": {"submissions": ["{submission}"]},
    f"POST {B}/teams": {"name": "New {role}"},
    f"POST {B}/tokens": {"role": "evaluator"},
    f"PATCH {B}/rules": {"title": "Another"},
    f"PUT {B}/registrations/{{number}}": {"approve": True},
    f"POST {B}/people": {"people": ["ada@example.edu"]},
    f"PUT {B}/team/members/{{number}}": {"role": "owner"},
    f"POST {B}/membership": {"invitation": "lb_member_x"},
    f"POST {B}/terms": {"version": hashlib.sha256(TERMS.encode()).hexdigest()},
    f"POST {B}/teams/{{team}}/merge": {"into": "{team}"},
    f"POST {B}/webhooks": {"url": "https://example.invalid/hook"},
}


# These change a board, so each of them gets its own.
LASTING = {f"DELETE {B}/teams/{{team}}/token"} | {
    f"{method} {B}/{action}"
    for method, action in (
        ("POST", "pause"),
        ("POST", "resume"),
        ("PATCH", "rules"),
        ("POST", "close"),
        ("DELETE", "webhooks/{number}"),
        ("POST", "erasure"),
        ("PUT", "teams/{team}/erasure"),
    )
}


def routes_of(app):
    return {
        f"{method} {route.path}"
        for route in app.routes
        for method in (route.methods or ()) - {"HEAD"}
    }


class BoardWithRoles:
    """A board in a given state, with a token for every role."""

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
            "foreign": live_server.foreign_token,
        }
        self.submission = live_server.submit(team, make_predictions(40)).json()["id"]
        live_server.submit(other, make_predictions(50))
        live_server.boards.open(self.slug).webhooks.add(
            Caller(Role.ORGANISER), "https://example.invalid/hook", ("deadline_near",)
        )
        response = live_server.call("POST", "/boards/first/team/token", ended)
        assert response.status_code == 200
        if state == "paused":
            live_server.call("POST", "/boards/first/pause", live_server.organiser)
        elif state == "closed":
            assert (
                live_server.call("POST", "/boards/first/close", live_server.organiser).status_code
                == 200
            )
        elif state == "members":
            live_server.amend(listing="members", registration="organiser")
        elif state == "terms":
            live_server.amend(terms=TERMS)
        elif state != "open":
            live_server.amend(visibility=state)

    def request(self, route, role):
        method, path = route.split()
        path = path.format(
            board=self.slug,
            team=self.team,
            submission=self.submission,
            token="0" * 16,
            number=1,
            section="access",
            provider="university",
            name=wheel_url().rpartition("/")[2] if "/install/" in path else "style.css",
        )
        options = {}
        if route == f"POST {B}/submissions":
            options = {"content": make_predictions(30 + ROLES.index(role)), "headers": {}}
            options["headers"]["Content-Type"] = "text/csv"
        if route in {f"POST {B}/submissions", f"GET {B}/submissions"} and role in ROLES[3:5]:
            path += f"?team={self.team}"
        if route in BODIES:
            text = {"{submission}": self.submission, "New {role}": f"New {role}"}
            text["{team}"] = self.team
            options["json"] = {
                key: [text.get(word, word) for word in value] if isinstance(value, list)
                else text.get(value, value)
                for key, value in BODIES[route].items()
            }  # fmt: skip
        if method == "POST" and not path.startswith("/api"):
            options["data"] = {"csrf": "guess"}
        headers = options.pop("headers", {})
        if self.tokens[role] is not None:
            headers["Authorization"] = f"Bearer {self.tokens[role]}"
        client = self.live_server.client
        client.cookies.clear()
        return client.request(method, path, headers=headers, **options)


def join_another_board(live_server):
    """Return the token of a team on another board."""
    live_server.create_board("elsewhere")
    return live_server.join("Stranger", "elsewhere")[1]


def test_the_table_lists_exactly_the_routes(live_server):
    assert routes_of(live_server.app) == set(EXPECTED)


@pytest.mark.parametrize("state", STATES)
def test_every_route_gives_every_role_its_status(make_server, state):
    """Most routes share one board, reading ones first; those that change it get their own."""
    unlimited = Rate(10**6, 1.0)
    live_server = make_server(failures=unlimited, registrations=unlimited)
    live_server.foreign_token = join_another_board(live_server)
    shared, wrong = BoardWithRoles(live_server, state), []
    for route, table in sorted(EXPECTED.items(), key=lambda item: not item[0].startswith("GET")):
        if state != STATES[0] and "{board}" not in route and route not in LISTS:
            continue  # knows of no board
        board = BoardWithRoles(live_server, state) if route in LASTING else shared
        expected = (*table.get(state, table[""]), *table.get("strange", STRANGE))
        if state == "members" and "{board}" in route and expected[0] != 403:
            expected = (404, *expected[1:5], 404, 404)  # but a form needs a CSRF token first
        for role, status in zip(ROLES, expected, strict=True):
            # A team that rotates its token uses the new one from then on.
            response = board.request(route, role)
            if response.status_code != status:
                wrong.append(f"{route} as {role}: {response.status_code}, not {status}")
            if response.status_code == 200 and route.endswith("/token"):
                board.tokens["team" if "{team}" in route else role] = response.json()["token"]
            assert_shape(route, response)
    assert not wrong


def assert_shape(route, response):
    """Check the security headers, and that refusals are problem documents or pages."""
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert "Authorization, Cookie" in response.headers["vary"]
    if response.status_code == 401 and "/api/" in route:
        assert response.headers["www-authenticate"] == "Bearer"
    if response.status_code >= 400 and re.search("/api/|/metrics|/healthz", route):
        assert response.headers["content-type"] == "application/problem+json"
        assert response.json()["status"] == response.status_code
    if response.request.headers.get("authorization") and "/api/" in route:
        assert response.headers["cache-control"] == "private, no-store"


def test_all_invalid_tokens_get_the_same_response(live_server):
    ended = live_server.join("Ended")[1]
    live_server.call("POST", "/boards/first/team/token", ended)
    body = live_server.call("POST", "/boards/first/invitations", live_server.organiser).json()
    invitation = body["invitation"]
    tokens = [
        "wrong", "lb_team_" + "A" * 43, ended, join_another_board(live_server), invitation,
        "x" * 5000, "a b c",
    ]  # fmt: skip
    responses = [live_server.call("GET", "/boards/first/team", token) for token in tokens]
    responses += [
        live_server.call("GET", "/boards/first/team", headers={"Authorization": header})
        for header in ("Basic YTpi", "Bearer", "bearer lb_team_x", "lb_team_x")
    ]
    first = responses[0]
    for response in responses:
        assert response.status_code == 401
        assert response.content == first.content
        assert {*response.headers} == {*first.headers}


@pytest.mark.parametrize("path_end", ["", "/team", "/leaderboard", "/tokens"])
def test_an_unknown_board_is_404_whatever_the_token(live_server, path_end):
    """A mistyped name is not blamed on the token, and the response reveals no token as valid."""
    tokens = [live_server.join("Ada")[1], live_server.organiser]
    path = f"/boards/no-such-board{path_end}"
    responses = [live_server.call("GET", path, token) for token in (*tokens, "lb_team_wrong", None)]
    assert {response.status_code for response in responses} == {404}
    assert len({response.content for response in responses}) == 1
    assert responses[0].json()["detail"] == "There is no such board."
