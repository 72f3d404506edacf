"""Sixty-four clients at once, and a budget that is smaller than what they want."""

import random

import numpy as np
import pytest

from support.server.live_server import make_folder

CLIENTS, TEAMS, EACH = 64, 16, 8
QUESTIONS, WINDOW = 150, 3


@pytest.fixture(scope="session")
def siege(load):
    return load("_siege")


def predictions(team, at):
    """Return a model's file; models differ, and so do teams."""
    bits = np.random.default_rng([team, at]).integers(2, size=400)
    return ("id,prediction\n" + "".join(f"{i},{v}\n" for i, v in enumerate(bits))).encode()


def work(client, number):
    """Send some for each board, some of them together with others of the team, some twice."""
    team = number % TEAMS
    rng = random.Random(number)  # noqa: S311 - no secret
    for at in range(EACH):
        model = at if at % 4 == 3 else 100 * number + at  # every fourth is asked by all four
        body, key = predictions(team, model), f"{model}"
        slug = "budget" if (at + number) % 3 else "window"
        client.submit(slug, f"team {team}", body, rng.choice([None, key]))
        if rng.random() < 0.25:
            client.submit(slug, f"team {team}", body, rng.choice([None, key]))
        path = rng.choice(["", "/leaderboard", "/records", "/ledger?limit=1000"])
        reply, _ = client.call("GET", f"/api/v1/boards/{slug}{path}")
        assert reply.status == 200


def test_sixty_four_clients_and_a_budget_that_is_too_small(siege, database, request, tmp_path):
    workers = 2 if database == "postgres" else 1
    with (
        siege.database_of(database, request, tmp_path) as address,
        siege.Keep(address, tmp_path, workers=workers) as keep,
    ):
        names = [f"team {at}" for at in range(TEAMS)]
        keep.make(make_folder("budget", questions=QUESTIONS, teams=TEAMS, per_team=40), names)
        window = f"{{questions: {WINDOW}, hours: 24}}"
        keep.make(make_folder("window", questions=2000, teams=TEAMS, window=window), names)
        keep.start()
        keep.ready()
        clients, threads, errors = siege.press(keep, CLIENTS, work)
        for each in threads:
            each.join()
        if errors:
            raise errors[0]
        assert keep.stop() == 0

        told = [each for client in clients for each in client.told]
        assert not any(client.cut for client in clients)
        # Nothing went wrong, here or in the log, and refusals say why.
        lines = keep.log()
        assert {each.pop("event") for each in (lines.pop(0), lines.pop())} == {"start", "stop"}
        assert [each for each in lines if each["event"] != "request"] == []
        assert [each for each in lines if each["status"] >= 500] == []
        refused = [each for each in told if each.status not in {200, 201}]
        assert {(each.slug, each.status) for each in refused} == {("budget", 409), ("window", 429)}
        assert {each.kind for each in refused} == {"application/problem+json"}
        assert {each.said["code"] for each in refused} == {"budget_spent", "too_soon"}
        assert all(int(each.wait) > 0 for each in refused if each.status == 429)
        assert any(each.status == 200 for each in told)

        boards = keep.open()
        budget, rows = boards.open("budget"), boards.open("window")
        asked, fresh = siege.verify(budget, told)
        assert len(asked) == QUESTIONS  # met exactly
        assert fresh == set(asked)  # and all of it was told
        asked, fresh = siege.verify(rows, told)
        assert len(asked) == TEAMS * WINDOW
        assert fresh == set(asked)
        assert siege.orphans(rows) == 0
        boards.close()
