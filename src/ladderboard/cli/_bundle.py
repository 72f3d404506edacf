"""Shared by the commands that write a bundle: its path, confirmation, and what it holds."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ladderboard._formatting import printable
from ladderboard.cli._options import require_new_file
from ladderboard.cli._output import echo, wrap_lines
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.ledger import ChainHead

SECRETS_OPENED = "the noise key, every risk and every draw"
_OPTIONAL_PARTS = {
    "labels": (
        "The labels stay hidden; --labels would publish them, and they could not be reused.",
        "The labels will be in it, so no other board can use them.",
    ),
    "submissions": (
        "Submissions stay hidden; --submissions would publish them.",
        "Submissions will be in it.",
    ),
}


def require_bundle_path(path: Path) -> None:
    """Raise if no bundle can be written to this path; called before anything is closed."""
    require_new_file(path)
    if not path.parent.is_dir():
        raise InvalidSetting(
            f"There is no directory {path.parent} for the bundle. Nothing was changed."
        )


def confirm_closing(name: str, consequence: str | None, path: Path | None, **parts: bool) -> None:
    """Ask for confirmation at a terminal; raise without one.

    ``consequence`` is what closing means; None if it is closed already, and only ``parts`` are
    opened that were not opened then.
    """
    opened = " and ".join(f"the {part}" for part, included in parts.items() if included)
    closes = consequence is not None
    action = f"Closing {name}" if closes else f"Opening {opened} of {name}"
    warning = f"{action} cannot be undone{f': {consequence}' if closes else ''}."
    if path is not None:
        details = " ".join(_OPTIONAL_PARTS[part][included] for part, included in parts.items())
        warning += (
            f" {path} will hold {SECRETS_OPENED}. These reveal much about the labels, so the "
            f"holdout cannot be used again. {details}"
        )
    confirm(action, warning, name, "close" if closes else "open")


def confirm(action: str, warning: str, name: str, verb: str) -> None:
    """Show a warning at a terminal, and ask for a name to be typed; raise without one."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidSetting(
            f"{action} cannot be undone, and stdin is not a terminal to confirm it; give --yes to "
            "go ahead. Nothing was changed."
        )
    typer.echo("\n".join(wrap_lines(warning)), err=True)
    typer.echo(f"Type {printable(name)} to {verb} it: ", nl=False, err=True)
    try:
        typed = input()
    except EOFError:
        typed = ""
    if typed.strip() != name:
        reason = "That is another name" if typed.strip() else "No name was typed"
        raise InvalidSetting(f"{reason}; nothing was changed.")


def confirm_change(warning: str) -> None:
    """Show a warning at a terminal, and ask whether to go ahead; raise without a yes."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidSetting(
            f"{warning} Give --yes to change it all the same. Nothing was changed."
        )
    typer.echo("\n".join(wrap_lines(warning)), err=True)
    if not typer.confirm("Change it all the same?", err=True):
        raise InvalidSetting("Nothing was changed.")


def describe_bundle(path: Path, head: "ChainHead", **parts: bool) -> dict[str, Any]:
    """Return the JSON description of a bundle."""
    return {"file": str(path), "entries": head.entries, "head": head.hash.hex(), **parts}


def echo_bundle(path: Path, head: "ChainHead", **parts: bool) -> None:
    """Print what is in a bundle, and how to verify it."""
    included = "".join(f", the {part}" for part, there in parts.items() if there)
    missing = " and ".join(f"no {part}" for part, there in parts.items() if not there)
    content = f"{SECRETS_OPENED}{included}{f'; {missing}' * bool(missing)}"
    echo(
        *wrap_lines(f"{path} holds {head.entries:,} entries, {content}.", indent="  ", first=""),
        "Everyone who has it can verify every release:",
        f"  ladderboard verify {path} --head {head.hash.hex()}",
    )
