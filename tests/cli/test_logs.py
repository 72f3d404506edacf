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
    """Output of lm-evaluation-harness in the working directory."""
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    for path in tmp_path.glob("samples_*"):
        name = "written.jsonl" if "written" in path.name else "sums.jsonl"
        shutil.copy(path, tmp_path / name)
    return tmp_path


@pytest.fixture
def guard(run_guard, samples):
    arguments = ("--lm-eval", "sums.jsonl", *EXACT, "--ladders", "2")
    assert run_guard("create", "scores.db", *arguments).code == 0
    return samples


def test_a_guard_is_created_from_the_ids_in_a_log(run_guard, samples):
    result = run_guard("create", "new.db", "--lm-eval", "sums.jsonl", "--questions", "5")
    output = " ".join(result.out.split())
    assert "new.db is created: 12 examples, 5 questions." in output
    assert "--labels TABLE and --loss score" in output
    assert "of its dataset" not in output
    assert output.endswith("Next: ladderboard guard ask new.db --lm-eval FILE")
    report = run_guard("create", "other.db", "--lm-eval", "sums.jsonl", *EXACT, "--json").json
    assert (report["n"], report["loss"]) == (12, {"loss": "shortfall"})
    assert lb.Holdout.open("other.db").remaining == 5


def test_create_warns_about_a_log_that_may_be_truncated(run_guard, samples):
    (log_path,) = samples.glob("samples_sums_2*.jsonl")
    lines = log_path.read_bytes().splitlines(keepends=True)
    (samples / "sums.jsonl").write_bytes(b"".join(lines[:7]))  # where a line ends
    cut = " ".join(run_guard("create", "cut.db", "--lm-eval", "sums.jsonl", *EXACT).out.split())
    assert "Warning: the log may be incomplete. The guard has its 7" in cut
    assert "Warning" not in run_guard("create", "new.db", "--lm-eval", log_path.name, *EXACT).out
    log_path.write_bytes(b"".join(lines[:7]))
    refused = run_guard("create", "other.db", "--lm-eval", log_path.name, *EXACT)
    assert (refused.code, "it was cut off" in refused.err) == (2, True)


def test_ask_with_logs(run_guard, guard):
    scores = run_guard("ask", "scores.db", "--lm-eval", "sums.jsonl")
    assert scores == (0, "The best is now score 0.25. 4 questions left.\n", "")
    result = run_guard("ask", "scores.db", "--lm-eval", "sums.jsonl", "--metric", "acc,none")
    assert "3 questions left" in result.out  # equal scores are another question
    second_ladder = run_guard(
        "ask", "scores.db", "--lm-eval=sums.jsonl", "--metric=acc_norm", "--ladder=b"
    )
    assert second_ladder.out.startswith("The best is now score 0.16")
    options = ["--ladder=b", "--fail-unless-improved", "--json", "--summary", "summary.md"]
    gate = run_guard("ask", "scores.db", "--lm-eval=sums.jsonl", "--metric=acc_norm,none", *options)
    assert (gate.json["again"], gate.json["remaining"], gate.code) == (False, 1, 1)
    assert (guard / "summary.md").exists()


def test_scores_in_a_table_are_accepted(run_guard, guard):
    ids = [id_.split(",")[0] for id_ in _ids(guard)]
    (guard / "scores.csv").write_text("id,score\n" + "".join(f"{id_},0.5\n" for id_ in ids))
    assert (
        run_guard("ask", "scores.db", "scores.csv").out
        == "The best is now score 0.5. 4 questions left.\n"
    )


def _ids(folder):
    from ladderboard.adapters.lm_eval import read_samples

    return read_samples(folder / "sums.jsonl").ids


def test_a_guard_is_created_from_a_table_of_ids_and_groups(run_guard, samples):
    rows = "".join(f"{id_},{index // 2}\n" for index, id_ in enumerate(_ids(samples)))
    (samples / "ids.csv").write_text(f"id,group\n{rows}")
    result = run_guard("create", "new.db", "--labels", "ids.csv", "--loss", "score", *EXACT)
    assert "12 examples in 6 groups" in result.out
    assert result.out.rstrip().endswith("SCORES.csv")
    assert run_guard("ask", "new.db", "--lm-eval", "sums.jsonl").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
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
            "None of the ids is in the holdout",
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
def test_refused_logs_use_no_question(run_guard, guard, arguments, message):
    result = run_guard(*arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert not (guard / "new.db").exists()
    assert lb.Holdout.open("scores.db").remaining == 5


def test_predictions_and_scores_never_share_a_guard(run_guard, guard_folder, samples):
    result = run_guard("ask", "guard.db", "--lm-eval", "sums.jsonl")
    assert result.code == 2
    assert "cannot share a ladder" in result.err
    assert "ladderboard guard create NEW.db --inspect LOG --questions K" in result.err
    assert lb.Holdout.open("guard.db").remaining == 5


def test_without_inspect_the_installation_command_is_shown(run_guard, guard, monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    result = run_guard("ask", "scores.db", "--inspect", "log.eval")
    assert result.code == 2
    assert "needs inspect_ai: pip install 'ladderboard[inspect]'" in result.err


@pytest.fixture
def log(monkeypatch):
    """Stand in for an Inspect log whose name is its number of errors."""
    calls = []

    def read(path, **options):
        calls.append(options)
        values = np.array([float(index >= int(path.stem)) for index in range(400)])
        return Scores(tuple(map(str, range(400))), values, "match", dataset_size=500)

    monkeypatch.setattr(inspect, "read_log", read)
    return calls


def test_options_choose_the_score_in_a_log(run_guard, log):
    result = run_guard("create", "guard.db", "--inspect", "0.eval", "--metric", "match", *EXACT)
    assert "The log has 400 of the 500 examples of its dataset." in " ".join(result.out.split())
    assert result.out.rstrip().endswith("guard ask guard.db --inspect LOG")
    assert run_guard("ask", "guard.db", "--inspect", "100.eval").out.startswith(
        "The best is now score 0.75."
    )
    run_guard("ask", "guard.db", "--inspect", "80.eval", "--metric", "grader/kind,mean")
    assert log == [
        {"metric": "match", "reducer": None},
        {"metric": None, "reducer": None},
        {"metric": "grader/kind", "reducer": "mean"},
    ]


def test_an_evaluator_submits_a_log_for_a_team(run_cli, live_server, log, monkeypatch):
    slug = f"{live_server.slug}-scores"
    live_server.create_board(slug, loss="score")
    team, token = live_server.join("Ada", slug)
    monkeypatch.setenv("LADDERBOARD_URL", live_server.url)
    monkeypatch.setenv("LADDERBOARD_TOKEN", token)
    without_team = run_cli("submit", slug, "--inspect", "60.eval")
    assert (without_team.code, without_team.out) == (2, "")
    assert "evaluators only" in without_team.err
    monkeypatch.setenv("LADDERBOARD_TOKEN", live_server.issue_token("evaluator", slug))
    result = run_cli("submit", slug, "--inspect", "60.eval", "--team", team, "-m", "a log")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("A new best: score ")
    report = run_cli("submit", slug, "--inspect", "60.eval", "--team", team, "--json").json
    assert (report["released"], report["loss"], report["question"]) == (0.8, 0.2, 2)
    with_file = run_cli("submit", slug, "--inspect", "60.eval", "-f", "a.csv", "--team", team)
    assert "leave out -f and --format" in with_file.err
    rows = "".join(f"{index},{int(index >= 60)}\n" for index in range(400))
    Path("scores.csv").write_text(f"id,score\n{rows}")
    file = run_cli("submit", slug, "-f", "scores.csv", "--team", team, "--json").json
    assert (file["released"], file["question"], file["again"]) == (0.8, 3, False)


def test_a_prediction_board_refuses_scores(run_cli, live_server, log, monkeypatch):
    team, _ = live_server.join("Ada")
    monkeypatch.setenv("LADDERBOARD_URL", live_server.url)
    monkeypatch.setenv("LADDERBOARD_TOKEN", live_server.issue_token("evaluator"))
    result = run_cli("submit", live_server.slug, "--inspect", "60.eval", "--team", team)
    assert (result.code, result.out) == (2, "")
    assert "This board takes predictions" in result.err
    assert "`loss: score` in its board.yaml" in result.err
    nothing = run_cli("submit", live_server.slug, "--team", team)
    assert (nothing.code, nothing.out) == (2, "")
    assert "Give predictions with -f FILE" in nothing.err
    board = live_server.call("GET", f"/boards/{live_server.slug}", live_server.organiser).json()
    assert board["used"] == 0


def test_a_gate_takes_logs(run_cli, samples, log):
    log_options = {"lm-eval": ("sums.jsonl", "sums.jsonl"), "inspect": ("100.eval", "20.eval")}
    for option, (old, new) in log_options.items():
        file = f"{option}.db"
        created = run_cli("gate", "create", file, f"--{option}", old, "--looks", "5")
        assert created.code == 0
        assert f"ladderboard gate promote {file} --{option} " in created.out
        assert run_cli("gate", "promote", file, f"--{option}", old).code == 0
        verdict = run_cli("gate", "check", file, f"--{option}", new, "--json").json
        assert verdict["outcome"] == ("better" if option == "inspect" else "cannot_tell")
        assert verdict["differing"] is None
