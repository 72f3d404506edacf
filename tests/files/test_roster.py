"""The roster finds the row of every known id of any type, and no other."""

import pickle

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ladderboard.errors import InvalidLabels, InvalidSetting
from ladderboard.files import Roster, read_holdout
from ladderboard.files._columns import MixedColumn, NumberColumn, TextColumn
from ladderboard.files._roster import KeyIndex, hash_integers


@given(st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, max_size=50), st.data())
def test_key_index_finds_rows(numbers, data):
    keys = np.array(numbers, dtype=np.int64)
    others = data.draw(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
    numbers_to_find = np.array(data.draw(st.permutations(numbers)) + others, dtype=np.int64)
    row_by_number = {number: row for row, number in enumerate(numbers)}
    rows = KeyIndex(hash_integers(keys)).lookup(hash_integers(numbers_to_find))
    assert rows.tolist() == [row_by_number.get(number, -1) for number in numbers_to_find.tolist()]


def test_key_index_with_crowded_buckets():
    keys = np.arange(2000, dtype=np.uint64)  # all top bits are zero: one bucket
    index = KeyIndex(keys)
    keys_to_find = np.array([1999, 0, 2000, 5], dtype=np.uint64)
    assert index.lookup(keys_to_find).tolist() == [1999, 0, -1, 5]
    assert not index.has_duplicates
    assert KeyIndex(np.array([1, 1], dtype=np.uint64)).has_duplicates


ids = st.one_of(
    st.lists(st.text(min_size=1, max_size=4), unique=True, min_size=1, max_size=20),
    st.lists(st.integers(-5, 2**62), unique=True, min_size=1, max_size=20),
    st.integers(1, 20).map(lambda n: list(range(n))),
)


@given(ids, st.randoms(use_true_random=False))
def test_ids_of_any_type_are_found(given_ids, random):
    order = list(range(len(given_ids)))
    random.shuffle(order)
    shuffled = [given_ids[row] for row in order]
    for container in (list, pl.Series, np.array):
        if container is np.array and any(str(id_).endswith("\0") for id_ in given_ids):
            continue  # NumPy drops trailing null characters
        roster = Roster.of(container(given_ids))
        columns = [
            MixedColumn(shuffled),
            TextColumn(pl.Series(list(map(str, shuffled)), dtype=pl.String)),
        ]
        if isinstance(shuffled[0], int):
            columns += [
                NumberColumn(np.array(shuffled)),
                MixedColumn([str(id_) for id_ in shuffled]),
            ]
        for column in columns:
            assert roster.match_ids(column).tolist() == order
            assert pickle.loads(pickle.dumps(roster)).match_ids(column).tolist() == order


def test_ids_with_equal_hashes_are_distinguished(monkeypatch):
    roster = Roster.of(pl.Series(["a", "b", "c"]))
    monkeypatch.setattr(pl.Series, "hash", lambda self: pl.Series([7] * len(self), dtype=pl.UInt64))
    assert roster.match_ids(TextColumn(pl.Series(["c", "x", "a"]))).tolist() == [2, -1, 0]


def test_an_unknown_id_with_a_known_hash_is_unknown(monkeypatch):
    roster = Roster.of(pl.Series(["a", "b"]))
    fake = {"a": 1, "b": 2, "evil": 1}
    monkeypatch.setattr(
        pl.Series, "hash", lambda self: pl.Series([fake[id_] for id_ in self], dtype=pl.UInt64)
    )
    assert roster.match_ids(TextColumn(pl.Series(["b", "evil"]))).tolist() == [1, -1]


def test_integer_and_text_ids():
    assert Roster.of(["1", "2"]).has_integer_ids
    assert not Roster.of(["1", "02"]).has_integer_ids
    assert not Roster.of(["1", "b"]).has_integer_ids
    assert Roster.of([1.0, 2.0]).has_integer_ids
    assert Roster.of([0, 1, 2]).is_sequential
    assert not Roster.of([0, 2, 1]).is_sequential
    assert Roster.of(3).is_sequential
    assert Roster.of(read_holdout(b"id,label\n1,x\n2,y\n")).has_integer_ids
    assert not Roster.of(read_holdout(b"id,label\n01,x\n2,y\n")).has_integer_ids


def test_invalid_rosters_are_refused():
    for wrong in (["a", "a"], [1, 1], pl.Series(["a", "b", "a"]), [1.0, "1"]):
        with pytest.raises(InvalidLabels, match=r"Duplicate ids in the holdout: ('a'|1|'1')"):
            Roster.of(wrong)
    for wrong in (["a", None], ["a", ""], [1.5, 2.0], pl.Series(["a", None]), [True, False]):
        with pytest.raises(InvalidLabels, match="needs an id"):
            Roster.of(wrong)
    for wrong in ([], np.array([])):
        with pytest.raises(InvalidLabels, match="at least one"):
            Roster.of(wrong)
    for wrong in (None, "ids.csv", 0, -1, 1.5, object()):
        with pytest.raises(InvalidSetting):
            Roster.of(wrong)
