"""``ladderboard board``, from an empty folder to the final ranking."""

import json
import re
import shutil

import pytest

from ladderboard.board import Caller, IncomingSubmission, Role, open_boards
from ladderboard.cli._board._create import _TEMPLATE

ORGANISER = Caller(Role.ORGANISER)


def submit(team, file, slug="first"):
    """Submit a file for a team, as the server would."""
    boards = open_boards("ladderboard.db")
    board = boards.open(slug)
    (team_row,) = [row for row in board.as_seen_by(ORGANISER).teams() if row["name"] == team]
    body = file.read_bytes()
    submission = IncomingSubmission(board.scorer().read(body), boards.environment.clock())
    answer = board.submit(ORGANISER, submission, team_row["id"])
    boards.close()
    return answer


def test_a_new_folder_needs_labels_only(run_cli, tmp_path):
    result = run_cli("board", "new", "my-board")
    assert result.code == 0
    assert "ladderboard board check my-board" in result.out
    rows = "".join(f"{index},{index % 2}\n" for index in range(300))
    (tmp_path / "my-board/holdout.csv").write_text(f"id,label\n{rows}")
    assert "The description is still the placeholder" in run_cli("board", "check", "my-board").out
    assert run_cli("board", "create", "my-board").code == 0
    board = run_cli("board", "show", "my-board", "--json").json["board"]
    assert (board["title"], board["questions"], board["teams"]) == ("My board", 1000, 20)
    second = run_cli("board", "new", "my-board")
    assert (second.code, second.out) == (2, "")
    assert "exists already" in second.err


def test_an_example_is_created_once_and_becomes_a_board(run_cli, tmp_path):
    result = run_cli("board", "new", "demo", "--example", "--json")
    assert str(tmp_path / "demo/board.yaml").endswith(result.json["files"][0])
    second = run_cli("board", "new", "demo", "--example")
    assert (second.code, second.out) == (2, "")
    assert "exists already" in second.err
    assert run_cli("board", "create", "demo").out.startswith("demo is created: 3,000 public and")


def test_suggestions_in_a_new_board_yaml_are_valid_rules():
    from ladderboard.board import read_rules

    suggested = re.compile(r"^# (?=\w+: |- |baselines:)", re.MULTILINE)
    text = suggested.sub("", _TEMPLATE.format(title="x"))
    text = text.replace("start: 2027-01-01", "start: 2026-01-01")
    rules = read_rules(text, slug="x")
    assert rules.window.questions == 5
    assert rules.finals.selections == 2
    assert len(rules.baselines) == 2
    assert rules.deadline is not None


def test_a_folder_with_a_strange_name_gets_a_title(run_cli, tmp_path):
    from ladderboard.board import read_rules

    assert run_cli("board", "new", "it's: #1").code == 0
    text = (tmp_path / "it's: #1/board.yaml").read_text()
    assert read_rules(text, slug="x").title == "It's: #1"


def test_a_check_says_what_is_wrong_and_exits_with_one(run_cli, folder):
    assert run_cli("board", "check", folder).code == 0
    assert run_cli("board", "check", folder, "--json").json["ok"] is True
    (folder / "board.yaml").write_text("loss: acuracy\nquestion: 10\n")
    result = run_cli("board", "check", folder)
    assert result.code == 1
    assert "did you mean 'accuracy'?" in " ".join(result.out.split())
    as_json = run_cli("board", "check", folder, "--json")
    assert as_json.code == 1
    assert as_json.json["ok"] is False


def test_a_created_board_is_listed_and_shown(run_cli, folder):
    result = run_cli("board", "create", folder)
    assert result.out.startswith(
        "first is created: 300 public and 100 private rows; 40 submissions"
    )
    listed = run_cli("board", "list", "--json").json["boards"]
    assert [board["slug"] for board in listed] == ["first"]
    assert listed[0]["commitment"] in result.out
    table = run_cli("board", "list").out
    assert re.search(r"^first +First +open +0 of 4 +1 of 40", table, re.MULTILINE)
    output = run_cli("board", "show", "first").out
    assert re.search(r"^baseline +Half +0\.5 +1", output, re.MULTILINE)
    assert re.search(r"^declared +Guessing +0\.5 +- +a coin", output, re.MULTILINE)
    assert re.search(
        r"the true zero-one loss of the best model lies in \[0\.\d\d, [01]\.\d\d\]\.",
        " ".join(output.split()),
    )


def test_a_board_is_created_once(run_cli, folder):
    run_cli("board", "create", folder)
    result = run_cli("board", "create", folder)
    assert result.code == 2
    assert "ladderboard board amend first" in result.err


def test_without_a_database_every_command_says_how_to_create_one(run_cli, tmp_path):
    for arguments in (["board", "list"], ["team", "list", "first"], ["board", "token"]):
        result = run_cli(*arguments)
        assert result.code == 2
        assert "ladderboard board create DIR" in result.err
    assert not list(tmp_path.iterdir())


def test_the_database_comes_from_the_environment(run_cli, folder, monkeypatch, tmp_path):
    monkeypatch.setenv("LADDERBOARD_DATABASE", "other.db")
    assert run_cli("board", "create", folder).code == 0
    assert (tmp_path / "other.db").exists()
    assert run_cli("board", "list", "--database", "other.db").code == 0
    assert run_cli("board", "list", "--database", "ladderboard.db").code == 2


def test_an_unknown_board_lists_the_existing_boards(run_cli, folder):
    run_cli("board", "create", folder)
    result = run_cli("board", "show", "frist")
    assert (result.code, result.out) == (2, "")
    assert "There is no board 'frist' in this database. Boards: first." in result.err
    as_json = run_cli("board", "pause", "frist", "--json")
    assert (as_json.code, as_json.json["error"]["code"]) == (2, "not_found")


def test_a_paused_board_can_be_resumed(run_cli, folder):
    run_cli("board", "create", folder)
    assert run_cli("board", "pause", "first", "--json").json["status"] == "paused"
    report = run_cli("board", "resume", "first", "--json").json
    assert report == {"board": "first", "status": "open", "charged": 0, "remaining": 39}
    result = run_cli("board", "resume", "first")
    assert result.out == "first was open already. 39 submissions are left.\n"


@pytest.mark.parametrize(
    ("arguments", "changes"),
    [
        (["questions=80"], {"questions": [40, 80], "per_team": [9, 19]}),
        (["title=Digits: the sequel"], {"title": ["First", "Digits: the sequel"]}),
        (["visibility=hidden"], {"visibility": ["public", "hidden"]}),
    ],
)
def test_an_amendment_says_what_changed(run_cli, folder, arguments, changes):
    run_cli("board", "create", folder)
    arguments = [argument for change in arguments for argument in ("--set", change)]
    assert run_cli("board", "amend", "first", *arguments, "--json").json["changes"] == changes
    result = run_cli("board", "amend", "first", *arguments)
    assert "nothing was changed" in result.out


def test_amending_a_nested_key_keeps_the_others(run_cli, folder):
    run_cli("board", "create", folder)
    arguments = ["--set", "files.bytes=20 MB", "--set", "files.rows=1000"]
    output = run_cli("board", "amend", "first", *arguments).out
    assert "  files.bytes: 100000000 -> 20000000" in output
    assert "  files.rows: 50000000 -> 1000" in output
    assert "quota" not in output


def test_an_amendment_names_rules_as_people_write_them(run_cli, folder):
    run_cli("board", "create", folder)
    arguments = ["--set", "window={submissions: 7, days: 1}", "--set", "end=2098-01-31T00:00:00Z"]
    run_cli("board", "amend", "first", *arguments, "--yes")
    arguments = ["--set", "window={submissions: 8, days: 1}", "--set", "end=2099-01-31T00:00:00Z"]
    output = run_cli("board", "amend", "first", *arguments).out
    assert "  window.submissions: 7 -> 8\n" in output
    assert "  end: 2098-01-31T00:00:00Z -> 2099-01-31T00:00:00Z\n" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give one of --set, --rules and --labels"),
        (["--set", "questions"], "--set needs KEY=VALUE"),
        (["--set", "questions=50", "--set", "questions=60"], "questions is given twice"),
        (["--set", "questions=[1"], "is not YAML"),
        (["--set", "loss=brier"], "Metric cannot change"),
        (["--set", "end=2030-01-01"], "AoE"),
        (["--rules", "none.yaml"], "none.yaml cannot be read"),
        (["--rules", "none.yaml", "--labels", "x"], "Give one of"),
    ],
)
def test_amendments_that_are_refused(run_cli, folder, arguments, message):
    run_cli("board", "create", folder)
    head_before = run_cli("board", "show", "first", "--json").json["board"]["head"]
    result = run_cli("board", "amend", "first", *arguments)
    assert result.code == 2
    assert message in result.err
    assert run_cli("board", "show", "first", "--json").json["board"]["head"] == head_before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["teams=6"], "fall from 9 to 6. Raise submissions to 55 to keep 9."),
        (["submissions=20"], "fall from 9 to 4. Give --yes"),
        (["end=2020-01-31T00:00:00Z"], "The deadline 2020-01-31 00:00 UTC is past"),
    ],
)
def test_amendments_that_teams_lose_by_need_a_yes(run_cli, folder, changes, message):
    run_cli("board", "create", folder)
    head_before = run_cli("board", "show", "first", "--json").json["board"]["head"]
    arguments = [argument for change in changes for argument in ("--set", change)]
    refused = run_cli("board", "amend", "first", *arguments)
    assert refused.code == 2
    assert message in " ".join(refused.err.split())
    assert "Give --yes" in refused.err
    assert run_cli("board", "show", "first", "--json").json["board"]["head"] == head_before
    assert "is amended" in run_cli("board", "amend", "first", *arguments, "--yes").out


def test_a_new_board_that_is_past_its_deadline_is_warned_about(run_cli, folder):
    with (folder / "board.yaml").open("a") as rules:
        rules.write("end: 2020-01-31 AoE\n")
    result = run_cli("board", "create", folder)
    assert result.code == 0
    warning = result.out.splitlines()[-1]
    assert warning.startswith("Warning: The deadline 2020-02-01 12:00 UTC is past: submissions")


def test_a_board_past_its_deadline_has_the_status_of_its_page(run_cli, folder):
    run_cli("board", "create", folder)
    past = ["--set", "end=2020-01-31T00:00:00Z", "--yes"]
    assert run_cli("board", "amend", "first", *past).code == 0
    shown = run_cli("board", "show", "first").out
    assert "It is past its deadline; it ended at 2020-01-31 00:00 UTC." in " ".join(shown.split())
    assert "deadline passed" in run_cli("board", "list").out
    assert run_cli("board", "list", "--json").json["boards"][0]["status"] == "open"


def test_an_early_close_says_how_far_the_deadline_was(run_cli, folder):
    run_cli("board", "create", folder)
    assert "deadline" not in run_cli("board", "close", "first", "--yes").out
    text = (folder / "board.yaml").read_text().replace("slug: first", "slug: second")
    (folder / "board.yaml").write_text(text + "end: 2099-12-31T00:00:00Z\n")
    run_cli("board", "create", folder)
    output = run_cli("board", "close", "second", "--yes").out
    assert re.search(r"Its deadline was [0-9]+ years away: 2099-12-31 00:00 UTC\.", output)


def test_the_files_for_participants_are_replaced(run_cli, folder):
    run_cli("board", "create", folder)
    (folder / "data").mkdir()
    (folder / "data/train.csv").write_text("x\n1\n")
    assert (
        "first offers 2 files: sample_submission.csv, train.csv."
        in run_cli("board", "data", "first", folder).out
    )
    (folder / "data/train.csv").rename(folder / "data/test.csv")
    assert run_cli("board", "data", "first", folder, "--json").json["files"][1:] == ["test.csv"]
    (folder / "data/a b").write_text("x")
    refused = run_cli("board", "data", "first", folder)
    assert (refused.code, "The name of a data file" in refused.err) == (2, True)
    refused = run_cli("board", "data", "first", folder / "data")  # would withdraw every file
    assert (refused.code, "has no board.yaml. Give the board's folder" in refused.err) == (2, True)


def test_a_folder_s_rules_take_back_earlier_amendments_after_a_yes_only(run_cli, folder):
    run_cli("board", "create", folder)
    run_cli("board", "amend", "first", "--set", "end=2098-12-31T00:00:00Z", "--set", "files.rows=9")
    rules = folder / "board.yaml"
    rules.write_text(rules.read_text() + "description: Second\nfiles: {rows: 9}\n")
    refused = run_cli("board", "amend", "first", "--rules", folder)
    assert refused.code == 2
    expected = "This file reverts earlier amendments: end: 2098-12-31T00:00:00Z -> None. Give --yes"
    assert expected in " ".join(refused.err.split())
    assert "end: 2098-12-31T00:00:00Z -> None" in (
        run_cli("board", "amend", "first", "--rules", folder, "--yes").out
    )
    rules.write_text(rules.read_text().replace("Second", "Third"))
    assert run_cli("board", "amend", "first", "--rules", folder).code == 0


def test_a_folder_with_fewer_submissions_takes_them_back_after_a_yes_only(run_cli, folder):
    run_cli("board", "create", folder)
    run_cli("board", "amend", "first", "--set", "submissions=80")
    refused = run_cli("board", "amend", "first", "--rules", folder)
    assert refused.code == 2
    assert "reverts earlier amendments: submissions: 80 -> 40; per_team: 19 -> 9." in (
        " ".join(refused.err.split())
    )
    assert "submissions: 80 -> 40" in (
        run_cli("board", "amend", "first", "--rules", folder, "--yes").out
    )


def test_an_empty_limit_of_a_team_is_an_equal_part(run_cli, folder):
    run_cli("board", "create", folder)
    run_cli("board", "amend", "first", "--set", "per_team=12")
    output = run_cli("board", "amend", "first", "--set", "per_team=").out
    assert "per_team: 12 -> 9" in output


def test_a_folder_s_rules_amend_the_board(run_cli, folder):
    run_cli("board", "create", folder)
    rules = folder / "board.yaml"
    text = rules.read_text().replace("questions: 40", "questions: 60")
    rules.write_text(text + "display: {name: mistakes}\nfiles: {bytes: 2 MB}\n")
    changes = run_cli("board", "amend", "first", "--rules", folder, "--json").json["changes"]
    assert sorted(changes) == ["display", "files", "per_team", "questions"]
    assert changes["display"][1]["name"] == "mistakes"
    assert changes["per_team"] == [9, 14]
    rules.write_text(text.replace("zero_one", "brier"))
    assert "Metric cannot change" in run_cli("board", "amend", "first", "--rules", rules).err


def test_corrected_labels_are_counted_and_submissions_rescored(run_cli, folder, tmp_path):
    run_cli("board", "create", folder)
    lines = (folder / "holdout.csv").read_text().splitlines()
    lines[1:4] = [
        re.sub(",(.),", lambda match: f",{1 - int(match[1])},", line) for line in lines[1:4]
    ]
    (tmp_path / "corrected.csv").write_text("\n".join(lines))
    report = run_cli("board", "amend", "first", "--labels", "corrected.csv", "--json").json
    assert (report["labels"], report["epoch"], report["asked_again"]) == (3, 1, 1)
    result = run_cli("board", "amend", "first", "--labels", "corrected.csv")
    assert "nothing was changed" in result.err
    assert run_cli("board", "show", "first", "--json").json["board"]["used"] == 2


def test_closing_a_board_needs_confirmation(run_cli, folder):
    run_cli("board", "create", folder)
    result = run_cli("board", "close", "first")
    assert result.code == 2
    assert "cannot be undone" in result.err
    assert run_cli("board", "list", "--json").json["boards"][0]["status"] == "open"


def test_the_final_ranking(run_cli, folder, predictions):
    run_cli("board", "create", folder)
    for team, public, private in (("Ada", 30, 50), ("Bob", 60, 10)):
        run_cli("team", "add", "first", team)
        submit(team, predictions(public, private))
    output = run_cli("board", "close", "first", "--yes").out
    assert "first is closed for good." in output
    assert re.search(r"^ +1  1 +Bob +0\.1  \[0\.\d\d, 0\.\d\d\] +2 +\+1$", output, re.MULTILINE)
    assert re.search(r"^ +2  2 +Ada +0\.5 .* 1 +-1$", output, re.MULTILINE)
    assert run_cli("board", "close", "first", "--no-bundle", "--yes").code == 3
    result = run_cli("board", "show", "first")
    assert "Final ranking on 100 private examples" in result.out
    words = " ".join(result.out.split())
    assert "With confidence 95%, all intervals contain the true zero-one loss." in words
    assert "possible ranks; all ranges together hold with confidence 95%." in words
    assert run_cli("board", "amend", "first", "--set", "questions=80").code == 3


def test_a_shared_final_rank_begins_with_an_equals_sign(run_cli, folder, predictions):
    run_cli("board", "create", folder)
    for team, private in (("Ada", 10), ("Bob", 10), ("Cleo", 50)):
        run_cli("team", "add", "first", team)
        submit(team, predictions(30, private))
    closed, shown = (
        run_cli("board", "close", "first", "--yes").out,
        run_cli("board", "show", "first"),
    )
    for output in (closed, shown.out[shown.out.index("Final ranking") :]):
        rows = re.findall(r"^ +(=?\d) .* (Ada|Bob|Cleo) ", output, re.MULTILINE)
        assert rows == [("=1", "Ada"), ("=1", "Bob"), ("3", "Cleo")]


def test_a_disqualified_team_is_not_ranked_but_counts_in_the_certificate(
    run_cli, folder, predictions
):
    run_cli("board", "create", folder)
    for team, public in (("Ada", 60), ("Bob", 3)):
        run_cli("team", "add", "first", team)
        submit(team, predictions(public))
    run_cli("team", "disqualify", "first", "Bob")
    bound = run_cli("board", "show", "first", "--json").json["board"]["bound"]
    # The best model that was asked about is Bob's, with a risk of 0.01.
    assert bound["low"] <= 0.01
    output = run_cli("board", "show", "first").out
    low, high = re.search(r"lies in \[([\d.]+), ([\d.]+)\]", " ".join(output.split())).groups()
    assert (float(low), float(high)) == pytest.approx((bound["low"], bound["high"]), abs=1e-2)
    closed = run_cli("board", "close", "first", "--yes").out
    assert "Bob" not in closed
    assert re.search(r"^ +1  1 +Ada ", closed, re.MULTILINE)
    checked = run_cli("verify", "first.bundle").out
    assert re.search(r"^ +1  Ada ", checked, re.MULTILINE)
    assert "Bob" not in checked


def test_a_moved_board_continues_in_another_database(run_cli, folder, monkeypatch, tmp_path):
    monkeypatch.setenv("LADDERBOARD_PASSPHRASE", "four words nobody guesses")
    run_cli("board", "create", folder)
    run_cli("team", "add", "first", "Ada")
    report = run_cli("board", "dump", "first", "--out", "first.dump", "--move", "--json").json
    assert run_cli("board", "resume", "first").code == 3
    arguments = ["board", "restore", "first.dump", "--database", "there.db", "--json"]
    restored = run_cli(*arguments).json
    assert restored == {"board": "first", "status": "open", "head": report["head"]}
    assert (tmp_path / "first.dump").stat().st_mode & 0o777 == 0o600
    teams = run_cli("team", "list", "first", "--database", "there.db", "--json").json
    assert [team["name"] for team in teams["teams"]] == ["Half", "Ada"]
    assert run_cli(*arguments).code == 2


def test_a_copy_stays_paused_until_it_is_charged(run_cli, folder, tmp_path):
    run_cli("board", "create", folder)
    public = run_cli("board", "keygen", "my.key").out.strip()
    dumped = run_cli("board", "dump", "first", "--out", "a.dump", "--to", public)
    assert dumped.code == 0
    assert "  ladderboard board restore a.dump --secret-key SECRET.key\n" in dumped.out
    assert "give --secret-key" in run_cli("board", "restore", "a.dump", "--database", "b.db").err
    result = run_cli("board", "restore", "a.dump", "--secret-key", "my.key", "--database", "b.db")
    assert "ladderboard board resume first --charge N --database b.db\n" in result.out
    refused = run_cli("board", "resume", "first", "--database", "b.db")
    assert (refused.code, "--charge N" in refused.err) == (2, True)
    arguments = ["board", "resume", "first", "--charge", "1e1", "--database", "b.db"]
    assert " ".join(run_cli(*arguments).out.split()) == (
        "first is open. 10 submissions charged, 29 left. Each team now has 7 in all reserved for "
        "it; 1 more are first come, first served."
    )


def test_an_old_copy_of_the_database_is_charged_too(run_cli, folder, predictions, tmp_path):
    run_cli("board", "create", folder)
    run_cli("team", "add", "first", "Ada")
    shutil.copy("ladderboard.db", "old.db")
    submit("Ada", predictions(30))
    (tmp_path / "old.db").replace("ladderboard.db")
    result = run_cli("board", "show", "first")
    assert result.code == 4
    refused = run_cli("board", "resume", "first")
    assert (refused.code, "at least 1" in refused.err) == (2, True)
    assert run_cli("board", "resume", "first", "--charge", "1", "--json").json["remaining"] == 38


def test_a_dump_needs_one_key(run_cli, folder, monkeypatch):
    monkeypatch.delenv("LADDERBOARD_PASSPHRASE", raising=False)
    run_cli("board", "create", folder)
    arguments = ["board", "dump", "first", "--out", "a.dump"]
    assert "--passphrase-file" in run_cli(*arguments).err
    assert "not both" in run_cli(*arguments, "--to", "x", "--passphrase-file", "y").err
    assert "There is no file none.dump" in run_cli("board", "restore", "none.dump").err


def test_a_token_is_the_only_output_and_is_valid(run_cli, folder):
    run_cli("board", "create", folder)
    for arguments, role in ((["--evaluator"], Role.EVALUATOR), ([], Role.ORGANISER)):
        for board in ([], ["first"]):
            result = run_cli("board", "token", *board, *arguments)
            (token,) = result.out.splitlines()
            assert token not in result.err
            boards = open_boards("ladderboard.db")
            assert boards.caller_by_token(token, "first").role is role
            boards.close()
    assert "--end-others" in run_cli("board", "token", "first", "--end-others").err


def test_an_encrypted_database_needs_its_key_file(run_cli, folder, tmp_path):
    assert run_cli("board", "create", folder, "--key-file", "my.key").code == 0
    assert run_cli("board", "list").code == 2
    missing = run_cli("board", "list", "--key-file", "your.key")
    assert "There is no key file your.key" in missing.err
    assert not (tmp_path / "your.key").exists()
    assert run_cli("board", "list", "--key-file", "my.key").code == 0


def test_json_has_no_control_characters(run_cli, folder):
    run_cli("board", "create", folder)
    run_cli("board", "amend", "first", "--set", "title=Tür")
    result = run_cli("board", "show", "first", "--json")
    assert result.out.isascii()
    assert json.loads(result.out)["board"]["title"] == "Tür"


def test_a_board_is_imported_from_another_platform(run_cli, tmp_path):
    source, target = tmp_path / "old", tmp_path / "made"
    assert run_cli("board", "new", target, "--huggingface", source).code == 2
    assert not target.exists()
    source.mkdir()
    (source / "conf.json").write_text('{"EVAL_METRIC": "accuracy_score"}')
    (source / "solution.csv").write_text("id,pred,split\n1,0,public\n2,1,private\n")
    assert "board check" in run_cli("board", "new", target, "--huggingface", source).out
    assert run_cli("board", "new", tmp_path / "x", "--huggingface", source, "--example").code == 2
    assert not (tmp_path / "x").exists()
