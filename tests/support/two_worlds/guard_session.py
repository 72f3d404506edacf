"""A scripted session on a guard, with everything recorded that anybody could see of it."""

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

import numpy as np
import pandas as pd
import polars as pl

import ladderboard as lb
from ladderboard.holdout import export_entries
from ladderboard.ledger import LedgerEnvironment

N = 60
IDS = [f"id {row}" for row in range(N)]
KEY = hashlib.sha256(b"a noise key").digest()  # which nothing contains by chance
# Columns with secret content, of which only the size is visible.
SECRET_COLUMNS = {("secret", "packed"), ("ladder", "state"), ("kept", "value")}


def fixed_environment(salt):
    """Return an environment with a clock that ticks at each call, and given salts."""
    times = itertools.count(1_000_000_000)
    return LedgerEnvironment(clock=lambda: next(times), salt=salt)


class SessionRecorder:
    """Records the output of every step of a session in ``steps``."""

    def __init__(self, folder, capture):
        self.folder, self.capture = folder, capture
        self.path = folder / "guard.db"
        self.steps = []
        self.statements = []

    @contextlib.contextmanager
    def recording(self):
        """Record every log line, warning and SQL statement of this process."""
        lines = io.StringIO()
        handler = logging.StreamHandler(lines)
        handler.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))
        root, level = logging.getLogger(), logging.getLogger().level
        connect = sqlite3.connect

        def traced_connect(*args, **options):
            connection = connect(*args, **options)
            connection.set_trace_callback(self.statements.append)
            return connection

        root.addHandler(handler)
        root.setLevel(1)
        sqlite3.connect = traced_connect
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                self.logged = lambda: [lines.getvalue(), [str(item.message) for item in warned]]
                yield self
        finally:
            sqlite3.connect = connect
            root.removeHandler(handler)
            root.setLevel(level)

    def step(self, name, action):
        """Run an action and record everything about it; return what it returned."""
        returned = None
        try:
            returned = action()
            output = describe_value(returned)
        except Exception as error:  # noqa: BLE001 - any error is output
            output = describe_error(error)
        self.steps.append(
            {
                "step": name,
                "output": output,
                "printed": [*self.capture.readouterr()],
                "logged": self.logged(),
                "files": self.files(),
                "tables": self.tables(),
                "statements": [hide_blobs(statement) for statement in self.statements],
            }
        )
        self.statements.clear()
        return returned

    def files(self):
        """Return name, size and mode of every file, and the content of high-water marks."""
        files = {
            path.name: (path.stat().st_size, path.stat().st_mode)
            for path in sorted(self.folder.iterdir())
        }
        marks = {path.name: path.read_bytes() for path in self.folder.glob("*.mark")}
        return files, marks

    def tables(self):
        """Return all rows of all tables; of secret values, the size."""
        if not self.path.exists():
            return None
        with contextlib.closing(
            sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)
        ) as connection:
            connection.set_trace_callback(None)
            names = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            ).fetchall()
            content = {}
            for (table,) in names:
                rows = connection.execute(f"SELECT * FROM {table}")
                columns = [column[0] for column in rows.description]
                content[table] = [
                    [
                        len(value) if (table, column) in SECRET_COLUMNS else value
                        for column, value in zip(columns, row, strict=True)
                    ]
                    for row in rows
                ]
            return content


def describe_value(returned):
    """Return everything that an object shows of itself."""
    output = [
        type(returned).__name__,
        hide_addresses(repr(returned)),
        hide_addresses(str(returned)),
    ]
    if hasattr(returned, "describe"):
        output.append(json.dumps(returned.describe()))
    if hasattr(returned, "_repr_html_"):
        output += [returned._repr_html_(), pickle.dumps(returned), str(returned.bound)]
    return output


def describe_error(error):
    """Return everything that an exception and its causes show."""
    output = []
    while error is not None:
        fields = [getattr(error, name, None) for name in ("positions", "problems", "least")]
        output.append([type(error).__name__, str(error), repr(error.args), repr(fields)])
        trace = "".join(traceback.format_exception(error))
        output.append(hide_addresses(trace))
        error = error.__cause__ or error.__context__
    return output


def hide_addresses(text):
    """Return a text without memory addresses."""
    return re.sub(r"0x[0-9a-f]+", "0x", text)


def hide_blobs(statement):
    """Return a statement with the sizes of binary values in their place."""
    return re.sub(r"[xX]'([0-9a-fA-F]*)'", lambda match: f"<{len(match[1])}>", statement)


def write_frame(frame, form):
    """Return a table as a file of a format."""
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


def run_session(recorder, case, labels, mechanism, salt):
    """Create a guard, ask, be refused, restore, spend the budget, close; return all steps."""
    recorder.capture.readouterr()
    with recorder.recording():
        _run_session(recorder, case, labels, mechanism, fixed_environment(salt))
    return recorder.steps


def _run_session(recorder, case, labels, mechanism, environment):
    step, path = recorder.step, recorder.path
    options = {"loss": case.loss, "mechanism": mechanism, "environment": environment}
    sealed = {"key_file": recorder.folder / "key"} if case.sealed else {}
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
            **options,
            **sealed,
        ),
    )
    options |= {
        "loss": None if isinstance(case.loss, str) and not case.params else case.loss,
        **sealed,
    }
    rng = np.random.default_rng(5)
    guard = step("open", lambda: lb.Holdout.open(path, **options))
    _ask(recorder, case, guard, rng)
    _open_with_wrong_settings(recorder, case, guard, options)
    copy = recorder.folder / "copy.db"
    _back_up(recorder, case, guard, rng, copy)
    del guard
    _restore_copy(recorder, copy)
    _finish(recorder, case, options, rng)


def _ask(recorder, case, guard, rng):
    """Ask in every form, be refused in every way, and read what is public."""
    step, path, labels = recorder.step, recorder.path, case.neither
    step("create again", lambda: lb.Holdout.create(path, labels=labels, ids=IDS, questions=40))
    for index in range(4):
        model = case.predict(rng)
        step(f"ask {index}", lambda model=model: guard.ask(case.frame(model)))
        step(f"ask {index} again", lambda model=model: guard.ask(case.frame(model)))
    # In every form.
    for form in ("csv", "tsv", "parquet", "arrow", "jsonl"):
        data = write_frame(case.frame(case.predict(rng)), form)
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
    for name, wrong in _invalid_predictions(case, frame, model).items():
        step(name, lambda wrong=wrong: guard.ask(wrong))
    step("no such file", lambda: guard.ask(recorder.folder / "none.csv"))
    step("no such format", lambda: guard.ask(frame, format="xls"))
    step("training", lambda: guard.ask(frame, training=0.5))
    step("training out of range", lambda: guard.ask(frame, training=7))
    for name in ("", "x" * 101, "a\nb", 3):
        step(f"ladder {name!r}", lambda name=name: guard.ladder(name))
    # Ladders, and what is public.
    other = step("ladder", lambda: guard.ladder("study"))
    for index in range(3):
        model = case.predict(rng)
        step(f"study {index}", lambda model=model: other.ask(case.frame(model)))
    step("status", lambda: guard.status().describe())
    step("released", lambda: [guard.released, guard.remaining, guard.head, guard.meter])
    step("certificate", lambda: guard.certificate)
    step("entries", lambda: [entry.encoded for entry, _ in guard._book.entries()])
    exported = recorder.folder / "entries.jsonl"
    step("export", lambda: export_entries(path, exported))
    step("exported", exported.read_bytes)
    step("check", guard.check)
    step("pickle", lambda: pickle.loads(pickle.dumps(guard)) and len(pickle.dumps(guard)))


def _back_up(recorder, case, guard, rng, copy):
    """Make a backup, then ask once more."""
    recorder.step("backup", lambda: guard.backup(copy))
    recorder.step("before", lambda: guard.ask(case.frame(case.predict(rng))))


def _finish(recorder, case, options, rng):
    """Restore the old copy, spend the budget, close."""
    step, path = recorder.step, recorder.path
    step("open the old copy", lambda: lb.Holdout.open(path, **options))
    step("charge too little", lambda: lb.Holdout.restore(path, 0, **options))
    step("charge too much", lambda: lb.Holdout.restore(path, 1000, **options))
    guard = step("restore", lambda: lb.Holdout.restore(path, 2, **options))
    models = [case.predict(rng) for _ in range(40)]
    for index, model in enumerate(models):
        step(f"to the end {index}", lambda model=model: guard.ask(case.frame(model)))
    step("again past the end", lambda: guard.ask(case.frame(models[0])))
    step("close", guard.close_for_good)
    step("closed", lambda: guard.ask(case.frame(case.predict(rng))))
    step("close again", guard.close_for_good)
    step("status at the end", guard.status)


def _open_with_wrong_settings(recorder, case, guard, options):
    """Open the guard with settings that do not match."""
    step, path = recorder.step, recorder.path
    unknown = [f"{name}!" for name in IDS]
    step("other ids", lambda: lb.Holdout.open(path, labels=case.neither, ids=unknown, **options))
    step("other labels", lambda: lb.Holdout.open(path, labels=case.neither, ids=IDS, **options))
    step("too few", lambda: lb.Holdout.open(path, labels=case.neither[:9], ids=IDS[:9], **options))
    step("no ids", lambda: lb.Holdout.open(path, labels=case.neither, **options))
    step("other mechanism", lambda: lb.Holdout.open(path, **{**options, "mechanism": lb.Exact()}))
    step("other loss", lambda: lb.Holdout.open(path, **{**options, "loss": lb.loss("operator:ne")}))
    step("not a guard", lambda: lb.Holdout.open(recorder.folder / "guard.db.mark", **options))
    step("repr", lambda: [repr(guard._scorer), repr(guard._scorer.roster), repr(guard._book)[:30]])


def _restore_copy(recorder, copy):
    """Replace the guard's file by a copy, and remove its log files."""
    for path in recorder.folder.glob("guard.db-*"):
        path.unlink()
    shutil.move(copy, recorder.path)


def _invalid_predictions(case, frame, model):
    """Return predictions that are refused, or not, by their shape alone."""
    values = [name for name in frame.columns if name != "id"]
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
        "twice": write_frame(frame, "csv").replace(b"id", first.encode(), 1),
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


def run_gate_session(recorder, case, labels, salt):
    """Create a gate, promote, look, be refused, close; return all steps."""
    recorder.capture.readouterr()
    with recorder.recording():
        _run_gate_session(recorder, case, labels, fixed_environment(salt))
    return recorder.steps


def _run_gate_session(recorder, case, labels, environment):
    step, path = recorder.step, recorder.path
    sealed = {"key_file": recorder.folder / "key"} if case.sealed else {}
    loss = None if isinstance(case.loss, str) and not case.params else case.loss
    gate = step(
        "create",
        lambda: lb.Gate.create(
            path, labels, ids=IDS, looks=40, margin=0.1, worse=True, loss=case.loss, key=KEY,
            environment=environment, **case.sample, **sealed,
        ),
    )  # fmt: skip
    rng = np.random.default_rng(5)
    step("look first", lambda: gate.check(case.frame(case.predict(rng))))
    for number in range(3):
        model = case.predict(rng)
        step(f"promote {number}", lambda model=model: gate.promote(case.frame(model)))
        for index in range(4):
            model, margin = case.predict(rng), index / 10
            look = f"look {number}.{index}"
            step(look, lambda m=model, a=margin: gate.check(case.frame(m), margin=a))
            step(f"{look} again", lambda m=model, a=margin: gate.check(case.frame(m), margin=a))
    model = case.predict(rng)
    frame = case.frame(model)
    for name, wrong in _invalid_predictions(case, frame, model).items():
        step(name, lambda wrong=wrong: gate.check(wrong))
        step(f"promote {name}", lambda wrong=wrong: gate.promote(wrong))
    step("margin", lambda: gate.check(frame, margin=-1))
    opened = {"loss": loss, "environment": environment, **sealed}
    step("open", lambda: lb.Gate.open(path, **opened).check(frame))
    step("status", lambda: gate.status().describe())
    step("entries", lambda: [entry.encoded for entry, _ in gate._book.entries()])
    step("verify", gate.verify_ledger)
    step("close", gate.close_for_good)
    step("closed", lambda: gate.check(case.frame(case.predict(rng))))
