"""Room: what predictions may take of the memory of a served guard."""

import gzip
import io
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.files import Limits


def csv(array):
    rows = "".join(f"{at},{each}\n" for at, each in enumerate(array))
    return f"id,prediction\n{rows}".encode()


def test_what_unpacks_to_more_than_the_limit_is_refused(serve, guard, labels):
    served = serve(guard, max_bytes=20_000)
    wide = csv(labels) + b"\n" * 200_000
    packed = gzip.compress(wide)
    assert len(packed) < 20_000 < len(wide)
    status, _, said = served.ask(packed, Content_Type="text/csv")
    assert (status, said["errors"][0]["code"]) == (422, "too_many_bytes")
    assert served.ask(gzip.compress(csv(labels)), Content_Type="text/csv")[0] == 201
    assert guard.ask(wide, format="csv").again  # the guard itself is as it was


def test_limits_travel_with_the_guard(guard, labels):
    small = guard.with_limits(Limits(bytes=100)).ladder("other")
    for each in (small, pickle.loads(pickle.dumps(small))):
        with pytest.raises(lb.errors.InvalidPredictions, match="larger than 100 bytes"):
            each.ask(csv(labels))
    assert guard.ask(csv(labels)).released == 0


class Busy:
    """Counts who asks at once, and lets two wait for each other."""

    def __init__(self, monkeypatch, wait):
        self.now = self.most = 0
        self._lock = threading.Lock()
        together = threading.Barrier(2)
        ask = lb.Holdout.ask

        def counted(guard, *given, **how):
            with self._lock:
                self.now += 1
                self.most = max(self.most, self.now)
            try:
                if wait:
                    together.wait(timeout=20)
                else:
                    time.sleep(0.02)  # long enough for another one to come in, were it let in
                return ask(guard, *given, **how)
            finally:
                with self._lock:
                    self.now -= 1

        monkeypatch.setattr(lb.Holdout, "ask", counted)


def packed(array):
    return gzip.compress(csv(array))


def large(array):
    return csv(array) + b"\n" * 10_000


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


@pytest.mark.parametrize("write", [packed, large])
def test_of_what_may_take_much_one_is_read_at_a_time(serve, guard, labels, monkeypatch, write):
    busy = Busy(monkeypatch, wait=False)
    served = serve(guard, max_bytes=50_000)
    bodies = [write(labels ^ (np.arange(200) == at)) for at in range(8)]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda body: served.ask(body, Content_Type="text/csv"), bodies))
    assert {answer[0] for answer in answers} <= {201, 503}  # 503: they came in too fast
    assert busy.most == 1


def test_what_takes_little_is_not_kept_waiting(serve, guard, labels, monkeypatch):
    Busy(monkeypatch, wait=True)  # each needs another one beside it
    served = serve(guard, max_bytes=50_000)
    bodies = [npy(labels ^ (np.arange(200) == at)) for at in range(2)]
    with ThreadPoolExecutor(2) as threads:
        assert [each[0] for each in threads.map(served.ask, bodies)] == [201, 201]
