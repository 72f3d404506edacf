"""One scripted session on a board over HTTP, with everything written down that came out."""

from __future__ import annotations

import gzip
import logging
import re
import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

import ladderboard as lb
from ladderboard.board import Caller, Role, Rules, read_rules
from ladderboard.files import HoldoutTable, read_holdout
from ladderboard.mechanisms import Seen

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
SAME = {"/openapi.json", "/static/{name}", "/login", "/healthz"}  # once is enough
SHOWN = ("public", "hidden", "anonymous", "frozen")
NOISE = {"step": 0.01, "compare_noise": 0.1, "release_noise": 0.1, "grid": None}


@dataclass(frozen=True)
class Deaf(lb.ShakyLadder):
    """A mechanism that ignores the risk: it hears the same one always."""

    name: ClassVar[str] = "deaf"

    def advance(self, setup, state, seen, draws):
        return super().advance(setup, state, self.heard(seen), draws)

    def heard(self, seen):
        return Seen(0.4, None, None)


@dataclass(frozen=True)
class Leaky(Deaf):
    """One that is not deaf, for the test to find."""

    name: ClassVar[str] = "leaky"

    def heard(self, seen):
        return Seen(0.4 + seen.risk / 1e4, None, None)


@dataclass
class Folder:
    """A board's folder, without most of it."""

    rules: Rules
    table: HoldoutTable
    baselines: dict[str, Any] = field(default_factory=dict)


def truth(world):
    """Return a world's labels, and which rows are public: as many in each."""
    rng = np.random.default_rng([7, world])
    split = rng.permutation(np.where(np.arange(N) < PUBLIC, "public", "private"))
    return rng.integers(2, size=N), split


def file_of(values, header="id,prediction"):
    return "\n".join([header, *(f"id {at},{each}" for at, each in enumerate(values)), ""]).encode()


def table_of(world, *, corrected=False):
    """Return a world's holdout, or what its labels are corrected to."""
    labels, split = truth(world)
    rows = [f"id {at},{labels[at] ^ corrected},{split[at]}" for at in range(N)]
    return read_holdout("\n".join(["id,label,split", *rows, ""]).encode())


def folder_of(world, path):
    zeros = path / "zeros.csv"
    zeros.write_bytes(file_of([0] * N))
    return Folder(read_rules(RULES), table_of(world), {"Zeros": zeros})


def get_paths(app):
    """Return the templates of everything that can be read."""
    found = [route.path for route in app.routes if "GET" in (getattr(route, "methods", None) or ())]
    return sorted(found)


class Script:
    """What everybody does, in order."""

    def __init__(self, theatre, organiser, world):
        self.on, self.organiser, self.world = theatre, organiser, world
        rng = np.random.default_rng(5)
        # Models that know everything of one world, and some that know nothing.
        self.models = [truth(0)[0], truth(1)[0], *rng.integers(2, size=(30, N))]
        self.left = iter(self.models)
        self.known = {"board": "first", "team": "0" * 16, "submission": "0" * 32}
        self.known["name"] = "style.css"
        self.tokens = {}

    def next(self):
        return file_of(next(self.left))

    def tour(self):
        """Read everything there is to read, in every role."""
        people = {"public": None, "wrong": "lb_team_x", **self.tokens, "organiser": self.organiser}
        for token in people.values():
            for template in get_paths(self.on.app):
                if template not in SAME or not self.tokens:
                    self.on.call("GET", template.format(**self.known), token)
            for path in ("?format=csv", "?limit=1", "?limit=0", "?cursor=x"):
                self.on.api("GET", f"/leaderboard{path}", token)
            self.on.api("GET", "/ledger?first=2&limit=3", token)
        said = self.on.api("GET", "/leaderboard?limit=2")
        if said.status_code == 200:
            tag = {"If-None-Match": said.headers["etag"]}
            self.on.api("GET", "/leaderboard?limit=2", headers=tag)
            while said.json()["next"] is not None:
                said = self.on.api("GET", f"/leaderboard?limit=2&cursor={said.json()['next']}")

    def play(self):
        self.tour()
        self.come()
        self.err()
        self.ask()
        self.tour()
        self.page()
        self.run_board()
        self.tour()

    def play_in_brief(self):
        self.come()
        self.ask()
        self.tour()

    def play_at_a_glance(self):
        """Let out every kind of hash, and receipts on every way."""
        self.on.client.headers["Accept-Encoding"] = "identity"  # else lengths depend on salts
        self.come()
        alpha, beta, own = (self.tokens[each] for each in ("Alpha", "Beta", "evaluator"))
        for visibility in SHOWN:
            self.on.show(visibility, self.organiser)
            body = self.next()
            self.answered(alpha, body)
            self.on.submit(beta, body)
            self.look(None, alpha, beta, own, self.organiser)
            self.on.now += 3600
        self.on.show("public", self.organiser)
        correct = self.on.boards.open("first").amending.correct
        correct(Caller(Role.ORGANISER), table_of(self.world, corrected=True))
        self.answered(alpha, self.next())
        self.look(None, alpha)

    def play_shortly(self):
        """Ask a few questions, and look: enough for leaks that are planted."""
        self.on.client.headers["Accept-Encoding"] = "identity"
        self.come()
        alpha, beta = self.tokens["Alpha"], self.tokens["Beta"]
        for token in (alpha, beta) * 4:
            self.known["submission"] = self.on.submit(token, self.next()).json()["id"]
        self.look(None, alpha, beta)

    def play_to_the_end(self):
        """Close the board, and open nothing."""
        self.play_shortly()
        assert self.on.api("POST", "/close", self.organiser).status_code == 200
        self.look(None, self.tokens["Alpha"], self.organiser)

    def look(self, *tokens):
        """Read where there are hashes."""
        last = self.known["submission"]
        for token in tokens:
            self.on.call("GET", "/boards/first", token)
            for path in ("", "/ledger?limit=1000", "/submissions", f"/submissions/{last}"):
                self.on.api("GET", path, token)

    def answered(self, token, body):
        """Ask, ask again, fetch it, and send it by the page: each time there is a receipt."""
        said = self.on.submit(token, body)
        self.known["submission"] = said.json()["id"]
        self.on.submit(token, body)
        self.on.api("GET", f"/submissions/{said.json()['id']}", token)
        assert self.sign_in(token)
        self.send(body)

    def come(self):
        for name in ("Alpha", "Beta", "alpha ", "=cmd|x", "", "Delta", "Epsilon"):
            said = self.on.api("POST", "/teams", json={"name": name})
            if said.status_code == 201:
                self.tokens[name] = said.json()["token"]
                self.known["team"] = said.json()["id"]
        said = self.on.api("POST", "/tokens", self.organiser, json={"role": "evaluator"})
        self.tokens["evaluator"] = said.json()["token"]
        self.on.api("POST", "/tokens", self.tokens["Alpha"], json={"role": "organiser"})
        self.on.api("POST", "/invitations", self.organiser, json={"days": 1})

    def err(self):
        """Send what cannot be scored."""
        token, good = self.tokens["Alpha"], file_of(self.models[-1])
        lines = good.splitlines(keepends=True)
        bodies = [
            b"", b"\0" * 50, b"id,prediction\n", b"".join(lines[:-3]), good + lines[4],
            good.replace(b"id 7,", b"id x,"), good.replace(b"prediction", b"label"),
            file_of(["yes"] * N), file_of([0.5] * N), file_of([7] * N), file_of(["nan"] * N),
            file_of([""] * N), file_of([2**70] * N), good.replace(b",", b";"), b"x" * 30_000,
        ]  # fmt: skip
        for body in bodies:
            self.on.submit(token, body)
        packed = gzip.compress(good, mtime=0)
        self.on.submit(token, packed[:-9], Content_Encoding="gzip")
        self.on.submit(token, good, Content_Encoding="br")
        self.on.submit(token, good, Content_Type="image/png")
        self.on.submit(token, b"PAR1" * 9, Content_Type="application/vnd.apache.parquet")
        self.on.submit(token, good, "?massage=x")
        self.on.submit(token, good, "?team=" + "0" * 16)
        self.on.submit(token, good, Idempotency_Key="x" * 300)
        self.on.submit(None, good)
        self.on.submit("lb_team_x", good)
        self.on.submit(self.tokens["evaluator"], good)
        self.on.call("POST", "/api/v1/boards/other/submissions", token, content=good)
        form = {"Content-Type": "multipart/form-data; boundary=xyz"}
        wrong = {"field": ("p.csv", good, "text/csv")}
        self.on.api("POST", "/submissions", token, files=wrong, headers=form)
        self.on.api("DELETE", "/submissions", token)
        self.on.call("GET", "/nowhere")

    def ask(self):
        """Ask questions in every way, again, and more than is allowed."""
        alpha, beta, own = (self.tokens[each] for each in ("Alpha", "Beta", "evaluator"))
        first = self.next()
        said = self.on.submit(alpha, first, "?message=one", Idempotency_Key="k")
        self.known["submission"] = said.json().get("id", "0" * 32)
        self.on.submit(alpha, first)
        self.on.submit(alpha, first, Idempotency_Key="k")
        self.on.submit(beta, first, Idempotency_Key="k")
        self.on.submit(alpha, self.next(), Idempotency_Key="k")
        self.on.submit(alpha, gzip.compress(self.next(), mtime=0), Content_Encoding="gzip")
        files = {"file": ("p.csv", self.next(), "text/csv")}
        form = {"headers": {"Content-Type": "multipart/form-data; boundary=xyz"}}
        self.on.api("POST", "/submissions", alpha, files=files, data={"message": "<b>"}, **form)
        for _ in range(4):
            self.on.submit(alpha, self.next())
        team = self.known["team"]
        for _ in range(2):
            self.on.submit(own, self.next(), f"?team={team}")
        self.on.now += 1800
        self.on.submit(alpha, self.next())
        self.on.now += 1800
        self.on.submit(alpha, self.next())
        chosen = {"submissions": [self.known["submission"]]}
        self.on.api("PUT", "/selections", alpha, json=chosen)
        self.on.api("PUT", "/selections", beta, json=chosen)
        self.on.api("POST", "/team/token", self.tokens["Delta"])

    def page(self):
        """Sign in, look around, and submit by form."""
        assert not self.sign_in("lb_team_x")
        assert self.sign_in(self.tokens["Beta"])
        for body in (self.next(), b"x", self.next()):
            said = self.send(body)
        self.on.call("GET", "/boards/first", cookies=True)

        def fill(what, **data):
            data["csrf"] = self.word()
            return self.on.call("POST", f"/boards/first/{what}", cookies=True, data=data).text

        ids = re.findall(r'name="submission" value="(\w{32})"', said.text)
        for many in (3, 1):  # of which two may be
            fill("selections", submission=ids[:many])
        self.tokens["Beta"] = re.search(r"lb_team_[\w-]{43}", fill("token")).group()
        fill("join", name="beta")

    def word(self, place="/boards/first/submit"):
        """Return what a form has to say."""
        page = self.on.call("GET", place, cookies=True).text
        return re.search(r'csrf(?:" value=|=)"?([^"]+)"', page).group(1)

    def sign_in(self, token):
        self.on.client.cookies.clear()
        data = {"token": token, "csrf": self.word("/login")}
        return self.on.call("POST", "/session", cookies=True, data=data).status_code == 303

    def send(self, body):
        """Submit by form."""
        return self.on.call(
            "POST", f"/boards/first/submit?csrf={self.word()}", cookies=True,
            files={"file": ("p.csv", body, "text/csv")},
            headers={"Content-Type": "multipart/form-data; boundary=xyz"},
        )  # fmt: skip

    def run_board(self):
        """Do all that an organiser does before the close."""
        do, beta, team = self.on.api, self.tokens["Beta"], self.known["team"]
        do("POST", "/pause", beta)
        do("POST", "/pause", self.organiser)
        self.on.submit(beta, self.next())
        do("POST", "/resume", self.organiser)
        for visibility in SHOWN:
            self.on.show(visibility, self.organiser)
            self.answered(beta, self.next())
            if visibility != "public":
                self.tour()
            self.on.now += 1800
        self.on.show("public", self.organiser)
        do("PATCH", "/rules", self.organiser, json={"questions": 70})
        do("PATCH", "/rules", self.organiser, json={"questions": 1})
        do("PUT", f"/teams/{team}/disqualification", self.organiser)
        self.tour()
        do("DELETE", f"/teams/{team}/disqualification", self.organiser)
        do("POST", f"/teams/{team}/token", self.organiser)
        do("DELETE", f"/teams/{team}/token", self.organiser)
        self.on.now += 7200
        for _ in range(6):
            self.on.submit(beta, self.next())
        do("PATCH", "/rules", self.organiser, json={"end": "2020-01-01T00:00:00Z"})
        self.on.submit(beta, self.next())
        self.look(None)


def play(theatre, world, caplog, *, how="play"):
    """Play one world; return the theatre, which has seen all of it, step by step."""
    logger = "ladderboard"
    with warnings.catch_warnings(record=True) as warned, caplog.at_level(logging.DEBUG, logger):
        warnings.simplefilter("always")
        theatre.boards.create(folder_of(world, theatre.path))
        organiser = theatre.boards.first_token()
        caplog.clear()
        with theatre:
            getattr(Script(theatre, organiser, world), how)()
        theatre.look_inside()
        theatre.seen += [
            {"step": "log", "said": theatre.log.getvalue().splitlines()},
            {"step": "logging", "said": [each.getMessage() for each in caplog.records
                                         if each.name.startswith("ladderboard")]},
            {"step": "warnings", "said": [str(each.message) for each in warned]},
            {"step": "entries", "said": theatre.chain},
            {"step": "tables", "said": theatre.tables()},
            {"step": "files", "said": theatre.files()},
        ]  # fmt: skip
        theatre.boards.close()
    return theatre
