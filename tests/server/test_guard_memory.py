"""How much memory predictions may take in a served guard."""

import gzip
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.files import Limits
from support.server.guard_server import to_csv, to_npy


def test_a_body_that_unpacks_to_more_than_the_limit_is_refused(serve_guard, guard, labels):
    guard_server = serve_guard(guard, max_bytes=20_000)
    unpacked = to_csv(labels) + b"\n" * 200_000
    packed = gzip.compress(unpacked)
    assert len(packed) < 20_000 < len(unpacked)
    status, _, body = guard_server.ask(packed, Content_Type="text/csv")
    assert (status, body["errors"][0]["code"]) == (422, "too_many_bytes")
    assert guard_server.ask(gzip.compress(to_csv(labels)), Content_Type="text/csv")[0] == 201
    assert guard.ask(unpacked, format="csv").again  # the guard itself is unchanged


def test_limits_stay_with_a_pickled_guard(guard, labels):
    small = guard.with_limits(Limits(bytes=100)).ladder("other")
    for limited in (small, pickle.loads(pickle.dumps(small))):
        with pytest.raises(lb.errors.InvalidPredictions, match="larger than 100 bytes"):
            limited.ask(to_csv(labels))
    assert guard.ask(to_csv(labels)).released == 0


class ConcurrencyCounter:
    """Counts concurrent questions, and lets two wait for each other."""

    def __init__(self, monkeypatch, wait):
        self.now = self.highest = 0
        self._lock = threading.Lock()
        together = threading.Barrier(2)
        ask = lb.Holdout.ask

        def counted(guard, *args, **kwargs):
            with self._lock:
                self.now += 1
                self.highest = max(self.highest, self.now)
            try:
                if wait:
                    together.wait(timeout=20)
                else:
                    time.sleep(0.02)  # long enough for another one to start, if it were let in
                return ask(guard, *args, **kwargs)
            finally:
                with self._lock:
                    self.now -= 1

        monkeypatch.setattr(lb.Holdout, "ask", counted)


def to_gzipped_csv(array):
    return gzip.compress(to_csv(array))


def to_padded_csv(array):
    return to_csv(array) + b"\n" * 10_000


@pytest.mark.parametrize("write", [to_gzipped_csv, to_padded_csv])
def test_large_bodies_are_read_one_at_a_time(serve_guard, guard, labels, monkeypatch, write):
    counter = ConcurrencyCounter(monkeypatch, wait=False)
    guard_server = serve_guard(guard, max_bytes=50_000)
    bodies = [write(labels ^ (np.arange(200) == index)) for index in range(8)]
    with ThreadPoolExecutor(8) as threads:
        answers = list(
            threads.map(lambda body: guard_server.ask(body, Content_Type="text/csv"), bodies)
        )
    assert {answer[0] for answer in answers} <= {201, 503}  # 503: too many at once
    assert counter.highest == 1


def test_small_bodies_are_read_concurrently(serve_guard, guard, labels, monkeypatch):
    ConcurrencyCounter(monkeypatch, wait=True)  # each waits for another one beside it
    guard_server = serve_guard(guard, max_bytes=50_000)
    bodies = [to_npy(labels ^ (np.arange(200) == index)) for index in range(2)]
    with ThreadPoolExecutor(2) as threads:
        assert [reply[0] for reply in threads.map(guard_server.ask, bodies)] == [201, 201]
