"""``board close`` writes a bundle or, with ``--site``, a folder; at the close and after it."""

import os
import subprocess
import sys
from math import ceil, floor
from pathlib import Path

import pytest

from support.verify.board_history import read_bundle

OPENED = "the noise key, and the exact score and noise of every submission"
SITE = Path("site")


@pytest.fixture
def board(run_cli, folder):
    """Create a board; return a function that returns its status."""
    run_cli("board", "create", folder)

    def status():
        return run_cli("board", "list", "--json").json["boards"][0]["status"]

    return status


def kinds(records):
    return [kind for kind, _ in records if kind not in {"entry", "end"}]


def test_the_bundle_is_written_to_the_working_directory(run_cli, board, tmp_path):
    output = run_cli("board", "close", "first", "--yes").out
    head = run_cli("board", "show", "first", "--json").json["board"]["head"]
    assert " ".join(output.split()).endswith(
        f"first.bundle holds {head['entries']} entries, {OPENED}. Labels and submissions are not "
        "in it. Anyone with this file can check every score: "
        f"ladderboard verify first.bundle --head {head['hash']} "
        "To offer it to your teams on the Verify page, from the board's folder DIR: "
        "mkdir -p DIR/data cp first.bundle DIR/data/ ladderboard board data first DIR "
        "Or on a page of its own: ladderboard board close first --site SITE"
    )
    bundle = read_bundle(tmp_path / "first.bundle")
    assert kinds(bundle) == ["bundle", "key", "standings", "finals", "teams"]
    assert bundle[0][1]["head"].hex() == head["hash"]


def test_the_hints_at_the_close_can_be_pasted(run_cli, board, folder, tmp_path):
    """They name the folder that is there, and a site publishes what the bundle does."""
    folder.rename(tmp_path / "first")
    output = run_cli("board", "close", "first", "--labels", "--yes").out
    hints = [line.strip() for line in output.splitlines() if line.startswith("  ")][-4:]
    assert hints == [
        "mkdir -p first/data",
        "cp first.bundle first/data/",
        "ladderboard board data first first",
        "ladderboard board close first --site SITE --labels",
    ]
    subprocess.run(["bash", "-ec", "\n".join(hints[:2])], check=True, cwd=tmp_path)
    assert "first.bundle" in run_cli(*hints[2].split()[1:]).out


def test_options_decide_what_the_bundle_contains(run_cli, board):
    arguments = ["--labels", "--submissions", "--out", "all.bundle", "--yes"]
    report = run_cli("board", "close", "first", *arguments, "--json").json
    assert (report["status"], report["before"]) == ("closed", False)
    assert report["finals"]["rows"][0]["team"]["name"] == "Half"
    records = read_bundle(Path("all.bundle"))
    assert kinds(records) == [
        "bundle",
        "key",
        "holdout",
        "file",
        "part",
        "standings",
        "finals",
        "teams",
    ]
    assert report["bundle"] == {
        "file": "all.bundle",
        "entries": records[0][1]["entries"],
        "head": records[0][1]["head"].hex(),
        "labels": True,
        "submissions": True,
    }
    assert not Path("first.bundle").exists()


def test_the_bundle_of_a_closed_board_is_written_again(run_cli, board):
    first = run_cli("board", "close", "first", "--yes", "--no-bundle", "--json").json
    assert (first["bundle"], Path("first.bundle").exists()) == (None, False)
    later = run_cli("board", "close", "first", "--json").json
    assert (later["before"], later["finals"]) == (True, first["finals"])
    assert Path("first.bundle").exists()
    result = run_cli("board", "close", "first", "--labels", "--out", "labels.bundle", "--yes")
    assert "first was closed before.\nFinal ranking" in result.out
    assert "Labels are in it. Submissions are not in it." in " ".join(result.out.split())
    assert kinds(read_bundle(Path("labels.bundle")))[2] == "holdout"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--out", "taken"], "taken exists already"),
        (["--out", "nowhere/bundle"], "There is no directory nowhere"),
        (["--out", "bundle", "--no-bundle"], "Leave out --no-bundle"),
        (["--labels", "--no-bundle"], "Leave out --no-bundle"),
        (["--site", "folder"], "folder exists and is not an empty folder"),
        (["--site", "taken"], "taken exists"),
        (["--site", "nowhere/site"], "There is no directory nowhere for site."),
        (["--site", "."], ". is the current folder; name another one."),
        (["--site", "site", "--labels", "--no-bundle"], "Leave out --no-bundle"),
    ],
)
def test_a_refused_command_does_not_close_the_board(run_cli, board, arguments, sentence):
    Path("taken").write_text("mine")
    result = run_cli("board", "close", "first", *arguments, "--yes")
    assert (result.code, board()) == (2, "open")
    assert sentence in " ".join(result.err.split())
    assert Path("taken").read_text() == "mine"
    assert not SITE.exists()


def test_an_existing_bundle_is_not_overwritten(run_cli, board):
    Path("first.bundle").write_text("mine")
    assert run_cli("board", "close", "first", "--yes").code == 2
    assert (Path("first.bundle").read_text(), board()) == ("mine", "open")


@pytest.mark.parametrize("arguments", [[], ["--labels", "--submissions"], ["--no-bundle"]])
def test_the_confirmation_says_what_becomes_public(run_cli, board, monkeypatch, arguments):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda: "first")
    prompt = " ".join(run_cli("board", "close", "first", *arguments).err.split())
    assert ("the holdout cannot be used again" in prompt) == (arguments != ["--no-bundle"])
    assert (f"first.bundle will hold {OPENED}" in prompt) == (arguments != ["--no-bundle"])
    assert ("The labels stay hidden" in prompt) == (arguments == [])
    assert ("The labels will be in it" in prompt) == (len(arguments) > 1)
    assert board() == "closed"


def test_publishing_labels_later_needs_confirmation(run_cli, board, monkeypatch):
    run_cli("board", "close", "first", "--yes", "--no-bundle")
    arguments = ["board", "close", "first", "--labels", "--submissions"]
    result = run_cli(*arguments)
    assert (result.code, Path("first.bundle").exists()) == (2, False)
    assert "Opening the labels and the submissions of first cannot be undone" in result.err
    assert run_cli(*arguments, "--site", "site").code == 2
    assert not Path("site").exists()
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda: "second")
    assert "The name does not match; nothing was changed." in run_cli(*arguments).err
    assert not Path("first.bundle").exists()
    monkeypatch.setattr("builtins.input", lambda: "first")
    result = run_cli(*arguments)
    assert (result.code, Path("first.bundle").exists()) == (0, True)
    assert "Type first to open it: " in result.err


def test_an_interval_is_rounded_outwards(run_cli, board):
    final = run_cli("board", "close", "first", "--yes", "--no-bundle", "--json").json["finals"]
    output = run_cli("board", "close", "first").out
    for row in final["rows"]:
        low, high = floor(1e2 * (1 - row["high"])), ceil(1e2 * (1 - row["low"]))
        assert f"[{low / 1e2:.2f}, {high / 1e2:.2f}]" in output


def test_a_closed_board_is_exported_as_a_site(run_cli, board):
    result = run_cli("board", "close", "first", "--site", SITE, "--yes")
    output = " ".join(result.out.split())
    assert (result.code, board()) == (0, "closed")
    assert "first is closed for good. Final ranking" in output
    count = len([path for path in SITE.rglob("*") if path.is_file()])
    assert (
        f"site holds the board in {count} files, for any web server. first.bundle in it publishes "
        f"{OPENED}. Labels and submissions are not in it. To see it, open site/index.html."
    ) in output
    assert not Path("first.bundle").exists()  # it is in the folder
    printed_command = result.out.splitlines()[-1].split()
    report = run_cli(*printed_command[1:], "--json").json
    assert (report["verified"], report["head"]) == (True, printed_command[-1])


def test_a_closed_board_is_exported_as_a_site_again(run_cli, board):
    run_cli("board", "close", "first", "--yes")
    inside = ("--labels", "--submissions", "--yes")
    result = run_cli("board", "close", "first", "--site", SITE, *inside, "--json")
    report = result.json
    assert (report["before"], report["bundle"]) == (True, None)
    assert report["site"] == {
        "folder": "site",
        "files": len([path for path in SITE.rglob("*") if path.is_file()]),
        "head": run_cli("board", "show", "first", "--json").json["board"]["head"]["hash"],
        "bundle": "first.bundle",
    }
    assert {"holdout", "file"} < set(kinds(read_bundle(SITE / "first.bundle")))
    page = (SITE / "verify.html").read_text()
    assert "noise of every submission, the labels, the submissions." in page
    output = run_cli("board", "close", "first", "--site", "other", "--out", "own.bundle").out
    assert (Path("other/first.bundle").read_bytes()) == Path("own.bundle").read_bytes()
    assert "own.bundle holds" in output
    assert "other holds" in output


def test_a_site_without_a_bundle(run_cli, board):
    result = run_cli("board", "close", "first", "--site", SITE, "--no-bundle", "--yes")
    assert (result.code, board()) == (0, "closed")
    assert "bundle" not in " ".join(result.out.split()).partition("site holds")[2]
    assert list(SITE.glob("*.bundle")) == []
    page = (SITE / "verify.html").read_text()
    command = page.partition("\nladderboard ")[2].partition("\n")[0].split()
    assert command[:2] == ["verify", "--ledger"]
    assert run_cli("verify", "--ledger", SITE / command[2], *command[3:]).code == 0


@pytest.mark.parametrize("visibility", ["hidden", "anonymous"])
def test_a_site_refuses_a_bundle_that_reveals_more_than_the_page(run_cli, board, visibility):
    run_cli("board", "amend", "first", "--set", f"visibility={visibility}")
    result = run_cli("board", "close", "first", "--site", SITE, "--yes")
    assert (result.code, board(), SITE.exists()) == (2, "open", False)
    errors = " ".join(result.err.split())
    assert f"first is {visibility}, and its bundle would reveal what the page hides" in errors
    way = errors.rpartition("see it first: ladderboard ")[2].split()
    assert run_cli("board", "close", "first", "--site", SITE, "--no-bundle", "--yes").code == 0
    assert run_cli(*way).code == 0  # after the close, too
    assert run_cli("board", "close", "first", "--site", "open").code == 0
    assert Path("open/first.bundle").exists()


def test_a_frozen_board_is_public_after_the_close(run_cli, board):
    run_cli("board", "amend", "first", "--set", "visibility=frozen")
    assert run_cli("board", "close", "first", "--site", SITE, "--yes").code == 0
    assert "froze" not in (SITE / "index.html").read_text()


def test_the_confirmation_of_a_site_says_what_becomes_public(run_cli, board, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda: "another")
    result = run_cli("board", "close", "first", "--site", SITE)
    assert "site/first.bundle will hold the noise key" in " ".join(result.err.split())
    assert (result.code, board(), SITE.exists()) == (2, "open", False)


def test_a_missing_library_is_named_before_the_board_is_closed(board, tmp_path):
    """Writing pages needs more libraries than closing a board."""
    argv = ["ladderboard", "board", "close", "first", "--site", "site", "--yes"]
    code = f"import sys\nsys.modules['jinja2'] = None\nsys.argv = {argv}\n"
    code += "from ladderboard.cli import main\nmain()"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ
    )
    assert (result.returncode, board()) == (2, "open")
    assert "--site needs jinja2: pip install 'ladderboard[server]'." in result.stderr


FULL_DISK = """
import resource, signal, sys
import {module} as module
from ladderboard.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
write = module.{function}
def write_with_limit(*args, **named):
    resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))
    return write(*args, **named)
module.{function} = write_with_limit
sys.argv = ["ladderboard", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(
    ("module", "function", "limit", "options", "retry_options", "written"),
    [
        (
            "ladderboard.board",
            "write_board_bundle",
            1000,
            ["--labels"],
            "--out first.bundle --labels",
            Path("first.bundle"),
        ),
        (
            "ladderboard.server._pages._site",
            "_write_files",
            9000,
            ["--site", "site", "--labels"],
            "--site site --labels",
            SITE / "first.bundle",
        ),
    ],
    ids=["bundle", "site"],
)
def test_after_a_full_disk_the_board_is_closed_and_the_command_to_retry_is_printed(
    run_cli, board, tmp_path, module, function, limit, options, retry_options, written
):
    """The limit on the size of files stands in for a full disk."""
    script = FULL_DISK.format(module=module, function=function, limit=limit)
    arguments = ["board", "close", "first", *options, "--yes"]
    result = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True, text=True, check=False, env=os.environ,
    )  # fmt: skip
    assert result.returncode == 4
    assert "first is closed for good." in result.stdout
    retry_command = f"ladderboard board close first {retry_options}"
    assert result.stderr.rstrip().endswith(f": {retry_command}")
    assert "File too large" in result.stderr
    assert (board(), SITE.exists()) == ("closed", False)
    partial = [path for path in tmp_path.iterdir() if path.name.startswith(".lad")]
    assert [*tmp_path.glob("*bundle*"), *partial] == []
    assert run_cli(*retry_command.split()[1:], "--yes").code == 0
    assert written.exists()
