"""Runs a tutorial line by line in a shell and compares the output with the page."""

import doctest
import os
import re
import signal
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
_END_MARK = "-- end of output --"
_URL = "http://127.0.0.1:8000"
# What differs from run to run: noise, ids, hashes, tokens and times.
_VOLATILE = [
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\dZ)?"), "TIME"),
    (re.compile(r"lb_\w+?_[\w-]{43}|lb_organiser_\.\.\."), "TOKEN"),
    (re.compile(r"\b[0-9a-f]{16,}\b|\b[0-9a-f]{4}\.\.\."), "HEX"),
]
_NOISY_NUMBER = re.compile(r"\b\d\.\d+\b")  # releases, and what is computed from them
_COMPARE_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands(page):
    """Yield each command on a page with its expected output."""
    for block in re.findall(r"^```console\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        for command in re.split(r"^(?=\$ )", block, flags=re.MULTILINE)[1:]:
            first, *rest = command.splitlines()
            continued = [line for line in rest if line.startswith("> ")]
            yield (
                "\n".join([first[2:], *(line[2:] for line in continued)]),
                "\n".join(rest[len(continued) :]),
            )


_STEP = re.compile(
    r"as `(?P<file>[\w/]+\.(?:py|yaml))`:\n\n```(?:python|yaml)\n(?P<text>.*?)^```$"
    r"|^```console\n.*?^```$",
    re.DOTALL | re.MULTILINE,
)


def steps(page):
    """Yield what a page says to do: a file to save with its text, or None and a console block."""
    for step in _STEP.finditer(page):
        yield (step["file"], step["text"]) if step["file"] else (None, step[0])


def normalize(text, *, noisy):
    """Replace what differs between runs by placeholders; with ``noisy``, fractions too."""
    for pattern, name in _VOLATILE:
        text = pattern.sub(name, text)
    return (_NOISY_NUMBER.sub("NUMBER", text) if noisy else text).strip() + "\n"


def check_same_output(expected, output, *, noisy=True):
    """Compare output as doctest does, after normalising both."""
    checker = doctest.OutputChecker()
    want, got = normalize(expected, noisy=noisy), normalize(output, noisy=noisy)
    example = doctest.Example("", want)
    assert checker.check_output(want, got, _COMPARE_FLAGS), checker.output_difference(
        example, got, _COMPARE_FLAGS
    )


def clean_environment(path, home, **variables):
    """Return the environment of a new user: programs in ``path``, an empty ``home``."""
    home.mkdir(exist_ok=True)
    environment = {key: os.environ[key] for key in ("LANG", "TZ", "TMPDIR") if key in os.environ}
    return {**environment, "PATH": path, "HOME": str(home), **variables}


def run_tutorial(name, folder, environment, unchecked=()):
    """Run all commands of a tutorial in an empty folder."""
    page = (ROOT / f"docs/tutorials/{name}.md").read_text()
    folder.mkdir()
    run_commands(page, folder, environment, unchecked=unchecked)


def _save_files(page, folder):
    """Yield the commands of a page; before them, save the files that come before them."""
    for file_name, text in steps(page):
        if file_name is None:
            yield from commands(text)
        else:
            (folder / file_name).write_text(text)


def run_commands(page, folder, environment, exact=("board close",), unchecked=()):
    """Save all files of a page and run its commands, in one shell; its servers get free ports.

    The output of commands that contain one of ``exact`` has no noise. Noise decides what those that
    contain one of ``unchecked`` print, so their output is not compared.
    """
    options = {"cwd": folder, "env": environment, "text": True, "stdout": subprocess.PIPE}
    shell = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    url, server = _URL, None
    with shell:
        try:
            for command, expected in _save_files(page, folder):
                if command.startswith("ladderboard serve"):
                    serve_arguments = [*command.split(), "--port", "0"]
                    server = subprocess.Popen(serve_arguments, stderr=subprocess.DEVNULL, **options)
                    output = "".join(server.stdout.readline() for _ in expected.splitlines())
                    while not (address := re.search(r"http://127\.0\.0\.1:\d+", output)):
                        line = server.stdout.readline()
                        assert line, f"the server ended: {output}"
                        output += line
                    url = address[0]
                    if expected:
                        check_same_output(expected, output.replace(url, _URL))
                    continue
                shell.stdin.write(f"{command.replace(_URL, url)}\necho; echo '{_END_MARK}'\n")
                shell.stdin.flush()
                output = "".join(iter(shell.stdout.readline, f"{_END_MARK}\n"))
                if not any(part in command for part in unchecked):
                    is_exact = any(part in command for part in exact)
                    check_same_output(expected, output, noisy=not is_exact)
            if server is not None:
                server.send_signal(signal.SIGINT)
                assert server.wait(60) == 0
        finally:
            shell.kill()
            if server is not None:
                server.kill()
                server.wait()
                server.stdout.close()
