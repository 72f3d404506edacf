"""The majority attack: packed words against dense floats.

Yardstick: ``dense_majority_attack``, the paper's procedure as NumPy users write it, one repetition.
Ours is timed for one repetition in a call and for several, per repetition; both on two threads.
"""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np

import ladderboard as lb
from _dense_attack import dense_majority_attack
from _timing import min_seconds, report_ratio

THREADS = 2
# n, k, repetitions in a call, rounds of timing, wanted ratio
CELLS = (
    (1_000, 1_000, 200, 20, 150),
    (10_000, 1_000, 50, 10, 300),
    (10_000, 10_000, 8, 5, 600),
    (100_000, 1_000, 8, 5, 450),
)
GROWTH = """
from pathlib import Path
import ladderboard as lb
def kilobytes(field):
    status = Path("/proc/self/status").read_text()
    return int(status.split(field + ":")[1].split()[0])
lb.majority_attack(1_000, 100, threads=1)
lb.majority_attack(100, 10**6, repetitions=1, threads=2)  # by now all kernels are compiled
Path("/proc/self/clear_refs").write_text("5")  # forget the peak of compilation
before = kilobytes("VmRSS")
lb.majority_attack({n}, {k}, repetitions=2, threads=2)
print((kilobytes("VmHWM") - before) / 1024)
"""


def run_ladderboard(n: int, k: int, repetitions: int) -> None:
    """Simulate a few repetitions on two threads."""
    lb.majority_attack(n, k, repetitions=repetitions, threads=THREADS)


def compare_speed() -> None:
    """Time both forms in turn, in one run; ours a few times over, since it is so much shorter."""
    rng = np.random.default_rng(0)
    for n, k, repetitions, rounds, target in CELLS:
        dense = single = several = float("inf")
        for _ in range(rounds):
            (seconds,) = min_seconds(
                lambda n=n, k=k: dense_majority_attack(n, k, 0.0, rng),
                rounds=1,
            )
            dense = min(dense, seconds)
            time.sleep(0.1)  # threads of the BLAS spin for a while after a product
            one_call, many_calls = min_seconds(
                lambda n=n, k=k: run_ladderboard(n, k, 1),
                lambda n=n, k=k, repetitions=repetitions: run_ladderboard(n, k, repetitions),
                rounds=10,
            )
            single, several = min(single, one_call), min(several, many_calls)
        for calls, seconds in ((1, single), (repetitions, several / repetitions)):
            report_ratio(
                f"attack n={n:.0e} k={k:.0e}: dense / ours, {calls} a call",
                dense / seconds,
                f"at least {target}",
                detail=f"{1e3 * dense:.1f} ms / {1e3 * seconds:.3f} ms",
            )


def measure_memory() -> None:
    """Measure by how much a run raises the peak of a fresh process."""
    for n, k in ((10_000, 10_000), (1_000_000, 1_000), (1_000, 1_000_000)):
        done = subprocess.run(
            [sys.executable, "-c", GROWTH.format(n=n, k=k)],
            capture_output=True,
            text=True,
            check=True,
        )
        dense = 27 * n * k / 2**20
        report_ratio(
            f"attack n={n:.0e} k={k:.0e}: extra memory, MB",
            float(done.stdout),
            "at most 64",
            detail=f"dense needs about {dense:.0f} MB",
        )


def compare_cost_per_query() -> None:
    """Compare the cost of a query bit over three decades."""
    for name, cells in (
        ("n", [(10**power, 1_000) for power in (4, 5, 6, 7)]),
        ("k", [(10_000, 10**power) for power in (2, 3, 4, 5)]),
    ):
        repetitions = [max(1, 10**9 // (n * k)) for n, k in cells]
        seconds_by_cell = min_seconds(
            *(
                lambda n=n, k=k, calls=calls: run_ladderboard(n, k, calls)
                for (n, k), calls in zip(cells, repetitions, strict=True)
            ),
            rounds=5,
        )
        bits = [
            1e12 * seconds / (n * k * calls)
            for seconds, (n, k), calls in zip(seconds_by_cell, cells, repetitions, strict=True)
        ]
        span = " to ".join(f"{cells[end][name == 'k']:.0e}" for end in (0, -1))
        report_ratio(
            f"cost of a query bit, {name} from {span}: most / least",
            max(bits) / min(bits),
            "at most 2",
            detail=", ".join(f"{bit:.1f}" for bit in bits) + " ps",
        )


if __name__ == "__main__":
    run_ladderboard(1_000, 1_000, 1)  # compiled before anything is timed
    run_ladderboard(100, 1_000_000, 1)
    compare_speed()
    measure_memory()
    compare_cost_per_query()
