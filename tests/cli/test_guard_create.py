"""``guard create``: what is made, what is promised, and what is refused before anything is."""

import json
import stat

import pytest

import ladderboard as lb


def test_what_is_made_is_what_was_said(run, made):
    words = ("create", "new.db", "--labels", "labels.csv", "--questions", "1e2", "--json")
    found = run(*words).json
    guard = lb.Holdout.open("new.db")
    opening = guard.status().opening
    assert found["mechanism"] == lb.ShakyLadder.calibrated(400, 100).describe()
    assert (found["n"], found["questions"], found["beta"]) == (400, 100, 0.05)
    assert (found["commitment"], found["head"]) == (opening["commitment"], guard.head)
    assert found["loss"] == {"loss": "zero_one", "classes": [0, 1]}
    assert found["encrypted"] is False
    before = lb.bounds.certificate(
        400, 100, None, guard.meter.mechanism, ladders=1, opened=1, amendable=True
    ).describe()
    assert found["bound"] == json.loads(json.dumps(before))
    guard.close()
    assert sorted(path.name for path in made.glob("new*")) == ["new.db", "new.db.mark"]
    assert stat.S_IMODE((made / "new.db").stat().st_mode) == 0o600


def test_ladders_are_declared(run, made):
    words = ("--labels", "labels.csv", "--questions", "100", "--json")
    one = run("create", "one.db", *words).json
    few = run("create", "few.db", *words, "--ladders", "10").json
    assert (one["ladders"], few["ladders"]) == (1, 10)
    assert few["mechanism"] == lb.ShakyLadder.calibrated(400, 100, teams=10).describe()
    before = lb.bounds.certificate(
        400, 100, None, lb.mechanism(few["mechanism"]), ladders=10, opened=10, amendable=True
    )
    assert few["bound"] == json.loads(json.dumps(before.describe()))
    done = run("create", "many.db", *words, "--ladders", "101")
    assert (done.code, done.json["error"]["code"]) == (2, "invalid_setting")
    assert not (made / "many.db").exists()
    assert run("ask", "one.db", "good.csv", "--ladder", "a").code == 0
    done = run("ask", "one.db", "good.csv", "--ladder", "b", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "too_many_ladders")
    assert "--ladders 2" in done.json["error"]["message"]
    assert run("status", "one.db", "--json").json["remaining"] == 99


def test_classes_are_taken_from_the_labels_and_said(run, made):
    words = ("--labels", "labels.csv", "--questions", "5")
    said = " ".join(run("create", "new.db", *words).out.split())
    assert "Loss: zero_one (classes 0, 1)." in said
    assert "The classes were taken from the labels, and are public; any other prediction" in said
    said = " ".join(run("create", "declared.db", *words, "--classes", "0,1,2").out.split())
    assert "taken from the labels" not in said
    said = " ".join(run("create", "any.db", *words, "--classes", "any").out.split())
    assert "A prediction that is not a class is accepted, and surely wrong." in said
    assert lb.Holdout.open("any.db").loss == lb.loss("zero_one", classes="any")


def test_splits_are_of_boards(run, made):
    rows = "".join(f"{at},{at % 2},{'private' if at < 100 else 'public'}\n" for at in range(400))
    (made / "split.csv").write_text(f"id,label,split\n{rows}")
    words = ("--labels", "split.csv", "--questions", "5")
    said = " ".join(run("create", "new.db", *words).out.split())
    assert said.startswith("The column split is not used by a guard: all 400 rows count.")
    assert run("create", "other.db", *words, "--json").json["unused"] == ["split"]
    words = ("create", "plain.db", "--labels", "labels.csv", "--questions", "5")
    assert run(*words, "--json").json["unused"] == []


def test_a_person_is_told_what_is_promised(run, made):
    ladder = '{"mechanism": "ladder", "step": 0.02}'
    words = ("--labels", "labels.csv", "--questions", "5", "--beta", "0.1", "--mechanism", ladder)
    said = " ".join(run("create", "new.db", *words).out.split())
    assert "new.db is created: 400 labels; 5 questions on 1 ladder." in said
    assert "Answered by: ladder (step 0.02). Gains below about 0.02 may go unseen." in said
    assert "Guaranteed in advance, whatever is asked: With probability at least 0.9," in said
    assert " Public: " in said
    assert "--key-file would encrypt them." in said
    assert "Are the rows independent of each other?" in said
    assert said.endswith("Next: ladderboard guard ask new.db PREDICTIONS.csv")
    assert run("ask", "new.db", "half.csv").code == 0


def test_groups_are_counted_and_not_asked_for(run, made):
    rows = "".join(f"{at},{at % 2},patient {at // 4}\n" for at in range(400))
    (made / "grouped.csv").write_text(f"id,label,group\n{rows}")
    words = ("create", "new.db", "--labels", "grouped.csv", "--questions", "5")
    said = run(*words).out
    assert "400 labels in 100 groups" in said
    assert "independent" not in said


def test_an_encrypted_guard_says_what_opens_it(run, made):
    words = ("--labels", "labels.csv", "--questions", "5", "--key-file", "my.key")
    said = run("create", "new.db", *words).out
    assert said.endswith("ladderboard guard ask new.db PREDICTIONS.csv --key-file my.key\n")
    secret = (made / "my.key").read_text().strip()
    assert secret not in said
    assert run("create", "second.db", *words, "--json").json["encrypted"] is True
    assert (made / "my.key").read_text().strip() == secret


@pytest.mark.parametrize(
    ("labels", "words", "loss"),
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
def test_a_loss_is_described_by_options(run, tmp_path, labels, words, loss):
    (tmp_path / "few.csv").write_text("label\n" + "\n".join(labels.split(" ")) + "\n")
    fine = ("--mechanism", '{"mechanism": "ladder", "step": 0.001}')  # for two labels
    words = ("--labels", "few.csv", "--questions", "2", *fine, *words)
    done = run("create", "new.db", *words, "--json")
    assert done.json["loss"] == json.loads(json.dumps(loss.describe()))


REFUSED = {
    "there already": (["--labels", "labels.csv"], "exists already"),
    "no labels": (["--labels", "nothing.csv"], "could not be opened"),
    "not labels": (["--labels", "half.csv"], "no column named label"),
    "no questions": (["--questions", "0"], "questions must be"),
    "half a question": (["--questions", "0.5"], "Expected a whole number"),
    "a metric": (["--loss", "f1"], "F1 is not a mean of bounded per-example losses"),
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
}


@pytest.mark.parametrize(("words", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_made_leaves_nothing(run, made, words, sentence):
    file = "guard.db" if words == ["--labels", "labels.csv"] else "new.db"
    file, words = (words[0], []) if words[0].startswith("http") else (file, words)
    others = {"--labels": "labels.csv", "--questions": "5"}
    for name, value in others.items():
        words = words if name in words else [*words, name, value]
    before = {path.name: path.read_bytes() for path in made.iterdir()}
    done = run("create", file, *words)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    error = run("create", file, *words, "--json")
    assert error.code == 2
    assert sentence in error.json["error"]["message"]
    assert {path.name: path.read_bytes() for path in made.iterdir()} == before


def test_a_mark_of_another_guard_stays(run, made):
    """The refusal explains what the mark of a deleted guard is for."""
    (made / "guard.db").unlink()
    before = (made / "guard.db.mark").read_bytes()
    done = run("create", "guard.db", "--labels", "labels.csv", "--questions", "5")
    assert done.code == 2
    assert "guard.db.mark exists already" in done.err
    assert (made / "guard.db.mark").read_bytes() == before


def test_a_directory_that_is_not_there_is_4(run, made):
    done = run("create", "nowhere/new.db", "--labels", "labels.csv", "--questions", "5", "--json")
    assert (done.code, done.json["error"]["code"]) == (4, "storage_failed")


@pytest.mark.parametrize(("spread", "warned"), [(10, True), (2_000, False)])
def test_answers_too_coarse_for_the_labels_are_warned_of(run, made, spread, warned):
    rows = "".join(f"{at},{5_000 + spread * (at % 2)}\n" for at in range(400))
    (made / "prices.csv").write_text(f"id,label\n{rows}")
    words = ("--labels", "prices.csv", "--questions", "5", "--loss", "mae", "--range", "0,10000")
    ladder = ("--mechanism", '{"mechanism": "ladder", "step": 0.02}', "--json")
    done = run("create", "new.db", *words, *ladder)
    said = " ".join(done.err.split())
    assert ("Warning: the answers are too coarse for these labels." in said) is warned
    assert "0.0005" not in done.out  # what tells of labels is not in what a program passes on
    assert ("has a loss of 0.0005, and gains below 0.02 may go unseen" in said) is warned
