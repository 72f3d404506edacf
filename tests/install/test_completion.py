"""Shell completion for real: installed by the program, driven in the shells themselves."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.tutorials import clean_environment

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Return a home with the program, a database with the board ``demo``, and its environment."""
    home = tmp_path_factory.mktemp("home")
    program = home / "bin/ladderboard"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom ladderboard.cli import main\n\nmain()\n")
    program.chmod(0o755)
    path = f"{program.parent}:/usr/bin:/bin"
    environment = clean_environment(path, home, PYTHONPATH=str(ROOT / "src"), TERM="dumb")
    for args in (["board", "new", "demo", "--example"], ["board", "create", "demo"]):
        subprocess.run([program, *args], cwd=home, env=environment, check=True, capture_output=True)
    return home, environment


def installed(home, shell):
    """Install completion in a shell, as a user would, and return the output."""
    folder, environment = home
    # Two commands: a shell gives its place to a single one, and could not be recognised then.
    return subprocess.run(
        [shell, "-c", "ladderboard --install-completion; true"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


LINES = [
    ("ladderboard gu", {"guard"}),
    ("ladderboard su", {"submit", "submissions"}),
    ("ladderboard guard ex", {"export"}),
    ("ladderboard board cl", {"close"}),
    ("ladderboard serve --wor", {"--workers"}),
    ("ladderboard guard ask guard.db --inspe", {"--inspect"}),
    ("ladderboard board show d", {"demo"}),
    ("ladderboard team add d", {"demo"}),
]
SOME = [LINES[0], LINES[4], LINES[6]]


def test_bash(home):
    assert "bash completion installed" in installed(home, "bash")
    script = "source ~/.bashrc\n"
    for line, _ in LINES:
        words = line.split(" ")
        quoted = " ".join(f"'{word}'" for word in words)
        script += (
            f"COMP_WORDS=({quoted}) COMP_CWORD={len(words) - 1}\n"
            'words=($(complete -p ladderboard)) && "${words[4]}" ladderboard\n'
            'echo "${COMPREPLY[*]}"\n'
        )
    folder, environment = home
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    completions = [set(line.split()) for line in done.stdout.splitlines()]
    assert completions == [expected for _, expected in LINES]


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish here")
def test_fish(home):
    assert "fish completion installed" in installed(home, "fish")
    folder, environment = home
    for line, expected in SOME:
        done = subprocess.run(
            ["fish", "-c", f"complete -C '{line}'"],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert {line.partition("\t")[0] for line in done.stdout.splitlines()} == expected


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh here")
def test_zsh(home):
    assert "zsh completion installed" in installed(home, "zsh")
    folder, environment = home
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(folder)
        os.execvpe("zsh", ["zsh", "-i"], {**environment, "PS1": "ready> "})  # noqa: S606
    try:
        read_until(terminal, "ready>")
        # The first tab of a shell loads what completes, and completes nothing yet.
        os.write(terminal, b"ladderboard gu\t\t")
        assert "guard" in read_until(terminal, "guard")
        for line, (word,) in SOME:
            os.write(terminal, f"\x15{line}\t".encode())
            completed = f"{line.rpartition(' ')[0]} {word}"
            assert completed in read_until(terminal, completed)
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


def plain(shown):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x07", "", shown.decode(errors="replace"))


def read_until(terminal, text, patience=60):
    """Return what a terminal shows, when it shows what is wanted, or does not for long."""
    shown, end = b"", time.monotonic() + patience
    while time.monotonic() < end and text not in plain(shown):
        if select.select([terminal], [], [], 0.5)[0]:
            shown += os.read(terminal, 4096)
    return plain(shown)


def test_looking_for_boards_leaves_no_trace(home):
    folder, environment = home
    before = sorted(path.name for path in folder.iterdir())
    variables = {"COMP_WORDS": "ladderboard board show ", "COMP_CWORD": "3"}

    def complete(**extra):
        return subprocess.run(
            [folder / "bin/ladderboard"],
            cwd=folder,
            env={**environment, "_LADDERBOARD_COMPLETE": "complete_bash", **variables, **extra},
            capture_output=True,
            text=True,
            check=True,
        )

    assert complete().stdout.split() == ["demo"]
    (folder / "no.db").write_text("this is no database")
    for other in ("nothing.db", "no.db", "postgresql+psycopg://me@127.0.0.1:9/none"):
        done = complete(LADDERBOARD_DATABASE=other)
        assert (done.stdout.split(), done.stderr) == ([], "")
    (folder / "no.db").unlink()
    assert sorted(path.name for path in folder.iterdir()) == before
