"""The comparison with other mechanisms: worst attacks, and the Ladder at its best step."""

import csv

import pytest

from ladderboard.arena import peers_experiment
from ladderboard.arena._experiments._peers import _make_factories, _summarize_size
from ladderboard.arena._experiments._summary import PairSummary


def cell(mechanism, analyst, error, bias):
    spread = {"error_std": 0.3, "error_worst": 1, "bias_std": 0.6, "changes_mean": 1}
    units = {"error_units": error * 10, "bias_units": bias * 10}
    return PairSummary(
        100, 50, analyst, mechanism, 9, error_mean=error, bias_mean=bias, asked_mean=50,
        seconds_mean=1, **spread, **units,
    )  # fmt: skip


def test_the_summary_has_the_worst_attack_per_mechanism_and_the_best_ladder():
    makers = _make_factories((1, 2))
    cells = [
        cell("exact", "majority", 0.5, 0.4),
        cell("exact", "plateau", 0.6, 0.9),  # honest: its bias is not an attack's gain
        cell("ladder 1", "shifted_majority", 0.3, 0.2),
        cell("ladder 1", "plateau", 0.1, 0.0),
        cell("ladder 2", "shifted_majority", 0.2, 0.25),
        cell("ladder 2", "plateau", 0.25, 0.0),
        cell("shaky_ladder", "one_bit", 0.1, 0.1),
        cell("shaky_ladder", "random_search", 0.15, 0.3),
    ]
    exact, ladder, ours = _summarize_size(cells, makers)
    assert (exact.error_by, exact.error, exact.bias_by, exact.bias) == ("plateau", 6, "majority", 4)
    assert (ladder.mechanism, ladder.error, ladder.bias) == ("ladder, best step", 2.5, 2.5)
    assert ladder.settings == "step 2"
    assert (ours.error_by, ours.bias) == ("random_search", 1)
    assert ours.error_se == pytest.approx(0.3 * 10 / 3)
    assert ours.bias_se == pytest.approx(0.6 * 10 / 3)


def test_a_quick_comparison_is_written_whole(tmp_path):
    files = peers_experiment(tmp_path, quick=True, workers=1)
    assert {path.name for path in files} == {"rows.csv", "standings.csv", "table.md"}
    with (tmp_path / "standings.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = [row["mechanism"] for row in rows]
    assert names[-3:] == ["ladder, best step", "shaky_ladder", "shaky_ladder, noise standing"]
    assert all(float(row["error"]) > 0 for row in rows)
    table = (tmp_path / "table.md").read_text()
    assert "## n = 300, 50 questions" in table
    assert all(f"| {name} |" in table for name in names)
