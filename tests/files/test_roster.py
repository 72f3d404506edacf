"""The roster: every kind of id finds its place, however large, and nothing else does."""

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
def test_places(numbers, data):
    keys = np.array(numbers, dtype=np.int64)
    others = data.draw(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
    asked = np.array(data.draw(st.permutations(numbers)) + others, dtype=np.int64)
    at = {each: place for place, each in enumerate(numbers)}
    found = KeyIndex(hash_integers(keys)).lookup(hash_integers(asked))
    assert found.tolist() == [at.get(each, -1) for each in asked.tolist()]


def test_places_in_crowded_buckets():
    keys = np.arange(2000, dtype=np.uint64)  # all top bits are zero: one bucket
    places = KeyIndex(keys)
    asked = np.array([1999, 0, 2000, 5], dtype=np.uint64)
    assert places.lookup(asked).tolist() == [1999, 0, -1, 5]
    assert not places.has_duplicates
    assert KeyIndex(np.array([1, 1], dtype=np.uint64)).has_duplicates


ids = st.one_of(
    st.lists(st.text(min_size=1, max_size=4), unique=True, min_size=1, max_size=20),
    st.lists(st.integers(-5, 2**62), unique=True, min_size=1, max_size=20),
    st.integers(1, 20).map(lambda n: list(range(n))),
)


@given(ids, st.randoms(use_true_random=False))
def test_ids_in_any_form_find_their_places(given_ids, random):
    order = list(range(len(given_ids)))
    random.shuffle(order)
    shuffled = [given_ids[each] for each in order]
    for made in (list, pl.Series, np.array):
        roster = Roster.of(made(given_ids))
        columns = [
            MixedColumn(shuffled),
            TextColumn(pl.Series(list(map(str, shuffled)), dtype=pl.String)),
        ]
        if isinstance(shuffled[0], int):
            columns += [
                NumberColumn(np.array(shuffled)),
                MixedColumn([str(each) for each in shuffled]),
            ]
        for column in columns:
            assert roster.find_rows(column).tolist() == order
            assert pickle.loads(pickle.dumps(roster)).find_rows(column).tolist() == order


def test_two_ids_with_one_hash_are_told_apart(monkeypatch):
    roster = Roster.of(pl.Series(["a", "b", "c"]))
    monkeypatch.setattr(pl.Series, "hash", lambda self: pl.Series([7] * len(self), dtype=pl.UInt64))
    assert roster.find_rows(TextColumn(pl.Series(["c", "x", "a"]))).tolist() == [2, -1, 0]


def test_an_id_whose_hash_is_another_ones_is_unknown(monkeypatch):
    roster = Roster.of(pl.Series(["a", "b"]))
    fake = {"a": 1, "b": 2, "evil": 1}
    monkeypatch.setattr(
        pl.Series, "hash", lambda self: pl.Series([fake[each] for each in self], dtype=pl.UInt64)
    )
    assert roster.find_rows(TextColumn(pl.Series(["b", "evil"]))).tolist() == [1, -1]


def test_what_kind_ids_are_of():
    assert Roster.of(["1", "2"]).has_integer_ids
    assert not Roster.of(["1", "02"]).has_integer_ids
    assert not Roster.of(["1", "b"]).has_integer_ids
    assert Roster.of([1.0, 2.0]).has_integer_ids
    assert Roster.of([0, 1, 2]).is_sequential
    assert not Roster.of([0, 2, 1]).is_sequential
    assert Roster.of(3).is_sequential
    assert Roster.of(read_holdout(b"id,label\n1,x\n2,y\n")).has_integer_ids
    assert not Roster.of(read_holdout(b"id,label\n01,x\n2,y\n")).has_integer_ids


def test_rosters_that_are_refused():
    for wrong in (["a", "a"], [1, 1], pl.Series(["a", "b", "a"]), [1.0, "1"]):
        with pytest.raises(InvalidLabels, match=r"these come again: ('a'|1|'1')"):
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
