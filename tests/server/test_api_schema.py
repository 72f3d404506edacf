"""The server behaves as /openapi.json describes: schemathesis with all checks, as every role."""

import json
import subprocess
import sys

import pytest

from ladderboard.board import VerifiedIdentity
from ladderboard.server._auth import SESSION_COOKIE
from support.server.live_server import make_predictions

# A schema cannot say that a file must have a row for every id, or what can be amended.
CONFIG = """
[checks]
positive_data_acceptance.expected-statuses = [
  "2xx", "3xx", "401", "403", "404", "409", "422", "429", "5xx",
]
[parameters]
"path.board" = "{board}"
"path.team" = "{team}"
"path.submission" = "{submission}"
"path.number" = 1
"""


def run_schemathesis(live_server, tmp_path, caller, *, examples, options=(), headers=None):
    """Run schemathesis and return its output."""
    team, team_token = live_server.join("Alpha")
    token = team_token if caller == "team" else caller
    submission = live_server.submit(team_token, make_predictions(30)).json().get("id", "0" * 16)
    config = tmp_path / "schemathesis.toml"
    config.write_text(CONFIG.format(board=live_server.slug, team=team, submission=submission))
    command = [
        sys.executable, "-m", "schemathesis.cli", "--config-file", config, "run",
        f"{live_server.url}/openapi.json", "--checks", "all", "--max-examples", str(examples),
        "--generation-deterministic", "--no-color", *options,
    ]  # fmt: skip
    headers = headers or ({} if token is None else {"Authorization": f"Bearer {token}"})
    for name, value in headers.items():
        command += ["--header", f"{name}: {value}"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]
    return result.stdout


def test_every_reply_is_as_described(empty_server, database, tmp_path):
    live_server = empty_server
    live_server.create_board(teams=100, questions=10_000)
    token = "team" if database == "postgres" else live_server.organiser
    output = run_schemathesis(
        live_server, tmp_path, token, examples=2, options=["--phases", "coverage"]
    )
    paths = live_server.call("GET", "/openapi.json").json()["paths"].values()
    assert f"Tested: {sum(len(methods) for methods in paths)}" in output
    assert '"status": 500' not in live_server.log.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "visibility"),
    [("public", "hidden"), ("team", "anonymous"), ("evaluator", "frozen"), ("organiser", "public")],
)
def test_every_reply_is_as_described_at_length(empty_server, tmp_path, role, visibility):
    live_server = empty_server
    live_server.create_board(teams=1000, questions=100_000)
    tokens = {"public": None, "team": "team", "organiser": live_server.organiser}
    token = (
        live_server.issue_token("evaluator", live_server.slug)
        if role == "evaluator"
        else tokens[role]
    )
    live_server.amend(visibility=visibility)
    run_schemathesis(
        live_server,
        tmp_path,
        token,
        examples=60,
        options=["--exclude-path-regex", "close|/boards/{board}/erasure"],
    )
    assert '"status": 500' not in live_server.log.getvalue()


def session_headers(live_server, board, person):
    """Return the headers of a person who has signed in."""
    sessions = live_server.app.state.context.sessions
    cookie = sessions.start(board.identities.sign_in(person, seconds=3600)).cookie
    token = sessions._csrf_token_for(cookie)
    return {"Cookie": f"{SESSION_COOKIE}={cookie}", "X-CSRF-Token": token}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("listing", "role"),
    [
        ("listed", "public"), ("listed", "person"), ("listed", "organiser"),
        ("members", "public"), ("members", "team"), ("members", "organiser"),
    ],
)  # fmt: skip
def test_every_reply_about_people_is_as_described_at_length(empty_server, tmp_path, role, listing):
    live_server = empty_server
    rules = {"registration": "sign_in", "terms": "Be fair.", "data": "{members: true}"}
    if listing == "members":
        rules |= {"registration": "organiser", "listing": "members"}
    board = live_server.create_board(teams=1000, questions=100_000, **rules)
    headers = None
    if role == "person":
        person = VerifiedIdentity("example", "https://example.edu", "1", "Ada", "ada@example.edu")
        hashed = board.identities.sign_in(person, seconds=3600)
        board.identities.register(
            live_server.boards.caller_by_token_hash(hashed, board.slug), "Ada's"
        )
        headers = session_headers(live_server, board, person)
    # Without a token a board for members does not exist: 404, not 401.
    unchecked = ["--exclude-checks", "ignored_auth"] if listing == "members" else []
    run_schemathesis(
        live_server,
        tmp_path,
        {"organiser": live_server.organiser, "team": "team"}.get(role),
        examples=20,
        options=[
            *unchecked,
            "--include-path-regex",
            "team|terms|registration|people|organiser|webhooks|data|invitation",
            "--exclude-path-regex",
            "/boards/{board}/erasure|/members/{number}|/sessions",
        ],
        headers=headers,
    )
    assert '"status": 500' not in live_server.log.getvalue()


def test_every_route_is_described_with_its_refusals(live_server):
    body = live_server.call("GET", "/openapi.json").json()
    routes = {
        (method.lower(), route.path)
        for route in live_server.app.routes
        if getattr(route, "include_in_schema", False)
        for method in route.methods
    }
    described = {(method, path) for path, methods in body["paths"].items() for method in methods}
    assert routes == described
    for method, path in described:
        operation = body["paths"][path][method]
        assert "security" in operation, path
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                assert list(response["content"]) == ["application/problem+json"], (path, status)
    assert "HTTPValidationError" not in json.dumps(body)


def test_operations_have_short_names_and_one_tag(live_server):
    paths = live_server.call("GET", "/openapi.json").json()["paths"].values()
    operations = [method for methods in paths for method in methods.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    assert {"submit", "leaderboard", "list_boards", "get_team", "list_submissions"} < set(names)
    assert not [name for name in names if len(name) > 20 or "api_v1" in name]
    tags = {operation["operationId"]: operation["tags"] for operation in operations}
    assert (tags["submit"], tags["leaderboard"]) == (["submissions"], ["boards"])
    assert all(len(tag_list) == 1 for tag_list in tags.values())


def test_keys_that_few_boards_have_are_described(live_server):
    live_server.create_board(
        "rare", mechanism=None, accounts=1, protection="strict", columns="{prediction: guess}"
    )
    described = live_server.call("GET", "/boards/rare").json()
    schema = live_server.call("GET", "/openapi.json").json()["components"]["schemas"]
    properties = schema["BoardSummary"]["properties"]
    assert {"accounts", "protection", "columns"} <= set(described) <= set(properties)
