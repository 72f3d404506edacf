"""What the verbs that open a bundle have in common: where it goes, and what is said about it."""

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
        "The labels stay hidden; --labels puts them in, and then nobody else can use them.",
        "The labels will be in it, so nobody else can use them.",
    ),
    "submissions": (
        "What teams submitted stays here; --submissions puts it in.",
        "What teams submitted will be in it.",
    ),
}


def require_bundle_path(path: Path) -> None:
    """Refuse a name under which no bundle can be made, before anything is closed."""
    require_new_file(path)
    if not path.parent.is_dir():
        raise InvalidSetting(
            f"There is no directory {path.parent} for the bundle. Nothing was changed."
        )


def confirm_closing(name: str, end: str | None, path: Path | None, **inside: bool) -> None:
    """Ask somebody at a terminal whether an end is meant; refuse where nobody is.

    ``end`` is None where that was before: what is opened now was not opened then.
    """
    opened = " and ".join(f"the {what}" for what, there in inside.items() if there)
    doing = f"Opening {opened} of {name}" if end is None else f"Closing {name}"
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidSetting(
            f"{doing} cannot be undone, and nobody is here to ask; give --yes if it is meant. "
            "Nothing was changed."
        )
    told = f"{doing} cannot be undone{'' if end is None else f': {end}'}."
    if path is not None:
        more = " ".join(_OPTIONAL_PARTS[what][there] for what, there in inside.items())
        told += (
            f" {path} will hold {SECRETS_OPENED}. These reveal much about the labels, so the "
            f"holdout cannot be used again. {more}"
        )
    typer.echo("\n".join(wrap_lines(told)), err=True)
    what = "close" if end is not None else "open"
    typer.echo(f"Type {printable(name)} to {what} it: ", nl=False, err=True)
    try:
        typed = input()
    except EOFError:
        typed = ""
    if typed.strip() != name:
        other = "That is another name" if typed.strip() else "No name was typed"
        raise InvalidSetting(f"{other}; nothing was changed.")


def describe_bundle(path: Path, head: "ChainHead", **inside: bool) -> dict[str, Any]:
    """Return what a machine is told about a bundle."""
    return {"file": str(path), "entries": head.entries, "head": head.hash.hex(), **inside}


def echo_bundle(path: Path, head: "ChainHead", **inside: bool) -> None:
    """Tell what is in a bundle, and how anybody can check it."""
    more = "".join(f", the {what}" for what, there in inside.items() if there)
    missing = " and ".join(f"no {what}" for what, there in inside.items() if not there)
    inside_it = f"{SECRETS_OPENED}{more}{f'; {missing}' * bool(missing)}"
    echo(
        *wrap_lines(f"{path} holds {head.entries:,} entries, {inside_it}.", indent="  ", first=""),
        "Whoever gets it can check every release:",
        f"  ladderboard verify {path} --head {head.hash.hex()}",
    )
