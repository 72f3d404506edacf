"""The tutorial on overfitting: its program, its figure, and every number in its text."""

import csv
import importlib
import math
import re
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ladderboard.mechanisms import Exact

ROOT = Path(__file__).parents[2]
EXAMPLES, TUTORIALS = ROOT / "examples", ROOT / "docs/tutorials"
TEXT = (TUTORIALS / "overfitting.md").read_text()
FLAT = " ".join(TEXT.split())
EXACT, LED, JUDGED, BOTH = (
    "exact scores lead",
    "the guard leads",
    "own score leads, exact scores judge",
    "own score leads, the guard judges",
)


def recorded():
    """Return the rows of the table behind the figure, by search."""
    rows_by_search = {}
    with (TUTORIALS / "overfitting.csv").open() as file:
        for row in csv.DictReader(file):
            name = row.pop("search")
            numbers = {key: float(number) for key, number in row.items()}
            numbers["gap"] = numbers["fresh"] - numbers["shown"]
            rows_by_search.setdefault(name, []).append(numbers)
    return rows_by_search


def column(name, field):
    return [row[field] for row in recorded()[name]]


def mean(name, field):
    return statistics.mean(column(name, field))


def standard_error(values):
    return statistics.stdev(values) / math.sqrt(len(values))


def line(name):
    """Return the line of a search in the tutorial's table."""
    spread = [
        f"{statistics.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"
        for values in (column(name, "shown"), column(name, "fresh"))
    ]
    off = f"{mean(name, 'gap'):.3f} ± {standard_error(column(name, 'gap')):.3f}"
    columns = f"{mean(name, 'last'):.3f} | {mean(name, 'asked'):.0f}"
    return f"| {name} | {' | '.join(spread)} | {off} | {columns} |"


@pytest.fixture
def figure(monkeypatch):
    """Load the program that draws, and with it the one that searches, by their place."""
    monkeypatch.syspath_prepend(EXAMPLES)
    yield importlib.import_module("overfitting_figure")
    for name in ("overfitting_figure", "overfitting"):
        sys.modules.pop(name)


def run(*arguments):
    """Run the program of one split, and return what it printed."""
    return subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / "overfitting.py", *arguments],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def shown():
    """Return the output of the program in the tutorial."""
    (printed,) = re.findall(r"\$ python examples/overfitting.py\n(.+?)```", TEXT, flags=re.DOTALL)
    return printed


# The first steps of the first split: whole numbers and a fixed key, so they are the same anywhere.
SHORT = """\
                                      shown   fresh  questions  improved
exact scores lead                    0.1000  0.1254         95        18
the guard leads                      0.2400  0.2257         89         2
own score leads, exact scores judge  0.1475  0.1605         23        11
own score leads, the guard judges    0.1600  0.1695         23         3
"""


@pytest.mark.slow
def test_a_short_run_of_the_program_prints_its_table():
    assert run("0", "100") == SHORT


def test_the_output_in_the_tutorial_is_the_first_split_of_the_table():
    for printed, (name, rows) in zip(shown().splitlines()[1:], recorded().items(), strict=True):
        shown_score, fresh, asked, improved = map(float, printed.removeprefix(name).split())
        row = rows[0]
        assert (shown_score, fresh) == pytest.approx((row["shown"], row["fresh"]), abs=6e-5)
        assert (asked, improved) == (row["asked"], row["improved"])


def test_the_step_in_the_tutorial_is_in_the_program():
    (step,) = re.findall(r"```python\n( .+?)```", TEXT, flags=re.DOTALL)
    assert step in (EXAMPLES / "overfitting.py").read_text()


def test_the_table_agrees_with_the_figure():
    lines = re.findall(r"^\| (?:exact|the guard|own score).+±.+$", TEXT, flags=re.MULTILINE)
    assert lines == [line(name) for name in (EXACT, LED, JUDGED, BOTH)]
    assert all(len(rows) == 12 for rows in recorded().values())


# Every # is a mean over the splits.
SENTENCES = {
    "They show # in the end; on fresh images the winner is at #.": (
        (EXACT, "shown"),
        (EXACT, "fresh"),
    ),
    "exact scores as the judge, the winner is at #, too.": ((JUDGED, "fresh"),),
    "it shows # for models that are at #.": ((BOTH, "own"), (BOTH, "last")),
    "they are # too low where the guard led": ((LED, "gap"),),
    "and # where it judged": ((BOTH, "gap"),),
    "its winner is at #. With your own score": ((LED, "fresh"),),
    "the same guard has a winner at #, and needed # questions instead of #.": (
        (BOTH, "fresh"),
        (BOTH, "asked"),
        (LED, "asked"),
    ),
    "The guard's winner is at #, the last model of the same search at #.": (
        (BOTH, "fresh"),
        (BOTH, "last"),
    ),
    "# too low, within a standard error of zero, with a winner at #.": (
        (JUDGED, "gap"),
        (JUDGED, "fresh"),
    ),
    "its own score asks about # models": ((JUDGED, "asked"),),
    "the number does not show it: # looks better than #.": ((EXACT, "shown"), (JUDGED, "shown")),
}


@pytest.mark.parametrize(("sentence", "cells"), SENTENCES.items(), ids=SENTENCES)
def test_numbers_in_sentences_agree_with_the_table(sentence, cells):
    filled = sentence
    for name, field in cells:
        number = f"{mean(name, field):.0f}" if field == "asked" else f"{mean(name, field):.3f}"
        filled = filled.replace("#", number, 1)
    assert filled in FLAT


def test_sentences_about_single_splits_are_true():
    assert f"No split has a gap below {min(column(EXACT, 'gap')):.3f}." in FLAT
    off = max(abs(gap) for name in (LED, BOTH) for gap in column(name, "gap"))
    assert f"off by {off:.3f} at most" in FLAT
    assert max(column(LED, "improved")) == 5  # "at most four times after its first answer"
    assert mean(LED, "gap") < mean(EXACT, "gap") / 4  # "a quarter of the gap of exact scores"
    assert abs(mean(JUDGED, "gap")) < standard_error(column(JUDGED, "gap"))
    assert abs(mean(BOTH, "gap")) < 1.2 * standard_error(column(BOTH, "gap"))
    for true, rows in ((0.11, 997), (0.2, 997), (0.11, 400)):
        assert f"{math.sqrt(true * (1 - true) / rows):.3f} at {true:.2f}" in FLAT


def test_a_short_run_is_drawn_reproducibly(figure, tmp_path):
    for name in ("one", "two"):
        figure.main(tmp_path / name, 2, 8)
    for kind in ("csv", "png", "svg"):
        content = (tmp_path / f"one/overfitting.{kind}").read_bytes()
        assert content == (tmp_path / f"two/overfitting.{kind}").read_bytes()
    rows = (tmp_path / "one/overfitting.csv").read_text().splitlines()
    assert rows[0] == "search,split,shown,fresh,own,last,asked,improved"
    assert len(rows) == 1 + 4 * 2
    assert rows[0] == (TUTORIALS / "overfitting.csv").read_text().splitlines()[0]


def test_all_searches_are_offered_the_same_swaps_and_stay_within_their_budget(figure):
    example = sys.modules["overfitting"]
    first = {}
    for name, (mechanism, own_score) in example.SEARCHES.items():
        (first[name],) = example.search(3, mechanism, own_score=own_score, steps=1)
    # The first is taken whatever leads; a guard says it with noise, rounded.
    assert len({(state.fresh, state.own, state.last, state.asked) for state in first.values()}) == 1
    assert first[EXACT].shown == first[JUDGED].shown
    assert abs(first[EXACT].shown - first[LED].shown) < 0.06
    course = list(example.search(3, Exact(), own_score=False, steps=60))
    released = [state.shown for state in course]
    assert released == sorted(released, reverse=True)
    assert all(state.asked <= step for step, state in enumerate(course, 1))


@pytest.mark.slow
def test_the_complete_program_prints_the_tutorials_output():
    assert run() == shown()


@pytest.mark.slow
def test_the_complete_run_makes_the_recorded_table(figure, tmp_path):
    courses = figure.courses()
    figure.write(courses, tmp_path / "overfitting.csv")
    assert (tmp_path / "overfitting.csv").read_bytes() == (
        TUTORIALS / "overfitting.csv"
    ).read_bytes()
    # "after two hundred steps the score goes on falling, and fresh data show little of it"
    early, late = (courses[EXACT][:, step, :2].mean(axis=0) for step in (199, 999))
    assert early[0] - late[0] > 2 * (early[1] - late[1])


@pytest.mark.slow
@pytest.mark.parametrize("remembered", [20, 40])
def test_other_numbers_of_images_give_the_same_result(figure, monkeypatch, remembered):
    example = sys.modules["overfitting"]
    monkeypatch.setattr(example, "KEPT", remembered)
    ends = []
    for split in range(4):
        *_, end = example.search(split, Exact(), own_score=False)
        ends.append(end.fresh - end.shown)
    # Means of four whose standard deviation is about 0.015; seeds are fixed.
    assert 0.03 < np.mean(ends) < 0.09
