"""The simulated attack: its law, its bits, its memory, its refusals.

Seeds are fixed. Each docstring says how often a test would fail for a fresh seed if all is right.
"""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import ladderboard as lb
from ladderboard.errors import InvalidSetting, MissingDependency

TABLE = [(10_000, k, noise, 60) for k in (100, 1_000, 10_000) for noise in (0, 1, 3)]
OTHERS = [
    (1, 1, 0.5, 2_000),
    (1, 2, 0.5, 2_000),
    (2, 1, 0, 2_000),
    (2, 2, 0, 2_000),
    (3, 5, 1, 2_000),
    (63, 16, 0, 1_000),
    (64, 15, 1, 1_000),
    (65, 17, 3, 1_000),
    (1_000, 1, 0, 500),
    (1_023, 2, 0, 500),
    (1_024, 33, 1, 500),
    (1_025, 1_000, 0, 500),
    (5_000, 4_097, 0.5, 50),
    (140_001, 130, 1, 20),
    (100_000, 500, 0, 10),
]
CLEAR = Path("/proc/self/clear_refs")


def kilobytes(field):
    return int(Path("/proc/self/status").read_text().split(f"{field}:")[1].split()[0])


@pytest.mark.parametrize(("n", "k", "noise", "repetitions"), TABLE + OTHERS)
def test_means_and_spreads_are_the_exact_ones(n, k, noise, repetitions):
    """False alarms: 6e-5 a cell for the mean, below 1e-4 for the spread."""
    sigma = noise / math.sqrt(n)
    errors = lb.majority_attack(n, k, sigma, repetitions, seed=11)
    mean, std = lb.majority_attack_moments(n, k, sigma)
    assert errors.shape == (repetitions,)
    assert errors.dtype == np.float64
    assert abs(errors.mean() - mean) < 4 * std / math.sqrt(repetitions)
    # The spread of a sample variance, from the sample's own fourth moment.
    squares = (errors - mean) ** 2
    slack = max(squares.std(), std**2) / math.sqrt(repetitions)
    assert abs(squares.mean() - std**2) < 5 * slack


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0, 1, 3])
@pytest.mark.parametrize(
    ("n", "k"), [(10_000, 100), (10_000, 1_000), (10_000, 10_000), (1_000_000, 1_000)]
)
def test_means_and_spreads_sharply(n, k, noise):
    """False alarms: 6e-5 a cell for the mean, about 1e-4 for the spread."""
    sigma, repetitions = noise / math.sqrt(n), 100 if n > 10_000 else 2_000
    errors = lb.majority_attack(n, k, sigma, repetitions, seed=12)
    mean, std = lb.majority_attack_moments(n, k, sigma)
    assert abs(errors.mean() - mean) < 4 * std / math.sqrt(repetitions)
    # Errors are close to normal here, so the sample variance has relative spread sqrt(2/r).
    assert abs(errors.var() / std**2 - 1) < 4 * math.sqrt(2 / repetitions) + 1 / repetitions


@pytest.mark.parametrize(
    ("n", "k", "noise", "repetitions"),
    [
        (1, 3, 1, 3_000),
        (2, 2, 0, 3_000),
        (3, 4, 1, 3_000),
        (7, 6, 0, 3_000),
        (20, 9, 0.5, 3_000),
        (65, 10, 1, 2_000),
        (100, 100, 0, 1_000),
        (500, 101, 1, 500),
        (1_100, 200, 0, 200),
        (1_100, 200, 3, 200),
    ],
)
def test_the_law_is_that_of_the_dense_form(dense, n, k, noise, repetitions):
    """False alarms: at most 2e-3 a case (two tests at 1e-3; on ties KS errs on the quiet side)."""
    sigma, rng = noise / math.sqrt(n), np.random.default_rng(5)
    theirs = np.array([dense(n, k, sigma, rng) for _ in range(repetitions)])
    ours = lb.majority_attack(n, k, sigma, 4 * repetitions, seed=6)
    assert stats.ks_2samp(theirs, ours).pvalue > 1e-3
    # A chi-square on the values themselves, rare ones pooled so that each cell expects enough.
    error_counts = [np.rint(n * values).astype(int) for values in (theirs, ours)]
    cuts = np.unique(np.quantile(np.concatenate(error_counts), np.linspace(0, 1, 12)))
    cells = np.array(
        [np.bincount(np.searchsorted(cuts, values), minlength=12) for values in error_counts]
    )
    cells = cells[:, cells.sum(axis=0) > 0]
    rare = cells.sum(axis=0) < 40
    cells = np.column_stack([cells[:, ~rare], cells[:, rare].sum(axis=1)])
    cells = cells[:, cells.sum(axis=0) > 0]
    if cells.shape[1] > 1:
        assert stats.chi2_contingency(cells).pvalue > 1e-3


def test_repetitions_are_independent_of_each_other_and_of_the_seed_beside():
    """False alarms: below 1e-3 in all (eight correlations at four standard errors)."""
    seed_0 = lb.majority_attack(200, 50, repetitions=4_000, seed=0)
    two = lb.majority_attack(200, 50, repetitions=4_000, seed=1)
    pairs = [(seed_0[:-lag], seed_0[lag:]) for lag in (1, 2, 3, 16)] + [(seed_0, two)]
    pairs += [(seed_0, lb.majority_attack(200, k, repetitions=4_000)) for k in (49, 51, 100)]
    for a, b in pairs:
        assert abs(np.corrcoef(a, b)[0, 1]) < 4 / math.sqrt(a.size)


@pytest.mark.parametrize(
    ("n", "k", "repetitions"),
    [(10, 7, 9), (1_000, 300_000, 1), (1_000, 50_000, 5), (150_000, 400, 3), (3_000, 3_000, 40)],
)
def test_the_same_bits_whatever_the_threads_and_the_cuts(n, k, repetitions):
    sigma = math.sqrt(k) / n  # so much that the error is neither 0 nor 1/2
    single_thread = lb.majority_attack(n, k, sigma, repetitions, seed=3, threads=1)
    for threads in (2, 3, None):
        assert (
            lb.majority_attack(n, k, sigma, repetitions, 3, threads=threads) == single_thread
        ).all()
    parts = [lb.majority_attack(n, k, sigma, 1, 3, first=index) for index in range(repetitions)]
    assert (np.concatenate(parts) == single_thread).all()
    assert not (lb.majority_attack(n, k, sigma, repetitions, 4) == single_thread).all()


def test_runs_with_and_without_noise_share_their_rows():
    noiseless = lb.majority_attack(501, 101, repetitions=50)  # odd: no row is a tie
    assert (lb.majority_attack(501, 101, 1e-9, repetitions=50) == noiseless).all()


@pytest.mark.skipif(not CLEAR.exists(), reason="the peak is read where Linux keeps it")
@pytest.mark.parametrize(("n", "k"), [(1_000, 1_000_000), (1_000_000, 1_000)])
def test_rows_are_never_kept(n, k):
    """k n signs are 125 MB even as bits, and 27 GB in the dense form."""
    lb.majority_attack(100, 1_000_000, repetitions=1, threads=2)  # all is compiled
    CLEAR.write_text("5")  # the peak starts afresh
    kilobytes_before = kilobytes("VmRSS")
    lb.majority_attack(n, k, repetitions=1, threads=2)
    assert kilobytes("VmHWM") - kilobytes_before < 32_000


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"n": 0}, "n must be"),
        ({"n": 2**33}, "n must be"),
        ({"k": 0}, "k must be"),
        ({"k": "many"}, "k must be"),
        ({"sigma": -0.1}, "sigma must be a number at least 0; got -0.1"),
        ({"sigma": math.nan}, "sigma must be"),
        ({"sigma": math.inf}, "sigma must be"),
        ({"repetitions": 0}, "repetitions must be"),
        ({"seed": -1}, "seed must be"),
        ({"seed": 2**64}, "seed must be"),
        ({"seed": None}, "seed must be"),
        ({"first": -1}, "first must be"),
        ({"threads": 0}, "threads must be"),
    ],
)
def test_refusals(settings, name):
    with pytest.raises(InvalidSetting, match=name):
        lb.majority_attack(**{"n": 10, "k": 10, **settings})


def test_numba_is_loaded_by_the_call_and_its_absence_is_one_sentence():
    code = """
import sys
sys.modules["numba"] = None
import ladderboard as lb
lb.majority_attack_moments(100, 10)
try:
    lb.majority_attack(100, 10)
except lb.errors.MissingDependency as error:
    print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "pip install 'ladderboard[arena]'" in result.stdout
    assert issubclass(MissingDependency, ImportError)


def test_an_unwritable_cache_is_skipped(monkeypatch):
    import numba

    from ladderboard.arena._kernels import _compiled

    real_njit = numba.njit

    def njit(*functions, **options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return real_njit(*functions, **options)

    monkeypatch.setattr(_compiled.numba, "njit", njit)
    assert _compiled.compiled(lambda x: x + 1)(1) == 2
