"""``guard create``: the guard, its certificate, and refusals that create nothing."""

import json
import stat

import numpy as np
import pytest

import ladderboard as lb


def test_create_reports_the_settings_it_stored(run_guard, guard_folder):
    arguments = ("create", "new.db", "--labels", "labels.csv", "--questions", "1e2", "--json")
    report = run_guard(*arguments).json
    guard = lb.Holdout.open("new.db")
    opening = guard.status().opening
    assert report["mechanism"] == lb.GrowingLadder.calibrated(400, 100).describe()
    assert (report["n"], report["questions"], report["beta"]) == (400, 100, 0.05)
    assert (report["commitment"], report["head"]) == (opening["commitment"], guard.head)
    assert report["loss"] == {"loss": "zero_one", "classes": [0, 1]}
    assert report["encrypted"] is False
    certificate = lb.bounds.certificate(
        400, 100, None, guard.meter.mechanism, ladders=1, opened=1, amendable=True, proven=True
    ).describe()
    assert report["bound"] == json.loads(json.dumps(certificate))
    guard.close()
    assert sorted(path.name for path in guard_folder.glob("new*")) == ["new.db", "new.db.mark"]
    assert stat.S_IMODE((guard_folder / "new.db").stat().st_mode) == 0o600


def test_ladders_are_declared(run_guard, guard_folder):
    arguments = ("--labels", "labels.csv", "--questions", "100", "--json")
    report = run_guard("create", "one.db", *arguments).json
    ten_ladders = run_guard("create", "few.db", *arguments, "--ladders", "10").json
    assert (report["ladders"], ten_ladders["ladders"]) == (1, 10)
    expected = lb.GrowingLadder.calibrated(400, 100, teams=10, accounts=10)
    assert ten_ladders["mechanism"] == expected.describe()
    strict = run_guard("create", "strict.db", *arguments, "--protection", "strict").json
    expected = lb.GrowingLadder.calibrated(400, 100, protection="strict")
    assert strict["mechanism"] == expected.describe()
    certificate = lb.bounds.certificate(
        400,
        100,
        None,
        lb.mechanism(ten_ladders["mechanism"]),
        ladders=10,
        opened=10,
        amendable=True,
        proven=True,
    )
    assert ten_ladders["bound"] == json.loads(json.dumps(certificate.describe()))
    result = run_guard("create", "many.db", *arguments, "--ladders", "101")
    assert (result.code, result.json["error"]["code"]) == (2, "invalid_setting")
    assert not (guard_folder / "many.db").exists()
    assert run_guard("ask", "one.db", "good.csv", "--ladder", "a").code == 0
    result = run_guard("ask", "one.db", "good.csv", "--ladder", "b", "--json")
    assert (result.code, result.json["error"]["code"]) == (2, "too_many_ladders")
    assert "--ladders 2" in result.json["error"]["message"]
    assert run_guard("status", "one.db", "--json").json["remaining"] == 99


def test_classes_are_taken_from_the_labels_and_said(run_guard, guard_folder):
    arguments = ("--labels", "labels.csv", "--questions", "5")
    output = " ".join(run_guard("create", "new.db", *arguments).out.split())
    assert "Loss: zero_one." in output
    assert "Classes, taken from the labels: 0, 1. They are public; any other prediction" in output
    output = " ".join(
        run_guard("create", "declared.db", *arguments, "--classes", "0,1,2").out.split()
    )
    assert "taken from the labels" not in output
    output = " ".join(run_guard("create", "any.db", *arguments, "--classes", "any").out.split())
    assert "Predictions outside the classes are accepted and count as wrong." in output
    assert lb.Holdout.open("any.db").loss == lb.loss("zero_one", classes="any")


def test_a_guard_ignores_the_split_column(run_guard, guard_folder):
    rows = "".join(
        f"{index},{index % 2},{'private' if index < 100 else 'public'}\n" for index in range(400)
    )
    (guard_folder / "split.csv").write_text(f"id,label,split\n{rows}")
    arguments = ("--labels", "split.csv", "--questions", "5")
    output = " ".join(run_guard("create", "new.db", *arguments).out.split())
    assert output.startswith("The column split is not used by a guard: all 400 rows count.")
    assert run_guard("create", "other.db", *arguments, "--json").json["unused"] == ["split"]
    arguments = ("create", "plain.db", "--labels", "labels.csv", "--questions", "5")
    assert run_guard(*arguments, "--json").json["unused"] == []


def test_create_prints_the_certificate(run_guard, guard_folder):
    ladder = '{"mechanism": "ladder", "step": 0.02}'
    arguments = (
        "--labels",
        "labels.csv",
        "--questions",
        "5",
        "--beta",
        "0.1",
        "--mechanism",
        ladder,
    )
    output = " ".join(run_guard("create", "new.db", *arguments).out.split())
    assert "new.db is created: 400 labels, 5 questions." in output
    assert "Mechanism: ladder (step 0.02). Improvements smaller than about 0.02" in output
    assert "Guaranteed in advance, whatever is asked: With confidence 90%," in output
    assert "--key-file would encrypt them." in output
    assert "Rows of one patient, user or document are not independent" in output
    assert output.endswith("Next: ladderboard guard ask new.db PREDICTIONS.csv")
    assert run_guard("ask", "new.db", "half.csv").code == 0


def test_groups_are_counted(run_guard, guard_folder):
    rows = "".join(f"{index},{index % 2},patient {index // 4}\n" for index in range(400))
    (guard_folder / "grouped.csv").write_text(f"id,label,group\n{rows}")
    arguments = ("create", "new.db", "--labels", "grouped.csv", "--questions", "5")
    output = run_guard(*arguments).out
    assert "400 labels in 100 groups" in output
    assert "independent" not in output


def test_an_encrypted_guard_says_what_opens_it(run_guard, guard_folder):
    arguments = ("--labels", "labels.csv", "--questions", "5", "--key-file", "my.key")
    output = run_guard("create", "new.db", *arguments).out
    assert output.endswith("ladderboard guard ask new.db PREDICTIONS.csv --key-file my.key\n")
    secret = (guard_folder / "my.key").read_text().strip()
    assert secret not in output
    assert run_guard("create", "second.db", *arguments, "--json").json["encrypted"] is True
    assert (guard_folder / "my.key").read_text().strip() == secret


@pytest.mark.parametrize(
    ("labels", "arguments", "loss"),
    [
        ("0 1", ["--loss", "brier", "--classes", "0,1"], lb.loss("brier", classes=[0, 1])),
        ("a b", ["--loss", "brier", "--classes", "a, b"], lb.loss("brier", classes=["a", "b"])),
        (
            '"a,b" c',
            ["--loss", "zero_one", "--classes", '"a,b",c'],
            lb.loss("zero_one", classes=["a,b", "c"]),
        ),
        ("1 2", ["--kind", "text", "--classes", "1,2"], lb.loss("zero_one", classes=["1", "2"])),
        ("0.5 1", ["--classes", "0.5,1"], lb.loss("zero_one", classes=[0.5, 1])),
        ("-1 2", ["--loss", "mae", "--range", "-5,5"], lb.loss("absolute", range=(-5, 5))),
        (
            "1 2",
            ["--loss", "pinball", "--range", "0,5", "--quantile", "0.9"],
            lb.loss("pinball", range=(0, 5), quantile=0.9),
        ),
        ("0 1", ["--loss", "log", "--clip", "0.1"], lb.loss("log", clip=0.1)),
        (
            "a b",
            ["--loss", "top_k", "--k", "2", "--classes", "a,b,c"],
            lb.loss("top_k", k=2, classes=["a", "b", "c"]),
        ),
    ],
)
def test_a_loss_is_described_by_options(run_guard, tmp_path, labels, arguments, loss):
    (tmp_path / "few.csv").write_text("label\n" + "\n".join(labels.split(" ")) + "\n")
    fine = ("--mechanism", '{"mechanism": "ladder", "step": 0.001}')  # for two labels
    arguments = ("--labels", "few.csv", "--questions", "2", *fine, *arguments)
    result = run_guard("create", "new.db", *arguments, "--json")
    assert result.json["loss"] == json.loads(json.dumps(loss.describe()))


REFUSED = {
    "already": (["--labels", "labels.csv"], "exists already"),
    "no labels": (["--labels", "nothing.csv"], "There is no file 'nothing.csv'"),
    "not labels": (["--labels", "half.csv"], "no column named label"),
    "no questions": (["--questions", "0"], "questions must be"),
    "half a question": (["--questions", "0.5"], "Expected a whole number"),
    "a metric": (["--loss", "max_error"], "max_error cannot be used"),
    "a slip": (["--loss", "zero_on"], "did you mean 'zero_one'"),
    "no range": (["--loss", "squared"], "as in --range 0,100"),
    "half a range": (["--loss", "squared", "--range", "3"], "two numbers separated by a comma"),
    "a range that is none": (["--loss", "squared", "--range", "3,1"], "low < high"),
    "not its option": (["--range", "0,1"], "The loss zero_one takes no --range."),
    "classes of numbers": (["--loss", "brier", "--classes", "a,b"], "so classes must be numbers"),
    "a mechanism in need": (["--mechanism", "ladder"], "ladder needs step."),
    "a setting too many": (
        ["--mechanism", '{"mechanism": "ladder", "step": 1, "stp": 2}'],
        "ladder has no setting 'stp'; its settings: step, grid.",
    ),
    "no mechanism": (["--mechanism", "ladder2"], "There is no mechanism named 'ladder2'"),
    "no JSON": (["--mechanism", "{step: 1}"], "The mechanism is not JSON"),
    "no name": (["--mechanism", '{"step": 1}'], "a JSON object with a name"),
    "beta": (["--beta", "2"], "beta must be"),
    "a kind": (["--kind", "words"], "kind must be 'number' or 'text'"),
    "no key file": (["--key-file", "labels.csv"], "is not a key file"),
    "a URL": (["http://127.0.0.1:8765"], "A guard is created as a file"),
    "a module that is not there": (["--loss", "nowhere:loss"], "could not be imported"),
    "a number for all": (["--loss", "numpy:array_equal"], "one number for each of"),
}


@pytest.mark.parametrize(("arguments", "sentence"), REFUSED.values(), ids=REFUSED)
def test_a_refused_create_leaves_no_files(run_guard, guard_folder, arguments, sentence):
    file = "guard.db" if arguments == ["--labels", "labels.csv"] else "new.db"
    file, arguments = (arguments[0], []) if arguments[0].startswith("http") else (file, arguments)
    defaults = {"--labels": "labels.csv", "--questions": "5"}
    for name, value in defaults.items():
        arguments = arguments if name in arguments else [*arguments, name, value]
    files_before = {path.name: path.read_bytes() for path in guard_folder.iterdir()}
    result = run_guard("create", file, *arguments)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err
    error = run_guard("create", file, *arguments, "--json")
    assert error.code == 2
    assert sentence in error.json["error"]["message"]
    assert {path.name: path.read_bytes() for path in guard_folder.iterdir()} == files_before


def test_a_mark_of_another_guard_stays(run_guard, guard_folder):
    """The refusal explains what the mark of a deleted guard is for."""
    (guard_folder / "guard.db").unlink()
    mark_before = (guard_folder / "guard.db.mark").read_bytes()
    result = run_guard("create", "guard.db", "--labels", "labels.csv", "--questions", "5")
    assert result.code == 2
    assert "guard.db.mark exists already" in result.err
    assert (guard_folder / "guard.db.mark").read_bytes() == mark_before


def test_a_missing_directory_exits_with_4(run_guard, guard_folder):
    result = run_guard(
        "create", "nowhere/new.db", "--labels", "labels.csv", "--questions", "5", "--json"
    )
    assert (result.code, result.json["error"]["code"]) == (4, "storage_failed")


@pytest.mark.parametrize(("spread", "warned"), [(10, True), (2_000, False)])
def test_create_warns_about_answers_too_coarse_for_the_labels(
    run_guard, guard_folder, spread, warned
):
    rows = "".join(f"{index},{5_000 + spread * (index % 2)}\n" for index in range(400))
    (guard_folder / "prices.csv").write_text(f"id,label\n{rows}")
    arguments = (
        "--labels",
        "prices.csv",
        "--questions",
        "5",
        "--loss",
        "mae",
        "--range",
        "0,10000",
    )
    ladder = ("--mechanism", '{"mechanism": "ladder", "step": 0.02}', "--json")
    result = run_guard("create", "new.db", *arguments, *ladder)
    errors = " ".join(result.err.split())
    assert ("Warning: the answers are too coarse for these labels." in errors) is warned
    assert "0.0005" not in result.out  # JSON output reveals nothing about labels
    assert ("has MAE 5, and gains below 200 may not be detected" in errors) is warned


def test_steps_that_follow_the_model_are_not_called_too_coarse(run_guard, guard_folder):
    values = np.random.default_rng(0).normal(300_000, 70_000, 400).clip(0, 1e6)
    rows = "".join(f"{index},{value}\n" for index, value in enumerate(values))
    (guard_folder / "prices.csv").write_text(f"id,label\n{rows}")
    options = ("--labels", "prices.csv", "--questions", "20", "--metric", "rmse")
    result = run_guard("create", "new.db", *options, "--range", "0,1000000")
    assert result.code == 0
    assert "Warning" not in result.err
    guard = lb.Holdout.open(guard_folder / "new.db")
    assert guard.ask(np.full(400, 300_000.0)).improved
    assert guard.ask(values + 30_000).improved
    guard.close()
    status = " ".join(run_guard("status", "new.db").out.split())
    assert "the proven interval for the true RMSE is too wide to be useful" in status
    assert "e+0" not in status


def test_a_guard_of_a_metric_speaks_of_it_everywhere(run_guard, guard_folder):
    rows = [(f"x{i}", i % 4 == 0, (i % 4 == 0) * 2 + i % 7) for i in range(400)]
    lines = "".join(f"{id_},{int(label)}\n" for id_, label, _ in rows)
    (guard_folder / "aucs.csv").write_text("image,target\n" + lines)
    scores = "".join(f"{id_},{score}\n" for id_, _, score in rows)
    (guard_folder / "model.csv").write_text("image,target\n" + scores)
    options = (
        "--labels",
        "aucs.csv",
        "--questions",
        "20",
        "--columns",
        "id=image,prediction=target",
    )
    created = run_guard("create", "auc.db", "--metric", "roc_auc", *options)
    assert "Metric: AUC." in created.out
    assert "Send scores or probabilities, not classes." in created.out
    answer = run_guard("ask", "auc.db", "model.csv", "--json").json
    assert answer["metric"] == "AUC"
    assert answer["loss"] == answer["released"] == pytest.approx(1 - answer["value"])
    assert f"The best is now AUC {answer['value']:g}. " in answer["reason"]
    status = run_guard("status", "auc.db").out
    assert f"The best is AUC {answer['value']:g};" in status
    assert "the true AUC of the best model lies in" in " ".join(status.split())
    refused = run_guard("create", "b.db", "--metric", "roc_auc", "--loss", "log_loss", *options)
    assert (refused.code, "--metric takes the place of --loss" in refused.err) == (2, True)


def test_a_weighted_sum_is_a_metric_of_a_guard(run_guard, guard_folder):
    lines = "".join(f"x{i},{'yes' if i % 4 else 'no'}\n" for i in range(400))
    (guard_folder / "words.csv").write_text("id,label\n" + lines)
    chances = "".join(f"x{i},{0.9 if i % 4 else 0.2}\n" for i in range(400))
    (guard_folder / "chances.csv").write_text("id,prediction\n" + chances)
    options = ("--labels", "words.csv", "--questions", "20", "--classes", "no,yes")
    created = run_guard("create", "sum.db", "--metric", "0.7 accuracy + 0.3 brier", *options)
    assert "Metric: 0.7 (1 - accuracy) + 0.3 brier." in created.out
    answer = run_guard("ask", "sum.db", "chances.csv", "--json").json
    assert answer["value"] == pytest.approx(0.3 * (0.75 * 0.01 + 0.25 * 0.04), abs=0.01)
    refused = run_guard("create", "b.db", "--metric", "0.7 accuracy + 0.3 roc_auc", *options)
    assert (refused.code, "roc_auc cannot be part of a weighted sum" in refused.err) == (2, True)


def test_columns_are_named_as_pairs(run_guard, guard_folder):
    result = run_guard(
        "create", "b.db", "--labels", "labels.csv", "--questions", "5", "--columns", "image"
    )
    assert (result.code, "id=image,prediction=target" in result.err) == (2, True)


def test_the_default_says_what_shows_and_what_an_attacker_gains(run_guard, tmp_path):
    """Not its settings, nor a worst case that nobody can use."""
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label\n" + "".join(f"{i},{i % 2}\n" for i in range(2_000)))
    created = run_guard("create", "new.db", "--labels", str(labels), "--questions", "100")
    output = " ".join(created.out.split())
    gains = [
        lb.GrowingLadder.calibrated(2_000, 100).smallest_visible_gain(
            n=2_000, released=0.2, changes=changes
        )
        for changes in (1, 3, 8)
    ]
    first, third, eighth = (f"{gain:.2g}" for gain in gains)
    assert (
        f"Near loss 0.2, gains smaller than about {first} may not show after the first new best, "
        f"{third} after the third, {eighth} after the eighth. An attacker could make a model look "
        "0.033 "
    ) in output
    assert "Guaranteed" not in output
    assert "compare" not in output
    regression = run_guard(
        *("create", "other.db", "--labels", str(labels), "--questions", "100"),
        *("--loss", "squared", "--range", "0,10"),
    )
    shown = " ".join(regression.out.split())
    assert (
        "Near any score, gains smaller than about 2.3 standard errors may not show after" in shown
    )
    assert "could make a model look 3.8 standard errors better than it is" in shown
    stated = "After the first answer, ladderboard guard status states these gains in the loss."
    assert f"A standard error of the loss is at most 0.011. {stated}" in shown
    root = run_guard(
        *("create", "root.db", "--labels", str(labels), "--questions", "100"),
        *("--metric", "rmse", "--range", "0,10"),
    )
    shown = " ".join(root.out.split())
    assert "at most" not in shown  # it depends on the RMSE
    assert "status states these gains in RMSE." in shown
    auc = run_guard(
        *("create", "auc.db", "--labels", str(labels), "--questions", "100", "--metric", "roc_auc")
    )
    shown = " ".join(auc.out.split())
    assert (
        "Metric: AUC. Near AUC 0.8, gains smaller than about 0.020 may not show after the" in shown
    )
    assert "standard errors" not in shown
