"""Shares and the pool add up to the budget, whatever happens to it."""

import json

import numpy as np
import pytest

from ladderboard.board import PUBLIC, IncomingSubmission
from ladderboard.errors import BudgetSpent, IdempotencyKeyReused, NotAllowed, NotOpen


@pytest.fixture
def count_answers(submit, predict):
    """Return a function that submits until it is refused and counts the answers."""

    def submit_until_refused(board, caller, first):
        for count in range(60):
            try:
                submit(board, caller, predict(first, count))
            except BudgetSpent:
                return count
        return 60

    return submit_until_refused


@pytest.fixture
def pair(boards, make_folder, join):
    board = boards.create(make_folder(questions="20", teams="2", per_team="15"))
    return board, join(boards, board, "Ada")[0], join(boards, board, "Bob")[0]


def test_a_charge_reduces_every_team_equally(pair, organiser, count_answers):
    board, ada, bob = pair
    board.amendments.pause(organiser)
    board.amendments.resume(organiser, charge=8)
    assert (count_answers(board, ada, 1), count_answers(board, bob, 2)) == (6, 6)
    assert board.book.chain_state().asked + board.book.chain_state().charged == 20


def test_a_charge_gives_no_team_more_than_it_had(
    boards, make_folder, join, organiser, count_answers
):
    """19 for four teams are 4 for each and 3 in the pool, but the rules gave nobody more than 5."""
    board = boards.create(make_folder(questions="20", teams="4", per_team="15"))
    teams = [join(boards, board, name)[0] for name in ("Ada", "Bob", "Cy", "Dee")]
    board.amendments.pause(organiser)
    board.amendments.resume(organiser, charge=1)
    counts = [count_answers(board, team, number) for number, team in enumerate(teams)]
    assert counts == [5, 5, 5, 4]


def test_a_charge_after_one_has_asked_much_leaves_the_other_a_share(
    pair, organiser, submit, predict, count_answers
):
    board, ada, bob = pair
    for index in range(10):
        submit(board, ada, predict(1, index))
    board.amendments.pause(organiser)
    board.amendments.resume(organiser, charge=4)
    assert board.row().pooled == 2
    assert count_answers(board, ada, 3) == 0
    assert count_answers(board, bob, 2) == 6


def test_rescored_submissions_are_charged_to_no_team(
    boards, make_folder, join, organiser, submit, predict, count_answers
):
    board = boards.create(make_folder(questions="25", teams="2", per_team="20"))
    ada, bob = (join(boards, board, name)[0] for name in ("Ada", "Bob"))
    submit(board, ada, predict(50))
    submit(board, bob, predict(40))
    labels = np.arange(400) % 2
    labels[0] ^= 1
    assert board.amendments.correct_labels(organiser, make_folder(labels=labels).table) == 2
    board.amendments.amend(organiser, {"title": "Another"})
    assert (board.row().replayed, board.row().pooled) == (2, 0)
    assert count_answers(board, ada, 1) == 11  # 23 for two, a share of 11 and a pool of 1
    assert count_answers(board, bob, 2) == 10
    assert board.book.chain_state().asked == 25


def test_a_larger_and_a_smaller_budget_keep_the_sum(
    pair, organiser, submit, predict, count_answers
):
    board, ada, bob = pair
    for index in range(10):
        submit(board, ada, predict(1, index))
    board.amendments.amend(organiser, {"questions": 15})
    assert count_answers(board, ada, 3) == 0
    board.amendments.amend(organiser, {"questions": 24})
    assert (count_answers(board, ada, 5), count_answers(board, bob, 2)) == (2, 12)


def test_an_idempotency_key_belongs_to_its_first_submission(pair, submit, predict):
    board, ada, _ = pair
    first = submit(board, ada, predict(9))
    assert submit(board, ada, predict(9), idempotency_key="k").id == first.id
    with pytest.raises(IdempotencyKeyReused):
        submit(board, ada, predict(10), idempotency_key="k")
    assert submit(board, ada, predict(9), idempotency_key="k").again


def test_a_format_chosen_at_submission_is_used_at_the_close(
    boards, make_folder, join, organiser, submit, predict
):
    """Also for formats that cannot be detected, and after limits were lowered."""
    board = boards.create(make_folder(finals="{selections: 1}"))
    ada, _ = join(boards, board, "Ada")
    body = "".join(
        json.dumps({"id": index, "prediction": index % 2}) + "\n" for index in range(400)
    ).encode()
    submission = board.scorer().read(body, format="jsonl")
    from ladderboard.board import IncomingSubmission

    board.submit(ada, IncomingSubmission(submission, board.book.environment.clock()))
    board.amendments.amend(organiser, {"files": {"bytes": 100}})
    final = board.closer.close(organiser)
    assert final["rows"][0]["score"] == 0


@pytest.mark.parametrize("visibility", ["hidden", "frozen"])
@pytest.mark.parametrize("ladder", ["board", "team"])
def test_a_team_learns_nothing_about_others(
    visibility, ladder, boards, make_folder, join, submit, predict
):
    """Compare two boards; on one of them Bob submits, too."""
    views_of_ada = []
    for busy in (False, True):
        slug = f"{ladder}-{visibility}-{busy}".lower()
        rules = {"visibility": visibility, "ladder": ladder, "per_team": "40"}
        board = boards.create(make_folder(slug=slug, **rules))
        ada, bob = (join(boards, board, name)[0] for name in ("Ada", "Bob"))
        answers = [submit(board, ada, predict(150)).describe()]
        for errors in (60, 48, 36) if busy else ():
            submit(board, bob, predict(errors))
        answers.append(submit(board, ada, predict(151)).describe())
        view = board.as_seen_by(ada)
        answers += [view.team(), view.submissions(), view.summary(), view.head()]
        views_of_ada.append(_without_ids(answers))
        assert board.as_seen_by(PUBLIC).head()[0] <= 2
    assert views_of_ada[0] == views_of_ada[1]


def _without_ids(answers):
    def strip(answer):
        if isinstance(answer, dict):
            return {
                key: strip(value)
                for key, value in answer.items()
                if key not in {"id", "slug", "book", "commitment", "hash", "salt"}
            }
        return [strip(item) for item in answer] if isinstance(answer, list) else answer

    return strip([item for item in answers if not isinstance(item, tuple)])


def test_the_budget_adds_up_for_organisers(pair, organiser, submit, predict):
    board, ada, bob = pair
    for index in range(10):
        submit(board, ada, predict(1, index))
    submit(board, bob, predict(2))
    board.amendments.pause(organiser)
    board.amendments.resume(organiser, charge=3)
    budget = board.as_seen_by(organiser).budget()
    # 17 are shared: 8 for each, and 1 for the pool, which Ada has taken.
    assert budget == {
        "questions": 20, "used": 14, "remaining": 6, "asked": 11, "charged": 3, "baselines": 0,
        "replayed": 0, "share": 8, "pool": 1, "pooled": 1, "teams": 2, "registered": 2,
    }  # fmt: skip
    for caller in (ada, PUBLIC):
        with pytest.raises(NotAllowed):
            board.as_seen_by(caller).budget()


def test_what_was_authorized_a_moment_ago_is_checked_again_when_it_is_recorded(
    pair, organiser, predict, make_folder, monkeypatch
):
    board, ada, bob = pair

    def incoming(errors):
        return IncomingSubmission(board.scorer().read(predict(errors)), 0)

    checks = []
    check_sender = type(board.submissions)._check_sender

    def count(*arguments):
        checks.append(arguments[-2])
        return check_sender(*arguments)

    monkeypatch.setattr(type(board.submissions), "_check_sender", count)
    now = board.book.environment.clock()
    authorized = board.submissions.authorize_upload(ada, now)
    assert board.submit(ada, incoming(90), None, authorized).release.value == 0.3
    assert checks == [ada]
    board.submit(ada, incoming(80), None, authorized._replace(time=-2.0))
    assert checks == [ada, ada]
    labels = board.epoch_of(board.row()).table.labels.copy()
    labels[:60] = 1 - labels[:60]
    authorized = board.submissions.authorize_upload(bob, now)
    board.amendments.correct_labels(organiser, make_folder(labels=labels).table)
    corrected = board.submit(bob, incoming(60), None, authorized)
    assert corrected.release.value == 0.0
    authorized = board.submissions.authorize_upload(bob, now)
    assert board.submissions.authorize_upload(bob, now, check_only=True).fresh is None
    asked = board.book.chain_state().asked
    board.amendments.pause(organiser)
    with pytest.raises(NotOpen):
        board.submit(bob, incoming(70), None, authorized)
    assert board.book.chain_state().asked == asked


def test_an_earlier_answer_is_only_for_a_token_that_is_still_valid(pair, predict):
    board, ada, _ = pair
    incoming = IncomingSubmission(board.scorer().read(predict(90)), 0)
    board.submit(ada, incoming)
    authorized = board.submissions.authorize_upload(ada, board.book.environment.clock())
    assert board.submit(ada, incoming, None, authorized).again
    board.teams.rotate_token(ada)
    with pytest.raises(NotAllowed):
        board.submit(ada, incoming, None, authorized)
