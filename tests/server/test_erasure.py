"""Erasure over HTTP: no page, reply, feed, export, dump, bundle or log line holds the name."""

import contextlib
import json
import re

import pytest

from ladderboard.board import Caller, Role, VerifiedIdentity, write_board_bundle
from ladderboard.ledger import SecretKey
from ladderboard.server import Rate, write_site
from ladderboard.server._auth import SESSION_COOKIE
from ladderboard.server._pages._static import wheel_url
from ladderboard.verify import verify_bundle
from support.server.live_server import assert_problem, csrf_token, make_predictions
from support.traces import as_bytes, open_dump, traces_in_files, traces_in_tables

ORGANISER = Caller(Role.ORGANISER)
TEAM, MESSAGE = "Quixotic Walruses", "momentum as Zelda said"
ZELDA = VerifiedIdentity(
    "example", "https://example.edu", "subject-7431", "Zelda Quibble", "zelda.quibble@example.edu"
)
SQLITE = pytest.mark.parametrize("database", ["sqlite"])
WORDS = [TEAM, MESSAGE, ZELDA.name, ZELDA.mail, ZELDA.subject]


@pytest.fixture
def live_server(make_server):
    """A server with a database of its own: all its tables are searched."""
    unlimited = Rate(10**6, 1.0)
    return make_server(failures=unlimited, registrations=unlimited)


@pytest.fixture
def browse(live_server):
    """Return a function that opens a browser, perhaps with a person's session."""
    with contextlib.ExitStack() as exit_stack:

        def open_browser(hashed=None):
            browser = exit_stack.enter_context(live_server.browser())
            if hashed is not None:
                sessions = live_server.app.state.context.sessions
                browser.cookies.set(SESSION_COOKIE, sessions.start(hashed).cookie)
            return browser

        yield open_browser


@pytest.fixture
def board(live_server):
    """A board with two teams that have submitted; one has a token, Zelda's a person."""
    board = live_server.create_board(
        registration="sign_in", sign_in="{domains: [example.edu]}", finals="{selections: 1}"
    )
    hashed = board.identities.sign_in(ZELDA, seconds=3600)
    caller = live_server.boards.caller_by_token_hash(hashed, board.slug)
    live_server.team = board.identities.register(caller, TEAM)
    _, live_server.other = live_server.join("Others")
    for token, errors, query in (
        (live_server.team.token, 30, f"?message={MESSAGE}"),
        (live_server.other, 60, ""),
    ):
        reply = live_server.submit(token, make_predictions(errors, errors), query=query)
        assert reply.status_code == 201, reply.text
    return board


@pytest.fixture
def zelda(board, browse):
    """Zelda's browser, signed in."""
    return browse(board.identities.sign_in(ZELDA, seconds=3600))


def everything_shown(live_server, board):
    """Yield what each role gets from each route that can be read."""
    submission = board.as_seen_by(ORGANISER).submissions(live_server.team.id)[0]["id"]
    names = {"install": wheel_url().rpartition("/")[2], "static": "style.css", "data": "none"}
    for route in live_server.app.routes:
        if "GET" not in (route.methods or ()):
            continue
        path = route.path.format(
            board=board.slug, team=live_server.team.id, submission=submission, number=1,
            token="0" * 16, provider="none", section="access",
            name=names.get(route.path.split("/")[1], names["data"]),
        )  # fmt: skip
        for role, token in (("public", None), ("organiser", live_server.organiser)):
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            live_server.client.cookies.clear()
            reply = live_server.client.get(path, headers=headers)
            yield f"{role} {path}", reply.content + json.dumps(dict(reply.headers)).encode()


def traces_shown(live_server, board):
    words = {*as_bytes(WORDS), b"Zelda", b"Walrus"}
    return {
        place
        for place, content in everything_shown(live_server, board)
        if any(word in content for word in words)
    }


def erased_in_log(server):
    """Return board, team and person of the log's lines about erasures."""
    lines = [json.loads(line) for line in server.log.getvalue().splitlines()]
    erased = [line for line in lines if line["event"] == "erased"]
    assert all(re.fullmatch("[0-9a-f]{16}", line["request"]) for line in erased)
    return [(line["board"], line["team"], line["person"]) for line in erased]


def erase_on_page(browser, board, **fields):
    path = f"/boards/{board.slug}/erase"
    return browser.post(path, data={"csrf": csrf_token(browser.get(path).text), **fields})


def test_nothing_that_is_shown_or_written_holds_an_erased_name(
    live_server, board, zelda, browse, tmp_path
):
    before = traces_shown(live_server, board)
    slug, team = board.slug, live_server.team.id
    for place in (
        f"public /boards/{slug}", f"public /boards/{slug}/standings.csv",
        f"public /boards/{slug}/standings.json", f"public /api/v1/boards/{slug}/leaderboard",
        f"public /boards/{slug}/records.atom", f"organiser /boards/{slug}/organise/teams",
        f"organiser /boards/{slug}/organise/people", f"organiser /boards/{slug}/organise/activity",
        f"organiser /boards/{slug}/organise/teams/{team}",
        f"organiser /api/v1/boards/{slug}/registrations", f"organiser /api/v1/boards/{slug}/teams",
    ):  # fmt: skip
        assert place in before
    reply = erase_on_page(zelda, board, confirm="yes")
    assert reply.status_code == 200
    assert f"called <strong>Team {team[:4]}</strong>" in reply.text
    assert traces_shown(live_server, board) == set()
    assert traces_in_tables(board, WORDS) == set()
    assert live_server.call("POST", "/boards/first/close", live_server.organiser).status_code == 200
    assert traces_shown(live_server, board) == set()
    key = SecretKey.make()
    organiser = browse()
    live_server.sign_in(organiser, live_server.organiser)
    path = f"/boards/{slug}/organise"
    form = {"csrf": csrf_token(organiser.get(path).text), "do": "dump"}
    dump = organiser.post(path, data={**form, "public_key": key.public.text})
    assert dump.headers["content-type"] == "application/octet-stream"
    (tmp_path / "dump").write_bytes(dump.content)
    (tmp_path / "dump.tar").write_bytes(open_dump(tmp_path / "dump", key))
    write_site(board, tmp_path / "site", labels=True, submissions=True)
    head = write_board_bundle(board, tmp_path / "bundle", labels=True, submissions=True)
    assert verify_bundle(tmp_path / "bundle", heads=[head.hash.hex()]).risks == 2
    (tmp_path / "log").write_text(live_server.log.getvalue())
    assert "/boards/{board}/erase" in live_server.log.getvalue()
    assert erased_in_log(live_server) == [(slug, team, 1)]
    assert traces_in_files(tmp_path, [*WORDS, "Zelda", "Walrus"]) == set()
    assert f"Team {team[:4]}" in (tmp_path / "site" / "standings.csv").read_text()


@SQLITE
def test_the_page_says_what_goes_and_what_stays(live_server, board, zelda, browse):
    path = f"/boards/{board.slug}/erase"
    assert "Sign in first" in browse().get(path).text
    page = zelda.get(path).text
    pseudonym = f"Team {live_server.team.id[:4]}"
    for words in (TEAM, ZELDA.name, ZELDA.mail, pseudonym, "Copies made before", "keyed hashes"):
        assert words in page
    assert "An older version closed it" not in page
    link = f'href="{path}">Remove my name and identity</a>'
    assert link in zelda.get(f"/boards/{board.slug}/submit").text
    refused = erase_on_page(zelda, board)
    assert refused.status_code == 422
    assert "Tick the box" in refused.text
    assert board.as_seen_by(ORGANISER).team(live_server.team.id)["name"] == TEAM
    done = erase_on_page(zelda, board, confirm="yes")
    assert TEAM not in done.text
    assert f'{SESSION_COOKIE}=""' in done.headers["set-cookie"]
    assert "Sign in first" in zelda.get(path).text


@SQLITE
def test_a_team_erases_itself_with_its_token(live_server, board):
    _, token = live_server.join("Solo")
    reply = live_server.call("POST", "/boards/first/erasure", token)
    assert set(reply.json()) == {"team", "name", "kept_in_ledger", "scrubbed"}
    assert reply.json()["name"] == f"Team {reply.json()['team'][:4]}"
    assert erased_in_log(live_server) == [(board.slug, reply.json()["team"], None)]
    assert live_server.call("GET", "/boards/first/team", token).status_code == 401
    reply = live_server.call("POST", "/boards/first/erasure", live_server.team.token)
    assert_problem(reply, 409, "taken", "Each must sign in")


@SQLITE
def test_organisers_erase_people_and_teams_on_their_pages(live_server, board, browse):
    person = ZELDA._replace(subject="9", name="Nina", mail="nina@example.edu")
    board.identities.sign_in(person, seconds=60)
    organiser = browse()
    live_server.sign_in(organiser, live_server.organiser)
    path = f"/boards/{board.slug}/organise"
    page = organiser.get(f"{path}/people").text
    assert "Nina" in page
    nina = next(
        person["number"]
        for person in board.identities.registrations(ORGANISER)["registrations"]
        if person["name"] == "Nina"
    )
    form = {"csrf": csrf_token(page), "do": "forget"}
    reply = organiser.post(path, data={**form, "person": str(nina)}, follow_redirects=True)
    assert "The name and identity are removed for good" in reply.text
    assert "Nina" not in reply.text
    path += f"/teams/{live_server.team.id}"
    assert "Use this when the team asks for it" in organiser.get(path).text
    reply = organiser.post(path, data=form, follow_redirects=True)
    assert "The name and identity are removed for good" in reply.text
    assert traces_shown(live_server, board) == set()
    assert traces_in_tables(board, [*WORDS, "Nina"]) == set()
    team = live_server.team.id
    assert erased_in_log(live_server) == [(board.slug, None, nina), (board.slug, team, None)]
