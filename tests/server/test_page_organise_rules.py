"""Amending by form: only changed fields are amended, and concurrent amendments are kept."""

import json
import re

import pytest

from ladderboard.board import read_rules
from ladderboard.server._pages._organise._forms import (
    FORM_GROUPS,
    fields_digest,
    read_changes,
    rules_as_fields,
)
from support.server.live_server import make_predictions

RULES = """
slug: digits
title: Digits
description: |
  Two
  lines.
loss: accuracy
questions: 1000
teams: 20
per_team: 30
window: {questions: 5, hours: 36}
phases:
- {name: warm-up, end: 2027-01-31 AoE}
- {name: main, start: 2027-02-02T00:00:00Z, end: 2027-03-01T00:00:00Z}
registration: organiser
ladder: board
finals: {selections: 2}
files: {bytes: 20 MB}
"""


@pytest.fixture
def rules():
    return read_rules(RULES).describe()


def filled_form(group, rules, **typed):
    """Return a form as a browser sends it, with some fields changed."""
    fields = rules_as_fields(rules)
    group_fields = {
        name: value.replace("\n", "\r\n")
        for name, value in fields.items()
        if name in FORM_GROUPS[group][0] or (group == "times" and name.startswith("phase_"))
    }
    return {"group": group, "seen": fields_digest(group, fields), **group_fields, **typed}


@pytest.mark.parametrize("group", FORM_GROUPS)
def test_an_unchanged_form_amends_nothing(rules, group):
    assert read_changes(filled_form(group, rules), rules) == {}


@pytest.mark.parametrize(
    ("group", "typed", "expected"),
    [
        ("limits", {"questions": " 2,000 "}, {"questions": 2000}),
        ("limits", {"per_team": ""}, {"per_team": None}),
        ("limits", {"window_length": "2"}, {"window": {"questions": 5, "hours": 2}}),
        ("limits", {"window_unit": "days"}, {"window": {"questions": 5, "days": 36}}),
        ("limits", {"window_length": "", "window_questions": ""}, {"window": None}),
        ("texts", {"title": "<b>"}, {"title": "<b>"}),
        ("texts", {"description": ""}, {"description": None}),
        ("texts", {"display_digits": "2"}, {"display": {"digits": 2}}),
        ("registration", {"registration": "open"}, {"registration": "open"}),
        ("registration", {"finals_selections": "3"}, {"finals": {"selections": 3}}),
        ("files", {"files_bytes": "30 MB"}, {"files": {"bytes": "30 MB"}}),
        ("files", {"files_seconds": "9"}, {"files": {"seconds": 9}}),
        ("files", {"files_rows": "2,000,000"}, {"files": {"rows": 2_000_000}}),
    ],
)
def test_only_changed_fields_are_amended(rules, group, typed, expected):
    changes = read_changes(filled_form(group, rules, **typed), rules)
    assert changes == expected
    read_rules(RULES).amended(changes)  # refuses unknown keys


def test_phases_are_amended_as_a_whole(rules):
    typed = {"phase_1_end": "2027-04-01T00:00:00Z"}
    after = read_rules(RULES).amended(read_changes(filled_form("times", rules, **typed), rules))
    assert [phase.name for phase in after.phases] == ["warm-up", "main"]
    assert after.describe()["phases"][1]["end"] == "2027-04-01T00:00:00Z"
    removed = {f"phase_0_{part}": "" for part in ("name", "start", "end")}
    added = {"phase_2_name": "late", "phase_2_start": "2027-05-01T00:00:00Z"}
    changes = read_changes(filled_form("times", rules, **removed, **added), rules)
    assert [phase.name for phase in read_rules(RULES).amended(changes).phases] == ["main", "late"]
    removed |= {f"phase_1_{part}": "" for part in ("name", "start", "end")}
    changes = read_changes(filled_form("times", rules, **removed), rules)
    assert read_rules(RULES).amended(changes).deadline is None


def test_a_deadline_needs_no_phase(live_server, organiser_page):
    rules = read_rules("slug: a\nloss: accuracy\nquestions: 100\n")
    assert read_changes(filled_form("times", rules.describe()), rules.describe()) == {}
    typed = {"phase_0_end": "2027-04-01T00:00:00Z"}
    later = rules.amended(
        read_changes(filled_form("times", rules.describe(), **typed), rules.describe())
    )
    assert later.describe()["phases"] == [
        {"name": "main", "start": None, "end": typed["phase_0_end"]}
    ]
    cleared = read_changes(filled_form("times", later.describe(), phase_0_end=""), later.describe())
    assert later.amended(cleared).deadline is None
    page = organiser_page.get("/settings/times").text
    assert ("Submissions are taken" in page, "Phase 1" in page) == (True, False)


def test_amending_by_form(live_server, organiser_page):
    token = live_server.join("Alpha")[1]
    live_server.submit(token, make_predictions(30))
    page = organiser_page.send_accepted(
        "amend",
        "amended",
        group="limits",
        seen=organiser_page.seen_version("limits"),
        questions="150",
        teams="4",
    )
    assert "150 submissions, 4 teams" in page
    assert 'name="questions" value="150"' in organiser_page.get("/settings/limits").text
    entry = json.loads(
        live_server.call("GET", "/boards/first/ledger?limit=1000").text.splitlines()[-1]
    )
    assert (entry["kind"], entry["changes"]) == (
        "amended",
        {"questions": 150, "per_team": 37},
    )
    organiser_page.send_accepted(
        "amend",
        "amended",
        group="texts",
        seen=organiser_page.seen_version("texts"),
        description="*new*",
    )
    assert live_server.call("GET", "/boards/first").json()["description"] == "*new*"
    end = {"phase_0_name": "main", "phase_0_end": "2027-01-15T08:00:00Z", "confirmed": "yes"}
    organiser_page.send_accepted(
        "amend", "amended", group="times", seen=organiser_page.seen_version("times"), **end
    )
    assert "the deadline has passed" in organiser_page.get().text
    assert live_server.submit(token, make_predictions(20)).status_code == 409
    entries = live_server.boards.open(live_server.slug).book.chain_state().entries
    organiser_page.send_accepted(
        "amend", "unchanged", group="texts", seen="x", description="*new*\r\n"
    )
    assert live_server.boards.open(live_server.slug).book.chain_state().entries == entries


@pytest.mark.parametrize(
    ("group", "typed", "message"),
    [
        ("limits", {"questions": "many"}, "must be a whole number"),
        ("limits", {"questions": ""}, "cannot be empty"),
        ("limits", {"questions": "3"}, "leave none for each of 4 teams"),
        ("limits", {"teams": "9"}, "cannot be raised from 4"),
        ("limits", {"window_questions": "5"}, "submissions and a length, or neither"),
        ("times", {"phase_0_end": "tomorrow"}, "The end of phase 1 must be a time such as"),
        ("texts", {"title": "a\u202eb"}, "must not hold the character U+202E"),
        ("registration", {"registration": "closed"}, "must be"),
        ("files", {"files_bytes": "<b>"}, "must be a number of bytes"),
    ],
)
def test_a_refused_amendment_keeps_its_input(live_server, organiser_page, group, typed, message):
    before = organiser_page.snapshot()
    page = organiser_page.send_refused(
        "amend", 422, message, group=group, seen=organiser_page.seen_version(group), **typed
    )
    assert organiser_page.snapshot() == before
    assert f'name="group" value="{group}"' in page
    name, value = next(iter(typed.items()))
    if name != "registration":
        shown = value.replace("<", "&lt;").replace(">", "&gt;")
        assert f'name="{name}" value="{shown}"' in page
    if group in {"times", "texts", "files"}:
        assert re.search(rf'id="in-{name}"[^>]* aria-invalid="true"', page)
        assert page.count("aria-invalid") == 1
    if name in {"questions", "teams"}:
        assert "Current value: " in page


def test_several_problems_are_listed(organiser_page):
    typed = {"phase_0_start": "<b>", "phase_0_end": "2027-01-31 12:00"}
    page = organiser_page.send_refused(
        "amend", 422, "<li>", group="times", seen=organiser_page.seen_version("times"), **typed
    )
    alert = re.search(r'role="alert">(.*?)</div>', page, re.DOTALL).group(1)
    assert alert.count("<li>") == 2
    assert "&lt;b&gt;" in alert
    assert "needs an offset" in alert


def test_a_form_made_before_another_amendment_is_refused(live_server, organiser_page):
    limits_version, texts_version = (
        organiser_page.seen_version("limits"),
        organiser_page.seen_version("texts"),
    )
    live_server.amend(questions=200)
    page = organiser_page.send_refused(
        "amend", 422, "The rules changed after", group="limits", seen=limits_version,
        questions="100", per_team="20",
    )  # fmt: skip
    assert "Current value: <code>200</code>" in page
    assert live_server.call("GET", "/boards/first").json()["questions"] == 200
    # Other forms are not affected.
    organiser_page.send_accepted(
        "amend", "amended", group="texts", seen=texts_version, title="Mine"
    )
    new_version = organiser_page.seen_version("limits")
    organiser_page.send_accepted(
        "amend", "amended", group="limits", seen=new_version, questions="100", per_team="20"
    )
    assert live_server.call("GET", "/boards/first").json()["questions"] == 100


def test_a_long_description_is_left_out_of_the_form(live_server, organiser_page):
    caller = live_server.boards.caller_by_token(live_server.organiser, live_server.slug)
    text = "\u00e9" * 10_000  # each takes six bytes in a form
    live_server.boards.open(live_server.slug).amendments.amend(caller, {"description": text})
    assert "too long for a form" in organiser_page.get("/settings/texts").text
    organiser_page.send_accepted(
        "amend", "amended", group="texts", seen=organiser_page.seen_version("texts"), title="Mine"
    )
    assert live_server.boards.open(live_server.slug).rules.description == text


@pytest.mark.parametrize(
    ("group", "typed", "message"),
    [
        ("limits", {"teams": "5"}, "fall from 25 to 20. Raise submissions to 125 to keep 25."),
        ("times", {"phase_0_end": "2020-01-31T00:00:00Z"}, "The deadline 2020-01-31 00:00 UTC is"),
    ],
)
def test_a_change_that_teams_lose_by_is_confirmed(
    empty_server, open_organiser_page, group, typed, message
):
    live_server = empty_server
    live_server.create_board(registration="invited", mechanism=None)
    page = open_organiser_page(live_server.organiser)
    form = {"group": group, "seen": page.seen_version(group), **typed}
    assert 'name="confirmed"' not in page.get(f"/settings/{group}").text
    refused = page.send_refused("amend", 409, message, **form)
    assert 'name="confirmed"' in refused
    assert live_server.call("GET", "/boards/first").json()["teams"] == 4
    page.send_accepted("amend", "amended", confirmed="yes", **form)
