"""A server below a path, without a proxy before it: what it understands, and what it says."""

import httpx
import pytest
from fastapi.routing import APIRoute

from ladderboard.client._address import RESERVED_PATHS
from ladderboard.errors import InvalidSetting
from ladderboard.server import Settings
from support.server.live_server import make_predictions


@pytest.fixture
def prefixed_server(make_server):
    """A server at http://localhost/ladder, with one board."""
    live_server = make_server(url="http://localhost/ladder")
    live_server.create_board()
    return live_server


def test_no_prefix_can_be_mistaken_for_a_place_of_the_server(live_server):
    paths = {each.path for each in live_server.app.routes if isinstance(each, APIRoute)}
    assert {each.split("/")[1] for each in paths} - {""} == RESERVED_PATHS
    for own in RESERVED_PATHS:
        with pytest.raises(InvalidSetting, match="cannot contain"):
            Settings(url=f"https://example.org/{own}")


@pytest.mark.parametrize("prefix", ["", "/ladder"])
def test_the_prefix_may_be_on_or_off(prefixed_server, prefix):
    board = f"{prefix}/boards/{prefixed_server.slug}"
    for path in (f"{prefix}/", board, f"{board}/join", f"{prefix}/openapi.json"):
        assert prefixed_server.client.get(path).status_code == 200
    page = prefixed_server.client.get(board).text
    assert f'href="/ladder/boards/{prefixed_server.slug}/join"' in page
    assert f"ladderboard submit http://localhost/ladder/boards/{prefixed_server.slug} -f" in page
    # A refusal is a page for people, and a document for programs, in either case.
    assert "<h1>" in prefixed_server.client.get(f"{prefix}/nothing").text
    assert prefixed_server.client.get(f"{prefix}/api/nothing").json()["code"] == "not_found"


def test_it_is_taken_off_once_and_whole(prefixed_server):
    assert prefixed_server.client.get("/ladder").status_code == 200
    for path in ("/ladder/ladder/", "/ladderx/", "/LADDER/", "/ladder/ladder/boards", "/x/ladder/"):
        assert prefixed_server.client.get(path).status_code == 404


def test_what_leads_on(prefixed_server):
    _, token = prefixed_server.join("Ada")
    said = prefixed_server.submit(token, make_predictions(3))
    place = f"/ladder/api/v1/boards/{prefixed_server.slug}/submissions/{said.json()['id']}"
    assert said.headers["location"] == place
    prefixed_server.submit(prefixed_server.join("Bob")[1], make_predictions(9))
    link = prefixed_server.call("GET", "/boards/first/leaderboard?limit=1").headers["link"]
    assert link.startswith(
        f"</ladder/api/v1/boards/{prefixed_server.slug}/leaderboard?limit=1&cursor="
    )
    with httpx.Client(base_url=f"{prefixed_server.url}/ladder") as browser:
        public = browser.get(f"/boards/{prefixed_server.slug}/organise")
        assert f'href="/ladder/login?next=/boards/{prefixed_server.slug}/organise"' in public.text
        signed = prefixed_server.sign_in(browser, token)
        assert signed.headers["location"] == f"/ladder/boards/{prefixed_server.slug}"
        assert "; Path=/ladder;" in signed.headers["set-cookie"]
        assert browser.get(f"/boards/{prefixed_server.slug}/organise").status_code == 403


def test_the_log_and_the_numbers_name_routes_without_it(prefixed_server):
    prefixed_server.client.get(f"/ladder/boards/{prefixed_server.slug}")
    assert '"route": "/boards/{board}"' in prefixed_server.log.getvalue()
    assert "ladder/" not in prefixed_server.log.getvalue()
