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
some = st.one_of(finite, st.floats(0, 1), st.integers(-5, 5).map(float))
times = st.one_of(finite, st.integers(0, 4_000_000_000).map(float))
words = st.one_of(st.text(max_size=60), st.just("<script>&\"'\x00\ud800 數據"))


def places(svg):
    """Return every coordinate that is drawn, as (x, y); None where only one is told."""
    for each in svg.iter():
        if "cx" in each.attrib:
            x, y, r = (float(each.get(name)) for name in ("cx", "cy", "r"))
            yield from ((x - r, y - r), (x + r, y + r))
        elif "x" in each.attrib:
            yield float(each.get("x")), float(each.get("y"))
        for shape, numbers in SHAPES.findall(each.get("d", "")):
            found = [float(number) for number in numbers.split()]
            if shape in "ML":
                yield tuple(found)
            elif shape == "H":
                yield found[0], None
            elif shape == "V":
                yield None, found[0]


def check(chart):
    """Parse a chart and return its pictures; all that is drawn is within them."""
    figure = ET.fromstring(str(chart))  # noqa: S314 - our own
    pictures = figure.findall("svg")
    assert [each.get("class") for each in pictures] == ["chart-wide", "chart-narrow"]
    ids = [each.get("id") for each in figure.iter() if each.get("id")]
    assert len(ids) == len(set(ids)) == 4
    for each in pictures:
        assert each.get("role") == "img"
        assert each[0].tag == "title"
        assert each[0].get("id") == each.get("aria-labelledby")
        assert each[1].tag == "desc"
        assert each[1].get("id") == each.get("aria-describedby")
        width, height = (float(number) for number in each.get("viewBox").split()[2:])
        for x, y in places(each):
            assert x is None or (math.isfinite(x) and 0 <= x <= width)
            assert y is None or (math.isfinite(y) and 0 <= y <= height)
    assert "style=" not in str(chart)
    return pictures


steps = st.builds(
    lambda time, value, ends: ChartStep(time, value, *(sorted(ends) if ends else (None, None))),
    times,
    some,
    st.none() | st.tuples(some, some),
)
marks = st.builds(Mark, times, st.none() | some, words, large=st.booleans())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(steps, min_size=1, max_size=8), st.lists(marks, max_size=8), st.none() | times, words
)
def test_any_steps_can_be_drawn(steps, marks, until, said):
    chart = step_chart(steps, marks, until=until, **{**WORDS, "title": said}, y_title=said)
    check(chart)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.builds(ChartLine, words, st.lists(st.tuples(some, some), max_size=6)), max_size=6),
    st.booleans(),
    st.booleans(),
    words,
)
def test_any_lines_can_be_drawn(lines, log_x, zero, said):
    chart = line_chart(lines, **WORDS, x_title=said, y_title=said, log_x=log_x, zero=zero)
    if any(x > 0 or not log_x for line in lines for x, _ in line.points):
        check(chart)
    else:
        assert chart is None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.builds(Bar, words, st.one_of(some, st.integers(0, 10**6)), words), min_size=1))
def test_any_bars_can_be_drawn(bars):
    check(bar_chart(bars, **WORDS))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.builds(Bin, times, times, some, words), min_size=1, max_size=9), words)
def test_any_bins_can_be_drawn(bins, said):
    check(histogram(bins, **WORDS, y_title=said))


def test_what_is_empty_is_no_chart():
    assert step_chart([], **WORDS, y_title="y") is None
    assert line_chart([ChartLine("a", [])], **WORDS, x_title="x", y_title="y") is None
    assert bar_chart([], **WORDS) is None
    assert histogram([], **WORDS, y_title="y") is None
    with pytest.raises(ValueError, match="got 7"):
        line_chart([ChartLine("a", [(1, 1)])] * 7, **WORDS, x_title="x", y_title="y")


def test_everything_is_escaped():
    evil = "</svg><script>alert('1')</script>&"
    said = {"key": "k", "title": evil, "summary": evil, "caption": evil}
    for chart in (
        step_chart([ChartStep(0, 1)], [Mark(0, 1, evil)], **said, y_title=evil),
        line_chart([ChartLine(evil, [(1, 1)])], **said, x_title=evil, y_title=evil),
        bar_chart([Bar(evil, 1, evil)], **said),
        histogram([Bin(0, 60, 1, evil)], **said, y_title=evil),
    ):
        assert "<script" not in chart
        assert check(chart)[0][0].text == evil


def test_a_step_stands_until_the_next_and_the_last_to_the_end():
    (wide, _) = check(
        step_chart([ChartStep(0, 0.0), ChartStep(50, 1.0)], until=100, **WORDS, y_title="y")
    )
    (line,) = [each.get("d") for each in wide if "chart-line-1" in each.get("class", "")]
    found = re.fullmatch(r"M(\S+) (\S+)H(\S+)V(\S+)H(\S+)", line)
    left, low, middle, high, right = map(float, found.groups())
    assert middle == pytest.approx((left + right) / 2, abs=0.1)
    assert high < low  # what is more is higher up


def test_one_value_is_a_flat_line():
    (wide, _) = check(step_chart([ChartStep(7, 0.5)], **WORDS, y_title="y"))
    (line,) = [each.get("d") for each in wide if "chart-line-1" in each.get("class", "")]
    left, right = map(float, re.fullmatch(r"M(\S+) \S+H(\S+)", line).groups())
    assert right - left > 400


def test_a_band_is_drawn_where_there_is_one():
    steps = [ChartStep(0, 0.5), ChartStep(10, 0.6, 0.5, 0.7), ChartStep(90, 0.6, 0.55, 0.65)]
    for picture in check(step_chart(steps, **WORDS, y_title="y")):
        found = {each.get("class"): each for each in picture}
        assert found["chart-band"].get("d").count("Z") == 2
        assert "chart-bar-end" in found
    (wide, _) = check(step_chart(steps[:1], **WORDS, y_title="y"))
    assert not {"chart-band", "chart-bar-end"} & {each.get("class") for each in wide}


def test_many_marks_stay_small():
    many = [Mark(at, at / 1000, f"The {at}th of them") for at in range(1000)]
    steps = [ChartStep(each.time, each.value) for each in many[:100]]
    chart = step_chart(steps, many, **WORDS, y_title="y")
    check(chart)
    assert chart.count("<circle") == 2 * 150
    assert len(chart) < 75_000


def test_lines_differ_in_shape_and_not_in_colour_alone():
    lines = [ChartLine(f"{at}", [(at, at), (at + 1, at)]) for at in range(6)]
    (wide, _) = check(line_chart(lines, **WORDS, x_title="x", y_title="y"))
    kinds = [each.get("class") for each in wide.iter() if "chart-mark" in each.get("class", "")]
    assert {kinds.count(f"chart-mark chart-mark-{which}") for which in range(1, 7)} == {3}
    shapes = {
        re.sub(r"[\d. ]", "", each.get("d", "circle"))
        for each in wide.iter()
        if "chart-mark" in each.get("class", "")
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
    assert [each.label for each in number_ticks(Range(low, high), 5)] == labels


def test_ticks_of_a_logarithm():
    assert [each.label for each in log_ticks(Range(0, 2), 8)] == [
        *("1", "2", "5", "10", "20", "50", "100")
    ]
    assert [each.label for each in log_ticks(Range(1.5, 3.5), 4)] == [
        "100",
        "300",
        "1,000",
        "3,000",
    ]
    assert [each.label for each in log_ticks(Range(0, 6), 3)] == ["1", "100", "10,000", "1,000,000"]


@given(st.lists(finite, min_size=1))
def test_a_range_holds_its_values_and_is_never_nothing(values):
    low, high = padded_range(values)
    assert low < high
    assert math.isfinite(high - low)
    assert all(low <= min(max(each, -1e300), 1e300) <= high for each in values)


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
def test_ticks_of_time_are_round_from_seconds_to_years(length, labels, context):
    found = time_ticks(time_range(START, START + length), 420)
    assert [each.label for each in found] == labels
    assert [each.context for each in found if each.context] == [each for each in context if each]


@given(times, times, st.floats(150, 900))
def test_ticks_of_time_have_room(first, last, width):
    range_ = time_range(first, last)
    found = time_ticks(range_, width)
    assert found
    gaps = [
        (after.value - before.value) / (range_.high - range_.low) * width
        for before, after in pairwise(found)
    ]
    # Months differ in length by a tenth from the mean.
    assert all(gap > 0.9 * text_width(found[0].label) for gap in gaps)
    assert all(range_.low <= each.value <= range_.high for each in found)


@given(st.text(max_size=40), st.floats(10, 400))
def test_what_is_cut_off_fits(said, width):
    short = truncate_to_width(said, width)
    assert text_width(short) <= max(width, text_width("…"))
    assert short == said or short.endswith("…")
