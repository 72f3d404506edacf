"""A server below a path prefix, without a proxy: which paths it accepts, and its links."""

import httpx
import pytest
from fastapi.routing import APIRoute

from ladderboard.client._config import RESERVED_PATHS
from ladderboard.errors import InvalidSetting
from ladderboard.server import Settings
from support.server.live_server import make_predictions


@pytest.fixture
def prefixed_server(make_server):
    """A server at http://localhost/ladder, with one board."""
    live_server = make_server(url="http://localhost/ladder")
    live_server.create_board()
    return live_server


def test_a_prefix_cannot_be_a_path_of_the_server(live_server):
    paths = {route.path for route in live_server.app.routes if isinstance(route, APIRoute)}
    assert {path.split("/")[1] for path in paths} - {""} == RESERVED_PATHS
    for name in RESERVED_PATHS:
        with pytest.raises(InvalidSetting, match="cannot contain"):
            Settings(url=f"https://example.org/{name}")


@pytest.mark.parametrize("prefix", ["", "/ladder"])
def test_paths_work_with_and_without_the_prefix(prefixed_server, prefix):
    board = f"{prefix}/boards/{prefixed_server.slug}"
    for path in (f"{prefix}/", board, f"{board}/join", f"{prefix}/openapi.json"):
        assert prefixed_server.client.get(path).status_code == 200
    page = prefixed_server.client.get(board).text
    assert f'href="/ladder/boards/{prefixed_server.slug}/join"' in page
    page = prefixed_server.client.get(f"{board}/submit").text
    assert f"ladderboard submit http://localhost/ladder/boards/{prefixed_server.slug} -f" in page
    # A refusal is an HTML page or a problem document in either case.
    assert "<h1>" in prefixed_server.client.get(f"{prefix}/nothing").text
    assert prefixed_server.client.get(f"{prefix}/api/nothing").json()["code"] == "not_found"


def test_the_prefix_is_removed_once(prefixed_server):
    assert prefixed_server.client.get("/ladder").status_code == 200
    for path in ("/ladder/ladder/", "/ladderx/", "/LADDER/", "/ladder/ladder/boards", "/x/ladder/"):
        assert prefixed_server.client.get(path).status_code == 404


def test_links_and_redirects_have_the_prefix(prefixed_server):
    _, token = prefixed_server.join("Ada")
    response = prefixed_server.submit(token, make_predictions(3))
    location = f"/ladder/api/v1/boards/{prefixed_server.slug}/submissions/{response.json()['id']}"
    assert response.headers["location"] == location
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


def test_the_log_has_routes_without_the_prefix(prefixed_server):
    prefixed_server.client.get(f"/ladder/boards/{prefixed_server.slug}")
    assert '"route": "/boards/{board}"' in prefixed_server.log.getvalue()
    assert "ladder/" not in prefixed_server.log.getvalue()
