"""The bundle's scoring program, run as Codabench runs it, writes the release and nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import ladderboard as lb
from ladderboard.adapters.codabench import BridgeSettings, score
from ladderboard.client import Client
from ladderboard.errors import InvalidSetting
from support.adapters.codabench_worker import BUNDLE, CodabenchWorker, can_isolate, pack_zip
from support.credentials import random_secret
from support.server.live_server import make_predictions

WORDS = {"quiet-otter-5b1e9c": "alpha", "green-piano-7d30aa": "beta"}
ALPHA, BETA = (word.encode() for word in WORDS)


@pytest.fixture
def url(serve, guard):
    """The address of the served guard."""
    return serve(guard)


@pytest.fixture
def worker(tmp_path, url):
    """Codabench, with a task that asks the guard on one ladder."""
    return CodabenchWorker(tmp_path / "runs", {"guard": url})


@pytest.fixture
def pack():
    """Return a function that zips a submission."""

    def make(data, **texts):
        files = {f"{name}.txt": content for name, content in texts.items()}
        return pack_zip({"predictions.csv": data, **files})

    return make


def test_the_release_is_the_score(worker, guard, pack, predict):
    ran = worker.score(pack(predict(96)))
    assert ran.scores == {"released": 0.24, "improved": 1, "remaining": 19}
    assert (ran.status, ran.code, ran.stderr) == ("Finished", 0, "")
    assert ran.output == ["detailed_results.html", "scores.json"]
    sentence = "With this question the best went down to 0.24; 19 questions left."
    assert ran.stdout == f"{sentence}\n"
    ran = worker.score(pack(predict(160)))  # worse, on the one ladder of all
    assert ran.scores == {"released": 0.24, "improved": 0, "remaining": 18}
    assert guard.remaining == 18


def test_the_same_submission_again_is_free(worker, guard, pack, predict):
    first, again = (worker.score(pack(predict(96))) for _ in range(2))
    assert (again.scores, again.stdout, guard.remaining) == (first.scores, first.stdout, 19)


def test_what_is_said_about_one_model_is_not_passed_on(serve, tmp_path, pack, predict):
    guard = lb.Holdout.create(tmp_path / "exact.db", [0, 1] * 200, questions=9, mechanism="exact")
    worker = CodabenchWorker(tmp_path / "runs", {"guard": serve(guard)})
    worker.score(pack(predict(40)))
    ran = worker.score(pack(predict(123)))  # its risk is 0.3075
    assert ran.scores["released"] == 0.1
    assert "3075" not in repr(ran)


def test_what_cannot_be_scored_fails_with_the_reasons(worker, guard, pack, predict):
    half = b"".join(predict(10).splitlines(keepends=True)[:201]) + b"9999,1\n"
    ran = worker.score(pack(half))
    assert (ran.status, ran.code, ran.output, ran.stdout) == ("Failed", 1, [], "")
    assert ran.stderr.startswith("2 problems were found:\n- ")
    assert "200 missing ids" in ran.stderr
    assert "9999" in ran.stderr
    assert guard.remaining == 20


def test_each_team_has_its_own_ladder(tmp_path, url, guard, pack, predict):
    worker = CodabenchWorker(tmp_path / "runs", {"guard": url, "teams": WORDS})
    scores = [
        worker.score(pack(predict(wrong), team=word)).scores["released"]
        for word, wrong in [(ALPHA, 96), (BETA, 200), (ALPHA + b"\r\n", 40), (BETA, 80)]
    ]
    assert scores == [0.24, 0.5, 0.1, 0.2]
    assert [ladder.name for ladder in guard.status().ladders] == ["", "alpha", "beta"]


def test_a_guard_with_fewer_ladders_than_teams_is_refused(serve, tmp_path, pack, predict):
    guard = lb.Holdout.create(tmp_path / "one.db", [0, 1] * 200, questions=9)
    settings = {"guard": serve(guard), "teams": WORDS}
    ran = CodabenchWorker(tmp_path / "runs", settings).score(pack(predict(40), team=ALPHA))
    assert "For the organiser" in ran.stderr
    assert "at least 2 ladders" in ran.stderr
    assert guard.remaining == 9


@pytest.fixture
def score_here(tmp_path, url):
    """Return a function that scores files in this process."""

    def make(files, **settings):
        shutil.rmtree(tmp_path / "input", ignore_errors=True)
        for folder in ("ref", "res"):
            (tmp_path / "input" / folder).mkdir(parents=True)
        content = json.dumps({"guard": url, **settings})
        (tmp_path / "input/ref/ladderboard.json").write_text(content)
        for name, data in files.items():
            path = tmp_path / "input/res" / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        return score(tmp_path / "input", tmp_path / "output")

    return make


@pytest.mark.parametrize("word", [None, b"", b"alpha", ALPHA + b"x", b"\xff\xfe", b"x" * 5000])
def test_a_submission_without_a_valid_word_is_refused(score_here, guard, predict, capsys, word):
    files = {"predictions.csv": predict(96)} | ({} if word is None else {"team.txt": word})
    assert score_here(files, teams=WORDS) == 1
    errors = capsys.readouterr().err
    assert errors == "team.txt must hold the word that the organiser gave to your team.\n"
    assert guard.remaining == 20


@pytest.mark.parametrize(
    ("files", "has"),
    [
        ({}, "no file"),
        ({"a.csv": b"1", "b.csv": b"2"}, "'a.csv', 'b.csv'"),
        ({"folder/a.csv": b"1", "metadata": b"exitCode: null", ".a": b"2"}, "no file"),
    ],
)
def test_a_submission_holds_one_file(score_here, guard, capsys, files, has):
    assert score_here(files) == 1
    rule = "A submission must hold one file with predictions, not in a subfolder"
    assert capsys.readouterr().err == f"{rule}; this one has {has}.\n"
    assert guard.remaining == 20


def test_the_file_may_be_named(score_here, predict, capsys):
    files = {"answers.csv": predict(96), "notes.md": b"hello"}
    assert score_here(files, file="answers.csv") == 0
    assert score_here({"notes.md": b"hello"}, file="answers.csv") == 1
    assert "must hold 'answers.csv'" in capsys.readouterr().err


def test_a_word_is_ignored_if_there_are_no_teams(score_here, predict):
    assert (
        score_here({"predictions.csv": predict(96), "team.txt": ALPHA}) == 0
    )  # the settings have no teams


def test_a_board_needs_its_client(tmp_path):
    code = f"""
import sys
sys.modules["httpx"] = None  # as if it were not installed
from ladderboard.adapters.codabench import score
sys.exit(score({str(tmp_path)!r}, {str(tmp_path / "out")!r}))
"""
    (tmp_path / "ref").mkdir()
    (tmp_path / "res").mkdir()
    settings = {"board": "https://boards.example.org/boards/digits", "teams": WORDS}
    (tmp_path / "ref/ladderboard.json").write_text(json.dumps(settings))
    (tmp_path / "res/team.txt").write_bytes(ALPHA)
    (tmp_path / "res/predictions.csv").write_bytes(b"prediction\n1\n")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "pip install 'ladderboard[client]'" in ran.stderr


def test_a_link_into_the_reference_data_is_ignored(worker, pack, predict):
    def spoil(app):
        (app / "input/res/predictions.csv").unlink()
        (app / "input/res/predictions.csv").symlink_to(app / "input/ref/ladderboard.json")

    ran = worker.score(pack(predict(96)), spoil)
    assert (ran.status, ran.code) == ("Failed", 1)
    assert ran.stderr.endswith("; this one has no file.\n")


def test_an_unreachable_guard_reveals_nothing_to_participants(tmp_path, pack, predict):
    settings = {"guard": "http://127.0.0.1:9", "token": "guards-own-token", "teams": WORDS}
    worker = CodabenchWorker(tmp_path / "runs", settings)
    ran = worker.score(pack(predict(96), team=ALPHA))
    assert (ran.status, ran.code) == ("Failed", 2)
    assert "GuardUnreachable" in ran.stderr
    assert "127.0.0.1" not in ran.stderr
    assert "guards-own-token" not in ran.stderr


@pytest.mark.parametrize(
    "settings",
    [
        {"board": "http://boards.internal.example/boards/x", "token": "lb_x", "teams": WORDS},
        {"guard": "ftp://internal.example"},
        {"guard": "https://internal.example/a?b"},
    ],
)
def test_invalid_settings_reveal_nothing_to_participants(score_here, capsys, settings):
    files = {"predictions.csv": b"prediction\n1\n", "team.txt": ALPHA}
    assert score_here(files, **({"guard": None} | settings)) == 2
    printed = capsys.readouterr()
    assert "Tell the organiser" in printed.err
    assert "internal" not in printed.err + printed.out


def test_a_token_is_sent_and_not_shown(serve, tmp_path, guard, pack, predict):
    right = random_secret()
    url = serve(guard, token=right)
    for token, status in [(right, "Finished"), (random_secret(), "Failed")]:
        worker = CodabenchWorker(tmp_path / status, {"guard": url, "token": token})
        ran = worker.score(pack(predict(96)))
        assert ran.status == status
        assert token not in repr(ran)
        assert url not in repr(ran)
    assert right not in repr(BridgeSettings(guard=url, token=right))


def test_a_socket_in_the_workers_data_folder_works(serve, tmp_path, guard, pack, predict):
    """The guard can be reached without a network, through a read-only folder."""
    if not can_isolate():
        pytest.skip("this machine lets nobody make namespaces")
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    settings = {"guard": serve(guard, data / "guard.sock")}
    worker = CodabenchWorker(tmp_path / "runs", settings, data)
    assert worker.score(pack(predict(96))).scores["released"] == 0.24
    worker = CodabenchWorker(tmp_path / "other", {"guard": serve(guard)}, data)
    ran = worker.score(pack(predict(48)))  # a port cannot
    assert (ran.status, "GuardUnreachable" in ran.stderr) == ("Failed", True)
    assert guard.remaining == 19


def test_a_guards_file_in_the_bundle_is_refused(tmp_path, guard, pack, predict):
    """Every container would have its own copy, and no question would ever be spent."""
    worker = CodabenchWorker(tmp_path / "runs", {"guard": "/app/input/ref/guard.db"})

    def spoil(app):
        shutil.copy(tmp_path / "guard.db", app / "input/ref/guard.db")

    ran = worker.score(pack(predict(96)), spoil)
    assert (ran.status, ran.code) == ("Failed", 2)
    assert "fresh copy" in ran.stderr


def test_a_board_answers_for_its_teams(live_server, tmp_path, pack):
    teams = {"quiet-otter-5b1e9c": live_server.join("Ada")[0]}
    board = f"{live_server.url}/boards/{live_server.slug}"
    token = live_server.issue_token("evaluator")
    settings = {"board": board, "token": token, "teams": teams}
    worker = CodabenchWorker(tmp_path / "runs", settings)
    first, again, worse = (
        worker.score(pack(make_predictions(wrong), team=ALPHA)) for wrong in (60, 60, 90)
    )
    assert first.scores == again.scores == {"released": 0.2, "improved": 1, "remaining": 24}
    assert worse.scores == {"released": 0.2, "improved": 0, "remaining": 23}
    ran = worker.score(pack(b"id,prediction\n0,1\n", team=ALPHA))
    assert (ran.code, "399 missing ids" in ran.stderr, token in repr(ran)) == (1, True, False)
    with Client(live_server.url, token, receipts=None) as client:
        assert client.board(live_server.slug).used == 2


@pytest.mark.parametrize("end", ["/", "/submissions", "#submit"])
def test_a_boards_address_may_be_copied_from_a_browser(live_server, tmp_path, pack, end):
    settings = {
        "board": f"{live_server.url}/boards/{live_server.slug}{end}",
        "token": live_server.issue_token("evaluator"),
    }
    settings["teams"] = {"quiet-otter-5b1e9c": live_server.join("Ada")[0]}
    worker = CodabenchWorker(tmp_path / "runs", settings)
    assert worker.score(pack(make_predictions(60), team=ALPHA)).scores["released"] == 0.2


def test_guards_and_boards_of_scores_are_refused(
    score_here, live_server, serve, guard_of_scores, scores, capsys
):
    live_server.create_board("scores", loss="score")
    teams = {"quiet-otter-5b1e9c": live_server.join("Ada", "scores")[0]}
    board = {"guard": None, "board": f"{live_server.url}/boards/scores", "teams": teams}
    board["token"] = live_server.issue_token("evaluator", "scores")
    for settings in ({"guard": serve(guard_of_scores)}, board):
        assert score_here({"scores.csv": scores, "team.txt": ALPHA}, **settings) == 2
        assert "would score themselves" in capsys.readouterr().err
    assert guard_of_scores.remaining == 20
    assert live_server.call("GET", "/boards/scores", live_server.organiser).json()["used"] == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "must name either a guard or a board"),
        (
            {"guard": "https://a", "board": "https://b/boards/c"},
            "must name either a guard or a board",
        ),
        ({"guard": 7}, "must be text"),
        ({"guard": "guard.db"}, "address of a served guard"),
        ({"guard": "https://me:word@a"}, "cannot contain a name or password"),
        ({"board": "https://b/boards/c"}, "A board needs teams"),
        ({"board": "digits", "teams": WORDS}, "address of a board's page"),
        ({"board": "https://b/c", "teams": WORDS}, "address of a board's page"),
        ({"board": "b.org/boards/c", "teams": WORDS}, "address of a board's page"),
        (
            {"board": "https://me:word@b/boards/c", "teams": WORDS},
            "cannot contain a name or password",
        ),
        ({"guard": "https://a", "teams": ["x"]}, "teams must be an object"),
        ({"guard": "https://a", "teams": {"short": "x"}}, "16 characters"),
        ({"guard": "https://a", "teams": {"two words of length": "x"}}, "16 characters"),
    ],
)
def test_invalid_settings_are_refused(settings, message):
    with pytest.raises(InvalidSetting, match=message):
        BridgeSettings(**settings)


@pytest.mark.parametrize("text", [None, "{", "[]", "[" * 100_000, '{"gaurd": "https://a"}'])
def test_invalid_reference_data_are_refused(tmp_path, capsys, text):
    (tmp_path / "ref").mkdir()
    if text is not None:
        (tmp_path / "ref/ladderboard.json").write_text(text)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/scores.json").write_text("{}")  # from an earlier run
    assert score(tmp_path, tmp_path / "out") == 2
    assert not (tmp_path / "out/scores.json").exists()
    assert capsys.readouterr().err.startswith("For the organiser: ")


def test_the_files_of_the_bundle_agree():
    bundle = BUNDLE
    about = yaml.safe_load((bundle / "competition.yaml").read_text())
    columns = about["leaderboards"][0]["columns"]
    assert {column["key"] for column in columns} == {"released", "improved", "remaining"}
    # Force_Best takes a submission without scores for the best of a descending first column.
    assert (columns[0]["key"], columns[0]["sorting"]) == ("released", "asc")
    (task,) = about["tasks"]
    for part in ("scoring_program", "reference_data"):
        assert (bundle / task[part]).is_dir()
    (phase,) = about["phases"]
    assert phase["accepts_only_result_submissions"]
    settings = json.loads((bundle / "reference_data/ladderboard.json").read_text())
    with pytest.raises(InvalidSetting, match="16 characters"):  # until the words are replaced
        BridgeSettings(**settings)
    assert BridgeSettings(**{**settings, "teams": WORDS}).guard == "unix:/app/data/guard/guard.sock"
    assert not [path for path in Path(bundle).rglob("*") if path.suffix in {".db", ".key"}]
