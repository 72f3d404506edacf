"""The core: what an import, a step and a million questions cost.

Yardsticks: ``import numpy`` in a process of its own; Fig. 1 written down in bare Python, drawing
its noise from the NumPy generator one number at a time; asking step by step.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np

import ladderboard as lb
from _timing import min_seconds, report_ratio

N, QUESTIONS = 10_000, 20_000
MANY = 1_000_000


def reference_shaky_ladder(
    risks: list[float], step: float, scale: float, rng: np.random.Generator
) -> list[float]:
    """Fig. 1 as a reader would write it down, without a check or an object."""
    best, xi = 1.0, rng.laplace(0, scale)
    out = []
    for risk in risks:
        xi_t, xi_1, xi_2 = rng.laplace(0, scale), rng.laplace(0, scale), rng.laplace(0, scale)
        if risk + xi_t < best - step + xi:
            best = risk + xi_1
            xi = xi_2
        out.append(best)
    return out


def time_import() -> None:
    """Time two fresh interpreters against each other."""

    def run(statement: str) -> object:
        return subprocess.run([sys.executable, "-c", statement], check=True)

    bare, ours, used = min_seconds(
        lambda: run("import numpy"),
        lambda: run("import ladderboard"),
        lambda: run("import ladderboard as lb; lb.Tape, lb.Ladder, lb.loss"),
        rounds=10,
    )
    report_ratio(
        "import ladderboard / import numpy",
        ours / bare,
        "at most 2",
        detail=f"{1e3 * ours:.0f} ms / {1e3 * bare:.0f} ms",
    )
    report_ratio(
        "import ladderboard, whole core used / import numpy",
        used / bare,
        "about 2",
        detail=f"{1e3 * used:.0f} ms / {1e3 * bare:.0f} ms",
    )


def time_step() -> None:
    """Time one step against Fig. 1 in bare Python."""
    risks = (0.3 + 0.2 * np.random.default_rng(0).random(QUESTIONS)).tolist()
    paper = lb.ShakyLadder.from_paper(n=N, questions=1_000)
    usual = lb.ShakyLadder.calibrated(n=N, questions=1_000)

    def ask(mechanism: lb.Mechanism) -> None:
        session = mechanism.start(n=N, tape=lb.NumpyTape(seed=1))
        for risk in risks:
            session.ask(risk=risk)

    bare, as_printed, calibrated = min_seconds(
        lambda: reference_shaky_ladder(
            risks, paper.step, paper.compare_noise, np.random.default_rng(1)
        ),
        lambda: ask(paper),
        lambda: ask(usual),
    )
    for name, seconds in (("paper's", as_printed), ("calibrated", calibrated)):
        report_ratio(
            f"a step, {name} Shaky Ladder / bare Fig. 1",
            seconds / bare,
            "at most 5",
            detail=f"{1e6 * seconds / QUESTIONS:.2f} us / {1e6 * bare / QUESTIONS:.2f} us",
        )


def time_bulk() -> None:
    """Time a million questions at once against one by one."""
    risks = 0.3 + 0.2 * np.random.default_rng(0).random(MANY)
    listed = risks.tolist()
    mechanisms = (
        ("paper's", lb.ShakyLadder.from_paper(n=N, questions=1_000)),
        ("calibrated", lb.ShakyLadder.calibrated(n=N, questions=1_000)),
    )
    for name, mechanism in mechanisms:

        def ask(mechanism: lb.Mechanism = mechanism) -> None:
            session = mechanism.start(n=N, tape=lb.NumpyTape(seed=1))
            for risk in listed:
                session.ask(risk=risk)

        def ask_many(mechanism: lb.Mechanism = mechanism) -> None:
            mechanism.start(n=N, tape=lb.NumpyTape(seed=1)).ask_many(risks)

        one_by_one, at_once = min_seconds(ask, ask_many, rounds=2)
        report_ratio(
            f"1e6 questions, {name}: one by one / at once",
            one_by_one / at_once,
            "at least 10",
            detail=f"{one_by_one:.2f} s / {at_once:.2f} s",
        )


if __name__ == "__main__":
    time_import()
    time_step()
    time_bulk()
