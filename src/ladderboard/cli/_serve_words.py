"""What ``ladderboard serve`` says when it starts: where it is, who you are, what to type next."""

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.cli._board_options import DATABASE, every_team, organiser
from ladderboard.client import read_address
from ladderboard.server import CONFIG, find_settings, has_password

if TYPE_CHECKING:
    from ladderboard.board import Board, BoardFolder

__all__ = ["Way", "another_token", "farewell", "next_steps", "program", "welcome"]

_EXAMPLE = Path("public", "example_submission.py")


class Way(NamedTuple):
    """What leads to a database: its address, its key file, and the settings file, if there is."""

    database: str
    key_file: Path | None
    config: Path | None


def welcome(
    url: str, boards: "list[Board]", more: int, token: str | None, another: str
) -> list[str]:
    """Return where the boards are, and how the organiser comes in; a new token is told."""
    lines = [f"Ladderboard is at {url}; Ctrl-C stops it."]
    lines += [_line(url, each.as_seen_by(organiser()).summary()) for each in boards]
    lines += [f"  and {more} more: {program()} board list"] if more else []
    if not boards:
        lines += [
            "There are no boards yet. One is made, while this runs or before, with:",
            f"  {program()} board create DIR",
        ]
    if token is not None:
        lines += [
            "",
            f"You are the organiser: sign in at {url}/login",
            "with this token, which is not shown again:",
            f"  {token}",
            f"Another one: {another}",
        ]
    else:
        lines += ["", f"The organiser signs in at {url}/login", f"Another token: {another}"]
    return lines


def another_token(way: Way) -> str:
    """Return what to type for another organiser's token."""
    exports, key, _ = _said(way)
    before = [each.replace(f"export {DATABASE}=", "--database ") for each in exports]
    first = "".join(f"{each.removeprefix('export ')} " for each in before if CONFIG in each)
    rest = "".join(f" {each}" for each in before if CONFIG not in each)
    return f"{first}{program()} board token{rest}{key}"


def _said(way: Way) -> tuple[list[str], str, bool]:
    """Return what to set, what to type behind a verb, and whether that leads to the database.

    A password is not shown: whoever gave it must give it again.
    """
    database, key_file, config = way
    names = ("database", "key_file")
    known = find_settings(config, only=names, environment={})  # to whoever types nothing more
    exports = []
    if config is not None:
        exports.append(f"export {CONFIG}={shlex.quote(str(_near(config)))}")
    shown = database == known["database"] or not has_password(database)
    if database != known["database"] and shown:
        exports.append(f"export {DATABASE}={shlex.quote(database)}")
    same = key_file is None or key_file == known["key_file"]
    return exports, "" if same else f" --key-file {shlex.quote(str(key_file))}", shown


def farewell(database: str) -> str:
    """Return what to say at the end."""
    where = "the database" if has_password(database) else database
    return f"Stopped; everything is kept in {where}."


def _line(url: str, summary: dict[str, Any]) -> str:
    left, said = summary["questions"] - summary["used"], summary["status"]
    if said not in {"closed", "moved"}:  # which answer nothing more
        said = f"{said}, {left:,} of {summary['questions']:,} questions left"
    return f"  {summary['title']}: {url}/boards/{summary['slug']} ({said})"


def next_steps(url: str, board: "Board", folder: "BoardFolder | None", way: Way) -> list[str]:
    """Return what to type into another terminal to take part in a board; it works as it stands."""
    exports, key, whole = _said(way)
    ready = "" if whole else f", with {DATABASE} set to the same database"
    lines = [f"cd {shlex.quote(str(Path.cwd()))}", *exports]
    name = _free_name(board)
    if name is not None:
        words = f"team add {board.slug} {shlex.quote(name)}{key}"
        lines += [f"LADDERBOARD_TOKEN=$({program()} {words})", "export LADDERBOARD_TOKEN"]
    else:
        ready += ", with the token of a team as LADDERBOARD_TOKEN"
    made, predictions = _predictions(folder)
    # From this very machine nothing goes over a wire.
    trusted = "" if read_address(url).private else " --insecure"
    lines += [
        *made,
        f"{program()} submit {url}/boards/{board.slug}{trusted} \\",
        f"  -f {predictions}",
        f"{program()} leaderboard {url}/boards/{board.slug}{trusted}",
    ]
    return ["", f"Next, in another terminal{ready}:", "", *(f"  {each}" for each in lines), ""]


def _predictions(folder: "BoardFolder | None") -> tuple[list[str], str]:
    """Return how predictions are made, and where they are: by an example, or the sample."""
    if folder is not None and (folder.path / _EXAMPLE).is_file():
        place = _near(folder.path)
        command = f"{_python()} {shlex.quote(str(place / _EXAMPLE))}"
        return [command], shlex.quote(str(place / _EXAMPLE.parent / "predictions.csv"))
    if folder is not None and folder.sample is not None and folder.sample.suffix == ".csv":
        return [], shlex.quote(str(_near(folder.sample)))
    return [], "predictions.csv"


def _free_name(board: "Board") -> str | None:
    """Return a name that no team has yet; None if all places are taken."""
    from ladderboard.board import fold  # noqa: PLC0415 - the help must not wait

    every = every_team(board)
    taken = {fold(each["name"]) for each in every}
    if sum(each["kind"] == "team" for each in every) >= board.rules.teams:
        return None
    return next(each for at in range(len(every) + 1) if fold(each := f"Team {at + 1}") not in taken)


def program() -> str:
    """Return how to call this very program from a shell in this directory."""
    started = Path(sys.argv[0])
    if started.stem != "ladderboard" or not started.exists():
        return f"{_python()} -m ladderboard"
    found = shutil.which("ladderboard")
    if found is not None and Path(found).resolve() == started.resolve():
        return "ladderboard"
    return shlex.quote(str(_near(started)))


def _python() -> str:
    """Return the interpreter that has what we have."""
    here = Path(sys.executable)
    found = shutil.which("python")
    # Not resolved: an environment's interpreter is a link to one that has nothing installed.
    return "python" if found == str(here) else shlex.quote(str(_near(here)))


def _near(path: Path) -> Path:
    """Return a path from here, if it lies below."""
    whole = Path(os.path.abspath(path))  # noqa: PTH100 - links are not followed
    here = Path.cwd()
    return whole.relative_to(here) if whole.is_relative_to(here) else whole
