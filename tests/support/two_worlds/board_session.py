"""A scripted session on a board over HTTP, in one of two worlds, with all output recorded."""

from __future__ import annotations

import gzip
import logging
import re
import warnings

import numpy as np

from ladderboard.board import Caller, Role, VerifiedIdentity, read_rules
from ladderboard.files import read_holdout
from support.board_stubs import FolderContent

N, PUBLIC = 60, 40
RULES = """
slug: first
description: "*What* is this?"
loss: zero_one
questions: 60
teams: 4
per_team: 12
window: {questions: 5, hours: 1}
registration: open
ladder: team
baselines:
- {name: Zeros, file: zeros.csv}
- {name: Chance, value: 0.5, source: a coin}
finals: {selections: 2}
files: {bytes: 20 kB}
play: true
"""
READ_ONCE = {"/openapi.json", "/static/{name}", "/login", "/healthz"}
VISIBILITIES = ("public", "hidden", "anonymous", "frozen")


def truth(world):
    """Return a world's labels and splits; the number of public rows is the same in both."""
    rng = np.random.default_rng([7, world])
    split = rng.permutation(np.where(np.arange(N) < PUBLIC, "public", "private"))
    return rng.integers(2, size=N), split


def prediction_file(values):
    rows = [f"id {row},{value}" for row, value in enumerate(values)]
    return "\n".join(["id,prediction", *rows, ""]).encode()


def holdout_table(world, *, corrected=False):
    """Return a world's holdout, before or after its labels are corrected."""
    labels, split = truth(world)
    rows = [f"id {row},{labels[row] ^ corrected},{split[row]}" for row in range(N)]
    return read_holdout("\n".join(["id,label,split", *rows, ""]).encode())


def make_folder(world, path):
    zeros = path / "zeros.csv"
    zeros.write_bytes(prediction_file([0] * N))
    return FolderContent(read_rules(RULES), holdout_table(world), {"Zeros": zeros})


def readable_paths(app):
    """Return the path templates of all GET routes."""
    routes = [route for route in app.routes if "GET" in (getattr(route, "methods", None) or ())]
    return sorted(route.path for route in routes)


class BoardSession:
    """What teams, evaluators and organisers do; the methods that run a session start with `run`."""

    def __init__(self, server, organiser, world):
        self.server, self.organiser, self.world = server, organiser, world
        rng = np.random.default_rng(5)
        # Models that are perfect in one world, and some that know nothing.
        self.models = [truth(0)[0], truth(1)[0], *rng.integers(2, size=(30, N))]
        self._unsent = iter(self.models)
        self.path_parameters = {"board": "first", "team": "0" * 16, "submission": "0" * 32}
        self.path_parameters |= {"name": "style.css", "provider": "university", "section": "limits"}
        self.tokens = {}

    def next_body(self):
        return prediction_file(next(self._unsent))

    def read_everything(self):
        """Send every GET request in every role."""
        tokens = {"public": None, "wrong": "lb_team_x", **self.tokens, "organiser": self.organiser}
        for token in tokens.values():
            for template in readable_paths(self.server.app):
                if template not in READ_ONCE or not self.tokens:
                    self.server.call("GET", template.format(**self.path_parameters), token)
            for path in ("?format=csv", "?limit=1", "?limit=0", "?cursor=x"):
                self.server.api("GET", f"/leaderboard{path}", token)
            self.server.api("GET", "/ledger?first=2&limit=3", token)
        reply = self.server.api("GET", "/leaderboard?limit=2")
        if reply.status_code == 200:
            tag = {"If-None-Match": reply.headers["etag"]}
            self.server.api("GET", "/leaderboard?limit=2", headers=tag)
            while reply.json()["next"] is not None:
                cursor = reply.json()["next"]
                reply = self.server.api("GET", f"/leaderboard?limit=2&cursor={cursor}")

    def run_everything(self):
        """Use everything before the close."""
        self.read_everything()
        self.join()
        self.submit_invalid()
        self.submit_valid()
        self.read_everything()
        self.use_pages()
        self.organise()
        self.read_everything()

    def run_all_submissions(self):
        """Submit in every way and read everything once."""
        self.join()
        self.submit_valid()
        self.read_everything()

    def run_all_hashes(self):
        """Have every kind of hash shown, and receipts given in every way."""
        self.server.client.headers["Accept-Encoding"] = "identity"  # else lengths depend on salts
        self.join()
        alpha, beta, evaluator = (self.tokens[name] for name in ("Alpha", "Beta", "evaluator"))
        for visibility in VISIBILITIES:
            self.server.set_visibility(visibility, self.organiser)
            body = self.next_body()
            self.get_receipts(alpha, body)
            self.server.submit(beta, body)
            self.read_hashes(None, alpha, beta, evaluator, self.organiser)
            self.server.now += 3600
        self.server.set_visibility("public", self.organiser)
        correct = self.server.boards.open("first").amendments.correct_labels
        correct(Caller(Role.ORGANISER), holdout_table(self.world, corrected=True))
        self.get_receipts(alpha, self.next_body())
        self.read_hashes(None, alpha)

    def run_few_submissions(self):
        """Submit a few times and read: enough for leaks that tests plant."""
        self.server.client.headers["Accept-Encoding"] = "identity"
        self.join()
        alpha, beta = self.tokens["Alpha"], self.tokens["Beta"]
        for token in (alpha, beta) * 4:
            reply = self.server.submit(token, self.next_body())
            self.path_parameters["submission"] = reply.json()["id"]
        self.read_hashes(None, alpha, beta)

    def run_to_close(self):
        """Close the board without opening its ledger."""
        self.run_few_submissions()
        assert self.server.api("POST", "/close", self.organiser).status_code == 200
        self.read_hashes(None, self.tokens["Alpha"], self.organiser)

    def read_hashes(self, *tokens):
        """Read everything that shows hashes."""
        last = self.path_parameters["submission"]
        for token in tokens:
            self.server.call("GET", "/boards/first", token)
            for path in ("", "/ledger?limit=1000", "/submissions", f"/submissions/{last}"):
                self.server.api("GET", path, token)

    def get_receipts(self, token, body):
        """Get a receipt in every way: submit, repeat, fetch, and download it from the page."""
        reply = self.server.submit(token, body)
        self.path_parameters["submission"] = reply.json()["id"]
        self.server.submit(token, body)
        self.server.api("GET", f"/submissions/{reply.json()['id']}", token)
        assert self.sign_in(token)
        self.submit_form(body)
        self.server.call("GET", f"/boards/first/receipts/{reply.json()['id']}", cookies=True)

    def join(self):
        """Create teams, tokens and invitations, valid and invalid."""
        for name in ("Alpha", "Beta", "alpha ", "=cmd|x", "", "Delta", "Epsilon"):
            reply = self.server.api("POST", "/teams", json={"name": name})
            if reply.status_code == 201:
                self.tokens[name] = reply.json()["token"]
                self.path_parameters["team"] = reply.json()["id"]
        reply = self.server.api("POST", "/tokens", self.organiser, json={"role": "evaluator"})
        self.tokens["evaluator"] = reply.json()["token"]
        self.server.api("POST", "/tokens", self.tokens["Alpha"], json={"role": "organiser"})
        self.server.api("POST", "/invitations", self.organiser, json={"days": 1})

    def submit_invalid(self):
        """Send bodies and requests that are refused."""
        token, good = self.tokens["Alpha"], prediction_file(self.models[-1])
        lines = good.splitlines(keepends=True)
        bodies = [
            b"", b"\0" * 50, b"id,prediction\n", b"".join(lines[:-3]), good + lines[4],
            good.replace(b"id 7,", b"id x,"), good.replace(b"prediction", b"label"),
            *(prediction_file([value] * N) for value in ("yes", 0.5, 7, "nan", "", 2**70)),
            good.replace(b",", b";"), b"x" * 30_000,
        ]  # fmt: skip
        for body in bodies:
            self.server.submit(token, body)
        packed = gzip.compress(good, mtime=0)
        self.server.submit(token, packed[:-9], Content_Encoding="gzip")
        self.server.submit(token, good, Content_Encoding="br")
        self.server.submit(token, good, Content_Type="image/png")
        self.server.submit(token, b"PAR1" * 9, Content_Type="application/vnd.apache.parquet")
        self.server.submit(token, good, "?massage=x")
        self.server.submit(token, good, "?team=" + "0" * 16)
        self.server.submit(token, good, Idempotency_Key="x" * 300)
        self.server.submit(None, good)
        self.server.submit("lb_team_x", good)
        self.server.submit(self.tokens["evaluator"], good)
        self.server.call("POST", "/api/v1/boards/other/submissions", token, content=good)
        form = {"Content-Type": "multipart/form-data; boundary=xyz"}
        wrong = {"field": ("p.csv", good, "text/csv")}
        self.server.api("POST", "/submissions", token, files=wrong, headers=form)
        self.server.api("DELETE", "/submissions", token)
        self.server.call("GET", "/nowhere")

    def submit_valid(self):
        """Submit in every way, repeat submissions, and exceed limits."""
        alpha, beta, evaluator = (self.tokens[name] for name in ("Alpha", "Beta", "evaluator"))
        first = self.next_body()
        reply = self.server.submit(alpha, first, "?message=one", Idempotency_Key="k")
        self.path_parameters["submission"] = reply.json().get("id", "0" * 32)
        self.server.submit(alpha, first)
        self.server.submit(alpha, first, Idempotency_Key="k")
        self.server.submit(beta, first, Idempotency_Key="k")
        self.server.submit(alpha, self.next_body(), Idempotency_Key="k")
        self.server.submit(alpha, gzip.compress(self.next_body(), mtime=0), Content_Encoding="gzip")
        files = {"file": ("p.csv", self.next_body(), "text/csv")}
        form = {"headers": {"Content-Type": "multipart/form-data; boundary=xyz"}}
        self.server.api("POST", "/submissions", alpha, files=files, data={"message": "<b>"}, **form)
        for _ in range(4):
            self.server.submit(alpha, self.next_body())
        team = self.path_parameters["team"]
        for _ in range(2):
            self.server.submit(evaluator, self.next_body(), f"?team={team}")
        self.server.now += 1800
        self.server.submit(alpha, self.next_body())
        self.server.now += 1800
        self.server.submit(alpha, self.next_body())
        chosen = {"submissions": [self.path_parameters["submission"]]}
        self.server.api("PUT", "/selections", alpha, json=chosen)
        self.server.api("PUT", "/selections", beta, json=chosen)
        self.server.api("POST", "/team/token", self.tokens["Delta"])

    def use_pages(self):
        """Sign in, read pages, and submit forms."""
        assert not self.sign_in("lb_team_x")
        assert self.sign_in(self.tokens["Beta"])
        for body in (self.next_body(), b"x", self.next_body()):
            reply = self.submit_form(body)
        self.server.call("GET", "/boards/first", cookies=True)

        def send_form(action, **data):
            data["csrf"] = self.csrf()
            path = f"/boards/first/{action}"
            return self.server.call("POST", path, cookies=True, data=data).text

        ids = re.findall(r'name="submission" value="(\w{32})"', reply.text)
        for count in (3, 1):  # two are allowed
            send_form("selections", submission=ids[:count])
        self.tokens["Beta"] = re.search(r"lb_team_[\w-]{43}", send_form("token")).group()
        send_form("join", name="beta")

    def csrf(self, path="/boards/first/submit"):
        """Return the CSRF token of a page's forms."""
        page = self.server.call("GET", path, cookies=True).text
        return re.search(r'csrf(?:" value=|=)"?([^"]+)"', page).group(1)

    def sign_in(self, token):
        self.server.client.cookies.clear()
        data = {"token": token, "csrf": self.csrf("/login")}
        return self.server.call("POST", "/session", cookies=True, data=data).status_code == 303

    def submit_form(self, body):
        """Submit a file by the page's form."""
        return self.server.call(
            "POST", f"/boards/first/submit?csrf={self.csrf()}", cookies=True,
            files={"file": ("p.csv", body, "text/csv")},
            headers={"Content-Type": "multipart/form-data; boundary=xyz"},
        )  # fmt: skip

    def organise(self):
        """Do everything that an organiser can do before the close."""
        api, beta, team = self.server.api, self.tokens["Beta"], self.path_parameters["team"]
        # Nothing is sent: results of deliveries come at any time.
        webhook = {"url": "https://example.invalid/", "events": ["deadline_near"]}
        api("POST", "/webhooks", beta, json=webhook)
        api("POST", "/webhooks", self.organiser, json=webhook)
        api("POST", "/webhooks", self.organiser, json={**webhook, "format": "slack"})
        api("POST", "/webhooks/2/test", beta)
        api("DELETE", "/webhooks/2", self.organiser)
        api("POST", "/pause", beta)
        api("POST", "/pause", self.organiser)
        self.server.submit(beta, self.next_body())
        api("POST", "/resume", self.organiser)
        for visibility in VISIBILITIES:
            self.server.set_visibility(visibility, self.organiser)
            self.get_receipts(beta, self.next_body())
            if visibility != "public":
                self.read_everything()
            self.server.now += 1800
        self.server.set_visibility("public", self.organiser)
        api("PATCH", "/rules", self.organiser, json={"questions": 70})
        api("PATCH", "/rules", self.organiser, json={"questions": 1})
        self.accept_terms(beta)
        api("PUT", f"/teams/{team}/disqualification", self.organiser)
        self.read_everything()
        api("DELETE", f"/teams/{team}/disqualification", self.organiser)
        api("POST", f"/teams/{team}/token", self.organiser)
        api("DELETE", f"/teams/{team}/token", self.organiser)
        api("PUT", f"/teams/{team}/erasure", beta)
        api("PUT", f"/teams/{team}/erasure", self.organiser)
        api("PUT", "/registrations/1/erasure", self.organiser)
        api("POST", "/erasure", self.organiser)
        self.server.now += 7200
        for _ in range(6):
            self.server.submit(beta, self.next_body())
        api("PATCH", "/rules", self.organiser, json={"end": "2020-01-01T00:00:00Z"})
        self.server.submit(beta, self.next_body())
        self.read_hashes(None)

    def accept_terms(self, token):
        """Add terms and people; submit before and after the terms are accepted."""
        api, board = self.server.api, self.server.boards.open("first")
        changes = {"terms": "Be fair.", "registration": "sign_in", "data": {"members": True}}
        changes["organisers"] = ["Ada"]
        assert api("PATCH", "/rules", self.organiser, json=changes).status_code == 200
        assert self.server.submit(token, self.next_body()).status_code == 403
        self.read_everything()
        api("POST", "/terms", token, json={"version": "0" * 64})
        version = api("GET", "/terms", token).json()["version"]
        api("POST", "/terms", token, json={"version": version})
        self.server.submit(token, self.next_body())
        for body in ({"uses": 2}, {"uses": 0}, {"days": 1}):
            invitation = api("POST", "/team/invitations", token, json=body).json()
        person = VerifiedIdentity("u", "https://u.example", "1", "Bob", None)
        hashed = board.identities.sign_in(person, seconds=60)
        caller = self.server.boards.caller_by_token_hash(hashed, "first")
        board.members.join(caller, invitation["invitation"])
        api("GET", "/team/members", token)
        api("PUT", "/team/members/1", token, json={"role": "owner"})
        api("DELETE", "/team/members/1", token)  # the only owner
        api("POST", "/membership", token, json={"invitation": "lb_member_x"})
        api("DELETE", "/membership", token)
        for method in ("PUT", "DELETE"):
            api(method, "/registrations/1/organiser", self.organiser)
        teams = [row["id"] for row in api("GET", "/teams", self.organiser).json()["teams"]]
        api("POST", f"/teams/{teams[-1]}/merge", self.organiser, json={"into": teams[-2]})
        self.read_everything()
        assert api("PATCH", "/rules", self.organiser, json={"terms": None}).status_code == 200


def run_session(server, world, caplog, *, script="run_everything"):
    """Run a script on a board of a world; return the server, which has recorded all output."""
    logger = "ladderboard"
    with warnings.catch_warnings(record=True) as warned, caplog.at_level(logging.DEBUG, logger):
        warnings.simplefilter("always")
        server.boards.create(make_folder(world, server.path))
        organiser = server.boards.create_first_token()
        caplog.clear()
        with server:
            getattr(BoardSession(server, organiser, world), script)()
        server.read_ledger()
        records = [record for record in caplog.records if record.name.startswith(logger)]
        outputs = {
            "log": server.log.getvalue().splitlines(),
            "logging": [record.getMessage() for record in records],
            "warnings": [str(warning.message) for warning in warned],
            "entries": server.entries,
            "tables": server.tables(),
            "files": server.files(),
        }
        server.steps += [{"step": step, "output": output} for step, output in outputs.items()]
        server.boards.close()
    return server
