"""The clock: deadlines and limits are only as right as it is."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

from ladderboard.server._doctor._finding import Finding, note, ok, problem

__all__ = ["check_clock"]

_RELEASED = 1_767_225_600  # 2026-01-01: no clock that is right shows an earlier time
_SLACK = 60  # seconds
_SYNCHRONISE = "Let the machine set its clock by others': timedatectl set-ntp true, or chrony."


def check_clock(newest: int | None, ahead: float | None) -> list[Finding]:
    """Look at this machine's clock.

    ``newest`` is the time of the newest entry, and ``ahead`` by how much the database's own clock
    is ahead of ours.
    """
    about, now = "clock", time.time()
    if now < _RELEASED:
        return [problem(about, f"It shows {_shown(now)}, which is long past.", _SYNCHRONISE)]
    theirs = now + (ahead or 0.0)
    if newest is not None and newest > theirs + _SLACK:
        said = f"The newest entry of a ledger is of {_shown(newest)}, and now is {_shown(theirs)}"
        return [problem(about, f"{said}: the clock is wrong, or was.", _SYNCHRONISE)]
    if ahead is not None and abs(ahead) > _SLACK:
        way = "ahead of" if ahead > 0 else "behind"
        said = f"The database's clock, which counts, is {abs(ahead):.0f} s {way} this machine's."
        return [note(about, said, _SYNCHRONISE)]
    if _synchronised() is False:
        return [note(about, f"It shows {_shown(now)}, and nobody sets it right.", _SYNCHRONISE)]
    return [ok(about, f"It shows {_shown(now)}.")]


def _synchronised() -> bool | None:
    """Return whether the clock is set by others'; None where that is not known."""
    program = shutil.which("timedatectl")
    if program is None or not Path("/run/systemd/system").is_dir():
        return None
    command = [program, "show", "--property=NTPSynchronized", "--value"]
    try:
        done = subprocess.run(  # noqa: S603 - nothing of it comes from elsewhere
            command, capture_output=True, text=True, timeout=2, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return {"yes": True, "no": False}.get(done.stdout.strip())


def _shown(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(moment))
