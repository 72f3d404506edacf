"""A server that is killed under load, over and over: nothing that was said is lost or changed."""

import time

import numpy as np
import pytest

from support.randomness import seeded_random
from support.server.live_server import make_folder
from support.server.stress_server import (
    StressClient,
    StressServer,
    check_board,
    count_orphaned_uploads,
    empty_database,
    start_clients,
)

CLIENTS, TEAMS = 8, 4
SECONDS = 1.0  # of load at most, in which some tens of submissions are answered
STARTING = 2.5  # seconds in which a server that is just started is killed


def predictions(team, at):
    bits = np.random.default_rng([team, at]).integers(2, size=400)
    return ("id,prediction\n" + "".join(f"{i},{v}\n" for i, v in enumerate(bits))).encode()


class KillRounds:
    """Clients that go on where they were cut, with the very same submission."""

    def __init__(self, server):
        self.server = server
        self.replies, self.next, self.open = [], [0] * CLIENTS, [None] * CLIENTS
        self.doubtful = 0

    def work(self, client, number):
        """Send until the connection is cut; begin with what nobody knows about."""
        team = number % TEAMS
        while True:
            if self.open[number] is None:
                at = self.next[number]
                # Every fourth is asked by all of a team, maybe at once.
                model = at if at % 4 == 3 else 1000 * (number + 1) + at
                self.open[number] = (predictions(team, model), f"{number} {model}")
            body, key = self.open[number]
            if client.submit("kill", f"team {team}", body, key) is None:
                return
            self.open[number] = None
            self.next[number] += 1

    def round(self, seconds):
        """Serve, press for a while, kill, and look at what is left."""
        self.server.start()
        self.server.wait_until_ready()
        clients, threads, errors = start_clients(self.server, CLIENTS, self.work)
        time.sleep(seconds)
        self.server.kill()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        new = [reply for client in clients for reply in client.replies]
        assert {reply.status for reply in new} <= {200, 201}, new
        self.replies += new
        return self.look()

    def look(self):
        boards = self.server.open_boards()
        board = boards.open("kill")
        known, fresh = check_board(board, self.replies)
        assert count_orphaned_uploads(board) == 0
        swept = board.store.sweep({each["place"] for each in known.values()}.__contains__, older=-1)
        boards.close()
        # What was answered and nobody heard of: at most what each client had under way at a kill.
        heard = {reply.content["id"] for reply in self.replies}
        assert set(fresh) <= heard
        self.doubtful = max(self.doubtful, len(set(known) - set(heard)))
        assert len(set(known) - heard) <= CLIENTS
        return len(known), swept

    def again(self):
        """Send everything once more: the same is said, and nothing is counted."""
        before = {reply.content["id"]: reply for reply in self.replies}
        self.server.start()
        self.server.wait_until_ready()
        client = StressClient(self.server)
        for first in before.values():
            again = client.submit("kill", first.team_name, first.body)
            assert again.status == 200
            same = ("id", "released", "score", "improved", "question", "entry", "number", "time")
            assert [again.content[name] for name in same] == [first.content[name] for name in same]
        client.close()
        assert self.server.stop() == 0
        return self.look()[0]


@pytest.fixture
def kill_repeatedly(database, request, tmp_path):
    """Return a function that kills a server so many times."""

    def run(kills, seed, *, in_folder=False):
        rng = seeded_random(seed)
        workers = 2 if database == "postgres" else 1
        with (
            empty_database(database, request, tmp_path) as address,
            StressServer(address, tmp_path, workers=workers, in_folder=in_folder) as server,
        ):
            folder = make_folder("kill", questions=10**6, teams=TEAMS)
            server.create_board(folder, [f"team {at}" for at in range(TEAMS)])
            rounds = KillRounds(server)
            for at in range(kills):
                if at % 10 == 9:  # while it starts, there is nothing to lose but the start itself
                    server.start()
                    time.sleep(rng.uniform(0, STARTING))
                    server.kill()
                asked, _ = rounds.round(rng.uniform(0.02, SECONDS))
            assert rounds.again() == asked
            return asked, rounds

    return run


def test_three_kills(kill_repeatedly):
    asked, _ = kill_repeatedly(3, 1)
    assert asked > 0


@pytest.mark.slow
def test_fifty_kills(kill_repeatedly):
    asked, rounds = kill_repeatedly(50, 2)
    assert asked > 500
    # With eight clients under way some commit is acknowledged to nobody at one of fifty kills,
    # unless an answer is told in no time at all.
    assert rounds.doubtful


@pytest.mark.slow
def test_ten_kills_with_files_in_a_folder(kill_repeatedly, database):
    if database == "sqlite":  # the other keeps them with the rest
        kill_repeatedly(10, 3, in_folder=True)
