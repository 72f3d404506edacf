"""Taking part from the command line, against a live server."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import pytest

from ladderboard.board import Caller, Role, VerifiedIdentity
from ladderboard.client import Client, read_config


@pytest.fixture
def ada(live_server, monkeypatch):
    """A team whose token is in the environment."""
    team, token = live_server.join("Ada")
    monkeypatch.setenv("LADDERBOARD_URL", live_server.url)
    monkeypatch.setenv("LADDERBOARD_TOKEN", token)
    return team


@pytest.fixture
def submit(run_cli, live_server, ada, predictions):
    """Submit predictions with a given number of errors."""
    return lambda errors, *options: run_cli(
        "submit", live_server.slug, "-f", predictions(errors), *options
    )


def test_submit_prints_one_sentence_with_the_remaining_submissions(submit, live_server):
    result = submit(60, "-m", "first")
    assert (result.code, result.err) == (0, "")
    assert result.out == "A new best: zero-one loss 0.2. 24 submissions left.\n"
    second = submit(60)
    assert second.code == 0
    assert second.out.endswith("24 submissions left.\n")
    assert submit(70, "-q").out.startswith(
        "No measurable improvement. Your best: zero-one loss 0.2."
    )
    with Client() as client:
        receipts = client.receipts(live_server.slug)
    assert receipts[0].answer["reason"] == "The best is now zero-one loss 0.2. 24 submissions left."
    assert [receipt.state for receipt in receipts] == ["answered"] * 3


def test_submit_prints_json(submit):
    report = submit(60, "--json").json
    assert (report["improved"], report["question"], report["remaining"]) == (True, 1, 24)
    refused = submit(400, "--json", "--team", "0" * 16)
    assert refused.code == 2
    assert refused.json["error"]["code"] == "invalid_setting"


def test_the_file_may_be_a_positional_argument(run_cli, live_server, ada, predictions):
    result = run_cli("submit", live_server.slug, predictions(60))
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("A new best: ")
    twice = run_cli("submit", live_server.slug, predictions(50), "-f", predictions(50))
    assert (twice.code, twice.out) == (2, "")
    assert "Give the predictions once" in twice.err
    piped = predictions(60).read_bytes()
    assert "Duplicate of submission" in run_cli("submit", live_server.slug, "-", piped=piped).out


def test_predictions_are_read_from_stdin(run_cli, live_server, ada, predictions):
    piped = predictions(30).read_bytes()
    result = run_cli("submit", live_server.slug, "-f", "-", piped=piped)
    assert result.out.startswith("A new best: zero-one loss 0.1. ")
    packed = run_cli(
        "submit", live_server.slug, "-f", "-", "--format", "csv", "--key", "k", piped=piped
    )
    assert packed.code == 0


def test_a_board_can_be_named_by_its_page_url(run_cli, page, ada, predictions, monkeypatch):
    monkeypatch.delenv("LADDERBOARD_URL")
    assert run_cli("submit", page, "-f", predictions(30)).code == 0
    assert run_cli("submit", f"{page}/submit", "-f", predictions(30)).code == 0
    result = run_cli("submit", page, "-f", predictions(30), "--url", "https://b.example.org")
    assert (result.code, result.out) == (2, "")
    assert "leave --url out" in result.err


def test_exit_codes(submit, run_cli, live_server, ada, predictions, tmp_path, monkeypatch):
    (tmp_path / "bad.csv").write_text("id,prediction\n1,1\n")
    invalid = run_cli("submit", live_server.slug, "-f", tmp_path / "bad.csv")
    assert (invalid.code, invalid.out) == (2, "")
    assert "399 missing ids: " in invalid.err
    assert run_cli("submit", live_server.slug, "-f", tmp_path / "none.csv").code == 2
    nowhere = run_cli("submit", "nowhere", "-f", predictions(1))
    assert (nowhere.code, nowhere.out) == (2, "")
    assert f"There is no board 'nowhere' at {live_server.url}. Boards: " in nowhere.err
    assert live_server.slug in nowhere.err
    assert run_cli("submit", live_server.slug).code == 2
    live_server.amend(per_team=1)
    assert submit(60).code == 0
    exhausted = submit(50)
    assert (exhausted.code, exhausted.out) == (3, "")
    assert exhausted.err.endswith(f" {live_server.url}/boards/{live_server.slug}/submit\n")
    live_server.call("POST", "/boards/first/pause", live_server.organiser)
    assert submit(40).code == 3
    monkeypatch.setattr("ladderboard.client._transport._FIRST_PAUSE", 0.001)
    unreachable = run_cli(
        "submit", live_server.slug, "-f", predictions(1), "--url", "http://127.0.0.1:9"
    )
    assert unreachable.code == 4
    assert "cannot be reached" in unreachable.err
    monkeypatch.setenv("LADDERBOARD_TOKEN", "lb_team_wrong")
    unauthorized = submit(30)
    assert unauthorized.code == 2
    assert f"ladderboard login {live_server.url}/boards/{live_server.slug}" in unauthorized.err


def test_an_exhausted_time_window_exits_as_no_submissions_left(
    run_cli, shared_server, live_server, predictions
):
    live_server.reset()
    live_server.create_board(window="{questions: 1, hours: 1}")
    token = live_server.join("Ada")[1]
    page = f"{live_server.url}/boards/{live_server.slug}"
    run_cli("login", page, piped=token.encode())
    assert run_cli("submit", live_server.slug, "-f", predictions(9)).code == 0
    refused = run_cli("submit", live_server.slug, "-f", predictions(8), "--json")
    assert (refused.code, refused.json["error"]["code"]) == (3, "too_soon")


def test_submissions_are_listed_as_table_csv_and_json(submit, run_cli, live_server):
    assert run_cli("submissions", live_server.slug).out == (
        f"There are no submissions yet. To submit: ladderboard submit {live_server.slug} -f FILE\n"
    )
    assert run_cli("submissions", live_server.slug, "-q").out == ""
    submit(60, "-m", "first")
    submit(70, "-m", "=1+1")
    table = run_cli("submissions", live_server.slug).out.splitlines()
    assert table[0].split()[:6] == ["number", "time", "(UTC)", "best", "zero-one", "loss"]
    assert table[1].endswith("0.2                      =1+1")
    assert table[2].endswith("0.2  yes                 first")
    rows = list(csv.DictReader(run_cli("submissions", live_server.slug, "--csv").out.splitlines()))
    assert [row["number"] for row in rows] == ["2", "1"]
    assert rows[0]["message"] == "'=1+1"
    assert (rows[1]["released"], rows[1]["improved"]) == ("0.2", "yes")
    report = run_cli("submissions", live_server.slug, "--json").json
    assert [submission["message"] for submission in report["submissions"]] == ["=1+1", "first"]


def test_an_evaluator_names_the_team(submit, run_cli, live_server, ada, predictions, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_TOKEN", live_server.issue_token("evaluator"))
    assert submit(60, "--team", ada).code == 0
    report = run_cli("submissions", live_server.slug, "--team", ada, "--json").json
    assert len(report["submissions"]) == 1


def test_the_leaderboard_is_shown_and_downloaded(submit, run_cli, live_server, tmp_path):
    submit(60)
    output = run_cli("leaderboard", live_server.slug, "-s").out
    assert output == run_cli("leaderboard", live_server.slug).out
    head, row = output.splitlines()
    assert head.split()[:2] == ["rank", "team"]
    assert row.split()[:4] == ["1", "Ada", "(you)", "0.2"]
    report = run_cli("leaderboard", live_server.slug, "--json").json
    assert [row["team"]["name"] for row in report["rows"]] == ["Ada"]
    text = run_cli("leaderboard", live_server.slug, "--csv").out
    assert next(csv.DictReader(text.splitlines()))["name"] == "Ada"
    result = run_cli("leaderboard", live_server.slug, "-d")
    file = tmp_path / f"{live_server.slug}-leaderboard.csv"
    assert result.out == f"{file.name} holds the standings, 1 row.\n"
    assert file.read_text() == text
    assert run_cli("leaderboard", live_server.slug, "-d", "-q", "-p", "own.csv").out == ""
    assert (tmp_path / "own.csv").read_text() == text
    download = run_cli("leaderboard", live_server.slug, "--download", "--json").json
    assert json.loads((tmp_path / download["file"]).read_text())["rows"] == report["rows"]
    without_download = run_cli("leaderboard", live_server.slug, "-p", "own.json")
    assert without_download.out == "own.json holds the standings, 1 row.\n"
    assert json.loads((tmp_path / "own.json").read_text())["rows"] == report["rows"]
    missing_folder = run_cli("leaderboard", live_server.slug, "-d", "-p", "nowhere")
    assert (missing_folder.code, missing_folder.out) == (2, "")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".ladder")]


def test_a_closed_board_shows_its_final_ranking(submit, run_cli, live_server):
    submit(60)
    live_server.amend(prizes=[{"name": "Cup"}, {"name": "Spoon", "place": 9}])
    while_open = run_cli("leaderboard", live_server.slug)
    assert run_cli("leaderboard", live_server.slug, "--json").json["finals"] is None
    live_server.boards.open(live_server.slug).closer.close(Caller(Role.ORGANISER))
    result = run_cli("leaderboard", live_server.slug)
    report = run_cli("leaderboard", live_server.slug, "--json").json
    (row,) = report["finals"]["rows"]
    assert (result.code, report["status"]) == (0, "closed")
    assert result.out.startswith(while_open.out)
    added_lines = result.out.removeprefix(while_open.out).splitlines()
    n = report["finals"]["n"]
    assert (
        added_lines[1]
        == f"{live_server.slug} is closed. The final ranking, on {n:,} private examples:"
    )
    assert added_lines[2].split() == [
        "rank", "ranks", "team", "zero-one", "loss", "public", "rank", "move",
    ]  # fmt: skip
    assert added_lines[3].split() == ["1", "1", "Ada", f"{row['display']:g}", "1", "0"]
    assert added_lines[4:6] == ["Cup: Ada", "Spoon: no team"]
    assert added_lines[6].endswith(f"{live_server.url}/boards/{live_server.slug}")
    assert (
        run_cli("leaderboard", live_server.slug, "--csv")
        .out.splitlines()[0]
        .startswith("rank,team,")
    )


def test_baselines_with_known_values_are_ranked(run_cli, shared_server, live_server, predictions):
    live_server.reset()
    baselines = "{name: Coin, value: 0.5, source: thrown}, {name: Person, value: 0.05}"
    live_server.create_board(baselines=f"[{baselines}]")
    page = f"{live_server.url}/boards/{live_server.slug}"
    first, *rows = run_cli("leaderboard", page).out.splitlines()
    assert first.startswith("There are no submissions yet. To submit: ladderboard submit ")
    assert [row.split()[1] for row in rows] == ["team", "Person", "Coin"]
    run_cli("login", page, piped=live_server.join("Ada")[1].encode())
    run_cli("submit", page, predictions(60))
    rows = [line.split() for line in run_cli("leaderboard", page).out.splitlines()]
    assert [row[:4] for row in rows[1:]] == [
        ["baseline", "Person", "0.05", "-"],
        ["1", "Ada", "(you)", "0.20"],
        ["baseline", "Coin", "(thrown)", "0.50"],
    ]
    report = run_cli("leaderboard", page, "--json").json
    assert [row["you"] for row in report["rows"]] == [True]


def test_only_the_top_is_shown(submit, run_cli, live_server, monkeypatch):
    monkeypatch.setattr("ladderboard.cli._client._leaderboard._MAX_ROWS", 1)
    live_server.join("Bob")
    submit(60)
    lines = run_cli("leaderboard", live_server.slug).out.splitlines()
    assert len(lines) == 3
    assert lines[2].endswith(f"ladderboard leaderboard {live_server.slug} --download")
    assert len(run_cli("leaderboard", live_server.slug, "-q").out.splitlines()) == 2
    assert len(run_cli("leaderboard", live_server.slug, "--csv").out.splitlines()) == 3


def test_login_saves_a_valid_token(run_cli, live_server, page, predictions, tmp_path):
    token = live_server.join("Ada")[1]
    refused = run_cli("login", page, piped=b"lb_team_wrong\n")
    assert (refused.code, refused.out) == (2, "")
    assert "not valid on this board, and was not saved" in refused.err
    assert "LADDERBOARD_TOKEN" not in refused.err
    assert not (tmp_path / "config").exists()
    assert run_cli("login", page, piped=b"\n").code == 2
    result = run_cli("login", page, piped=f"{token}\n".encode())
    assert result.code == 0
    assert f"ladderboard submit {live_server.slug} -f predictions.csv" in result.out
    assert token not in result.out + result.err
    assert run_cli("submit", live_server.slug, "-f", predictions(60)).code == 0
    evaluator = run_cli(
        "login", page, "--json", piped=live_server.issue_token("evaluator").encode()
    )
    assert evaluator.json["team"] is None


def test_login_with_several_boards_and_servers(run_cli, live_server, page):
    token = live_server.join("Ada")[1]
    live_server.create_board("other")
    unsaid = run_cli("login", live_server.url, piped=token.encode())
    assert unsaid.code == 2
    assert "--board" in unsaid.err
    assert f"Boards at {live_server.url}: b" in unsaid.err
    report = run_cli(
        "login", live_server.url, "--board", live_server.slug, "--json", piped=token.encode()
    ).json
    assert (report["url"], report["board"], report["team"]) == (
        live_server.url,
        live_server.slug,
        "Ada",
    )
    config = read_config()
    config.with_token("https://b.example.org", "x", "y").write()
    run_cli("login", page, "--default", piped=token.encode())
    assert read_config().default == live_server.url
    clash = run_cli("login", page, "--board", "other", piped=token.encode())
    assert "names another board" in clash.err


def test_login_forgets(run_cli, live_server, page):
    token = live_server.join("Ada")[1]
    run_cli("login", page, piped=token.encode())
    assert run_cli("login", "--forget", "--json").json["forgotten"] is True
    assert read_config().tokens == {}
    assert run_cli("login", page, "--forget", "--json").json["forgotten"] is False
    run_cli("login", page, piped=token.encode())
    assert (
        run_cli("login", page, "--forget").out
        == f"Removed at {live_server.url}: {live_server.slug}.\n"
    )
    assert read_config().tokens == {}
    assert (
        f"No token for {live_server.slug} at {live_server.url} was saved."
        in run_cli("login", page, "--forget").out
    )


def test_login_accepts_a_slug_and_a_url_without_scheme(run_cli, live_server, page, monkeypatch):
    token = live_server.join("Ada")[1].encode()
    assert "No server is set" in run_cli("login", live_server.slug, piped=token).err
    monkeypatch.setenv("LADDERBOARD_URL", live_server.url)
    assert (
        run_cli("login", live_server.slug, "--json", piped=token).json["board"] == live_server.slug
    )
    refused = run_cli("login", live_server.slug, "--board", "other", piped=token)
    assert (refused.code, "leave out --board" in refused.err) == (2, True)
    nowhere = run_cli("login", "nowhere", piped=token)
    assert (nowhere.code, "There is no board 'nowhere' at" in nowhere.err) == (2, True)
    for typed, url in {
        "127.0.0.1:8000": "try http://127.0.0.1:8000\n",
        "localhost:8000/boards/digits": "try http://localhost:8000/boards/digits\n",
        "boards.example.org": "try https://boards.example.org\n",
        "a b:x": "got 'a b:x'.\n",
    }.items():
        result = run_cli("login", typed, piped=token)
        assert (result.code, result.out) == (2, "")
        assert result.err.endswith(url)


def test_login_does_not_ask_for_a_token_that_would_be_sent_unencrypted(
    run_cli, live_server, monkeypatch
):
    result = run_cli("login", "http://boards.example.org/boards/digits", piped=b"lb_team_a")
    assert result.code == 2
    assert "not https" in result.err


def test_a_config_that_others_can_read_is_refused(run_cli, live_server, page, tmp_path):
    run_cli("login", page, piped=live_server.join("Ada")[1].encode())
    file = tmp_path / "config/ladderboard/config.toml"
    file.chmod(0o644)
    result = run_cli("submissions", live_server.slug)
    assert result.code == 2
    assert f"chmod 600 {file}" in result.err


def test_a_board_without_a_known_server_is_refused(run_cli, live_server):
    result = run_cli("leaderboard", "digits")
    assert result.code == 2
    assert "ladderboard login URL" in result.err


@pytest.mark.parametrize("missing", ["typer", "httpx"])
@pytest.mark.parametrize("verb", ["login", "submit", "submissions", "leaderboard"])
def test_a_missing_library_is_one_sentence(live_server, page, tmp_path, missing, verb):
    argv = ["ladderboard", verb, page, *(["-f", "a.csv"] if verb == "submit" else [])]
    code = f"import sys\nsys.modules[{missing!r}] = None\nsys.argv = {argv}\n"
    code += "from ladderboard.cli import main\nmain()\n"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (result.returncode, result.stdout) == (2, "")
    part, clone = "The client", ""
    if missing == "typer":
        part, clone = "The command line", ", in a clone '.[client]'"
    message = f"ladderboard: {part} needs {missing}: pip install 'ladderboard[client]'{clone}.\n"
    assert result.stderr == message


def test_a_message_that_is_not_valid_unicode_is_refused(submit):
    result = submit(60, "-m", "a\udcff")
    assert (result.code, result.out) == (2, "")
    assert "must be text" in result.err
    assert submit(60, "--key", " a").code == 2
    assert submit(60, "--key", "ü").code == 2


def test_terms_are_read_and_accepted_before_a_submission(submit, run_cli, live_server):
    live_server.amend(terms="# Terms\n\nBe fair.")
    refused = submit(60)
    assert (refused.code, f"ladderboard terms {live_server.slug}" in refused.err) == (2, True)
    shown = run_cli("terms", live_server.slug)
    assert shown.out.startswith("# Terms\n\nBe fair.")
    command = shown.out.splitlines()[-1].removeprefix("To accept them: ladderboard ").split()
    assert run_cli(*command[:-1], "0" * 12).code == 2
    assert run_cli(*command[:-1], command[-1][:4]).code == 2
    assert "has accepted" in run_cli(*command).out
    assert run_cli("terms", live_server.slug, "--json").json["accepted"] is True
    assert "Your team has accepted them." in run_cli("terms", live_server.slug).out
    assert submit(60).code == 0


def test_the_people_of_a_team_are_listed_invited_and_changed(run_cli, live_server, ada):
    slug = live_server.slug
    assert "it uses its token" in run_cli("members", slug).out
    assert "no sign-in" in run_cli("invite", slug).err
    live_server.amend(registration="sign_in")
    link = run_cli("invite", slug, "--uses", "2", "--days", "3").out.strip()
    assert link.startswith(f"{live_server.url}/boards/{slug}/join#lb_member_")
    board = live_server.boards.open(slug)
    for name in ("Bob", "Carl"):
        person = VerifiedIdentity("u", "https://u.example", name, name)
        hashed = board.identities.sign_in(person, seconds=60)
        caller = live_server.boards.caller_by_token_hash(hashed, slug)
        board.members.join(caller, link.partition("#")[2])
    assert run_cli("members", slug, "--owner", "1").out.split()[:6] == [
        "number", "name", "role", "1", "Bob", "owner"
    ]  # fmt: skip
    people = run_cli("members", slug, "--remove", "2", "--json").json["members"]
    assert [person["name"] for person in people] == ["Bob"]
    assert run_cli("members", slug, "--member", "1").code == 2  # a team with people has an owner
    new_invitation = run_cli("invite", slug, "--json").json["invitation"]
    listed = run_cli("members", slug).out
    assert "1 person" in listed
    (invitation,) = run_cli("members", slug, "--json").json["invitations"]
    assert new_invitation not in listed
    assert (
        run_cli("members", slug, "--revoke", invitation["id"], "--json").json["invitations"] == []
    )


def test_the_leaderboard_shows_the_mean_rank_that_orders_it(
    run_cli, live_server, monkeypatch, predictions
):
    live_server.create_board(
        "ranked",
        loss="accuracy",
        metrics="[{name: f1_macro, show: live}]",
        leaderboard_metric="mean_rank",
        baselines="[{name: Elsewhere, value: 0.25}]",
    )
    monkeypatch.setenv("LADDERBOARD_URL", live_server.url)
    for name, errors in {"Ada": 60, "Bob": 30}.items():
        monkeypatch.setenv("LADDERBOARD_TOKEN", live_server.join(name, "ranked")[1])
        assert run_cli("submit", "ranked", predictions(errors)).code == 0
    lines = run_cli("leaderboard", "ranked").out.splitlines()
    assert lines[0].split()[-3:] == ["macro-F1", "mean", "rank"]
    teams = [line for line in lines if line.split()[0] in {"1", "2", "baseline"}]
    assert [line.split()[1] for line in teams] == ["Bob", "Ada", "Elsewhere"]
    assert [line.split()[-1] for line in teams[:2]] == ["1", "2"]
    rows = list(csv.DictReader(run_cli("leaderboard", "ranked", "--csv").out.splitlines()))
    assert [row["mean_rank"] for row in rows] == ["1.0", "2.0"]


def test_an_invitation_is_not_a_token(run_cli, live_server, monkeypatch, predictions):
    caller = Caller(Role.ORGANISER)
    invitation = live_server.boards.open(live_server.slug).teams.invite_team(caller)
    monkeypatch.setenv("LADDERBOARD_URL", live_server.url)
    monkeypatch.setenv("LADDERBOARD_TOKEN", invitation)
    refused = run_cli("submit", live_server.slug, "-f", predictions(60))
    assert refused.code != 0
    words = " ".join(refused.err.split())
    assert "This is an invitation, not a token." in words
    assert f"{live_server.url}/boards/{live_server.slug}/join" in words
    assert invitation not in words
    monkeypatch.delenv("LADDERBOARD_TOKEN")
    address = f"{live_server.url}/boards/{live_server.slug}"
    refused = run_cli("login", address, piped=f"{address}/join#{invitation}\n".encode())
    assert refused.code != 0
    words = " ".join(refused.err.split())
    assert "This is an invitation, not a token." in words
    assert invitation not in words
