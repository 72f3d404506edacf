"""The example boosts, asks and stops."""

from pathlib import Path

import ladderboard as lb

PAGE = (Path(__file__).parents[3] / "docs/how-to/early-stopping.md").read_text()


def test_the_example_ends_with_a_table_and_the_winner(example):
    module_globals, folder, printed = example("xgboost_stopping")
    stopping = module_globals["stopping"]
    first, head, *rows = printed.splitlines()
    assert first == stopping.reason
    assert head.split() == ["round", "valid", "loss", "released", "improved"]
    assert len(rows) == len(stopping.judge.judgements) > 5
    [winner] = [row for row in rows if row.endswith("the winner")]
    assert int(winner.split()[0]) == stopping.winner.name
    # With 10,000 labels the noise is far below this, and guessing is at one half.
    assert stopping.winner.reply.released < 0.25
    assert lb.Holdout.open(folder / "guard.db").check() == len(rows)
    # The page shows the first rows and the last.
    (shown,) = (part for part in PAGE.split("```text\n") if part.startswith(first))
    above, below = shown.partition("```")[0].split("  ...\n")
    assert printed.startswith(above.rstrip(" "))
    assert printed.endswith(below)
