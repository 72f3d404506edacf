"""The command line: help, numbers, refusals, missing libraries and interrupted experiments."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

import ladderboard as lb

BOARD = ["new", "check", "create", "list", "show", "pause", "resume", "amend", "data", "close"]
BOARD += ["token", "tokens", "webhooks", "dump", "restore", "keygen"]
TEAM = ["add", "list", "invite", "rotate-token", "revoke", "disqualify", "reinstate"]
TEAM += ["erase", "merge", "registrations", "approve", "reject", "organiser"]
CLIENT = ["login", "submit", "submissions", "leaderboard", "ledger", "members", "invite", "terms"]
HEADINGS = {
    "Take part in a board": CLIENT,
    "Run boards": ["board", "team", "serve", "backup", "settings", "doctor"],
    "Guard a test set": ["guard", "gate", "grade", "mcp"],
    "Plan and check": ["plan", "verify"],
    "Research": ["attack", "experiment", "calibrate"],
}
GATE = ["create", "promote", "check", "status", "export", "restore", "backup", "serve"]
VERBS = {
    "": [verb for verbs in HEADINGS.values() for verb in verbs],
    "backup": ["create", "check", "restore"],
    **{f"backup {verb}": [] for verb in ("create", "check", "restore")},
    "settings": [],
    "doctor": [],
    "guard": ["create", "ask", "status", "export", "restore", "backup", "serve"],
    "gate": GATE,
    **{f"gate {verb}": [] for verb in GATE},
    "grade": ["serve", "reward"],
    "grade serve": [],
    "grade reward": [],
    "guard create": [],
    "guard ask": [],
    "guard status": [],
    "guard export": [],
    "guard restore": [],
    "guard backup": [],
    "guard serve": [],
    "serve": [],
    "board": BOARD,
    **{f"board {verb}": [] for verb in BOARD},
    "team": TEAM,
    **{f"team {verb}": [] for verb in TEAM},
    "attack": ["majority"],
    "attack majority": [],
    "experiment": [
        "paper",
        "shifted",
        "calibrated",
        "metrics",
        "peers",
        "faithful",
        "play",
        "arena",
    ],
    "experiment paper": [],
    "experiment shifted": [],
    "experiment calibrated": [],
    "experiment metrics": [],
    "experiment peers": [],
    "experiment faithful": [],
    "experiment play": [],
    "calibrate": [],
    "experiment arena": [],
    "plan": [],
    "mcp": [],
    "verify": [],
    **{verb: [] for verb in CLIENT},
}


def ladderboard(*arguments, **options):
    """Run the program; its output has no colours and no wraps."""
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "ladderboard", *map(str, arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=environment,
        **options,
    )


@pytest.fixture
def run_wide(run_cli, monkeypatch):
    """Run the program in this process, which is faster; no colours and no wraps."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    return run_cli


def refusal_line(code, stdout, stderr):
    """Return the one line on stderr; there is no traceback."""
    assert (code, stdout) == (2, "")
    (line,) = stderr.splitlines()
    assert line.startswith("ladderboard: ")
    return line


def command_lists(output):
    """Return the lists of commands in a help text, by their headings."""
    lists = re.split(r"^(\w.*):\n", output.partition("\nOptions:\n")[2], flags=re.MULTILINE)[1:]
    return dict(zip(lists[::2], lists[1::2], strict=True))


@pytest.mark.parametrize("verb", VERBS)
def test_help_lists_every_command_and_describes_every_option(run_wide, verb):
    code, output, _ = run_wide(*verb.split(), "--help")
    assert code == 0
    listed = "\n".join(command_lists(output).values())
    assert re.findall(r"^  ([\w-]+)", listed, re.MULTILINE) == list(VERBS[verb])
    unwrapped = re.sub(r"\n {10,}", " ", output)
    helps = re.findall(r"^  --[a-z]+(?: <\S+>)?  +(.*?)(?: +\[.*)?$", unwrapped, re.MULTILINE)
    assert helps
    assert all(text.endswith(".") and text[0].isupper() for text in helps)


@pytest.mark.parametrize("group", ["", "guard", "board", "team", "backup", "experiment"])
def test_command_summaries_fit_into_the_list(run_wide, group):
    lists = command_lists(run_wide(*group.split(), "--help").out)
    assert list(lists) == (["Commands"] if group else list(HEADINGS))
    lines = [line for text in lists.values() for line in text.splitlines() if line]
    summaries = [re.fullmatch(r"  [\w-]+ +(.*)", line)[1] for line in lines]
    assert len(summaries) == len(VERBS[group])
    assert all(len(summary) < 50 and summary.endswith(".") for summary in summaries)
    assert not any(summary.endswith("..") for summary in summaries)


def test_help_shows_arguments_by_name_only(run_wide):
    help_texts = {verb: run_wide(verb, "--help").out for verb in ("submit", "serve", "mcp")}
    assert "Usage: ladderboard submit [OPTIONS] BOARD [FILE]\n" in help_texts["submit"]
    assert re.search("^  BOARD  +The board's short name", help_texts["submit"], re.MULTILINE)
    assert "Usage: ladderboard serve [OPTIONS] [DIR]...\n" in help_texts["serve"]
    assert re.search("^  DIR  +Folders of boards", help_texts["serve"], re.MULTILINE)
    assert "--port <int>  " in help_texts["serve"]
    assert "Usage: ladderboard mcp [OPTIONS] TARGET\n" in help_texts["mcp"]


def test_the_version():
    assert ladderboard("--version").stdout == f"ladderboard {lb.__version__}\n"


def test_the_program_starts_fast():
    code = "import sys, ladderboard.cli, ladderboard.cli._app; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    heavy = {"numpy", "scipy", "numba", "matplotlib", "distributed", "ladderboard.arena"}
    assert not heavy & set(result.stdout.split())


def test_the_majority_attack_for_people():
    result = ladderboard("attack", "majority", "--n", 1000, "--k", 100, "--sigma", 0.1)
    assert result.returncode == 0
    mean, std = lb.majority_attack_moments(1000, 100, 0.1)
    assert re.search(rf"exact +{mean:.5f} +{std:.5f}", result.stdout)
    assert "sigma = 0.1, which is 0.05 on the risk" in result.stdout


def test_the_majority_attack_for_machines():
    result = ladderboard("attack", "majority", "--n", 1000, "--k", 10, "--repetitions", 3, "--json")
    data = json.loads(result.stdout)
    assert data["errors"] == lb.majority_attack(1000, 10, repetitions=3).tolist()
    assert (data["exact_mean"], data["exact_std"]) == tuple(lb.majority_attack_moments(1000, 10))


def test_a_plan_for_people_and_for_machines():
    plan = lb.bounds.plan(questions=1_000, error=0.05, beta=0.1)
    arguments = ["plan", "--questions", "1e3", "--error", "0.05", "--beta", "0.1"]
    assert ladderboard(*arguments).stdout == f"{plan}\n"
    assert json.loads(ladderboard(*arguments, "--json").stdout) == plan.describe()


def test_a_plan_speaks_the_metric():
    arguments = ["plan", "--n", "5000", "--submissions", "1000", "--metric", "ROC-AUC"]
    arguments += ["--best", "0.9", "--standard-error", "0.008"]
    output = ladderboard(*arguments).stdout
    assert output.startswith("Near AUC 0.9, gains smaller than about 0.014 may not show after")
    described = json.loads(ladderboard(*arguments, "--json").stdout)["metric"]
    assert (described["title"], described["direction"]) == ("AUC", "higher")
    assert round(described["gains"]["1"], 3) == 0.014


def test_a_plan_on_a_terminal_keeps_its_columns():
    """The longest column wraps within itself; the numbers stay whole."""
    code = (
        "import sys; sys.stdout.isatty = lambda: True\n"
        "sys.argv = 'ladderboard plan --questions 1e3 --error 0.05'.split()\n"
        "from ladderboard.cli import main\n"
        "main()\n"
    )
    environment = {**os.environ, "COLUMNS": "80", "TERM": "dumb"}
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    for row in lb.bounds.plan(questions=1_000, error=0.05).rows:
        pattern = rf"^ *{re.escape(row.name)} +{row.found:,} +{row.status} "
        assert any(re.search(pattern, line) for line in lines), row.name


def test_plan_writes_a_figure_and_prints_the_plan(tmp_path):
    arguments = ["plan", "--n", "1,000", "--questions", "10", "--plot", "plan.svg", "--json"]
    result = ladderboard(*arguments, cwd=tmp_path)
    assert json.loads(result.stdout)["n"] == 1000
    assert (tmp_path / "plan.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["attack", "majority", "--n", "0", "--k", "1"], "n must be a whole number"),
        (["attack", "majority", "--n", "9", "--k", "1", "--sigma", "-1"], "sigma must be"),
        (["plan", "--n", "1e4"], "got --n. Try --n 10000 --questions 1000."),
        (["plan", "--n", "1e4", "--error", "0.7"], "error must be a number above 0 and below 0.5"),
        (["plan", "--n", "9", "--questions", "9", "--best", "0.9"], "need a metric"),
        (["plan", "--gate", "--n", "9", "--looks", "9", "--metric", "mcc"], "--gate goes with"),
        (["plan", "--n", "9", "--questions", "9", "--plot", "plan.txt"], ".png, .svg or .pdf"),
        (["experiment", "arena", "--mechanism", "=exact"], "label before the ="),
        (["experiment", "arena", "--n", "100"], "both n and k"),
        (["experiment", "arena", "--mechanism", "laddder"], "bootstrap_ladder"),
        (["experiment", "arena", "--analyst", "nowhere:play"], "'nowhere'"),
        (["experiment", "arena", "--workers", "0"], "workers must be"),
        (["experiment", "paper", "--cluster", "here"], "address of a Dask scheduler"),
        (["experiment", "paper", "--repetitions", "0"], "repetitions must be"),
    ],
)
def test_an_invalid_request_is_one_line(run_wide, arguments, sentence):
    out_option = ["--out", "out"] if arguments[0] == "experiment" else []
    assert sentence in refusal_line(*run_wide(*arguments, *out_option))


def test_numbers_are_read_as_people_type_them():
    result = ladderboard("attack", "majority", "--n", "1e3", "--k", "1_0", "--repetitions", "1")
    assert "n = 1,000, k = 10" in result.stdout
    assert "1 repetition\n" in result.stdout
    result = ladderboard("attack", "majority", "--n", "1.5", "--k", "10")
    assert result.returncode == 2
    assert "Expected a whole number, as in 1000 or 1e3; got '1.5'" in result.stderr


def test_out_must_be_a_directory(run_wide, tmp_path):
    (tmp_path / "file").write_text("")
    result = run_wide("experiment", "paper", "--out", tmp_path / "file")
    assert "out must be a directory" in refusal_line(*result)


@pytest.mark.parametrize(
    ("missing", "arguments"),
    [
        ("typer", ["experiment", "paper", "--out", "out"]),
        ("matplotlib", ["experiment", "paper", "--out", "out"]),
        ("matplotlib", ["plan", "--n", "1000", "--questions", "10", "--plot", "plan.png"]),
    ],
)
def test_a_missing_extra_is_one_line(missing, arguments, tmp_path):
    code = (
        "import sys\n"
        f"sys.modules[{missing!r}] = None\n"
        f"sys.argv = {['ladderboard', *arguments]}\n"
        "from ladderboard.cli import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert missing in refusal_line(result.returncode, result.stdout, result.stderr)
    assert "pip install 'ladderboard[arena]'" in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [(["guard", "status", "guard.db"], "guard"), (["--help"], "client"), ([], "client")],
)
def test_without_typer_the_needed_extra_is_named(tmp_path, arguments, extra):
    code = (
        "import sys\n"
        "sys.modules['typer'] = None\n"
        f"sys.argv = {['ladderboard', *arguments]}\n"
        "from ladderboard.cli import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    message = f"typer: pip install 'ladderboard[{extra}]', in a clone '.[{extra}]'."
    assert refusal_line(result.returncode, result.stdout, result.stderr).endswith(message)


PATIENT = """
import time

def patient(game):
    time.sleep(0.1)
    game.ask(game.rng.integers(0, 2, game.n))
"""


@pytest.mark.slow
def test_calibrate_prints_the_settings_and_the_runners_up():
    arguments = ["calibrate", "--n", "400", "--questions", "50", "--quick", "--seed", "4"]
    result = ladderboard(*arguments)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("Shaky Ladder for n = 400, 50 questions, one ladder for all:")
    data = json.loads(ladderboard(*arguments, "--json").stdout)
    grids = [f"{finalist['grid']:g}" for finalist in data["finalists"]]
    rows = result.stdout.splitlines()[-len(grids) :]
    assert [row.split()[3] for row in rows] == grids
    assert data["finalists"][0]["error"] <= 1.2 * data["least_error"]
    stdout = ladderboard(*arguments, "--most", "0.1").stdout
    assert "No settings had an error of 0.1 or less; these have the least.\n" in stdout


@pytest.mark.slow
def test_calibrate_writes_a_table_for_several_sizes(tmp_path):
    out_folder = tmp_path / "table"
    arguments = ["calibrate", "--n", "100,200", "--questions", "20", "--quick", "--out", out_folder]
    result = ladderboard(*arguments, "--workers", "1")
    assert result.returncode == 0, result.stderr
    assert str(out_folder / "calibrated.json") in result.stdout.splitlines()
    assert len(json.loads((out_folder / "calibrated.json").read_text())["cells"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--n", "100,200", "--questions", "20"], "go with --out"),
        (["--n", "100", "--questions", "20", "--workers", "2"], "go with --out"),
        (["--n", "100", "--questions", "20", "--out", "o", "--json"], "for one size"),
        (["--n", "5", "--questions", "20"], "n must be"),
        (["--n", "ten", "--questions", "20"], "Expected a whole number"),
    ],
)
def test_calibrate_refuses_conflicting_options(run_wide, arguments, message):
    code, _, stderr = run_wide("calibrate", *arguments)
    assert code == 2
    assert message in stderr
    assert "Traceback" not in stderr


@pytest.mark.slow
def test_an_interrupted_experiment_resumes(tmp_path):
    (tmp_path / "own_patience.py").write_text(PATIENT)
    arguments = ["experiment", "arena", "--out", "out", "--mechanism", "exact", "--analyst"]
    arguments += ["own_patience:patient", "--n", "50", "--k", "5", "--repetitions", "30"]
    command = [sys.executable, "-m", "ladderboard", *arguments, "--workers", "2"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True, **pipes) as process:
        results_path = tmp_path / "out/results.jsonl"
        for _ in range(600):
            if results_path.exists() and results_path.read_bytes().count(b"\n") >= 3:
                break
            time.sleep(0.05)
        # As a terminal does: the whole group gets it, workers too.
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    (line,) = stderr.splitlines()
    assert "Stopped. Finished results are in out" in line
    partial_results = results_path.read_bytes()
    assert partial_results.endswith(b"\n")
    assert 3 <= partial_results.count(b"\n") < 30
    result = ladderboard(*arguments, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    full_results = results_path.read_bytes()
    assert full_results.startswith(partial_results)
    assert full_results.count(b"\n") == 30
