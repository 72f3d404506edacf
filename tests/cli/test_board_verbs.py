"""Taking part from the command line, against a live server."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import pytest

from ladderboard.board import Caller, Role
from ladderboard.client import Client, read_config


@pytest.fixture
def ada(live_server, monkeypatch):
    """A team whose token is in the environment."""
    team, token = live_server.join("Ada")
    monkeypatch.setenv("LADDERBOARD_URL", live_server.url)
    monkeypatch.setenv("LADDERBOARD_TOKEN", token)
    return team


@pytest.fixture
def submit(program, live_server, ada, predictions):
    """Submit predictions with so many wrong."""
    return lambda wrong, *more: program("submit", live_server.slug, "-f", predictions(wrong), *more)


def test_the_answer_is_a_sentence_with_what_remains(submit, live_server):
    done = submit(60, "-m", "first")
    assert (done.code, done.err) == (0, "")
    assert done.out == "A new best: zero_one 0.2000; 24 questions left.\n"
    again = submit(60)
    assert again.code == 0
    assert again.out.endswith("24 questions left.\n")
    assert submit(70, "-q").out.startswith("Your best stays zero_one 0.2000: ")
    with Client() as client:
        receipts = client.receipts(live_server.slug)
    assert receipts[0].answer["reason"] == "The best is now 0.2000; 24 questions left."
    assert [receipt.state for receipt in receipts] == ["answered"] * 3


def test_the_answer_for_machines(submit):
    said = submit(60, "--json").json
    assert (said["improved"], said["question"], said["remaining"]) == (True, 1, 24)
    refused = submit(400, "--json", "--team", "0" * 16)
    assert refused.code == 2
    assert refused.json["error"]["code"] == "invalid_setting"


def test_the_file_may_follow_the_board(program, live_server, ada, predictions):
    done = program("submit", live_server.slug, predictions(60))
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("A new best: ")
    twice = program("submit", live_server.slug, predictions(50), "-f", predictions(50))
    assert (twice.code, twice.out) == (2, "")
    assert "Give the predictions once" in twice.err
    piped = predictions(60).read_bytes()
    assert "answered before" in program("submit", live_server.slug, "-", piped=piped).out


def test_predictions_through_a_pipe(program, live_server, ada, predictions):
    piped = predictions(30).read_bytes()
    done = program("submit", live_server.slug, "-f", "-", piped=piped)
    assert done.out.startswith("A new best: zero_one 0.1000; ")
    packed = program(
        "submit", live_server.slug, "-f", "-", "--format", "csv", "--key", "k", piped=piped
    )
    assert packed.code == 0


def test_a_board_by_its_page(program, page, ada, predictions, monkeypatch):
    monkeypatch.delenv("LADDERBOARD_URL")
    assert program("submit", page, "-f", predictions(30)).code == 0
    assert program("submit", f"{page}/submit", "-f", predictions(30)).code == 0
    both = program("submit", page, "-f", predictions(30), "--url", "https://b.example.org")
    assert (both.code, both.out) == (2, "")
    assert "leave --url out" in both.err


def test_exit_codes(submit, program, live_server, ada, predictions, tmp_path, monkeypatch):
    (tmp_path / "bad.csv").write_text("id,prediction\n1,1\n")
    bad = program("submit", live_server.slug, "-f", tmp_path / "bad.csv")
    assert (bad.code, bad.out) == (2, "")
    assert "Missing from the file: 399 ids" in bad.err
    assert program("submit", live_server.slug, "-f", tmp_path / "none.csv").code == 2
    nowhere = program("submit", "nowhere", "-f", predictions(1))
    assert (nowhere.code, nowhere.out) == (2, "")
    assert f"There is no board 'nowhere' at {live_server.url}. Boards: " in nowhere.err
    assert live_server.slug in nowhere.err
    assert program("submit", live_server.slug).code == 2
    live_server.amend(per_team=1)
    assert submit(60).code == 0
    spent = submit(50)
    assert (spent.code, spent.out) == (3, "")
    assert spent.err.endswith(f" {live_server.url}/boards/{live_server.slug}/submit\n")
    live_server.call("POST", "/boards/first/pause", live_server.organiser)
    assert submit(40).code == 3
    monkeypatch.setattr("ladderboard.client._transport._FIRST_PAUSE", 0.001)
    away = program("submit", live_server.slug, "-f", predictions(1), "--url", "http://127.0.0.1:9")
    assert away.code == 4
    assert "cannot be reached" in away.err
    monkeypatch.setenv("LADDERBOARD_TOKEN", "lb_team_wrong")
    wrong = submit(30)
    assert wrong.code == 2
    assert f"ladderboard login {live_server.url}/boards/{live_server.slug}" in wrong.err


def test_a_window_that_is_used_up_is_no_question_left_now(
    program, shared_server, live_server, predictions
):
    live_server.reset()
    live_server.create_board(window="{questions: 1, hours: 1}")
    token = live_server.join("Ada")[1]
    page = f"{live_server.url}/boards/{live_server.slug}"
    program("login", page, piped=token.encode())
    assert program("submit", live_server.slug, "-f", predictions(9)).code == 0
    late = program("submit", live_server.slug, "-f", predictions(8), "--json")
    assert (late.code, late.json["error"]["code"]) == (3, "too_soon")


def test_submissions_in_three_forms(submit, program, live_server):
    assert program("submissions", live_server.slug).out == "There are no submissions yet.\n"
    assert program("submissions", live_server.slug, "-q").out == ""
    submit(60, "-m", "first")
    submit(70, "-m", "=1+1")
    table = program("submissions", live_server.slug).out.splitlines()
    assert table[0].split()[:6] == ["number", "time", "(UTC)", "best", "zero_one", "then"]
    assert table[1].endswith("0.2000                      =1+1")
    assert table[2].endswith("0.2000  yes                 first")
    rows = list(csv.DictReader(program("submissions", live_server.slug, "--csv").out.splitlines()))
    assert [row["number"] for row in rows] == ["2", "1"]
    assert rows[0]["message"] == "'=1+1"
    assert (rows[1]["released"], rows[1]["improved"]) == ("0.2", "yes")
    said = program("submissions", live_server.slug, "--json").json
    assert [each["message"] for each in said["submissions"]] == ["=1+1", "first"]


def test_an_evaluator_names_the_team(submit, program, live_server, ada, predictions, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_TOKEN", live_server.issue_token("evaluator"))
    assert submit(60, "--team", ada).code == 0
    said = program("submissions", live_server.slug, "--team", ada, "--json").json
    assert len(said["submissions"]) == 1


def test_the_standings_are_shown_and_downloaded(submit, program, live_server, tmp_path):
    submit(60)
    shown = program("leaderboard", live_server.slug, "-s").out
    assert shown == program("leaderboard", live_server.slug).out
    head, row = shown.splitlines()
    assert head.split()[:2] == ["rank", "team"]
    assert row.split()[:4] == ["1", "Ada", "(you)", "0.2000"]
    said = program("leaderboard", live_server.slug, "--json").json
    assert [each["team"]["name"] for each in said["rows"]] == ["Ada"]
    text = program("leaderboard", live_server.slug, "--csv").out
    assert next(csv.DictReader(text.splitlines()))["name"] == "Ada"
    done = program("leaderboard", live_server.slug, "-d")
    file = tmp_path / f"{live_server.slug}-leaderboard.csv"
    assert done.out == f"{file.name} holds the standings, 1 row.\n"
    assert file.read_text() == text
    assert program("leaderboard", live_server.slug, "-d", "-q", "-p", "own.csv").out == ""
    assert (tmp_path / "own.csv").read_text() == text
    written = program("leaderboard", live_server.slug, "--download", "--json").json
    assert json.loads((tmp_path / written["file"]).read_text())["rows"] == said["rows"]
    alone = program("leaderboard", live_server.slug, "-p", "own.json")
    assert alone.out == "own.json holds the standings, 1 row.\n"
    assert json.loads((tmp_path / "own.json").read_text())["rows"] == said["rows"]
    away = program("leaderboard", live_server.slug, "-d", "-p", "nowhere")
    assert (away.code, away.out) == (2, "")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".ladder")]


def test_a_closed_board_shows_its_final_ranking(submit, program, live_server):
    submit(60)
    before = program("leaderboard", live_server.slug)
    assert program("leaderboard", live_server.slug, "--json").json["finals"] is None
    live_server.boards.open(live_server.slug).closer.close(Caller(Role.ORGANISER))
    done = program("leaderboard", live_server.slug)
    told = program("leaderboard", live_server.slug, "--json").json
    (row,) = told["finals"]["rows"]
    assert (done.code, told["status"]) == (0, "closed")
    assert done.out.startswith(before.out)
    after = done.out.removeprefix(before.out).splitlines()
    n = told["finals"]["n"]
    assert (
        after[1] == f"{live_server.slug} is closed. The final ranking, on {n:,} private examples:"
    )
    assert after[2].split() == ["rank", "team", "zero_one", "public", "rank", "move"]
    assert after[3].split() == ["1", "Ada", f"{row['display']:.4f}", "1", "0"]
    assert after[4].endswith(f"{live_server.url}/boards/{live_server.slug}")
    assert (
        program("leaderboard", live_server.slug, "--csv")
        .out.splitlines()[0]
        .startswith("rank,team,")
    )


def test_baselines_from_elsewhere_are_where_they_belong(
    program, shared_server, live_server, predictions
):
    live_server.reset()
    known = "{name: Coin, value: 0.5, source: thrown}, {name: Person, value: 0.05}"
    live_server.create_board(baselines=f"[{known}]")
    page = f"{live_server.url}/boards/{live_server.slug}"
    first, *rows = program("leaderboard", page).out.splitlines()
    assert first == "There are no submissions yet."
    assert [row.split()[1] for row in rows] == ["team", "Person", "Coin"]
    program("login", page, piped=live_server.join("Ada")[1].encode())
    program("submit", page, predictions(60))
    rows = [line.split() for line in program("leaderboard", page).out.splitlines()]
    assert [row[:4] for row in rows[1:]] == [
        ["baseline", "Person", "0.0500", "-"],
        ["1", "Ada", "(you)", "0.2000"],
        ["baseline", "Coin", "(thrown)", "0.5000"],
    ]
    said = program("leaderboard", page, "--json").json
    assert [each["you"] for each in said["rows"]] == [True]


def test_only_the_top_is_shown(submit, program, live_server, monkeypatch):
    monkeypatch.setattr("ladderboard.cli._client._leaderboard._MAX_ROWS", 1)
    live_server.join("Bob")
    submit(60)
    lines = program("leaderboard", live_server.slug).out.splitlines()
    assert len(lines) == 3
    assert lines[2].endswith(f"ladderboard leaderboard {live_server.slug} --download")
    assert len(program("leaderboard", live_server.slug, "-q").out.splitlines()) == 2
    assert len(program("leaderboard", live_server.slug, "--csv").out.splitlines()) == 3


def test_login_keeps_a_token_that_is_good(program, live_server, page, predictions, tmp_path):
    token = live_server.join("Ada")[1]
    bad = program("login", page, piped=b"lb_team_wrong\n")
    assert (bad.code, bad.out) == (2, "")
    assert "not valid on this board, and was not saved" in bad.err
    assert "LADDERBOARD_TOKEN" not in bad.err
    assert not (tmp_path / "config").exists()
    assert program("login", page, piped=b"\n").code == 2
    done = program("login", page, piped=f"{token}\n".encode())
    assert done.code == 0
    assert f"ladderboard submit {live_server.slug} -f predictions.csv" in done.out
    assert token not in done.out + done.err
    assert program("submit", live_server.slug, "-f", predictions(60)).code == 0
    evaluator = program(
        "login", page, "--json", piped=live_server.issue_token("evaluator").encode()
    )
    assert evaluator.json["team"] is None


def test_login_with_several_boards_and_servers(program, live_server, page):
    token = live_server.join("Ada")[1]
    live_server.create_board("other")
    unsaid = program("login", live_server.url, piped=token.encode())
    assert unsaid.code == 2
    assert "--board" in unsaid.err
    assert f"Boards at {live_server.url}: b" in unsaid.err
    said = program(
        "login", live_server.url, "--board", live_server.slug, "--json", piped=token.encode()
    ).json
    assert (said["url"], said["board"], said["team"]) == (live_server.url, live_server.slug, "Ada")
    config = read_config()
    config.with_token("https://b.example.org", "x", "y").write()
    program("login", page, "--default", piped=token.encode())
    assert read_config().default == live_server.url
    clash = program("login", page, "--board", "other", piped=token.encode())
    assert "names another board" in clash.err


def test_login_forgets(program, live_server, page):
    token = live_server.join("Ada")[1]
    program("login", page, piped=token.encode())
    assert program("login", "--forget", "--json").json["forgotten"] is True
    assert read_config().tokens == {}
    assert program("login", page, "--forget", "--json").json["forgotten"] is False
    program("login", page, piped=token.encode())
    assert (
        program("login", page, "--forget").out
        == f"Removed at {live_server.url}: {live_server.slug}.\n"
    )
    assert read_config().tokens == {}
    assert (
        f"No token for {live_server.slug} at {live_server.url} was saved."
        in program("login", page, "--forget").out
    )


def test_login_by_a_short_name_and_by_what_lacks_a_beginning(
    program, live_server, page, monkeypatch
):
    token = live_server.join("Ada")[1].encode()
    assert "No server is set" in program("login", live_server.slug, piped=token).err
    monkeypatch.setenv("LADDERBOARD_URL", live_server.url)
    assert (
        program("login", live_server.slug, "--json", piped=token).json["board"] == live_server.slug
    )
    both = program("login", live_server.slug, "--board", "other", piped=token)
    assert (both.code, "leave out --board" in both.err) == (2, True)
    nowhere = program("login", "nowhere", piped=token)
    assert (nowhere.code, "There is no board 'nowhere' at" in nowhere.err) == (2, True)
    for typed, meant in {
        "127.0.0.1:8000": "try http://127.0.0.1:8000\n",
        "localhost:8000/boards/digits": "try http://localhost:8000/boards/digits\n",
        "boards.example.org": "try https://boards.example.org\n",
        "a b:x": "got 'a b:x'.\n",
    }.items():
        done = program("login", typed, piped=token)
        assert (done.code, done.out) == (2, "")
        assert done.err.endswith(meant)


def test_a_token_is_not_asked_for_where_it_would_go_in_the_clear(program, live_server, monkeypatch):
    done = program("login", "http://boards.example.org/boards/digits", piped=b"lb_team_a")
    assert done.code == 2
    assert "not https" in done.err


def test_a_config_that_others_can_read_is_refused(program, live_server, page, tmp_path):
    program("login", page, piped=live_server.join("Ada")[1].encode())
    file = tmp_path / "config/ladderboard/config.toml"
    file.chmod(0o644)
    done = program("submissions", live_server.slug)
    assert done.code == 2
    assert f"chmod 600 {file}" in done.err


def test_nobody_to_ask(program, live_server):
    done = program("leaderboard", "digits")
    assert done.code == 2
    assert "ladderboard login URL" in done.err


@pytest.mark.parametrize("missing", ["typer", "httpx"])
@pytest.mark.parametrize("verb", ["login", "submit", "submissions", "leaderboard"])
def test_without_a_library_it_is_one_sentence(live_server, page, tmp_path, missing, verb):
    words = ["ladderboard", verb, page, *(["-f", "a.csv"] if verb == "submit" else [])]
    code = f"import sys\nsys.modules[{missing!r}] = None\nsys.argv = {words}\n"
    code += "from ladderboard.cli import main\nmain()\n"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (2, "")
    who, clone = "The client", ""
    if missing == "typer":
        who, clone = "The command line", ", in a clone '.[client]'"
    said = f"ladderboard: {who} needs {missing}: pip install 'ladderboard[client]'{clone}.\n"
    assert done.stderr == said


def test_bytes_that_are_no_text_are_refused(submit):
    done = submit(60, "-m", "a\udcff")
    assert (done.code, done.out) == (2, "")
    assert "must be text" in done.err
    assert submit(60, "--key", " a").code == 2
    assert submit(60, "--key", "ü").code == 2
