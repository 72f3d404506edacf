"""Signing in against a real OpenID provider on loopback, and against an imitation of GitHub."""

import re
import time
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

import httpx
import pytest

from ladderboard.errors import InvalidSetting
from ladderboard.server import Settings
from ladderboard.server._auth import SESSION_COOKIE
from ladderboard.server._sign_in import SIGN_IN_COOKIE
from support.board_stubs import ManualClock
from support.openid import OpenIdProvider, sign_in_at_provider
from support.server.live_server import LiveServer, csrf_token, empty_storage

REFUSED = "not valid. Sign in again"
NOT_STARTED = "not started in this browser"


@pytest.fixture(scope="module")
def provider():
    """An OpenID provider."""
    running = OpenIdProvider()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def server(provider, tmp_path_factory):
    """A server with two providers, whose clock is the provider's."""
    with empty_storage("sqlite", None, tmp_path_factory.mktemp("sign-in")) as storage:
        live_server = LiveServer(
            storage, clock=ManualClock(int(time.time())), sign_in=provider.settings()
        )
        live_server.start()
        yield live_server
        live_server.stop()


def make_board(server, **rules):
    """Create a new board where people sign in; the provider's clock is the system's."""
    server.reset()
    server.clock.now = int(time.time())
    return server.create_board(registration="sign_in", **rules)


@pytest.fixture
def board(server):
    """A new board where people sign in."""
    return make_board(server)


class Person:
    """A person with a browser."""

    def __init__(self, server, login):
        self.server, self.login, self.browser = server, login, server.browser()

    def start(self, slug=None, provider="university"):
        """Follow the link on the page; return the provider's URL."""
        response = self.browser.get(f"/boards/{slug or self.server.slug}/sign-in/{provider}")
        assert response.status_code == 303, response.text
        return response.headers["location"]

    def answer(self, url):
        """Sign in at the provider; return the URL of its answer."""
        with httpx.Client() as other_site:
            return sign_in_at_provider(other_site, url, self.login)

    def sign_in(self, slug=None, provider="university"):
        """Sign in; return the response to the provider's answer."""
        return self.browser.get(self.answer(self.start(slug, provider)))

    def register(self, name, slug=None):
        """Fill in the form of the Join page."""
        path = f"/boards/{slug or self.server.slug}/join"
        csrf = csrf_token(self.browser.get(path).text)
        return self.browser.post(path, data={"name": name, "csrf": csrf})

    def sign_out(self):
        csrf = csrf_token(self.browser.get(f"/boards/{self.server.slug}/join").text)
        return self.browser.post("/session/end", data={"csrf": csrf})

    def team(self, slug=None):
        """Return the status of one's own team in the API."""
        return self.browser.get(f"/api/v1/boards/{slug or self.server.slug}/team")


@pytest.fixture
def person(server):
    """Return a function that makes a person with a browser."""
    people = []

    def make(login="ada"):
        people.append(Person(server, login))
        return people[-1]

    yield make
    for one in people:
        one.browser.close()


def changed(url, **changes):
    """Return a URL with other parameters."""
    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()} | changes
    return urlunsplit(parts._replace(query=urlencode(query)))


def test_a_person_signs_in_registers_and_comes_back_from_another_browser(board, person):
    ada = person()
    response = ada.sign_in()
    assert response.status_code == 303
    assert response.headers["location"] == f"/boards/{board.slug}/join"
    page = ada.browser.get(f"/boards/{board.slug}/join").text
    assert "Person ada" in page
    assert "One person has one team" in page
    registered = ada.register("Analytical")
    assert registered.status_code == 201
    token = re.search(r"lb_team_[\w-]+", registered.text)[0]
    assert ada.team().json()["name"] == "Analytical"
    other = person()
    assert other.sign_in().headers["location"] == f"/boards/{board.slug}/submit"
    assert other.team().json()["name"] == "Analytical"
    assert ada.server.call("GET", "/boards/first/team", token).status_code == 200
    assert ada.register("Another").status_code == 409


def test_the_request_has_pkce_state_and_nonce_and_the_cookie_is_for_this_flow_only(board, person):
    ada = person()
    url = ada.start()
    query = parse_qs(urlsplit(url).query)
    assert query["code_challenge_method"] == ["S256"]
    assert query["response_type"] == ["code"]
    assert all(len(query[name][0]) == 43 for name in ("state", "nonce", "code_challenge"))
    (cookie,) = [item for item in ada.browser.cookies.jar if item.name == SIGN_IN_COOKIE]
    assert cookie.path == "/sign-in"
    assert cookie.has_nonstandard_attr("HttpOnly")
    assert query["code_challenge"][0] not in cookie.value
    again = parse_qs(urlsplit(ada.start()).query)
    assert all(query[name] != again[name] for name in ("state", "nonce", "code_challenge"))


@pytest.mark.parametrize("state", ["", "A" * 43])
def test_a_wrong_state_is_refused(board, person, state):
    ada = person()
    response = ada.browser.get(changed(ada.answer(ada.start()), state=state))
    assert (response.status_code, NOT_STARTED in response.text) == (403, True)
    assert SESSION_COOKIE not in ada.browser.cookies


def test_an_answer_in_another_browser_is_refused(board, person):
    """Otherwise somebody could sign a victim in as themselves."""
    attacker, victim = person("mallory"), person()
    url = attacker.answer(attacker.start())
    assert NOT_STARTED in victim.browser.get(url).text
    victim.start()
    assert NOT_STARTED in victim.browser.get(url).text
    assert SESSION_COOKIE not in victim.browser.cookies


def test_an_answer_counts_once_and_for_ten_minutes(board, server, person):
    ada = person()
    url = ada.answer(ada.start())
    assert ada.browser.get(url).status_code == 303
    assert NOT_STARTED in ada.browser.get(url).text
    url = ada.answer(ada.start())
    server.clock.now += 600
    assert NOT_STARTED in ada.browser.get(url).text


def test_a_wrong_nonce_is_refused(board, person):
    ada = person()
    url = ada.answer(changed(ada.start(), nonce="A" * 43))
    response = ada.browser.get(url)
    assert (response.status_code, REFUSED in response.text) == (403, True)


@pytest.mark.parametrize("kind", ["audience", "issuer", "key", "none", "payload", "secret"])
def test_a_forged_id_token_is_refused(board, provider, person, kind):
    """One for another client or of another issuer, by another key, unsigned, changed, or HS256."""
    ada = person()
    provider.forge_next_token("right")
    assert ada.sign_in().status_code == 303
    mallory = person("mallory")
    provider.forge_next_token(kind)
    response = mallory.sign_in()
    assert (response.status_code, REFUSED in response.text) == (403, True)
    assert SESSION_COOKIE not in mallory.browser.cookies


def test_a_code_without_its_verifier_is_refused(board, person):
    ada, mallory = person(), person("mallory")
    stolen = parse_qs(urlsplit(ada.answer(ada.start())).query)["code"][0]
    response = mallory.browser.get(changed(mallory.answer(mallory.start()), code=stolen))
    assert (response.status_code, REFUSED in response.text) == (403, True)


def test_an_expired_token_is_refused(board, server, person):
    ada = person()
    server.clock.now += 3600 + 60 + 30  # the token's lifetime and the leeway
    response = ada.sign_in()
    assert (response.status_code, REFUSED in response.text) == (403, True)


def test_the_answer_of_another_issuer_is_refused(board, provider, person):
    ada = person()
    url = ada.answer(ada.start())
    assert REFUSED in ada.browser.get(changed(url, iss=provider.github)).text
    other_callback = url.replace("/university/", "/github/")
    ada.start()
    assert NOT_STARTED in ada.browser.get(other_callback).text


def test_a_provider_that_is_another_issuer_is_refused(make_server, provider):
    """The document at the issuer's URL names another issuer."""
    live_server = make_server(sign_in=provider.settings(issuer=f"{provider.openid}/"))
    live_server.create_board(registration="sign_in")
    response = live_server.client.get("/boards/first/sign-in/university")
    assert (response.status_code, REFUSED in response.text) == (403, True)


def test_a_provider_that_does_not_answer_is_reported(make_server, provider):
    live_server = make_server(sign_in=provider.settings(issuer="http://127.0.0.1:9"))
    live_server.create_board(registration="sign_in")
    response = live_server.client.get("/boards/first/sign-in/university")
    assert (response.status_code, "does not answer" in response.text) == (502, True)


def test_new_keys_of_the_provider_are_fetched(board, provider, person):
    assert person().sign_in().status_code == 303
    provider.rotate_keys()
    assert person().sign_in().status_code == 303


def test_a_refusal_at_the_provider_changes_nothing(board, person):
    ada = person()
    state = parse_qs(urlsplit(ada.start()).query)["state"][0]
    response = ada.browser.get(
        "/sign-in/university/callback", params={"state": state, "error": "access_denied"}
    )
    assert (response.status_code, "did not sign in" in response.text) == (403, True)
    assert SESSION_COOKIE not in ada.browser.cookies


def test_a_session_that_was_there_before_is_not_continued(board, person):
    """Session fixation: an attacker's session in the browser does not become the victim's."""
    ada, mallory = person(), person("mallory")
    mallory.sign_in()
    fixed = mallory.browser.cookies[SESSION_COOKIE]
    ada.browser.cookies.set(SESSION_COOKIE, fixed, domain="127.0.0.1", path="/")
    ada.sign_in()
    ada.register("Analytical")
    assert mallory.team().status_code == 403  # signed in, and still without a team
    assert fixed not in [item.value for item in ada.browser.cookies.jar]


def test_a_session_is_of_one_board(server, board, person):
    ada, first = person(), board.slug
    ada.sign_in()
    ada.register("Analytical")
    make_board(server)
    assert ada.team(first).status_code == 200
    assert ada.team().status_code == 401
    page = ada.browser.get(f"/boards/{server.slug}/join").text
    assert "Sign in with University" in page
    assert ada.register("Analytical").status_code == 403


def test_after_signing_out_the_old_cookie_is_good_for_nothing(board, person):
    ada = person()
    ada.sign_in()
    ada.register("Analytical")
    cookie = ada.browser.cookies[SESSION_COOKIE]
    assert ada.sign_out().status_code == 303
    assert SESSION_COOKIE not in ada.browser.cookies
    ada.browser.cookies.set(SESSION_COOKIE, cookie, domain="127.0.0.1", path="/")
    assert ada.team().status_code == 401


def test_github_gives_its_number_as_the_subject_and_a_verified_primary_address(board, person):
    octocat = person("octocat583231")
    assert octocat.sign_in(provider="github").status_code == 303
    octocat.register("Cats")
    listed = octocat.server.call(
        "GET", "/boards/first/registrations", octocat.server.organiser
    ).json()["registrations"]
    assert [(registration["subject"], registration["mail"]) for registration in listed] == [
        ("583231", "octocat583231@example.org")
    ]


def test_the_rules_of_the_board_say_who_may_register(server, person):
    make_board(server, sign_in="{providers: [university], domains: [example.edu]}")
    assert person().sign_in().status_code == 303
    refused = person("unverified-ada").sign_in()
    assert (refused.status_code, "not open to you" in refused.text) == (403, True)
    github = person().browser.get(f"/boards/{server.slug}/sign-in/github")
    assert github.status_code == 404


def test_an_organiser_approves_and_rejects(server, person):
    make_board(server, sign_in="{approval: true}")
    ada, bob = person(), person("bob")
    for one in (ada, bob):
        one.sign_in()
        assert one.register(f"Team {one.login}").status_code == 303
        page = one.browser.get(f"/boards/{server.slug}/join").text
        assert "Your registration is waiting for approval" in page
    path = "/boards/first/registrations"
    for number, decision in ((1, {"approve": True}), (2, {"approve": False, "reason": "Late."})):
        reply = server.call("PUT", f"{path}/{number}", server.organiser, json=decision)
        assert reply.status_code == 200
    assert ada.team().json()["name"] == "Team ada"
    assert "Late." in bob.browser.get(f"/boards/{server.slug}/join").text
    extended = server.call(
        "POST", "/boards/first/people", server.organiser, json={"people": ["c@example.edu"]}
    )
    assert extended.json()["listed"] == 1


def test_nobody_signs_in_where_tokens_are_used(server):
    server.reset()
    server.create_board()
    for path in (f"/boards/{server.slug}/sign-in/university", "/sign-in/nowhere/callback"):
        assert server.client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"university": {"client_id": "a"}}, r"sign_in.university.issuer is missing"),
        ({"github": {}}, r"sign_in.github.client_id is missing"),
        ({"google": {"client_id": "a", "scope": "b"}}, r"sign_in.google.scope is wrong"),
        ({"a": {"issuer": "http://example.edu", "client_id": "a"}}, "must begin with https://"),
        ({"A": {}}, "the name of a provider"),
        ("[", "JSON"),
        (
            {"google": {"client_id": "a", "client_secret": "b", "client_secret_file": "c"}},
            "both client_secret and client_secret_file",
        ),
    ],
)
def test_wrong_settings_of_providers_are_refused(tables, message):
    with pytest.raises(InvalidSetting, match=message):
        Settings(sign_in=tables)


def test_a_secret_is_read_from_a_file_when_the_server_starts(make_server, tmp_path):
    table = {"client_id": "a", "client_secret_file": str(tmp_path / "secret")}
    with pytest.raises(InvalidSetting, match="cannot be read"):
        make_server(sign_in={"google": table})
