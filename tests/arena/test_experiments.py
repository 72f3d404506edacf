"""Experiments: the content of their files, reproducible byte for byte."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.arena import _figures
from ladderboard.arena._experiments import _arena, _paper, _summary
from ladderboard.arena._runner import STANDARD_MECHANISMS


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(_paper, "_QUICK_QUERIES", {100: 100, 200: 100, 300: 100, 400: 100})
    monkeypatch.setattr(_paper, "_QUICK_NOISE", {100: (5, 10, 20), 200: (5, 10, 20)})


def table(path):
    with Path(path).open() as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_the_paper_twice_gives_the_same_bytes(small, tmp_path):
    settings = {"quick": True, "repetitions": 30, "workers": 1}
    first_files = lb.arena.paper_experiment(tmp_path / "once", **settings)
    second_files = lb.arena.paper_experiment(tmp_path / "again", **settings)
    assert [path.name for path in first_files] == [
        "queries.csv",
        "noise.csv",
        "queries.png",
        "queries.svg",
        "noise.png",
        "noise.svg",
    ]
    for first, second in zip(first_files, second_files, strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name
    assert b"<dc:date>" not in (tmp_path / "once/queries.svg").read_bytes()


def test_the_tables_of_the_paper_are_right(small, tmp_path):
    lb.arena.paper_experiment(tmp_path, quick=True, repetitions=30, workers=1, seed=5)
    rows = table(tmp_path / "queries.csv") + table(tmp_path / "noise.csv")
    header = "n,k,sigma,repetitions,mean,std,exact_mean,exact_std,seed,version"
    assert list(rows[0]) == header.split(",")
    for row in rows:
        n, k, sigma, seed = int(row["n"]), int(row["k"]), float(row["sigma"]), int(row["seed"])
        errors = lb.majority_attack(n, k, sigma, 30, seed)
        assert float(row["mean"]) == errors.mean()
        assert float(row["std"]) == np.std(errors, ddof=1)
        exact = (float(row["exact_mean"]), float(row["exact_std"]))
        assert exact == tuple(lb.majority_attack_moments(n, k, sigma))
        # Five standard errors: one false alarm in ten thousand runs of all cells.
        assert abs(errors.mean() - exact[0]) < 5 * exact[1] / math.sqrt(30)
    results = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    raw = {
        tuple(result["task"][x] for x in ("n", "k", "sigma", "first")): result for result in results
    }
    n, k, sigma = int(rows[0]["n"]), int(rows[0]["k"]), float(rows[0]["sigma"])
    errors = [*raw[n, k, sigma, 0]["result"]["errors"], *raw[n, k, sigma, 25]["result"]["errors"]]
    assert float(rows[0]["mean"]) == np.mean(errors)


def test_the_contest_writes_rows_tables_and_a_figure_for_every_size(tmp_path):
    files = lb.arena.arena_experiment(
        tmp_path,
        mechanisms=["exact", "shaky_ladder", "bootstrap_ladder"],
        analysts="majority",
        n=[100, 200],
        k=20,
        repetitions=3,
        workers=1,
    )
    names = [path.name for path in files]
    assert names[:3] == ["rows.csv", "table.csv", "table.md"]
    assert set(names[3:]) == {
        f"arena-n{n}-k20.{kind}" for n in (100, 200) for kind in ("png", "svg")
    }
    rows, cells = table(tmp_path / "rows.csv"), table(tmp_path / "table.csv")
    assert len(rows) == 18
    assert len(cells) == 6
    biases = [float(row["bias"]) for row in rows[:3]]
    assert float(cells[0]["bias_mean"]) == np.mean(biases)
    assert float(cells[0]["bias_units"]) == pytest.approx(np.mean(biases) * 10)
    assert "## majority, n = 200, k = 20" in (tmp_path / "table.md").read_text()


def test_one_analyst_and_several_k_are_lines(tmp_path):
    files = lb.arena.arena_experiment(
        tmp_path,
        mechanisms=["exact", "ladder"],
        analysts="majority",
        n=100,
        k=[10, 20],
        repetitions=2,
        workers=1,
    )
    assert [path.name for path in files[3:]] == ["arena.png", "arena.svg"]


def test_slow_pairs_play_less_and_the_table_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(_summary, "_FAST_SECONDS", 0.0)
    monkeypatch.setattr(_summary, "_SECONDS_PER_LOSS", 2.5 / 100)
    monkeypatch.setattr(_arena, "analyst_names", lambda: ["majority"])
    settings = {"mechanisms": ["exact", "bootstrap_ladder"], "n": 100, "k": [1, 2, 5, 30]}
    settings["workers"] = 1
    lb.arena.arena_experiment(tmp_path / "usual", **settings)
    cells = table(tmp_path / "usual/table.csv")
    notes = [(cell["k"], cell["mechanism"], cell["repetitions"], cell["note"]) for cell in cells]
    assert notes == [
        ("1", "exact", "10", ""),
        ("1", "bootstrap_ladder", "3", "slow: 3 of 10 repetitions"),
        ("2", "exact", "10", ""),
        ("2", "bootstrap_ladder", "3", "slow: 3 of 10 repetitions"),
        ("5", "exact", "10", ""),
        ("5", "bootstrap_ladder", "1", "slow: 1 of 10 repetitions"),
        ("30", "exact", "10", ""),
    ]
    text = (tmp_path / "usual/table.md").read_text()
    assert "majority against bootstrap_ladder at n = 100, k = 30: about 75 s a game" in text
    lb.arena.arena_experiment(tmp_path / "named", analysts="majority", **settings)
    assert table(tmp_path / "named/table.csv")[-1]["note"] == "slow: 1 of 10 repetitions"
    lb.arena.arena_experiment(tmp_path / "asked", repetitions=2, **settings)
    assert {cell["repetitions"] for cell in table(tmp_path / "asked/table.csv")} == {"2"}


def test_an_analyst_whose_library_is_missing_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(
        _arena, "_OPTIONAL_LIBRARIES", {"plateau": ("no_such_library", "no-such-library")}
    )
    monkeypatch.setattr(_arena, "analyst_names", lambda: ["majority", "plateau"])
    settings = {"mechanisms": "exact", "n": 50, "k": 5, "repetitions": 1, "workers": 1}
    lb.arena.arena_experiment(tmp_path, **settings)
    assert {row["analyst"] for row in table(tmp_path / "rows.csv")} == {"majority"}
    assert "- plateau: needs `pip install no-such-library`" in (tmp_path / "table.md").read_text()


def test_every_mechanism_of_the_line_up_plays_at_every_size():
    rows = lb.arena.run(
        list(_arena.STANDARD_MECHANISMS), "majority", n=[2, 50], k=[1, 20], repetitions=1
    )
    assert {row.mechanism for row in rows} >= set(lb.mechanisms.MECHANISMS)
    assert all(row.asked == row.k for row in rows)


def test_the_exact_curve_of_the_plain_attack():
    """The table of the theory: -5.9, -7.0 and -18.5 units of 1/sqrt(n)."""
    sizes = ((1_000, 1_000), (10_000, 1_000), (10_000, 10_000))
    biases = [round(_paper.exact_bias(n, k) * math.sqrt(n), 1) for n, k in sizes]
    assert biases == [5.9, 7.0, 18.5]


def test_the_shifted_attack_climbs_the_ladder_and_not_the_shaky_one(tmp_path, monkeypatch):
    """At n = 1,000 and k = 300: 5.1, 2.9 and 1.4 units, standard errors of about 0.1."""
    monkeypatch.setattr(_paper, "_QUICK_SIZES", {1_000: (100, 300)})
    files = lb.arena.shifted_experiment(tmp_path, quick=True, workers=1)
    names = ["rows.csv", "table.csv", "table.md", "shifted.png", "shifted.svg"]
    assert [path.name for path in files] == names
    cells = table(tmp_path / "table.csv")[3:]
    units = {cell["mechanism"]: float(cell["bias_units"]) for cell in cells}
    assert units["ladder_tiny"] > 4 > units["ladder"] > 2.2 > units["shaky_ladder"]


def test_a_mechanism_looks_the_same_in_every_figure():
    names = list(STANDARD_MECHANISMS)
    styles = _figures.line_styles(names).values()
    assert len({style["color"] for style in styles}) == len(names)
    assert len({style["marker"] for style in styles}) == len(names)
    looks = _figures._style_indices(["ladder", "own", "other", "exact"])
    assert looks["ladder"] == _figures._style_indices(["ladder"])["ladder"]
    assert len(set(looks.values())) == 4
