"""Two worlds over HTTP that differ in labels and splits, and a mechanism that is deaf.

Nothing that comes out before the close differs: no byte of a reply, no header, no metric, no line
of a log, no entry of the ledger, no row of a table, no receipt. Salts are fixed, so commitments are
hashes of salts alone: see tests/holdout/test_two_worlds.py. What that cannot show is in
test_board_salts.py: that no salt is told, and that hashes with fresh salts tell nothing either.
"""

import json

import pytest

from ladderboard.board import _submissions
from ladderboard.errors import InvalidPredictions
from ladderboard.holdout import Scorer
from ladderboard.server import _middleware
from ladderboard.server._api import _submissions as endpoint
from ladderboard.server._metrics import Metrics
from support.two_worlds.disclosures import check_disclosures, check_receipt_routes, check_receipts
from support.two_worlds.mechanisms import LeakyLadder


@pytest.fixture
def run_worlds(run_world):
    """Run both worlds; return both servers and the first difference between them."""

    def run(kind, **options):
        servers = [run_world(world, kind, **options) for world in (0, 1)]
        return servers, first_difference(*(server.steps for server in servers))

    return run


def test_nothing_tells_two_worlds_apart(run_worlds, database, tmp_path):
    servers, difference = run_worlds(database)
    assert difference is None
    check_disclosures(servers[0])
    # Receipts came on every way, and open what everybody can see of the ledger.
    check_receipt_routes(servers[0])
    assert check_receipts(servers[0], tmp_path) == check_receipts(servers[1], tmp_path)
    steps = servers[0].steps
    # The session went where it should.
    seen = [each["output"][0] for each in steps if each["step"][0].isdigit()]
    wanted = {200, 201, 204, 303, 304, 400, 401, 403, 404, 405, 409, 413, 415, 422, 429}
    assert wanted <= set(seen)
    assert not [each for each in seen if each >= 500]
    read = [each for each in steps if " GET " in each["step"]]
    told = {each["step"].split()[2] for each in read if each["output"][0] == 200}
    paths = [f"/api/v1/boards/first/{each}" for each in ("records", "ledger", "team", "teams")]
    assert {*paths, "/metrics", "/healthz", "/boards/first", "/api/v1/boards"} <= told
    said = {each["step"]: each["output"] for each in steps}
    kinds = {json.loads(each)["kind"] for each in said["entries"]}
    wanted = {"opened", "ladder", "question", "paused", "resumed", "amended", "disqualified"}
    assert wanted <= kinds
    assert len([each for each in said["entries"] if b'"question"' in each]) > 12
    values = {row[-4] for row in said["tables"]["submission"]}
    assert len(values) > 2  # it is no mechanism that says nothing


def test_a_mechanism_that_hears_is_found_out(run_worlds):
    assert run_worlds("sqlite", mechanism=LeakyLadder, script="run_brief")[1] is not None


class Ear:
    """Hears every risk, for leaks to tell."""

    def __init__(self, monkeypatch):
        self.risk = 0.0
        score = Scorer.score

        def listen(own, submission):
            scored = score(own, submission)
            self.risk = scored.risk
            return scored

        monkeypatch.setattr(Scorer, "score", listen)


def leak_a_header(monkeypatch, ear):
    make_response = endpoint.make_response

    def told(request, said, status=200, *, headers=None, **more):
        headers = {**(headers or {}), "X-Time": f"{ear.risk}"} if status == 201 else headers
        return make_response(request, said, status, headers=headers, **more)

    monkeypatch.setattr(endpoint, "make_response", told)


def leak_a_reason(monkeypatch, ear):
    reason = _submissions._format_reason
    monkeypatch.setattr(
        _submissions,
        "_format_reason",
        lambda *what: reason(*what) + (" Well done!" if ear.risk < 0.3 else ""),
    )


def leak_a_refusal(monkeypatch, ear):
    score = Scorer.score

    def refuse(own, submission):
        scored = score(own, submission)
        if scored.risk == 0:
            raise InvalidPredictions("This is too good to be true.")
        return scored

    monkeypatch.setattr(Scorer, "score", refuse)


def leak_a_metric(monkeypatch, ear):
    count = Metrics.count_request

    def by_risk(own, method, route, status, seconds):
        count(own, method, route + " (good)" * (ear.risk < 0.4), status, seconds)

    monkeypatch.setattr(Metrics, "count_request", by_risk)


def leak_a_line(monkeypatch, ear):
    note = _middleware.RequestMiddleware._log_request

    def write(own, reply, seconds):
        note(own, reply, seconds)
        if reply.status == 201:
            own._log.write("scored", low=ear.risk < 0.4)

    monkeypatch.setattr(_middleware.RequestMiddleware, "_log_request", write)


LEAKS = {
    "header": (leak_a_header, "/submissions"),
    "reason": (leak_a_reason, "/submissions"),
    "refusal": (leak_a_refusal, "/submissions"),
    "metric": (leak_a_metric, "/metrics"),
    "line": (leak_a_line, "log"),
}


@pytest.mark.parametrize("name", LEAKS)
def test_leaks_are_found(run_worlds, monkeypatch, name):
    leak, where = LEAKS[name]
    leak(monkeypatch, Ear(monkeypatch))
    _, difference = run_worlds("sqlite", script="run_brief")
    assert difference is not None
    assert where in difference[0]


def first_difference(one, other):
    """Return the step at which two worlds part, and how; None if they do not."""
    for left, right in zip(one, other, strict=False):  # of which one may go on for longer
        if left != right:
            return left["step"], _parts(left["output"], right["output"])
    return None if len(one) == len(other) else (f"step {min(len(one), len(other))}", [])


def _parts(left, right):
    if not isinstance(left, dict):
        left, right = dict(enumerate(left)), dict(enumerate(right))
    places = [*left, *(at for at in right if at not in left)]
    return [(at, left.get(at), right.get(at)) for at in places if left.get(at) != right.get(at)][:3]
