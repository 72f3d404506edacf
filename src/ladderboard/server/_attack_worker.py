"""The process of a trial: plays attacks against a board at the lowest priority.

It gets only public facts about the board: no database, no label and no key. It is started by its
path, so that the server's package is not imported. It writes JSON lines to standard output: its
progress, and at the end the points of the curve or the reason why there are none.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from typing import Any

TOTAL = 1000
"""The value of ``done`` in a progress message when all work is done."""

_DEATH_SIGNAL, _NO_NEW_PRIVILEGES = 1, 38  # for prctl
_LOWEST_PRIORITY = 19  # the largest nice value


def _die_with_parent(parent: int) -> None:
    """Exit when the server does, and never gain more privileges than it."""
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None).prctl
        prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    _check_parent(parent)


def _check_parent(parent: int) -> None:
    """Exit if the server has: not every system sends a signal."""
    if os.getppid() != parent:
        raise SystemExit


def _send_message(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message, allow_nan=False) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Play the attacks that the command line asks for."""
    request = json.loads(sys.argv[1])
    os.nice(_LOWEST_PRIORITY)
    _die_with_parent(request["parent"])
    # Slow imports come after lowering the priority.
    from ladderboard.board import (  # noqa: PLC0415
        Target,
        play_attacks_on_target,
    )

    def report(done: float) -> None:
        _check_parent(request["parent"])
        _send_message({"done": int(done * TOTAL)})

    report(0)
    try:
        points = play_attacks_on_target(
            Target(**request["target"]), seed=request["seed"], on_progress=report
        )
    except Exception as error:  # noqa: BLE001 - it is reported, and there are no secrets here
        _send_message({"failed": f"{type(error).__name__}: {error}"})
    else:
        _send_message({"points": points})


if __name__ == "__main__":
    main()
