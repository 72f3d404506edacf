"""The verbs of ``ladderboard board``, from an empty folder to the final ranking."""

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
    (who,) = [each for each in board.as_seen_by(ORGANISER).teams() if each["name"] == team]
    body = file.read_bytes()
    sent = IncomingSubmission(board.scorer().read(body), boards.world.clock())
    answer = board.submit(ORGANISER, sent, who["id"])
    boards.close()
    return answer


def test_a_new_folder_needs_labels_only(program, tmp_path):
    done = program("board", "new", "my-board")
    assert done.code == 0
    assert "ladderboard board check my-board" in done.out
    rows = "".join(f"{at},{at % 2}\n" for at in range(300))
    (tmp_path / "my-board/holdout.csv").write_text(f"id,label\n{rows}")
    assert program("board", "create", "my-board").code == 0
    found = program("board", "show", "my-board", "--json").json["board"]
    assert (found["title"], found["questions"], found["teams"]) == ("My board", 1000, 20)
    again = program("board", "new", "my-board")
    assert (again.code, again.out) == (2, "")
    assert "exists already" in again.err


def test_an_example_is_made_once_and_can_be_put_into_the_database(program, tmp_path):
    done = program("board", "new", "demo", "--example", "--json")
    assert str(tmp_path / "demo/board.yaml").endswith(done.json["files"][0])
    again = program("board", "new", "demo", "--example")
    assert (again.code, again.out) == (2, "")
    assert "exists already" in again.err
    assert program("board", "create", "demo").out.startswith("demo is created: 3,000 public and")


def test_what_the_new_folder_suggests_can_be_read():
    from ladderboard.board import read_rules

    suggested = re.compile(r"^# (?=\w+: |- |baselines:)", re.MULTILINE)
    text = suggested.sub("", _TEMPLATE.format(title="x"))
    text = text.replace("start: 2027-01-01", "start: 2026-01-01")
    rules = read_rules(text, slug="x")
    assert rules.window.questions == 5
    assert rules.finals.selections == 2
    assert len(rules.baselines) == 2
    assert rules.deadline is not None


def test_strange_names_of_folders_are_still_titles(program, tmp_path):
    from ladderboard.board import read_rules

    assert program("board", "new", "it's: #1").code == 0
    text = (tmp_path / "it's: #1/board.yaml").read_text()
    assert read_rules(text, slug="x").title == "It's: #1"


def test_a_check_says_what_is_wrong_and_exits_with_one(program, folder):
    assert program("board", "check", folder).code == 0
    assert program("board", "check", folder, "--json").json["ok"] is True
    (folder / "board.yaml").write_text("loss: acuracy\nquestion: 10\n")
    done = program("board", "check", folder)
    assert done.code == 1
    assert "did you mean 'accuracy'?" in " ".join(done.out.split())
    found = program("board", "check", folder, "--json")
    assert found.code == 1
    assert found.json["ok"] is False


def test_what_is_made_is_listed_and_shown(program, folder):
    done = program("board", "create", folder)
    assert done.out.startswith("first is created: 300 public and 100 private rows; 40 questions")
    listed = program("board", "list", "--json").json["boards"]
    assert [each["slug"] for each in listed] == ["first"]
    assert listed[0]["commitment"] in done.out
    table = program("board", "list").out
    assert re.search(r"^first +First +open +0 of 4 +1 of 40", table, re.MULTILINE)
    shown = program("board", "show", "first").out
    assert re.search(r"^baseline +Half +0\.5000 +1", shown, re.MULTILINE)
    assert re.search(r"^declared +Guessing +0\.5000 +- +a coin", shown, re.MULTILINE)
    assert re.search(
        r"the true zero_one of the best model lies in \[0\.\d{4}, [01]\.\d{4}\]\.",
        " ".join(shown.split()),
    )


def test_a_board_is_made_once(program, folder):
    program("board", "create", folder)
    again = program("board", "create", folder)
    assert again.code == 2
    assert "ladderboard board amend first" in again.err


def test_without_a_database_every_verb_says_how_to_make_one(program, tmp_path):
    for words in (["board", "list"], ["team", "list", "first"], ["board", "token"]):
        done = program(*words)
        assert done.code == 2
        assert "ladderboard board create DIR" in done.err
    assert not list(tmp_path.iterdir())


def test_the_database_comes_from_the_environment(program, folder, monkeypatch, tmp_path):
    monkeypatch.setenv("LADDERBOARD_DATABASE", "other.db")
    assert program("board", "create", folder).code == 0
    assert (tmp_path / "other.db").exists()
    assert program("board", "list", "--database", "other.db").code == 0
    assert program("board", "list", "--database", "ladderboard.db").code == 2


def test_an_unknown_board_names_those_that_there_are(program, folder):
    program("board", "create", folder)
    done = program("board", "show", "frist")
    assert (done.code, done.out) == (2, "")
    assert "There is no board 'frist' in this database. Boards: first." in done.err
    found = program("board", "pause", "frist", "--json")
    assert (found.code, found.json["error"]["code"]) == (2, "not_found")


def test_a_paused_board_goes_on(program, folder):
    program("board", "create", folder)
    assert program("board", "pause", "first", "--json").json["status"] == "paused"
    done = program("board", "resume", "first", "--json").json
    assert done == {"board": "first", "status": "open", "charged": 0, "remaining": 39}


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        (["questions=80"], {"questions": [40, 80]}),
        (["title=Digits: the sequel"], {"title": ["First", "Digits: the sequel"]}),
        (["visibility=hidden"], {"visibility": ["public", "hidden"]}),
    ],
)
def test_an_amendment_says_what_changed(program, folder, words, changes):
    program("board", "create", folder)
    words = [each for word in words for each in ("--set", word)]
    assert program("board", "amend", "first", *words, "--json").json["changes"] == changes
    again = program("board", "amend", "first", *words)
    assert "nothing was changed" in again.out


def test_parts_of_a_mapping_change_alone(program, folder):
    program("board", "create", folder)
    words = ["--set", "files.bytes=20 MB", "--set", "files.rows=1000"]
    said = program("board", "amend", "first", *words).out
    assert "  files.bytes: 100000000 -> 20000000" in said
    assert "  files.rows: 50000000 -> 1000" in said
    assert "quota" not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Give one of --set, --rules and --labels"),
        (["--set", "questions"], "--set needs KEY=VALUE"),
        (["--set", "questions=50", "--set", "questions=60"], "questions is given twice"),
        (["--set", "questions=[1"], "is not YAML"),
        (["--set", "loss=brier"], "Loss cannot change"),
        (["--set", "end=2030-01-01"], "AoE"),
        (["--rules", "none.yaml"], "none.yaml cannot be read"),
        (["--rules", "none.yaml", "--labels", "x"], "Give one of"),
    ],
)
def test_amendments_that_are_refused(program, folder, words, said):
    program("board", "create", folder)
    before = program("board", "show", "first", "--json").json["board"]["head"]
    done = program("board", "amend", "first", *words)
    assert done.code == 2
    assert said in done.err
    assert program("board", "show", "first", "--json").json["board"]["head"] == before


def test_a_folder_s_rules_amend_the_board(program, folder):
    program("board", "create", folder)
    rules = folder / "board.yaml"
    text = rules.read_text().replace("questions: 40", "questions: 60")
    rules.write_text(text + "display: {name: mistakes}\nfiles: {bytes: 2 MB}\n")
    found = program("board", "amend", "first", "--rules", folder, "--json").json["changes"]
    assert sorted(found) == ["display", "files", "per_team", "questions"]
    assert found["display"][1]["name"] == "mistakes"
    assert found["per_team"] == [9, 14]
    rules.write_text(text.replace("zero_one", "brier"))
    assert "Loss cannot change" in program("board", "amend", "first", "--rules", rules).err


def test_corrected_labels_are_counted_and_asked_again(program, folder, tmp_path):
    program("board", "create", folder)
    lines = (folder / "holdout.csv").read_text().splitlines()
    lines[1:4] = [re.sub(",(.),", lambda at: f",{1 - int(at[1])},", line) for line in lines[1:4]]
    (tmp_path / "corrected.csv").write_text("\n".join(lines))
    found = program("board", "amend", "first", "--labels", "corrected.csv", "--json").json
    assert (found["labels"], found["epoch"], found["asked_again"]) == (3, 1, 1)
    again = program("board", "amend", "first", "--labels", "corrected.csv")
    assert "nothing was changed" in again.err
    assert program("board", "show", "first", "--json").json["board"]["used"] == 2


def test_a_board_is_closed_on_purpose_only(program, folder):
    program("board", "create", folder)
    done = program("board", "close", "first")
    assert done.code == 2
    assert "cannot be undone" in done.err
    assert program("board", "list", "--json").json["boards"][0]["status"] == "open"


def test_the_final_ranking(program, folder, predictions):
    program("board", "create", folder)
    for team, public, private in (("Ada", 30, 50), ("Bob", 60, 10)):
        program("team", "add", "first", team)
        submit(team, predictions(public, private))
    said = program("board", "close", "first", "--yes").out
    assert "first is closed for good." in said
    assert re.search(r"^ +1  Bob +0\.1000  \[0\.\d{4}, 0\.\d{4}\] +2 +\+1$", said, re.MULTILINE)
    assert re.search(r"^ +2  Ada +0\.5000 .* 1 +-1$", said, re.MULTILINE)
    assert program("board", "close", "first", "--no-bundle", "--yes").code == 3
    shown = program("board", "show", "first")
    assert "Final ranking on 100 private examples" in shown.out
    assert "with at least 0.9 these" in " ".join(shown.out.split())
    assert program("board", "amend", "first", "--set", "questions=80").code == 3


def test_who_is_disqualified_is_in_no_ranking_but_in_what_is_promised(program, folder, predictions):
    program("board", "create", folder)
    for team, public in (("Ada", 60), ("Bob", 3)):
        program("team", "add", "first", team)
        submit(team, predictions(public))
    program("team", "disqualify", "first", "Bob")
    bound = program("board", "show", "first", "--json").json["board"]["bound"]
    # The best model that was asked about is Bob's, with a risk of 0.01.
    assert bound["low"] <= 0.01
    shown = program("board", "show", "first").out
    low, high = re.search(r"lies in \[([\d.]+), ([\d.]+)\]", " ".join(shown.split())).groups()
    assert (float(low), float(high)) == pytest.approx((bound["low"], bound["high"]), abs=1e-4)
    closed = program("board", "close", "first", "--yes").out
    assert "Bob" not in closed
    assert re.search(r"^ +1  Ada ", closed, re.MULTILINE)
    checked = program("verify", "first.bundle").out
    assert re.search(r"^ +1  Ada ", checked, re.MULTILINE)
    assert "Bob" not in checked


@pytest.mark.parametrize(("typed", "status"), [("first\n", "closed"), ("fist\n", "open")])
def test_somebody_at_a_terminal_is_asked(program, folder, monkeypatch, typed, status):
    program("board", "create", folder)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda: typed)
    done = program("board", "close", "first")
    assert done.code == (0 if status == "closed" else 2)
    assert "cannot be undone" in done.err
    assert program("board", "list", "--json").json["boards"][0]["status"] == status


def test_a_moved_board_goes_on_elsewhere(program, folder, monkeypatch, tmp_path):
    monkeypatch.setenv("LADDERBOARD_PASSPHRASE", "four words nobody guesses")
    program("board", "create", folder)
    program("team", "add", "first", "Ada")
    done = program("board", "dump", "first", "--out", "first.dump", "--move", "--json").json
    assert program("board", "resume", "first").code == 3
    words = ["board", "restore", "first.dump", "--database", "there.db", "--json"]
    found = program(*words).json
    assert found == {"board": "first", "status": "open", "head": done["head"]}
    assert (tmp_path / "first.dump").stat().st_mode & 0o777 == 0o600
    there = program("team", "list", "first", "--database", "there.db", "--json").json
    assert [each["name"] for each in there["teams"]] == ["Half", "Ada"]
    assert program(*words).code == 2


def test_a_copy_stays_paused_until_it_is_charged(program, folder, tmp_path):
    program("board", "create", folder)
    public = program("board", "keygen", "my.key").out.strip()
    assert program("board", "dump", "first", "--out", "a.dump", "--to", public).code == 0
    done = program("board", "restore", "a.dump", "--secret-key", "my.key", "--database", "b.db")
    assert "ladderboard board resume first --charge N" in done.out
    refused = program("board", "resume", "first", "--database", "b.db")
    assert (refused.code, "--charge N" in refused.err) == (2, True)
    words = ["board", "resume", "first", "--charge", "1e1", "--database", "b.db"]
    assert "10 questions were charged. 29 questions are left." in program(*words).out


def test_an_old_copy_of_the_database_is_charged_too(program, folder, predictions, tmp_path):
    program("board", "create", folder)
    program("team", "add", "first", "Ada")
    shutil.copy("ladderboard.db", "old.db")
    submit("Ada", predictions(30))
    (tmp_path / "old.db").replace("ladderboard.db")
    done = program("board", "show", "first")
    assert done.code == 4
    refused = program("board", "resume", "first")
    assert (refused.code, "at least 1" in refused.err) == (2, True)
    assert program("board", "resume", "first", "--charge", "1", "--json").json["remaining"] == 38


def test_a_dump_needs_one_key(program, folder, monkeypatch):
    monkeypatch.delenv("LADDERBOARD_PASSPHRASE", raising=False)
    program("board", "create", folder)
    words = ["board", "dump", "first", "--out", "a.dump"]
    assert "--passphrase-file" in program(*words).err
    assert "not both" in program(*words, "--to", "x", "--passphrase-file", "y").err
    assert "There is no file none.dump" in program("board", "restore", "none.dump").err


def test_tokens_are_alone_on_stdout_and_known_to_the_server(program, folder):
    program("board", "create", folder)
    for words, role in ((["--evaluator"], Role.EVALUATOR), ([], Role.ORGANISER)):
        for board in ([], ["first"]):
            done = program("board", "token", *board, *words)
            (token,) = done.out.splitlines()
            assert token not in done.err
            boards = open_boards("ladderboard.db")
            assert boards.caller_by_token(token, "first").role is role
            boards.close()
    assert "--end-others" in program("board", "token", "first", "--end-others").err


def test_an_encrypted_database_needs_its_key_file(program, folder, tmp_path):
    assert program("board", "create", folder, "--key-file", "my.key").code == 0
    assert program("board", "list").code == 2
    missing = program("board", "list", "--key-file", "your.key")
    assert "There is no key file your.key" in missing.err
    assert not (tmp_path / "your.key").exists()
    assert program("board", "list", "--key-file", "my.key").code == 0


def test_json_has_no_control_characters(program, folder):
    program("board", "create", folder)
    program("board", "amend", "first", "--set", "title=Tür")
    done = program("board", "show", "first", "--json")
    assert done.out.isascii()
    assert json.loads(done.out)["board"]["title"] == "Tür"


def test_a_board_from_a_competition_elsewhere(program, tmp_path):
    old, made = tmp_path / "old", tmp_path / "made"
    assert program("board", "new", made, "--huggingface", old).code == 2
    assert not made.exists()
    old.mkdir()
    (old / "conf.json").write_text('{"EVAL_METRIC": "accuracy_score"}')
    (old / "solution.csv").write_text("id,pred,split\n1,0,public\n2,1,private\n")
    assert "board check" in program("board", "new", made, "--huggingface", old).out
    assert program("board", "new", tmp_path / "x", "--huggingface", old, "--example").code == 2
    assert not (tmp_path / "x").exists()
