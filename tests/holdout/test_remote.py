"""A remote guard gives the same answers, refusals and certificates as a local one."""

import itertools
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ladderboard as lb
from ladderboard.errors import (
    BudgetSpent,
    InvalidPredictions,
    InvalidSetting,
    SessionClosed,
    StorageFailed,
)
from ladderboard.ledger import LedgerEnvironment
from ladderboard.server import listen_on_unix_socket
from support.server.guard_server import GuardServer

N = 120
LABELS = np.random.default_rng(0).integers(3, size=N)
NAMES = np.array(["cat", "dog", "eel"])
MODEL = np.where(np.arange(N) < 30, (LABELS + 1) % 3, LABELS)
SHUFFLED = np.random.default_rng(1).permutation(N)


def create(path, labels=LABELS, **options):
    salts = itertools.count(1)
    environment = LedgerEnvironment(
        clock=lambda: 1_700_000_000, salt=lambda: next(salts).to_bytes(32, "big")
    )
    settings = {"questions": 50, "mechanism": lb.Ladder(step=0.02)} | options
    settings["ladders"] = min(3, settings["questions"])
    return lb.Holdout.create(path, labels, key=bytes(32), environment=environment, **settings)


@pytest.fixture
def connect():
    """A function that serves a guard until the test ends, and returns a client for it."""
    with ExitStack() as ends:

        def start(guard, listener=None, **options):
            server = ends.enter_context(GuardServer(guard, listener, **options))
            remote = ends.enter_context(lb.Holdout.connect(server.url))
            remote.stop = server.stop
            return remote

        yield start


@pytest.fixture
def remote(connect, tmp_path):
    return connect(create(tmp_path / "guard.db"))


def same(local, remote, predictions, **options):
    """Ask both guards, check that their replies or refusals agree, and return one."""
    outcomes = []
    for guard in (local, remote):
        try:
            outcomes.append(guard.ask(predictions, **options).describe())
        except lb.LadderboardError as error:
            outcomes.append((type(error), getattr(error, "problems", None), str(error)))
    assert outcomes[0] == outcomes[1]
    return outcomes[0]


def numbers():
    yield from (MODEL, MODEL.astype(np.uint8), MODEL.astype(">i4"), MODEL.astype(np.float32))
    yield from (MODEL.tolist(), MODEL.astype(float).tolist(), tuple(MODEL.tolist()), range(N))
    yield from ([None, *MODEL[1:].tolist()], ["x", *MODEL[1:].tolist()], MODEL.astype(object))
    yield from ([float("nan"), *MODEL[1:].tolist()], [float("inf"), *MODEL[1:].tolist()])
    yield from (
        [True] * N,
        MODEL.astype(np.longdouble),
        np.ma.masked_equal(MODEL, 1),
        MODEL[:, None],
    )
    yield from (np.array(["x"] * N), MODEL.astype(complex), [[1], *([2] * (N - 1))], [10**30] * N)
    yield from (
        {"id": range(N), "prediction": MODEL},
        {"id": SHUFFLED, "prediction": MODEL[SHUFFLED]},
    )
    yield from ({"id": [0] * N, "prediction": MODEL}, {"prediction": MODEL, "x": MODEL})
    yield {"id": [f"{id_}" for id_ in SHUFFLED], "prediction": MODEL[SHUFFLED].tolist()}
    frame = pd.DataFrame({"id": SHUFFLED, "prediction": MODEL[SHUFFLED]})
    yield from (frame, frame.set_index("id"), frame.set_index("id")["prediction"])
    yield from (pd.Series(MODEL), pd.Series(MODEL, dtype="Int64"), frame.rename(columns={"id": 3}))
    yield from (
        frame.assign(prediction=frame["prediction"].where(frame["id"] > 3)),
        frame.astype(str),
    )
    yield from (
        pl.DataFrame(frame.to_dict("list")),
        pl.Series(MODEL),
        pl.Series([None, *MODEL[1:]]),
    )
    yield np.rec.fromarrays([SHUFFLED, MODEL[SHUFFLED]], names=["id", "prediction"])
    yield from (
        [],
        np.array([]),
        MODEL[:-1],
        b"",
        b"id,prediction\n1,2\n",
        MODEL[SHUFFLED].tolist(),
    )


def test_objects_are_read_as_in_process(connect, tmp_path):
    local, remote = create(tmp_path / "a.db"), connect(create(tmp_path / "b.db"))
    outcomes = [same(local, remote, number) for number in numbers()]
    assert sum(isinstance(outcome, dict) for outcome in outcomes) > 20
    assert sum(isinstance(outcome, tuple) for outcome in outcomes) > 12
    assert local.head == remote.head


def texts():
    model = NAMES[MODEL]
    yield from (model, model.tolist(), model.astype(object), model.astype(np.dtypes.StringDType()))
    yield from (
        ["cat\ud800", *model[1:].tolist()],
        ["\u00e9" * 300] * N,
        [None, *model[1:].tolist()],
    )
    yield from (pd.Series(model), pd.Categorical(model), pl.Series(model).cast(pl.Categorical))
    yield from (pl.DataFrame({"id": SHUFFLED, "prediction": model[SHUFFLED]}), MODEL, MODEL / 2)
    yield from ({"id": SHUFFLED, "prediction": model[SHUFFLED].tolist()}, ["", *model[1:].tolist()])
    yield pd.DataFrame({"id": SHUFFLED, "prediction": pd.Series(model[SHUFFLED], dtype="string")})


def test_text_is_read_as_in_process(connect, tmp_path):
    local, remote = (
        create(tmp_path / "a.db", NAMES[LABELS]),
        connect(create(tmp_path / "b.db", NAMES[LABELS])),
    )
    outcomes = [
        same(local, remote, text) for text in texts() if not isinstance(text, pd.Categorical)
    ]
    assert sum(isinstance(outcome, dict) for outcome in outcomes) > 8
    assert sum(isinstance(outcome, tuple) for outcome in outcomes) > 3


def test_probabilities_are_read_as_in_process(connect, tmp_path):
    settings = {"loss": "brier", "classes": [0, 1, 2]}
    local, remote = (
        create(tmp_path / "a.db", **settings),
        connect(create(tmp_path / "b.db", **settings)),
    )
    odds = np.random.default_rng(4).dirichlet([1, 1, 1], size=N)
    outcomes = [
        same(local, remote, predictions)
        for predictions in (
            *(
                odds,
                odds.tolist(),
                odds.astype(object),
                np.asfortranarray(odds),
                pd.DataFrame(odds),
            ),
            pd.DataFrame(odds, columns=["p_0", "p_1", "p_2"]),
            {"id": range(N), **{f"p_{column}": odds[:, column] for column in range(3)}},
            pl.DataFrame({f"p_{column}": odds[:, column] for column in range(3)}),
            *(odds[:, :2], [[None, 1, 0]] * N, odds * 2, [["a", "b", "c"]] * N),
        )
    ]
    assert [isinstance(outcome, dict) for outcome in outcomes] == [True] * 8 + [False] * 4


def test_files_are_read_as_in_process(connect, tmp_path):
    import gzip

    local, remote = create(tmp_path / "a.db"), connect(create(tmp_path / "b.db"))
    frame = pl.DataFrame({"id": SHUFFLED, "prediction": MODEL[SHUFFLED]})
    frame.write_csv(tmp_path / "p.csv")
    frame.write_csv(tmp_path / "p.tsv", separator="\t")
    (tmp_path / "p.tsv.gz").write_bytes(gzip.compress((tmp_path / "p.tsv").read_bytes()))
    frame.write_parquet(tmp_path / "p.csv.parquet")
    frame.write_parquet(tmp_path / "lies.tsv")
    frame.write_ndjson(tmp_path / "p.jsonl")
    np.save(tmp_path / "p.npy", MODEL)
    names = ["p.csv", "p.tsv", "p.tsv.gz", "p.csv.parquet", "lies.tsv", "p.jsonl", "p.npy"]
    for name in names:
        assert isinstance(same(local, remote, tmp_path / name), dict), name
        assert isinstance(same(local, remote, str(tmp_path / name)), dict), name
        with (tmp_path / name).open("rb") as file:
            assert isinstance(remote.ask(file), lb.Reply)
    assert local.remaining == remote.remaining == 49
    same(local, remote, tmp_path / "p.csv", format=".CSV")
    same(local, remote, (tmp_path / "p.csv").read_bytes(), format="jsonl")
    for path in (tmp_path, tmp_path / "nowhere.csv"):
        with pytest.raises(InvalidPredictions) as refused:
            remote.ask(path)
        assert [problem.code for problem in refused.value.problems] == ["not_a_file"]
    with pytest.raises(InvalidSetting, match="format"):
        remote.ask(MODEL, format="xlsx")


def test_unsupported_objects_are_refused_by_the_client(remote):
    twice = pd.DataFrame(np.ones((N, 2)), columns=["prediction", "prediction"])
    for wrong, code in (
        (object(), "format"),
        (np.zeros((2, 2, 2)), "format"),
        (twice, "duplicate_column"),
        ({"id": [1], "prediction": [1, 2]}, "ragged"),
        ([[1, 2], [1]], "ragged"),
    ):
        with pytest.raises(InvalidPredictions) as refused:
            remote.ask(wrong)
        assert [problem.code for problem in refused.value.problems] == [code]


def test_a_remote_reply_has_all_fields(remote):
    reply = remote.ask(MODEL)
    assert isinstance(reply, lb.Reply)
    assert str(reply) == "The best is now loss 0.24. 49 questions left."
    assert reply.bound == remote.certificate
    assert pickle.loads(pickle.dumps(reply)).bound == reply.bound
    assert "Improved" in reply._repr_html_()
    assert (remote.released, remote.remaining) == (0.24, 49)


def test_the_remote_status_equals_the_guards(connect, tmp_path):
    guard = create(tmp_path / "g.db")
    remote = connect(guard)
    remote.ask(MODEL)
    remote.ladder("other").ask(LABELS)
    status, expected = remote.status(), guard.status()
    assert status.describe() == expected.describe()
    assert (status.ladders, status.history, status.opening) == (
        expected.ladders,
        expected.history,
        expected.opening,
    )
    assert status.meter == expected.meter == remote.meter
    assert remote.head == guard.head


def test_ladders_start_with_their_first_question(connect, tmp_path):
    guard = create(tmp_path / "g.db")
    remote = connect(guard)
    remote.ask(LABELS)
    other = remote.ladder("second study, 50%")
    assert other.released == 1
    assert len(guard.status().ladders) == 1
    assert repr(other) == f"RemoteHoldout({other._transport.url!r}, ladder='second study, 50%')"
    reply = other.ask(MODEL)
    assert (reply.ladder, reply.released, reply.question) == ("second study, 50%", 0.24, 1)
    assert (remote.released, other.released) == (0.0, 0.24)
    assert remote.ask(MODEL, ladder="third").question == 1
    for bad in ("", "a\nb", "x" * 101, None):
        with pytest.raises(InvalidSetting, match="name"):
            remote.ladder(bad)


def test_refusals_are_the_same_exceptions(connect, tmp_path):
    guard = create(tmp_path / "g.db", questions=1)
    remote = connect(guard, max_bytes=4000)
    with pytest.raises(InvalidPredictions, match="4000 bytes") as refused:
        remote.ask(np.zeros(N * 10))
    assert refused.value.problems[0].code == "too_many_bytes"
    with pytest.raises(InvalidSetting, match="training="):
        remote.ask(MODEL, training=0.5)
    with pytest.raises(InvalidSetting, match="training"):
        remote.ask(MODEL, training=2)
    remote.ask(MODEL)
    with pytest.raises(BudgetSpent, match="The only question was asked"):
        remote.ask(LABELS)
    guard.close_for_good()
    with pytest.raises(SessionClosed):
        remote.ask(LABELS)
    (tmp_path / "g.db.mark").unlink()
    with pytest.raises(StorageFailed, match="owner's log"):
        remote.ask(LABELS)


def test_a_custom_mechanism_of_the_guard_is_described(connect, tmp_path):
    class Silent(lb.Exact):
        name = "silent"

    guard = create(tmp_path / "g.db", mechanism=Silent())
    remote = connect(guard)
    assert remote.ask(MODEL).released == 0.25
    assert remote.status().meter.mechanism.describe() == {"mechanism": "silent"}
    assert remote.status().certificate == guard.status().certificate


def test_a_remote_guard_is_pickled_without_connections(remote, monkeypatch):
    remote.ask(MODEL)
    copy = pickle.loads(pickle.dumps(remote.ladder("x")))
    assert copy.ask(MODEL).ladder == "x"
    copy.close()


def test_new_connections_after_a_fork(remote):
    remote.ask(MODEL)
    (parents,) = remote._transport._idle
    remote._transport._process -= 1  # as the child of a fork finds it
    assert remote.remaining == 49
    assert remote._transport._idle[0] is not parents


def test_threads_can_share_a_remote_guard(remote):
    models = [np.roll(MODEL, index) for index in range(40)]
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(remote.ask, models))
    assert sorted(reply.question for reply in replies) == list(range(1, 41))
    assert remote.remaining == 10


def test_a_connection_closed_by_the_guard_is_reopened(connect, tmp_path):
    guard, path = create(tmp_path / "g.db"), tmp_path / "s"
    first = connect(guard, listen_on_unix_socket(path))
    first.ask(MODEL)
    first.stop()  # the idle connection of `first` is dead now
    connect(guard, listen_on_unix_socket(path))
    assert first.ask(LABELS).question == 2


def test_a_client_needs_only_numpy(remote):
    code = f"""
import sys, numpy as np, ladderboard as lb
guard = lb.Holdout.connect({remote._transport.url!r})
print(guard.ask(np.array({MODEL.tolist()})))
guard.ask({{"id": range({N}), "prediction": {MODEL.tolist()}}})
guard.close()
roots = {{name.split(".")[0] for name in sys.modules}} - set(sys.stdlib_module_names)
assert not roots & {{"polars", "pandas", "scipy", "starlette", "uvicorn", "sqlalchemy"}}, roots
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("The best is now loss 0.24. 49 questions left.\n", "")
