"""Which desk an agent comes to: that of a guard or that of a board."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from ladderboard import _settings
from ladderboard.adapters.mcp._folder import Folder
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from pathlib import Path

    from ladderboard.adapters.mcp._tools import Said, Tool

__all__ = ["Desk", "open_desk"]

_SCHEMES = ("http://", "https://", "unix:")
_TIMEOUT = 50.0  # seconds; the hosts of agents wait for a minute, and asking again costs nothing


class Desk(Protocol):
    """Tools, and what answers a call of one of them."""

    tools: tuple[Tool, ...]

    def call(self, tool: str, arguments: dict[str, Any]) -> Said:
        """Answer, by the method of the tool's name; whatever cannot be done is raised."""
        known = next(tuple(each.takes) for each in self.tools if each.name == tool)
        for name in arguments:  # what is not known would else be left out silently
            # Agents try a path whether there is a folder or not; what to do is said further on.
            if name not in known and not (name == "path" and "predictions" in known):
                raise InvalidSetting(
                    f"{tool} has no argument {_settings.shown(name)}; "
                    f"there is {', '.join(known) or 'none'}."
                )
        found: Said = getattr(self, tool)(arguments)
        return found

    def close(self) -> None:
        """Hang up."""


def open_desk(
    target: str,
    *,
    folder: str | Path | None = None,
    ladder: str = "",
    token: str | None = None,
) -> Desk:
    """Return the desk of a guard or a board by its address. Nothing is sent yet.

    Parameters
    ----------
    target
        Where a guard is served, such as ``unix:/run/guard/guard.sock``, or a board's page, such as
        ``https://boards.example.org/boards/digits``. A guard's file is refused.
    folder
        Where files of predictions may be read for the agent; none are if None.
    ladder
        On a guard, the ladder to ask on.
    token
        From the environment's LADDERBOARD_TOKEN if not given; for a board, else from what
        ``ladderboard login`` kept.
    """
    if not isinstance(target, str) or not target.startswith(_SCHEMES):
        raise InvalidSetting(
            "An agent gets an address and never a guard's file, for whoever runs this could read "
            f"the labels in it; got {_settings.shown(target)}. Let another user serve it, with "
            "ladderboard guard serve FILE, and give the address that this prints."
        )
    place = None if folder is None else Folder(folder)
    if not target.startswith("unix:") and "/boards/" in urlsplit(target).path:
        if ladder:
            raise InvalidSetting("A board has its teams' ladders; leave --ladder out.")
        from ladderboard.adapters.mcp._board import open_board  # noqa: PLC0415 - loads the client

        return open_board(target, token=token, timeout=_TIMEOUT, folder=place)
    from ladderboard.adapters.mcp._guard import GuardDesk  # noqa: PLC0415 - loads HTTP
    from ladderboard.holdout import RemoteHoldout  # noqa: PLC0415 - same

    guard = RemoteHoldout(target, token=token, timeout=_TIMEOUT)
    return GuardDesk(guard, ladder=ladder, folder=place)
