"""The wheel, installed elsewhere, has all that it needs: run in processes of its own."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from contextlib import contextmanager
from pathlib import Path

import pytest

import ladderboard as lb
from support.tutorials import run_tutorial

ROOT = Path(__file__).parents[2]


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {member.filename: archive.read(member) for member in archive.infolist()}


def test_the_wheel_has_exactly_the_files_of_the_source(wheel):
    inside = {content for content in contents(wheel) if ".dist-info/" not in content}
    source = ROOT / "src"
    sources = {
        str(path.relative_to(source))
        for path in (source / "ladderboard").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert inside == sources
    for required in ("py.typed", "server/_pages/play.json", "mechanisms/calibrated.json"):
        assert f"ladderboard/{required}" in inside


def test_the_source_distribution_builds_the_same_wheel(release, wheel, make, tmp_path):
    places = [tmp_path / name for name in ("tree", "again")]
    (packed,) = release.glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        if hasattr(tarfile, "data_filter"):  # not yet in Debian's Python 3.11.2
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(places[0])  # noqa: S202  # our own archive, made above
    (tree,) = places[0].iterdir()
    assert contents(make.build(tree, "wheel", places[1])) == contents(wheel)


def test_a_release_has_checksums_and_the_notes_of_its_version(release):
    version = lb.__version__
    names = [f"ladderboard-{version}-py3-none-any.whl", f"ladderboard-{version}.tar.gz", "NOTES.md"]
    assert {path.name for path in release.iterdir()} == {*names, "SHA256SUMS"}
    assert (release / "SHA256SUMS").read_text() == "".join(
        f"{hashlib.sha256((release / name).read_bytes()).hexdigest()}  {name}\n" for name in names
    )
    changelog = (ROOT / "CHANGELOG.md").read_text()
    section = re.split(rf"^## {re.escape(version)}\b.*$", changelog, flags=re.MULTILINE)[1]
    notes = re.split(r"^## ", section, flags=re.MULTILINE)[0].strip()
    assert (release / "NOTES.md").read_text() == f"{notes}\n"
    again = subprocess.run(
        [ROOT / "script/release", release], capture_output=True, text=True, check=False,
        env={**os.environ, "BUILD_PYTHON": sys.executable},
    )  # fmt: skip
    assert (again.returncode, "is not empty" in again.stderr) == (1, True)


def test_the_installed_package_is_used_and_not_the_clone(installed, tmp_path):
    code = (
        "import ladderboard as lb, sys\n"
        "made = lb.ShakyLadder.calibrated(n=10_000, questions=1_000, teams=5)\n"
        "print(lb.__file__, made, *sys.path)"
    )
    done = subprocess.run(
        [installed.env / "bin/python", "-c", code],
        cwd=tmp_path,
        env=installed.clean,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(f"{installed.packages}/ladderboard/__init__.py ShakyLadder(")
    assert str(ROOT / "src") not in done.stdout
    assert installed.run("--version", cwd=tmp_path).startswith("ladderboard ")


def test_a_guard_is_created_asked_and_bundled_and_an_older_one_opens(installed, tmp_path):
    run = installed.run
    rows = range(300)
    (tmp_path / "labels.csv").write_text(
        "id,label\n" + "".join(f"{index},{index % 2}\n" for index in rows)
    )
    (tmp_path / "a.csv").write_text("id,prediction\n" + "".join(f"{index},1\n" for index in rows))
    run("guard", "create", "g.db", "--labels", "labels.csv", "--questions", 3, cwd=tmp_path)
    assert "2 questions left" in run("guard", "ask", "g.db", "a.csv", cwd=tmp_path)
    assert "1 of 3 questions used" in run("guard", "status", "g.db", "--check", cwd=tmp_path)
    run("guard", "export", "g.db", "--close", "--yes", "--out", "g.bundle", cwd=tmp_path)
    assert run("verify", "g.bundle", cwd=tmp_path).startswith("verified: 1 release\n")
    for name in ("1.db", "1.db.mark"):
        shutil.copy(ROOT / "tests/holdout/formats" / name, tmp_path)
    assert "6 of 20 questions used" in run("guard", "status", "1.db", "--check", cwd=tmp_path)


def test_plans_and_missing_extras(installed, tmp_path):
    output = installed.run("plan", "--n", 10_000, "--questions", 1_000, cwd=tmp_path)
    assert "Shaky Ladder, measured" in output
    output = installed.run("board", "list", cwd=tmp_path, code=2)
    assert "ladderboard board create DIR" in output


@contextmanager
def serving(installed, folder, *args):
    """Serve, and yield the address and the output up to the last of the next steps."""
    process = subprocess.Popen(
        [installed.env / "bin/ladderboard", "serve", *args, "--port", "0"],
        cwd=folder,
        env=installed.clean,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    lines = []
    with process:
        try:
            for line in process.stdout:
                lines.append(line)
                if " leaderboard http://" in line:
                    break
            yield re.search(r"http://127\.0\.0\.1:\d+", "".join(lines))[0], "".join(lines)
            process.terminate()
            process.wait(60)
        finally:
            process.kill()


def fetched(address):
    with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310 - our own server
        return answer.read().decode()


def test_the_printed_commands_make_serve_and_enter_the_example(installed, make, tmp_path):
    run_the_example(installed, make, tmp_path)


@pytest.mark.slow
def test_a_clean_install_runs_a_board_to_its_end(installed_by_pip, make, tmp_path):
    """With the dependencies that the wheel names and no others, from the configured index."""
    assert not (installed_by_pip.packages / "dependencies.pth").exists()
    assert not (installed_by_pip.packages / "pytest").exists()
    run_the_example(installed_by_pip, make, tmp_path)


def run_the_example(installed, make, tmp_path):
    """Make, serve, enter, close and verify the example by the commands that are printed."""
    output = installed.run("board", "new", "demo", "--example", cwd=tmp_path)
    assert output.endswith("\n  ladderboard serve demo\n")
    with serving(installed, tmp_path, "demo") as (url, output):
        make.check_no_path_of_the_clone(output.replace("data/example_submission.py", ""))
        steps = output.partition("Next, in another terminal:\n\n")[2].partition("\n\n")[0]
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", steps],
            cwd="/",
            env=installed.clean,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "A new best: accuracy 0." in done.stdout
        make.check_no_path_of_the_clone(done.stdout + done.stderr)
        play = fetched(f"{url}/boards/demo/play")
        assert "<svg" in play
        assert "Team 1" in fetched(f"{url}/boards/demo")
        for page in (fetched(url), play, fetched(f"{url}/login")):
            linked = set(re.findall(r"(?:href|src)=\"(/static/[^\"]+)\"", page))
            assert len(linked) > 1
            assert all(fetched(url + path) for path in linked)
    assert installed.run("board", "close", "demo", "--yes", cwd=tmp_path)
    assert "verified: " in installed.run("verify", "demo.bundle", cwd=tmp_path)


@pytest.mark.slow
def test_figures_attacks_and_calibration(installed, tmp_path):
    installed.run("experiment", "paper", "--quick", "--out", "figures", cwd=tmp_path)
    assert {"queries.png", "noise.svg"} <= {path.name for path in (tmp_path / "figures").iterdir()}
    assert "exact" in installed.run("attack", "majority", "--n", 1000, "--k", 100, cwd=tmp_path)
    output = installed.run("calibrate", "--n", 1000, "--questions", 10, cwd=tmp_path)
    assert output.startswith("Shaky Ladder for n = 1,000, 10 questions")
    installed.run("board", "new", "demo", "--example", cwd=tmp_path)
    assert "demo is ready." in installed.run("board", "check", "demo", cwd=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["first-board", "first-guard"])
def test_a_tutorial_from_the_wheel(name, installed, tmp_path):
    run_tutorial(name, tmp_path / "empty", installed.clean, unchecked=("second.csv",))
