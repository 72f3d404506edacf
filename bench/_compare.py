"""Compare the speed of this clone with that of another one, in runs that take turns.

    script/bench --against REV [PART...]

makes the other clone, at a revision, and calls this. Every part runs five times on each side,
alternately. Printed are the medians of each ratio, and by what factor this clone is better (above
1) or worse. Lines are matched by their titles within a part, or the most similar ones; if titles
differ, both are printed: see whether they have the same yardstick. Leave the machine alone
meanwhile.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from difflib import SequenceMatcher
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 5
_SIMILAR = 0.6
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


def match_titles(before: list[str], now: list[str]) -> dict[str, str]:
    """Return the title of each measurement now, and what it was called before.

    >>> match_titles(["asks / commits", "a page"], ["a look / commits", "asks / WAL commits"])
    {'asks / WAL commits': 'asks / commits'}
    """
    pairs = sorted(
        ((SequenceMatcher(None, old, new).ratio(), old, new) for old in before for new in now),
        reverse=True,
    )
    matched: dict[str, str] = {}
    for similarity, old, new in pairs:
        if similarity > _SIMILAR and new not in matched and old not in matched.values():
            matched[new] = old
    return matched


def main(other: Path, parts: list[str]) -> None:
    """Run the parts on both sides and print what changed."""
    sides = [other.resolve(), ROOT]
    measured = defaultdict[tuple[Path, str], dict[str, list[float]]](lambda: defaultdict(list))
    bounds: dict[str, str] = {}
    for number in range(ROUNDS):
        for part in parts:
            for side in sides if number % 2 == 0 else reversed(sides):
                command = [side / ".venv/bin/python", f"bench/{part}.py"]
                run = subprocess.run(command, cwd=side, capture_output=True, text=True, check=True)
                for title, ratio, bound in read_ratios(run.stdout):
                    measured[side, part][title].append(ratio)
                    bounds[title] = bound
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr, flush=True)
    print(f"{'':<60} {'before':>8} {'now':>8} {'better':>8}")
    for part in parts:
        earlier, ours = (measured[side, part] for side in sides)
        for title, old_title in match_titles(list(earlier), list(ours)).items():
            before, now = median(earlier[old_title]), median(ours[title])
            change = improvement(before, now, bounds[title])
            print(f"{part + ': ' + title:<60.60} {before:8.2f} {now:8.2f} {change:8.2f}")
            if title != old_title:
                print(f"    was: {old_title}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
