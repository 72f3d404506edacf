"""What a proxy is believed, what a client is not, and what stays as it is on the way."""

from __future__ import annotations

import re
import socket

import pytest

APPENDING = {
    "X-Forwarded-For $remote_addr;": "X-Forwarded-For $proxy_add_x_forwarded_for;",
}
BAD = {"Authorization": "Bearer lb_team_wrong"}
WHO = "/api/v1/boards/first/team"


def fail(browser, times, **headers):
    """Show a wrong token so often, with other headers each time; return the last status."""
    for index in range(times):
        forged = {name.replace("_", "-"): value.format(index) for name, value in headers.items()}
        status = browser.get(WHO, headers={**BAD, **forged}).status_code
    return status


@pytest.mark.parametrize("changes", [{}, APPENDING], ids=["set", "appended"])
def test_a_forged_address_evades_no_limit(site, another_proxy, changes):
    """Failed tokens count by the address of the connection to nginx, not by a header."""
    other = another_proxy(changes)
    mine = "127.0.0.2" if changes else "127.0.0.3"
    forged = {
        "X_Forwarded_For": "192.0.2.{}",
        "X_Real_IP": "192.0.2.{}",
        "Forwarded": "for=192.0.2.{}",
    }
    with other.browser(address=mine) as cheat:
        assert fail(cheat, 40, **forged) == 429
        assert "retry-after" in cheat.get(WHO, headers=BAD).headers
    # Nobody else is kept waiting, at an address of their own or with a good token.
    with other.browser(address="127.0.0.9") as honest:
        assert honest.get(WHO, headers=BAD).status_code == 401
    with other.browser(address=mine) as cheat:
        response = cheat.get(
            "/api/v1/boards", headers={"Authorization": f"Bearer {site.organiser}"}
        )
        assert response.status_code == 200


def test_with_appended_headers_a_client_on_the_proxys_host_can_forge_its_address(
    site, another_proxy
):
    """As the page says; and where it is set, as on the page, it cannot."""
    with another_proxy(APPENDING).browser(address="127.0.0.1") as cheat:
        assert fail(cheat, 40, X_Forwarded_For="192.0.2.{}") == 401
    with site.browser(address="127.0.0.1") as cheat:
        assert fail(cheat, 40, X_Forwarded_For="192.0.2.{}") == 429


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-Host": "evil.example"},
        {"X-Forwarded-Prefix": "/evil"},
        {"X-Forwarded-Proto": "http"},
        {"X-Forwarded-Port": "1"},
        {"X-Script-Name": "/evil", "X-Original-URL": "/evil", "X-Rewrite-URL": "/evil"},
        {"Forwarded": "host=evil.example;proto=http"},
        {"X-Forwarded-Server": "evil.example", "X-HTTP-Host-Override": "evil.example"},
    ],
    ids=lambda headers: next(iter(headers)),
)
def test_forwarded_headers_of_clients_are_ignored(site, headers):
    with site.browser() as browser:
        plain, claimed = browser.get("/login"), browser.get("/login", headers=headers)
        word = re.compile(r'name="csrf" value="[^"]+"')
        assert word.sub("", claimed.text) == word.sub("", plain.text)
        first = browser.get("/boards/first")
        assert browser.get("/boards/first", headers=headers).text == first.text
    with site.browser() as browser:
        cookie = browser.get("/login", headers=headers).headers["set-cookie"]
        assert "; Path=/ladder;" in cookie
        assert "; Secure" in cookie


def test_repeated_host_names_and_absolute_targets(site):
    lines = [
        "GET /ladder/boards/first HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n",
        "GET https://evil.example/ladder/boards/first HTTP/1.1\r\nHost: evil.example\r\n",
        "GET /ladder/boards/first HTTP/1.0\r\n",
    ]
    for line in lines:
        response = site.raw(f"{line}Connection: close\r\n\r\n")
        assert re.match(r"HTTP/1.1 (400|403) ", response), response[:200]
        assert "evil" not in response


def test_plain_http_redirects_to_https(site):
    with socket.create_connection(("127.0.0.1", site.nginx.plain_port)) as line:
        line.sendall(b"GET /ladder/boards/first?a=b HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        response = line.recv(4096).decode()
    assert response.startswith("HTTP/1.1 301 ")
    assert "\r\nLocation: https://boards.example.org/ladder/boards/first?a=b\r\n" in response


def test_headers_and_compression_are_those_of_the_server(site):
    with site.browser() as browser:
        response = browser.get("/boards/first", headers={"Accept-Encoding": "gzip"})
        assert response.headers["content-encoding"] == "gzip"  # by us: everybody's page
        for name in ("content-security-policy", "x-content-type-options", "referrer-policy"):
            assert len(response.headers.get_list(name)) == 1
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert response.headers["x-request-id"]
        login = browser.get("/login", headers={"Accept-Encoding": "gzip"})
        assert "content-encoding" not in login.headers  # it holds the word of its form
        site.sign_in(browser, site.organiser)
        private_page = browser.get("/boards/first/organise", headers={"Accept-Encoding": "gzip"})
        assert "content-encoding" not in private_page.headers
