"""``board close --site`` writes a board as a folder, at the close and after it."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from support.verify.board_history import read_bundle

SITE = Path("site")


@pytest.fixture
def board(run_cli, folder):
    """Create a board; return a function that returns its status."""
    run_cli("board", "create", folder)

    def status():
        return run_cli("board", "list", "--json").json["boards"][0]["status"]

    return status


def test_a_closed_board_is_exported_as_a_site(run_cli, board):
    result = run_cli("board", "close", "first", "--site", SITE, "--yes")
    output = " ".join(result.out.split())
    assert (result.code, board()) == (0, "closed")
    assert "first is closed for good. Final ranking" in output
    count = len([path for path in SITE.rglob("*") if path.is_file()])
    assert (
        f"site holds the board in {count} files, for any web server; first.bundle in it publishes "
        "the noise key, every risk and every draw. Open site/index.html to see it."
    ) in output
    assert not Path("first.bundle").exists()  # it is in the folder
    printed_command = result.out.splitlines()[-1].split()
    report = run_cli(
        *printed_command[1:2], SITE / printed_command[2], *printed_command[3:], "--json"
    ).json
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
    kinds = {kind for kind, _ in read_bundle(SITE / "first.bundle")}
    assert {"holdout", "file"} < kinds
    page = (SITE / "index.html").read_text()
    assert "every draw, the labels, what teams submitted." in page
    output = run_cli("board", "close", "first", "--site", "other", "--out", "own.bundle").out
    assert (Path("other/first.bundle").read_bytes()) == Path("own.bundle").read_bytes()
    assert "own.bundle holds" in output
    assert "other holds" in output


def test_without_a_bundle(run_cli, board):
    result = run_cli("board", "close", "first", "--site", SITE, "--no-bundle", "--yes")
    assert (result.code, board()) == (0, "closed")
    assert "bundle" not in " ".join(result.out.split()).partition("site holds")[2]
    assert list(SITE.glob("*.bundle")) == []
    page = (SITE / "index.html").read_text()
    command = page.partition("<code>ladderboard ")[2].partition("\n")[0].split()
    assert command[:2] == ["verify", "--ledger"]
    assert run_cli("verify", "--ledger", SITE / command[2], *command[3:]).code == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
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
    assert not SITE.exists()


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


def test_the_confirmation_says_what_becomes_public(run_cli, board, monkeypatch):
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


def test_after_a_full_disk_the_board_is_closed_and_the_command_to_retry_is_printed(
    run_cli, board, tmp_path
):
    """The limit on the size of files stands in for a full disk."""
    script = (
        "import resource, signal, sys\n"
        "import ladderboard.server._pages._site as site\n"
        "from ladderboard.cli import main\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "fill = site._write_files\n"
        "def full(*given, **more):\n"
        f"    resource.setrlimit(resource.RLIMIT_FSIZE, (9000, {resource.RLIM_INFINITY}))\n"
        "    return fill(*given, **more)\n"
        "site._write_files = full\n"
        "sys.argv = ['ladderboard', *sys.argv[1:]]\n"
        "main()\n"
    )
    arguments = ["board", "close", "first", "--site", "site", "--labels", "--yes"]
    result = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True, text=True, check=False, env=os.environ,
    )  # fmt: skip
    assert result.returncode == 4
    assert "File too large" in result.stderr
    retry_command = "ladderboard board close first --site site --labels"
    assert result.stderr.rstrip().endswith(retry_command)
    assert (board(), SITE.exists()) == ("closed", False)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".lad")] == []
    assert run_cli(*retry_command.split()[1:], "--yes").code == 0
    assert (SITE / "first.bundle").exists()
