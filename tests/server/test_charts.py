"""Charts: well-formed and within their box whatever the numbers, and true to them."""

import math
import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ladderboard.server._pages._charts import (
    Bar,
    ChartStep,
    Mark,
    Range,
    bar_chart,
    histogram,
    number_ticks,
    padded_range,
    step_chart,
    text_width,
    time_range,
    time_ticks,
    truncate_to_width,
)

WORDS = {"key": "k", "title": "A title", "summary": "In words."}
SHAPES = re.compile(r"([MLHVZ])([^MLHVZ]*)")
finite = st.floats(allow_nan=False, allow_infinity=False)
values = st.one_of(finite, st.floats(0, 1), st.integers(-5, 5).map(float))
times = st.one_of(finite, st.integers(0, 4_000_000_000).map(float))
words = st.one_of(st.text(max_size=60), st.just("<script>&\"'\x00\ud800 數據"))


def drawn_points(svg):
    """Yield every drawn coordinate as (x, y), with None for one that does not change."""
    for element in svg.iter():
        if "cx" in element.attrib:
            x, y, r = (float(element.get(name)) for name in ("cx", "cy", "r"))
            yield from ((x - r, y - r), (x + r, y + r))
        elif "x" in element.attrib:
            yield float(element.get("x")), float(element.get("y"))
        for shape, numbers in SHAPES.findall(element.get("d", "")):
            coordinates = [float(number) for number in numbers.split()]
            if shape in "ML":
                yield tuple(coordinates)
            elif shape == "H":
                yield coordinates[0], None
            elif shape == "V":
                yield None, coordinates[0]


def parse_and_check(chart):
    """Parse a chart, check that all shapes are inside its pictures, and return the pictures."""
    figure = ET.fromstring(str(chart))  # noqa: S314 - our own
    pictures = figure.findall("svg")
    assert [picture.get("class") for picture in pictures] == ["chart-wide", "chart-narrow"]
    ids = [element.get("id") for element in figure.iter() if element.get("id")]
    assert len(ids) == len(set(ids)) == 4
    for picture in pictures:
        assert picture.get("role") == "img"
        assert picture[0].tag == "title"
        assert picture[0].get("id") == picture.get("aria-labelledby")
        assert picture[1].tag == "desc"
        assert picture[1].get("id") == picture.get("aria-describedby")
        width, height = (float(number) for number in picture.get("viewBox").split()[2:])
        for x, y in drawn_points(picture):
            assert x is None or (math.isfinite(x) and 0 <= x <= width)
            assert y is None or (math.isfinite(y) and 0 <= y <= height)
    assert "style=" not in str(chart)
    return pictures


steps = st.builds(
    lambda time, value, bounds: ChartStep(
        time, value, *(sorted(bounds) if bounds else (None, None))
    ),
    times,
    values,
    st.none() | st.tuples(values, values),
)
marks = st.builds(Mark, times, st.none() | values, words, large=st.booleans())


@settings(deadline=None)
@given(
    st.lists(steps, min_size=1, max_size=8), st.lists(marks, max_size=8), st.none() | times, words
)
def test_any_steps_are_drawn_inside_the_box(steps, marks, until, title):
    chart = step_chart(steps, marks, until=until, **{**WORDS, "title": title}, y_title=title)
    parse_and_check(chart)


bars = st.builds(Bar, st.integers(0, 10**9), words, words, times, times)


@settings(deadline=None)
@given(st.lists(bars, min_size=1, max_size=9), words)
def test_any_bars_are_drawn_inside_the_box(bars, title):
    parse_and_check(bar_chart(bars, **WORDS))
    parse_and_check(histogram(bars, **WORDS, y_title=title))


def test_empty_data_gives_no_chart():
    assert step_chart([], **WORDS, y_title="y") is None
    assert bar_chart([], **WORDS) is None
    assert histogram([], **WORDS, y_title="y") is None


def test_all_texts_are_escaped():
    evil = "</svg><script>alert('1')</script>&"
    texts = {"key": "k", "title": evil, "summary": evil, "caption": evil}
    for chart in (
        step_chart([ChartStep(0, 1)], [Mark(0, 1, evil)], **texts, y_title=evil),
        bar_chart([Bar(1, evil, evil)], **texts),
        histogram([Bar(1, evil, start=0, end=60)], **texts, y_title=evil),
    ):
        assert "<script" not in chart
        assert parse_and_check(chart)[0][0].text == evil


def test_a_step_reaches_to_the_next_and_the_last_to_the_end():
    (wide, _) = parse_and_check(
        step_chart([ChartStep(0, 0.0), ChartStep(50, 1.0)], until=100, **WORDS, y_title="y")
    )
    (line,) = [element.get("d") for element in wide if element.get("class") == "chart-line"]
    match = re.fullmatch(r"M(\S+) (\S+)H(\S+)V(\S+)H(\S+)", line)
    left, low, middle, high, right = map(float, match.groups())
    assert middle == pytest.approx((left + right) / 2, abs=0.1)
    assert high < low  # y grows downwards


def test_one_value_is_a_flat_line():
    (wide, _) = parse_and_check(step_chart([ChartStep(7, 0.5)], **WORDS, y_title="y"))
    (line,) = [element.get("d") for element in wide if element.get("class") == "chart-line"]
    left, right = map(float, re.fullmatch(r"M(\S+) \S+H(\S+)", line).groups())
    assert right - left > 400


def test_a_band_is_drawn_for_steps_with_bounds():
    steps = [ChartStep(0, 0.5), ChartStep(10, 0.6, 0.5, 0.7), ChartStep(90, 0.6, 0.55, 0.65)]
    for picture in parse_and_check(step_chart(steps, **WORDS, y_title="y")):
        by_class = {element.get("class"): element for element in picture}
        assert by_class["chart-band"].get("d").count("Z") == 2
    (wide, _) = parse_and_check(step_chart(steps[:1], **WORDS, y_title="y"))
    assert "chart-band" not in {element.get("class") for element in wide}


def test_a_chart_of_many_marks_stays_small():
    thousand = [Mark(index, index / 1000, f"The {index}th of them") for index in range(1000)]
    steps = [ChartStep(mark.time, mark.value) for mark in thousand[:100]]
    chart = step_chart(steps, thousand, **WORDS, y_title="y")
    parse_and_check(chart)
    assert chart.count("<circle") == 2 * 150
    assert len(chart) < 75_000


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0, 1, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (0.811, 0.834, ["0.815", "0.820", "0.825", "0.830"]),
        (-3, 12_000, ["0", "5,000", "10,000"]),
        (0, 4e9, ["0", "1e+09", "2e+09", "3e+09", "4e+09"]),
    ],
)
def test_ticks_are_round(low, high, labels):
    assert list(number_ticks(Range(low, high), 5).values()) == labels


@given(st.lists(finite, min_size=1))
def test_a_range_holds_its_values_and_is_never_empty(values):
    low, high = padded_range(values)
    assert low < high
    assert math.isfinite(high - low)
    assert all(low <= min(max(value, -1e300), 1e300) <= high for value in values)


DAY = 86_400
START = 1_800_000_000  # 2027-01-15 08:00


@pytest.mark.parametrize(
    ("length", "labels", "date"),
    [
        (60, ["08:00", "08:01"], "{0:%Y-%m-%d}"),
        (9000, ["08:00", "08:30", "09:00", "09:30", "10:00", "10:30"], "{0:%Y-%m-%d}"),
        (DAY, ["12:00", "18:00", "00:00", "06:00"], "{0:%Y-%m-%d}"),
        (5 * DAY, ["16 Jan", "17 Jan", "18 Jan", "19 Jan", "20 Jan"], "{0.year}"),
        (30 * DAY, ["18 Jan", "25 Jan", "1 Feb", "8 Feb"], "{0.year}"),
        (150 * DAY, ["18 Jan", "15 Feb", "15 Mar", "12 Apr", "10 May", "7 Jun"], "{0.year}"),
        (450 * DAY, ["Jan 2027", "Apr 2027", "Jul 2027", "Oct 2027", "Jan 2028"], ""),
    ],
)
def test_time_ticks_are_round_from_minutes_to_years(length, labels, date):
    ticks, date_form = time_ticks(time_range([START, START + length]), 440)
    assert list(ticks.values()) == labels
    assert date_form == date


@given(times, times, st.floats(200, 900))
def test_time_tick_labels_do_not_overlap(first, last, width):
    range_ = time_range([first, last])
    ticks, _ = time_ticks(range_, width)
    assert ticks
    gap = max(map(text_width, ticks.values())) / width * (range_.high - range_.low)
    assert all(right - left > gap for left, right in pairwise(ticks))
    assert all(range_.low <= time <= range_.high for time in ticks)


@given(st.text(max_size=40), st.floats(10, 400))
def test_a_shortened_text_fits(text, width):
    short = truncate_to_width(text, width)
    assert text_width(short) <= max(width, text_width("…"))
    assert short == text or short.endswith("…")
