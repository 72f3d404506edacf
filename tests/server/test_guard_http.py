"""The guard over HTTP: what it answers, what it refuses, and what it never says."""

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
from ladderboard.server import GuardApp


def npy(array):
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()


def csv(array):
    return ("id,prediction\n" + "".join(f"{at},{each}\n" for at, each in enumerate(array))).encode()


def is_problem(answer, status, code):
    got, headers, said = answer
    assert (got, said["status"], said["code"]) == (status, status, code), said
    assert headers["content-type"] == "application/problem+json"
    assert set(said) == {"type", "title", "status", "detail", "code", "errors"}
    assert "Traceback" not in json.dumps(said)
    return said


def test_a_question_gets_the_fields_of_a_reply_and_the_same_again_costs_nothing(served, labels):
    status, headers, said = served.ask(npy(labels ^ (np.arange(200) < 40)))
    assert status == 201
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers
    assert (said["released"], said["improved"], said["question"]) == (0.2, True, 1)
    assert (said["remaining"], said["again"], said["ladder"]) == (9, False, "")
    assert said["reason"] == "The best is now 0.2; 9 questions left."
    assert said["bound"] == served.guard.certificate.describe()
    status, _, again = served.ask(csv(labels ^ (np.arange(200) < 40)), Content_Type="text/csv")
    assert (status, again["again"], again["remaining"]) == (200, True, 9)


def test_the_status_is_public_and_holds_no_labels(served, labels):
    served.ask(npy(labels), "?ladder=deep")
    status, _, said = served.call()
    assert status == 200
    assert (said["n"], said["questions"], said["asked"], said["remaining"]) == (200, 10, 1, 9)
    assert said["loss"] == {"loss": "zero_one", "classes": [0, 1]}
    assert said["kind"] == "number"
    assert [each["name"] for each in said["ladders"]] == ["", "deep"]
    assert [(each["ladder"], each["value"]) for each in said["history"]] == [("deep", 0.0)]
    assert said["head"] == served.guard.head
    # Whatever is in it, it is from this list; the labels and ids of the holdout are not.
    assert set(said) == {
        *("n", "loss", "mechanism", "questions", "beta", "rows", "kind", "worth", "weighted"),
        "zero_one",
        "declared_ladders",
        *("asked", "charged", "remaining", "closed", "released", "bound", "ladders", "history"),
        *("commitment", "head", "opening", "entries", "changes", "lost", "time"),
    }
    assert set(said["opening"]) == {
        *("format", "book", "number", "kind", "time", "previous", "n", "loss", "mechanism"),
        *("rules", "holdout", "key", "commitment"),
    }


def test_the_meter_is_the_short_form(served, labels):
    served.ask(npy(labels ^ 1))
    _, _, first = served.call(path="/api/v1/guard/meter")
    assert (first["released"], first["remaining"], first["asked"]) == (1.0, 9, 1)
    _, _, new = served.call(path="/api/v1/guard/meter?ladder=new")
    assert (new["released"], new["remaining"]) == (1.0, 9)
    assert "new" not in [each.name for each in served.guard.status().ladders]


def test_looking_changes_nothing(served):
    head = served.guard.head
    for path in ("/healthz", "/api/v1/guard", "/api/v1/guard/meter"):
        assert served.call(path=path)[0] == 200
    assert served.guard.head == head


def test_every_format_that_is_sent_is_taken(served, labels):
    import polars as pl

    right = labels ^ (np.arange(200) < 20)
    frame = pl.DataFrame({"id": np.arange(200), "prediction": right})
    parquet, arrow = io.BytesIO(), io.BytesIO()
    frame.write_parquet(parquet)
    frame.write_ipc(arrow)
    lines = "".join(json.dumps({"id": i, "prediction": int(p)}) + "\n" for i, p in enumerate(right))
    bodies = {
        "text/csv": csv(right),
        "text/tab-separated-values": csv(right).replace(b",", b"\t"),
        "application/vnd.apache.parquet": parquet.getvalue(),
        "application/vnd.apache.arrow.file": arrow.getvalue(),
        "application/x-ndjson": lines.encode(),
        "application/x-npy": npy(right),
    }
    assert set(_FORMATS.values()) == set(bodies)
    served.ask(npy(right))
    for kind, body in bodies.items():
        status, _, said = served.ask(body, Content_Type=kind)
        assert (status, said["again"]) == (200, True), kind
    assert served.ask(csv(right), Content_Type="text/csv; charset=UTF-8")[0] == 200
    packed = gzip.compress(csv(right))
    assert served.ask(packed, Content_Type="text/csv", Content_Encoding="gzip")[0] == 200
    assert served.guard.remaining == 9


def test_invalid_predictions_are_refused_item_by_item_as_in_process(served):
    body = b"id,prediction\n0,1\n1,\n1,0\n7777,1\n"
    with pytest.raises(InvalidPredictions) as local:
        served.guard.ask(body)
    said = is_problem(served.ask(body, Content_Type="text/csv"), 422, "invalid_predictions")
    assert said["detail"] == str(local.value)
    assert [(each["code"], tuple(each["ids"])) for each in said["errors"]] == [
        (each.code, each.ids) for each in local.value.problems
    ]
    assert len(said["errors"]) > 2
    assert served.guard.remaining == 10


def test_no_more_ladders_than_were_declared(served, labels):
    """One question on each of many ladders would be as many exact answers."""
    for at in range(5):
        assert served.ask(npy(labels), f"?ladder={at}")[0] == 201
    is_problem(served.ask(npy(labels), "?ladder=one-more"), 409, "too_many_ladders")
    is_problem(served.ask(npy(labels)), 409, "too_many_ladders")
    is_problem(served.call(path="/api/v1/guard/ladder"), 409, "too_many_ladders")
    assert served.call(path="/api/v1/guard/ladder?ladder=4")[2] == {"ladder": "4", "ladders": 5}
    assert served.ask(npy(labels ^ 1), "?ladder=4")[0] == 201
    assert served.guard.remaining == 4


def test_only_one_ladder_may_be_served(serve, guard, labels):
    served = serve(guard, ladder="study")
    assert served.ask(npy(labels))[2]["ladder"] == "study"
    assert served.ask(npy(labels), "?ladder=study")[2]["again"]
    is_problem(served.ask(npy(labels), "?ladder=other"), 409, "too_many_ladders")
    is_problem(served.call(path="/api/v1/guard/meter?ladder=other"), 409, "too_many_ladders")
    meter = served.call(path="/api/v1/guard/meter")[2]
    assert (meter["ladder"], meter["released"], meter["ladders"]) == ("study", 0.0, 5)
    assert [each.questions for each in guard.status().ladders] == [0, 1]


def test_a_refusal_starts_no_ladder(served, labels):
    head = served.guard.head
    is_problem(served.ask(b"nonsense", "?ladder=new"), 422, "invalid_predictions")
    is_problem(served.ask(npy(labels), "?ladder=new&training=0.5"), 400, "invalid_setting")
    is_problem(served.ask(npy(labels), f"?ladder={'x' * 101}"), 400, "invalid_setting")
    is_problem(served.ask(npy(labels), "?ladder=a%0Ab"), 400, "invalid_setting")
    is_problem(served.ask(npy(labels), "?laddr=new"), 400, "invalid_setting")
    is_problem(served.ask(npy(labels), "?ladder=a&ladder=b"), 400, "invalid_setting")
    is_problem(served.ask(npy(labels), "?training=half"), 400, "invalid_setting")
    is_problem(served.ask(npy(labels), "?training=nan"), 400, "invalid_setting")
    is_problem(served.call(path="/api/v1/guard?x=1"), 400, "invalid_setting")
    assert served.guard.head == head


def test_past_the_budget_and_after_the_close_there_is_a_clear_refusal(served, labels):
    models = [labels ^ (np.arange(200) < each) for each in range(11)]
    assert [served.ask(npy(each))[0] for each in models[:10]] == [201] * 10
    said = is_problem(served.ask(npy(models[10])), 409, "budget_spent")
    assert said["detail"] == "All 10 questions were asked; the budget is spent."
    assert served.ask(npy(models[3]))[0] == 200  # what was answered stays answered
    head = served.guard.head
    is_problem(served.ask(npy(models[3]), "?ladder=new"), 409, "budget_spent")
    assert served.guard.head == head
    served.guard.close_for_good()
    is_problem(served.ask(npy(models[10])), 409, "closed")
    is_problem(served.ask(npy(models[10]), "?ladder=new"), 409, "closed")


def test_a_mechanism_that_needs_training_says_so(serve, labels, tmp_path):
    guard = lb.Holdout.create(
        tmp_path / "g.db", labels, questions=3, mechanism=lb.Thresholdout(threshold=0.1, noise=0.01)
    )
    served = serve(guard)
    said = is_problem(served.ask(npy(labels)), 400, "invalid_setting")
    assert "training" in said["detail"]
    assert served.ask(npy(labels), "?training=0.25")[0] == 201


def test_too_much_is_refused_whether_it_was_announced_or_not(serve, guard, labels):
    served = serve(guard, max_bytes=5000)
    is_problem(served.ask(b"x" * 5001), 413, "too_large")
    parts = iter([b"x" * 4000, b"x" * 4000])  # sent in chunks, without a length
    is_problem(served.ask(parts), 413, "too_large")
    is_problem(served.ask(gzip.compress(b"0\n" * 10**6)), 422, "invalid_predictions")
    for each in range(10):  # twice what there is room for at once: it was given back
        assert served.ask(npy(labels ^ (np.arange(200) < each)))[0] == 201


def test_what_stops_coming_or_comes_all_at_once_is_not_waited_for(serve, guard, monkeypatch):
    monkeypatch.setattr("ladderboard.server._guard._body._PATIENCE", 0.3)
    served = serve(guard, max_bytes=5000)
    address = served.listener.socket.getsockname()
    head = f"POST /api/v1/guard/questions HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\n"
    head += "Expect: 100-continue\r\nContent-Length: 4000\r\n\r\n"
    with contextlib.ExitStack() as ends:
        lines = [ends.enter_context(socket.create_connection(address)) for _ in range(3)]
        for line in lines:
            line.sendall(head.encode())
            assert line.recv(100).startswith(b"HTTP/1.1 100")
            line.sendall(b"x" * 3500)
        answers = sorted(line.recv(20)[9:12] for line in lines)
    assert answers == [b"408", b"408", b"503"]
    assert served.guard.remaining == 10


def test_other_media_types_are_refused(served, labels):
    for headers in (
        {"Content_Type": "application/x-www-form-urlencoded"},
        {"Content_Type": "multipart/form-data; boundary=x"},
        {"Content_Type": "text/plain"},
        {"Content_Type": "application/json"},
        {"Content_Type": "text/csv; charset=latin-1"},
        {"Content_Type": "text/csv", "Content_Encoding": "br"},
    ):
        is_problem(served.ask(csv(labels), **headers), 415, "content_type")
    assert served.guard.remaining == 10


def test_places_and_methods_that_are_not_there(served):
    is_problem(served.call(path="/"), 404, "not_found")
    is_problem(served.call(path="/api/v1/guard/../../guard.db"), 404, "not_found")
    is_problem(served.call("DELETE"), 405, "not_found")
    is_problem(served.call(path="/api/v1/guard/questions"), 405, "not_found")


def test_of_a_storage_that_fails_only_the_owner_hears_why(served, labels, monkeypatch, caplog):
    def fails(*_, **__):
        raise StorageFailed("owners/guard.db: disk I/O error")

    monkeypatch.setattr(type(served.guard), "ask", fails)
    monkeypatch.setattr(type(served.guard), "remaining", property(fails))
    with caplog.at_level(logging.INFO, "ladderboard.guard"):
        said = is_problem(served.ask(npy(labels)), 503, "storage")
        is_problem(served.call(path="/healthz"), 503, "storage")
    assert "owners" not in json.dumps(said)
    assert "disk I/O error" in caplog.text


def test_nobody_sees_what_a_breakdown_was_about(served, labels, monkeypatch, caplog):
    def breaks(*_, **__):
        raise RuntimeError("label 7 is cat")

    monkeypatch.setattr(type(served.guard), "ask", breaks)
    with caplog.at_level(logging.INFO, "ladderboard.guard"):
        said = is_problem(served.ask(npy(labels)), 500, "broken")
    assert "cat" not in json.dumps(said)
    assert "cat" not in caplog.text
    assert "RuntimeError at breaks" in caplog.text


def test_the_log_has_one_line_a_question_without_its_outcome(served, labels, caplog):
    with caplog.at_level(logging.DEBUG):
        served.ask(npy(labels), "?ladder=" + "a" * 99)
        served.ask(npy(labels), "?ladder=%1b[31m")
        served.call()
    ours = [each.getMessage() for each in caplog.records if each.name == "ladderboard.guard"]
    assert ours == [
        f"question on ladder '{'a' * 79}...: answered",
        r"question on ladder '\x1b[31m': invalid_setting",
    ]
    assert not [each for each in caplog.records if each.name.startswith("uvicorn")]


def test_the_same_predictions_from_many_threads_are_one_question(served, labels):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: served.ask(npy(labels)), range(24)))
    assert sorted(status for status, _, _ in answers) == [200] * 23 + [201]
    assert served.guard.remaining == 9


def test_an_application_takes_a_limit_that_is_one(guard):
    with pytest.raises(lb.LadderboardError, match="max_bytes"):
        GuardApp(guard, hosts=None, max_bytes=0)
