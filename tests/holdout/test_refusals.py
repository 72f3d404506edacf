"""Refusals are the same for all labels, byte by byte, and have no other effect."""

import io
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import ladderboard as lb
from ladderboard.errors import InvalidLabels, InvalidPredictions
from ladderboard.files import Limits
from ladderboard.holdout import Scorer
from ladderboard.holdout._sample import decode_sample, encode_sample, make_sample

N = 5
IDS = {"none": None, "text": [f"x{number}" for number in range(N)], "whole": [40, 7, 300, -2, 5]}
CLASSES = ["a", "b", "c"]


def product(labels, predictions):
    """A custom loss that fails easily, in many ways."""
    return np.clip(labels * predictions, 0, 1) / (labels != 3)


numbers = st.one_of(
    st.integers(-3, 3),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.sampled_from([2**53, 2**53 + 1, 0.5, -0.0, 1e-320, 1e308]),
)
texts = st.one_of(
    st.sampled_from(["a", "b", "0", "1", "1.0", "nan", "007", "é", "\0", "a" * 300]),
    st.text(min_size=1, max_size=5, alphabet=st.characters(codec="utf-8")),
)
anything = st.one_of(
    numbers,
    texts,
    st.sampled_from([None, math.nan, math.inf, -math.inf, "", 10**400, b"x", (), [1], 1j]),
)
# loss: the labels of one world, and what models would predict if they were well formed
CASES = {
    "zero_one of numbers": (lb.loss("zero_one"), numbers, numbers, "number"),
    "zero_one of text": (lb.loss("zero_one"), texts, texts, "text"),
    "zero_one of classes": (
        lb.loss("zero_one", classes=CLASSES), st.sampled_from(CLASSES), texts, "text",
    ),
    "zero_one of classes that are numbers": (
        lb.loss("zero_one", classes=[0, 1, 2.5]), st.sampled_from([0, 1, 2.5]), numbers, "number",
    ),
    "brier": (lb.loss("brier"), st.sampled_from([0, 1]), st.floats(0, 1), "number"),
    "log of text": (
        lb.loss("log", classes=CLASSES), st.sampled_from(CLASSES), st.floats(0, 1), "text",
    ),
    "squared": (lb.loss("squared", range=(0, 10)), st.floats(0, 10), numbers, "number"),
    "top_k": (lb.loss("top_k", k=1), texts, texts, "text"),
    "top_k of classes": (
        lb.loss("top_k", k=1, classes=CLASSES), st.sampled_from(CLASSES), numbers, "text",
    ),
    "custom of numbers": (lb.loss(product), numbers, numbers, "number"),
    "custom of text": (lb.loss(product), texts, texts, "text"),
}  # fmt: skip


FORMS = ["list", "array", "typed", "columns", "csv", "jsonl", "matrix", "rows"]


def _less(total, *parts):
    """Return the total minus the parts, if the parts are floats."""
    return total - sum(parts) if all(type(part) is float for part in parts) else 0.25


@st.composite
def predictions(draw, good):  # noqa: C901, PLR0911 - a way for each form
    """Predictions that are malformed in some way, or in none."""
    size = draw(st.sampled_from([N, N, N, N, N - 1, N + 1, 0]))
    value = draw(st.sampled_from([good, good, anything]))
    values = draw(st.lists(value, min_size=size, max_size=size))
    for _ in range(draw(st.integers(0, 2))):
        if values:
            values[draw(st.integers(0, len(values) - 1))] = draw(anything)
    form = draw(st.sampled_from(FORMS))
    ids = draw(st.permutations([*IDS["text"], *IDS["whole"]]))[:size]
    if draw(st.booleans()):
        ids = draw(st.sampled_from([IDS["text"], IDS["whole"], list(range(N))]))[::-1]
    if form == "array":
        out = np.empty(size, dtype=object)
        out[:] = values
        return out
    if form == "typed":
        kind = draw(st.sampled_from(["f2", "f4", "f8", "i1", "u8", "U3", "M8[s]", "c8", "?"]))
        return np.arange(size).astype(kind)
    if form == "matrix":
        return [values, values][: draw(st.integers(1, 2))]
    if form == "rows":
        rest = draw(st.sampled_from([0, 0.5, "a"]))
        return [[value, rest, _less(1, value, rest)] for value in values]
    if form == "columns":
        name = draw(st.sampled_from(["prediction", "p_a", "p_1", "x", "id"]))
        return {"id": list(ids), name: values}
    if form == "csv":
        header = draw(
            st.sampled_from(["id,prediction\n", "", "prediction\n", "id,x,y\n", "id,p_1\n"])
        )
        rows = [f"{key},{value}" for key, value in zip(ids, values, strict=False)]
        return (header + "\n".join(rows)).encode("utf-8", "replace")
    if form == "jsonl":
        rows = [
            json.dumps({"id": key, "prediction": value}, default=repr)
            for key, value in zip(ids, values, strict=False)
        ]
        return "\n".join(rows).encode()
    return values


def outcome(scorer, given_predictions, form):
    """Return the digest of predictions, or everything in the refusal."""
    try:
        return scorer.read(given_predictions, format=form).digest
    except InvalidPredictions as error:
        behind = [repr(error_behind) for error_behind in (error.__cause__, error.__context__)]
        return [type(error), str(error), error.args, error.positions, error.problems, behind]


def worlds(loss, labels, kind, ids):
    """Return a scorer for each vector of labels: as it was made, and as it is opened again."""
    scorers = []
    for label in labels:
        try:
            table = make_sample(label, ids=IDS[ids], kind=kind)
            scorers += [Scorer(table, loss), Scorer(decode_sample(encode_sample(table)), loss)]
        except InvalidLabels:
            assume(False)
    return scorers


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=25)
@given(data=st.data())
def test_refusals_do_not_depend_on_labels(name, data):
    loss, label, good, kind = CASES[name]
    vector = st.lists(label, min_size=N, max_size=N)
    labels = data.draw(st.tuples(vector, vector, vector))
    scorers = worlds(loss, labels, kind, data.draw(st.sampled_from(sorted(IDS))))
    for _ in range(5):
        given_predictions = data.draw(predictions(good))
        form = None
        if isinstance(given_predictions, bytes):
            form = "jsonl" if given_predictions.startswith(b"{") else "csv"
        outcomes = [outcome(scorer, given_predictions, form) for scorer in scorers]
        assert all(other == outcomes[0] for other in outcomes)


@pytest.mark.parametrize("name", ["label", "Labels", "target", "y", "class"])
@pytest.mark.parametrize("kind", [lb.Holdout, lb.Gate])
def test_the_file_of_labels_is_refused_by_its_header(tmp_path, kind, name):
    """One question about the labels themselves would be the best for good."""
    header, rows = f"id,{name}\n", "".join(f"{row},{row % 2}\n" for row in range(40))
    (tmp_path / "test.csv").write_text(header + rows)
    budget = {"questions" if kind is lb.Holdout else "looks": 9}
    kind.create(tmp_path / "new.db", tmp_path / "test.csv", **budget).close()
    file = kind.open(tmp_path / "new.db")
    calls = [file.ask] if kind is lb.Holdout else [file.promote, file.check]
    for call in calls:
        for labels in (tmp_path / "test.csv", {name: [row % 2 for row in range(40)]}):
            with pytest.raises(InvalidPredictions) as refused:
                call(labels)
            assert str(refused.value) == (
                f"This file's column '{name}' is named like the labels. If these are predictions, "
                "name it 'prediction'."
            )
            assert [problem.code for problem in refused.value.problems] == ["named_like_labels"]
        answer = call((f"id,prediction\n{rows}").encode())
        assert answer.outcome == "not_worse" if call == file.check else answer
    assert file.remaining == (8 if kind is lb.Holdout else 9)  # the incumbent's own are free
    # A server's clients have no labels, and graders ask for files named like these.
    served = file.with_limits(Limits(bytes=10_000))
    served.validate((header + rows).encode())
    pickle.loads(pickle.dumps(served)).validate((header + rows).encode())
    with pytest.raises(InvalidPredictions):
        file.validate((header + rows).encode())
    file.close()


def test_a_declared_name_is_accepted_and_that_of_declared_labels_is_not(tmp_path):
    rows = "".join(f"{row},{row % 2}\n" for row in range(40))
    for number, (columns, accepted) in enumerate([
        ({"id": "image", "prediction": "label"}, True),
        ({"prediction": "label"}, True),
        ({"id": "image"}, False),
        ({"id": "image", "label": "label"}, False),
    ]):  # fmt: skip
        id_name = columns.get("id", "id")
        data = f"{id_name},label\n{rows}".encode()
        guard = lb.Holdout.create(tmp_path / f"{number}.db", io.BytesIO(data), questions=9,
                                  columns=columns)  # fmt: skip
        if accepted:
            assert guard.ask(data).improved
        else:
            with pytest.raises(InvalidPredictions, match="named like the labels"):
                guard.ask(data)
        guard.close()
    truth = f"image,truth\n{rows}".encode()
    guard = lb.Holdout.create(tmp_path / "truth.db", io.BytesIO(truth), questions=9,
                              columns={"id": "image", "label": "truth"})  # fmt: skip
    with pytest.raises(InvalidPredictions, match="'truth' is named like the labels"):
        guard.ask(truth)
    guard.close()


def test_numbered_labels_are_refused_too(tmp_path):
    labels = {"id": list(range(40)), "label_1": [0, 1] * 20, "label_2": [1, 1] * 20}
    guard = lb.Holdout.create(tmp_path / "g.db", labels, questions=9, loss="hamming")
    with pytest.raises(InvalidPredictions, match="'label_1', 'label_2' are named like the labels"):
        guard.ask(labels)
    names = {"label_1": "prediction_1", "label_2": "prediction_2"}
    assert guard.ask({names.get(name, name): values for name, values in labels.items()}).improved
    guard.close()


def test_two_columns_of_probabilities_are_recognised(tmp_path):
    labels = np.arange(40) % 2
    for ids in (None, [f"x{row}" for row in range(40)]):
        guard = lb.Holdout.create(tmp_path / f"{ids is None}.db", labels, questions=9, ids=ids)
        likely = np.linspace(0.1, 0.9, 40)
        with pytest.raises(InvalidPredictions, match=r"pass argmax\(axis=1\)") as refused:
            guard.ask(np.column_stack([1 - likely, likely]))
        assert refused.value.problems[0].code == "wrong_shape"
        assert guard.remaining == 9
        guard.close()


def test_a_dict_by_id_is_refused_with_the_form_of_a_dict(tmp_path):
    guard = lb.Holdout.create(tmp_path / "g.db", np.arange(40) % 2, questions=9)
    with pytest.raises(InvalidPredictions, match=r"a dict of columns as \{'id': \[\.\.\.\]"):
        guard.ask(dict.fromkeys(range(40), 1))
    guard.close()
