"""``ladderboard serve``: refusals, and the output at the start."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from support.credentials import ALL_INTERFACES


@pytest.fixture
def serve(run_cli, monkeypatch):
    """Run the command with a stand-in for the server that only reports its address."""

    def stand_in(config, *, boards, announce, command):
        announce(f"http://{config.host}:{config.port}", boards.create_first_token())

    monkeypatch.setattr("ladderboard.server.serve", stand_in)
    monkeypatch.setattr("ladderboard.server.check_port_free", lambda *_: None)
    return lambda *arguments: run_cli("serve", *arguments)


def test_the_organiser_token_is_shown_once(serve, folder):
    first = serve(folder)
    assert first.code == 0
    (token,) = re.findall(r"^  (lb_organiser_\S+)$", first.out, re.MULTILINE)
    assert first.out.startswith("first is created: 300 public")
    second = serve(folder)
    assert second.code == 0
    assert token[:20] not in second.out
    assert second.out.startswith("Ladderboard is at http://127.0.0.1:8000; Ctrl-C stops it.\n")
    assert (
        "First: http://127.0.0.1:8000/boards/first (open, 39 of 40 submissions left)" in second.out
    )


def test_a_lost_database_is_not_replaced_by_an_empty_one(serve, run_cli, folder, tmp_path):
    assert serve(folder).code == 0
    (database,) = Path().glob("*.db")
    database.rename(tmp_path / "elsewhere.db")
    for again in (serve(), serve(folder), run_cli("board", "create", folder)):
        assert again.code == 4
        assert "is missing, but" in again.err
    assert not database.exists()
    doctor = run_cli("doctor")
    assert doctor.code == 1
    assert "the marks of its boards are here" in doctor.out
    (tmp_path / "elsewhere.db").rename(database)
    assert serve().code == 0


def test_a_closed_board_has_no_questions_left(serve, run_cli, folder):
    serve(folder)
    assert run_cli("board", "close", "first", "--no-bundle", "--yes").code == 0
    assert "First: http://127.0.0.1:8000/boards/first (closed)\n" in serve().out


def test_serve_prints_json(serve, folder):
    report = serve(folder, "--port", "8001", "--json").json
    assert (report["url"], report["boards"]) == ("http://127.0.0.1:8001", ["first"])
    assert report["token"].startswith("lb_organiser_")
    assert serve(folder, "--json").json["token"] is None


def test_without_boards_serve_says_how_to_create_one(serve):
    assert " board create DIR" in serve().out


def test_the_next_steps_name_the_board_and_the_database(serve, run_cli, folder):
    output = serve("folder", "--database", "my boards.db", "--key-file", "my.key").out
    steps = output.partition("Next, in another terminal:\n\n")[2].partition("\n\n")[0]
    assert "  export LADDERBOARD_DATABASE='my boards.db'\n" in steps
    assert "team add first 'Team 1' --key-file my.key)" in steps
    assert "  -f folder/sample_submission.csv\n" in steps
    arguments = ["team", "add", "first", "--database", "my boards.db", "--key-file", "my.key"]
    for index in range(4):
        assert run_cli(*arguments, f"team {index + 1}").code == 0
        output = serve("--database", "my boards.db", "--key-file", "my.key").out
        assert (f"'Team {index + 2}'" in output) == (index < 3)
    assert "with the token of a team as LADDERBOARD_TOKEN" in output
    assert "-f predictions.csv" in output


@pytest.mark.parametrize("registration", ["invited", "organiser"])
def test_a_board_with_invitations_says_how_to_invite(serve, folder, registration):
    with (folder / "board.yaml").open("a") as rules:
        rules.write(f"registration: {registration}\n")
    output = serve("folder", "--key-file", "my.key").out
    command = "team invite first --url http://127.0.0.1:8000 --key-file my.key\n"
    assert (command in output) is (registration == "invited")


def test_serve_lists_some_of_many_boards(serve, folder, monkeypatch):
    monkeypatch.setattr("ladderboard.cli._serve._MAX_BOARDS_SHOWN", 2)
    rules = (folder / "board.yaml").read_text()
    for index in range(4):
        (folder / "board.yaml").write_text(rules.replace("slug: first", f"slug: other-{index}"))
        output = serve(folder).out
    assert "/boards/other-3 (open, " in output  # its folder is given
    assert output.count("(open, ") == 3
    assert "  and 1 more: " in output


def test_a_closed_board_has_no_next_steps(serve, run_cli, folder):
    run_cli("board", "create", folder)
    run_cli("board", "close", "first", "--yes")
    assert "Next" not in serve(folder).out


def test_a_password_is_not_shown(tmp_path):
    from ladderboard.cli._serve import DatabaseAccess, format_farewell, organiser_token_command

    shown_url = "postgresql+psycopg://me@there/boards"
    assert f"--database {shown_url}" in organiser_token_command(
        DatabaseAccess(shown_url, None, None)
    )
    for url in (
        "postgresql+psycopg://me:secret@there/boards",
        "postgresql://there/boards?user=me&password=secret",
        "postgresql://me:se/cret@there/boards",
    ):
        output = organiser_token_command(DatabaseAccess(url, None, None)) + format_farewell(url)
        assert "cret" not in output
        assert "--database" not in output
    assert format_farewell("sqlite:///boards.db").endswith("sqlite:///boards.db.")


def test_another_folder_with_the_same_slug_is_refused(serve, folder):
    serve(folder)
    rules = (folder / "board.yaml").read_text()
    (folder / "board.yaml").write_text(rules.replace("questions: 40", "questions: 80"))
    holdout = (folder / "holdout.csv").read_text()
    (folder / "holdout.csv").write_text(holdout.replace("\n0,0,", "\n0,1,", 1))
    result = serve(folder)
    assert (result.code, result.out) == (2, "")
    assert "submissions is 80 in the folder and 40 on the board" in result.err
    assert "1 label differs" in result.err
    assert "ladderboard board amend first --rules" in result.err
    (folder / "holdout.csv").write_text(holdout.replace("\n0,0,public", "", 1))
    assert "the rows of the holdout differ in ids, split" in serve(folder).err


def test_a_difference_is_shown_where_it_is_and_what_an_amendment_would_set_back(
    serve, run_cli, folder
):
    serve(folder)
    text = (folder / "board.yaml").read_text()
    run_cli("board", "amend", "first", "--set", "end=2098-12-31T00:00:00Z")
    long = "a word " * 60
    for path, description in ((folder / "board.yaml", f"{long}of the folder"), (None, f"{long}X")):
        if path is not None:
            path.write_text(f"{text}description: {description}\nfiles: {{rows: 1000}}\n")
        else:
            run_cli("board", "amend", "first", "--set", f"description={description}")
    words = " ".join(serve(folder).err.split())
    assert "end is None in the folder and '2098-12-31T00:00:00Z' on the board" in words
    assert "a word of the folder in the folder and" in words
    assert "a word X on the board" in words
    assert "files.rows is 1000 in the folder and 50000000 on the board" in words
    assert "files.bytes" not in words
    assert "this also reverts earlier amendments of end. " in words


def test_an_amended_board_is_served_with_its_old_and_its_new_folder(serve, run_cli, folder):
    serve(folder)
    run_cli("board", "amend", "first", "--set", "questions=80")
    result = serve(folder)
    assert result.code == 0
    assert "was amended after" in result.out
    assert "submissions is 40 in the folder and 80 on the board" in result.out
    rules = (folder / "board.yaml").read_text()
    (folder / "board.yaml").write_text(rules.replace("questions: 40", "questions: 80"))
    result = serve(folder)
    assert result.code == 0
    assert "was amended" not in result.out


def test_two_folders_with_one_slug_are_refused_before_anything_is_created(serve, folder, tmp_path):
    result = serve(folder, folder)
    assert (result.code, result.out) == (2, "")
    assert "Two of the folders have the slug 'first'" in result.err
    assert not (tmp_path / "ladderboard.db").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
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
def test_invalid_arguments_are_refused_before_anything_is_created(
    serve, tmp_path, arguments, message
):
    result = serve(*arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert not list(tmp_path.iterdir())


def test_a_port_in_use_is_refused(run_cli, folder):
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        result = run_cli("serve", folder, "--port", listener.getsockname()[1], "--json")
        files_before = sorted(Path().iterdir())
        in_use = run_cli(
            "serve", folder, "--port", listener.getsockname()[1], "--database", "new.db"
        )
    assert (result.code, result.json["error"]["code"]) == (4, "storage_failed")
    assert "is taken. Choose another: --port" in in_use.err
    assert (in_use.out, sorted(Path().iterdir())) == ("", files_before)  # no board was made


@pytest.mark.parametrize("missing", ["fastapi", "yaml"])
def test_a_missing_extra_is_named(folder, missing):
    code = f"import sys; sys.modules[{missing!r}] = None; from ladderboard.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", code, "serve", folder], capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert "ladderboard[server]" in result.stderr


def test_names_and_addresses_of_a_public_server(serve, run_cli, monkeypatch, folder):
    served = []
    monkeypatch.setattr("ladderboard.server.serve", lambda config, **_: served.append(config))
    monkeypatch.setattr("ladderboard.server.check_port_free", lambda *_: None)
    arguments = [
        "--url",
        "https://boards.example.org/",
        "--proxy",
        "10.0.0.1",
        "--host",
        ALL_INTERFACES,
    ]
    assert run_cli("serve", folder, *arguments).code == 0
    (config,) = served
    assert (config.host, config.proxy) == (ALL_INTERFACES, ("10.0.0.1",))
    assert config.known_hosts == {"boards.example.org"}
    assert config.url == "https://boards.example.org"
    assert config.secure_cookies is True


def test_printed_urls_include_the_base_path(serve, folder):
    arguments = ["--url", "https://example.org/ladder/", "--port", "8001"]
    output = serve(folder, *arguments).out
    assert "Ladderboard is at https://example.org/ladder; Ctrl-C stops it." in output
    assert "First: https://example.org/ladder/boards/first (open" in output
    assert "Sign in as the organiser at https://example.org/ladder/login with" in output
    assert " submit https://example.org/ladder/boards/first \\\n" in output
    assert "127.0.0.1" not in output
    report = serve(folder, *arguments, "--json").json
    assert report["url"] == "https://example.org/ladder"
    assert report["listening"] == "http://127.0.0.1:8001"


def test_the_server_lock_file_has_every_requirement_of_the_extra():
    """Every requirement of the extra, and of the extras it includes, is locked."""
    root = Path(__file__).parents[2]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]

    def names(extra):
        for requirement in extras[extra]:
            name = re.match(r"[\w-]+", requirement)[0]
            inner = re.match(r"ladderboard\[(\w+)\]", requirement)
            yield from names(inner[1]) if inner else [name]

    requirements = (root / "requirements/server.in").read_text()
    listed = {
        re.match(r"[\w-]+", line)[0] for line in requirements.splitlines() if line[0] not in "#-"
    }
    assert set(names("server")) <= listed
    locked = (root / "requirements/server.txt").read_text()
    assert all(re.search(rf"^{name}(\[\w+\])?==", locked, re.MULTILINE) for name in listed)
