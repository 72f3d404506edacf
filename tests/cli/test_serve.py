"""``ladderboard serve``: what it refuses, and what it says when it starts."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from support.credentials import ALL_INTERFACES


@pytest.fixture
def serve(program, monkeypatch):
    """Run the verb, but only announce the address instead of serving."""

    def stand_in(config, *, boards, announce, command):
        announce(f"http://{config.host}:{config.port}", boards.create_first_token())

    monkeypatch.setattr("ladderboard.server.serve", stand_in)
    monkeypatch.setattr("ladderboard.server._process._listener.check_port_free", lambda *_: None)
    return lambda *words: program("serve", *words)


def test_the_organiser_s_token_is_told_once(serve, folder):
    first = serve(folder)
    assert first.code == 0
    (token,) = re.findall(r"^  (lb_organiser_\S+)$", first.out, re.MULTILINE)
    assert first.out.startswith("first is created: 300 public")
    again = serve(folder)
    assert again.code == 0
    assert token[:20] not in again.out
    assert again.out.startswith("Ladderboard is at http://127.0.0.1:8000; Ctrl-C stops it.\n")
    assert "First: http://127.0.0.1:8000/boards/first (open, 39 of 40 questions left)" in again.out


def test_a_closed_board_has_no_questions_left(serve, program, folder):
    serve(folder)
    assert program("board", "close", "first", "--no-bundle", "--yes").code == 0
    assert "First: http://127.0.0.1:8000/boards/first (closed)\n" in serve().out


def test_for_machines(serve, folder):
    found = serve(folder, "--port", "8001", "--json").json
    assert (found["url"], found["boards"]) == ("http://127.0.0.1:8001", ["first"])
    assert found["token"].startswith("lb_organiser_")
    assert serve(folder, "--json").json["token"] is None


def test_without_boards_it_says_how_to_make_one(serve):
    assert " board create DIR" in serve().out


def test_the_next_steps_name_what_is_there(serve, program, folder):
    said = serve("folder", "--database", "my boards.db", "--key-file", "my.key").out
    steps = said.partition("Next, in another terminal:\n\n")[2]
    assert "  export LADDERBOARD_DATABASE='my boards.db'\n" in steps
    assert "team add first 'Team 1' --key-file my.key)" in steps
    assert "  -f folder/sample_submission.csv\n" in steps
    words = ["team", "add", "first", "--database", "my boards.db", "--key-file", "my.key"]
    for at in range(4):
        assert program(*words, f"team {at + 1}").code == 0
        said = serve("--database", "my boards.db", "--key-file", "my.key").out
        assert (f"'Team {at + 2}'" in said) == (at < 3)
    assert "with the token of a team as LADDERBOARD_TOKEN" in said
    assert "-f predictions.csv" in said


def test_of_many_boards_it_shows_some(serve, folder, monkeypatch):
    monkeypatch.setattr("ladderboard.cli._serve._MAX_BOARDS_SHOWN", 2)
    rules = (folder / "board.yaml").read_text()
    for at in range(4):
        (folder / "board.yaml").write_text(rules.replace("slug: first", f"slug: other-{at}"))
        said = serve(folder).out
    assert "/boards/other-3 (open, " in said  # its folder is given
    assert said.count("(open, ") == 3
    assert "  and 1 more: " in said


def test_a_closed_board_has_no_next_steps(serve, program, folder):
    program("board", "create", folder)
    program("board", "close", "first", "--yes")
    assert "Next" not in serve(folder).out


def test_a_password_is_not_shown(tmp_path):
    from ladderboard.cli._serve import DatabaseAccess, format_farewell, organiser_token_command

    here = "postgresql+psycopg://me@there/boards"
    assert f"--database {here}" in organiser_token_command(DatabaseAccess(here, None, None))
    for held in (
        "postgresql+psycopg://me:secret@there/boards",
        "postgresql://there/boards?user=me&password=secret",
        "postgresql://me:se/cret@there/boards",
    ):
        told = organiser_token_command(DatabaseAccess(held, None, None)) + format_farewell(held)
        assert "cret" not in told
        assert "--database" not in told
    assert format_farewell("sqlite:///boards.db").endswith("sqlite:///boards.db.")


def test_another_folder_of_that_name_is_refused(serve, folder):
    serve(folder)
    rules = (folder / "board.yaml").read_text()
    (folder / "board.yaml").write_text(rules.replace("questions: 40", "questions: 80"))
    holdout = (folder / "holdout.csv").read_text()
    (folder / "holdout.csv").write_text(holdout.replace("\n0,0,", "\n0,1,", 1))
    done = serve(folder)
    assert (done.code, done.out) == (2, "")
    assert "questions is 80 in the folder and 40 on the board" in done.err
    assert "1 label differs" in done.err
    assert "ladderboard board amend first --rules" in done.err
    (folder / "holdout.csv").write_text(holdout.replace("\n0,0,public", "", 1))
    assert "the rows of the holdout differ in ids, split" in serve(folder).err


def test_an_amended_board_goes_on_with_its_old_folder_and_with_a_new_one(serve, program, folder):
    serve(folder)
    program("board", "amend", "first", "--set", "questions=80")
    done = serve(folder)
    assert done.code == 0
    assert "was amended after" in done.out
    assert "questions is 40 in the folder and 80 on the board" in done.out
    rules = (folder / "board.yaml").read_text()
    (folder / "board.yaml").write_text(rules.replace("questions: 40", "questions: 80\nper_team: 9"))
    done = serve(folder)
    assert done.code == 0
    assert "was amended" not in done.out


def test_two_folders_of_one_name_are_refused_before_anything_is_made(serve, folder, tmp_path):
    done = serve(folder, folder)
    assert (done.code, done.out) == (2, "")
    assert "Two of the folders have the slug 'first'" in done.err
    assert not (tmp_path / "ladderboard.db").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--workers", "2"], "postgresql+psycopg://"),
        (["--database", "mysql://there/boards"], "mysql://"),
        (["--database", "none/boards.db"], "There is no directory none"),
        (["--url", "boards.example.org"], "https://boards.example.org"),
        (["--url", "https://example.org/a/../b"], "https://example.org/ladder"),
        (["--url", "https://example.org/boards"], "Its path cannot contain boards"),
        (["--url", "https://me:secret@example.org"], "https://example.org/ladder"),
        (["--proxy", "*"], "networks like 10.0.0.0/24"),
        (["--proxy", "0.0.0.0/0"], "networks like 10.0.0.0/24"),
        (["--proxy", "127.0.0.1,proxy.example.org"], "'proxy.example.org'"),
        (["none"], "must be a folder with board.yaml"),
        (["--database", "."], "is a directory"),
    ],
)
def test_what_cannot_be_served_is_refused_before_anything_is_made(serve, tmp_path, words, said):
    done = serve(*words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert not list(tmp_path.iterdir())


def test_a_port_that_is_taken(program, folder):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = program("serve", folder, "--port", taken.getsockname()[1], "--json")
        before = sorted(Path().iterdir())
        said = program("serve", folder, "--port", taken.getsockname()[1], "--database", "new.db")
    assert (done.code, done.json["error"]["code"]) == (4, "storage_failed")
    assert "is taken. Choose another: --port" in said.err
    assert (said.out, sorted(Path().iterdir())) == ("", before)  # no board was made


@pytest.mark.parametrize("missing", ["fastapi", "yaml"])
def test_a_missing_extra_is_named(program, folder, monkeypatch, missing):
    import ladderboard.server

    # It is imported anew, and whoever comes later must find the one that was there.
    monkeypatch.setattr(ladderboard, "server", ladderboard.server)
    monkeypatch.setitem(sys.modules, missing, None)
    for name in [module for module in sys.modules if module.startswith("ladderboard.server")]:
        monkeypatch.delitem(sys.modules, name)
    done = program("serve", folder)
    assert done.code == 2
    assert "ladderboard[server]" in done.err


def test_names_and_addresses_of_a_public_server(serve, program, monkeypatch, folder):
    seen = []
    monkeypatch.setattr("ladderboard.server.serve", lambda how, **_: seen.append(how))
    monkeypatch.setattr("ladderboard.server._process._listener.check_port_free", lambda *_: None)
    words = [
        "--url",
        "https://boards.example.org/",
        "--proxy",
        "10.0.0.1",
        "--host",
        ALL_INTERFACES,
    ]
    assert program("serve", folder, *words).code == 0
    (how,) = seen
    assert (how.host, how.proxies) == (ALL_INTERFACES, "10.0.0.1")
    assert how.settings.hosts == {"boards.example.org"}
    assert how.settings.url == "https://boards.example.org"
    assert how.settings.secure is True


def test_below_a_path_everything_that_is_said_has_it(serve, folder):
    words = ["--url", "https://example.org/ladder/", "--port", "8001"]
    said = serve(folder, *words).out
    assert "Ladderboard is at https://example.org/ladder; Ctrl-C stops it." in said
    assert "First: https://example.org/ladder/boards/first (open" in said
    assert "sign in at https://example.org/ladder/login\n" in said
    assert " submit https://example.org/ladder/boards/first \\\n" in said
    assert "127.0.0.1" not in said
    found = serve(folder, *words, "--json").json
    assert found["url"] == "https://example.org/ladder"
    assert found["listening"] == "http://127.0.0.1:8001"


def test_the_lock_of_the_server_has_its_extra():
    """Every name of the extra, and of those that it takes in, is in the file that is locked."""
    root = Path(__file__).parents[2]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]

    def names(extra):
        for each in extras[extra]:
            name = re.match(r"[\w-]+", each)[0]
            inner = re.match(r"ladderboard\[(\w+)\]", each)
            yield from names(inner[1]) if inner else [name]

    wanted = (root / "requirements/server.in").read_text()
    listed = {re.match(r"[\w-]+", line)[0] for line in wanted.splitlines() if line[0] not in "#-"}
    assert set(names("server")) <= listed
    locked = (root / "requirements/server.txt").read_text()
    assert all(re.search(rf"^{each}(\[\w+\])?==", locked, re.MULTILINE) for each in listed)
