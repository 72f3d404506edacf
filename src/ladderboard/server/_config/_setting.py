"""A setting: its name, what it may be, what it is if nobody says, and what it means."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard.errors import InvalidSetting
from ladderboard.server._config._address import (
    check_database,
    file_of,
    has_password,
    without_password,
)
from ladderboard.server._config._kinds import PATH

if TYPE_CHECKING:
    from ladderboard.server._config._kinds import Kind

__all__ = ["Setting"]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One row of the table.

    Parameters
    ----------
    name
        Its key in a file, after the name of its table: ``serve.port``.
    kind
        What it may be.
    default
        What it is if nobody says; None where that depends, which ``meaning`` tells.
    meaning
        One sentence.
    option
        What to type for it on the command line; None where there is none.
    secret
        Whether it is shown to nobody.
    """

    name: str
    kind: Kind = field(repr=False)
    default: Any
    meaning: str
    option: str | None = None
    secret: bool = False

    @property
    def variable(self) -> str:
        """The environment variable."""
        return f"LADDERBOARD_{self.name.replace('.', '_').upper()}"

    def take(self, place: str, given: Any, *, base: Path | None = None) -> Any:
        """Return the value that was given at some place, or refuse it by that place.

        Paths that are not whole start from ``base``.
        """
        try:
            value = self.kind.read(place, given)
        except InvalidSetting:
            if not self.hides(given):
                raise
            raise InvalidSetting(
                f"{place} must be {self.kind.word} on one line; what it is now is not shown."
            ) from None
        if self.name == "database":
            check_database(place, value)
        if base is not None and self.kind is PATH:
            return base / value
        if base is not None and self.name == "database" and file_of(value) is not None:
            whole = os.fspath(base / Path(str(file_of(value))).expanduser())
            return f"sqlite:///{whole}" if value.startswith("sqlite:///") else whole
        return value

    def take_text(self, place: str, text: str) -> Any:
        """Return the value that some text is, from the environment or the command line."""
        return self.take(place, self.kind.typed(text))

    def hides(self, value: Any) -> bool:
        """Tell whether a value, or a part of it, must not be shown."""
        if self.name == "database":
            return not isinstance(value, str) or has_password(value)
        return self.secret

    def shown(self, value: Any) -> Any:
        """Return a value as JSON may have it and anybody may see it; None where it is hidden."""
        if self.name == "database":
            return without_password(value)
        if self.secret or value is None:
            return None
        if isinstance(value, tuple):
            return list(value)
        return os.fspath(value) if isinstance(value, os.PathLike) else value
