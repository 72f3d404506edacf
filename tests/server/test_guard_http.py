"""The guard over HTTP: what it answers, what it refuses, and what it never reveals."""

import contextlib
import gzip
import io
import json
import logging
import socket

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import InvalidPredictions, StorageFailed
from ladderboard.holdout._payload import _FORMATS
from support.server.guard_server import to_csv, to_npy


def assert_problem(reply, status, code):
    got_status, headers, body = reply
    assert (got_status, body["status"], body["code"]) == (status, status, code), body
    assert headers["content-type"] == "application/problem+json"
    assert set(body) == {"type", "title", "status", "detail", "code", "errors"}
    assert "Traceback" not in json.dumps(body)
    return body


def test_a_question_is_answered_and_a_duplicate_costs_nothing(guard_server, labels):
    status, headers, body = guard_server.ask(to_npy(labels ^ (np.arange(200) < 40)))
    assert status == 201
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers
    assert (body["released"], body["improved"], body["question"]) == (0.2, True, 1)
    assert (body["remaining"], body["again"], body["ladder"]) == (9, False, "")
    assert body["reason"] == "The best is now loss 0.2. 9 questions left."
    assert body["bound"] == guard_server.guard.certificate.describe()
    status, _, repeated = guard_server.ask(
        to_csv(labels ^ (np.arange(200) < 40)), Content_Type="text/csv"
    )
    assert (status, repeated["again"], repeated["remaining"]) == (200, True, 9)


def test_the_status_is_public_and_holds_no_labels(guard_server, labels):
    guard_server.ask(to_npy(labels), "?ladder=deep")
    status, _, body = guard_server.call()
    assert status == 200
    assert (body["n"], body["questions"], body["asked"], body["remaining"]) == (200, 10, 1, 9)
    assert body["loss"] == {"loss": "zero_one", "classes": [0, 1]}
    assert body["kind"] == "number"
    assert [ladder["name"] for ladder in body["ladders"]] == ["", "deep"]
    assert [(entry["ladder"], entry["value"]) for entry in body["history"]] == [("deep", 0.0)]
    assert body["head"] == guard_server.guard.head
    # It has exactly these fields; labels and ids of the holdout are not among them.
    assert set(body) == {
        *("n", "loss", "mechanism", "questions", "beta", "rows", "kind", "worth", "weighted"),
        "zero_one",
        "declared_ladders",
        *("asked", "charged", "remaining", "closed", "released", "bound", "ladders", "history"),
        *("commitment", "head", "opening", "entries", "changes", "lost", "time"),
    }
    assert set(body["opening"]) == {
        *("format", "book", "number", "kind", "time", "previous", "n", "loss", "mechanism"),
        *("rules", "holdout", "key", "commitment"),
    }


def test_the_meter_is_a_short_status(guard_server, labels):
    guard_server.ask(to_npy(labels ^ 1))
    _, _, meter = guard_server.call(path="/api/v1/guard/meter")
    assert (meter["released"], meter["remaining"], meter["asked"]) == (1.0, 9, 1)
    _, _, new_ladder = guard_server.call(path="/api/v1/guard/meter?ladder=new")
    assert (new_ladder["released"], new_ladder["remaining"]) == (1.0, 9)
    assert "new" not in [ladder.name for ladder in guard_server.guard.status().ladders]


def test_reading_changes_nothing(guard_server):
    head = guard_server.guard.head
    for path in ("/healthz", "/api/v1/guard", "/api/v1/guard/meter"):
        assert guard_server.call(path=path)[0] == 200
    assert guard_server.guard.head == head


def test_every_format_of_the_client_is_accepted(guard_server, labels):
    import polars as pl

    right = labels ^ (np.arange(200) < 20)
    frame = pl.DataFrame({"id": np.arange(200), "prediction": right})
    parquet, arrow = io.BytesIO(), io.BytesIO()
    frame.write_parquet(parquet)
    frame.write_ipc(arrow)
    lines = "".join(json.dumps({"id": i, "prediction": int(p)}) + "\n" for i, p in enumerate(right))
    bodies = {
        "text/csv": to_csv(right),
        "text/tab-separated-values": to_csv(right).replace(b",", b"\t"),
        "application/vnd.apache.parquet": parquet.getvalue(),
        "application/vnd.apache.arrow.file": arrow.getvalue(),
        "application/x-ndjson": lines.encode(),
        "application/x-npy": to_npy(right),
    }
    assert set(_FORMATS.values()) == set(bodies)
    guard_server.ask(to_npy(right))
    for kind, body in bodies.items():
        status, _, answer = guard_server.ask(body, Content_Type=kind)
        assert (status, answer["again"]) == (200, True), kind
    assert guard_server.ask(to_csv(right), Content_Type="text/csv; charset=UTF-8")[0] == 200
    packed = gzip.compress(to_csv(right))
    assert guard_server.ask(packed, Content_Type="text/csv", Content_Encoding="gzip")[0] == 200
    assert guard_server.guard.remaining == 9


def test_invalid_predictions_get_the_same_errors_as_in_process(guard_server):
    body = b"id,prediction\n0,1\n1,\n1,0\n7777,1\n"
    with pytest.raises(InvalidPredictions) as local:
        guard_server.guard.ask(body)
    refusal = assert_problem(
        guard_server.ask(body, Content_Type="text/csv"), 422, "invalid_predictions"
    )
    assert refusal["detail"] == str(local.value)
    assert [(error["code"], tuple(error["ids"])) for error in refusal["errors"]] == [
        (problem.code, problem.ids) for problem in local.value.problems
    ]
    assert len(refusal["errors"]) > 2
    assert guard_server.guard.remaining == 10


def test_no_more_ladders_than_declared_can_be_used(guard_server, labels):
    """One question on each of many ladders would give as many exact answers."""
    for number in range(5):
        assert guard_server.ask(to_npy(labels), f"?ladder={number}")[0] == 201
    assert_problem(guard_server.ask(to_npy(labels), "?ladder=one-more"), 409, "too_many_ladders")
    assert_problem(guard_server.ask(to_npy(labels)), 409, "too_many_ladders")
    assert_problem(guard_server.call(path="/api/v1/guard/ladder"), 409, "too_many_ladders")
    assert guard_server.call(path="/api/v1/guard/ladder?ladder=4")[2] == {
        "ladder": "4",
        "ladders": 5,
    }
    assert guard_server.ask(to_npy(labels ^ 1), "?ladder=4")[0] == 201
    assert guard_server.guard.remaining == 4


def test_a_refusal_starts_no_ladder(guard_server, labels):
    head = guard_server.guard.head
    assert_problem(guard_server.ask(b"nonsense", "?ladder=new"), 422, "invalid_predictions")
    assert_problem(
        guard_server.ask(to_npy(labels), "?ladder=new&training=0.5"), 400, "invalid_setting"
    )
    assert_problem(guard_server.ask(to_npy(labels), f"?ladder={'x' * 101}"), 400, "invalid_setting")
    assert_problem(guard_server.ask(to_npy(labels), "?ladder=a%0Ab"), 400, "invalid_setting")
    assert_problem(guard_server.ask(to_npy(labels), "?laddr=new"), 400, "invalid_setting")
    assert_problem(guard_server.ask(to_npy(labels), "?ladder=a&ladder=b"), 400, "invalid_setting")
    assert_problem(guard_server.ask(to_npy(labels), "?training=half"), 400, "invalid_setting")
    assert_problem(guard_server.ask(to_npy(labels), "?training=nan"), 400, "invalid_setting")
    assert_problem(guard_server.call(path="/api/v1/guard?x=1"), 400, "invalid_setting")
    assert guard_server.guard.head == head


def test_questions_past_the_budget_or_after_the_close_are_refused(guard_server, labels):
    models = [labels ^ (np.arange(200) < index) for index in range(11)]
    assert [guard_server.ask(to_npy(model))[0] for model in models[:10]] == [201] * 10
    refusal = assert_problem(guard_server.ask(to_npy(models[10])), 409, "budget_spent")
    assert refusal["detail"] == "All 10 questions were asked; the budget is spent."
    assert guard_server.ask(to_npy(models[3]))[0] == 200  # a duplicate is still answered
    head = guard_server.guard.head
    assert_problem(guard_server.ask(to_npy(models[3]), "?ladder=new"), 409, "budget_spent")
    assert guard_server.guard.head == head
    guard_server.guard.close_for_good()
    assert_problem(guard_server.ask(to_npy(models[10])), 409, "closed")
    assert_problem(guard_server.ask(to_npy(models[10]), "?ladder=new"), 409, "closed")


def test_a_missing_training_score_is_reported(serve_guard, labels, tmp_path):
    guard = lb.Holdout.create(
        tmp_path / "g.db", labels, questions=3, mechanism=lb.Thresholdout(threshold=0.1, noise=0.01)
    )
    guard_server = serve_guard(guard)
    refusal = assert_problem(guard_server.ask(to_npy(labels)), 400, "invalid_setting")
    assert "training" in refusal["detail"]
    assert guard_server.ask(to_npy(labels), "?training=0.25")[0] == 201


def test_too_large_bodies_are_refused_with_or_without_a_length(serve_guard, guard, labels):
    guard_server = serve_guard(guard, max_bytes=5000)
    assert_problem(guard_server.ask(b"x" * 5001), 413, "too_large")
    parts = iter([b"x" * 4000, b"x" * 4000])  # sent in chunks, without a length
    assert_problem(guard_server.ask(parts), 413, "too_large")
    assert_problem(guard_server.ask(gzip.compress(b"0\n" * 10**6)), 422, "invalid_predictions")
    for index in range(10):  # twice the memory limit in total: it was released
        assert guard_server.ask(to_npy(labels ^ (np.arange(200) < index)))[0] == 201


def test_stalled_or_too_many_bodies_are_refused(serve_guard, guard, monkeypatch):
    monkeypatch.setattr("ladderboard.server._guard._app._TIMEOUT_SECONDS", 0.3)
    guard_server = serve_guard(guard, max_bytes=5000)
    address = guard_server.listener.socket.getsockname()
    head = f"POST /api/v1/guard/questions HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\n"
    head += "Expect: 100-continue\r\nContent-Length: 4000\r\n\r\n"
    with contextlib.ExitStack() as exit_stack:
        connections = [
            exit_stack.enter_context(socket.create_connection(address)) for _ in range(3)
        ]
        for connection in connections:
            connection.sendall(head.encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 100")
            connection.sendall(b"x" * 3500)
        statuses = sorted(connection.recv(20)[9:12] for connection in connections)
    assert statuses == [b"408", b"408", b"503"]
    assert guard_server.guard.remaining == 10


def test_other_media_types_are_refused(guard_server, labels):
    for headers in (
        {"Content_Type": "application/x-www-form-urlencoded"},
        {"Content_Type": "multipart/form-data; boundary=x"},
        {"Content_Type": "text/plain"},
        {"Content_Type": "application/json"},
        {"Content_Type": "text/csv; charset=latin-1"},
        {"Content_Type": "text/csv", "Content_Encoding": "br"},
    ):
        assert_problem(guard_server.ask(to_csv(labels), **headers), 415, "content_type")
    assert guard_server.guard.remaining == 10


def test_unknown_paths_and_methods_are_refused(guard_server):
    assert_problem(guard_server.call(path="/"), 404, "not_found")
    assert_problem(guard_server.call(path="/api/v1/guard/../../guard.db"), 404, "not_found")
    assert_problem(guard_server.call("DELETE"), 405, "not_found")
    assert_problem(guard_server.call(path="/api/v1/guard/questions"), 405, "not_found")


def test_a_storage_failure_is_detailed_only_in_the_log(guard_server, labels, monkeypatch, caplog):
    def fails(*_, **__):
        raise StorageFailed("owners/guard.db: disk I/O error")

    monkeypatch.setattr(type(guard_server.guard), "ask", fails)
    monkeypatch.setattr(type(guard_server.guard), "remaining", property(fails))
    with caplog.at_level(logging.INFO, "ladderboard.guard"):
        refusal = assert_problem(guard_server.ask(to_npy(labels)), 503, "storage")
        assert_problem(guard_server.call(path="/healthz"), 503, "storage")
    assert "owners" not in json.dumps(refusal)
    assert "disk I/O error" in caplog.text


def test_an_internal_error_reveals_no_details(guard_server, labels, monkeypatch, caplog):
    def breaks(*_, **__):
        raise RuntimeError("label 7 is cat")

    monkeypatch.setattr(type(guard_server.guard), "ask", breaks)
    with caplog.at_level(logging.INFO, "ladderboard.guard"):
        refusal = assert_problem(guard_server.ask(to_npy(labels)), 500, "broken")
    assert "cat" not in json.dumps(refusal)
    assert "cat" not in caplog.text
    assert "RuntimeError at breaks" in caplog.text


def test_the_log_has_one_line_per_question_without_its_result(guard_server, labels, caplog):
    with caplog.at_level(logging.DEBUG):
        guard_server.ask(to_npy(labels), "?ladder=" + "a" * 99)
        guard_server.ask(to_npy(labels), "?ladder=%1b[31m")
        guard_server.call()
    messages = [
        record.getMessage() for record in caplog.records if record.name == "ladderboard.guard"
    ]
    assert messages == [
        f"question on ladder '{'a' * 79}...: answered",
        r"question on ladder '\x1b[31m': invalid_setting",
    ]
    assert not [record for record in caplog.records if record.name.startswith("uvicorn")]


def test_the_same_predictions_from_many_threads_are_one_question(guard_server, labels):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: guard_server.ask(to_npy(labels)), range(24)))
    assert sorted(status for status, _, _ in answers) == [200] * 23 + [201]
    assert guard_server.guard.remaining == 9
