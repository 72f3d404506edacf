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
    Bin,
    ChartLine,
    ChartStep,
    Mark,
    bar_chart,
    histogram,
    line_chart,
    step_chart,
)
from ladderboard.server._pages._charts._axes import (
    Range,
    log_ticks,
    number_ticks,
    padded_range,
    time_range,
    time_ticks,
)
from ladderboard.server._pages._charts._svg import text_width, truncate_to_width

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


@settings(max_examples=60, deadline=None)
@given(
    st.lists(steps, min_size=1, max_size=8), st.lists(marks, max_size=8), st.none() | times, words
)
def test_any_steps_are_drawn_inside_the_box(steps, marks, until, title):
    chart = step_chart(steps, marks, until=until, **{**WORDS, "title": title}, y_title=title)
    parse_and_check(chart)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.builds(ChartLine, words, st.lists(st.tuples(values, values), max_size=6)), max_size=6
    ),
    st.booleans(),
    st.booleans(),
    words,
)
def test_any_lines_are_drawn_inside_the_box(lines, log_x, zero, title):
    chart = line_chart(lines, **WORDS, x_title=title, y_title=title, log_x=log_x, zero=zero)
    if any(x > 0 or not log_x for line in lines for x, _ in line.points):
        parse_and_check(chart)
    else:
        assert chart is None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.builds(Bar, words, st.one_of(values, st.integers(0, 10**6)), words), min_size=1))
def test_any_bars_are_drawn_inside_the_box(bars):
    parse_and_check(bar_chart(bars, **WORDS))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.builds(Bin, times, times, values, words), min_size=1, max_size=9), words)
def test_any_bins_are_drawn_inside_the_box(bins, title):
    parse_and_check(histogram(bins, **WORDS, y_title=title))


def test_empty_data_gives_no_chart():
    assert step_chart([], **WORDS, y_title="y") is None
    assert line_chart([ChartLine("a", [])], **WORDS, x_title="x", y_title="y") is None
    assert bar_chart([], **WORDS) is None
    assert histogram([], **WORDS, y_title="y") is None
    with pytest.raises(ValueError, match="got 7"):
        line_chart([ChartLine("a", [(1, 1)])] * 7, **WORDS, x_title="x", y_title="y")


def test_all_texts_are_escaped():
    evil = "</svg><script>alert('1')</script>&"
    texts = {"key": "k", "title": evil, "summary": evil, "caption": evil}
    for chart in (
        step_chart([ChartStep(0, 1)], [Mark(0, 1, evil)], **texts, y_title=evil),
        line_chart([ChartLine(evil, [(1, 1)])], **texts, x_title=evil, y_title=evil),
        bar_chart([Bar(evil, 1, evil)], **texts),
        histogram([Bin(0, 60, 1, evil)], **texts, y_title=evil),
    ):
        assert "<script" not in chart
        assert parse_and_check(chart)[0][0].text == evil


def test_a_step_reaches_to_the_next_and_the_last_to_the_end():
    (wide, _) = parse_and_check(
        step_chart([ChartStep(0, 0.0), ChartStep(50, 1.0)], until=100, **WORDS, y_title="y")
    )
    (line,) = [element.get("d") for element in wide if "chart-line-1" in element.get("class", "")]
    match = re.fullmatch(r"M(\S+) (\S+)H(\S+)V(\S+)H(\S+)", line)
    left, low, middle, high, right = map(float, match.groups())
    assert middle == pytest.approx((left + right) / 2, abs=0.1)
    assert high < low  # y grows downwards


def test_one_value_is_a_flat_line():
    (wide, _) = parse_and_check(step_chart([ChartStep(7, 0.5)], **WORDS, y_title="y"))
    (line,) = [element.get("d") for element in wide if "chart-line-1" in element.get("class", "")]
    left, right = map(float, re.fullmatch(r"M(\S+) \S+H(\S+)", line).groups())
    assert right - left > 400


def test_a_band_is_drawn_for_steps_with_bounds():
    steps = [ChartStep(0, 0.5), ChartStep(10, 0.6, 0.5, 0.7), ChartStep(90, 0.6, 0.55, 0.65)]
    for picture in parse_and_check(step_chart(steps, **WORDS, y_title="y")):
        by_class = {element.get("class"): element for element in picture}
        assert by_class["chart-band"].get("d").count("Z") == 2
        assert "chart-bar-end" in by_class
    (wide, _) = parse_and_check(step_chart(steps[:1], **WORDS, y_title="y"))
    assert not {"chart-band", "chart-bar-end"} & {element.get("class") for element in wide}


def test_a_chart_of_many_marks_stays_small():
    thousand = [Mark(index, index / 1000, f"The {index}th of them") for index in range(1000)]
    steps = [ChartStep(mark.time, mark.value) for mark in thousand[:100]]
    chart = step_chart(steps, thousand, **WORDS, y_title="y")
    parse_and_check(chart)
    assert chart.count("<circle") == 2 * 150
    assert len(chart) < 75_000


def test_lines_differ_in_shape_not_only_in_colour():
    lines = [ChartLine(f"{index}", [(index, index), (index + 1, index)]) for index in range(6)]
    (wide, _) = parse_and_check(line_chart(lines, **WORDS, x_title="x", y_title="y"))
    kinds = [
        element.get("class") for element in wide.iter() if "chart-mark" in element.get("class", "")
    ]
    assert {kinds.count(f"chart-mark chart-mark-{kind}") for kind in range(1, 7)} == {3}
    shapes = {
        re.sub(r"[\d. ]", "", element.get("d", "circle"))
        for element in wide.iter()
        if "chart-mark" in element.get("class", "")
    }
    assert len(shapes) == 6


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
    assert [tick.label for tick in number_ticks(Range(low, high), 5)] == labels


def test_logarithmic_ticks():
    assert [tick.label for tick in log_ticks(Range(0, 2), 8)] == [
        *("1", "2", "5", "10", "20", "50", "100")
    ]
    assert [tick.label for tick in log_ticks(Range(1.5, 3.5), 4)] == [
        "100",
        "300",
        "1,000",
        "3,000",
    ]
    assert [tick.label for tick in log_ticks(Range(0, 6), 3)] == [
        "1",
        "100",
        "10,000",
        "1,000,000",
    ]


@given(st.lists(finite, min_size=1))
def test_a_range_holds_its_values_and_is_never_empty(values):
    low, high = padded_range(values)
    assert low < high
    assert math.isfinite(high - low)
    assert all(low <= min(max(value, -1e300), 1e300) <= high for value in values)


DAY = 86_400
START = 1_800_000_000  # 2027-01-15 08:00


@pytest.mark.parametrize(
    ("length", "labels", "context"),
    [
        (60, ["08:00:00", "08:00:15", "08:00:30", "08:00:45", "08:01:00"], ["15 Jan 2027"]),
        (9000, ["08:00", "08:30", "09:00", "09:30", "10:00", "10:30"], ["15 Jan 2027"]),
        (
            DAY,
            ["12:00", "18:00", "00:00", "06:00"],
            ["15 Jan 2027", "16 Jan 2027"],
        ),
        (5 * DAY, ["16 Jan", "17 Jan", "18 Jan", "19 Jan", "20 Jan"], ["2027"]),
        (30 * DAY, ["18 Jan", "25 Jan", "1 Feb", "8 Feb"], ["2027"]),
        (150 * DAY, ["Feb", "Mar", "Apr", "May", "Jun"], ["2027"]),
        (500 * DAY, ["Mar", "May", "Jul", "Sep", "Nov", "Jan", "Mar", "May"], ["2027", "2028"]),
        (5 * 365 * DAY, ["2028", "2029", "2030", "2031", "2032"], [""]),
    ],
)
def test_time_ticks_are_round_from_seconds_to_years(length, labels, context):
    labelled = time_ticks(time_range(START, START + length), 420)
    assert [tick.label for tick in labelled] == labels
    assert [tick.context for tick in labelled if tick.context] == [tick for tick in context if tick]


@given(times, times, st.floats(150, 900))
def test_time_tick_labels_do_not_overlap(first, last, width):
    range_ = time_range(first, last)
    labelled = time_ticks(range_, width)
    assert labelled
    gaps = [
        (right.value - left.value) / (range_.high - range_.low) * width
        for left, right in pairwise(labelled)
    ]
    # Months differ in length by a tenth from the mean.
    assert all(gap > 0.9 * text_width(labelled[0].label) for gap in gaps)
    assert all(range_.low <= tick.value <= range_.high for tick in labelled)


@given(st.text(max_size=40), st.floats(10, 400))
def test_a_shortened_text_fits(text, width):
    short = truncate_to_width(text, width)
    assert text_width(short) <= max(width, text_width("…"))
    assert short == text or short.endswith("…")
