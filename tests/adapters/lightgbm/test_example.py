"""The example boosts, asks and stops."""

import ladderboard as lb


def test_the_example_ends_with_a_table_and_the_winner(example):
    module_globals, folder, printed = example("lightgbm_stopping")
    stopping = module_globals["stopping"]
    first, head, *rows = printed.splitlines()
    assert head.split() == ["round", "valid", "loss", "released", "improved"]
    trees = stopping.winner.name + 1
    assert first == f"{stopping.reason} The booster has {trees} trees."
    assert len(rows) == len(stopping.judge.judgements) > 5
    [winner] = [row for row in rows if row.endswith("the winner")]
    assert int(winner.split()[0]) == stopping.winner.name
    guard = lb.Holdout.open(folder / "guard.db")
    assert guard.check() == len(rows)
    predictions = (module_globals["booster"].predict(module_globals["x_holdout"]) > 0.5).astype(int)
    assert guard.ladder("7 leaves").ask(predictions).question == stopping.winner.question
