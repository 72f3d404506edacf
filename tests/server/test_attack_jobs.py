"""Simulated attacks on a board: the worker process, its page, and who may start it."""

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


@pytest.fixture(scope="module", params=["sqlite"])  # nothing here depends on it
def database(request):
    return request.param


class AttackPage:
    """A signed-in browser on a board's attack page."""

    def __init__(self, live_server, token, slug=None):
        self.browser, self._csrf = live_server.browser(), csrf_token
        live_server.sign_in(self.browser, token)
        self.path = f"/boards/{slug or live_server.slug}/attack"

    def page(self):
        return self.browser.get(self.path)

    def post(self, path=""):
        token = self._csrf(self.page().text)
        return self.browser.post(f"{self.path}{path}", data={"csrf": token})

    def state(self):
        return self.browser.get(f"{self.path}/progress").json()

    def wait(self):
        """Wait until no job is running and return its progress."""
        while (progress := self.state())["state"] == "running":
            time.sleep(0.05)
        return progress

    def begin(self):
        response = self.post()
        assert (response.status_code, response.headers["location"]) == (303, self.path)

    def end(self):
        assert self.post("/cancel").status_code == 303


@pytest.fixture
def open_attack_page():
    """Return a function that opens the attack page; close the browsers in the end."""
    pages = []

    def open_page(live_server, token=None, slug=None):
        pages.append(AttackPage(live_server, token or live_server.organiser, slug))
        return pages[-1]

    yield open_page
    for page in pages:
        page.browser.close()


@pytest.fixture
def short_attack(empty_server, open_attack_page):
    """The attack page of a board whose job takes a moment."""
    empty_server.create_board(**SHORT)
    return open_attack_page(empty_server)


@pytest.fixture
def long_attack(empty_server, open_attack_page):
    """The attack page of a board whose job runs until it is cancelled."""
    empty_server.create_board(**LONG)
    page = open_attack_page(empty_server)
    yield page
    page.end()


def worker_processes():
    """Return the worker processes of this process."""
    processes = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            command = (path / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == os.getpid() and b"_attack_worker.py" in command:
            processes.append(path)
    return processes


def wait_for_worker():
    """Return the worker process as soon as it runs its own program."""
    while True:
        for process in worker_processes():
            if (process / "exe").readlink().resolve() == Path(sys.executable).resolve():
                return process
        time.sleep(0.01)


def plain_text(page):
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", page.text))


def test_a_job_runs_to_the_end_and_is_shown(empty_server, short_attack):
    page_before = short_attack.page()
    assert (page_before.status_code, short_attack.state()) == (
        200,
        {"state": "none", "done": 0, "total": 1000},
    )
    assert "<table" not in page_before.text
    short_attack.begin()
    assert short_attack.wait() == {"state": "done", "done": 1000, "total": 1000}
    page = short_attack.page()
    target = Target.from_board(empty_server.boards.open(empty_server.slug))
    points = play_attacks_on_target(target)
    cells = re.findall(r'<td class="number">([\d.]+)</td>', page.text)
    expected = []
    for point in points:
        gains = [gain[side] for gain in point["attacks"].values() for side in ("board", "exact")]
        expected += [*(f"{max(gain, 0):.4f}" for gain in gains), str(point["games"])]
    assert cells == expected
    assert 'role="img"' in page.text
    assert "With 4 questions, all that there are, the strongest of these attacks" in page.text
    assert "A single team, which may ask 2 questions, gains" in page.text
    assert "with seed 0" in page.text
    short_attack.begin()  # though the previous process may still be ending
    assert "with seed 0" in short_attack.page().text or short_attack.state()["state"] == "done"
    short_attack.wait()
    assert "with seed 1" in short_attack.page().text


def test_results_stay_while_another_boards_job_runs(empty_server, open_attack_page, short_attack):
    short_attack.begin()
    short_attack.wait()
    page_before = short_attack.page().text
    empty_server.reset()
    empty_server.create_board(**LONG)
    other_page = open_attack_page(empty_server)
    other_page.begin()
    assert f"A simulation is running for {other_page.path.split('/')[2]} ;" in plain_text(
        short_attack.page()
    )
    assert short_attack.state()["state"] == "done"
    other_page.end()
    assert short_attack.page().text == page_before


def test_the_page_says_that_the_rules_have_changed_since(empty_server, short_attack):
    short_attack.begin()
    short_attack.wait()
    assert "have changed since" not in short_attack.page().text
    empty_server.amend(questions=8)
    assert "have changed since" in short_attack.page().text


def test_the_worker_has_low_priority_and_knows_only_public_data(
    empty_server, long_attack, monkeypatch
):
    monkeypatch.setenv("LADDERBOARD_TOKEN", "hush")
    long_attack.begin()
    process = wait_for_worker()
    arguments = (process / "cmdline").read_bytes().split(b"\0")
    job = json.loads(next(argument for argument in arguments if argument.startswith(b"{")))
    # It gets nothing that is not public.
    public = empty_server.call("GET", "/boards/first").json()
    opening = json.loads(empty_server.call("GET", "/boards/first/ledger").text.splitlines()[0])
    target = {
        "effective_n": opening["rules"]["worth"],
        "questions": public["questions"],
        "per_team": public["per_team"],
        "ladders": public["teams"],
        "mechanism": opening["mechanism"],
        "calibrated": opening["rules"]["board"]["mechanism"] == "calibrated",
    }
    assert job == {"target": target, "seed": 0, "parent": os.getpid()}
    environment = (process / "environ").read_bytes()
    assert b"hush" not in environment
    assert {b"OMP_NUM_THREADS=1", b"OPENBLAS_NUM_THREADS=1"} <= set(environment.split(b"\0"))
    while not long_attack.state()["done"]:  # until all modules are loaded
        time.sleep(0.05)
    stat = (process / "stat").read_text().rpartition(")")[2].split()
    assert (stat[16], stat[17]) == ("19", "1")  # niceness and number of threads
    names = [path.readlink().name.rpartition(".")[2] for path in (process / "fd").iterdir()]
    assert sorted(names) == ["jsonl", "lock", "null", "null"]


def test_only_one_job_runs_at_a_time(empty_server, open_attack_page, long_attack):
    long_attack.begin()
    assert long_attack.state()["state"] == "running"
    response = long_attack.post()
    assert response.status_code == 409
    assert "A simulation is already running for this board" in response.text
    busy = empty_server.slug
    empty_server.reset()
    empty_server.create_board()
    own_page = open_attack_page(
        empty_server, empty_server.issue_token("organiser")
    )  # of this board only
    refused = own_page.post()
    assert refused.status_code == 409
    for page in (refused, own_page.page()):
        assert "another board" in page.text
        assert f"/{busy}/" not in page.text
    as_operator = open_attack_page(empty_server).post()
    assert as_operator.status_code == 409
    assert f'<a href="/boards/{busy}/attack">' in as_operator.text
    assert own_page.state()["state"] == "none"
    own_page.end()  # not theirs to cancel
    assert long_attack.state()["state"] == "running"
    assert len(worker_processes()) == 1


def test_a_job_can_be_cancelled(long_attack):
    long_attack.begin()
    page = long_attack.page().text
    assert re.search(r'<progress id="progress" max="1000" value="\d+">', page)
    assert f'data-poll="{long_attack.path}/progress"' in page
    assert '<noscript><meta http-equiv="refresh" content="3"></noscript>' in page
    process = wait_for_worker()
    long_attack.end()
    assert long_attack.state()["state"] == "cancelled"
    assert "The simulation was cancelled." in long_attack.page().text
    wait_until_gone(process)
    long_attack.begin()
    assert long_attack.state()["state"] == "running"


def wait_until_gone(process):
    while process.exists():
        time.sleep(0.01)


def test_a_killed_worker_is_reported_and_the_next_job_starts(long_attack):
    long_attack.begin()
    process = wait_for_worker()
    os.kill(int(process.name), signal.SIGKILL)
    assert long_attack.wait()["state"] == "failed"
    assert "The simulation ended unexpectedly." in long_attack.page().text
    wait_until_gone(process)
    long_attack.begin()
    assert long_attack.state()["state"] == "running"


def test_a_job_that_takes_too_long_is_stopped(make_server, open_attack_page):
    live_server = make_server(trial_seconds=0.2)
    live_server.create_board("first", **LONG)
    page = open_attack_page(live_server, slug="first")
    page.begin()
    process = wait_for_worker()
    assert page.wait()["state"] == "late"
    assert "exceeded its time limit" in page.page().text
    wait_until_gone(process)


def test_a_job_stops_with_the_server(make_server, open_attack_page):
    live_server = make_server()
    live_server.create_board("first", **LONG)
    open_attack_page(live_server, slug="first").begin()
    process = wait_for_worker()
    live_server.server.should_exit = True
    wait_until_gone(process)


def test_an_unknown_mechanism_cannot_be_attacked(empty_server, short_attack, monkeypatch):
    monkeypatch.delitem(MECHANISMS, "ladder")
    assert "cannot be simulated" in short_attack.page().text
    assert "<button>Play" not in short_attack.page().text
    response = short_attack.post()
    assert (response.status_code, "cannot be simulated" in response.text) == (422, True)
    assert short_attack.state()["state"] == "none"


def test_a_failed_job_states_the_reason(tmp_path):
    jobs = AttackJobs(tmp_path, seconds=60)
    target = {"effective_n": 1, "questions": 3, "per_team": 3, "ladders": 1, "calibrated": False}
    jobs.start("b", {**target, "mechanism": {"mechanism": "bootstrap_ladder"}}, "now")
    while (status := jobs.status("b")).state == "running":
        time.sleep(0.01)
    assert status.state == "failed"
    assert "bootstrap_ladder needs n of at least 2" in status.reason
    jobs.close()


def test_a_worker_that_cannot_start_leaves_no_job(short_attack, monkeypatch):
    def fail(*_, **__):
        raise OSError(11, "Resource temporarily unavailable")

    with monkeypatch.context() as patch:
        patch.setattr(_attack_jobs.subprocess, "Popen", fail)
        response = short_attack.post()
        assert (response.status_code, "No process could be started" in response.text) == (503, True)
    assert short_attack.state()["state"] == "none"
    short_attack.begin()
    assert short_attack.wait()["state"] == "done"


def test_a_system_without_file_locks_runs_no_job(tmp_path, monkeypatch):
    monkeypatch.setattr(_attack_jobs, "fcntl", None)
    jobs = AttackJobs(tmp_path, seconds=60)
    with pytest.raises(WorkerError, match="lock files"):
        jobs.start("b", {}, "now")
    assert jobs.status("b").state == "none"
    jobs.close()


def test_of_jobs_started_at_once_only_one_runs(tmp_path):
    """Several processes of a server share the folder."""
    target = {
        "effective_n": 300,
        "questions": 2000,
        "per_team": 9,
        "ladders": 1,
        "calibrated": False,
    }
    target["mechanism"] = {"mechanism": "exact"}
    all_jobs = [AttackJobs(tmp_path, seconds=60) for _ in range(6)]
    barrier, outcomes = threading.Barrier(len(all_jobs)), []

    def begin(jobs):
        barrier.wait()
        try:
            jobs.start("b", target, "now")
        except AttackRunning as busy:
            outcomes.append(busy.board)
        else:
            outcomes.append("begun")

    threads = [threading.Thread(target=begin, args=(jobs,)) for jobs in all_jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, outcomes)).count("begun") == 1
    assert {jobs.status("b").state for jobs in all_jobs} == {"running"}
    assert {jobs.status("other").other_board for jobs in all_jobs} == {"b"}
    assert all_jobs[0].cancel("other") is False
    assert all_jobs[0].cancel("b")
    assert {jobs.status("b").state for jobs in all_jobs} == {"cancelled"}
    for jobs in all_jobs:
        jobs.close()


def test_a_form_without_csrf_token_starts_no_job(short_attack):
    response = short_attack.browser.post(short_attack.path, data={"csrf": "guess"})
    assert response.status_code == 403
    assert short_attack.state()["state"] == "none"
