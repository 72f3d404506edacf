"""Scores from the log of an evaluation: ``guard create``, ``guard ask`` and ``submit``."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.adapters import Scores, inspect

DATA = Path(__file__).parents[1] / "adapters/data/lm_eval"
EXACT = ("--questions", "5", "--mechanism", "exact")


@pytest.fixture
def samples(tmp_path):
    """What a run of lm-evaluation-harness wrote, in the folder where the program runs."""
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    for path in tmp_path.glob("samples_*"):
        name = "written.jsonl" if "written" in path.name else "sums.jsonl"
        shutil.copy(path, tmp_path / name)
    return tmp_path


@pytest.fixture
def guard(run, samples):
    words = ("--lm-eval", "sums.jsonl", *EXACT, "--ladders", "2")
    assert run("create", "scores.db", *words).code == 0
    return samples


def test_a_guard_is_made_of_the_ids_in_a_log(run, samples):
    said = run("create", "new.db", "--lm-eval", "sums.jsonl", "--questions", "5")
    told = " ".join(said.out.split())
    assert "new.db is created: 12 examples; 5 questions on 1 ladder." in told
    assert "Loss: shortfall." in told
    assert "Secret: risks and the noise key." in told
    assert "--labels TABLE and --loss score" in told
    assert "of its dataset" not in told
    assert told.endswith("Next: ladderboard guard ask new.db --lm-eval FILE")
    found = run("create", "other.db", "--lm-eval", "sums.jsonl", *EXACT, "--json").json
    assert (found["n"], found["loss"]) == (12, {"loss": "shortfall"})
    assert lb.Holdout.open("other.db").remaining == 5


def test_a_log_that_may_have_been_cut_off_is_warned_of(run, samples):
    (whole,) = samples.glob("samples_sums_2*.jsonl")
    lines = whole.read_bytes().splitlines(keepends=True)
    (samples / "sums.jsonl").write_bytes(b"".join(lines[:7]))  # where a line ends
    cut = " ".join(run("create", "cut.db", "--lm-eval", "sums.jsonl", *EXACT).out.split())
    assert "Warning: the log may be incomplete. The guard has its 7" in cut
    assert "Warning" not in run("create", "new.db", "--lm-eval", whole.name, *EXACT).out
    whole.write_bytes(b"".join(lines[:7]))
    refused = run("create", "other.db", "--lm-eval", whole.name, *EXACT)
    assert (refused.code, "it was cut off" in refused.err) == (2, True)


def test_asked_with_logs(run, guard):
    scores = run("ask", "scores.db", "--lm-eval", "sums.jsonl")
    assert scores == (0, "The best is now 0.75; 4 questions left.\n", "")
    again = run("ask", "scores.db", "--lm-eval", "sums.jsonl", "--metric", "acc,none")
    assert "asked before, as question 1" in again.out
    other = run("ask", "scores.db", "--lm-eval=sums.jsonl", "--metric=acc_norm", "--ladder=b")
    assert other.out.startswith("The best is now 0.83")
    gate = run("ask", "scores.db", "--lm-eval=sums.jsonl", "--metric=acc_norm,none", "--ladder=b",
               "--fail-unless-improved", "--json", "--summary", "summary.md")  # fmt: skip
    assert gate.json["again"] is True
    assert (guard / "summary.md").exists()


def test_scores_as_a_table_are_asked_as_predictions_are(run, guard):
    ids = [id_.split(",")[0] for id_ in _ids(guard)]
    (guard / "scores.csv").write_text("id,score\n" + "".join(f"{id_},0.5\n" for id_ in ids))
    assert run("ask", "scores.db", "scores.csv").out == "The best is now 0.5; 4 questions left.\n"


def _ids(folder):
    from ladderboard.adapters.lm_eval import read_samples

    return read_samples(folder / "sums.jsonl").ids


def test_a_table_of_ids_and_groups_in_place_of_a_log(run, samples):
    rows = "".join(f"{each},{at // 2}\n" for at, each in enumerate(_ids(samples)))
    (samples / "ids.csv").write_text(f"id,group\n{rows}")
    made = run("create", "new.db", "--labels", "ids.csv", "--loss", "score", *EXACT)
    assert "12 examples in 6 groups" in made.out
    assert made.out.rstrip().endswith("SCORES.csv")
    assert run("ask", "new.db", "--lm-eval", "sums.jsonl").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ask", "scores.db"], "Give predictions"),
        (["ask", "scores.db", "a.csv", "--lm-eval", "sums.jsonl"], "leave out predictions and"),
        (
            ["ask", "scores.db", "--lm-eval", "sums.jsonl", "--format", "csv"],
            "leave out predictions",
        ),
        (["ask", "scores.db", "--lm-eval", "a", "--inspect", "b"], "Give one log"),
        (["ask", "scores.db", "a.csv", "--metric", "acc"], "--metric needs a log"),
        (["ask", "scores.db", "--lm-eval", "sums.jsonl", "--metric", "acc,"], "got 'acc,'"),
        (["ask", "scores.db", "--lm-eval", "sums.jsonl", "--metric", ",none"], "got ',none'"),
        (["ask", "scores.db", "--lm-eval", "sums.jsonl", "--metric", ""], "got ''"),
        (["ask", "scores.db", "--lm-eval", "written.jsonl"], "METRIC,FILTER"),
        (
            ["ask", "scores.db", "--lm-eval", "written.jsonl", "--metric", "exact_match,loose"],
            "No id is one of the holdout's",
        ),
        (["create", "new.db", *EXACT], "give one of --labels"),
        (["create", "new.db", "--labels", "a", "--lm-eval", "sums.jsonl", *EXACT], "give one of"),
        (
            ["create", "new.db", "--lm-eval", "sums.jsonl", "--loss", "brier", *EXACT],
            "the loss must be score; got --loss 'brier'",
        ),
        (["create", "new.db", "--lm-eval=sums.jsonl", "--kind=text", *EXACT], "leave out --kind"),
        (["create", "new.db", "--lm-eval=sums.jsonl", "--k", "2", *EXACT], "takes no --k"),
        (["create", "new.db", "--lm-eval=none.jsonl", *EXACT], "There is no file none.jsonl"),
    ],
)
def test_refusals_cost_nothing(run, guard, words, said):
    done = run(*words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert not (guard / "new.db").exists()
    assert lb.Holdout.open("scores.db").remaining == 5


def test_predictions_and_scores_never_share_a_guard(run, made, samples):
    done = run("ask", "guard.db", "--lm-eval", "sums.jsonl")
    assert done.code == 2
    assert "cannot share a ladder" in done.err
    assert "ladderboard guard create NEW.db --inspect LOG --questions K" in done.err
    assert lb.Holdout.open("guard.db").remaining == 5


def test_without_inspect_the_command_is_told(run, guard, monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    done = run("ask", "scores.db", "--inspect", "log.eval")
    assert done.code == 2
    assert "needs inspect_ai: pip install 'ladderboard[inspect]'" in done.err


@pytest.fixture
def log(monkeypatch):
    """A log of Inspect with so many of the example board's rows wrong."""
    asked = []

    def read(path, **which):
        asked.append(which)
        values = np.array([float(at >= int(path.stem)) for at in range(400)])
        return Scores(tuple(map(str, range(400))), values, "match", dataset_size=500)

    monkeypatch.setattr(inspect, "read_log", read)
    return asked


def test_which_score_of_a_log(run, log):
    made = run("create", "guard.db", "--inspect", "0.eval", "--metric", "match", *EXACT)
    assert "The log has 400 of the 500 examples of its dataset." in " ".join(made.out.split())
    assert made.out.rstrip().endswith("guard ask guard.db --inspect LOG")
    assert run("ask", "guard.db", "--inspect", "100.eval").out.startswith("The best is now 0.25;")
    run("ask", "guard.db", "--inspect", "80.eval", "--metric", "grader/kind,mean")
    assert log == [
        {"metric": "match", "reducer": None},
        {"metric": None, "reducer": None},
        {"metric": "grader/kind", "reducer": "mean"},
    ]


def test_an_evaluator_submits_a_log_for_a_team(program, live_server, log, monkeypatch):
    slug = f"{live_server.slug}-scores"
    live_server.create_board(slug, loss="score")
    team, token = live_server.join("Ada", slug)
    monkeypatch.setenv("LADDERBOARD_URL", live_server.url)
    monkeypatch.setenv("LADDERBOARD_TOKEN", token)
    own = program("submit", slug, "--inspect", "60.eval")
    assert (own.code, own.out) == (2, "")
    assert "evaluators only" in own.err
    monkeypatch.setenv("LADDERBOARD_TOKEN", live_server.issue_token("evaluator", slug))
    done = program("submit", slug, "--inspect", "60.eval", "--team", team, "-m", "a log")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("A new best: score ")
    again = program("submit", slug, "--inspect", "60.eval", "--team", team, "--json").json
    assert (again["released"], again["loss"], again["question"]) == (0.8, 0.2, 1)
    both = program("submit", slug, "--inspect", "60.eval", "-f", "a.csv", "--team", team)
    assert "leave out -f and --format" in both.err
    rows = "".join(f"{at},{int(at >= 60)}\n" for at in range(400))
    Path("scores.csv").write_text(f"id,score\n{rows}")
    file = program("submit", slug, "-f", "scores.csv", "--team", team, "--json").json
    assert (file["released"], file["question"], file["again"]) == (0.8, 1, True)


def test_a_board_of_predictions_is_sent_no_scores(program, live_server, log, monkeypatch):
    team, _ = live_server.join("Ada")
    monkeypatch.setenv("LADDERBOARD_URL", live_server.url)
    monkeypatch.setenv("LADDERBOARD_TOKEN", live_server.issue_token("evaluator"))
    done = program("submit", live_server.slug, "--inspect", "60.eval", "--team", team)
    assert (done.code, done.out) == (2, "")
    assert "This board takes predictions" in done.err
    assert "`loss: score` in its board.yaml" in done.err
    nothing = program("submit", live_server.slug, "--team", team)
    assert (nothing.code, nothing.out) == (2, "")
    assert "Give predictions with -f FILE" in nothing.err
    shown = live_server.call("GET", f"/boards/{live_server.slug}", live_server.organiser).json()
    assert shown["used"] == 0
