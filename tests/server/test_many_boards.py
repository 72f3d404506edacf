"""More boards than anybody reads at once: lists come in pages."""

import re

import pytest

from ladderboard.client import Client
from ladderboard.client import _requests as requests
from ladderboard.server._pages import _board as page


@pytest.fixture
def live_server(make_server):
    """A server that no other test has made boards on."""
    made = make_server()
    made.create_board()
    return made


@pytest.fixture
def boards(live_server):
    """Six boards more, one of which is closed; returns all, oldest first."""
    slugs = [f"board-{at}" for at in range(6)]
    for each in slugs:
        live_server.create_board(each)
    live_server.boards.open("board-0").closer.close(
        live_server.boards.caller_by_token(live_server.organiser)
    )
    return [live_server.slug, *slugs]


def test_pages_of_the_list_hold_every_board_once(live_server, boards):
    seen, path = [], "/boards?limit=3"
    while path is not None:
        reply = live_server.call("GET", path)
        said = reply.json()
        seen += [[each["slug"] for each in said["boards"]]]
        assert ("link" in reply.headers) == (said["next"] is not None)
        path = None
        if said["next"] is not None:
            path = f"/boards?limit=3&cursor={said['next']}"
            assert reply.headers["link"].endswith(f'{path}>; rel="next"')
    assert seen == [boards[:3], boards[3:6], boards[6:]]
    whole = live_server.call("GET", "/boards?limit=7").json()
    assert ([each["slug"] for each in whole["boards"]], whole["next"]) == (boards, None)


@pytest.mark.parametrize("cursor", ["nobody", "", "%00", "1", "' OR 1=1 --"])
def test_a_cursor_that_is_none_is_refused(live_server, cursor):
    assert live_server.call("GET", f"/boards?cursor={cursor}").status_code == 422


def test_the_client_reads_all_pages(live_server, boards, monkeypatch):
    monkeypatch.setattr(requests, "_BOARDS_PAGE_SIZE", 3)
    with Client(url=live_server.url) as client:
        assert [each.slug for each in client.boards()] == boards


def test_the_first_page_has_the_open_ones(live_server, boards, monkeypatch):
    monkeypatch.setattr(page, "_BOARDS_PER_PAGE", 4)
    seen, path = [], "/"
    while path is not None:
        text = live_server.client.get(path).text
        seen.append(re.findall(r'<h2><a href="/boards/([^"]+)"', text))
        found = re.search(r'href="(\?page=\d+)">Next page', text)
        path = None if found is None else f"/{found[1]}"
    assert [len(each) for each in seen] == [4, 3]
    assert [*seen[0], *seen[1]] == [*(each for each in boards if each != "board-0"), "board-0"]
    assert "There are no boards on this page" in live_server.client.get("/?page=9").text


@pytest.mark.parametrize("said", ["0", "-1", "x", "9" * 9, "²"])
def test_a_page_that_is_no_number_is_the_first(live_server, said):
    assert f'href="/boards/{live_server.slug}"' in live_server.client.get(f"/?page={said}").text
