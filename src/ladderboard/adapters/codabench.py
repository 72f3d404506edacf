"""Codabench: a scoring program that asks a served guard or a board.

Codabench runs a scoring program in a container that is thrown away: what it writes down is gone. So
the guard is kept elsewhere, and the program asks it and writes the release, and nothing else, into
``scores.json``.
"""

from __future__ import annotations

import hmac
import html
import json
import sys
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from ladderboard import _settings
from ladderboard.adapters._release import (
    PublishedRelease,
    UnsupportedTarget,
    check_bridge_board,
    check_ladders,
    check_takes_predictions,
    participant_message,
)
from ladderboard.client import split_board
from ladderboard.errors import (
    InvalidPredictions,
    InvalidSetting,
    LadderboardError,
    MissingDependency,
)
from ladderboard.files import listed, refuse
from ladderboard.holdout import Holdout

if TYPE_CHECKING:
    from ladderboard.holdout import Reply

SETTINGS = "ladderboard.json"
"""The file of the reference data that says whom to ask."""
TEAM = "team.txt"
"""The file of a submission that holds its team's word."""
_SHORTEST = 16
_LONGEST = 1000
# What Codabench itself puts beside a submission's files.
_METADATA = "metadata"


@dataclass(frozen=True)
class Settings:
    """Whom to ask, as the reference data's ``ladderboard.json`` says; its keys are these.

    Parameters
    ----------
    guard
        The address of a served guard, ``https://...`` or ``unix:/app/data/guard/guard.sock``.
    board
        Or a board's page, ``https://boards.example.org/boards/digits``.
    token
        The guard's, or an evaluator's of the board.
    teams
        By the word that each team puts into its submission: the name of its ladder, or its id on
        the board. Without them all are on one ladder. A guard must have as many ladders as there
        are names.
    file
        The name of the predictions in a submission; the only file there if not given.
    """

    guard: str | None = None
    board: str | None = None
    token: str | None = field(default=None, repr=False)
    teams: dict[str, str] = field(default_factory=dict, repr=False)
    file: str | None = None

    def __post_init__(self) -> None:
        texts = (self.guard, self.board, self.token, self.file)
        if any(each is not None and not isinstance(each, str) for each in texts):
            raise InvalidSetting("guard, board, token and file must be texts.")
        if (self.guard is None) == (self.board is None):
            raise InvalidSetting(f"{SETTINGS} must name a guard or a board; one of the two.")
        if self.guard is not None and "://" not in self.guard and self.guard[:5] != "unix:":
            raise InvalidSetting(
                "guard must be the address of a served guard, like https://guard.example.org. A "
                "guard's file would be a new copy for every submission, and no question be spent."
            )
        if "@" in (self.guard or self.board or ""):
            raise InvalidSetting("An address holds no name or password; give a token.")
        if self.board is not None and _place(self.board)[0] is None:
            raise InvalidSetting(
                "board must be the address of a board's page, like "
                "https://boards.example.org/boards/digits."
            )
        if not isinstance(self.teams, dict) or not all(
            isinstance(word, str) and isinstance(name, str) and name
            for word, name in self.teams.items()
        ):
            raise InvalidSetting("teams must be an object: a team by each word.")
        if any(len(word) < _SHORTEST or word.split() != [word] for word in self.teams):
            raise InvalidSetting(
                f"A team's word needs {_SHORTEST} characters or more and no spaces: others must "
                "not guess it."
            )
        if self.board is not None and not self.teams:
            raise InvalidSetting("A board needs teams: an evaluator submits in a team's name.")

    @classmethod
    def read(cls, path: Path) -> Settings:
        """Read the file; keys that are not listed are refused."""
        try:
            read = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            raise InvalidSetting(f"The reference data must hold {SETTINGS}, in JSON.") from None
        known = {each.name for each in fields(cls)}
        if not isinstance(read, dict) or not set(read) <= known:
            raise InvalidSetting(
                f"{SETTINGS} must be an object with keys among {', '.join(sorted(known))}."
            )
        return cls(**read)


def score(given: Path | str, output: Path | str) -> int:
    """Score a submission as Codabench lays it out, and return the program's exit code.

    ``given`` holds ``res``, what was submitted, and ``ref``, the reference data. Answered, it is 0,
    and ``output`` holds ``scores.json`` and ``detailed_results.html``. Otherwise there is no
    ``scores.json``, which makes Codabench say that the submission failed: 1 where the submission
    cannot be scored, with the reasons on standard error; 2 where it is the organiser's matter.
    """
    given, output = Path(given), Path(output)
    output.mkdir(parents=True, exist_ok=True)
    (output / "scores.json").unlink(missing_ok=True)
    try:
        settings = Settings.read(given / "ref" / SETTINGS)
    except InvalidSetting as error:  # of our own words, which repeat nothing of the settings
        return _fail(f"For the organiser: {error}", 2)
    try:
        told = PublishedRelease.from_reply(_ask(settings, given / "res"))
    except (UnsupportedTarget, MissingDependency) as error:
        return _fail(f"For the organiser: {error}", 2)
    except Exception as error:  # noqa: BLE001 - participants read this: an address is not for them
        said = participant_message(error) if isinstance(error, LadderboardError) else None
        if said is not None:
            return _fail(said, 1)
        return _fail(
            f"What scores cannot be asked now ({type(error).__name__}), and no question was spent "
            "for nothing. Tell the organiser, who can run this submission again.",
            2,
        )
    (output / "scores.json").write_text(json.dumps(told.numbers()))
    (output / "detailed_results.html").write_text(f"<p>{html.escape(str(told))}</p>\n")
    sys.stdout.write(f"{told}\n")
    return 0


def _fail(said: str, code: int) -> int:
    sys.stderr.write(f"{said}\n")
    return code


def _ask(settings: Settings, folder: Path) -> Reply:
    team = _team(settings, folder)
    file = _predictions(settings, folder)
    if settings.guard is not None:
        with Holdout.connect(settings.guard, token=settings.token) as guard:
            check_takes_predictions(guard.takes)
            if settings.teams:
                check_ladders(guard.ladders, len(set(settings.teams.values())))
            return guard.ask(file, ladder=team)
    return _ask_board(settings, team, file)


def _ask_board(settings: Settings, team: str, file: Path) -> Reply:
    from ladderboard.client import Client  # noqa: PLC0415 - loads httpx

    server, slug = _place(settings.board)
    with Client(server, settings.token, receipts=None) as client:
        check_bridge_board(client.board(slug))
        return client.submit(slug, file, team=team, message="Codabench")


def _place(board: str | None) -> tuple[str | None, str]:
    """Return a board's server and its name; no server where none is named."""
    try:
        return split_board(board)
    except InvalidSetting:  # its sentence repeats the address, which participants would read
        return None, ""


def _team(settings: Settings, folder: Path) -> str:
    """Return the ladder of a submission, or its team; nothing where all are on one ladder."""
    if not settings.teams:
        return ""
    word = b""
    path = folder / TEAM
    if path.is_file() and not path.is_symlink():
        with path.open("rb") as file:
            word = file.read(_LONGEST).strip()
    own = [
        name for each, name in settings.teams.items() if hmac.compare_digest(each.encode(), word)
    ]
    if not own:
        said = f"{TEAM} must hold the word that the organiser gave to your team."
        refuse(InvalidPredictions, "team", said)
    return own[0]


def _predictions(settings: Settings, folder: Path) -> Path:
    """Return the file with predictions; a link, which might lead to the reference data, is none."""
    plain = sorted(
        each
        for each in (folder.iterdir() if folder.is_dir() else ())
        if each.is_file() and not each.is_symlink() and each.name[0] != "."
        if each.name != _METADATA
    )
    if settings.file is not None:
        found = [each for each in plain if each.name == settings.file]
        wanted = _settings.safe_repr(settings.file)
    else:
        found = [each for each in plain if each.name != TEAM]
        wanted = "one file with predictions"
    if len(found) != 1:
        has = listed(each.name for each in plain) or "no file"
        said = f"A submission must hold {wanted}, not within a folder; this one has {has}."
        refuse(InvalidPredictions, "files", said)
    return found[0]
