"""The example boosts, asks and stops."""

import ladderboard as lb


def test_the_example_ends_with_a_table_and_the_winner(example):
    made, folder, printed = example("xgboost_stopping")
    stopping = made["stopping"]
    first, _, *rows = printed.splitlines()
    assert first == stopping.reason
    assert len(rows) == len(stopping.judge.verdicts) > 5
    [winner] = [row for row in rows if row.endswith("winner")]
    assert int(winner.split()[0]) == stopping.winner.name
    # With 10,000 labels the noise is far below this, and guessing is at one half.
    assert stopping.winner.reply.released < 0.25
    assert lb.Holdout.open(folder / "guard.db").check() == len(rows)
