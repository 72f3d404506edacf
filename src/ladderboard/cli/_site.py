"""What ``board close --site`` needs: the server's pages, and what is said of the folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard.cli._bundle import OPENED
from ladderboard.cli._said import say
from ladderboard.errors import LadderboardError, MissingDependency, StorageFailed

if TYPE_CHECKING:
    from ladderboard.board import Board
    from ladderboard.server import Site

__all__ = ["check_site", "say_site", "write_site"]


def check_site(board: "Board", site: Path, *, bundle: bool) -> None:
    """Refuse, before anything is closed, what no site can be made of or in."""
    _load().check_site(board, site, bundle=bundle)


def _load() -> Any:
    try:
        from ladderboard import server  # noqa: PLC0415 - an extra
        from ladderboard.server import write_site as _  # noqa: F401, PLC0415 - same
    except ImportError as error:
        raise MissingDependency(
            f"--site needs {error.name}: pip install 'ladderboard[server]'. Nothing was changed."
        ) from None
    return server


def write_site(board: "Board", site: Path, inside: dict[str, bool], *, bundle: bool) -> "Site":
    """Write the site of a board that is closed by now."""
    try:
        made: Site = _load().write_site(board, site, bundle=bundle, **inside)
    except LadderboardError as error:
        more = "".join(f" --{what}" for what, there in inside.items() if there)
        more += "" if bundle else " --no-bundle"
        raise StorageFailed(
            f"{error} {board.slug} is closed, but its site was not written; mend what is wrong, "
            f"and write it with: ladderboard board close {board.slug} --site {site}{more}"
        ) from error
    return made


def say_site(made: "Site", **inside: bool) -> None:
    """Tell what is in a site, how to look at it, and how anybody can check it."""
    from ladderboard.cli._guard_words import wrapped  # noqa: PLC0415 - the help must not wait

    more = "".join(f", the {what}" for what, there in inside.items() if there)
    told = f"{made.folder} holds the board in {made.files} files, for any web server to host"
    if made.bundle is not None:
        told += f"; {made.bundle} in it opens {OPENED}{more}, for everybody who comes there"
    page = made.folder / "index.html"
    say(*wrapped(f"{told}. Open {page} to see it.", indent="  ", first=""))
    if made.bundle is not None:
        say(
            "Whoever comes there can check every release:",
            f"  ladderboard verify {made.bundle} --head {made.head}",
        )
