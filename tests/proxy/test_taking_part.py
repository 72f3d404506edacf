"""Taking part through nginx, over TLS, below a prefix: by page, by program and in a shell."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from ladderboard.client import AsyncClient, Client, parse_address
from ladderboard.errors import InvalidPredictions, ServerUnreachable
from support.processes import free_port


@pytest.fixture
def trusting_site(site, isolated_home, monkeypatch):
    """Trust the proxy's certificate authority, as a shell with SSL_CERT_FILE does."""
    monkeypatch.setenv("SSL_CERT_FILE", site.authority)
    return site


def test_submitting_by_page(site, predict):
    token = site.team("By page")
    with site.browser() as browser:
        before = browser.get("/login")
        assert "; Path=/ladder;" in before.headers["set-cookie"]
        assert "; Secure" in before.headers["set-cookie"]
        response = site.sign_in(browser, token, next="/boards/first/submit")
        assert (response.status_code, response.headers["location"]) == (
            303,
            "/ladder/boards/first/submit",
        )
        cookie = response.headers["set-cookie"]
        for part in ("HttpOnly", "Path=/ladder", "SameSite=lax", "Secure"):
            assert part in cookie.split("; ")
        page = browser.get("/boards/first/submit").text
        (action,) = re.findall(r'action="(/ladder/boards/first/submit[?]csrf=[^"]+)"', page)
        file = {"file": ("predictions.csv", predict(400, 100), "text/csv")}
        same_origin = {"Origin": site.origin, "Sec-Fetch-Site": "same-origin"}
        answer = browser.post(site.origin + action, files=file, headers=same_origin)
        assert answer.status_code == 200, answer.text
        assert re.search(r"\d+ submissions left", answer.text)
        (receipt,) = set(re.findall(r'href="(/ladder/boards/first/receipts/\w+)"', answer.text))
        assert browser.get(site.origin + receipt).json()["entry"]
        (word,) = set(re.findall(r'name="csrf" value="([^"]+)"', answer.text))
        ended = browser.post("/session/end", data={"csrf": word})
        assert ended.headers["location"] == "/ladder/"
        assert "; Path=/ladder;" in ended.headers["set-cookie"]
        assert not [
            stored for stored in browser.cookies.jar if stored.name == "ladderboard_session"
        ]


def test_submitting_in_python(trusting_site, predict):
    token = trusting_site.team("In Python")
    with Client(trusting_site.url, token) as client:
        assert client.url == trusting_site.url
        reply = client.submit("first", predict(400, 50), message="through a proxy")
        assert reply.improved
        assert [submission.id for submission in client.submissions("first")] == [reply.id]
        assert (
            client.receipts_file("first").parent.name
            == parse_address(trusting_site.url).folder_name
        )
        assert client.team("first").name == "In Python"
        assert len(list(client.leaderboard("first"))) >= 1

    async def ask():
        async with AsyncClient(trusting_site.url, token) as client:
            return (await client.board("first")).slug

    assert asyncio.run(ask()) == "first"


def test_submitting_in_a_shell(site, predict):
    token, page = site.team("In a shell"), f"{site.url}/boards/first"
    (site.folder / "predictions.csv").write_bytes(predict(400, 40))
    done = site.program("login", page, stdin=token)
    assert done.returncode == 0, done.stderr
    config = (site.folder / "ladderboard/config.toml").read_text()
    assert f'[servers."{site.url}"]' in config
    done = site.program("submit", "first", "-f", "predictions.csv", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["improved"] is True
    # By its address it is the same board, and the same question.
    done = site.program("submit", page, "-f", "predictions.csv", "--json")
    assert json.loads(done.stdout)["again"] is True


def test_a_large_submission(trusting_site, predict):
    body = predict(200_000, 500)
    assert len(body) > 2 * 2**20  # more than nginx takes by itself
    with Client(trusting_site.url, trusting_site.team("Large", "large")) as client:
        assert client.submit("large", body).improved


def test_the_boards_size_limit_is_reported_by_the_server(trusting_site):
    token = trusting_site.team("Too large", "small")
    with (
        Client(trusting_site.url, token) as client,
        pytest.raises(InvalidPredictions, match="larger than 20 kB"),
    ):
        client.submit("small", b"id,prediction\n" + b"x" * 5_000_000)


@pytest.mark.parametrize("good", [True, False])
@pytest.mark.parametrize("sized", [True, False])
def test_a_client_refused_while_sending_gets_the_reason(site, good, sized):
    """nginx may answer 502 if the server closes during an upload; so this tries many times."""
    token = site.team(f"Sends on {good} {sized}", "small") if good else "lb_team_wrong"
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "text/csv"}
    expected = (413, "too_large") if good else (401, "no_token")
    for _ in range(20):
        pieces = (b"x" * 2**16 for _ in range(32))
        body = b"".join(pieces) if sized else pieces
        # A connection of its own: nginx may close one on which it was not heard to the end.
        with site.browser(address="127.0.0.5") as browser:
            response = browser.post(
                "/api/v1/boards/small/submissions", content=body, headers=headers
            )
        assert response.status_code != 502
        assert (response.status_code, response.json()["code"]) in {expected, (429, "rate")}


def test_a_size_limit_of_the_proxy_is_reported_as_such(
    trusting_site, another_proxy, predict, monkeypatch
):
    narrow = another_proxy({"client_max_body_size 0;": "client_max_body_size 1m;"})
    token = trusting_site.team("Narrow", "large")
    monkeypatch.setenv("SSL_CERT_FILE", narrow.authority)
    url = narrow.origin + "/ladder"
    with Client(url, token) as client:
        with pytest.raises(ServerUnreachable, match=r"A proxy before the server .* 413"):
            client.submit("large", predict(200_000, 600))
        assert client.team("large").name == "Narrow"


def test_an_unreachable_server_is_502(trusting_site, another_proxy, monkeypatch):
    alone = another_proxy({}, to=free_port())
    with alone.browser() as browser:
        response = browser.get("/boards/first")
        assert response.status_code == 502
        assert "Bad Gateway" in response.text
    monkeypatch.setenv("SSL_CERT_FILE", alone.authority)
    with (
        Client(alone.origin + "/ladder", "lb_team_x", retries=1) as client,
        pytest.raises(ServerUnreachable, match="status 502"),
    ):
        client.board("first")
