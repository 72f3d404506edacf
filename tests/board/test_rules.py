"""The rules of a board: accepted values, refusals and derived values."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import ladderboard as lb
from ladderboard.board import (
    Baseline,
    DisplayRules,
    FileRules,
    FinalsRules,
    PhaseRules,
    RateLimitRules,
    Rules,
    read_rules,
)
from ladderboard.board._rules._parse import KNOWN_KEYS
from ladderboard.board._rules._text import read_time
from ladderboard.errors import InvalidRules, InvalidSetting

LEAST = "slug: digits\nloss: accuracy\nquestions: 1000\n"
FULL = """\
slug: digits-2027
title: Digits
description: |
  # Read *me*

  There are ten.
loss: {name: brier, classes: [no, yes]}
display: {name: Brier score, direction: lower, digits: 3}
mechanism: {name: ladder, step: 0.01, grid: 0.005}
beta: 0.01
questions: 1_000
teams: 20
per_team: 60
window: {questions: 5, days: 1}
phases:
- {name: warm-up, start: 2027-01-01 AoE, end: 2027-01-31 AoE}
- {name: race, start: 2027-02-01T13:00:00+01:00, end: 2027-02-28T23:59:00Z}
ladder: board
registration: organiser
visibility: frozen
baselines:
- {name: mean, file: baselines/mean.csv}
- {name: last year, value: 0.2, source: the paper}
finals: {selections: 2}
files: {bytes: 20 MB, rows: 1e6, seconds: 10, quota: 1 TB}
play: true
"""


def refusal(text, **options):
    with pytest.raises(InvalidRules) as error:
        read_rules(text, **options)
    return error.value


def test_defaults():
    rules = read_rules(LEAST)
    assert (rules.slug, rules.title, rules.description) == ("digits", "digits", "")
    assert rules.loss == lb.loss("zero_one")
    assert rules.display == DisplayRules("accuracy", 4, "complement")
    assert (rules.mechanism, rules.beta) == (None, 0.05)
    assert (rules.teams, rules.per_team, rules.window) == (50, 20, None)
    assert rules.phases == (PhaseRules("main"),)
    assert (rules.ladder, rules.registration, rules.visibility) == ("team", "invited", "public")
    assert (rules.baselines, rules.finals, rules.selections) == ((), None, 1)
    assert rules.files == FileRules()
    assert rules.files.limits.bytes == 100_000_000
    assert rules.play is False


def test_every_key():
    rules = read_rules(FULL)
    assert rules.slug == "digits-2027"
    assert rules.description == "# Read *me*\n\nThere are ten.\n"
    assert rules.loss == lb.loss("brier", classes=["no", "yes"])
    assert rules.display == DisplayRules("Brier score", 3)
    assert rules.mechanism == lb.Ladder(step=0.01, grid=0.005)
    assert (rules.beta, rules.questions, rules.teams, rules.per_team) == (0.01, 1000, 20, 60)
    assert rules.window == RateLimitRules(5, 86_400)
    assert [phase.describe() for phase in rules.phases] == [
        {"name": "warm-up", "start": "2027-01-01T12:00:00Z", "end": "2027-02-01T12:00:00Z"},
        {"name": "race", "start": "2027-02-01T12:00:00Z", "end": "2027-02-28T23:59:00Z"},
    ]
    assert (rules.ladder, rules.registration, rules.visibility) == ("board", "organiser", "frozen")
    assert rules.baselines == (
        Baseline("mean", "baselines/mean.csv"),
        Baseline("last year", value=0.2, source="the paper"),
    )
    assert (rules.finals, rules.selections) == (FinalsRules(2), 2)
    assert rules.files == FileRules(20_000_000, 1_000_000, 10, 10**12)
    assert rules.play is True


@pytest.mark.parametrize("text", [LEAST, FULL], ids=["least", "full"])
def test_described_and_read_back_through_json(text):
    rules = read_rules(text)
    described = rules.describe()
    read_back = Rules.from_description(json.loads(json.dumps(described)))
    assert read_back == rules
    assert read_back.describe() == described


def test_rules_without_play_are_described_as_before_it_was_a_key():
    assert "play" not in read_rules(LEAST).describe()
    without_play = read_rules(LEAST + "baselines: [{name: a, value: 0.5}]\n")
    assert Rules.from_description(without_play.describe()) == without_play
    assert read_rules(LEAST + "play: false\n").describe() == read_rules(LEAST).describe()
    assert Rules.from_description({**read_rules(LEAST).describe(), "play": True}).play


def test_open_registration_needs_a_number_of_teams():
    assert "teams is missing; with open registration, declare how many teams there may be" in str(
        refusal(LEAST + "registration: open\n")
    )
    rules = read_rules(LEAST + "registration: open\nteams: 20\n")
    assert (rules.ladder, rules.per_team, rules.attacker_accounts) == ("team", 50, 20)


def test_the_folder_gives_the_slug_where_none_is_typed():
    text = LEAST.replace("slug: digits\n", "")
    assert read_rules(text, slug="letters").slug == "letters"
    assert read_rules(LEAST, slug="letters").slug == "digits"
    assert "slug is missing, and the folder's name 'My board'" in str(
        refusal(text, slug="My board")
    )
    assert "slug is missing; try slug: my-board." in str(refusal(text))


@pytest.mark.parametrize(
    ("text", "key", "message"),
    [
        ("slug: My_Board", "slug", "1 to 63 letters a to z"),
        (f"slug: {'a' * 64}", "slug", "1 to 63 letters"),
        ("slug: -a", "slug", "not begin with a hyphen"),
        ("title: 2027", "title", "must be text; got 2027; put it in quotes"),
        ('title: "a\\u202eb"', "title", "the character U+202E"),
        ('title: "a\\eb"', "title", "the character U+001B"),
        ('title: "a\\u200bb"', "title", "the character U+200B"),
        ('title: "a\\nb"', "title", "the character U+000A"),
        ("title: ''", "title", "1 to 100 characters"),
        ('description: "a\\u2066b"', "description", "the character U+2066"),
        ("description: [a]", "description", "must be text"),
        ("loss: max_error", "loss", "max_error cannot be used"),
        ("loss: {name: mae}", "loss", "range"),
        ("loss: {classes: [a, b]}", "loss", "must be a name"),
        ("loss: {name: accuracy, clases: [a, b]}", "loss", "clases"),
        ("loss: nowhere_to_be_found:f", "loss", "could not be imported"),
        ("display: {digits: 11}", "display.digits", "at most 10"),
        ("display: {direction: up}", "display.direction", "'higher' or 'lower'"),
        ("display: {direction: lower, as: complement}", "display.as", "not better when lower"),
        ("display: accuracy", "display", "must hold name, direction, digits, as"),
        ("mechanism: thresholdout", "mechanism", "needs a training loss"),
        ("mechanism: lader", "mechanism", "must be calibrated, growing_ladder"),
        ("mechanism: ladder", "mechanism", "ladder needs step; it takes step, grid"),
        ("mechanism: {name: exact, step: 1}", "mechanism", "it takes no settings"),
        ("mechanism: {name: ladder, step: x}", "mechanism", "step must be a number"),
        ("mechanism: {name: calibrated, step: 1}", "mechanism", "takes no settings"),
        ("mechanism: {name: ladder, step: 0.1, origin: x}", "mechanism", "has no 'origin'"),
        ("beta: 1", "beta", "below 1"),
        ("questions: 0", "questions", "at least 1"),
        ("questions: many", "questions", "got 'many'"),
        ("questions: 1.5", "questions", "whole number"),
        ("questions: true", "questions", "whole number"),
        ("questions:", "submissions", "submissions is missing; try submissions: 1000"),
        ("per_team: 1001", "per_team", "per_team must be at most 1000"),
        ("window: {questions: 5}", "window", "needs its length once"),
        ("window: {questions: 5, hours: 1, days: 1}", "window", "got hours, days"),
        ("window: {hours: 1}", "window", "window.submissions is missing"),
        ("window: {questions: 5, hours: 0}", "window.hours", "above 0"),
        ("window: {questions: 5, days: 7, weeks: 1}", "window.weeks", "window has no key 'weeks'"),
        ("end: 2027-01-31", "end", "needs an offset"),
        ("start: 2027-02-01 AoE\nend: 2027-01-31 AoE", "end", "end must be later than start"),
        ("end: 2027-01-31 AoE\nphases: [{name: x}]", "phases", "either phases or"),
        ("phases: []", "phases", "at least one"),
        ("phases: {name: x}", "phases", "must be a list"),
        ("phases: [x]", "phases[0]", "must hold name, start, end"),
        ("phases: [{end: soon}]", "phases[0].end", "must be a time such as"),
        ("phases: [{name: a}, {name: b, start: 2027-01-01 AoE}]", "phases[0]", "end is missing"),
        ("phases: [{end: 2027-01-01 AoE}, {name: b}]", "phases[1]", "start is missing"),
        ("phases: [{end: 2027-01-01 AoE}, {start: 2027-01-01 AoE}]", "phases[1].start",
         "must not be earlier than the end of the phase before"),
        ("phases: [{name: a, end: 2027-01-01 AoE}, {name: a, start: 2027-01-02 AoE}]",
         "phases[1].name", "must differ"),
        ("ladder: teams", "ladder", "'team' or 'board'"),
        ("registration: invite", "registration", "'open', 'invited', 'organiser' or 'sign_in'"),
        ("visibility: secret", "visibility", "'public', 'hidden', 'anonymous' or 'frozen'"),
        ("baselines: [{name: a}]", "baselines[0]", "needs either a file"),
        ("baselines: [{name: a, file: x.csv, value: 0.1}]", "baselines[0]", "needs either a file"),
        ("baselines: [{file: x.csv}]", "baselines[0]", "baselines[0].name is missing"),
        ("baselines: [{name: a, value: 1.1}]", "baselines[0].value", "at most 1"),
        ("baselines: [{name: a, value: 0.1}, {name: A, value: 0.2}]", "baselines[1].name",
         "must differ"),
        ("baselines: [{name: a, file: x.csv, source: y}]", "baselines[0].source", "with a value"),
        ("baselines: [{name: a, file: ../x.csv}]", "baselines[0].file", "in the board's folder"),
        ("baselines: [{name: a, file: /x.csv}]", "baselines[0].file", "in the board's folder"),
        ("baselines: [{name: a, file: 'c:x.csv'}]", "baselines[0].file", "in the board's folder"),
        ("baselines: [{name: a, file: 'x\\\\y'}]", "baselines[0].file", "in the board's folder"),
        ("finals: {selections: 0}", "finals.selections", "at least 1"),
        ("finals: 2", "finals", "must hold selections"),
        ("files: {bytes: 20 pounds}", "files.bytes", "such as 20000000 or 20 MB"),
        ("files: {bytes: 9999 TB}", "files.bytes", "at most"),
        ("play: yes", "play", "play must be true or false; got 'yes'"),
        ("play: 1", "play", "must be true or false"),
        ("files: {seconds: 0}", "files.seconds", "at least 1"),
        ("tilte: x", "tilte", "there is no key 'tilte'; did you mean title?"),
        ("extra: x", "extra", "there is no key 'extra'; choose from slug, title"),
        ("sdfghj: x", "sdfghj", "choose from slug, title"),
    ],
)  # fmt: skip
def test_refused_by_key_and_line(text, key, message):
    other_lines = [line for line in LEAST.splitlines() if line.split(":")[0] != text.split(":")[0]]
    error = refusal("\n".join([*other_lines, text]))
    assert [problem.column for problem in error.problems] == [key]
    assert message in error.problems[0].message
    line = len(other_lines) + 1 + text.count("\n")
    missing = error.problems[0].code == "missing_key" and key == "submissions"
    assert missing or error.problems[0].ids == (str(line),)


def test_a_loss_is_suggested_as_it_is_written_in_the_file():
    (problem,) = refusal("loss: mse\nquestions: 10\nteams: 2\nslug: a").problems
    assert problem.message.endswith("try loss: {name: mse, range: [0, 100]}.")
    (problem,) = refusal("metric: rmse\nquestions: 10\nteams: 2\nslug: a").problems
    assert "metric: rmse needs a range" in problem.message
    assert problem.message.endswith("try metric: {name: rmse, range: [0, 100]}.")


def test_a_custom_loss_is_named_after_its_function(tmp_path, monkeypatch):
    module = "a_module_with_a_name_that_is_longer_than_a_display_can_be"
    (tmp_path / f"{module}.py").write_text("def far(labels, predictions):\n    return labels\n")
    monkeypatch.syspath_prepend(tmp_path)
    rules = read_rules(f"slug: a\nquestions: 100\nloss: {module}:far\n")
    assert (rules.display.name, rules.loss.params) == ("far", {"function": f"{module}:far"})
    assert Rules.from_description(rules.describe()) == rules


def test_the_reference_names_every_key():
    page = (Path(__file__).parents[2] / "docs/reference/board-yaml.md").read_text()
    assert [key for key in KNOWN_KEYS if f"`{key}`" not in page] == []


def test_a_module_that_cannot_be_imported_is_one_problem(tmp_path, monkeypatch):
    (tmp_path / "a_module_that_exits.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    error = refusal("slug: a\nquestions: 100\nloss: a_module_that_exits:f\n")
    assert "'a_module_that_exits:f' failed with SystemExit." in str(error)


def test_all_problems_come_at_once_in_the_order_of_their_lines():
    error = refusal(
        "slug: digits\ntitle: 7\nloss: max_error\nquestions: 0\nphases:\n- end: soon\n"
        "- start: never\n"
    )
    assert [problem.ids for problem in error.problems] == [("2",), ("3",), ("4",), ("6",), ("7",)]
    assert str(error).startswith("5 problems were found:\n- board.yaml, line 2: title must be text")
    assert isinstance(error, InvalidSetting)


@pytest.mark.parametrize(
    ("text", "shown_as", "name", "expected"),
    [
        ("loss: accuracy", "complement", "accuracy", 0.75),
        ("loss: zero_one", "loss", "zero-one loss", 0.25),
        ("loss: {name: mae, range: [0, 100]}", "scaled", "MAE", 25.0),
        ("loss: {name: rmse, range: [0, 10]}", "root", "RMSE", 5.0),
        ("loss: zero_one\ndisplay: {name: right, direction: higher}", "complement", "right", 0.75),
        ("loss: accuracy\ndisplay: {direction: lower}", "loss", "zero-one loss", 0.25),
        ("loss: accuracy\ndisplay: {digits: 2}", "complement", "accuracy", 0.75),
        ("loss: {name: absolute, range: [0, 10]}\ndisplay: {name: MAE, as: scaled}", "scaled",
         "MAE", 2.5),
        ("loss: {name: mae, range: [0, 10]}\ndisplay: {direction: higher}", "complement",
         "absolute", 0.75),
    ],
)  # fmt: skip
def test_how_a_loss_is_shown(text, shown_as, name, expected):
    rules = read_rules(f"slug: a\nquestions: 100\n{text}\n")
    display = rules.display
    assert (display.shown_as, display.name, display.metric_value(0.25)) == (
        shown_as,
        name,
        expected,
    )
    assert Rules.from_description(rules.describe()).display == display


def test_a_number_is_printed_to_its_digits():
    assert DisplayRules("accuracy", 2, "complement").text(0.256) == "0.74"
    assert DisplayRules("accuracy").text(None) == "-"


@pytest.mark.parametrize(
    ("text", "share", "pool", "ladders"),
    [
        ("questions: 1000\nteams: 50", 20, 0, 50),
        ("questions: 1049\nteams: 50", 20, 49, 50),
        ("questions: 1000\nteams: 50\nper_team: 10", 10, 500, 50),
        ("questions: 1000\nteams: 50\nper_team: 100", 20, 0, 50),
        ("questions: 1000\nteams: 50\nladder: board", 20, 0, 1),
        ("questions: 1000\nteams: 50\nbaselines: [{name: a, file: a.csv}]", 19, 49, 51),
        ("questions: 1000\nteams: 50\nbaselines: [{name: a, value: 0.5}]", 20, 0, 50),
        ("questions: 1\nteams: 1", 1, 0, 1),
    ],
)
def test_every_team_has_a_share_and_the_rest_is_a_pool(text, share, pool, ladders):
    rules = read_rules(f"slug: a\nloss: accuracy\n{text}\n")
    assert (rules.share, rules.pool, rules.ladders) == (share, pool, ladders)
    assert rules.pool + rules.teams * rules.share + rules.scored_baseline_count == rules.questions


def test_submissions_and_questions_are_two_names_of_one_key():
    text = "slug: a\nmetric: accuracy\nsubmissions: 100\nwindow: {submissions: 5, days: 1}\n"
    rules = read_rules(text)
    assert rules == read_rules(text.replace("submissions", "questions"))
    assert rules.amended({"submissions": 200}).questions == 200
    assert rules.amended({"window": {"submissions": 7}}).window.questions == 7
    (problem,) = refusal(f"{text}questions: 100\n").problems
    assert "submissions and questions are two names for one key" in problem.message


def test_a_budget_without_a_share_per_team_is_refused():
    error = refusal("slug: a\nloss: accuracy\nquestions: 30\n")
    assert error.problems[0].code == "no_share"
    assert "30 submissions leave none for each of 50 teams (the default)" in str(error)
    assert "raise questions to at least 50, or lower teams to at most 30." in str(error)
    error = refusal(
        "slug: a\nloss: accuracy\nquestions: 1\nteams: 1\nbaselines: [{name: a, file: a.csv}]\n"
    )
    assert "1 submissions less 1 for baselines leave none for each of 1 teams; raise" in str(error)
    assert str(error).endswith("to at least 2.")


def test_phases_begin_with_their_start_and_end_before_their_end():
    rules = read_rules(
        LEAST + "phases:\n- {name: a, start: 2027-01-01T00:00Z, end: 2027-01-02T00:00Z}\n"
        "- {name: b, start: 2027-01-03T00:00Z}\n"
    )
    first, last, second = (
        read_time("at", f"2027-01-0{day}T00:00Z") for day in (1, 2, 3)
    )  # fmt: skip
    names = [
        phase_ and phase_.name
        for phase_ in map(rules.phase_at, (first - 1, first, last - 1, last, second))
    ]
    assert names == [None, "a", "a", None, "b"]
    starts = map(rules.next_start, (first - 1, first, last, second))
    assert list(starts) == [first, second, second, None]
    assert rules.deadline is None
    single_phase = read_rules(LEAST + "end: 2027-01-02T00:00Z\n")
    assert (single_phase.deadline, single_phase.phase_at(0), single_phase.phase_at(last)) == (
        last,
        single_phase.phases[0],
        None,
    )
    assert read_rules(LEAST).phase_at(10**10) == PhaseRules("main")


def test_the_mechanism_is_calibrated_for_accounts_unless_one_is_named():
    calibrated, size = lb.GrowingLadder.calibrated, {"n": 5000, "questions": 1000}
    rules = read_rules(LEAST + "teams: 20\nbaselines: [{name: a, file: a.csv}]\n")
    assert rules.attacker_accounts == 2
    expected = calibrated(**size, teams=21, accounts=2)
    assert rules.mechanism_for(5000) == replace(expected, sharing=0.0)
    one_ladder = read_rules(LEAST + "ladder: board\n")
    assert one_ladder.mechanism_for(5000) == calibrated(**size)
    declared = read_rules(LEAST + "teams: 20\naccounts: 5\nprotection: strict\n")
    strict = calibrated(**size, teams=20, accounts=5, protection="strict")
    assert declared.mechanism_for(5000) == strict
    assert Rules.from_description(declared.describe()) == declared
    error = read_rules(LEAST.replace("loss: accuracy", "loss: {name: mae, range: [0, 1]}"))
    assert error.mechanism_for(5000).scale == "model"


@pytest.mark.parametrize("visibility", ["hidden", "frozen"])
def test_steps_on_a_board_that_hides_others_depend_on_nobody_else(visibility):
    text = LEAST + "teams: 20\nregistration: open\n"
    shown = read_rules(text).mechanism_for(5000)
    hidden = read_rules(text + f"visibility: {visibility}\n").mechanism_for(5000)
    assert shown.shared_ladders == 19
    assert hidden.shared_ladders == 0
    # Every step is at least as large as the largest that sharing could lead to.
    for changes in range(30):
        largest = shown.step * shown.step_multiple(changes, 10**6)
        assert hidden.step * hidden.step_multiple(changes) >= largest


def test_calibrated_by_name_or_another():
    assert read_rules(LEAST + "mechanism: calibrated\n").mechanism is None
    assert read_rules(FULL).mechanism_for(5000) == lb.Ladder(step=0.01, grid=0.005)


@pytest.mark.parametrize(
    ("text", "released", "expected"),
    [
        ("loss: accuracy", 0.28, "accuracy 0.72"),
        ("loss: accuracy\ndisplay: {digits: 1}", 0.28, "accuracy 0.7"),
        ("loss: accuracy", 0.244449, "accuracy 0.7556"),
        ("loss: zero_one", 0.2, "zero-one loss 0.2"),
        ("loss: {name: rmse, range: [0, 100]}", 0.0072, "RMSE 8.49"),
        ("loss: {name: mae, range: [0, 1000]}", 0.02, "MAE 20"),
        ("metric: roc_auc", 0.087, "AUC 0.913"),
    ],
)
def test_a_release_is_shown_with_its_digits_and_its_metric(text, released, expected):
    display = read_rules(f"slug: first\nquestions: 100\n{text}\n").display
    assert display.named_text(released) == expected


@pytest.mark.parametrize("loss", ["log_loss", "{name: rmse, range: [0, 37]}"])
def test_releases_on_a_grid_keep_their_order_and_differ(loss):
    display = read_rules(f"slug: first\nquestions: 100\nloss: {loss}\n").display
    for steps in (50, 500, 2000):
        shown = [float(display.text(step / steps)) for step in range(steps + 1)]
        assert shown == sorted(set(shown))
