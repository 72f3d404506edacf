"""A server that is killed repeatedly under load: no answer is lost or changed."""

import time

import pytest

from support.randomness import seeded_random
from support.server.cli_server import random_predictions
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
SECONDS = 1.0  # of load at most; enough for some tens of submissions
STARTING = 2.5  # seconds after its start in which a server is killed


class KillRounds:
    """Clients that resend the same submission after their connection was cut."""

    def __init__(self, server):
        self.server = server
        self.replies, self.next, self.open = [], [0] * CLIENTS, [None] * CLIENTS
        self.unanswered = 0

    def work(self, client, number):
        """Submit until the connection is cut, beginning with the submission that got no answer."""
        team = number % TEAMS
        while True:
            if self.open[number] is None:
                index = self.next[number]
                # All clients of a team send every fourth model, maybe at once.
                model = index if index % 4 == 3 else 1000 * (number + 1) + index
                self.open[number] = (random_predictions(team, model), f"{number} {model}")
            body, key = self.open[number]
            if client.submit("kill", f"team {team}", body, key) is None:
                return
            self.open[number] = None
            self.next[number] += 1

    def round(self, seconds):
        """Serve under load for a while, kill the server and check its database."""
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
        return self.check()

    def check(self):
        boards = self.server.open_boards()
        board = boards.open("kill")
        submissions, fresh = check_board(board, self.replies)
        assert count_orphaned_uploads(board) == 0
        swept = board.store.sweep(
            {submission["place"] for submission in submissions.values()}.__contains__, older=-1
        )
        boards.close()
        # Recorded without an answer: at most one submission per client, cut off by a kill.
        received = {reply.content["id"] for reply in self.replies}
        assert set(fresh) <= received
        self.unanswered = max(self.unanswered, len(set(submissions) - set(received)))
        assert len(set(submissions) - received) <= CLIENTS
        return len(submissions), swept

    def resend(self):
        """Send everything once more: the answers are the same, and nothing is counted."""
        answered = {reply.content["id"]: reply for reply in self.replies}
        self.server.start()
        self.server.wait_until_ready()
        client = StressClient(self.server)
        for reply_before in answered.values():
            response = client.submit("kill", reply_before.team_name, reply_before.body)
            assert response.status == 200
            same = ("id", "released", "score", "improved", "question", "entry", "number", "time")
            assert [response.content[name] for name in same] == [
                reply_before.content[name] for name in same
            ]
        client.close()
        assert self.server.stop() == 0
        return self.check()[0]


@pytest.fixture
def kill_repeatedly(database, request, tmp_path):
    """Return a function that kills a server a number of times under load."""

    def run(kills, seed, *, in_folder=False):
        rng = seeded_random(seed)
        workers = 2 if database == "postgres" else 1
        with (
            empty_database(database, request, tmp_path) as address,
            StressServer(address, tmp_path, workers=workers, in_folder=in_folder) as server,
        ):
            folder = make_folder("kill", questions=10**6, teams=TEAMS)
            server.create_board(folder, [f"team {index}" for index in range(TEAMS)])
            rounds = KillRounds(server)
            for round_number in range(kills):
                if round_number % 10 == 9:  # also kill a server that is starting
                    server.start()
                    time.sleep(rng.uniform(0, STARTING))
                    server.kill()
                submissions, _ = rounds.round(rng.uniform(0.02, SECONDS))
            assert rounds.resend() == submissions
            return submissions, rounds

    return run


def test_three_kills(kill_repeatedly):
    submissions, _ = kill_repeatedly(3, 1)
    assert submissions > 0


@pytest.mark.slow
def test_fifty_kills(kill_repeatedly):
    submissions, rounds = kill_repeatedly(50, 2)
    assert submissions > 500
    # With eight clients, at least one of fifty kills falls between a commit and its answer.
    assert rounds.unanswered


@pytest.mark.slow
def test_ten_kills_with_files_in_a_folder(kill_repeatedly, database):
    if database == "sqlite":  # PostgreSQL keeps them in the database
        kill_repeatedly(10, 3, in_folder=True)
