"""The command line as people meet it: in a process of its own."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ladderboard as lb

ROOT = Path(__file__).parents[2]
BOARD = ["new", "check", "create", "list", "show", "pause", "resume", "amend", "close", "token"]
BOARD += ["tokens", "dump", "restore", "keygen"]
TEAM = ["add", "list", "invite", "rotate-token", "revoke", "disqualify", "reinstate"]
CLIENT = ["login", "submit", "submissions", "leaderboard", "ledger", "mcp", "verify"]
FIRST = ["plan", "calibrate", "guard", "serve", "board", "team", "backup", "settings", "doctor"]
VERBS = {
    "": [*FIRST, *CLIENT, "attack", "experiment"],
    "backup": ["create", "check", "restore"],
    **{f"backup {verb}": [] for verb in ("create", "check", "restore")},
    "settings": [],
    "doctor": [],
    "guard": ["create", "ask", "status", "export", "restore", "backup", "serve"],
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
    "experiment": ["paper", "shifted", "calibrated", "faithful", "play", "arena"],
    "experiment paper": [],
    "experiment shifted": [],
    "experiment calibrated": [],
    "experiment faithful": [],
    "experiment play": [],
    "calibrate": [],
    "experiment arena": [],
    "plan": [],
    **{verb: [] for verb in CLIENT},
}


def ladderboard(*words, **options):
    """Run the program; its output has no colours and no wraps."""
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "ladderboard", *map(str, words)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=environment,
        **options,
    )


def refused(done):
    """Return the one line that was said, without a traceback."""
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("ladderboard: ")
    return line


@pytest.mark.parametrize("verb", VERBS)
def test_the_page_has_every_verb_and_option(verb):
    page = (ROOT / "docs/reference/cli.md").read_text()
    done = ladderboard(*verb.split(), "--help")
    assert done.returncode == 0
    assert f"## ladderboard {verb}".strip() in page.splitlines() or not verb
    section = page.split(f"## ladderboard {verb}\n")[-1].split("\n## ")[0] if verb else page
    options = set(re.findall(r"--[a-z]+", done.stdout)) - {"--help"}
    assert options <= set(re.findall(r"--[a-z]+", section))
    if verb:
        assert set(re.findall(r"`(--[a-z]+)", section)) <= options
    for below in VERBS[verb]:
        assert re.search(rf"^  {below} ", done.stdout, re.MULTILINE)
    unwrapped = re.sub(r"\n {10,}", " ", done.stdout)
    helps = re.findall(r"^  --[a-z]+(?: <\S+>)?  +(.*?)(?: +\[.*)?$", unwrapped, re.MULTILINE)
    assert helps
    assert all(text.endswith(".") and text[0].isupper() for text in helps)


def test_the_listed_verbs_are_all_there_are():
    for verb, below in VERBS.items():
        done = ladderboard(*verb.split(), "--help")
        listed = done.stdout.partition("Commands:\n")[2]
        assert re.findall(r"^  ([\w-]+)", listed, re.MULTILINE) == below


@pytest.mark.parametrize("group", ["", "guard", "board", "team", "backup", "experiment"])
def test_what_a_verb_does_fits_into_the_list(group):
    done = ladderboard(*group.split(), "--help")
    listed = done.stdout.partition("Commands:\n")[2].splitlines()
    said = [re.fullmatch(r"  [\w-]+ +(.*)", each)[1] for each in listed]
    assert len(said) == len(VERBS[group])
    assert all(len(each) < 50 and each.endswith(".") for each in said)
    assert not any(each.endswith("..") for each in said)


def test_arguments_go_by_their_names_alone():
    shown = {verb: ladderboard(*verb.split(), "--help").stdout for verb in ("submit", "serve")}
    assert "Usage: ladderboard submit [OPTIONS] BOARD [FILE]\n" in shown["submit"]
    assert re.search("^  BOARD  +The board's short name", shown["submit"], re.MULTILINE)
    assert "Usage: ladderboard serve [OPTIONS] [DIR]...\n" in shown["serve"]
    assert re.search("^  DIR  +Folders of boards", shown["serve"], re.MULTILINE)
    assert "--port <int>  " in shown["serve"]
    assert "Usage: ladderboard mcp [OPTIONS] TARGET\n" in ladderboard("mcp", "--help").stdout


def test_the_version():
    assert ladderboard("--version").stdout == f"ladderboard {lb.__version__}\n"


def test_the_door_opens_fast():
    code = "import sys, ladderboard.cli, ladderboard.cli._app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "scipy", "numba", "matplotlib", "distributed", "ladderboard.arena"}
    assert not heavy & set(done.stdout.split())


def test_the_majority_attack_for_people():
    done = ladderboard("attack", "majority", "--n", 1000, "--k", 100, "--sigma", 0.1)
    assert done.returncode == 0
    mean, std = lb.majority_attack_moments(1000, 100, 0.1)
    assert re.search(rf"exact +{mean:.5f} +{std:.5f}", done.stdout)
    assert "sigma = 0.1, which is 0.05 on the risk" in done.stdout


def test_the_majority_attack_for_machines():
    done = ladderboard("attack", "majority", "--n", 1000, "--k", 10, "--repetitions", 3, "--json")
    found = json.loads(done.stdout)
    assert found["errors"] == lb.majority_attack(1000, 10, repetitions=3).tolist()
    assert (found["exact_mean"], found["exact_std"]) == tuple(lb.majority_attack_moments(1000, 10))


def test_a_plan_for_people_and_for_machines():
    plan = lb.bounds.plan(questions=1_000, error=0.05, beta=0.1)
    words = ["plan", "--questions", "1e3", "--error", "0.05", "--beta", "0.1"]
    assert ladderboard(*words).stdout == f"{plan}\n"
    assert json.loads(ladderboard(*words, "--json").stdout) == plan.describe()


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
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    for row in lb.bounds.plan(questions=1_000, error=0.05).rows:
        pattern = rf"^ *{re.escape(row.name)} +{row.found:,} +{row.status} "
        assert any(re.search(pattern, line) for line in lines), row.name


def test_a_plan_is_drawn_beside_what_is_printed(tmp_path):
    words = ["plan", "--n", "1,000", "--questions", "10", "--plot", "plan.svg", "--json"]
    done = ladderboard(*words, cwd=tmp_path)
    assert json.loads(done.stdout)["n"] == 1000
    assert (tmp_path / "plan.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["attack", "majority", "--n", "0", "--k", "1"], "n must be a whole number"),
        (["attack", "majority", "--n", "9", "--k", "1", "--sigma", "-1"], "sigma must be"),
        (["plan", "--n", "1e4"], "got --n. Try --n 10000 --questions 1000."),
        (["plan", "--n", "1e4", "--error", "0.7"], "error must be a number above 0 and below 0.5"),
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
def test_what_cannot_be_done_is_one_line(words, sentence, tmp_path):
    out = ["--out", tmp_path / "out"] if words[0] == "experiment" else []
    assert sentence in refused(ladderboard(*words, *out))


def test_numbers_are_read_as_people_type_them():
    done = ladderboard("attack", "majority", "--n", "1e3", "--k", "1_0", "--repetitions", "1")
    assert "n = 1,000, k = 10" in done.stdout
    assert "1 repetition\n" in done.stdout
    done = ladderboard("attack", "majority", "--n", "1.5", "--k", "10")
    assert done.returncode == 2
    assert "Expected a whole number, as in 1000 or 1e3; got '1.5'" in done.stderr


def test_out_must_be_a_directory(tmp_path):
    (tmp_path / "file").write_text("")
    done = ladderboard("experiment", "paper", "--out", tmp_path / "file")
    assert "out must be a directory" in refused(done)


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("typer", ["experiment", "paper", "--out", "out"]),
        ("matplotlib", ["experiment", "paper", "--out", "out"]),
        ("matplotlib", ["plan", "--n", "1000", "--questions", "10", "--plot", "plan.png"]),
    ],
)
def test_a_missing_extra_is_one_line(missing, words, tmp_path):
    code = (
        "import sys\n"
        f"sys.modules[{missing!r}] = None\n"
        f"sys.argv = {['ladderboard', *words]}\n"
        "from ladderboard.cli import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert missing in refused(done)
    assert "pip install 'ladderboard[arena]'" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "extra"),
    [(["guard", "status", "guard.db"], "guard"), (["--help"], "client"), ([], "client")],
)
def test_without_typer_the_extra_that_is_wanted_is_named(tmp_path, words, extra):
    code = (
        "import sys\n"
        "sys.modules['typer'] = None\n"
        f"sys.argv = {['ladderboard', *words]}\n"
        "from ladderboard.cli import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    said = f"typer: pip install 'ladderboard[{extra}]', in a clone '.[{extra}]'."
    assert refused(done).endswith(said)


PATIENT = """
import time

def patient(game):
    time.sleep(0.1)
    game.ask(game.rng.integers(0, 2, game.n))
"""


@pytest.mark.slow
def test_calibrate_prints_the_settings_and_the_runners_up():
    words = ["calibrate", "--n", "400", "--questions", "50", "--quick", "--seed", "4"]
    done = ladderboard(*words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Shaky Ladder for n = 400, 50 questions, one ladder for all:")
    found = json.loads(ladderboard(*words, "--json").stdout)
    grids = [f"{each['grid']:g}" for each in found["finalists"]]
    rows = done.stdout.splitlines()[-len(grids) :]
    assert [row.split()[3] for row in rows] == grids
    assert found["finalists"][0]["error"] <= 1.2 * found["least_error"]


@pytest.mark.slow
def test_calibrate_makes_a_table_of_several_sizes(tmp_path):
    out = tmp_path / "table"
    words = ["calibrate", "--n", "100,200", "--questions", "20", "--quick", "--out", out]
    done = ladderboard(*words, "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert str(out / "calibrated.json") in done.stdout.splitlines()
    assert len(json.loads((out / "calibrated.json").read_text())["cells"]) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--n", "100,200", "--questions", "20"], "go with --out"),
        (["--n", "100", "--questions", "20", "--workers", "2"], "go with --out"),
        (["--n", "100", "--questions", "20", "--out", "o", "--json"], "for one size"),
        (["--n", "5", "--questions", "20"], "n must be"),
        (["--n", "ten", "--questions", "20"], "Expected a whole number"),
    ],
)
def test_calibrate_refuses_what_does_not_go_together(words, said, tmp_path):
    done = ladderboard("calibrate", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interrupted_experiment_goes_on_where_it_stopped(tmp_path):
    (tmp_path / "own_patience.py").write_text(PATIENT)
    words = ["experiment", "arena", "--out", "out", "--mechanism", "exact", "--analyst"]
    words += ["own_patience:patient", "--n", "50", "--k", "5", "--repetitions", "30"]
    command = [sys.executable, "-m", "ladderboard", *words, "--workers", "2"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True, **pipes) as process:
        kept = tmp_path / "out/results.jsonl"
        for _ in range(600):
            if kept.exists() and kept.read_bytes().count(b"\n") >= 3:
                break
            time.sleep(0.05)
        # As a terminal does: the whole group gets it, workers too.
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    (line,) = said.splitlines()
    assert "Stopped. Finished results are in out" in line
    before = kept.read_bytes()
    assert before.endswith(b"\n")
    assert 3 <= before.count(b"\n") < 30
    done = ladderboard(*words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    after = kept.read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") == 30
