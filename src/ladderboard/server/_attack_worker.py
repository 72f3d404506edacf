"""A trial: a process of its own that plays attacks against a board, and gives way to all others.

It is told what anybody may know of the board, and nothing else; it has no database, no label and no
key. It is started by its path, so that nothing of the server is loaded here. What it says goes to
standard output, one JSON object a line: how far it is, and at the end the points of the curve, or
why there are none.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from typing import Any

TOTAL = 1000
"""How many parts the work has, in what is said about its progress."""

_DEATH_SIGNAL, _NO_NEW_PRIVILEGES = 1, 38  # for prctl
_LOWEST = 19  # of all priorities


def _leave_with(parent: int) -> None:
    """Die when the server does, and never have more rights than it."""
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None).prctl
        prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    _check(parent)


def _check(parent: int) -> None:
    """End if the server is no more: not every system tells."""
    if os.getppid() != parent:
        raise SystemExit


def _say(said: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(said, allow_nan=False) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Play what the command line asks for."""
    asked = json.loads(sys.argv[1])
    os.nice(_LOWEST)
    _leave_with(asked["parent"])
    # What takes long to load comes after giving way.
    from ladderboard.board import (  # noqa: PLC0415
        Target,
        play_attacks_on_target,
    )

    def told(part: float) -> None:
        _check(asked["parent"])
        _say({"done": int(part * TOTAL)})

    told(0)
    try:
        points = play_attacks_on_target(
            Target(**asked["target"]), seed=asked["seed"], on_progress=told
        )
    except Exception as error:  # noqa: BLE001 - it is told, and there are no secrets here
        _say({"failed": f"{type(error).__name__}: {error}"})
    else:
        _say({"points": points})


if __name__ == "__main__":
    main()
