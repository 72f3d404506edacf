"""People who signed in, over HTTP: what each may do in a team, on its pages, as an organiser."""

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ladderboard.board import VerifiedIdentity, write_board_bundle
from ladderboard.server import Rate
from ladderboard.server._auth import SESSION_COOKIE
from ladderboard.verify import verify_bundle
from support.server.live_server import CSV, csrf_token, make_predictions

TERMS = "Be *fair*."
CALLERS = ("signed in", "owner", "member", "other owner", "organiser", "elsewhere")


class SignedInPerson:
    """A person with a browser that is signed in on a board."""

    def __init__(self, server, name, slug):
        self.slug, self.browser = slug, server.browser()
        board = server.boards.open(slug)
        identity = VerifiedIdentity("u", "https://u.example", name, f"Dr. {name}", None)
        hashed = board.identities.sign_in(identity, seconds=3600)
        cookie = server.app.state.context.sessions.start(hashed).cookie
        self.browser.cookies.set(SESSION_COOKIE, cookie, domain="127.0.0.1", path="/")
        self.number = board.identities.own_registration(
            server.boards.caller_by_token_hash(hashed, slug)
        )["number"]  # fmt: skip
        page = self.browser.get("/login").text
        self.csrf = csrf_token(page)

    def api(self, method, path, **options):
        """Send a request of a page's script to the API."""
        headers = {"X-CSRF-Token": self.csrf, **options.pop("headers", {})}
        url = f"/api/v1/boards/{self.slug}{path}"
        return self.browser.request(method, url, headers=headers, **options)

    def page(self, path):
        return self.browser.get(f"/boards/{self.slug}/{path}")

    def form(self, path, **fields):
        """Send a form of a page."""
        return self.browser.post(f"/boards/{self.slug}/{path}", data={"csrf": self.csrf, **fields})


@pytest.fixture
def server(make_server):
    unlimited = Rate(10**6, 1.0)
    return make_server(failures=unlimited, registrations=unlimited)


@pytest.fixture
def person(server):
    """Return a function that signs a person in on a board."""
    people = []

    def sign_in(name, slug=None):
        people.append(SignedInPerson(server, name, slug or server.slug))
        return people[-1]

    yield sign_in
    for one in people:
        one.browser.close()


def make_board(server, **rules):
    server.reset()
    return server.create_board(registration="sign_in", **{"teams": 9, **rules})


def invite(owner, **options):
    reply = owner.api("POST", "/team/invitations", json=options)
    assert reply.status_code == 201, reply.text
    return reply.json()["invitation"]


def submit(caller, errors):
    return caller.api("POST", "/submissions", content=make_predictions(errors), headers=CSV)


# For each request, in this order on one board: its status for every caller.
MATRIX = {
    "GET /registration": (200, 200, 200, 200, 200, 401),
    "GET /team/members": (403, 200, 200, 200, 403, 401),
    "POST /team/invitations": (403, 201, 403, 201, 403, 401),
    "DELETE /team/invitations/0000000000000000": (403, 404, 403, 404, 403, 401),
    "PUT /team/members/{owner}": (403, 200, 403, 404, 403, 401),
    "DELETE /team/members/{owner}": (403, 409, 403, 404, 403, 401),
    "POST /membership": (403, 403, 403, 403, 403, 401),
    "GET /terms": (200, 200, 200, 200, 200, 401),
    "POST /submissions": (403, 403, 403, 403, 422, 401),
    "POST /terms": (403, 200, 200, 200, 403, 401),
    "POST /team/token": (403, 200, 403, 200, 403, 401),
    "GET /registrations": (403, 403, 403, 403, 200, 401),
    "PUT /registrations/{owner}/organiser": (403, 403, 403, 403, 409, 401),
    "POST /teams/{team}/merge": (403, 403, 403, 403, 409, 401),
    "DELETE /registrations/{signed}/sessions": (403, 403, 403, 403, 204, 401),
    "DELETE /membership": (401, 409, 204, 204, 409, 401),  # the first one was signed out
}
BODIES = {
    "PUT /team/members/{owner}": {"role": "owner"},
    "POST /membership": {"invitation": "lb_member_x"},
    "POST /team/invitations": {"uses": 2},
}


def test_every_request_gives_every_person_its_status(server, person):
    server.create_board("elsewhere", registration="sign_in")
    board = make_board(server, terms=TERMS)
    people = {name: person(name) for name in CALLERS[:-1]}
    people["elsewhere"] = person("elsewhere", "elsewhere")
    people["elsewhere"].slug = server.slug
    for name in ("owner", "other owner"):
        assert people[name].form("join", name=name).status_code == 201
    people["member"].api("POST", "/membership", json={"invitation": invite(people["owner"])})
    path = f"/boards/first/registrations/{people['organiser'].number}/organiser"
    assert server.call("PUT", path, server.organiser).status_code == 204
    team = people["owner"].api("GET", "/team").json()["id"]
    BODIES["POST /terms"] = {"version": board.rules.terms.version}
    BODIES["POST /teams/{team}/merge"] = {"into": team}
    numbers = {"owner": people["owner"].number, "signed": people["signed in"].number, "team": team}
    wrong = []
    for route, expected in MATRIX.items():
        method, path = route.format(**numbers).split()
        for name, status in zip(CALLERS, expected, strict=True):
            if route == "POST /submissions":
                response = submit(people[name], 40)
            else:
                body = {"json": BODIES[route]} if route in BODIES else {}
                response = people[name].api(method, path, **body)
            if response.status_code != status:
                wrong.append(f"{route} as {name}: {response.status_code}, not {status}")
    assert not wrong


def test_a_person_registers_over_the_api_and_waits_for_approval(server, person):
    make_board(server)
    reply = person("Ada").api("POST", "/teams", json={"name": "Analytical"})
    assert (reply.status_code, reply.json()["name"]) == (201, "Analytical")
    make_board(server, sign_in="{approval: true}")
    reply = person("Ada").api("POST", "/teams", json={"name": "Analytical"})
    assert (reply.status_code, reply.json()["state"]) == (202, "waiting")


def test_a_session_changes_nothing_without_its_csrf_token(server, person):
    make_board(server)
    ada = person("Ada")
    ada.form("join", name="Analytical")
    ada.csrf = "guess"
    for method, path, body in (
        ("POST", "/team/invitations", {"uses": 1}),
        ("DELETE", "/membership", None),
        ("POST", "/membership", {"invitation": "x"}),
    ):
        response = ada.api(method, path, **({} if body is None else {"json": body}))
        assert (response.status_code, response.json()["code"]) == (403, "csrf")
    for path in ("team", "terms"):
        assert ada.form(path, do="leave").status_code == 403
    assert ada.api("GET", "/team").status_code == 200


def test_the_reason_of_a_rejection_is_shown_to_the_person(server, person):
    make_board(server, sign_in="{approval: true}")
    ada = person("Ada")
    ada.form("join", name="Analytical")
    assert ada.api("GET", "/registration").json()["state"] == "waiting"
    decision = {"approve": False, "reason": "You work for the organiser."}
    server.call("PUT", "/boards/first/registrations/1", server.organiser, json=decision)
    registration = ada.api("GET", "/registration").json()
    assert (registration["state"], registration["reason"]) == ("rejected", decision["reason"])
    assert decision["reason"] in ada.page("join").text
    assert decision["reason"] in ada.form("join", name="Analytical").text


def test_a_team_is_run_on_its_page(server, person):
    make_board(server)
    ada, bob = person("Ada"), person("Bob")
    ada.form("join", name="Analytical")
    page_after = ada.form("team", do="invite", days="1", uses="1")
    link = re.search(r"/join#(lb_member_[\w-]{43})<", page_after.text)
    page = ada.page("team").text
    assert "For 1 person, until" in page
    assert 'aria-label="Revoke the invitation 1"' in page
    assert "Make member" not in page  # a team needs an owner
    joined = bob.form("join", invitation=link[1])
    assert joined.headers["location"] == f"/boards/{server.slug}/team?done=joined"
    page = bob.page("team?done=joined").text
    assert "You are in the team." in page
    assert "Dr. Ada" in page
    assert "Make an invitation" not in page  # a member does not invite
    assert bob.form("team", do="invite", days="1", uses="1").status_code == 403
    assert "needs an owner" in ada.form("team", do="leave").text
    ada.form("team", do="role", person=bob.number, role="owner")
    assert ada.form("team", do="remove", person=bob.number).status_code == 303
    assert bob.page("team").headers["location"] == f"/boards/{server.slug}/join"
    invite(ada)
    (invitation,) = ada.api("GET", "/team/members").json()["invitations"]
    ada.form("team", do="revoke", invitation=invitation["id"])
    assert ada.api("GET", "/team/members").json()["invitations"] == []
    assert ada.form("team", do="dance").status_code == 400
    assert ada.form("team", do="remove", person="x").status_code == 400
    assert ada.form("team", do="invite", days="x", uses="1").status_code == 422
    assert ada.form("team", do="leave").headers["location"].endswith("/join")
    assert server.call("GET", "/boards/first").json()["registered"] == 0


def test_teams_are_merged_on_the_pages_of_owners_and_organisers(server, person):
    make_board(server)
    ada, bob, carl = (person(name) for name in ("Ada", "Bob", "Carl"))
    for one in (ada, bob, carl):
        one.form("join", name=f"Team {one.number}")
    ids = [one.api("GET", "/team").json()["id"] for one in (ada, bob, carl)]
    refused = bob.api("POST", "/membership", json={"invitation": invite(ada)})
    assert (refused.status_code, "merge it" in refused.json()["detail"]) == (409, True)
    assert bob.form("team", do="merge", invitation=invite(ada)).status_code == 303
    assert bob.api("GET", "/team").json()["id"] == ids[0]
    with server.browser() as organiser:
        server.sign_in(organiser, server.organiser)
        path = f"/boards/{server.slug}/organise/teams/{ids[2]}"
        page = organiser.get(path).text
        assert "Merge the teams" in page
        fields = {"do": "merge", "into": ids[0], "csrf": csrf_token(page)}
        assert (
            organiser.post(path, data=fields).headers["location"].endswith(f"{ids[0]}?done=merged")
        )
        page = organiser.get(f"/boards/{server.slug}/organise/teams/{ids[0]}").text
        assert all(f"Dr. {name}" in page for name in ("Ada", "Bob", "Carl"))
        fields = {
            "do": "reject",
            "person": carl.number,
            "reason": "Too many.",
            "csrf": fields["csrf"],
        }
        organiser.post(f"/boards/{server.slug}/organise/teams/{ids[0]}", data=fields)
    assert "Too many." in carl.page("join").text
    submit(ada, 40)
    other = person("Dora")
    other.form("join", name="Late")
    refused = other.form("team", do="merge", invitation=invite(ada))
    assert (refused.status_code, "only before either has submitted" in refused.text) == (409, True)


def test_an_organiser_by_person_is_named_on_the_page(server, person):
    make_board(server, organisers="[Example University]")
    ada = person("Ada <b>")
    page = server.client.get(f"/boards/{server.slug}").text
    assert "Organised by Example University." in page
    with server.browser() as organiser:
        server.sign_in(organiser, server.organiser)
        path = f"/boards/{server.slug}/organise"
        csrf = csrf_token(organiser.get(path).text)
        fields = {"do": "organiser", "person": ada.number, "csrf": csrf}
        assert organiser.post(path, data={**fields, "organiser": "yes"}).status_code == 303
        page = server.client.get(f"/boards/{server.slug}").text
        assert "Organised by Example University, Dr. Ada &lt;b&gt;." in page
        assert ada.page("organise").status_code == 200
        page = organiser.get(f"{path}/settings/access").text
        assert 'aria-label="Remove Dr. Ada &lt;b&gt; as an organiser"' in page
        assert "Make organiser" not in page  # nobody else signed in
        assert organiser.post(path, data={**fields, "organiser": "no"}).status_code == 303
    assert ada.page("organise").status_code == 403
    assert "Organised by Example University." in server.client.get(f"/boards/{server.slug}").text


def test_terms_are_accepted_on_their_page_before_anything_else(server, person):
    board = make_board(server, terms=TERMS, data="{members: true}")
    ada = person("Ada")
    assert "<em>fair</em>" in server.client.get(f"/boards/{server.slug}/terms").text
    ada.form("join", name="Analytical")
    assert "Read the terms" in ada.page("submit").text
    assert "Read the terms" in ada.page("data").text
    assert ada.page("sample_submission.csv").status_code == 403
    assert submit(ada, 40).status_code == 403
    stale = ada.form("terms", version="0" * 64)
    assert (stale.status_code, "have changed" in stale.text) == (409, True)
    assert ada.form("terms", version=board.rules.terms.version).status_code == 303
    assert "You have accepted the terms." in ada.page("terms?done=accepted").text
    assert ada.page("sample_submission.csv").status_code == 200
    assert submit(ada, 40).status_code == 201
    with server.browser() as organiser:
        server.sign_in(organiser, server.organiser)
        path = f"/boards/{server.slug}/organise"
        page = organiser.get(f"{path}/settings/terms").text
        form = page[page.index('name="group" value="terms"') :]
        seen = re.search(r'name="seen" value="(\w+)"', form)[1]
        fields = {"do": "amend", "group": "terms", "seen": seen, "csrf": csrf_token(page)}
        fields |= {"terms": "Be kind.", "organisers": "Ada\r\nBob\r\n"}
        assert organiser.post(path, data=fields).headers["location"].endswith("done=amended")
    assert board.rules.organisers == ("Ada", "Bob")
    assert submit(ada, 30).json()["detail"].startswith("The terms of this board have changed")
    assert "Read the terms" in ada.page("submit").text


def test_an_upload_that_began_in_a_team_does_not_count_for_the_next_one(server, person):
    """Somebody sends half a file, leaves, and a team is registered before the other half."""
    make_board(server)
    mallory, ada = person("Mallory"), person("Ada")
    mallory.form("join", name="Ended")

    def halves():
        predictions = make_predictions(40)
        yield predictions[:1000]
        assert mallory.form("team", do="leave").status_code == 303
        assert ada.form("join", name="Analytical").status_code == 201
        yield predictions[1000:]

    refused = mallory.api("POST", "/submissions", content=halves(), headers=CSV)
    assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
    assert ada.api("GET", "/team").json()["submissions"] == 0
    assert submit(ada, 40).json()["number"] == 1


@pytest.mark.slow
def test_many_at_once_leave_each_person_in_one_team(server, person, tmp_path):
    """Everybody registers, joins, merges, leaves, accepts, submits and erases at the same time."""
    board = make_board(server, terms=TERMS, teams=40, questions=10_000)
    people = [person(f"p{number}") for number in range(8)]
    links: list[str] = []
    failures: list[str] = []

    def pick(rng):
        return str(rng.choice(links[-5:] or ["lb_member_x"]))

    def choose(one, rng, name):
        version = board.rules.terms.version
        return rng.choice(
            [
                lambda: one.api("POST", "/teams", json={"name": name}),
                lambda: one.api("POST", "/team/invitations", json={"uses": 3}),
                lambda: one.api("POST", "/membership", json={"invitation": pick(rng)}),
                lambda: one.form("team", do="merge", invitation=pick(rng)),
                lambda: one.api("DELETE", "/membership"),
                lambda: one.api("POST", "/terms", json={"version": version}),
                lambda: submit(one, int(rng.integers(300))),
                lambda: one.api("POST", "/team/token"),
            ]
        )

    def act(one, seed):
        rng = np.random.default_rng(seed)
        for step in range(25):
            reply = choose(one, rng, f"T{seed}-{step}")()
            if reply.status_code >= 500:
                failures.append(reply.text)
            if reply.headers.get("content-type") == "application/json":
                links.extend(filter(None, [reply.json().get("invitation")]))
        if seed % 2:
            one.api("POST", "/erasure")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(act, people, range(8)))
    assert not failures
    with board.reading() as view:
        teams = dict(
            view.query("SELECT number, used FROM main.team WHERE book = ?", (view.book_id,))
        )
        bound = view.query(
            "SELECT team, state FROM main.identity WHERE book = ? AND team IS NOT NULL",
            (view.book_id,),
        )
        counted = dict(
            view.query(
                "SELECT team, COUNT(*) FROM main.submission WHERE book = ? GROUP BY team",
                (view.book_id,),
            )
        )
    assert {team for team, _ in bound} <= set(teams)  # nobody is in a team that ended
    assert {number: used for number, used in teams.items() if used} == counted
    assert board.row().teams == len(teams)
    assert all(teams[team] for team, state in bound if state == "left")
    assert sum(counted.values()) > 0
    assert server.call("POST", "/boards/first/close", server.organiser).status_code == 200
    bundle = tmp_path / "bundle"
    head = write_board_bundle(board, bundle, labels=True, submissions=True)
    verified = verify_bundle(bundle, heads=[head.hash.hex()])
    assert verified.questions == sum(counted.values())


@pytest.mark.parametrize(("accounts", "sentence"), [(None, "at most 2 teams"), (9, None)])
def test_the_rules_say_how_many_teams_of_one_person_are_expected(server, accounts, sentence):
    make_board(server, mechanism=None, accounts=accounts)
    page = server.client.get(f"/boards/{server.slug}/rules").text
    assert "One person has one team." in page
    expected = "Somebody with accounts at several providers counts as several people."
    assert (expected in page, "one person controls" in page) == (bool(sentence), bool(sentence))
    assert sentence is None or f"one person controls {sentence}." in page


def test_names_of_people_reach_their_team_and_organisers_only(server, person):
    make_board(server)
    ada, bob = person("Ada"), person("Bob")
    ada.form("join", name="Analytical")
    bob.form("join", name="Other")
    public = server.browser()
    for caller in (public, bob.browser):
        for path in ("", "/leaderboard", "/ledger", "/team/members", "/records", "/data"):
            assert "Dr. Ada" not in caller.get(f"/api/v1/boards/{server.slug}{path}").text
        for path in ("", "/join", "/submit", "/team"):
            assert "Dr. Ada" not in caller.get(f"/boards/{server.slug}{path}").text
    assert "Dr. Ada" in ada.api("GET", "/team/members").text
    public.close()
