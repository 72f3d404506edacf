"""The charts of boards: what a view returns, as a picture and as text."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from ladderboard.board import PUBLIC, Caller, IncomingSubmission, Role, open_boards, read_folder
from ladderboard.server._pages._charts import (
    activity_histogram,
    history_chart,
    rank_chart,
    team_activity_chart,
    team_history_chart,
)

DIGITS = Path(__file__).parents[2] / "examples/digits"
DISPLAY = {"name": "accuracy", "direction": "higher", "digits": 3, "as": "complement"}


def history_point(hour, value, used, *, vacuous=False, now=False):
    bounds = {"low": round(value - 0.1, 3), "high": round(value + 0.05, 3)}
    return {
        "time": f"2027-01-15T{hour:02}:00:00Z",
        "entry": None if now else hour,
        "used": used,
        "released": 1 - value,
        "display": value,
        "bound": {"low": 0.1, "high": 0.2, "vacuous": vacuous, "display": bounds},
    }


def history_data(*points, **fields):
    records = max(len(points) - 1, 0)
    content = {"display": DISPLAY, "beta": 0.05, "points": list(points), "records": records}
    return {**content, "thinned": False, **fields}


def texts_of(chart):
    """Return the description of the wide picture, the texts of its marks, and the caption."""
    figure = ET.fromstring(str(chart))  # noqa: S314 - our own
    wide = figure[0]
    notes = [
        element.find("title").text for element in wide.iter() if element.find("title") is not None
    ]
    caption = figure.find("figcaption")
    return wide[1].text, notes[1:], "" if caption is None else caption.text


def test_a_history_has_a_text_description():
    points = (
        history_point(8, 0.6, 1),
        history_point(10, 0.75, 40),
        history_point(12, 0.75, 1234, now=True),
    )
    summary, notes, caption = texts_of(history_chart(history_data(*points)))
    assert summary == (
        "The best accuracy went from 0.6 on 2027-01-15 to 0.75 in 2 new bests, with 1,234 "
        "submissions so far. The true accuracy of the best model so far lies between 0.65 and 0.80 "
        "(confidence 95%)."
    )
    assert notes == [
        "0.6 on 2027-01-15 08:00 UTC, at submission 1; truly between 0.50 and 0.65",
        "0.75 on 2027-01-15 10:00 UTC, at submission 40; truly between 0.65 and 0.80",
    ]
    band = "The band shows where the true accuracy of the best model lies"
    assert f"{band}: now between 0.65 and 0.80 (confidence 95%)." in caption
    assert "The line ends now, 2027-01-15 12:00 UTC." in caption
    assert "not all are shown" not in caption
    assert history_chart(history_data()) is None
    assert history_chart(history_data(*points[1:])) is None  # a flat line says nothing


def test_bounds_that_are_wider_than_the_chart_are_not_drawn():
    def points(low):
        bounds = {"low": 0.1, "high": 0.2, "vacuous": False, "display": {"low": low, "high": 0.8}}
        return [
            {**history_point(hour, value, hour), "bound": bounds}
            for hour, value in ((8, 0.6), (10, 0.75), (12, 0.75))
        ]

    assert "chart-band" in history_chart(history_data(*points(0.65)))
    too_wide = history_chart(history_data(*points(0.6)))
    assert "chart-band" not in too_wide
    assert "between" not in too_wide


def test_every_record_is_in_view():
    values = [(1, 0.605), (2, 0.81), (3, 0.85), (22, 0.855), (23, 0.855)]
    points = [history_point(hour, value, hour) for hour, value in values]
    chart = ET.fromstring(str(history_chart(history_data(*points))))  # noqa: S314 - our own
    dots = [float(dot.attrib["cy"]) for dot in chart[0].iter() if dot.tag.endswith("circle")]
    assert len(set(dots)) == 4


def test_a_chart_says_why_it_ends():
    points = [history_point(hour, value, 1) for hour, value in ((8, 0.6), (10, 0.75), (12, 0.75))]
    caption = texts_of(history_chart(history_data(*points), ends="at the close"))[2]
    assert "The line ends at the close, 2027-01-15 12:00 UTC." in caption
    assert "lies: at the close between 0.65 and 0.80" in caption


def test_baselines_in_view_are_dashed():
    points = (
        history_point(8, 0.6, 1),
        history_point(10, 0.75, 40),
        history_point(12, 0.75, 1234, now=True),
    )
    baselines = [{"name": "Linear", "display": 0.7}, {"name": "Coin", "display": 0.1}]
    scored = history_data(*points, baselines={"Nearest": 0.65})
    chart = history_chart(scored, [*baselines, {"name": "Later", "file": "x.csv"}])
    assert chart.count('class="chart-level"') == 4  # in the wide picture and in the narrow one
    assert chart.count("Linear 0.7<") == chart.count("Nearest 0.65<") == 2
    assert "Coin" not in chart  # far below what the chart zooms to


def test_a_baseline_near_the_scores_is_in_view():
    points = [history_point(hour, value, 1) for hour, value in ((8, 0.6), (10, 0.75), (12, 0.75))]
    chart = history_chart(history_data(*points), [{"name": "Expert", "display": 0.78}])
    assert chart.count("Expert") == 2


def test_the_band_ends_as_the_caption_says():
    def point(hour, value, low):
        bounds = {"low": 0.1, "high": 0.2, "vacuous": False, "display": {"low": low, "high": 0.8}}
        return {**history_point(hour, value, 1), "bound": bounds}

    chart = history_chart(
        history_data(point(8, 0.6, 0.6), point(10, 0.78, 0.72), point(12, 0.78, 0.66))
    )
    assert "now between 0.66 and 0.80" in texts_of(chart)[2]
    (band,) = re.findall('<path d="([^"]*)" class="chart-band"', chart)[:1]
    ticks = re.findall('y="([0-9.]+)" text-anchor="end" class="chart-axis">([0-9.]+)<', chart)
    (first, low), (last, high) = [
        (float(y) - 4.5, float(text)) for y, text in (ticks[0], ticks[-1])
    ]
    ends = [float(y) for y in re.findall(r"[MV](?:[0-9.]+ )?([0-9.]+)H", band)]
    assert low + (max(ends) - first) / (last - first) * (high - low) == pytest.approx(0.6, abs=0.01)
    shown = low + (float(re.findall(r"M[0-9.]+ ([0-9.]+)", band)[-1]) - first) / (last - first) * (
        high - low
    )
    assert shown == pytest.approx(0.66, abs=0.005)


def test_a_year_is_below_the_first_day_of_it():
    days = [("2026-12-30", 0.6), ("2027-01-03", 0.7), ("2027-01-05", 0.7)]
    points = [{**history_point(8, value, 1), "time": f"{day}T00:00:00Z"} for day, value in days]
    wide = str(history_chart(history_data(*points))).partition("chart-narrow")[0]
    texts = re.findall(
        'x="([0-9.]+)" y="[0-9.]+" text-anchor="middle" class="chart-axis">([^<]+)<', wide
    )
    places = {text: x for x, text in texts}
    assert places["2026"] == places["30 Dec"]
    assert places["2027"] == places["1 Jan"]


def test_a_history_with_vacuous_bounds_has_no_band():
    points = (
        history_point(7, 0.5, 1, vacuous=True),
        history_point(8, 0.6, 1, vacuous=True),
        history_point(9, 0.6, 1, vacuous=True, now=True),
    )
    chart = history_chart(history_data(*points, thinned=True))
    summary, notes, caption = texts_of(chart)
    assert "chart-band" not in chart
    assert "best model" not in summary
    assert notes[1:] == ["0.6 on 2027-01-15 08:00 UTC, at submission 1"]
    assert "band" not in caption
    assert "not all are shown" in caption


@pytest.mark.parametrize(
    ("beta", "phrase"), [(0.001, "(confidence 99.9%)"), (1e-9, "(confidence 99.9999%)")]
)
def test_the_caption_states_the_bands_confidence(beta, phrase):
    points = history_point(7, 0.4, 1), history_point(8, 0.6, 1), history_point(9, 0.6, 1, now=True)
    assert phrase in texts_of(history_chart(history_data(*points, beta=beta)))[2]


def own_point(number, value, *, improved, score=None):
    time = f"2027-01-{number:02}T00:00:00Z"
    return {"number": number, "time": time, "released": value, "display": value, "score": score,
            "shown": score, "improved": improved}  # fmt: skip


def own_history(*points, **fields):
    content = {"display": DISPLAY, "points": list(points), "thinned": False}
    return {**content, "now": "2027-02-01T00:00:00Z", **fields}


def test_a_team_sees_which_submissions_improved():
    points = (
        own_point(1, 0.5, improved=True, score=0.5), own_point(2, 0.5, improved=False),
        own_point(3, 0.625, improved=True, score=0.625),
    )  # fmt: skip
    chart = team_history_chart(own_history(*points))
    summary, notes, caption = texts_of(chart)
    assert summary == "After 3 submissions, of which 2 improved, the score shown is accuracy 0.625."
    assert [note.partition(":")[0] for note in notes] == ["Submission 1", "Submission 3"]
    assert chart.count("chart-rug") == 2
    assert "ticks on the axis are other submissions" in caption


def test_scores_are_drawn_as_dots():
    points = (
        own_point(1, 0.5, improved=True, score=0.5),
        own_point(2, 0.5, improved=False, score=0.25),
    )
    chart = team_history_chart(own_history(*points, now=None, thinned=True))
    assert chart.count("chart-dots") == 2
    assert "chart-rug" not in chart
    assert "Older ones are left out." in texts_of(chart)[2]


def test_hidden_results_are_not_drawn():
    assert team_history_chart(own_history()) is None
    assert team_history_chart(own_history(own_point(1, None, improved=False))) is None
    summary, _, _ = texts_of(
        team_history_chart(
            own_history(
                own_point(1, 0.5, improved=True),
                own_point(2, None, improved=False),
                own_point(3, 0.6, improved=True),
            )
        )
    )
    assert summary == "After 3 submissions, of which 2 improved, the score shown is accuracy 0.6."


def activity(teams, others=0):
    rows = [
        {"team": {"id": str(index), "name": f"Team {index}"}, "baseline": False,
         "disqualified": False, "questions": questions, "improved": 1,
         "last": "2027-01-15T08:00:00Z"}
        for index, questions in enumerate(teams)
    ]  # fmt: skip
    bins = [
        {"start": f"2027-01-{day:02}T00:00:00Z", "end": f"2027-01-{day + 1:02}T00:00:00Z",
         "questions": questions, "improved": 0}
        for day, questions in enumerate(teams[:9], 1)
    ]  # fmt: skip
    return {
        "questions": sum(teams) + others,
        "teams": rows,
        "others": {"teams": others, "questions": others},
        "bins": bins,
    }


def test_the_most_active_teams_have_a_bar_each():
    summary, notes, _ = texts_of(team_activity_chart(activity([9, 5, 1])))
    assert summary == "15 submissions by 3 teams; most by Team 0, with 9."
    assert notes[1] == "Team 1: 5 submissions, 1 of which improved"
    summary, notes, caption = texts_of(team_activity_chart(activity([2] * 25, others=4)))
    assert len(notes) == 20
    assert caption == "9 other teams made 14 submissions."
    assert summary.startswith("54 submissions by 29 teams;")
    assert team_activity_chart(activity([])) is None


def test_questions_over_time():
    summary, notes, caption = texts_of(activity_histogram(activity([3, 0, 7])))
    assert summary == (
        "10 submissions between 2027-01-01 00:00 UTC and 2027-01-04 00:00 UTC; most of them, 7, "
        "from 2027-01-03 00:00 UTC on."
    )
    assert notes == [
        "3 submissions from 2027-01-01 00:00 UTC",
        "7 submissions from 2027-01-03 00:00 UTC",
    ]
    assert "UTC" in caption
    assert ">1.0<" not in activity_histogram(activity([1, 1]))  # questions are whole numbers
    assert activity_histogram(activity([])) is None


def test_a_chart_is_cached_for_a_minute():
    *points, now = history_point(7, 0.5, 1), history_point(8, 0.6, 1), history_point(9, 0.6, 3)
    chart = history_chart(history_data(*points, now))
    later = [{**now, "time": f"2027-01-15T{time}Z"} for time in ("09:00:59", "09:01:00")]
    assert history_chart(history_data(*points, later[0])) is chart
    assert history_chart(history_data(*points, later[1])) is not chart


def test_the_charts_of_a_real_board(tmp_path):
    folder = read_folder(DIGITS)
    boards = open_boards(tmp_path / "boards.db", create=True)
    board = boards.create(folder)
    organiser = Caller(Role.ORGANISER)
    empty = board.as_seen_by(PUBLIC).history()
    assert empty["records"] <= 1
    assert history_chart(empty) is None
    caller = boards.caller_by_token(board.teams.create(organiser, "Ada").token, board.slug)
    rng = np.random.default_rng(1)
    labels = folder.table.labels
    for wrong in (0.4, 0.2, 0.3):
        guesses = np.where(rng.random(len(labels)) < wrong, (labels + 1) % 10, labels)
        rows = zip(folder.table.ids, guesses, strict=True)
        body = "\n".join(["id,prediction", *(f"{id_},{guess}" for id_, guess in rows)]).encode()
        submission = IncomingSubmission(board.scorer().read(body), board.book.environment.clock())
        board.submit(caller, submission)
    view = board.as_seen_by(organiser)
    history_view, own_view = view.history(), board.as_seen_by(caller).own_history()
    activity = view.activity()
    json.dumps([history_view, own_view, activity], allow_nan=False)
    assert "chart-line" in history_chart(history_view)
    value = f"{history_view['points'][-1]['display']:g}"
    assert re.search(rf">{re.escape(value)}</text>", history_chart(history_view))
    assert "After 3 submissions" in team_history_chart(own_view)
    assert "Ada: 3 submissions" in team_activity_chart(activity)
    assert activity_histogram(activity) is not None
    boards.close()


def final_row(rank, ranks, band, name, *, baseline=False):
    team = {"id": f"{rank or 0:016x}", "name": name}
    return {"rank": rank, "ranks": ranks, "band": band, "team": team, "baseline": baseline}


def test_ranges_of_ranks_are_drawn_in_bands():
    rows = [
        final_row(1, [1, 2], 1, "Ada <b>"),
        final_row(2, [1, 3], 1, "Bob"),
        final_row(None, None, None, "Zeros", baseline=True),
        final_row(3, [2, 3], 2, None),
    ]
    chart = rank_chart({"rows": rows, "beta": 0.05})
    summary, notes, caption = texts_of(chart)
    assert summary == "3 teams in 2 bands; the largest has 2 teams. Ada <b> may have rank 1 to 2."
    assert notes[:3] == ["Band 1", "Band 2", "Ada <b>: rank 1, possible ranks 1 to 2"]
    assert notes[-1] == "0000000000000003: rank 3, possible ranks 2 to 3"
    assert "possible ranks (confidence 95%, for all teams at once)" in caption
    wide = ET.fromstring(str(chart))[0]  # noqa: S314 - our own
    svg = "{*}"
    bands, bars = (
        [path.get("d") for path in wide.iterfind(f"{svg}path[@class='chart-{name}']")]
        for name in ("band", "range")
    )
    assert (len(bands), len(bars)) == (2, 3)
    # A band is as high as its rows: 24 each, with a gap between two bands.
    heights = [
        float(d.split("V")[1].split("H")[0]) - float(d.split()[1].split("H")[0]) for d in bands
    ]
    assert heights == [46.0, 22.0]
    # A bar of three ranks is longer than one of two, by a rank.
    widths = [float(d.split("H")[1].split("V")[0]) - float(d[1:].split()[0]) for d in bars]
    dots = [float(circle.get("cx")) for circle in wide.iterfind(f"{svg}circle")]
    assert widths[1] - widths[0] == pytest.approx(dots[1] - dots[0], abs=0.2)
    assert dots == sorted(dots)


def test_many_teams_are_drawn_up_to_a_limit_and_one_not_at_all():
    rows = [final_row(rank, [rank, 60], rank, f"Team {rank}") for rank in range(1, 61)]
    *_, caption = texts_of(rank_chart({"rows": rows, "beta": 0.05}))
    assert caption.endswith("20 more teams are in the table.")
    assert rank_chart({"rows": rows[:1], "beta": 0.05}) is None
    unranged = [final_row(rank, None, None, "A") for rank in (1, 2, 3)]
    assert rank_chart({"rows": unranged, "beta": 0.05}) is None
