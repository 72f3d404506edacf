"""Histories that the rules of then did not allow, and rules that say two things."""

import hashlib
import itertools

import pytest

from ladderboard.board import read_rules
from ladderboard.board._rules._parse import KNOWN_KEYS
from ladderboard.verify import verify_bundle
from ladderboard.verify._history import _FIXED_RULES, _UNSET_RULES
from support.verify.board_history import close_and_bundle, small_board, submit_predictions
from support.verify.bundle_forge import BundleForge
from support.verify.bundles import make_bundle, read_records
from support.verify.second_verifier import load_program

LABELS = "what it states about the labels is not true of those in the bundle"
TWICE = "its board rules contradict its loss, mechanism, budget or beta"
NONE_TAKEN = "it is a question while the board was paused"
DISPLAY = {"name": "accuracy", "direction": "higher", "digits": 4, "as": "complement"}


def test_an_unchanged_bundle_verifies(forge_corrected, write_forged):
    result = verify_bundle(write_forged(forge_corrected))
    assert result.risks == result.releases == result.questions > 18


def rules(**changes):
    return lambda forge: forge.rules.update(changes)


def board(**changes):
    return lambda forge: forge.rules["board"].update(changes)


def budget(forge, questions=0):
    forge.rules.update(questions=questions)
    forge.rules["board"].update(questions=questions)


def described(what, **changes):
    """Describe a loss or a mechanism otherwise, in the first entry and in the rules."""

    def change(forge):
        forge.entries[0].fields[what] |= changes
        forge.rules["board"][what] |= changes

    return change


def other_loss(forge):
    forge.entries[0].fields["loss"] = {"loss": "squared", "range": [0, 1]}
    forge.rules["board"]["loss"] = {"name": "squared", "range": [0, 1]}


OPENED = {
    "n": (lambda forge: forge.entries[0].fields.update(n=10**6), LABELS),
    "rows": (rules(rows=10**6), LABELS),
    "kind": (rules(kind="text"), LABELS),
    "worth": (rules(worth=1e9), LABELS),
    "weighted": (rules(weighted=True), LABELS),
    "zero_one": (rules(zero_one=False), LABELS),
    "the budget people saw": (board(questions=2), TWICE),
    "beta": (rules(beta=0.5), TWICE),
    "the mechanism people saw": (board(mechanism={"name": "exact"}), TWICE),
    "the loss people saw": (board(loss={"name": "brier"}), TWICE),
    "a setting left out": (lambda forge: forge.entries[0].fields["mechanism"].pop("grid"), TWICE),
    "no budget": (budget, "its budget is not a positive integer"),
    "a rule more": (rules(more=1), "its rules are not those of a board or a guard"),
    "a setting of its own type": (described("mechanism", step=1), "its mechanism is not described"),
    "a setting that is none": (described("loss", note="x"), "something in it cannot be used"),
    "a loss with a range": (other_loss, "its loss is not described in the canonical way"),
}


@pytest.mark.parametrize("name", OPENED)
def test_an_opening_that_contradicts_itself_or_the_labels(forge, check_refused, name):
    change, message = OPENED[name]
    change(forge)
    check_refused(forge, message, 0)


AMENDED = {
    "slug": ({"slug": "x"}, "it changes slug, which cannot change"),
    "loss": ({"loss": {"name": "brier"}}, "it changes loss, which cannot change"),
    "mechanism": ({"mechanism": {"name": "exact"}}, "it changes mechanism, which cannot change"),
    "beta": ({"beta": 0.9}, "it changes beta, which cannot change"),
    "ladder": ({"ladder": "board"}, "it changes ladder, which cannot change"),
    "baselines": ({"baselines": []}, "it changes baselines, which cannot change"),
    "direction": (
        {"display": {**DISPLAY, "direction": "lower"}},
        "it changes display.direction, which cannot change",
    ),
    "as": ({"display": {**DISPLAY, "as": "loss"}}, "it changes display.as, which cannot change"),
    "more teams": (
        {"teams": 500, "registration": "open"},
        "it changes the number of teams in a way that is not allowed",
    ),
    "fewer teams": ({"teams": 4}, "it changes the number of teams in a way that is not allowed"),
    "no rule": ({"hello": [1]}, "it changes nothing, or an unknown rule"),
    "nothing": ({}, "it changes nothing, or an unknown rule"),
    "no budget": ({"questions": 0}, "its budget is not a positive integer"),
    "a budget that is no number": ({"questions": True}, "its budget is not a positive integer"),
    "labels and nothing new": ({"labels": 1}, "it corrects labels without committing to them"),
}


@pytest.mark.parametrize("name", AMENDED)
def test_an_amendment_of_what_cannot_change(forge, check_refused, name):
    changes, message = AMENDED[name]
    forge.amend(6, **changes)
    check_refused(forge, message, 6)


def test_what_may_change_does(forge, write_forged):
    forge.amend(6, questions=80, display={**DISPLAY, "name": "hits"}, title="Next", play=True)
    forge.amend(7, visibility="hidden")
    forge.amend(len(forge.entries), visibility="public")
    assert verify_bundle(write_forged(forge)).releases == 10


def terms_from(forge, number):
    """Add terms, and their acceptance by all teams that ask after that; return the version."""
    text = "Be fair."
    version = hashlib.sha256(text.encode()).hexdigest()
    for team in sorted({question.fields["asker"] for question in forge.of("question")}):
        forge.add(number, "accepted", asker=team, terms=version, person=1)
    forge.amend(number, terms=text)
    return version


def test_rules_that_were_not_set_are_set_and_removed(forge, write_forged):
    terms_from(forge, 6)
    forge.amend(6, data={"members": True, "links": []}, organisers=["Ada"], listing="unlisted")
    forge.amend(6, teams=7)
    assert verify_bundle(write_forged(forge)).releases == 10


def test_both_verifiers_know_every_rule_that_an_amendment_may_add():
    always = read_rules("slug: a\nmetric: accuracy\nsubmissions: 100\n").describe().keys()
    other_names = {"metric", "submissions", "start", "end"}  # of loss, questions and phases
    optional = set(KNOWN_KEYS) - always - other_names - _FIXED_RULES
    assert optional == _UNSET_RULES
    assert optional == load_program().UNSET


def test_a_question_before_the_terms_were_accepted(forge, check_refused):
    """One that is not a baseline is found by the standings, a second one in the history."""
    terms_from(forge, 6)
    asker = next(entry for entry in forge.entries[6:] if "question" in entry.fields).fields["asker"]
    accepted = [entry for entry in forge.of("accepted") if entry.fields["asker"] == asker]
    forge.entries.remove(accepted[0])
    check_refused(forge, f"Team '{asker}' asked before it accepted the terms.")


def test_questions_of_two_teams_before_the_terms_were_accepted(forge, check_refused):
    terms_from(forge, 6)
    forge.entries[:] = [entry for entry in forge.entries if entry.fields["kind"] != "accepted"]
    questions = [n for n, entry in enumerate(forge.entries) if entry.secret is not None and n > 6]
    check_refused(forge, "its team has not accepted the terms", questions[1])


@pytest.mark.parametrize("change", [{"terms": "0" * 64}, {"asker": 7}, {"person": "Ada"}])
def test_an_acceptance_of_something_else(forge, check_refused, change):
    terms_from(forge, 6)
    forge.first("accepted").update(change)
    message = "names no person" if "person" in change else "accepts terms that the board does not"
    check_refused(forge, message, forge.number("accepted"))


def test_an_amendment_after_the_close(forge, check_refused):
    last = len(forge.entries)
    forge.amend(last, title="Next")
    check_refused(forge, "it changes a rule that is fixed after the close", last)


def test_an_amendment_that_commits_to_something_else(forge, check_refused):
    forge.amend(6, title="Next")
    forge.rewrites[6] = lambda form: form.replace(b'"title":"Next"', b'"title":"Last"')
    check_refused(forge, "its commitment is not the hash of the amended rules", 6)


def test_a_guard_is_not_amended(tmp_path, check_refused):
    forge = BundleForge(read_records(make_bundle(tmp_path)))
    forge.amend(3, questions=2000)
    check_refused(forge, "it amends a guard, whose rules cannot change", 3)


def moved_rows(sample):
    """Let rows that nobody was told about change places with rows that answers are about."""
    text = sample["split"]["values"]
    sample["split"]["values"] = text[: len(text) - 13] + b"public" + b"private"


def other_ids(sample):
    sample["ids"]["values"] = sample["ids"]["values"][::-1]


def weighted(sample):
    shape = sample["labels"]["shape"]
    sample["weight"] = {"type": "i1", "shape": shape, "values": b"\1" * shape[0]}


def other_shape(sample):
    sample["labels"]["shape"] = [*sample["labels"]["shape"], 1]


@pytest.mark.parametrize("change", [moved_rows, other_ids, weighted, other_shape])
def test_a_correction_of_more_than_labels(forge_corrected, check_refused, change):
    change(forge_corrected.samples[1]["sample"])
    check_refused(forge_corrected, "A correction in the bundle changes more than labels.")


@pytest.mark.parametrize("changes", [1, 3, {"labels": 2, "title": "x"}])
def test_a_correction_that_is_not_the_next(forge_corrected, check_refused, changes):
    second = forge_corrected.of("amended")[1].fields
    second["changes"] = changes if isinstance(changes, dict) else {"labels": changes}
    check_refused(
        forge_corrected, "it is not the next correction", forge_corrected.number("amended", 1)
    )


def test_a_question_in_a_pause(forge, check_refused):
    forge.add(6, "paused")
    check_refused(forge, NONE_TAKEN, forge.number("question", 2))


def test_more_is_asked_in_a_pause_than_what_is_asked_again(forge_corrected, check_refused):
    forge = forge_corrected
    number = forge.number("resumed")
    del forge.entries[number]
    first = next(entry for entry in forge.entries[number:] if entry.secret is not None)
    check_refused(forge, NONE_TAKEN, forge.entries.index(first))


def test_a_team_without_questions_has_nothing_to_repeat(forge_corrected, check_refused):
    pause = forge_corrected.number("paused")
    again = next(entry for entry in forge_corrected.entries[pause:] if entry.secret is not None)
    again.fields["asker"] = "stranger"
    check_refused(forge_corrected, NONE_TAKEN, forge_corrected.entries.index(again))


def test_what_is_asked_again_was_asked_before(forge_corrected, check_refused):
    """After the second correction nothing was: what comes then is new, and comes in the pause."""
    forge = forge_corrected
    number = forge.number("resumed", 1)
    del forge.entries[number]
    assert forge.entries[number + 1].fields["kind"] == "question"  # after its ladder
    check_refused(forge, NONE_TAKEN, number + 1)


def test_one_model_has_one_answer(tmp_path, monkeypatch, check_refused):
    """Whoever forgets what was asked draws noise again, as often as they like."""
    with small_board(tmp_path) as (board, (red, *_)):
        marks = itertools.count()
        with monkeypatch.context() as forgetting:
            forgetting.setattr(
                type(board.book), "dedupe_key", lambda *_: next(marks).to_bytes(32, "big")
            )
            for _ in range(3):
                submit_predictions(board, red, 10)
        forge = BundleForge(
            read_records(close_and_bundle(board, tmp_path / "bundle", submissions=False))
        )
    assert len(forge.of("question")) == 4
    message = "the same predictions were answered before it on its ladder"
    check_refused(forge, message, forge.number("question", 2))


def broken(forge):
    forge.of("question")[0].secret["content"]["broken"] = True


LIMITS = {
    "teams": (board(teams=1), 2, "more teams asked than the rules allow"),
    "per team": (board(per_team=1), 4, "it is a question past the limit of its team"),
    "the budget": (lambda forge: budget(forge, 5), 5, "it is a question past the budget"),
    "broken": (broken, 0, "its loss failed, and its risk is not 1"),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_question_past_a_limit(forge, check_refused, name):
    change, index, message = LIMITS[name]
    change(forge)
    check_refused(forge, message, forge.number("question", index))
