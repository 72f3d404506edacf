"""A tutorial typed line by line, as somebody who reads it would, with what is printed compared."""

import doctest
import os
import re
import signal
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
_END = "-- that was it --"
_URL = "http://127.0.0.1:8000"
# What differs from day to day: noise, ids, hashes, tokens and times.
_DIFFERS = [
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\dZ)?"), "TIME"),
    (re.compile(r"lb_\w+?_[\w-]{43}|lb_organiser_\.\.\."), "TOKEN"),
    (re.compile(r"\b[0-9a-f]{16,}\b|\b[0-9a-f]{4}\.\.\."), "HEX"),
]
_NOISY = re.compile(r"\b\d\.\d+\b")  # releases, and what follows from them
_ALIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands(page):
    """Return everything that is typed on a page, with what is printed then."""
    for block in re.findall(r"^```console\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        for typed in re.split(r"^(?=\$ )", block, flags=re.MULTILINE)[1:]:
            first, *rest = typed.splitlines()
            more = [line for line in rest if line.startswith("> ")]
            yield (
                "\n".join([first[2:], *(line[2:] for line in more)]),
                "\n".join(rest[len(more) :]),
            )


def files(page):
    """Return what is to be saved: a block of Python after a line that ends with its name."""
    block = re.compile(r"as `(\w+\.py)`:\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return dict(block.findall(page))


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


def clean(path, home, **more):
    """Return an environment of a newcomer, who has programs in ``path`` and nothing in ``home``."""
    home.mkdir(exist_ok=True)
    kept = {key: os.environ[key] for key in ("LANG", "TZ", "TMPDIR") if key in os.environ}
    return {**kept, "PATH": path, "HOME": str(home), **more}


def type_out(name, folder, environment, exact=("board close",), either=()):
    """Type a tutorial in an empty folder.

    What the commands named in ``exact`` print has no noise in it; of those in ``either`` the noise
    decides what is printed, so only that they work is seen.
    """
    page = (ROOT / f"docs/tutorials/{name}.md").read_text()
    folder.mkdir()
    for file, text in files(page).items():
        (folder / file).write_text(text)
    how = {"cwd": folder, "env": environment, "text": True, "stdout": subprocess.PIPE}
    shell = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stderr=subprocess.STDOUT, **how)
    found, server = _URL, None
    with shell:
        try:
            for typed, expected in commands(page):
                if typed.startswith("ladderboard serve"):
                    words = [*typed.split(), "--port", "0"]
                    server = subprocess.Popen(words, stderr=subprocess.DEVNULL, **how)
                    said = "".join(server.stdout.readline() for _ in expected.splitlines())
                    found = re.search(r"http://127\.0\.0\.1:\d+", said)[0]
                    same(expected, said.replace(found, _URL))
                    continue
                shell.stdin.write(f"{typed.replace(_URL, found)}\necho; echo '{_END}'\n")
                shell.stdin.flush()
                said = "".join(iter(shell.stdout.readline, f"{_END}\n"))
                if not any(each in typed for each in either):
                    same(expected, said, noisy=not any(each in typed for each in exact))
            if server is not None:
                server.send_signal(signal.SIGINT)
                assert server.wait(60) == 0
        finally:
            shell.kill()
            if server is not None:
                server.kill()
                server.stdout.close()
