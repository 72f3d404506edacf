"""One scripted session on a guard, with everything written down that anybody could see of it."""

import contextlib
import hashlib
import io
import itertools
import json
import logging
import pickle
import re
import shutil
import sqlite3
import traceback
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl

import ladderboard as lb
from ladderboard.holdout import export_entries
from ladderboard.ledger import World
from ladderboard.mechanisms import Seen

N = 60
IDS = [f"id {at}" for at in range(N)]
KEY = hashlib.sha256(b"a noise key").digest()  # which nothing says by chance
# What is kept secret; of these the size is seen, and nothing else.
SECRET = {("secret", "packed"), ("ladder", "state"), ("kept", "value")}


@dataclass(frozen=True)
class Deaf(lb.ShakyLadder):
    """A mechanism that ignores the risk: it hears the same one always."""

    name: ClassVar[str] = "deaf"

    def advance(self, setup, state, seen, draws):
        return super().advance(setup, state, self.heard(seen), draws)

    def heard(self, seen):
        return Seen(0.4, None, None)


@dataclass(frozen=True)
class DeafByExample(Deaf):
    """One that is given the loss of every example."""

    name: ClassVar[str] = "deaf_by_example"
    needs: ClassVar[str] = "losses"


@dataclass(frozen=True)
class Leaky(Deaf):
    """One that is not deaf, for this test to find."""

    name: ClassVar[str] = "leaky"

    def heard(self, seen):
        return Seen(0.4 + seen.risk / 1e4, None, None)


NOISE = {"step": 0.01, "compare_noise": 0.1, "release_noise": 0.1, "grid": None}


def fixed_world(salt):
    """A clock that counts how often it was asked, and salts that are given."""
    times = itertools.count(1_000_000_000)
    return World(clock=lambda: next(times), salt=salt)


class Watched:
    """Writes down what every step of a session lets out."""

    def __init__(self, folder, capture):
        self.folder, self.capture = folder, capture
        self.path = folder / "guard.db"
        self.seen = []
        self.statements = []

    @contextlib.contextmanager
    def watching(self):
        """Hear every log line, warning and SQL statement while the session goes on."""
        lines = io.StringIO()
        handler = logging.StreamHandler(lines)
        handler.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))
        root, level = logging.getLogger(), logging.getLogger().level
        connect = sqlite3.connect

        def traced(*args, **how):
            link = connect(*args, **how)
            link.set_trace_callback(self.statements.append)
            return link

        root.addHandler(handler)
        root.setLevel(1)
        sqlite3.connect = traced
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                self.logged = lambda: [lines.getvalue(), [str(each.message) for each in warned]]
                yield self
        finally:
            sqlite3.connect = connect
            root.removeHandler(handler)
            root.setLevel(level)

    def step(self, name, do):
        """Do something, and write down everything about it; return what it returned."""
        returned, said = None, None
        try:
            returned = do()
            said = shown(returned)
        except Exception as error:  # noqa: BLE001 - all are of interest
            said = refused(error)
        self.seen.append(
            {
                "step": name,
                "said": said,
                "printed": [*self.capture.readouterr()],
                "logged": self.logged(),
                "files": self.files(),
                "tables": self.tables(),
                "statements": [plain(each) for each in self.statements],
            }
        )
        self.statements.clear()
        return returned

    def files(self):
        """Name, size and mode of every file; the bytes of the mark."""
        found = {
            each.name: (each.stat().st_size, each.stat().st_mode)
            for each in sorted(self.folder.iterdir())
        }
        marks = {each.name: each.read_bytes() for each in self.folder.glob("*.mark")}
        return found, marks

    def tables(self):
        """Every row of every table, the secret ones by their size."""
        if not self.path.exists():
            return None
        with contextlib.closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)) as link:
            link.set_trace_callback(None)
            names = link.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            found = {}
            for (table,) in names:
                rows = link.execute(f"SELECT * FROM {table}")
                columns = [each[0] for each in rows.description]
                found[table] = [
                    [
                        len(value) if (table, column) in SECRET else value
                        for column, value in zip(columns, row, strict=True)
                    ]
                    for row in rows
                ]
            return found


def shown(returned):
    """Everything that an object would show of itself."""
    said = [type(returned).__name__, placeless(repr(returned)), placeless(str(returned))]
    if hasattr(returned, "describe"):
        said.append(json.dumps(returned.describe()))
    if hasattr(returned, "_repr_html_"):
        said += [returned._repr_html_(), pickle.dumps(returned), str(returned.bound)]
    return said


def refused(error):
    """Everything that an exception says, with those behind it."""
    said = []
    while error is not None:
        more = [getattr(error, each, None) for each in ("positions", "problems", "least")]
        said.append([type(error).__name__, str(error), repr(error.args), repr(more)])
        trace = "".join(traceback.format_exception(error))
        said.append(placeless(trace))
        error = error.__cause__ or error.__context__
    return said


def placeless(text):
    """A text without addresses in memory."""
    return re.sub(r"0x[0-9a-f]+", "0x", text)


def plain(statement):
    """A statement without what it writes, but for its size."""
    return re.sub(r"[xX]'([0-9a-fA-F]*)'", lambda found: f"<{len(found[1])}>", statement)


def written(frame, form):
    """A table as a file of some format."""
    out = io.BytesIO()
    if form == "parquet":
        frame.write_parquet(out)
    elif form == "arrow":
        frame.write_ipc(out)
    elif form == "jsonl":
        frame.write_ndjson(out)
    else:
        frame.write_csv(out, separator="\t" if form == "tsv" else ",")
    return out.getvalue()


def session(watched, case, labels, mechanism, salt):
    """Create, ask in every form, be refused in every way, restore, spend the budget, close."""
    watched.capture.readouterr()
    with watched.watching():
        _session(watched, case, labels, mechanism, fixed_world(salt))
    return watched.seen


def _session(watched, case, labels, mechanism, world):
    step, path = watched.step, watched.path
    how = {"loss": case.loss, "mechanism": mechanism, "world": world}
    sealed = {"key_file": watched.folder / "key"} if case.sealed else {}
    guard = step(
        "create",
        lambda: lb.Holdout.create(
            path,
            labels=labels,
            ids=IDS,
            questions=40,
            ladders=2,
            key=KEY,
            **case.sample,
            **how,
            **sealed,
        ),
    )
    how |= {"loss": None if isinstance(case.loss, str) and not case.params else case.loss, **sealed}
    rng = np.random.default_rng(5)
    guard = step("open", lambda: lb.Holdout.open(path, **how))
    asking(watched, case, guard, rng)
    owner(watched, case, guard, how)
    copy = watched.folder / "copy.db"
    copied(watched, case, guard, rng, copy)
    del guard
    put_back(watched, copy)
    to_the_end(watched, case, how, rng)


def asking(watched, case, guard, rng):
    """Ask in every form, and be refused in every way."""
    step, path, labels = watched.step, watched.path, case.neither
    step("create again", lambda: lb.Holdout.create(path, labels=labels, ids=IDS, questions=40))
    for at in range(4):
        model = case.predict(rng)
        step(f"ask {at}", lambda model=model: guard.ask(case.frame(model)))
        step(f"ask {at} again", lambda model=model: guard.ask(case.frame(model)))
    # In every form.
    for form in ("csv", "tsv", "parquet", "arrow", "jsonl"):
        data = written(case.frame(case.predict(rng)), form)
        step(form, lambda data=data, form=form: guard.ask(data, format=form))
        step(f"half of {form}", lambda data=data, form=form: guard.ask(data[: len(data) // 2]))
    model = case.predict(rng)
    step("pandas", lambda: guard.ask(pd.DataFrame(case.frame(model).to_dict(as_series=False))))
    step("dict", lambda: guard.ask(case.frame(case.predict(rng)).to_dict(as_series=False)))
    step("array", lambda: guard.ask(np.array(case.predict(rng))))
    step("list", lambda: guard.ask(case.predict(rng)))
    # Refused in every way.
    model = case.predict(rng)
    frame = case.frame(model)
    for name, wrong in refusals(case, frame, model).items():
        step(name, lambda wrong=wrong: guard.ask(wrong))
    step("no such file", lambda: guard.ask(watched.folder / "none.csv"))
    step("no such format", lambda: guard.ask(frame, format="xls"))
    step("training", lambda: guard.ask(frame, training=0.5))
    step("training out of range", lambda: guard.ask(frame, training=7))
    for name in ("", "x" * 101, "a\nb", 3):
        step(f"ladder {name!r}", lambda name=name: guard.ladder(name))
    # Ladders, and what is public.
    other = step("ladder", lambda: guard.ladder("study"))
    for at in range(3):
        model = case.predict(rng)
        step(f"study {at}", lambda model=model: other.ask(case.frame(model)))
    step("status", lambda: guard.status().describe())
    step("released", lambda: [guard.released, guard.remaining, guard.head, guard.meter])
    step("certificate", lambda: guard.certificate)
    step("entries", lambda: [entry.form for entry, _ in guard._book.entries()])
    exported = watched.folder / "entries.jsonl"
    step("export", lambda: export_entries(path, exported))
    step("exported", exported.read_bytes)
    step("check", guard.check)
    step("pickle", lambda: pickle.loads(pickle.dumps(guard)) and len(pickle.dumps(guard)))


def copied(watched, case, guard, rng, copy):
    """Copy it, and go on."""
    watched.step("backup", lambda: guard.backup(copy))
    watched.step("before", lambda: guard.ask(case.frame(case.predict(rng))))


def to_the_end(watched, case, how, rng):
    """Go on with an old copy, spend the budget, close."""
    step, path = watched.step, watched.path
    step("open the old copy", lambda: lb.Holdout.open(path, **how))
    step("charge too little", lambda: lb.Holdout.restore(path, 0, **how))
    step("charge too much", lambda: lb.Holdout.restore(path, 1000, **how))
    guard = step("restore", lambda: lb.Holdout.restore(path, 2, **how))
    models = [case.predict(rng) for _ in range(40)]
    for at, model in enumerate(models):
        step(f"to the end {at}", lambda model=model: guard.ask(case.frame(model)))
    step("again past the end", lambda: guard.ask(case.frame(models[0])))
    step("close", guard.close_for_good)
    step("closed", lambda: guard.ask(case.frame(case.predict(rng))))
    step("close again", guard.close_for_good)
    step("status at the end", guard.status)


def owner(watched, case, guard, how):
    """The owner's mistakes."""
    step, path = watched.step, watched.path
    strange = [f"{each}!" for each in IDS]
    step("other ids", lambda: lb.Holdout.open(path, labels=case.neither, ids=strange, **how))
    step("other labels", lambda: lb.Holdout.open(path, labels=case.neither, ids=IDS, **how))
    step("too few", lambda: lb.Holdout.open(path, labels=case.neither[:9], ids=IDS[:9], **how))
    step("no ids", lambda: lb.Holdout.open(path, labels=case.neither, **how))
    step("other mechanism", lambda: lb.Holdout.open(path, **{**how, "mechanism": lb.Exact()}))
    step("other loss", lambda: lb.Holdout.open(path, **{**how, "loss": lb.loss("operator:ne")}))
    step("not a guard", lambda: lb.Holdout.open(watched.folder / "guard.db.mark", **how))
    step("repr", lambda: [repr(guard._scorer), repr(guard._scorer.roster), repr(guard._book)[:30]])


def put_back(watched, copy):
    """Put a copy where the file was, and take away what belonged to it."""
    for each in watched.folder.glob("guard.db-*"):
        each.unlink()
    shutil.move(copy, watched.path)


def refusals(case, frame, model):
    """What must be refused, or not, by its shape alone."""
    values = [each for each in frame.columns if each != "id"]
    first = values[0]
    gap = frame.with_columns(pl.when(pl.col("id") == "id 7").then(None).otherwise(pl.col(first))
                             .alias(first))  # fmt: skip
    return {
        "nothing": [],
        "None": None,
        "a number": 7,
        "too few": model[:9],
        "too many": [*model, model[0]],
        "unknown ids": frame.with_columns(pl.col("id") + "!"),
        "a duplicate": pl.concat([frame, frame[:1]]),
        "one missing": frame[1:],
        "a gap": gap,
        "another column": frame.with_columns(x=pl.lit(1)),
        "no prediction": frame.select("id"),
        "twice": written(frame, "csv").replace(b"id", first.encode(), 1),
        "infinite": [np.inf] * N,
        "NaN": np.full(N, np.nan),
        "huge": [10**400] * N,
        "large": np.full(N, 2**63, dtype=np.uint64),
        "objects": [object()] * N,
        "text": ["what"] * N,
        "numbers": [3] * N,
        "fractions": [0.25] * N,
        "negative": [-1.5] * N,
        "booleans": np.arange(N) % 2 == 0,
        "half": np.full(N, 0.5, dtype=np.float16),
        "a matrix": np.full((N, 2), 0.5),
        "a cube": np.zeros((N, 2, 2)),
        "complex": np.zeros(N, dtype=complex),
        "dates": np.zeros(N, dtype="datetime64[s]"),
        "empty file": b"",
        "noise": bytes(range(256)) * 9,
        "NUL": ["\0"] * N,
        "a surrogate": ["\ud800"] * N,
    }
