"""Print the power of a gate beside McNemar's test and the guard, as in docs/explanation/gate.md.

.venv/bin/python script/_gate_table.py
"""

import math
import sys

import ladderboard as lb
from ladderboard.bounds import LookPrices, gate_plan

SIZES = (100, 300, 500, 1_319, 5_000)
SHARES = (0.05, 0.1, 0.2)
LOOKS = (1, 20, 200)


def cell(gain: float | None) -> str:
    """Return a gain in percent of accuracy."""
    return "-" if gain is None else f"{100 * gain:.1f}"


def gains(n: int, looks: int, share: float, test: str) -> list[str]:
    """Return the gains at the first, the middle and the last look."""
    from ladderboard.bounds._gate_plan import _GainSearch  # noqa: PLC0415 - also for McNemar's

    search = _GainSearch(share, 0.05, 0.8, test)
    if test == "sign":
        mcnemar = cell(search.smallest_gain(n, math.log(looks)))
    numbers = sorted({1, max(1, looks // 2), looks})
    found = [cell(search.smallest_gain(n, LookPrices(looks).nats(look))) for look in numbers]
    return [*([mcnemar] if test == "sign" else []), " / ".join(found)]


def write_line(line: object = "") -> None:
    """Write a line to stdout."""
    sys.stdout.write(f"{line}\n")


def main() -> None:
    """Print both tables."""
    write_line(
        "| looks | n | differ | McNemar | two classes | more classes | pass or fail | guard |"
    )
    write_line("|---|---|---|---|---|---|---|---|")
    for looks in LOOKS:
        for n in SIZES:
            guard = lb.GrowingLadder.calibrated(n, looks)
            shown = cell(guard.smallest_visible_gain(n=n, released=0.2, changes=1, power=0.8))
            for share in SHARES:
                row = [f"{looks}", f"{n:,}", f"{share:.0%}"]
                for test in ("sign", "convex", "bets"):
                    row += gains(n, looks, share, test)
                write_line(f"| {' | '.join(row)} | {shown} |")
    write_line()
    write_line("| looks | look | 0 verdicts | 1 | 2 | 5 |")
    write_line("|---|---|---|---|---|---|")
    for looks, look in ((20, 10), (20, 20), (200, 10), (200, 100), (200, 200)):
        prices = [LookPrices(looks).nats(look, [2] * count) for count in (0, 1, 2, 5)]
        write_line(f"| {looks} | {look} | {' | '.join(f'{price:.1f}' for price in prices)} |")
    write_line()
    write_line(gate_plan(300, 50, 0.1, gain=0.02))


if __name__ == "__main__":
    main()
