"""Shell completion for real: installed by the program, driven in the shell itself."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.tutorials import clean_environment

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Return a home with the program, and its environment."""
    home = tmp_path_factory.mktemp("home")
    program = home / "bin/ladderboard"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom ladderboard.cli import main\n\nmain()\n")
    program.chmod(0o755)
    path = f"{program.parent}:/usr/bin:/bin"
    environment = clean_environment(path, home, PYTHONPATH=str(ROOT / "src"), TERM="dumb")
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
]


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
