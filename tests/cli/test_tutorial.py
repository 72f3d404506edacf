"""The README and tutorials for the shell: every command prints what the page shows."""

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ladderboard as lb
from support.tutorials import (
    check_same_output,
    clean_environment,
    commands,
    run_commands,
    run_tutorial,
    steps,
)

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


@pytest.fixture
def environment(tmp_path):
    """Return the environment of a new user with ``ladderboard`` on the path."""
    program = tmp_path / "bin/ladderboard"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom ladderboard.cli import main\n\nmain()\n")
    program.chmod(0o755)
    path = f"{program.parent}:{Path(sys.executable).parent}:/usr/bin:/bin"
    return clean_environment(path, tmp_path / "home", PYTHONPATH=str(ROOT / "src"))


@pytest.mark.parametrize(
    ("name", "unchecked"), [("first-board", ()), ("first-guard", ("second.csv",))]
)
def test_a_tutorial(name, unchecked, tmp_path, environment):
    run_tutorial(name, tmp_path / "empty", environment, unchecked=unchecked)


def test_the_interval_in_first_guard(tmp_path, monkeypatch, environment):
    page = (ROOT / "docs/tutorials/first-guard.md").read_text()
    monkeypatch.chdir(tmp_path)
    for name, text in steps(page):
        if name:
            Path(name).write_text(text)

    def run(name):
        command = [sys.executable, name]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    run("make_data.py")
    # The noise of this key gives the best scores on the page.
    created = lb.Holdout.create("guard.db", "labels.csv", questions=100, key=bytes(32))
    with contextlib.closing(created) as guard:
        values = [guard.ask(f"{name}.csv").value for name in ("first", "second", "third")]
    assert values == [0.335, 0.335, 0.06]
    assert run("search.py").stdout in page
    _, _, bullets = page.partition("**See where it stands.**")
    assert "**At most 0.038 too good**" in bullets
    assert "**Up to 0.048 better**" in bullets


def test_the_files_and_commands_of_make_a_board(tmp_path, environment):
    page, _, _ = (ROOT / "docs/how-to/make-a-board.md").read_text().partition("**5. Serve it**")
    blocks = re.findall(r"^```(?:yaml|text)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    holdout, rules, sample = blocks
    rng = np.random.default_rng(0)
    splits = rng.permutation(["public"] * 1_798 + ["private"] * 1_199)
    (tmp_path / "coins").mkdir()
    for name, shown, rest in [  # the page shows the first three of 3,000 rows
        ("holdout", holdout, [f"{rng.integers(2)},{split}" for split in splits]),
        ("sample_submission", sample, ["0"] * 2_997),
    ]:
        rows = "".join(f"{at},{row}\n" for at, row in enumerate(rest, 3))
        (tmp_path / f"coins/{name}.csv").write_text(shown + rows)
    (tmp_path / "coins/board.yaml").write_text(rules)
    run_commands(page, tmp_path, environment)


@pytest.fixture
def models():
    """Return labels of 3,000 rows, predictions, and those of a better model."""
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, 3_000)
    predictions, candidate = (labels ^ (rng.permutation(3_000) < wrong) for wrong in (735, 450))
    return {"labels": labels, "predictions": predictions, "candidate": candidate}


def test_the_commands_of_the_readme(tmp_path, environment, models):
    """All but script/serve, which test_serve_live runs; commands without output print anything."""
    assert len(README.split()) <= 1_000
    (rules,) = re.findall(r"^```yaml\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    (tmp_path / "board.yaml").write_text(rules)
    for name, header in {"labels": "id,label", "predictions": "id,p", "candidate": "id,p"}.items():
        rows = [f"cup-{index},{value}" for index, value in enumerate(models[name])]
        text = "\n".join([header.replace("id,p", "id,prediction"), *rows])
        (tmp_path / f"{name}.csv".replace("labels", "holdout")).write_text(f"{text}\n")
    page = README.partition("## Run a competition")[2]
    silent = [command for command, output in commands(page) if not output]
    run_commands(page, tmp_path, environment, exact=(), unchecked=silent)


def test_the_table_of_the_readme(environment):
    """Each row is what the command below the table prints for its sizes."""
    (command,) = re.findall(r"`(ladderboard plan [^`]*)`", README)
    rows = re.findall(r"^\| ([\d,]+) \| ([\d,]+) \| (.+) \|$", README, re.MULTILINE)
    assert len(rows) == 5
    for n, submissions, cells in rows:
        sizes = {"2000": n.replace(",", ""), "1000": submissions.replace(",", "")}
        words = [sizes.get(word, word) for word in command.split()]
        printed = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        first, second = printed.stdout.splitlines()[:2]
        expected = re.findall(r"0\.\d+", cells)
        assert re.findall(r"0\.\d+", f"{first.partition(' about ')[2]} {second}") == expected


def test_the_python_of_the_readme(tmp_path, monkeypatch, models):
    monkeypatch.chdir(tmp_path)
    rows = [f"cup-{index},{label}" for index, label in enumerate(models.pop("labels"))]
    Path("holdout.csv").write_text("\n".join(["id,label", *rows]))
    blocks = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    code = "".join(blocks)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {**models})  # noqa: S102 - our own README
    expected = re.findall(r"print\(.*?\)  # (.*)", code)
    check_same_output("\n".join(expected), printed.getvalue())
