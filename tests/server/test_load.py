"""Sixty-four concurrent clients, and a budget smaller than their demand."""

from support.randomness import seeded_random
from support.server.cli_server import random_predictions
from support.server.live_server import make_folder
from support.server.stress_server import (
    StressServer,
    check_board,
    count_orphaned_uploads,
    empty_database,
    start_clients,
)

CLIENTS, TEAMS, SUBMISSIONS = 64, 16, 4
QUESTIONS, WINDOW = 80, 3


def work(client, number):
    """Submit to both boards, some files together with other clients of the team, some twice."""
    team = number % TEAMS
    rng = seeded_random(number)
    for index in range(SUBMISSIONS):
        model = (
            index if index % 4 == 3 else 100 * number + index
        )  # all four clients send every fourth
        body, key = random_predictions(team, model), f"{model}"
        slug = "budget" if (index + number) % 3 else "window"
        client.submit(slug, f"team {team}", body, rng.choice([None, key]))
        if rng.random() < 0.25:
            client.submit(slug, f"team {team}", body, rng.choice([None, key]))
        path = rng.choice(["", "/leaderboard", "/records", "/ledger?limit=1000"])
        reply, _ = client.call("GET", f"/api/v1/boards/{slug}{path}")
        assert reply.status == 200


def test_sixty_four_clients_and_a_budget_that_is_too_small(database, request, tmp_path):
    workers = 2 if database == "postgres" else 1
    with (
        empty_database(database, request, tmp_path) as address,
        StressServer(address, tmp_path, workers=workers) as server,
    ):
        names = [f"team {index}" for index in range(TEAMS)]
        server.create_board(
            make_folder("budget", questions=QUESTIONS, teams=TEAMS, per_team=40), names
        )
        window = f"{{questions: {WINDOW}, hours: 24}}"
        server.create_board(
            make_folder("window", questions=2000, teams=TEAMS, window=window), names
        )
        server.start()
        server.wait_until_ready()
        clients, threads, errors = start_clients(server, CLIENTS, work)
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        assert server.stop() == 0

        replies = [reply for client in clients for reply in client.replies]
        assert not any(client.connections_lost for client in clients)
        # No errors here or in the log, and refusals have the expected codes.
        lines = server.log()
        assert {line.pop("event") for line in (lines.pop(0), lines.pop())} == {"start", "stop"}
        assert [line for line in lines if line["event"] != "request"] == []
        assert [line for line in lines if line["status"] >= 500] == []
        refused = [reply for reply in replies if reply.status not in {200, 201}]
        assert {(reply.slug, reply.status) for reply in refused} == {
            ("budget", 409),
            ("window", 429),
        }
        assert {reply.content_type for reply in refused} == {"application/problem+json"}
        assert {reply.content["code"] for reply in refused} == {"budget_spent", "too_soon"}
        assert all(int(reply.retry_after) > 0 for reply in refused if reply.status == 429)
        assert any(reply.status == 200 for reply in replies)

        boards = server.open_boards()
        budget, rows = boards.open("budget"), boards.open("window")
        submissions, new = check_board(budget, replies)
        assert len(submissions) == QUESTIONS  # met exactly
        assert new == set(submissions)  # and every reply arrived
        submissions, new = check_board(rows, replies)
        assert len(submissions) == TEAMS * WINDOW
        assert new == set(submissions)
        assert count_orphaned_uploads(rows) == 0
        boards.close()
