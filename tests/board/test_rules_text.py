"""Times as an organiser types them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ladderboard._formatting import format_time
from ladderboard.board._rules._text import read_time
from ladderboard.errors import InvalidSetting


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2027-01-31T23:59:00+01:00", "2027-01-31T22:59:00Z"),
        ("2027-01-31 23:59 +0100", "2027-01-31T22:59:00Z"),
        ("2027-01-31T23:59:00-05", "2027-02-01T04:59:00Z"),
        ("2027-01-31T23:59:00Z", "2027-01-31T23:59:00Z"),
        ("2027-01-31 23:59 UTC", "2027-01-31T23:59:00Z"),
        ("2027-01-31t23:59:00.999z", "2027-01-31T23:59:00Z"),
        ("2027-01-31T24:00+05:45", "2027-01-31T18:15:00Z"),
        ("2027-01-31 18:00 AoE", "2027-02-01T06:00:00Z"),
        ("2028-02-29 00:00Z", "2028-02-29T00:00:00Z"),
        ("2028-02-28 24:00Z", "2028-02-29T00:00:00Z"),
        ("2027-02-28 24:00Z", "2027-03-01T00:00:00Z"),
        (" 2027-01-31T00:30+14:00 ", "2027-01-30T10:30:00Z"),
    ],
)
def test_times_with_an_offset(text, expected):
    assert format_time(read_time("end", text)) == expected
    assert format_time(read_time("end", text, end=True)) == expected  # the hour is given


@pytest.mark.parametrize("text", ["2028-02-29 AoE", "2028-02-29 aoe", "2028-02-29AOE"])
def test_a_day_anywhere_on_earth_begins_and_ends_at_utc_minus_12(text):
    assert format_time(read_time("start", text)) == "2028-02-29T12:00:00Z"
    assert format_time(read_time("end", text, end=True)) == "2028-03-01T12:00:00Z"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("2027-01-31", r"needs an offset; try 2027-01-31T23:59:00\+01:00, .* 2027-01-31 AoE"),
        ("2027-01-31 10:00", r"needs an offset; try 2027-01-31T10:00:00\+01:00"),
        ("2027-01-31Z", "needs a time of day, or AoE"),
        ("2027-02-29 AoE", "must be a valid date; got '2027-02-29'"),
        ("2027-13-01 AoE", "must be a valid date"),
        ("2027-01-31T24:00:01Z", "a time of day from 00:00:00 to 24:00:00"),
        ("2027-01-31T23:59:60Z", "a time of day from 00:00:00 to 24:00:00"),
        ("2027-01-31T23:60Z", "a time of day"),
        ("2027-01-31T23:59+15:00", r"an offset from -14:00 to \+14:00"),
        ("2027-01-31T23:59+01:75", "an offset"),
        ("1970-01-01T00:00Z", "must lie in the years 1971 to 9998"),
        ("9999-12-31 AoE", "must lie in the years"),
        ("31.1.2027", "must be a time such as"),
        ("2027-1-31 AoE", "must be a time such as"),
        ("２027-01-31 AoE", "must be a time such as"),
        ("tomorrow", "must be a time such as"),
        (2027, "must be a time such as"),
        (True, "must be a time such as"),
        (None, "must be a time such as"),
    ],
)
def test_an_invalid_time_is_refused_with_the_expected_form(text, rule):
    with pytest.raises(InvalidSetting, match=f"^end .*{rule}"):
        read_time("end", text, end=True)


@given(
    st.datetimes(datetime.fromisoformat("1971-01-01"), datetime.fromisoformat("9998-12-31")),
    st.integers(-14 * 60, 14 * 60),
)
def test_offsets_agree_with_the_standard_library(naive, minutes):
    moment = naive.replace(microsecond=0, tzinfo=timezone(timedelta(minutes=minutes)))
    assert read_time("start", moment.isoformat()) == moment.timestamp()
    assert format_time(int(moment.timestamp())) == moment.astimezone(UTC).strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )
    assert read_time("end", format_time(int(moment.timestamp()))) == moment.timestamp()
