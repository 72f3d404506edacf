"""The lower bound for faithful mechanisms, made visible."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from ladderboard.arena._faithful_table import markdown
from ladderboard.arena._figure import need_figures
from ladderboard.arena._probing import PROBED, Probing, Verdict
from ladderboard.arena._study import Study
from ladderboard.arena._vote import Vote, VoteGame
from ladderboard.arena._vote_cells import vote_cells
from ladderboard.arena._vote_figure import draw_votes

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["faithful_experiment"]

_MECHANISMS = ("exact", "ladder_tiny", "ladder", "parameter_free_ladder", "noisy", "shaky_ladder")
_KS = (3, 10, 30, 100, 300)
_SIZES = {1_000: _KS, 10_000: _KS}
_QUICK_SIZES = {300: _KS[:3], 1_000: _KS[:3]}
_REPETITIONS, _QUICK_REPETITIONS = 20, 3
_BUDGET = 40.0  # seconds a cell, but five games at least
_FEWEST = 5
_QUESTIONS = 100
_PROBE_GAMES, _QUICK_PROBE_GAMES = 100, 20


def faithful_experiment(
    out: Path | str,
    *,
    quick: bool = False,
    repetitions: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    cluster: str | None = None,
    progress: bool = False,
) -> list[Path]:
    """Run the majority attack through the reduction, probe who is faithful, and return the files.

    Labels are coins. The attacker asks a ``GeneralEstimator`` about k guesses, and last about
    their vote. The figure shows the vote's bias against k beside sqrt(k/n)/pi: with exact answers
    the vote is right on a label with probability P(Bin(k, p) > k/2) and half that of a tie,
    p = 1/2 + 1/sqrt(2 pi n) nearly, which is 1/2 + sqrt(k/n)/pi to first order for k far below n.

    ``games.csv`` has a row a game, ``attack.csv`` one a cell, ``faithful.csv`` what ``is_faithful``
    says of every mechanism, ``table.md`` both. Unless repetitions are asked for, cells whose games
    take seconds have fewer of them.
    """
    need_figures()
    study = Study(out, quick, repetitions, seed, workers, cluster, progress)
    games = _vote_games(study)
    probings = [
        Probing(label, n, _QUESTIONS, _QUICK_PROBE_GAMES if quick else _PROBE_GAMES, study.seed)
        for n in (_QUICK_SIZES if quick else _SIZES)
        for label in PROBED
    ]
    found = study.do([*games, *probings], "faithful")
    votes = [Vote(**each) for each in found[: len(games)]]
    verdicts = [Verdict(**each) for each in found[len(games) :]]
    cells = vote_cells(votes)
    study.write_csv("games.csv", [asdict(vote) for vote in votes])
    study.write_csv("attack.csv", [asdict(cell) for cell in cells])
    study.write_csv("faithful.csv", [asdict(verdict) for verdict in verdicts])
    study.write("table.md", markdown(cells, verdicts))
    draw_votes(study, "faithful", cells)
    return study.written


def _vote_games(study: Study) -> list[VoteGame]:
    """Return all games, in the order of the rows."""
    usual = study.repetitions or (_QUICK_REPETITIONS if study.quick else _REPETITIONS)
    found = []
    for n, ks in (_QUICK_SIZES if study.quick else _SIZES).items():
        for k in ks:
            for label in _MECHANISMS:
                count = usual
                if study.repetitions is None:
                    seconds = VoteGame(label, n, k, 0, study.seed).weight
                    count = min(usual, max(_FEWEST, int(_BUDGET / seconds)))
                found += [VoteGame(label, n, k, at, study.seed) for at in range(count)]
    return found
