"""The tutorial about boards does what it says, typed line by line."""

import doctest
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/tutorials/first-board.md"
_END = "-- that was it --"
# What differs from day to day: noise, ids, hashes, tokens and times.
_DIFFERS = [
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\dZ)?"), "TIME"),
    (re.compile(r"lb_\w+?_[\w-]{43}|lb_organiser_\.\.\."), "TOKEN"),
    (re.compile(r"\b[0-9a-f]{16,}\b|\b[0-9a-f]{4}\.\.\."), "HEX"),
]
_NOISY = re.compile(r"\b\d\.\d+\b")  # releases, and what follows from them
_ALIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands():
    """Return everything that is typed on the page, with what is printed then."""
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        for typed in re.split(r"^(?=\$ )", block, flags=re.MULTILINE)[1:]:
            first, *rest = typed.splitlines()
            more = [line for line in rest if line.startswith("> ")]
            yield (
                "\n".join([first[2:], *(line[2:] for line in more)]),
                "\n".join(rest[len(more) :]),
            )


def plain(text, *, noisy):
    for what, name in _DIFFERS:
        text = what.sub(name, text)
    return (_NOISY.sub("NUMBER", text) if noisy else text).strip() + "\n"


def same(expected, said, *, noisy=True):
    checker = doctest.OutputChecker()
    wanted, got = plain(expected, noisy=noisy), plain(said, noisy=noisy)
    example = doctest.Example("", wanted)
    assert checker.check_output(wanted, got, _ALIKE), checker.output_difference(
        example, got, _ALIKE
    )


def test_the_first_board(tmp_path):
    program = tmp_path / "bin/ladderboard"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom ladderboard.cli import main\n\nmain()\n")
    program.chmod(0o755)
    folder = tmp_path / "empty"
    folder.mkdir()
    (made,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    (folder / "make_data.py").write_text(made)
    environment = {key: each for key, each in os.environ.items() if not key.startswith("LADDER")}
    environment |= {
        "PATH": f"{program.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    how = {"cwd": folder, "env": environment, "text": True, "stdout": subprocess.PIPE}
    with subprocess.Popen(
        ["bash"], stdin=subprocess.PIPE, stderr=subprocess.STDOUT, **how
    ) as shell:
        url, server = "http://127.0.0.1:8000", None
        try:
            for typed, expected in commands():
                if typed.startswith("ladderboard serve"):
                    words = [*typed.split(), "--port", "0"]
                    server = subprocess.Popen(words, stderr=subprocess.DEVNULL, **how)
                    said = [server.stdout.readline() for _ in expected.splitlines()]
                    found = re.search(r"http://127\.0\.0\.1:\d+", "".join(said))[0]
                    same(expected, "".join(said).replace(found, url))
                    continue
                here = typed if server is None else typed.replace(url, found)
                shell.stdin.write(f"{here}\necho; echo '{_END}'\n")
                shell.stdin.flush()
                said = "".join(iter(shell.stdout.readline, f"{_END}\n"))
                same(expected, said, noisy="board close" not in typed)  # the finals have no noise
            server.send_signal(signal.SIGINT)
            assert server.wait(60) == 0
        finally:
            shell.kill()
            if server is not None:
                server.kill()
                server.stdout.close()
