"""Two worlds over HTTP that differ in labels and splits, with a mechanism that ignores the scores.

Nothing visible before the close differs: no byte of a reply, no header, no metric, no line of a
log, no entry of the ledger, no row of a table, no receipt. Salts are fixed, so commitments are
hashes of salts alone: see tests/holdout/test_two_worlds.py. What that cannot show is in
test_board_salts.py: no salt is disclosed, and hashes with fresh salts leak nothing.
"""

import json

import numpy as np
import pytest

from ladderboard.board import _submissions
from ladderboard.errors import InvalidPredictions
from ladderboard.holdout import Scorer
from ladderboard.server import _middleware
from ladderboard.server._api import _submissions as endpoint
from ladderboard.server._log import Metrics
from support.two_worlds import board_session
from support.two_worlds.disclosures import check_disclosures, check_receipt_routes, check_receipts
from support.two_worlds.mechanisms import LeakyLadder


@pytest.fixture
def run_worlds(run_world):
    """Run both worlds; return both servers and the first difference between them."""

    def run(kind, **options):
        servers = [run_world(world, kind, **options) for world in (0, 1)]
        return servers, first_difference(*(server.steps for server in servers))

    return run


def test_two_worlds_cannot_be_distinguished(run_worlds, database, tmp_path):
    servers, difference = run_worlds(database)
    assert difference is None
    check_disclosures(servers[0])
    # Every route gave receipts, and they open the public entries of the ledger.
    check_receipt_routes(servers[0])
    assert check_receipts(servers[0], tmp_path) == check_receipts(servers[1], tmp_path)
    steps = servers[0].steps
    # The session covered the intended statuses, paths and entries.
    statuses = [step["output"][0] for step in steps if step["step"][0].isdigit()]
    expected_statuses = {200, 201, 204, 303, 304, 400, 401, 403, 404, 405, 409, 413, 415, 422, 429}
    assert expected_statuses <= set(statuses)
    assert not [status for status in statuses if status >= 500]
    reads = [step for step in steps if " GET " in step["step"]]
    paths_read = {step["step"].split()[2] for step in reads if step["output"][0] == 200}
    paths = [f"/api/v1/boards/first/{name}" for name in ("records", "ledger", "team", "teams")]
    assert {*paths, "/metrics", "/healthz", "/boards/first", "/api/v1/boards"} <= paths_read
    outputs = {step["step"]: step["output"] for step in steps}
    kinds = {json.loads(entry)["kind"] for entry in outputs["entries"]}
    expected_kinds = {
        "opened",
        "ladder",
        "question",
        "paused",
        "resumed",
        "amended",
        "disqualified",
        "accepted",
    }
    assert expected_kinds <= kinds
    assert len([entry for entry in outputs["entries"] if b'"question"' in entry]) > 12
    values = {row[-5] for row in outputs["tables"]["submission"]}
    assert len(values) > 2  # the mechanism does release different values


def test_two_worlds_of_a_statistic_cannot_be_distinguished(run_worlds, monkeypatch):
    """Worlds with the same number of positives among the public rows: that number is published."""

    def truth(world):
        rng = np.random.default_rng([8, world])
        order = rng.permutation(board_session.N)
        split = np.where(order < board_session.PUBLIC, "public", "private")
        return (order % 4 == 0).astype(int), split

    rules = board_session.RULES.replace("loss: zero_one", "metric: roc_auc")
    monkeypatch.setattr(board_session, "RULES", rules)
    monkeypatch.setattr(board_session, "truth", truth)
    servers, difference = run_worlds("sqlite", script="run_all_submissions")
    assert difference is None
    outputs = {step["step"]: step["output"] for step in servers[0].steps}
    assert json.loads(outputs["entries"][0])["rules"]["promise"]["published"] == {
        "counts": [30, 10]
    }
    assert len({row[-4] for row in outputs["tables"]["submission"]}) > 2


def test_a_leaky_mechanism_is_found(run_worlds):
    assert run_worlds("sqlite", mechanism=LeakyLadder, script="run_all_submissions")[1] is not None


class RiskSpy:
    """Records every risk, for the leaks below to disclose."""

    def __init__(self, monkeypatch):
        self.risk = 0.0
        score = Scorer.score

        def listen(scorer, submission):
            scored = score(scorer, submission)
            self.risk = scored.risk
            return scored

        monkeypatch.setattr(Scorer, "score", listen)


def leak_a_header(monkeypatch, spy):
    make_response = endpoint.make_response

    def leaking(request, content, status=200, *, headers=None, **options):
        headers = {**(headers or {}), "X-Time": f"{spy.risk}"} if status == 201 else headers
        return make_response(request, content, status, headers=headers, **options)

    monkeypatch.setattr(endpoint, "make_response", leaking)


def leak_a_reason(monkeypatch, spy):
    reason = _submissions._answer_sentence
    monkeypatch.setattr(
        _submissions,
        "_answer_sentence",
        lambda *args: reason(*args) + (" Well done!" if spy.risk < 0.3 else ""),
    )


def leak_a_refusal(monkeypatch, spy):
    score = Scorer.score

    def refuse(scorer, submission):
        scored = score(scorer, submission)
        if scored.risk == 0:
            raise InvalidPredictions("This is too good to be true.")
        return scored

    monkeypatch.setattr(Scorer, "score", refuse)


def leak_a_metric(monkeypatch, spy):
    count = Metrics.count_request

    def by_risk(metrics, method, route, status, seconds):
        count(metrics, method, route + " (good)" * (spy.risk < 0.4), status, seconds)

    monkeypatch.setattr(Metrics, "count_request", by_risk)


def leak_a_log_line(monkeypatch, spy):
    log_request = _middleware.RequestMiddleware._log_request

    def write(middleware, reply, seconds):
        log_request(middleware, reply, seconds)
        if reply.status == 201:
            middleware._log.write("scored", low=spy.risk < 0.4)

    monkeypatch.setattr(_middleware.RequestMiddleware, "_log_request", write)


LEAKS = {
    "header": (leak_a_header, "/submissions"),
    "reason": (leak_a_reason, "/submissions"),
    "refusal": (leak_a_refusal, "/submissions"),
    "metric": (leak_a_metric, "/metrics"),
    "line": (leak_a_log_line, "log"),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in {"refusal", "line"} else pytest.mark.slow)
        for name in LEAKS
    ],
)
def test_leaks_are_found(run_worlds, monkeypatch, name):
    leak, step_name = LEAKS[name]
    leak(monkeypatch, RiskSpy(monkeypatch))
    _, difference = run_worlds("sqlite", script="run_all_submissions")
    assert difference is not None
    assert step_name in difference[0]


def first_difference(steps, other_steps):
    """Return the first step in which two worlds differ, and how; None if they do not."""
    for left, right in zip(steps, other_steps, strict=False):  # one may have more steps
        if left != right:
            return left["step"], _differences(left["output"], right["output"])
    return (
        None
        if len(steps) == len(other_steps)
        else (f"step {min(len(steps), len(other_steps))}", [])
    )


def _differences(left, right):
    if not isinstance(left, dict):
        left, right = dict(enumerate(left)), dict(enumerate(right))
    keys = [*left, *(key for key in right if key not in left)]
    return [
        (key, left.get(key), right.get(key)) for key in keys if left.get(key) != right.get(key)
    ][:3]
