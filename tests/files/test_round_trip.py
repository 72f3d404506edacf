"""Predictions in any format, dialect and order are read in the holdout's order."""

import csv
import gzip
import io
import json

import numpy as np
import pandas as pd
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

import ladderboard as lb
from ladderboard.files import Roster, read_predictions

LOSS = lb.loss("zero_one")
# Text that CSV can hold as it is: blanks around it are not kept, nor is the empty text.
word = (
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)
    .map(str.strip)
    .filter(bool)
)
text_ids = st.lists(word, unique=True, min_size=1, max_size=12)
whole_ids = st.lists(st.integers(-100, 2**40), unique=True, min_size=1, max_size=12)
numbers = st.one_of(st.integers(-(10**12), 10**12), st.floats(-1e6, 1e6))


def as_csv(frame, **dialect):
    out = io.StringIO()
    writer = csv.writer(out, **dialect)
    writer.writerow(frame.columns)
    writer.writerows(frame.rows())
    return out.getvalue().encode()


def written(frame, form):
    out = io.BytesIO()
    if form == "parquet":
        frame.write_parquet(out)
    elif form == "arrow":
        frame.write_ipc(out, compression="zstd")
    elif form == "jsonl":
        out.write("\n".join(json.dumps(row) for row in frame.to_dicts()).encode())
    elif form == "pandas":
        return frame.to_dict(as_series=False) and pd.DataFrame(frame.to_dict(as_series=False))
    elif form == "polars":
        return frame
    elif form == "dict":
        return frame.to_dict(as_series=False)
    elif form == "gzip":
        return gzip.compress(as_csv(frame))
    else:
        return as_csv(frame, **DIALECTS[form])
    return out.getvalue()


DIALECTS = {
    "csv": {},
    "unix": {"lineterminator": "\n"},
    "semicolon": {"delimiter": ";"},
    "tsv": {"delimiter": "\t"},
    "quoted": {"quoting": csv.QUOTE_ALL},
}
FORMS = [*DIALECTS, "gzip", "parquet", "arrow", "jsonl", "pandas", "polars", "dict"]


@given(st.one_of(text_ids, whole_ids), st.sampled_from(["number", "text"]), st.data())
def test_round_trip(ids, kind, data):
    value = numbers if kind == "number" else word
    predictions = data.draw(st.lists(value, min_size=len(ids), max_size=len(ids)))
    if any(isinstance(prediction, float) for prediction in predictions):
        predictions = [float(prediction) for prediction in predictions]
    order = data.draw(st.permutations(range(len(ids))))
    frame = pl.DataFrame(
        {"id": [ids[row] for row in order], "prediction": [predictions[row] for row in order]}
    )
    roster = Roster.of(ids, kind=kind)
    for form in FORMS:
        declared = form if form in {"jsonl", "tsv"} else None
        read = read_predictions(written(frame, form), roster, LOSS, format=declared)
        assert read.tolist() == predictions, form
        assert LOSS(np.array(predictions), read).sum() == 0


@given(st.integers(1, 30), st.randoms(use_true_random=False))
def test_by_position_and_by_number(n, random):
    predictions = [random.random() for _ in range(n)]
    order = list(range(n))
    random.shuffle(order)
    roster = Roster.of(n, kind="number")
    frame = pl.DataFrame({"id": order, "prediction": [predictions[row] for row in order]})
    bare = pl.DataFrame({"prediction": predictions})
    for form in FORMS:
        declared = form if form in {"jsonl", "tsv"} else None
        for table in (frame, bare):
            read = read_predictions(written(table, form), roster, LOSS, format=declared)
            assert read.tolist() == predictions, form
