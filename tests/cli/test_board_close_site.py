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
def board(program, folder):
    """Give a function that tells the status of a board that is made."""
    program("board", "create", folder)

    def status():
        return program("board", "list", "--json").json["boards"][0]["status"]

    return status


def test_a_board_is_closed_and_left(program, board):
    done = program("board", "close", "first", "--site", SITE, "--yes")
    said = " ".join(done.out.split())
    assert (done.code, board()) == (0, "closed")
    assert "first is closed for good. Final ranking" in said
    count = len([path for path in SITE.rglob("*") if path.is_file()])
    assert (
        f"site holds the board in {count} files, for any web server; first.bundle in it publishes "
        "the noise key, every risk and every draw. Open site/index.html to see it."
    ) in said
    assert not Path("first.bundle").exists()  # it is in the folder
    words = done.out.splitlines()[-1].split()
    found = program(*words[1:2], SITE / words[2], *words[3:], "--json").json
    assert (found["verified"], found["head"]) == (True, words[-1])


def test_a_closed_board_is_left_again(program, board):
    program("board", "close", "first", "--yes")
    inside = ("--labels", "--submissions", "--yes")
    done = program("board", "close", "first", "--site", SITE, *inside, "--json")
    told = done.json
    assert (told["before"], told["bundle"]) == (True, None)
    assert told["site"] == {
        "folder": "site",
        "files": len([path for path in SITE.rglob("*") if path.is_file()]),
        "head": program("board", "show", "first", "--json").json["board"]["head"]["hash"],
        "bundle": "first.bundle",
    }
    kinds = {kind for kind, _ in read_bundle(SITE / "first.bundle")}
    assert {"holdout", "file"} < kinds
    page = (SITE / "index.html").read_text()
    assert "every draw, the labels, what teams submitted." in page
    both = program("board", "close", "first", "--site", "other", "--out", "own.bundle").out
    assert (Path("other/first.bundle").read_bytes()) == Path("own.bundle").read_bytes()
    assert "own.bundle holds" in both
    assert "other holds" in both


def test_without_a_bundle(program, board):
    done = program("board", "close", "first", "--site", SITE, "--no-bundle", "--yes")
    assert (done.code, board()) == (0, "closed")
    assert "bundle" not in " ".join(done.out.split()).partition("site holds")[2]
    assert list(SITE.glob("*.bundle")) == []
    page = (SITE / "index.html").read_text()
    command = page.partition("<code>ladderboard ")[2].partition("\n")[0].split()
    assert command[:2] == ["verify", "--ledger"]
    assert program("verify", "--ledger", SITE / command[2], *command[3:]).code == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--site", "folder"], "folder exists and is not an empty folder"),
        (["--site", "taken"], "taken exists"),
        (["--site", "nowhere/site"], "There is no directory nowhere for site."),
        (["--site", "."], ". is the current folder; name another one."),
        (["--site", "site", "--labels", "--no-bundle"], "Leave out --no-bundle"),
    ],
)
def test_what_is_refused_closes_nothing(program, board, words, sentence):
    Path("taken").write_text("mine")
    done = program("board", "close", "first", *words, "--yes")
    assert (done.code, board()) == (2, "open")
    assert sentence in " ".join(done.err.split())
    assert not SITE.exists()


@pytest.mark.parametrize("visibility", ["hidden", "anonymous"])
def test_a_bundle_that_tells_more_than_the_page_is_refused(program, board, visibility):
    program("board", "amend", "first", "--set", f"visibility={visibility}")
    done = program("board", "close", "first", "--site", SITE, "--yes")
    assert (done.code, board(), SITE.exists()) == (2, "open", False)
    said = " ".join(done.err.split())
    assert f"first is {visibility}, and its bundle tells what its page does not" in said
    way = said.rpartition("see it first: ladderboard ")[2].split()
    assert program("board", "close", "first", "--site", SITE, "--no-bundle", "--yes").code == 0
    assert program(*way).code == 0  # after the close, too
    assert program("board", "close", "first", "--site", "open").code == 0
    assert Path("open/first.bundle").exists()


def test_a_frozen_board_is_public_in_the_end(program, board):
    program("board", "amend", "first", "--set", "visibility=frozen")
    assert program("board", "close", "first", "--site", SITE, "--yes").code == 0
    assert "froze" not in (SITE / "index.html").read_text()


def test_who_is_asked_is_told_what_is_opened(program, board, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda: "another")
    done = program("board", "close", "first", "--site", SITE)
    assert "site/first.bundle will hold the noise key" in " ".join(done.err.split())
    assert (done.code, board(), SITE.exists()) == (2, "open", False)


def test_what_is_missing_is_named_before_anything_is_closed(board, tmp_path):
    """Pages need more than boards do."""
    words = ["ladderboard", "board", "close", "first", "--site", "site", "--yes"]
    code = f"import sys\nsys.modules['jinja2'] = None\nsys.argv = {words}\n"
    code += "from ladderboard.cli import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ
    )
    assert (done.returncode, board()) == (2, "open")
    assert "--site needs jinja2: pip install 'ladderboard[server]'." in done.stderr


def test_a_full_disk_leaves_a_closed_board_and_a_way(program, board, tmp_path):
    """The limit on the size of files stands for a disk that is full."""
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
    words = ["board", "close", "first", "--site", "site", "--labels", "--yes"]
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True, text=True, check=False, env=os.environ,
    )  # fmt: skip
    assert done.returncode == 4
    assert "File too large" in done.stderr
    again = "ladderboard board close first --site site --labels"
    assert done.stderr.rstrip().endswith(again)
    assert (board(), SITE.exists()) == ("closed", False)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".lad")] == []
    assert program(*again.split()[1:], "--yes").code == 0
    assert (SITE / "first.bundle").exists()
