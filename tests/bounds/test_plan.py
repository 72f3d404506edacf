"""Plans: two of three in, the third out, and it is the right one."""

import json
import math
import re
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ladderboard as lb
from ladderboard import bounds
from ladderboard.bounds import plan
from ladderboard.errors import InvalidSetting
from ladderboard.mechanisms import largest_standard_error

sizes = st.floats(0, 7).map(lambda power: round(10**power))
errors = st.floats(-3, math.log10(0.49)).map(lambda power: 10**power)
betas = st.sampled_from([0.01, 0.05, 0.3])


def row(proposal, name):
    (match,) = [table_row for table_row in proposal.rows if table_row.name == name]
    return match


@settings(max_examples=10)
@given(sizes, errors, betas)
def test_the_least_n_will_do_and_one_less_will_not(questions, error, beta):
    n = plan(questions=questions, error=error, beta=beta).n
    result = plan(n=n, questions=questions, beta=beta)
    assert result.error <= error
    assert result.promised
    if n > 1:
        assert plan(n=n - 1, questions=questions, beta=beta).error > error


@settings(max_examples=10)
@given(sizes, errors, betas)
def test_the_most_questions_will_do_and_one_more_will_not(n, error, beta):
    result = plan(n=n, error=error, beta=beta)
    k = result.questions
    if k:
        assert plan(n=n, questions=k, beta=beta).error <= error
        assert result.certificate.half_width <= error
    # At 10^13 and beyond one question more is less than a double can tell.
    if k < 10**12:
        assert plan(n=n, questions=k + 1, beta=beta).error > error


@settings(max_examples=10)
@given(sizes, sizes, st.integers(1, 10**6), betas)
def test_more_questions_cost_and_more_examples_help(n, questions, more, beta):
    before = plan(n=n, questions=questions, beta=beta)
    assert plan(n=n, questions=questions + more, beta=beta).error >= before.error
    assert plan(n=n + more, questions=questions, beta=beta).error <= before.error
    assert plan(n=n, questions=questions, beta=beta / 2).error >= before.error


@settings(max_examples=10)
@given(sizes, errors, st.floats(0.1, 1))
def test_a_smaller_error_needs_no_less(questions, error, part):
    assert (
        plan(questions=questions, error=part * error).n >= plan(questions=questions, error=error).n
    )
    n = questions
    assert plan(n=n, error=part * error).questions <= plan(n=n, error=error).questions


@settings(max_examples=5)
@given(sizes, errors)
def test_every_row_that_does_not_move_solves_the_same_job(questions, error):
    """What a row finds for n gives at most the error, in the row of the plan the other way."""
    result = plan(questions=questions, error=error)
    for name in ("exact scores", "splitting the data", "no peeking", "Ladder made for 5 changes"):
        n = row(result, name).found
        if n is not None:
            assert row(plan(n=n, questions=questions), name).found <= error
            if n > 1:
                other = row(plan(n=n - 1, questions=questions), name).found
                assert other is None or other > error


def test_the_plan_that_is_promised():
    result = plan(n=10_000, questions=1_000)
    assert result.asked_for == "error"
    assert result.error <= 0.104
    assert result.error == result.certificate.error
    ladder, best = bounds.best_ladder(10_000, 1_000)
    assert (result.mechanism, result.certificate) == (ladder, best)
    names = [table_row.name for table_row in result.rows]
    assert len(set(names)) == len(names)
    for changes in (3, 5, 10):
        after = bounds.certificate(10_000, 1_000, changes, result.mechanism).error
        assert row(result, f"Ladder, after {changes} changes").found == after
    # The table of docs/explanation/certificates.md has 0.063 for a grid that was not chosen.
    assert row(result, "Ladder made for 5 changes").found <= 0.063
    assert row(result, "no peeking").found == bounds.nonadaptive_error(10_000, 1_000)
    assert row(result, "the paper's settings").found == bounds.paper(10_000, 1_000).bound
    exact = bounds.certificate(10_000, 1_000, None, lb.Exact()).half_width
    assert row(result, "exact scores").found == exact
    split = math.sqrt(math.log(2 * 1_000 / 0.05) / (2 * 10))
    assert row(result, "splitting the data").found == pytest.approx(split)
    default = lb.GrowingLadder.calibrated(10_000, 1_000)
    guards = {"ladders": 1, "opened": 1, "amendable": True}  # as a guard or a board certifies
    after = bounds.certificate(10_000, 1_000, 8, default, **guards)
    assert row(result, "growing ladder, after 8 changes").found == after.error > after.half_width
    assert bounds.NOTHING_TO_PLAN_WITH in result.default  # an error of 0.11


@pytest.mark.parametrize("teams", [1, 20])
def test_a_plan_promises_an_error_that_is_small_enough_to_plan_with(teams):
    large = plan(n=200_000, questions=1_000, teams=teams)
    changes = bounds.typical_changes(teams, 1_000)
    default = lb.GrowingLadder.calibrated(200_000, 1_000, teams).for_board()
    ladders = {"ladders": 1 if teams == 1 else None, "opened": teams}
    error = bounds.certificate(200_000, 1_000, changes, default, amendable=True, **ladders).error
    assert f"promises an error of at most {error:.2f}"[:-1] in large.default
    assert large.default.endswith(f"if the board changes at most {changes} times.")
    assert bounds.NOTHING_TO_PLAN_WITH in plan(n=2_000, questions=1_000, teams=teams).default


def test_a_plan_says_what_shows_and_what_an_attacker_gains():
    few, many = (
        plan(n=2_000, questions=1_000),
        plan(n=2_000, questions=1_000, teams=20, accounts=20),
    )
    assert many.resolution.accounts == 20
    for one, other in zip(few.resolution.gains, many.resolution.gains, strict=True):
        assert one < other
    assert few.resolution.attacker_gain < few.resolution.exact_gain / 2
    assert plan(n=8_000, questions=1_000).resolution.usual_gain == pytest.approx(
        few.resolution.usual_gain / 2, rel=0.1
    )
    with pytest.raises(lb.errors.InvalidSetting, match="protection"):
        plan(n=2_000, questions=1_000, protection="none")


def test_a_row_says_what_it_is_worth():
    result = plan(n=10_000, questions=1_000)
    assert result.rows[0].status == "promised"
    assert row(result, "Ladder, after 3 changes").status == "promised if"
    assert row(result, "exact scores").status == "not promised"
    assert "known without data" in row(result, "exact scores").sentence
    failing = row(plan(n=100, questions=1_000), "the paper's settings")
    assert (failing.found, failing.status) == (None, "not promised")
    assert "must be below 1/3" in failing.sentence
    few = row(plan(n=100, questions=1_000), "splitting the data")
    assert (few.found, few.sentence) == (None, "there are fewer examples than questions")


def test_the_measured_error_is_that_of_the_table():
    name = "Shaky Ladder, measured"
    settings = lb.ShakyLadder.calibrated
    result = row(plan(n=10_000, questions=1_000), name)
    assert (result.found, result.status) == (settings(10_000, 1_000).origin.error, "measured")
    n = row(plan(questions=100, error=0.05), name).found
    assert settings(n, 100).origin.error <= 0.05 < settings(n - 1, 100).origin.error
    k = row(plan(n=10_000, error=0.02), name).found
    assert settings(10_000, k).origin.error <= 0.02 < settings(10_000, k + 1).origin.error
    # Nothing was measured on fewer examples than a hundred.
    assert name not in [table_row.name for table_row in plan(n=50, questions=10).rows]


def test_not_even_one_question():
    result = plan(n=100, error=0.01)
    assert (result.questions, result.mechanism, result.certificate) == (0, None, None)
    assert not result.promised
    assert result.sentence == (
        "An error of 0.01 cannot be promised with 100 examples for even one question; "
        f"that needs {plan(questions=1, error=0.01).n:,} examples."
    )


def test_more_examples_than_there_are():
    result = plan(questions=10, error=1e-9)
    assert (result.n, result.mechanism, result.beyond) == (None, None, True)
    assert "more than 10^15 examples" in str(result)


def test_more_questions_than_anyone_asks():
    result = plan(n=10**12, error=0.1)
    assert (result.questions, result.beyond) == (10**15, True)
    assert "1,000,000,000,000,000 questions or more" in str(result)


def test_what_says_nothing_is_not_promised():
    result = plan(n=10, questions=10)
    assert result.error >= 0.5
    assert not result.promised
    assert result.sentence.startswith("Nothing can be promised")


@pytest.mark.parametrize(
    "given",
    [
        {"n": 10_000, "questions": 1_000},
        {"n": 1e4, "error": 0.1},
        {"questions": 1_000, "error": 0.05},
        {"n": 100, "error": 0.01},
        {"n": 2, "questions": 10**15},
        {"questions": 10**15, "error": 1e-9},
        {"n": 10**15, "questions": 1, "beta": 1e-100},
    ],
)
def test_a_plan_is_json_and_prints(given):
    result = plan(**given)
    written = result.describe()
    assert json.loads(json.dumps(written, allow_nan=False)) == written
    assert written["sentence"] == result.sentence
    sentences = result.sentences
    assert result.sentence in sentences
    printed, (blank, head, *lines) = (
        str(result).splitlines()[: len(sentences)],
        str(result).splitlines()[len(sentences) :],
    )
    assert (printed, blank) == (sentences, "")
    assert head.strip() in {"error", "examples", "questions"}
    assert len(lines) == len(result.rows)
    assert all(line == line.rstrip() for line in lines)
    if result.mechanism is not None:
        assert lb.mechanism(written["mechanism"]) == result.mechanism


def test_what_is_printed_is_never_less_than_what_is_promised():
    result = plan(n=10_000, questions=1_000)
    for table_row, (_, shown, *_) in zip(result.rows, result.table()[1:], strict=True):
        if shown == "none":  # no better than what is known without data
            assert table_row.found >= 0.5
        else:
            assert table_row.found <= float(shown) < table_row.found + 1.001e-3


def test_a_promise_is_not_printed_as_what_is_known_without_data():
    result = plan(n=99, questions=100, beta=0.2)
    for error in (0.49996, 0.4999999999):
        near = replace(result, error=error, rows=(replace(result.rows[0], found=error),))
        shown = re.search(r"at most (\S+)\.", near.sentence)[1]
        assert error <= float(shown) < 0.5
        assert error <= float(near.table()[1][1]) < 0.5
    assert "at most 0.4999999 need" in plan(questions=10, error=0.4999999).sentence


def test_a_probability_is_not_printed_as_certainty():
    assert "with confidence 99.9999%, whatever" in plan(n=10_000, error=0.1, beta=1e-7).sentence
    assert "with confidence 95%, whatever" in plan(n=10_000, error=0.1).sentence


def test_the_papers_conditions_may_fail_for_one_question_alone():
    n, beta = 10**6, 0.99
    assert not bounds.paper(n, 1, beta).holds
    result = row(plan(n=n, error=0.3, beta=beta), "the paper's settings")
    assert result.status == "promised if"
    assert bounds.paper(n, result.found, beta).bound <= 0.3
    assert bounds.paper(n, result.found + 1, beta).bound > 0.3
    assert "for fewer than 2 questions its conditions fail" in result.sentence
    result = row(plan(n=n, error=0.1, beta=beta), "the paper's settings")
    assert (result.found, result.status) == (0, "not promised")
    assert result.sentence.endswith("; 2 questions have an error of 0.167")


def test_what_is_not_found_says_why():
    for table_row in plan(questions=10, error=1e-9).rows:
        assert table_row.status == "not promised"
        assert table_row.sentence.endswith("; no n up to 10^15 has this error")
    result = plan(n=100, error=0.01)
    assert row(result, "no peeking").sentence.endswith("; one question has an error of 0.136")
    assert "conditions fail: e =" in row(plan(n=10, error=0.01), "the paper's settings").sentence


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "two of n, questions and error, and finds the third; got none"),
        ({"n": 10}, "got n. Try n=10_000, questions=1_000"),
        ({"n": 10, "questions": 10, "error": 0.1}, "got n, questions, error"),
        ({"n": 0, "questions": 10}, "n must be a whole number of at least 1"),
        ({"n": 10, "questions": 1.5}, "questions must be a whole number"),
        ({"n": 10, "error": 0}, "error must be a number above 0 and below 0.5; got 0"),
        ({"n": 10, "error": 0.5}, "error must be a number above 0 and below 0.5"),
        ({"n": 10, "error": math.nan}, "error must be a number"),
        ({"n": 10, "questions": 10, "beta": 1}, "beta must be"),
    ],
)
def test_what_cannot_be_planned(given, sentence):
    with pytest.raises(InvalidSetting, match=sentence.replace(".", r"\.")):
        plan(**given)


@pytest.mark.parametrize(
    ("metric", "best", "error", "released", "loss_error", "factor"),
    [
        ("roc_auc", 0.9, 0.008, 0.1, 0.008, 1),
        ("bleu", 30, 0.5, 0.7, 0.005, 100),
        ("mae", 0.4, 0.01, 0.4, 0.01, 1),
        ("MAE", 400, 10, 1.0, 0.025, 400),
    ],
)
def test_gains_are_stated_in_the_unit_of_the_metric(
    metric, best, error, released, loss_error, factor
):
    planned = plan(n=5000, questions=1000, teams=20, metric=metric, best=best, standard_error=error)
    mechanism = lb.GrowingLadder.calibrated(5000, 1000, 20, scale="model").for_board()
    sizes = {"questions": 1000, "teams": 20, "accounts": 2}
    expected = bounds.resolution(
        mechanism, n=5000, released=released, standard_error=loss_error, **sizes
    )
    described = planned.describe()["metric"]
    assert list(described["gains"].values()) == pytest.approx(
        [gain * factor for gain in expected.gains]
    )
    assert described["attacker_gain"] == pytest.approx(expected.attacker_gain * factor)
    assert f"Near {lb.metric(metric).title} {best:g}, gains" in planned.shown[0]
    # Four times the rows have half the standard error.
    (fewer,) = [line for line in planned.shown if line.startswith("With 20,000 rows")]
    again = plan(n=20_000, questions=1000, teams=20, metric=metric, best=best,
                 standard_error=error / 2)  # fmt: skip
    assert f"a gain of {again.describe()['metric']['gains']['3']:.2g} shows" in fewer


def test_an_attacker_gains_at_most_what_is_left():
    sizes = {"n": 100, "questions": 1000, "standard_error": 0.05}
    mechanism = lb.GrowingLadder.calibrated(100, 1000, scale="model")
    far = bounds.resolution(mechanism, released=0.9, **sizes)
    assert 0.1 < far.attacker_gain < far.exact_gain < 0.9
    near = bounds.resolution(mechanism, released=0.1, **sizes)
    assert near.attacker_gain == near.exact_gain == 0.1
    perfect = bounds.resolution(mechanism, released=1e-11, **sizes)
    assert bounds.describe_resolution(perfect, near="AUC 1", with_more_rows=near) == [
        "Near AUC 1, any gain may stay hidden."
    ]


def test_a_gain_in_a_root_is_measured_from_the_best():
    planned = plan(n=5000, questions=1000, metric="rmse", best=12.5, standard_error=0.3)
    gain = planned.describe()["metric"]["gains"]["3"]
    squared = plan(
        n=5000, questions=1000, metric="mse", best=12.5**2, standard_error=2 * 12.5 * 0.3
    )
    loss = squared.describe()["metric"]["gains"]["3"]
    assert 12.5**2 - (12.5 - gain) ** 2 == pytest.approx(loss)


def test_right_or_wrong_needs_no_standard_error():
    planned = plan(n=5000, questions=1000, metric="accuracy")
    assert planned.shown[0] == plan(n=5000, questions=1000).shown[0].replace(
        "error 0.2", "accuracy 0.8"
    )
    better = plan(n=5000, questions=1000, metric="accuracy", best=0.95).describe()["metric"]
    assert better["gains"]["3"] < planned.describe()["metric"]["gains"]["3"]
    assert planned.people.metric.notes(5000) == []


def test_the_standard_error_of_auc_follows_from_the_share_of_positives():
    planned = plan(n=5000, questions=1000, metric="roc_auc", best=0.9, positives=0.1)
    assumed = planned.describe()["metric"]["standard_error"]
    rng = np.random.default_rng(1)
    labels = np.arange(5000) < 500
    distance = math.sqrt(2) * NormalDist().inv_cdf(0.9)
    areas = [
        lb.metric("roc_auc").value(labels, rng.normal(size=5000) + distance * labels)
        for _ in range(400)
    ]
    # The standard deviation of 400 is within 10% of the true one 199 times in 200.
    assert np.mean(areas) == pytest.approx(0.9, abs=0.002)
    assert np.std(areas) == pytest.approx(assumed, rel=0.1)
    stated = plan(n=5000, questions=1000, metric="roc_auc", best=0.9, standard_error=assumed)
    assert planned.shown[:3] == stated.shown[:3]
    assert (
        "Assumed: 10% of the 5,000 rows are positive, which gives AUC 0.9 a standard error of "
        f"{assumed:.2g}. Set positives for another share."
    ) in planned.shown
    usual = plan(n=5000, questions=1000, metric="roc_auc")
    assert usual.shown[0].startswith(
        "Near AUC 0.8, gains smaller than about 0.014 may not show after"
    )
    assert any("50% of the 5,000 rows" in line for line in usual.shown)


def test_without_a_standard_error_gains_are_multiples_of_it():
    planned = plan(n=5000, questions=1000, metric="f1_macro")
    assert "Near any macro-F1, gains" in planned.shown[0]
    described = planned.describe()["metric"]
    with_error = plan(n=5000, questions=1000, metric="f1_macro", standard_error=0.01)
    assert described["in_standard_errors"]
    # A ladder rounds a standard error up, by less than sqrt(2); the largest is stated.
    largest_gain = described["gains"]["3"]
    assert (
        largest_gain * 0.01 / math.sqrt(2)
        < with_error.describe()["metric"]["gains"]["3"]
        < largest_gain * 0.01
    )
    error = 1.000_01 * largest_standard_error(66)
    with_error = plan(n=5000, questions=1000, metric="f1_macro", standard_error=error)
    assert with_error.describe()["metric"]["gains"]["3"] == pytest.approx(
        largest_gain * error, rel=1e-4
    )
    assert any(
        "give the score of a good model and its standard error" in text for text in planned.shown
    )
    assert not any("at most" in text for text in planned.shown)
    precision = plan(n=5000, questions=1000, metric="map@5").shown
    assert "A standard error of MAP@5 is at most 0.0071 on 5,000 rows." in precision
    assert any("For macro-F1 go by the simulated attacks" in text for text in planned.shown)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"best": 0.9}, "need a metric"),
        ({"metric": "acuracy", "best": 0.9}, "did you mean"),
        ({"metric": "accuracy", "best": 0.9, "standard_error": 0.01}, "follows from its value"),
        ({"metric": "rmse", "standard_error": 0.01}, "give best, too"),
        ({"metric": "roc_auc", "best": 1.0}, "that can be improved; got 1"),
        ({"metric": "accuracy", "best": 80}, "that can be improved; got 80"),
        ({"metric": "roc_auc", "standard_error": -1}, "must be a number above 0"),
        ({"metric": "roc_auc", "positives": 1}, "positives must be a number above 0 and below 1"),
        ({"metric": "roc_auc", "positives": 0.1, "standard_error": 0.1}, "not both"),
        ({"metric": "f1", "positives": 0.1}, "does not follow from the share of positives"),
    ],
)
def test_what_a_plan_cannot_use_of_a_metric_is_refused(settings, message):
    with pytest.raises(lb.errors.LadderboardError, match=message):
        plan(n=5000, questions=1000, **settings)
