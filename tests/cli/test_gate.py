"""``ladderboard gate`` and ``plan --gate``: verdicts, exit codes, results of harnesses."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.verify import verify_bundle

N = 400
LABELS = np.random.default_rng(0).integers(0, 2, N)


def write_predictions(path, *wrong):
    """Write predictions that are wrong on these rows."""
    predictions = LABELS.copy()
    predictions[list(wrong)] ^= 1
    rows = "\n".join(f"{index},{value}" for index, value in enumerate(predictions))
    path.write_text(f"id,prediction\n{rows}\n")


@pytest.fixture
def run_gate(run_cli, tmp_path):
    """A gate in the working directory with files of three models; runs ``ladderboard gate``."""
    rows = "\n".join(f"{index},{value}" for index, value in enumerate(LABELS))
    (tmp_path / "labels.csv").write_text(f"id,label\n{rows}\n")
    write_predictions(tmp_path / "old.csv", *range(80))
    write_predictions(tmp_path / "good.csv", *range(20))
    write_predictions(tmp_path / "same.csv", *range(40, 120))

    def run(*arguments, piped=None):
        return run_cli("gate", *arguments, piped=piped)

    return run


@pytest.fixture
def gate(run_gate):
    created = run_gate("create", "gate.db", "--labels", "labels.csv", "--looks", "50")
    assert created.code == 0
    assert run_gate("promote", "gate.db", "old.csv").out == (
        "This model is now the incumbent, number 1.\n"
    )
    return run_gate


def test_creating_a_gate_prints_a_plan(run_gate):
    out = run_gate("create", "gate.db", "--labels", "labels.csv", "--looks", "50").out
    words = " ".join(out.split())
    assert "gate.db is created: 400 examples, 50 looks." in words
    assert "With confidence 95%, all verdicts are right." in words
    gain = lb.bounds.gate_plan(400, 50).rows[0].gain
    assert f"look 1: a gain of {gain:.2g} is proven with probability 0.8" in words
    assert "An equal candidate is proven not worse with probability 0.8" in words
    assert "ladderboard gate check gate.db PREDICTIONS.csv --require not-worse" in out


@pytest.mark.parametrize("rows", [12, 60, 400])
@pytest.mark.parametrize("positives", [0.5, 0.1])
def test_a_margin_that_the_plan_suggests_is_accepted(run_gate, tmp_path, rows, positives):
    labels = [f"{at},{int(at < positives * rows)}" for at in range(rows)]
    (tmp_path / "few.csv").write_text("\n".join(["id,label", *labels]))
    options = ("--labels", "few.csv", "--looks", "50", "--classes", "0,1")
    out = " ".join(run_gate("create", "few.db", *options).out.split())
    suggested = re.search(r"--margin (\S+) lets it pass", out)
    assert (suggested is None) == ("No margin lets an equal candidate pass" in out)
    if suggested is None:
        assert "(Keep what this says about margins private" in out
    else:
        assert run_gate("create", "b.db", *options, "--margin", suggested[1]).code == 0


def test_creating_a_gate_says_who_can_read_its_labels(run_gate, tmp_path):
    options = ("--labels", "labels.csv", "--looks", "50")
    out = " ".join(run_gate("create", "gate.db", *options).out.split())
    assert "Every user who can read gate.db can read the labels; --key-file would" in out
    out = " ".join(run_gate("create", "b.db", *options, "--key-file", "key").out.split())
    assert "Encrypted with key; without it nothing can be recovered." in out
    assert "Every user" not in out


def test_labels_from_a_pipe_are_refused_by_the_name_of_the_option(run_gate, tmp_path):
    os.mkfifo(tmp_path / "63")
    refused = run_gate("create", "gate.db", "--labels", "63", "--looks", "50")
    message = " ".join(refused.err.split())
    assert (refused.code, "--labels 63 is not a regular file; write" in message) == (2, True)


def test_a_set_that_is_too_small_is_named(run_gate, tmp_path):
    (tmp_path / "few.csv").write_text("label\n" + "0\n1\n" * 4)
    out = run_gate("create", "few.db", "--labels", "few.csv", "--looks", "200", "--classes", "0,1")
    assert "too small to ever say" in " ".join(out.out.split())
    assert run_gate("create", "few.db", "--labels", "few.csv", "--looks", "200").code == 2


def test_a_verdict_and_its_exit_codes(gate):
    assert gate("check", "gate.db", "good.csv", "--require", "better").code == 0
    unclear = gate("check", "gate.db", "same.csv", "--require", "better")
    assert unclear.code == 5
    assert unclear.out.startswith("Cannot tell. The two differ on 80 examples.")
    assert '"Better" needed' in unclear.out
    assert gate("check", "gate.db", "same.csv").code == 0
    close = gate("check", "gate.db", "same.csv", "--margin", "0.02", "--require", "not-worse")
    assert close.code == 5
    assert re.search(r'"Not worse" needed \d+ more wins than losses; "better" needed', close.out)
    allowed = ("check", "gate.db", "same.csv", "--margin", "0.2", "--require")
    assert gate(*allowed, "not-worse").code == 0
    assert gate(*allowed, "better").code == 1
    assert gate("check", "gate.db", "missing.csv").code == 2
    assert gate("check", "gate.db", "good.csv", "--require", "best").code == 2


def test_no_looks_left_is_three_and_no_incumbent_two(run_gate):
    assert run_gate("create", "gate.db", "--labels", "labels.csv", "--looks", "1").code == 0
    refused = run_gate("check", "gate.db", "good.csv")
    assert refused.code == 2
    assert "promote one first" in refused.err
    run_gate("promote", "gate.db", "old.csv")
    assert run_gate("check", "gate.db", "good.csv").code == 0
    spent = run_gate("check", "gate.db", "same.csv")
    assert (spent.code, "Make a new gate with new cases." in spent.err) == (3, True)
    assert run_gate("check", "gate.db", "good.csv").out.startswith("Same as look 1; not counted.")


def test_worse_fails_a_requirement(run_gate):
    run_gate("create", "gate.db", "--labels", "labels.csv", "--looks", "5", "--worse")
    run_gate("promote", "gate.db", "good.csv")
    result = run_gate("check", "gate.db", "old.csv", "--require", "not-worse")
    assert (result.code, result.out) == (1, "Worse than the incumbent. 4 looks left.\n")


def test_json_is_the_verdict(gate):
    report = gate("check", "gate.db", "good.csv", "--json").json
    assert (report["outcome"], report["look"], report["remaining"]) == ("better", 1, 49)
    assert report["differing"] == 60
    status = gate("status", "gate.db", "--json", "--check").json
    assert (status["checked"], status["history"][0]["outcome"]) == (1, "better")
    assert gate("promote", "gate.db", "good.csv", "--json").json["incumbent"] == 2


def test_the_summary_is_markdown(gate, tmp_path):
    gate("check", "gate.db", "good.csv", "--summary", "summary.md")
    gate("check", "gate.db", "missing.csv", "--summary", "summary.md")
    text = (tmp_path / "summary.md").read_text()
    assert text.startswith("### Gate\n\nBetter than the incumbent. 49 looks left.\n")
    assert "| examples that differ | 60 |" in text
    assert "**Not answered.**" in text


def test_the_status_shows_the_last_looks(gate, tmp_path):
    gate("check", "gate.db", "good.csv")
    gate("check", "gate.db", "same.csv")
    out = gate("status", "gate.db").out
    assert "Verdicts: 1 better, 0 not worse, 1 cannot tell" in out
    assert "look    2: cannot tell (incumbent 1, margin 0, 80 differ," in out
    assert re.search(r"80 differ, better needed \d+ more wins than losses\)", out)
    assert "The last" not in out
    assert "gate.db: 400 examples; margin 0 (loss); all verdicts right with confidence 95%\n" in out
    for row in range(9):
        write_predictions(tmp_path / "next.csv", row)
        gate("check", "gate.db", "next.csv")
    lines = gate("status", "gate.db").out.splitlines()
    shown = [line for line in lines if line.startswith("  look ")]
    assert lines[lines.index(shown[0]) - 1] == "The last 10 of 11 looks:"
    assert len(shown) == 10


def test_a_closed_gate_is_exported_and_verified(gate, tmp_path, run_cli):
    gate("check", "gate.db", "good.csv")
    assert gate("export", "gate.db", "--out", "ledger.jsonl").code == 0
    closing = ("export", "gate.db", "--close", "--labels", "--yes", "--out", "bundle")
    assert gate(*closing).code == 0
    assert str(verify_bundle(tmp_path / "bundle")) == "verified: 1 verdict"
    assert "1 verdict was recomputed from the evidence" in run_cli("verify", "bundle").out
    assert gate("check", "gate.db", "same.csv").code == 3


def test_a_gate_can_be_backed_up_and_restored(gate):
    assert gate("backup", "gate.db", "copy.db").code == 0
    gate("check", "gate.db", "good.csv")
    restored = gate("restore", "gate.db", "--from", "copy.db", "--charge", "1", "--json")
    assert restored.json["remaining"] == 49


CASES = [f"case{index}" for index in range(60)]


def write_results(path, failed):
    path.write_text(json.dumps({case: case not in failed for case in CASES}))


def test_results_of_a_harness(run_gate, tmp_path):
    write_results(tmp_path / "old.json", CASES[:30])
    write_results(tmp_path / "new.json", CASES[:2])
    created = run_gate("create", "cases.db", "--results", "old.json", "--looks", "20")
    words = " ".join(created.out.split())
    assert "60 cases, 20 looks" in words
    assert "see which cases failed" in words
    run_gate("promote", "cases.db", "--results", "old.json")
    report = run_gate("check", "cases.db", "--results", "new.json", "--json").json
    assert (report["outcome"], report["differing"], report["needed"]) == ("better", None, None)
    (tmp_path / "few.json").write_text('{"case0": true}')
    assert run_gate("check", "cases.db", "--results", "few.json").code == 2
    refused = run_gate("check", "cases.db", "old.csv")
    assert (refused.code, "takes the results of a harness" in refused.err) == (2, True)
    rows = "".join(f"{case},1\n" for case in CASES)
    (tmp_path / "scores.csv").write_text(f"id,score\n{rows}")
    assert run_gate("check", "cases.db", "scores.csv").code == 0
    (tmp_path / "bad.json").write_text('{"case0": "yes"}')
    assert "A result is true, false" in run_gate("check", "cases.db", "--results", "bad.json").err


def test_junit_files_of_pytest_and_made_by_hand(run_gate, tmp_path):
    tests = "".join(f"def test_{index}():\n    assert {index} >= LEAST\n\n" for index in range(40))
    for name, failing in (("old", 20), ("new", 0)):
        (tmp_path / "test_suite.py").write_text(f"LEAST = {failing}\n\n{tests}")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p"]
        subprocess.run(
            [*command, "no:randomly", f"--junit-xml={name}.xml", "test_suite.py"],
            cwd=tmp_path, check=False, capture_output=True,
        )  # fmt: skip
    assert run_gate("create", "suite.db", "--junit", "old.xml", "--looks", "5").code == 0
    run_gate("promote", "suite.db", "--junit", "old.xml")
    assert run_gate("check", "suite.db", "--junit", "new.xml", "--require", "better").code == 0
    cases = "".join(
        f'<testcase classname="test_suite" name="test_{index}">'
        f"{'<error>boom</error>' if index == 7 else '<skipped/>' if index == 8 else ''}</testcase>"
        for index in range(40)
    )
    (tmp_path / "hand.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    assert run_gate("check", "suite.db", "--junit", "hand.xml").out.startswith("Better than")
    (tmp_path / "bomb.xml").write_text('<!DOCTYPE a [<!ENTITY b "c">]><testsuite/>')
    assert "document type" in run_gate("check", "suite.db", "--junit", "bomb.xml").err
    (tmp_path / "cut.xml").write_text("<testsuite>")
    assert "is not XML" in run_gate("check", "suite.db", "--junit", "cut.xml").err


def test_scores_do_not_go_into_a_gate_of_predictions(gate, tmp_path):
    write_results(tmp_path / "new.json", [])
    refused = gate("check", "gate.db", "--results", "new.json")
    assert (refused.code, "takes predictions" in refused.err) == (2, True)


def test_swapped_arguments_are_recognised(gate, run_cli):
    swapped = run_cli("guard", "ask", "good.csv", "gate.db")
    assert swapped.code == 4
    assert swapped.err == "ladderboard: good.csv is not a guard's file. Is the order swapped?\n"
    assert "Is the order swapped?" in gate("check", "good.csv", "gate.db").err


def test_guards_and_gates_keep_to_their_commands(gate, run_cli):
    refused = run_cli("guard", "ask", "gate.db", "good.csv")
    assert "a gate's file" in refused.err
    lb.Holdout.create("guard.db", LABELS, questions=2)
    assert "a guard's file" in gate("status", "guard.db").err


def test_a_gate_is_exported_open_and_closed(gate, run_cli):
    gate("export", "gate.db", "--out", "gate.ledger")
    shown = " ".join(run_cli("verify", "gate.ledger").out.split())
    assert "The evidence of looks stays secret until a bundle" in shown
    assert "Noise" not in shown
    assert gate("export", "gate.db", "--close", "--yes", "--out", "gate.bundle").code == 0
    assert "\n0 looks taken, of 50; closed\n" in gate("status", "gate.db").out
    assert "With --close the guard or gate is closed" in " ".join(
        run_cli("gate", "export", "--help").out.split()
    )


def without_n_options(*further):
    return ("plan", "--gate", "--looks", "50", "--gain", "0.02", *further)


def test_planning_a_gate(run_cli):
    out = run_cli("plan", "--gate", "--n", "300", "--looks", "50", "--differ", "0.1").out
    assert "look 1: a gain of 0.067 is proven with probability 0.8" in out
    assert "look 50: a gain of 0.074 is proven with probability 0.8" in out
    options = ("plan", "--gate", "--n", "300", "--looks", "50", "--gain", "0.02", "--json")
    plan = run_cli(*options).json
    assert 3_000 < plan["needed"][0] < plan["needed"][-1] < 5_000
    assert run_cli("plan", "--gate", "--n", "300").code == 2
    without_n = run_cli(*without_n_options())
    first, *_, last = plan["needed"]
    assert without_n.out.startswith(f"Examples that a gain of 0.02 needs: {first:,} at look 1, ")
    assert without_n.out.endswith(f"{last:,} at look 50.\n")
    assert run_cli(*without_n_options("--json")).json["n"] == last
    refused = run_cli(*without_n_options("--differ", "0.01"))
    assert (refused.code, "gain cannot exceed differ, 0.01" in refused.err) == (2, True)
    assert run_cli("plan", "--n", "300", "--questions", "50", "--looks", "3").code == 2


def test_results_without_their_option_are_recognised(run_gate, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(dict.fromkeys(map(str, range(50)), True)))
    created = run_gate("create", "cases.db", "--results", "a.json", "--looks", "5").out
    assert "ladderboard gate promote cases.db --results RESULTS.json" in created
    assert "an equal candidate does not pass." in " ".join(created.split())
    refused = run_gate("promote", "cases.db", "a.json")
    assert (refused.code, "--results a.json" in refused.err) == (2, True)
    refused = run_gate("create", "other.db", "--looks", "5")
    assert (refused.code, "--junit RESULTS.xml" in refused.err) == (2, True)


def test_a_gate_of_numbers_states_the_unit_and_warns_of_it(run_gate, tmp_path):
    values = np.random.default_rng(0).normal(300_000, 70_000, N).clip(0, 1e6)
    rows = "".join(f"{index},{value}\n" for index, value in enumerate(values))
    (tmp_path / "prices.csv").write_text(f"id,label\n{rows}")
    options = ("--labels", "prices.csv", "--looks", "50", "--range", "0,1000000", "--metric")
    refused = run_gate("create", "mae.db", *options, "mae", "--margin", "1000")
    assert refused.code == 2
    assert "1000 is --margin 0.001." in " ".join(refused.err.split())
    refused = run_gate("create", "rmse.db", *options, "rmse", "--margin", "1000")
    assert "give ((r + 1000)² - r²) / 1000000000000; or use" in " ".join(refused.err.split())
    refused = run_gate("create", "rmse.db", *options, "rmse", "--margin", "0.05")
    assert refused.code == 2
    message = " ".join(refused.err.split())
    assert 'A margin of 0.05 lets bad models pass as "not worse": a constant' in message
    assert not list(tmp_path.glob("rmse.db*"))
    result = run_gate("create", "rmse.db", *options, "rmse", "--margin", "0.001")
    assert (
        "RMSE 100,000 is a loss of 0.01. From there a margin of 0.01 allows RMSE 141,000;"
    ) in " ".join(result.out.split())
    # A plan counts examples that are right or wrong; smaller gains of numbers may be proven.
    assert "There is no plan for this loss" in " ".join(result.out.split())
    assert "with probability" not in result.out
    warning = " ".join(result.err.split())
    assert "a constant prediction has a loss of only 0.00" in warning
    assert 'Models may gain too little to be proven "better".' in warning
    assert run_gate("create", "gate.db", "--labels", "labels.csv", "--looks", "50").err == ""
    refused = run_gate(
        "create", "auc.db", "--labels", "labels.csv", "--looks", "5", "--metric", "roc_auc"
    )
    assert "Metrics that have: accuracy" in " ".join(refused.err.split())


def test_one_look_is_counted_in_the_singular(run_gate, tmp_path):
    out = run_gate("create", "one.db", "--labels", "labels.csv", "--looks", "1").out
    assert "400 examples, 1 look." in " ".join(out.split())
    run_gate("promote", "one.db", "old.csv")
    assert run_gate("check", "one.db", "good.csv").code == 0
    assert "1 look taken, 0 of 1 left" in run_gate("status", "one.db").out
    assert "The only look was used" in run_gate("check", "one.db", "same.csv").err
    (tmp_path / "junit.xml").write_text("<testsuite/>")
    refused = run_gate("create", "two.db", "--results", "junit.xml", "--looks", "1")
    assert "Give it with --junit." in " ".join(refused.err.split())
