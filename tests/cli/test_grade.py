"""``ladderboard grade``: the grading server's answers, and the rewards of finished runs."""

import collections
import contextlib
import json

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.ledger import LedgerEnvironment
from support.fuzz.damaged_files import (
    CODES,
    FORMS,
    ROWS,
    compress,
    damage,
    make_table,
    write_table,
)
from support.fuzz.hostile_files import HOSTILE_FILES
from support.randomness import seeded_random
from support.server.guard_server import GuardServer, to_csv

N = 300
LABELS = np.random.default_rng(0).integers(0, 2, N)


def wrong_on(count):
    """Return predictions that are wrong on the first rows."""
    return LABELS ^ (np.arange(N) < count)


def form(content, name="file", filename="submission.csv"):
    """Return the body that ``curl -F file=@submission.csv`` sends, and its headers."""
    disposition = f'form-data; name="{name}"; filename="{filename}"'
    head = f"--sep\r\nContent-Disposition: {disposition}\r\nContent-Type: text/csv\r\n\r\n"
    body = head.encode() + content + b"\r\n--sep--\r\n"
    return body, {"Content-Type": "multipart/form-data; boundary=sep"}


@pytest.fixture
def gate(tmp_path):
    gate = lb.Gate.create(tmp_path / "gate.db", LABELS, looks=3, margin=0.05)
    gate.promote(wrong_on(80))
    yield gate
    gate.close()


@pytest.fixture
def guard(tmp_path):
    guard = lb.Holdout.create(
        tmp_path / "guard.db", LABELS, questions=3, mechanism=lb.Ladder(step=0.02)
    )
    yield guard
    guard.close()


def validate(server, content, query="", **parts):
    return server.call("POST", f"/validate{query}", *form(content, **parts))


def test_a_submission_is_validated_and_gets_a_verdict(gate):
    with GuardServer(gate, grade=True) as server:
        assert server.call(path="/health")[::2] == (200, {"status": "running"})
        status, _, body = validate(server, to_csv(wrong_on(10)))
        assert (status, body["valid"], body["errors"]) == (200, True, [])
        assert body["result"] == ("Submission is valid. Better than the incumbent. 2 looks left.")
        assert body["answer"] == gate.check(wrong_on(10)).describe() | {
            "again": False,
            "reason": "Better than the incumbent. 2 looks left.",
        }
        raw = {"Content-Type": "text/csv"}
        _, _, again = server.call("POST", "/validate", to_csv(wrong_on(10)), raw)
        assert again["answer"]["again"]


def test_a_submission_is_validated_and_gets_a_release(guard):
    with GuardServer(guard, grade=True) as server:
        _, _, body = validate(server, to_csv(wrong_on(60)))
    assert body["result"] == "Submission is valid. The best is now loss 0.2. 2 questions left."
    assert (body["answer"]["released"], body["answer"]["improved"]) == (0.2, True)


def test_invalid_submissions_cost_nothing_and_say_what_is_wrong(gate):
    with GuardServer(gate, grade=True) as server:
        status, _, body = validate(server, to_csv(LABELS[:5]))
        assert (status, body["valid"], body["answer"]) == (200, False, None)
        assert body["result"].startswith("Submission invalid! ")
        assert "295" in body["result"]
        assert body["errors"]
        assert validate(server, b"")[2]["valid"] is False
        status, _, body = validate(server, to_csv(LABELS), name="other")
        assert (status, body["code"]) == (400, "form")
        assert gate.remaining == 3


def test_the_format_is_checked_for_free(gate):
    with GuardServer(gate, grade=True) as server:
        _, _, body = validate(server, to_csv(wrong_on(10)), "?format_only=true")
        assert body == {
            "result": "Submission is valid.", "valid": True, "answer": None, "errors": []
        }  # fmt: skip
        assert not validate(server, to_csv(LABELS[:5]), "?format_only=true")[2]["valid"]
        assert validate(server, to_csv(LABELS), "?format_only=yes")[0] == 400
        assert gate.remaining == 3


def test_a_spent_budget_is_told_for_valid_submissions_only(gate):
    for count in range(3):
        gate.check(wrong_on(count))
    with GuardServer(gate, grade=True) as server:
        _, _, body = validate(server, to_csv(wrong_on(9)))
        assert (body["valid"], body["answer"]) == (True, None)
        assert body["result"].startswith("Submission is valid. ")
        assert "budget" in body["result"]
        assert not validate(server, to_csv(LABELS[:5]))[2]["valid"]


def test_without_grading_there_is_no_such_address(gate):
    with GuardServer(gate) as server:
        assert validate(server, to_csv(LABELS))[0] == 404
        assert server.call(path="/health")[0] == 404


def test_a_token_is_needed_but_for_health(gate):
    with GuardServer(gate, grade=True, token="t" * 16) as server:
        assert validate(server, to_csv(LABELS))[0] == 401
        assert server.call(path="/health")[0] == 200


TYPES = ["text/csv", "application/vnd.apache.parquet", "application/octet-stream", "text/plain", ""]


def damaged_request(seed):
    """Return query, body and headers of a request with a damaged file, raw or in a form."""
    rng = seeded_random(seed)
    kind = rng.choice(FORMS)
    data = write_table(rng, kind, make_table(rng))
    data = compress(rng, damage(rng, data) if rng.random() < 0.6 else data)
    headers = {"Content-Type": rng.choice(TYPES)}
    if rng.random() < 0.6:
        data, headers = form(data, filename=f"submission.{rng.choice([kind, 'csv', 'x'])}")
        data = damage(rng, data) if rng.random() < 0.3 else data
    return rng.choice(["", "", "?format_only=true"]), data, headers


def check_damaged_requests(folder, seeds):
    """Send damaged files to a guard and a gate in two worlds with other labels.

    Each is answered or refused as documented. Refusals are the same whatever the labels are, cost
    nothing and change nothing. Returns how often each outcome came.
    """
    settings = {"ids": [f"id_{row}" for row in range(ROWS)], "key": b"k" * 32}
    outcomes = collections.Counter()
    with contextlib.ExitStack() as stack:
        served = []
        for world in range(2):
            labels = [(row + world) % 3 for row in range(ROWS)]
            guard = lb.Holdout.create(
                folder / f"guard-{world}.db", labels, questions=10**6,
                mechanism=lb.Ladder(step=0.01), **settings,
            )  # fmt: skip
            gate = lb.Gate.create(folder / f"gate-{world}.db", labels, looks=10**6, **settings)
            gate.promote(labels)
            for holdout in (guard, gate):
                stack.callback(holdout.close)
                server = stack.enter_context(GuardServer(holdout, grade=True))
                served.append((holdout, server))
        for seed in seeds:
            query, body, headers = damaged_request(seed)
            replies = []
            for holdout, server in served:
                before = holdout.remaining
                status, _, reply = server.call("POST", f"/validate{query}", body, headers)
                assert status in {200, 400, 413, 415}, (seed, status, reply)
                answered = status == 200 and reply["answer"] is not None
                cost = answered and not reply["answer"]["again"]
                assert holdout.remaining == before - cost, seed
                if answered:
                    reply = {**reply, "answer": None, "result": "answered"}
                    outcomes["answered"] += 1
                elif status == 200:
                    assert reply["valid"] is (not reply["errors"]), seed
                    assert {problem["code"] for problem in reply["errors"]} <= CODES, seed
                    assert reply["valid"] or query or reply["errors"], seed
                    assert "\x1b" not in reply["result"]
                    assert len(reply["result"]) < 25_000
                    outcomes[reply["errors"][0]["code"] if reply["errors"] else "valid"] += 1
                else:
                    outcomes[f"{status} {reply['code']}"] += 1
                replies.append((status, reply))
            assert replies[0] == replies[2], seed
            assert replies[1] == replies[3], seed
    return outcomes


def test_a_hundred_damaged_files_are_graded_or_refused(tmp_path):
    outcomes = check_damaged_requests(tmp_path, range(100))
    assert sum(outcomes.values()) == 400
    assert outcomes["answered"]
    assert outcomes["valid"]
    assert len(outcomes) > 8


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 6000, 1000))
def test_damaged_files_are_graded_or_refused_at_length(tmp_path, seed):
    assert sum(check_damaged_requests(tmp_path, range(seed, seed + 1000)).values()) == 4000


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE_FILES)
def test_hostile_files_are_refused_by_the_grading_server(tmp_path, name):
    make, _ = HOSTILE_FILES[name]
    labels = np.arange(1000) % 2
    guard = lb.Holdout.create(tmp_path / "guard.db", labels, questions=3, ids=range(1000))
    with contextlib.closing(guard), GuardServer(guard, grade=True) as server:
        kind = "application/jsonl" if "JSON" in name else "application/octet-stream"
        status, _, reply = server.call("POST", "/validate", make(), {"Content-Type": kind})
        assert (status, reply["valid"]) == (200, False)
        assert {problem["code"] for problem in reply["errors"]} <= CODES
        assert guard.remaining == 3


def test_nothing_but_the_verdict_depends_on_the_labels(tmp_path):
    """Two worlds with other labels: the same bytes, since three examples can prove nothing."""
    key, worlds = b"k" * 32, []
    for world in range(2):
        labels = np.random.default_rng(world).integers(0, 2, N)
        environment = LedgerEnvironment(clock=lambda: 1_700_000_000)
        gate = lb.Gate.create(
            tmp_path / f"{world}.db", labels, looks=2, key=key, environment=environment
        )
        gate.promote(LABELS)
        contents = [to_csv(LABELS ^ (np.arange(N) < 3)), to_csv(LABELS[:9]), b"id\n", b"\xff\x00"]
        contents += [to_csv(np.full(N, 7)), to_csv(LABELS ^ (np.arange(N) < 2)), to_csv(1 - LABELS)]
        with GuardServer(gate, grade=True) as server:
            replies = [validate(server, content) for content in contents]
            replies += [validate(server, content, "?format_only=true") for content in contents]
            replies.append(server.call(path="/health"))
        worlds.append(replies)
        gate.close()
    assert worlds[0] == worlds[1]
    assert [reply[2]["valid"] for reply in worlds[0][:7]] == [True, *[False] * 4, True, True]


@pytest.fixture
def reward(run_cli, tmp_path):
    """Run ``grade reward`` with predictions; return the result and what Harbor reads."""
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "reward.txt").write_text("1")  # planted by the agent

    def run(file, predictions, *options):
        submission = tmp_path / "submission.csv"
        if predictions is not None:
            submission.write_bytes(to_csv(predictions))
        result = run_cli("grade", "reward", file, submission, "--logs", logs, *options)
        assert not (logs / "reward.txt").exists()
        path = logs / "reward.json"
        return result, json.loads(path.read_text()) if path.exists() else None

    return run


def test_a_gates_reward(gate, reward, tmp_path):
    result, numbers = reward("gate.db", wrong_on(10))
    assert result.code == 0
    assert numbers == {"reward": 1, "better": 1, "not_worse": 1, "valid": 1}
    details = json.loads((tmp_path / "logs/reward-details.json").read_text())
    assert details["answer"]["outcome"] == "better"
    assert reward("gate.db", wrong_on(80) ^ (np.arange(N) == 99))[1] == {
        "reward": 0, "better": 0, "not_worse": 1, "valid": 1
    }  # fmt: skip
    assert reward("gate.db", wrong_on(80) ^ (np.arange(N) == 99), "--require", "not-worse")[1][
        "reward"
    ]
    # What Harbor takes is a flat object of numbers.
    assert all(isinstance(value, int | float) for value in numbers.values())


def test_a_guards_reward(guard, reward):
    assert reward("guard.db", wrong_on(60))[1] == {
        "reward": 1, "improved": 1, "released": 0.2, "valid": 1
    }  # fmt: skip
    assert reward("guard.db", wrong_on(90))[1]["reward"] == 0


def test_a_served_gate_or_guard_gives_the_reward(gate, guard, reward):
    with GuardServer(gate, grade=True) as server:
        assert reward(server.url, wrong_on(10))[1]["better"] == 1
    with GuardServer(guard, grade=True) as server:
        assert reward(server.url, wrong_on(60))[1]["improved"] == 1


@pytest.mark.parametrize("kind", ["missing", "short", "link", "folder"])
def test_an_invalid_submission_earns_nothing_and_costs_nothing(gate, reward, tmp_path, kind):
    submission = tmp_path / "submission.csv"
    if kind == "link":
        (tmp_path / "owners.csv").write_bytes(to_csv(wrong_on(10)))
        submission.symlink_to(tmp_path / "owners.csv")
    elif kind == "folder":
        submission.mkdir()
    result, numbers = reward("gate.db", LABELS[:5] if kind == "short" else None)
    assert (result.code, numbers) == (0, {"reward": 0, "valid": 0})
    assert gate.remaining == 3


def test_without_looks_there_is_no_reward(gate, reward, tmp_path):
    for count in range(3):
        gate.check(wrong_on(count))
    (tmp_path / "logs/reward.json").write_text('{"reward": 1}')  # planted
    (tmp_path / "logs/reward-details.json").write_text('{"answer": null}')  # of another run
    result, numbers = reward("gate.db", wrong_on(10))
    assert (result.code, numbers) == (3, None), result.err
    assert not list((tmp_path / "logs").iterdir())


def test_results_that_the_verifier_measured(run_cli, tmp_path):
    ids = [f"case-{index}" for index in range(60)]
    gate = lb.Gate.create(tmp_path / "cases.db", ids=ids, scores=True, looks=5)
    gate.promote({"id": ids, "score": [0] * 40 + [1] * 20})
    (tmp_path / "results.json").write_text(json.dumps(dict.fromkeys(ids, True)))
    words = ["grade", "reward", "cases.db", "--logs", tmp_path]
    result = run_cli(*words, "--results", "results.json", "--json")
    assert (result.code, result.json["reward"]) == (0, 1)
    (tmp_path / "submission.csv").write_text("id,score\n")
    refused = run_cli(*words, "submission.csv")
    assert refused.code == 2
    assert "--junit or --results" in refused.err
    assert run_cli(*words).code == 2
    # An agent that hands in scores would grade itself.
    assert run_cli("grade", "serve", "cases.db").code == 2


def test_a_gate_without_an_incumbent_cannot_grade(run_cli, tmp_path):
    lb.Gate.create(tmp_path / "new.db", LABELS, looks=3)
    refused = run_cli("grade", "serve", "new.db", "--port", "0")
    assert refused.code == 2
    assert "ladderboard gate promote" in refused.err
