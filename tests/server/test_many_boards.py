"""Long lists of boards come in pages."""

import re

import pytest

from ladderboard.client import Client
from ladderboard.client import _requests as requests
from ladderboard.server._pages import _board as page


@pytest.fixture
def live_server(make_server):
    """A server of its own, with one board."""
    server = make_server()
    server.create_board()
    return server


@pytest.fixture
def boards(live_server):
    """The slugs of all boards, oldest first, after adding six, one of them closed."""
    slugs = [f"board-{index}" for index in range(6)]
    for slug in slugs:
        live_server.create_board(slug)
    live_server.boards.open("board-0").closer.close(
        live_server.boards.caller_by_token(live_server.organiser)
    )
    return [live_server.slug, *slugs]


def test_pages_of_the_list_hold_every_board_once(live_server, boards):
    pages, path = [], "/boards?limit=3"
    while path is not None:
        reply = live_server.call("GET", path)
        body = reply.json()
        pages += [[board["slug"] for board in body["boards"]]]
        assert ("link" in reply.headers) == (body["next"] is not None)
        path = None
        if body["next"] is not None:
            path = f"/boards?limit=3&cursor={body['next']}"
            assert reply.headers["link"].endswith(f'{path}>; rel="next"')
    assert pages == [boards[:3], boards[3:6], boards[6:]]
    all_boards = live_server.call("GET", "/boards?limit=7").json()
    assert ([board["slug"] for board in all_boards["boards"]], all_boards["next"]) == (boards, None)


@pytest.mark.parametrize("cursor", ["nobody", "", "%00", "1", "' OR 1=1 --"])
def test_an_invalid_cursor_is_refused(live_server, cursor):
    assert live_server.call("GET", f"/boards?cursor={cursor}").status_code == 422


def test_the_client_reads_all_pages(live_server, boards, monkeypatch):
    monkeypatch.setattr(requests, "_BOARDS_PAGE_SIZE", 3)
    with Client(url=live_server.url) as client:
        assert [board.slug for board in client.boards()] == boards


def test_open_boards_come_first(live_server, boards, monkeypatch):
    monkeypatch.setattr(page, "_BOARDS_PER_PAGE", 4)
    pages, path = [], "/"
    while path is not None:
        text = live_server.client.get(path).text
        pages.append(re.findall(r'<h2><a href="/boards/([^"]+)"', text))
        next_link = re.search(r'href="(\?page=\d+)">Next page', text)
        path = None if next_link is None else f"/{next_link[1]}"
    assert [len(slugs) for slugs in pages] == [4, 3]
    assert [*pages[0], *pages[1]] == [*(board for board in boards if board != "board-0"), "board-0"]
    assert "There are no boards on this page" in live_server.client.get("/?page=9").text


@pytest.mark.parametrize("number", ["0", "-1", "x", "9" * 9, "²"])
def test_an_invalid_page_number_shows_the_first_page(live_server, number):
    assert f'href="/boards/{live_server.slug}"' in live_server.client.get(f"/?page={number}").text
