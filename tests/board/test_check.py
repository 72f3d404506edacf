"""``board check``: scored files, promises, simulated attacks and warnings."""

import json
import re
import sys

import numpy as np
import pytest

from ladderboard.board import check_board, read_folder
from ladderboard.board._check._report import FolderGrader
from ladderboard.board._rules._text import read_time

BASE = "questions: 100\nteams: 5\n"
RULES = "loss: accuracy\n" + BASE


def predictions(n=300, value=0):
    return "\n".join(["id,prediction", *(f"{index},{value}" for index in range(n)), ""])


def label_file(values):
    return "\n".join(["id,label", *(f"{index},{value}" for index, value in enumerate(values)), ""])


def skip_games(monkeypatch):
    """Skip the games in tests that are not about them."""
    monkeypatch.setattr("ladderboard.board._check._report.play_attacks", lambda *_, **__: [])


def test_a_board_that_is_ready(folder):
    rules = RULES + "baselines: [{name: zeros, file: zeros.csv}]\n"
    path = folder(
        **{"board.yaml": rules, "sample_submission.csv": predictions(), "zeros.csv": predictions()}
    )
    report = check_board(path)
    assert report.ok
    text = " ".join(line.strip() for line in report.lines)
    assert "200 public rows, 100 private." in text
    assert "100 submissions, 1 for baselines; at most 5 teams with 19 reserved for each" in text
    assert "score perfectly" in text
    assert "The sample submission can be scored. The baseline 'zeros' can be scored." in text
    assert "Are the 300 rows independent? Rows of one patient, user or video are not" in text
    assert "Near accuracy 0.80, gains smaller than about 0.086 may not show after a team's" in text
    assert "An attacker with 2 of 5 teams could make a model look 0.1" in text
    assert "With 800 rows instead of 200: a gain of 0.0" in text
    assert text.endswith("digits is ready.")
    assert all(len(line) <= 80 and line.isprintable() for line in report.lines)
    assert str(report).splitlines() == report.lines
    assert report.attacks == ()
    described = json.loads(json.dumps(report.describe(), allow_nan=False))
    assert described["ok"] is True
    assert described["promise"]["ladders"] == 6
    assert described["promise"]["resolution"]["gains"].keys() == {"1", "3", "8"}
    # The same folder, read already.
    assert check_board(read_folder(path)).describe() == report.describe()


def test_the_promise_is_that_of_n_questions_and_ladders(folder, monkeypatch):
    from ladderboard.bounds import certificate

    skip_games(monkeypatch)
    promise = check_board(folder()).promise
    assert (promise.n, promise.effective_n, promise.questions, promise.ladders) == (
        200,
        200,
        100,
        5,
    )
    expected = certificate(200, 100, 15, promise.mechanism, ladders=None, opened=5, amendable=True)
    assert (promise.changes, promise.likely) == (15, expected)
    assert promise.worst.low <= promise.likely.low
    assert promise.worst.high >= promise.likely.high


def test_a_ladder_with_few_steps_is_promised_at_its_worst(folder, monkeypatch):
    skip_games(monkeypatch)
    rules = RULES + "mechanism: {name: ladder, step: 0.4}\nladder: board\n"
    promise = check_board(folder(**{"board.yaml": rules})).promise
    assert (promise.likely, promise.changes) == (promise.worst, None)
    assert "moved" not in promise.sentences[-1]


def test_exact_scores_have_no_promise_and_the_attack_gains(folder):
    report = check_board(folder(**{"board.yaml": RULES + "mechanism: exact\nladder: board\n"}))
    assert report.promise.is_trivial
    assert "exact reveals too much for 200 examples" in report.promise.sentences[-1]
    assert report.promise.sentences[0] == "Every gain shows."
    # Against exact scores the majority attack on n=200 with 100 questions gains 0.21 a game, with a
    # standard deviation of 0.025: three of them are below 0.1 on average once in 10^13 runs.
    assert report.attacks[0].gain == report.attacks[0].exact > 0.1
    assert report.attacks[1].name == "shifted_majority"


@pytest.mark.parametrize(
    ("classes", "labels", "plays", "says"),
    [
        (None, [0, 1], False, "Classes, taken from the labels or the sample submission: 0, 1."),
        ("[0, 1, 2]", [0, 1], True, "Classes: 0, 1, 2. They are public; any other"),
        ("any", [0, 1], True, "Warning: No classes are declared. Predictions outside the"),
        (None, range(300), True, "Declare them, as in loss: {name: accuracy, classes:"),
    ],
)
def test_the_abstaining_attack_is_played_where_classes_are_undeclared(
    folder, classes, labels, plays, says
):
    loss = "accuracy" if classes is None else f"{{name: accuracy, classes: {classes}}}"
    rules = f"loss: {loss}\nquestions: 20\nteams: 5\nmechanism: {{name: ladder, step: 0.02}}\n"
    labels = list(labels) * (300 // len(labels))
    report = check_board(folder(**{"board.yaml": rules, "holdout.csv": label_file(labels)}))
    assert ("abstaining" in [attack.name for attack in report.attacks]) == plays
    assert says in " ".join(line.strip() for line in report.lines)


def test_a_large_board_is_played_smaller_and_says_so(folder, monkeypatch):
    monkeypatch.setattr("ladderboard.board._check._report.MAX_EXAMPLES", 150)
    monkeypatch.setattr("ladderboard.board._check._report.MAX_QUESTIONS", 50)
    rules = RULES + "mechanism: {name: ladder, step: 0.02}\n"
    report = check_board(folder(**{"board.yaml": rules}))
    assert [attack.name for attack in report.attacks] == ["majority", "sybil"]
    assert all((attack.n, attack.questions) == (150, 50) for attack in report.attacks)
    text = " ".join(line.strip() for line in report.lines)
    assert "games, played at 150 examples and 50 submissions to be quick" in text


GOLD = [
    ("accuracy", label_file(["a", "b", "c"])),
    ("{name: accuracy, classes: [a, b, c]}", label_file(["a", "b", "c"])),
    ("zero_one", label_file([1, 2.5, 3])),
    ("brier", label_file([0, 1, 1])),
    ("{name: brier, classes: [a, b, c]}", label_file(["a", "b", "c"])),
    ("{name: log, classes: [no, yes]}", label_file(["no", "yes", "no"])),
    ("{name: top_k, k: 2}", label_file(["a", "b", "c"])),
    ("{name: top_k, k: 2, classes: [a, b, c]}", label_file(["a", "b", "c"])),
    ("{name: mae, range: [0, 10]}", label_file([0, 3.5, 10])),
    ("{name: rmse, range: [0, 10]}", label_file([0, 3.5, 10])),
    ("{name: pinball, range: [0, 10], quantile: 0.9}", label_file([0, 3.5, 10])),
    ("hamming", "id,label_1,label_2\n1,a,b\n2,c,d\n"),
]


@pytest.mark.parametrize(("loss", "rows"), GOLD, ids=[loss for loss, _ in GOLD])
def test_gold_is_perfect_under_every_loss(folder, loss, rows):
    content = read_folder(folder(**{"board.yaml": f"loss: {loss}\n{BASE}", "holdout.csv": rows}))
    assert FolderGrader(content).check_labels() == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return (labels != predictions) | (labels == 1)", "of the private rows 2 of 2 have"),
        ("raise RuntimeError(labels)", "cannot be scored as predictions: The loss"),
        ("return labels * 9", "cannot be scored as predictions: The loss"),
    ],
)
def test_a_gold_submission_that_is_not_perfect(folder, tmp_path, monkeypatch, body, message):
    (tmp_path / "losses_of_mine.py").write_text(f"def own(labels, predictions):\n    {body}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "losses_of_mine", raising=False)
    skip_games(monkeypatch)
    rows = "id,label,split\n1,0,public\n2,0,public\n3,1,private\n4,1,private\n"
    path = folder(**{"board.yaml": f"loss: losses_of_mine:own\n{BASE}", "holdout.csv": rows})
    report = check_board(path)
    assert [problem.code for problem in report.problems] == ["gold"]
    assert message in report.problems[0].message
    assert not report.ok
    assert report.lines[-1] == "digits is not ready: 1 problem."


def test_files_that_cannot_be_graded_are_itemised(folder, monkeypatch):
    skip_games(monkeypatch)
    rules = RULES + "baselines: [{name: short, file: short.csv}]\n"
    path = folder(
        **{
            "board.yaml": rules,
            "sample_submission.csv": predictions(299).replace("\n7,0", "\nx,"),
            "short.csv": "id,guess,remark\n1,1,x\n",
        }
    )
    report = check_board(path)
    assert [problem.code for problem in report.problems] == [
        "unknown_id", "missing_id", "missing_value", "missing_column",
    ]  # fmt: skip
    assert report.problems[0].message.startswith("sample_submission.csv: ")
    assert report.problems[3].message.startswith("short.csv: ")
    assert "can be scored" not in str(report)


def test_a_sample_that_holds_the_labels_is_found(folder, monkeypatch):
    skip_games(monkeypatch)
    path = folder()
    rows = [line.split(",")[:2] for line in (path / "holdout.csv").read_text().splitlines()[1:]]
    text = "\n".join(["id,prediction", *map(",".join, rows), ""])
    (path / "sample_submission.csv").write_text(text)
    report = check_board(path)
    assert [problem.code for problem in report.problems] == ["holds_labels"]


def test_a_file_above_the_limit_is_found(folder, monkeypatch):
    skip_games(monkeypatch)
    rules = RULES + "files: {bytes: 1 kB}\n"
    path = folder(**{"board.yaml": rules, "sample_submission.csv": predictions()})
    assert [problem.code for problem in check_board(path).problems] == ["too_many_bytes"]


def warnings_of(folder, monkeypatch, rules, now=0.0, **files):
    skip_games(monkeypatch)
    files = {"sample_submission.csv": predictions(), **files}
    report = check_board(folder(**{"board.yaml": rules, **files}), now=now)
    assert report.ok
    expected = ("are too few", "The board is coarse")
    return [warning for warning in report.warnings if not any(text in warning for text in expected)]


DEADLINE = "end: 2027-01-31T00:00:00Z\n"
DAILY = RULES + DEADLINE + "window: {submissions: 5, days: 1}\n"
WEEKS_BEFORE = read_time("", "2027-01-09T12:00:00Z")


@pytest.mark.parametrize(
    ("rules", "now", "expected"),
    [
        (RULES, 0, None),
        (RULES + "registration: open\naccounts: 2\n", 0, "one person may hold all accounts"),
        (RULES + "registration: open\n", 0, None),
        (RULES + "per_team: 50\n", 0, "20 are reserved for each team, and the other 0 "),
        (RULES + "per_team: 20\n", 0, None),
        (RULES + "mechanism: {name: one_bit, step: 0.01}\n", 0, "standings show only who improved"),
        (RULES + "mechanism: {name: noisy, sd: 0.1}\n", 0, "Nothing can be promised for noisy"),
        (RULES + DEADLINE, read_time("", "2027-01-30T23:59:59Z"), None),
        (DAILY, WEEKS_BEFORE, "window allows a team 110 submissions until the deadline, and 20 "),
        (DAILY, read_time("", "2027-01-23T00:00:00Z"), None),
        (DAILY, 0, None),  # years away
        (DAILY + "per_team: 10\n", WEEKS_BEFORE, None),  # chosen
    ],
)
def test_warnings(folder, monkeypatch, rules, now, expected):
    warnings = warnings_of(folder, monkeypatch, rules, now)
    assert [expected in warning for warning in warnings] == [True] if expected else warnings == []


def test_a_past_deadline_is_a_problem(folder, monkeypatch):
    skip_games(monkeypatch)
    report = check_board(
        folder(**{"board.yaml": RULES + DEADLINE}), now=read_time("", "2027-01-31T00:00:00Z")
    )
    (problem,) = report.problems
    assert (problem.code, problem.column) == ("deadline", "end")
    assert problem.message.startswith("The deadline 2027-01-31 00:00 UTC is past")
    assert report.lines[-1].endswith(" is not ready: 1 problem.")


def test_warnings_about_files_that_are_not_there(folder, monkeypatch):
    rows = label_file(np.arange(100) % 2)
    warnings = warnings_of(folder, monkeypatch, RULES,
                   **{"holdout.csv": rows, "sample_submission.csv": None})  # fmt: skip
    assert len(warnings) == 2
    assert "There is no sample_submission.csv" in warnings[0]
    assert "No row is private" in warnings[1]


def test_the_suggested_sizes_remove_the_warning(folder, monkeypatch):
    skip_games(monkeypatch)
    rules = RULES.replace("questions: 100", "questions: 1000").replace("teams: 5", "teams: 20")
    rules += "mechanism: {name: ladder, step: 0.02}\n"
    path = folder(**{"board.yaml": rules, "holdout.csv": label_file(np.arange(900) % 2)})
    (message,) = (warning for warning in check_board(path).warnings if "are too few" in warning)
    number = r"([\d,]+)"
    both = f"{number} submissions for {number} teams"
    way = f"{number} independent examples, or {number} submissions, or {both}"
    match = re.search(f"It is useful with {way}", message)
    larger, fewer, half, teams = (int(group.replace(",", "")) for group in match.groups())
    for rows, questions, of in ((larger, 1000, 20), (900, fewer, 20), (900, half, teams)):
        text = rules.replace("1000", str(questions)).replace("teams: 20", f"teams: {of}")
        (path / "board.yaml").write_text(text)
        (path / "holdout.csv").write_text(label_file(np.arange(rows) % 2))
        assert not any("are too few" in warning for warning in check_board(path).warnings)


def test_too_few_examples_for_the_promise(folder, monkeypatch):
    skip_games(monkeypatch)
    path = folder(**{"board.yaml": RULES + "mechanism: {name: ladder, step: 0.02}\n"})
    warnings = check_board(path).warnings
    assert any("are too few for 100 submissions" in warning for warning in warnings)
    rows = label_file(np.arange(20_000) % 2)
    (path / "holdout.csv").write_text(rows)
    assert not any("are too few" in warning for warning in check_board(path).warnings)


def test_groups_are_what_must_be_independent(folder, monkeypatch):
    skip_games(monkeypatch)
    rows = "\n".join(
        ["id,label,group", *(f"{index},{index % 2},g{index // 3}" for index in range(300)), ""]
    )
    report = check_board(folder(**{"holdout.csv": rows}))
    assert "the public ones are 100 groups" in " ".join(report.facts)
    assert report.facts[-1].startswith("Are the 100 public groups independent of each other?")
    assert report.promise.n == 100


def test_an_unreadable_folder_gives_a_report(folder):
    report = check_board(folder(**{"board.yaml": "loss: max_error\n", "holdout.csv": None}))
    assert not report.ok
    assert report.promise is None
    assert [problem.code for problem in report.problems] == [
        "missing_key",
        "bad_value",
        "missing_file",
    ]
    assert report.lines[-1] == "digits is not ready: 3 problems."
    assert json.loads(json.dumps(report.describe()))["attacks"] == []


@pytest.mark.parametrize("mechanism", ["exact", "parameter_free_ladder"])
@pytest.mark.parametrize(
    ("rules", "holdout", "refused"),
    [
        (RULES, None, False),
        ("loss: {name: mae, range: [0, 1]}\n" + BASE, None, True),
        (RULES, "group", True),
    ],
)
def test_mechanisms_that_can_be_counted_under_zero_one_loss_only(
    folder, monkeypatch, mechanism, rules, holdout, refused
):
    skip_games(monkeypatch)
    files = {"board.yaml": rules + f"mechanism: {mechanism}\n"}
    if holdout is not None:
        rows = [f"{index},{index % 2},{index // 2}" for index in range(300)]
        files["holdout.csv"] = "\n".join(["id,label,group", *rows, ""])
    report = check_board(folder(**files))
    assert [problem.code for problem in report.problems] == ["mechanism"] * refused
    if refused:
        assert "can be counted under zero-one loss only" in report.problems[0].message
        assert report.promise.is_impossible


SPREAD = np.random.default_rng(3).normal(300, 80, 3_000).clip(0, 600).round(1)


@pytest.mark.parametrize(
    ("loss", "labels", "refused"),
    [
        ("{name: rmse, range: [0, 600]}", SPREAD, True),  # shown: 84.85, then 0.0000
        ("{name: mse, range: [0, 600]}", SPREAD, True),
        ("{name: mae, range: [0, 600]}", SPREAD, False),
        ("{name: log, classes: [0, 1]}", np.arange(3_000) % 100 == 0, True),
        ("{name: log, classes: [0, 1]}", np.arange(3_000) % 2, False),
        ("brier", np.arange(3_000) % 2, False),
    ],
)
def test_a_grid_coarser_than_the_possible_gain_is_refused(
    folder, monkeypatch, loss, labels, refused
):
    skip_games(monkeypatch)
    rules = f"loss: {loss}\nquestions: 1000\nteams: 1\n"
    if refused:
        rules += "mechanism: {name: ladder, step: 0.02, grid: 0.02}\n"
    rows = label_file(
        np.asarray(labels).astype(float) if labels is SPREAD else np.asarray(labels) * 1
    )
    report = check_board(folder(**{"board.yaml": rules, "holdout.csv": rows}))
    assert [problem.code for problem in report.problems] == ["too_coarse"] * refused
    if loss.startswith("{name: rmse"):
        message = report.problems[0].message
        assert "RMSE improves by 80, and a gain below 80 may not show" in message


@pytest.mark.parametrize(("rows", "problems", "warned"), [(8, 1, 0), (60, 0, 1), (2_000, 0, 0)])
def test_a_step_is_compared_with_all_that_can_be_gained(
    folder, monkeypatch, rows, problems, warned
):
    skip_games(monkeypatch)
    report = check_board(folder(**{"holdout.csv": label_file(np.arange(rows) % 2)}))
    assert [problem.code for problem in report.problems] == ["too_coarse"] * problems
    assert sum("The board is coarse" in warning for warning in report.warnings) == warned


def test_the_default_sees_a_small_error_of_a_wide_range(folder, monkeypatch):
    skip_games(monkeypatch)
    rules = "loss: {name: rmse, range: [0, 600]}\n" + BASE
    report = check_board(folder(**{"board.yaml": rules, "holdout.csv": label_file(SPREAD)}))
    assert report.ok
    first, third, _ = report.promise.resolution.gains
    assert first < third < report.promise.baseline.risk / 4


def test_a_strong_baseline_leaves_less_possible_gain(folder, monkeypatch):
    skip_games(monkeypatch)
    close = "\n".join(
        ["id,prediction", *(f"{index},{value + 1}" for index, value in enumerate(SPREAD)), ""]
    )
    rules = "loss: {name: mae, range: [0, 600]}\nquestions: 1000\nteams: 1\n"
    rules += "mechanism: {name: ladder, step: 0.01}\n"
    rules += "baselines: [{name: close, file: close.csv}]\n"
    files = {"board.yaml": rules, "holdout.csv": label_file(SPREAD), "close.csv": close}
    assert [problem.code for problem in check_board(folder(**files)).problems] == ["too_coarse"]


@pytest.mark.parametrize(
    ("loss", "name"),
    [("accuracy", "accuracy"), ("error", "error"), ("{name: mae, range: [0, 1]}", "MAE")],
)
def test_the_promise_is_in_the_metric(folder, monkeypatch, loss, name):
    skip_games(monkeypatch)
    rules = f"loss: {loss}\n{BASE}mechanism: {{name: ladder, step: 0.05}}\n"
    rows = label_file(np.arange(3_000) % 2)
    report = check_board(folder(**{"board.yaml": rules, "holdout.csv": rows}))
    first, *_, last = report.promise.sentences
    assert first.startswith(f"Near {name} ")
    assert f"the true {name} of the best model lies between" in last


def test_a_plan_and_a_check_say_the_same_figures(folder, monkeypatch):
    from ladderboard.bounds import plan

    skip_games(monkeypatch)
    rules = RULES.replace("questions: 100", "questions: 1000").replace("teams: 5", "teams: 20")
    path = folder(**{"board.yaml": rules, "holdout.csv": label_file(np.arange(2_000) % 2)})
    promise = check_board(path).promise
    planned = plan(n=2_000, questions=1_000, teams=20)
    assert promise.sentences[:3] == planned.shown
    assert planned.default.endswith(promise.sentences[3])
    assert promise.resolution == planned.resolution

    (path / "board.yaml").write_text(rules.replace("teams: 20", "teams: 1"))
    promise = check_board(path).promise
    figures = {row.name: row.found for row in plan(n=2_000, questions=1_000).rows}
    # A board's certificate pays a little more, as its ladders and its budget may grow.
    assert promise.likely.error == pytest.approx(
        figures["growing ladder, after 8 changes"], rel=0.03
    )
    assert promise.changes == 8


def data_file(header, values, ids=None):
    rows = [f"{index if ids is None else ids[index]},{value}" for index, value in enumerate(values)]
    return "\n".join([header, *rows, ""])


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("h.csv", lambda labels: data_file("id,label", labels)),
        ("h.txt", lambda labels: data_file("x,y", labels, ids=["?"] * 300)),  # rows in order
        ("h.tsv", lambda labels: data_file("id,ill", labels).replace(",", "\t")),
        ("words.csv", lambda labels: data_file("id,ill", [f"class {label}" for label in labels])),
        ("public.csv", lambda labels: data_file("id,label", labels[:100])),
        ("h.jsonl", lambda labels: "".join(f'{{"key": {row}, "y": {label}}}\n'
                                           for row, label in enumerate(labels))),
    ],
)  # fmt: skip
def test_labels_among_the_data_for_participants_are_a_problem(folder, monkeypatch, name, make):
    skip_games(monkeypatch)
    labels = np.random.default_rng(0).integers(2, size=300)  # those of the holdout
    files = {f"data/{name}": make(labels.tolist()), "data/readme.md": "# Hello"}
    report = check_board(folder(**files))
    assert [problem.code for problem in report.problems] == ["holds_labels"]
    assert f"data/{name}: the column" in report.problems[0].message
    listed = next(fact for fact in report.facts if "can download" in fact)
    assert listed.startswith("Participants can download")
    assert name in listed
    assert "readme.md (7 bytes)" in listed


def test_other_data_for_participants_is_no_problem(folder, monkeypatch):
    skip_games(monkeypatch)
    labels = np.random.default_rng(0).integers(2, size=300)
    noisy = labels.copy()
    noisy[7] ^= 1
    files = {
        "data/train.csv": data_file("id,label", 1 - labels[::-1]),
        "data/test.csv": data_file("id,feature", noisy),
        "data/broken.csv": 'id,"label\n1',
        "data/image.parquet": b"PAR1 not a table",
        "data/ids.csv": predictions(),
        "data/archive.zip": b"PK",
    }
    assert check_board(folder(**files)).ok


def test_numbers_among_the_data_are_compared_as_numbers(folder, monkeypatch):
    skip_games(monkeypatch)
    values = np.random.default_rng(1).normal(size=300).round(3)
    files = {
        "board.yaml": "metric: {name: mae, range: [-9, 9]}\n" + BASE,
        "holdout.csv": label_file(values),
        "data/features.csv": label_file(np.arange(300) / 7),
    }
    path = folder(**files)
    assert check_board(path).ok
    (path / "data/leak.csv").write_text(label_file([f"{value:.4f}" for value in values]))
    assert "data/leak.csv: the column 'label' holds" in check_board(path).problems[0].message


def auc_folder(folder, positives, n=3_000, name="digits", **files):
    """Return a folder with a shuffled 60/40 split, scored by AUC."""
    rng = np.random.default_rng(3)
    labels = rng.permutation(np.arange(n) < positives).astype(int)
    split = rng.permutation(np.repeat(["public", "private"], [n * 3 // 5, n - n * 3 // 5]))
    rows = [
        f"{at},{label},{part}" for at, (label, part) in enumerate(zip(labels, split, strict=True))
    ]
    files = {
        "board.yaml": "metric: roc_auc\nsubmissions: 1000\nteams: 20\n",
        "holdout.csv": "\n".join(["id,label,split", *rows]),
        **files,
    }
    return folder(name, **files)


def test_gains_by_auc_follow_the_numbers_of_each_class(folder):
    reports = {
        positives: check_board(auc_folder(folder, positives, name=f"p{positives}"))
        for positives in (6, 360, 1_500)
    }
    gains = {key: report.promise.resolution.gains[0] for key, report in reports.items()}
    # The standard error of an AUC of 0.8 is about 0.0155 with 216 of 1,800 positive; the ladder
    # rounds it up to 0.0172.
    assert 0.025 < gains[360] < 0.031
    assert gains[1_500] < 0.8 * gains[360]
    assert gains[6] > 4 * gains[360]
    assert re.search(
        r"Near AUC 0.80, gains smaller than about 0.02\d may not", " ".join(reports[360].lines)
    )
    rare = "Classes have few examples: "
    assert not any(rare in warning for key in (360, 1_500) for warning in reports[key].warnings)
    warning = next(warning for warning in reports[6].warnings if rare in warning)
    assert re.search(r"\d public rows? of class 1 and \d private rows? of class 1", warning)
    again = check_board(auc_folder(folder, 360, name="again"))  # the same labels, the same numbers
    assert again.promise.resolution == reports[360].promise.resolution


def test_a_better_baseline_is_that_near_which_gains_are_stated(folder):
    rng = np.random.default_rng(0)
    path = auc_folder(folder, 360)
    rows = [line.split(",") for line in (path / "holdout.csv").read_text().splitlines()[1:]]
    scores = [f"{row[0]},{rng.normal() + 2.5 * float(row[1])}" for row in rows]
    (path / "good.csv").write_text("\n".join(["id,prediction", *scores]))
    rules = (path / "board.yaml").read_text() + "baselines: [{name: good, file: good.csv}]\n"
    (path / "board.yaml").write_text(rules)
    report = check_board(path)
    assert "Near AUC 0.96" in " ".join(report.lines)
    assert report.promise.baseline == report.promise.typical


def test_a_metric_without_groups_gets_no_advice_to_group(folder):
    path = auc_folder(folder, 360)
    text = " ".join(line.strip() for line in check_board(path).lines)
    assert "AUC takes no groups: intervals are too narrow then" in text
    assert "name it in a column `group`" not in text
    assert "There is no end: it takes submissions until you close it." in text
    (path / "board.yaml").write_text((path / "board.yaml").read_text() + DEADLINE)
    assert "There is no end" not in str(check_board(path))


@pytest.mark.parametrize(
    ("metric", "labels", "positive", "warned"),
    [
        ("f1", ("churned", "stayed"), "'stayed'", True),
        ("{name: F1, classes: [stayed, churned]}", ("churned", "stayed"), "'churned'", False),
        ("f1", (0, 1), "1", False),
    ],
)
def test_the_positive_class_is_named_and_a_guessed_one_is_a_warning(
    folder, monkeypatch, metric, labels, positive, warned
):
    skip_games(monkeypatch)
    rules = f"metric: {metric}\n{BASE}"
    report = check_board(folder(**{"board.yaml": rules, "holdout.csv": label_file(labels * 100)}))
    assert f"F1 is computed for class {positive}." in report.facts
    remedy = "For class churned, write metric: {name: F1, classes: [stayed, churned]}."
    assert [text.endswith(remedy) for text in report.warnings if "alphabet" in text] == (
        [True] if warned else []
    )
