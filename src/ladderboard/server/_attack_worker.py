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


def _die_with_parent(parent: int) -> None:
    """Die when the server does, and never have more rights than it."""
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None).prctl
        prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    _check_parent(parent)


def _check_parent(parent: int) -> None:
    """End if the server is no more: not every system tells."""
    if os.getppid() != parent:
        raise SystemExit


def _send_message(said: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(said, allow_nan=False) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Play what the command line asks for."""
    asked = json.loads(sys.argv[1])
    os.nice(_LOWEST)
    _die_with_parent(asked["parent"])
    # What takes long to load comes after giving way.
    from ladderboard.board import (  # noqa: PLC0415
        Target,
        play_attacks_on_target,
    )

    def told(part: float) -> None:
        _check_parent(asked["parent"])
        _send_message({"done": int(part * TOTAL)})

    told(0)
    try:
        points = play_attacks_on_target(
            Target(**asked["target"]), seed=asked["seed"], on_progress=told
        )
    except Exception as error:  # noqa: BLE001 - it is told, and there are no secrets here
        _send_message({"failed": f"{type(error).__name__}: {error}"})
    else:
        _send_message({"points": points})


if __name__ == "__main__":
    main()
