"""What could an attacker gain: the process that plays, the page, and who may ask for it."""

import json
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from ladderboard.board import Target, play_attacks_on_target
from ladderboard.errors import WorkerError
from ladderboard.mechanisms import MECHANISMS
from ladderboard.server import _attack_jobs
from ladderboard.server._attack_jobs import AttackJobs, AttackRunning
from support.server.live_server import csrf_token

SHORT, LONG = {"questions": 4, "teams": 2}, {"questions": 2000, "teams": 20}


@pytest.fixture(scope="module", params=["sqlite"])  # of which nothing here depends
def database(request):
    return request.param


class Guest:
    """Somebody in a browser, on one board."""

    def __init__(self, live_server, token, slug=None):
        self.browser, self._csrf = live_server.browser(), csrf_token
        live_server.sign_in(self.browser, token)
        self.place = f"/boards/{slug or live_server.slug}/attack"

    def page(self):
        return self.browser.get(self.place)

    def post(self, place=""):
        word = self._csrf(self.page().text)
        return self.browser.post(f"{self.place}{place}", data={"csrf": word})

    def state(self):
        return self.browser.get(f"{self.place}/progress").json()

    def wait(self):
        """Wait until nothing is under way, and return how it ended."""
        while (said := self.state())["state"] == "running":
            time.sleep(0.05)
        return said

    def begin(self):
        said = self.post()
        assert (said.status_code, said.headers["location"]) == (303, self.place)

    def end(self):
        assert self.post("/cancel").status_code == 303


@pytest.fixture
def open_attack_page():
    """Let somebody come in; whoever does leaves in the end."""
    here = []

    def enter(live_server, token=None, slug=None):
        here.append(Guest(live_server, token or live_server.organiser, slug))
        return here[-1]

    yield enter
    for each in here:
        each.browser.close()


@pytest.fixture
def short_attack(empty_server, open_attack_page):
    """An organiser of a board that is played in a moment."""
    empty_server.create_board(**SHORT)
    return open_attack_page(empty_server)


@pytest.fixture
def long_attack(empty_server, open_attack_page):
    """An organiser of a board whose games go on until they are ended."""
    empty_server.create_board(**LONG)
    guest = open_attack_page(empty_server)
    yield guest
    guest.end()


def players():
    """Return the processes that play for this one."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((each / "stat").read_text().rpartition(")")[2].split()[1])
            told = (each / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == os.getpid() and b"_attack_worker.py" in told:
            found.append(each)
    return found


def player():
    """Return the one that plays, as soon as its own program runs."""
    while True:
        for each in players():
            if (each / "exe").readlink().resolve() == Path(sys.executable).resolve():
                return each
        time.sleep(0.01)


def plain(page):
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", page.text))


def test_games_are_played_to_the_end_and_shown(empty_server, short_attack):
    said = short_attack.page()
    assert (said.status_code, short_attack.state()) == (
        200,
        {"state": "none", "done": 0, "total": 1000},
    )
    assert "<table" not in said.text
    short_attack.begin()
    assert short_attack.wait() == {"state": "done", "done": 1000, "total": 1000}
    page = short_attack.page()
    target = Target.of(empty_server.boards.open(empty_server.slug))
    points = play_attacks_on_target(target)
    cells = re.findall(r'<td class="number">([\d.]+)</td>', page.text)
    wanted = []
    for each in points:
        gains = [gain[side] for gain in each["attacks"].values() for side in ("board", "exact")]
        wanted += [*(f"{max(gain, 0):.4f}" for gain in gains), str(each["games"])]
    assert cells == wanted
    assert 'role="img"' in page.text
    assert "With 4 questions, all that there are, the strongest of these attacks" in page.text
    assert "A single team, which may ask 2 questions, gains" in page.text
    assert "with seed 0" in page.text
    short_attack.begin()  # however long the process before takes to end
    assert "with seed 0" in short_attack.page().text or short_attack.state()["state"] == "done"
    short_attack.wait()
    assert "with seed 1" in short_attack.page().text


def test_what_was_found_is_kept_while_another_board_is_played(
    empty_server, open_attack_page, short_attack
):
    short_attack.begin()
    short_attack.wait()
    before = short_attack.page().text
    empty_server.reset()
    empty_server.create_board(**LONG)
    other = open_attack_page(empty_server)
    other.begin()
    assert f"Games are under way for {other.place.split('/')[2]} ;" in plain(short_attack.page())
    assert short_attack.state()["state"] == "done"
    other.end()
    assert short_attack.page().text == before


def test_it_says_when_the_rules_have_changed_since(empty_server, short_attack):
    short_attack.begin()
    short_attack.wait()
    assert "have changed since" not in short_attack.page().text
    empty_server.amend(questions=8)
    assert "have changed since" in short_attack.page().text


def test_the_process_gives_way_and_knows_what_is_public_only(
    empty_server, long_attack, monkeypatch
):
    monkeypatch.setenv("LADDERBOARD_TOKEN", "hush")
    long_attack.begin()
    found = player()
    told = (found / "cmdline").read_bytes().split(b"\0")
    asked = json.loads(next(each for each in told if each.startswith(b"{")))
    # Everything that it is told is made of what anybody may read.
    public = empty_server.call("GET", "/boards/first").json()
    opening = json.loads(empty_server.call("GET", "/boards/first/ledger").text.splitlines()[0])
    target = {
        "worth": opening["rules"]["worth"],
        "questions": public["questions"],
        "per_team": public["per_team"],
        "ladders": public["teams"],
        "mechanism": opening["mechanism"],
        "calibrated": opening["rules"]["board"]["mechanism"] == "calibrated",
    }
    assert asked == {"target": target, "seed": 0, "parent": os.getpid()}
    surroundings = (found / "environ").read_bytes()
    assert b"hush" not in surroundings
    assert {b"OMP_NUM_THREADS=1", b"OPENBLAS_NUM_THREADS=1"} <= set(surroundings.split(b"\0"))
    while not long_attack.state()["done"]:  # until everything is loaded
        time.sleep(0.05)
    stat = (found / "stat").read_text().rpartition(")")[2].split()
    assert (stat[16], stat[17]) == ("19", "1")  # priority, and threads
    names = [each.readlink().name.rpartition(".")[2] for each in (found / "fd").iterdir()]
    assert sorted(names) == ["jsonl", "lock", "null", "null"]


def test_one_at_a_time(empty_server, open_attack_page, long_attack):
    long_attack.begin()
    assert long_attack.state()["state"] == "running"
    again = long_attack.post()
    assert again.status_code == 409
    assert "Nothing was begun: games are under way for this board" in again.text
    busy = empty_server.slug
    empty_server.reset()
    empty_server.create_board()
    mine = open_attack_page(
        empty_server, empty_server.issue_token("organiser")
    )  # of this board alone
    said = mine.post()
    assert said.status_code == 409
    for each in (said, mine.page()):
        assert "another board" in each.text
        assert f"/{busy}/" not in each.text
    everywhere = open_attack_page(empty_server).post()
    assert everywhere.status_code == 409
    assert f'<a href="/boards/{busy}/attack">' in everywhere.text
    assert mine.state()["state"] == "none"
    mine.end()  # which is not theirs to end
    assert long_attack.state()["state"] == "running"
    assert len(players()) == 1


def test_games_can_be_cancelled(long_attack):
    long_attack.begin()
    page = long_attack.page().text
    assert re.search(r'<progress id="progress" max="1000" value="\d+">', page)
    assert f'data-poll="{long_attack.place}/progress"' in page
    assert '<noscript><meta http-equiv="refresh" content="3"></noscript>' in page
    found = player()
    long_attack.end()
    assert long_attack.state()["state"] == "cancelled"
    assert "The games were cancelled." in long_attack.page().text
    gone(found)
    long_attack.begin()
    assert long_attack.state()["state"] == "running"


def gone(process):
    while process.exists():
        time.sleep(0.01)


def test_a_process_that_is_killed_is_told_of_and_the_next_one_begins(long_attack):
    long_attack.begin()
    found = player()
    os.kill(int(found.name), signal.SIGKILL)
    assert long_attack.wait()["state"] == "failed"
    assert "The games broke off before their end." in long_attack.page().text
    gone(found)
    long_attack.begin()
    assert long_attack.state()["state"] == "running"


def test_what_takes_too_long_is_ended(make_server, open_attack_page):
    live_server = make_server(trial_seconds=0.2)
    live_server.create_board("first", **LONG)
    guest = open_attack_page(live_server, slug="first")
    guest.begin()
    found = player()
    assert guest.wait()["state"] == "late"
    assert "took too long" in guest.page().text
    gone(found)


def test_games_end_with_their_server(make_server, open_attack_page):
    live_server = make_server()
    live_server.create_board("first", **LONG)
    open_attack_page(live_server, slug="first").begin()
    found = player()
    live_server.server.should_exit = True
    gone(found)


def test_a_mechanism_that_is_not_known_is_not_played(empty_server, short_attack, monkeypatch):
    monkeypatch.delitem(MECHANISMS, "ladder")
    assert "no game can be played" in short_attack.page().text
    assert "<button>Play" not in short_attack.page().text
    said = short_attack.post()
    assert (said.status_code, "no game can be played" in said.text) == (422, True)
    assert short_attack.state()["state"] == "none"


def test_games_that_fail_say_why(tmp_path):
    trials = AttackJobs(tmp_path, seconds=60)
    target = {"worth": 1, "questions": 3, "per_team": 3, "ladders": 1, "calibrated": False}
    trials.start("b", {**target, "mechanism": {"mechanism": "bootstrap_ladder"}}, "now")
    while (seen := trials.status("b")).state == "running":
        time.sleep(0.01)
    assert seen.state == "failed"
    assert "bootstrap_ladder needs n of at least 2" in seen.reason
    trials.close()


def test_where_no_process_can_be_started_nothing_is_left(short_attack, monkeypatch):
    def fail(*_, **__):
        raise OSError(11, "Resource temporarily unavailable")

    with monkeypatch.context() as patch:
        patch.setattr(_attack_jobs.subprocess, "Popen", fail)
        said = short_attack.post()
        assert (said.status_code, "No process could be started" in said.text) == (503, True)
    assert short_attack.state()["state"] == "none"
    short_attack.begin()
    assert short_attack.wait()["state"] == "done"


def test_a_system_without_locks_plays_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(_attack_jobs, "fcntl", None)
    trials = AttackJobs(tmp_path, seconds=60)
    with pytest.raises(WorkerError, match="lock files"):
        trials.start("b", {}, "now")
    assert trials.status("b").state == "none"
    trials.close()


def test_of_many_who_begin_at_once_one_does(tmp_path):
    """As many processes of a server would: each has its own eyes, and the folder is shared."""
    target = {"worth": 300, "questions": 2000, "per_team": 9, "ladders": 1, "calibrated": False}
    target["mechanism"] = {"mechanism": "exact"}
    everybody = [AttackJobs(tmp_path, seconds=60) for _ in range(6)]
    ready, said = threading.Barrier(len(everybody)), []

    def begin(own):
        ready.wait()
        try:
            own.start("b", target, "now")
        except AttackRunning as busy:
            said.append(busy.board)
        else:
            said.append("begun")

    threads = [threading.Thread(target=begin, args=(each,)) for each in everybody]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(map(str, said)).count("begun") == 1
    assert {each.status("b").state for each in everybody} == {"running"}
    assert {each.status("other").other_board for each in everybody} == {"b"}
    assert everybody[0].cancel("other") is False
    assert everybody[0].cancel("b")
    assert {each.status("b").state for each in everybody} == {"cancelled"}
    for each in everybody:
        each.close()


def test_a_form_from_elsewhere_begins_nothing(short_attack):
    said = short_attack.browser.post(short_attack.place, data={"csrf": "guess"})
    assert said.status_code == 403
    assert short_attack.state()["state"] == "none"
