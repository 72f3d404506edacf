"""Shared by the commands that write a bundle: its path, confirmation, and what it holds."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ladderboard._formatting import format_list, printable
from ladderboard.cli._options import require_new_file
from ladderboard.cli._output import echo, wrap_lines
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.ledger import ChainHead

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


def describe_secrets(parts: Iterable[str]) -> str:
    """Return what a bundle always opens; only a board's has the part ``submissions``."""
    if "submissions" in parts:
        return "the noise key, and the exact score and noise of every submission"
    return "the noise key, and the exact result and noise of every answer"


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
            f" {path} will hold {describe_secrets(parts)}. These reveal much about the labels, so "
            f"the holdout cannot be used again. {details}"
        )
    confirm(action, warning, name, "close" if closes else "open")


def confirm(action: str, warning: str, name: str, verb: str) -> None:
    """Show a warning at a terminal, and ask for a name to be typed; raise without one."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidSetting(
            f"{action} cannot be undone, and there is no terminal to ask for confirmation; give "
            "--yes to go ahead. Nothing was changed."
        )
    typer.echo("\n".join(wrap_lines(warning)), err=True)
    typer.echo(f"Type {printable(name)} to {verb} it: ", nl=False, err=True)
    try:
        typed = input()
    except EOFError:
        typed = ""
    if typed.strip() != name:
        reason = "The name does not match" if typed.strip() else "No name was typed"
        raise InvalidSetting(f"{reason}; nothing was changed.")


def confirm_change(warning: str) -> None:
    """Show a warning at a terminal, and ask whether to go ahead; raise without a yes."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidSetting(f"{warning} Give --yes to change it anyway. Nothing was changed.")
    typer.echo("\n".join(wrap_lines(warning)), err=True)
    if not typer.confirm("Change it anyway?", err=True):
        raise InvalidSetting("Nothing was changed.")


def describe_bundle(path: Path, head: "ChainHead", **parts: bool) -> dict[str, Any]:
    """Return the JSON description of a bundle."""
    return {"file": str(path), "entries": head.entries, "head": head.hash.hex(), **parts}


def describe_parts(**parts: bool) -> str:
    """Return which optional parts are in a bundle, and which are not.

    >>> describe_parts(labels=False, submissions=False)
    'Labels and submissions are not in it.'
    >>> describe_parts(labels=True, submissions=False)
    'Labels are in it. Submissions are not in it.'
    """
    sentences = []
    for verb, wanted in (("are", True), ("are not", False)):
        names = [part for part, included in parts.items() if included is wanted]
        if names:
            sentences.append(f"{format_list(names).capitalize()} {verb} in it.")
    return " ".join(sentences)


def echo_bundle(path: Path, head: "ChainHead", **parts: bool) -> None:
    """Print what is in a bundle, and how to verify it."""
    content = f"{head.entries:,} entries, {describe_secrets(parts)}"
    sentences = f"{path} holds {content}. {describe_parts(**parts)}"
    checked = "score" if "submissions" in parts else "answer"
    echo(
        *wrap_lines(sentences, indent="  ", first=""),
        f"Anyone with this file can check every {checked}:",
        f"  ladderboard verify {path} --head {head.hash.hex()}",
    )
