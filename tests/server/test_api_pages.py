"""The pages: sessions, CSRF tokens in forms, and escaped text."""

import re

import pytest

from support.server.live_server import csrf_token, make_predictions

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


def test_signing_in_and_out(live_server, browser, team):
    response = live_server.sign_in(browser, team[1])
    assert (response.status_code, response.headers["location"]) == (
        303,
        f"/boards/{live_server.slug}",
    )
    cookie = response.headers["set-cookie"]
    assert re.search(r"HttpOnly; Max-Age=43200; Path=/; SameSite=lax", cookie)
    assert "Secure" not in cookie
    assert team[1] not in cookie
    page = browser.get(f"/boards/{live_server.slug}/submit")
    assert "Alpha" in page.text
    assert page.headers["cache-control"] == "private, no-store"
    assert browser.get(f"/api/v1/boards/{live_server.slug}/team").json()["name"] == "Alpha"
    ended = browser.post("/session/end", data={"csrf": csrf_token(page.text)})
    assert ended.status_code == 303
    assert browser.get(f"/api/v1/boards/{live_server.slug}/team").status_code == 401


def test_a_cookie_is_secure_where_the_request_is(make_server):
    live_server = make_server(secure=True)
    with live_server.browser() as browser:
        assert "Secure" in browser.get("/login").headers["set-cookie"]


@pytest.mark.parametrize("how", ["rotate", "revoke"])
def test_a_session_ends_with_its_token(live_server, browser, team, how):
    live_server.sign_in(browser, team[1])
    path = f"/api/v1/boards/{live_server.slug}/team"
    assert browser.get(path).status_code == 200
    if how == "rotate":
        new = live_server.call("POST", "/boards/first/team/token", team[1]).json()["token"]
        assert live_server.call("GET", "/boards/first/team", new).status_code == 200
    else:
        response = live_server.call(
            "DELETE", f"/boards/first/teams/{team[0]}/token", live_server.organiser
        )
        assert response.status_code == 204
    assert browser.get(path).status_code == 401
    assert live_server.call("GET", "/boards/first/team", team[1]).status_code == 401
    page = browser.get(f"/boards/{live_server.slug}/submit")  # it is public
    assert (page.status_code, "Alpha" in page.text) == (200, False)


def test_a_session_ends_after_twelve_hours(live_server, browser, team):
    live_server.sign_in(browser, team[1])
    path = f"/api/v1/boards/{live_server.slug}/team"
    cookie = browser.cookies["ladderboard_session"]
    live_server.clock.now += 12 * 3600 - 1
    assert browser.get(path, headers={"Cookie": f"ladderboard_session={cookie}"}).status_code == 200
    live_server.clock.now += 1
    assert browser.get(path, headers={"Cookie": f"ladderboard_session={cookie}"}).status_code == 401


def test_a_changed_cookie_is_refused(live_server, browser, team):
    live_server.sign_in(browser, team[1])
    cookie = browser.cookies["ladderboard_session"]
    browser.cookies.clear()
    for wrong in (cookie[:-1], cookie[1:], cookie + "A", "x", "." * 600):
        response = browser.get(
            f"/api/v1/boards/{live_server.slug}/team",
            headers={"Cookie": f"ladderboard_session={wrong}"},
        )
        assert response.status_code == 401


def test_a_token_in_the_header_precedes_the_cookie(live_server, browser, team):
    live_server.sign_in(browser, team[1])
    other_token = live_server.join("Beta")[1]
    path = f"/api/v1/boards/{live_server.slug}/team"
    assert (
        browser.get(path, headers={"Authorization": f"Bearer {other_token}"}).json()["name"]
        == "Beta"
    )
    assert browser.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_a_wrong_token_is_not_signed_in(live_server, browser):
    response = live_server.sign_in(browser, "lb_team_wrong")
    assert response.status_code == 401
    assert "ladderboard_session" not in browser.cookies
    assert "not valid here" in response.text


@pytest.mark.parametrize(
    ("target", "home"),
    [
        ("/boards/first/submit", False),
        ("//evil.example/boards/", True),
        ("https://evil.example", True),
        ("/boards/..//evil", True),
        ("/\\evil", True),
        ("/boards/%2e%2e/%2E./elsewhere", True),  # browsers read these as dots
        ("/boards/x\r\nX: y", True),
    ],
)
def test_signing_in_redirects_only_to_pages_of_this_server(
    live_server, browser, team, target, home
):
    response = live_server.sign_in(browser, team[1], next=target)
    assert response.headers["location"] == (f"/boards/{live_server.slug}" if home else target)


def test_forms_need_a_csrf_token(live_server, browser, team):
    token = csrf_token(browser.get("/login").text)
    data = {"token": team[1], "csrf": token}
    refused = [
        browser.post("/session", data={**data, "csrf": "guess"}),
        browser.post("/session", data={"token": team[1]}),
        browser.post("/session", data=data, headers={"Origin": "https://evil.example"}),
        browser.post("/session", data=data, headers={"Sec-Fetch-Site": "cross-site"}),
        browser.post("/session", data=data, headers={"Sec-Fetch-Site": "same-site"}),
    ]
    with live_server.browser() as other_browser:  # the CSRF token belongs to the other session
        other_browser.get("/login")
        refused.append(other_browser.post("/session", data=data))
        other_browser.cookies.clear()
        refused.append(other_browser.post("/session", data=data))
    assert [response.status_code for response in refused] == [403] * 7
    headers = {
        "Origin": "null",
        "Sec-Fetch-Site": "same-origin",
    }  # what browsers send under our referrer policy
    assert browser.post("/session", data={**data, "token": "x"}, headers=headers).status_code == 401
    headers = {"Origin": live_server.url, "Sec-Fetch-Site": "same-origin"}
    assert browser.post("/session", data=data, headers=headers).status_code == 303
    # The CSRF token from before signing in is not valid for the session.
    path = f"/boards/{live_server.slug}/submit"
    files = {"file": ("p.csv", make_predictions(9))}
    assert browser.post(f"{path}?csrf={token}", files=files).status_code == 403
    assert browser.post(path, files=files).status_code == 403
    assert live_server.call("GET", "/boards/first/team", team[1]).json()["submissions"] == 0
    wrong_type = browser.post("/session", json=data)
    assert wrong_type.status_code == 415


def test_submitting_with_the_form(live_server, browser, team):
    live_server.sign_in(browser, team[1])
    page = browser.get(f"/boards/{live_server.slug}/submit").text
    action = re.search(r'action="(/boards/[^"]+)"', page).group(1)
    response = browser.post(
        action, files={"file": ("p.csv", make_predictions(30))}, data={"message": EVIL}
    )
    assert response.status_code == 200
    assert 'role="status"' in response.text
    assert EVIL not in response.text
    assert "&lt;script&gt;" in response.text
    invalid = browser.post(action, files={"file": ("p.csv", b"id,prediction\n<b>x</b>,1\n")})
    assert invalid.status_code == 422
    assert 'role="alert"' in invalid.text
    assert "<b>" not in invalid.text
    duplicate = browser.post(action, files={"file": ("p.csv", make_predictions(30))})
    assert duplicate.status_code == 200
    assert live_server.call("GET", "/boards/first/team", team[1]).json()["submissions"] == 1


def test_the_api_with_a_cookie_needs_a_csrf_token_for_changes(live_server, browser, team):
    live_server.sign_in(browser, team[1])
    path = f"/api/v1/boards/{live_server.slug}/submissions"
    csv = {"Content-Type": "text/csv"}
    refused = browser.post(path, content=make_predictions(3), headers=csv)
    assert (refused.status_code, refused.json()["code"]) == (403, "csrf")
    csrf = csrf_token(browser.get("/").text)
    right = {**csv, "X-CSRF-Token": csrf}
    strange = browser.post(
        path, content=make_predictions(3), headers={**right, "Origin": "http://evil"}
    )
    assert strange.status_code == 403
    assert browser.post(path, content=make_predictions(3), headers=right).status_code == 201
    browser.cookies.clear()
    token = {**csv, "Authorization": f"Bearer {team[1]}", "Origin": "http://evil"}
    assert browser.post(path, content=make_predictions(2), headers=token).status_code == 201


def test_names_and_descriptions_stay_text_on_pages(empty_server):
    live_server = empty_server
    text = "'**bold** <script>x</script> [a](javascript:alert(1)) ![i](http://evil/x.png)'"
    live_server.create_board(title="'<b>title</b>'", description=text)
    token = live_server.join("<script>alert(1)</script>")[1]
    live_server.submit(token, make_predictions(3))
    pages = [
        live_server.client.get(f"/boards/{live_server.slug}{tab}").text
        for tab in ("", "/leaderboard", "/submit")
    ]
    page = "".join(pages)
    assert "<strong>bold</strong>" in page
    assert "&lt;b&gt;title&lt;/b&gt;" in page
    assert "&lt;script&gt;alert(1)" in page
    assert not re.search('<script(?! type="module" src=)|javascript:alert\\(1\\)"|<img|<b>', page)
    assert f"{live_server.url}/api/v1/boards/{live_server.slug}/submissions" in page


def test_pages_load_nothing_from_other_hosts(live_server, browser, team):
    live_server.sign_in(browser, team[1])
    for path in (
        "/",
        f"/boards/{live_server.slug}",
        f"/boards/{live_server.slug}/submit",
        "/login",
        "/nothing",
    ):
        response = browser.get(path)
        assert response.headers["content-type"] == "text/html; charset=utf-8"
        targets = re.findall(r'(?:src|href|action)="([^"]*)"', response.text)
        assert targets
        assert all(re.match(r"/(?!/)|\?|#", target) for target in targets), targets
        assert "style=" not in response.text
        assert all("src=" in script for script in re.findall("<script[^>]*>", response.text))
        policy = response.headers["content-security-policy"]
        for directive in (
            "default-src 'none'", "style-src 'self'", "img-src 'self' data:", "script-src 'self'",
            "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'",
        ):  # fmt: skip
            assert directive in policy
        assert response.headers["referrer-policy"] == "no-referrer"
        assert response.headers["cross-origin-opener-policy"] == "same-origin"
        assert response.headers["cross-origin-resource-policy"] == "same-origin"
    style = browser.get("/static/style.css")
    assert style.headers["content-type"].startswith("text/css")
    headers = {"If-None-Match": style.headers["etag"]}
    assert browser.get("/static/style.css", headers=headers).status_code == 304


def test_refusals_are_html_pages(live_server, browser):
    response = browser.get("/boards/nothing-here")
    assert (response.status_code, "There is no such board" in response.text) == (404, True)
    assert response.headers["content-type"].startswith("text/html")
    assert browser.get("/boards/Not%20A%20Name").status_code == 422
    assert browser.delete("/login").headers["allow"] == "GET, HEAD"
