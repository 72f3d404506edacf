"""Compare the speed of this clone with that of another one, in runs that take turns.

    script/bench --against REV [PART...]

makes the other clone, at a revision, and calls this. Every part runs five times on each side,
alternately. Printed are the medians of each ratio, and by what factor this clone is better (above
1) or worse; lines are matched by their order within a part. Leave the machine alone meanwhile.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 5
_LINE = re.compile(r"^(?P<title>\S.*?) {2,}(?P<ratio>[\d.]+) +wanted (?P<bound>\S.*)$")


def read_ratios(output: str) -> list[tuple[str, float, str]]:
    """Return title, ratio and wanted bound of each line that a benchmark printed.

    >>> read_ratios("asks / commits          0.34   wanted at least 0.5 1372 a second / 4312")
    [('asks / commits', 0.34, 'at least 0.5 1372 a second / 4312')]
    """
    lines = filter(None, map(_LINE.match, output.splitlines()))
    return [(line["title"], float(line["ratio"]), line["bound"]) for line in lines]


def improvement(before: float, after: float, bound: str) -> float:
    """Return by what factor a ratio got better: some should be large, and others small.

    >>> improvement(0.5, 0.6, "at least 0.5"), improvement(2.0, 1.0, "at most 2")
    (1.2, 2.0)
    """
    better, worse = (after, before) if bound.startswith(("at least", "above")) else (before, after)
    return better / worse if worse else 1.0


def main(other: Path, parts: list[str]) -> None:
    """Run the parts on both sides and print what changed."""
    sides = [other.resolve(), ROOT]
    measured = defaultdict[tuple[str, int], dict[Path, list[tuple[str, float, str]]]](dict)
    for number in range(ROUNDS):
        for part in parts:
            for side in sides if number % 2 == 0 else reversed(sides):
                command = [side / ".venv/bin/python", f"bench/{part}.py"]
                run = subprocess.run(command, cwd=side, capture_output=True, text=True, check=True)
                for place, line in enumerate(read_ratios(run.stdout)):
                    measured[part, place].setdefault(side, []).append(line)
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr, flush=True)
    print(f"{'':<60} {'before':>8} {'now':>8} {'better':>8}")
    for (part, _), by_side in measured.items():
        if len(by_side) == len(sides):
            before, now = (median(line[1] for line in by_side[side]) for side in sides)
            title, _, bound = by_side[ROOT][0]
            change = improvement(before, now, bound)
            print(f"{part + ': ' + title:<60.60} {before:8.2f} {now:8.2f} {change:8.2f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
