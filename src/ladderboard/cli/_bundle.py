"""What the verbs that open a bundle have in common: where it goes, and what is said about it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard.cli._guard_options import refuse_taken
from ladderboard.cli._said import say
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.ledger import Head

__all__ = ["OPENED", "check_place", "describe_bundle", "say_bundle"]

OPENED = "the noise key, every risk and every draw"


def check_place(path: Path) -> None:
    """Refuse a name under which no bundle can be made, before anything is closed."""
    refuse_taken(path)
    if not path.parent.is_dir():
        raise InvalidSetting(
            f"There is no directory {path.parent} for the bundle. Nothing was changed."
        )


def describe_bundle(path: Path, head: "Head", **inside: bool) -> dict[str, Any]:
    """Return what a machine is told about a bundle."""
    return {"file": str(path), "entries": head.entries, "head": head.hash.hex(), **inside}


def say_bundle(path: Path, head: "Head", **inside: bool) -> None:
    """Tell what is in a bundle, and how anybody can check it."""
    more = "".join(f", the {what}" for what, there in inside.items() if there)
    missing = " and ".join(f"no {what}" for what, there in inside.items() if not there)
    say(
        f"{path} holds {head.entries:,} entries, {OPENED}{more}{f'; {missing}' * bool(missing)}.",
        "Whoever gets it can check every release:",
        f"  ladderboard verify {path} --head {head.hash.hex()}",
    )
