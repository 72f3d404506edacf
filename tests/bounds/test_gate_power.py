"""The power of a gate beside exact McNemar tests at beta / looks, which people make by hand."""

import importlib.util
import math
from pathlib import Path

import pytest

from ladderboard.bounds import LookPrices
from ladderboard.bounds._gate_plan import _GainSearch

ALL_SIZES = [(n, share) for n in (100, 300, 500, 1_319, 5_000) for share in (0.05, 0.1, 0.2)]
FEW_SIZES = [(300, 0.2), (500, 0.2), (1_319, 0.05)]
SIZES = [FEW_SIZES, pytest.param(ALL_SIZES, marks=pytest.mark.slow)]


def ratio(n, share, looks, look, test="sign"):
    """Return the gain proven at a look over that of McNemar's test; None if it proves none."""
    mcnemar = _GainSearch(share, 0.05, 0.8, "sign").smallest_gain(n, math.log(looks))
    nats = LookPrices(looks).nats(look)
    gain = _GainSearch(share, 0.05, 0.8, test).smallest_gain(n, nats)
    return None if mcnemar is None or gain is None else gain / mcnemar


@pytest.mark.parametrize("sizes", SIZES, ids=["few", "all"])
@pytest.mark.parametrize("looks", [1, 20, 200])
def test_no_look_is_much_worse_than_mcnemar(looks, sizes):
    for n, share in sizes:
        for look in {1, looks // 2 or 1, looks}:
            sign, bets = ratio(n, share, looks, look), ratio(n, share, looks, look, "bets")
            assert sign is None or sign <= 1.09
            # A single look needs Markov's inequality with bets, where McNemar is exact.
            assert bets is None or bets <= (1.43 if looks == 1 else 1.3)


@pytest.mark.parametrize("sizes", SIZES, ids=["few", "all"])
def test_the_first_ten_of_200_looks_are_better_than_mcnemar(sizes):
    for n, share in sizes:
        for look in (1, 10):
            first = ratio(n, share, 200, look)
            assert first is None or first <= (0.88 if n * share >= 100 else 0.92)


def test_few_examples_that_differ_are_never_enough():
    assert ratio(100, 0.1, 200, 1) is None


@pytest.fixture
def printed_lines(monkeypatch):
    """Return a function that runs part of ``script/_gate_table.py`` and returns its lines."""
    root = Path(__file__).parents[2]
    spec = importlib.util.spec_from_file_location("gate_table", root / "script/_gate_table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (root / "docs/figures/gate/table.md").read_text().splitlines()

    def run(name, **settings):
        lines = []
        monkeypatch.setattr(module, "write_line", lambda line="": lines.append(str(line)))
        for setting, value in settings.items():
            monkeypatch.setattr(module, setting, value)
        getattr(module, name)()
        return [line for line in lines if line.startswith("|")], page

    return run


@pytest.mark.parametrize(
    "settings",
    [{"SIZES": (300,), "LOOKS": (1, 200)}, pytest.param({}, marks=pytest.mark.slow)],
    ids=["few", "all"],
)
def test_the_page_has_the_tables_of_power_and_prices(printed_lines, settings):
    lines, page = printed_lines("print_power", **settings)
    assert len(lines) >= 14
    assert [line for line in lines if line not in page] == []


@pytest.mark.slow
def test_the_page_has_the_table_of_verdicts_on_searches(printed_lines):
    lines, page = printed_lines("print_searches")
    assert len(lines) == 8
    assert [line for line in lines if line not in page] == []
