"""Codabench: a scoring program that asks a served guard or a board.

Codabench deletes the container of a scoring program after each run, so the guard runs elsewhere.
The program asks it and writes the release, and nothing else, to ``scores.json``.
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
from ladderboard.files import format_names, refuse
from ladderboard.holdout import Holdout

if TYPE_CHECKING:
    from ladderboard.holdout import Reply

SETTINGS = "ladderboard.json"
"""The settings file in the reference data."""
TEAM = "team.txt"
"""The file of a submission that holds its team's secret word."""
_MIN_SECRET_LENGTH = 16
_MAX_SECRET_BYTES = 1000
# Codabench puts this file beside a submission's own.
_METADATA = "metadata"


@dataclass(frozen=True)
class BridgeSettings:
    """The guard or board to ask; the keys of ``ladderboard.json`` in the reference data.

    Parameters
    ----------
    guard
        The address of a served guard, ``https://...`` or ``unix:/app/data/guard/guard.sock``.
    board
        Or the address of a board's page, ``https://boards.example.org/boards/digits``.
    token
        The guard's token, or an evaluator's on the board.
    teams
        From the secret word that each team puts into its submission to its ladder's name, or its id
        on the board. Without teams, all share one ladder. A guard needs a ladder for each name.
    file
        The name of the predictions file; by default the only file of the submission.
    """

    guard: str | None = None
    board: str | None = None
    token: str | None = field(default=None, repr=False)
    teams: dict[str, str] = field(default_factory=dict, repr=False)
    file: str | None = None

    def __post_init__(self) -> None:
        texts = (self.guard, self.board, self.token, self.file)
        if any(text is not None and not isinstance(text, str) for text in texts):
            raise InvalidSetting("guard, board, token and file must be text.")
        if (self.guard is None) == (self.board is None):
            raise InvalidSetting(f"{SETTINGS} must name either a guard or a board.")
        if self.guard is not None and "://" not in self.guard and self.guard[:5] != "unix:":
            raise InvalidSetting(
                "guard must be the address of a served guard, like https://guard.example.org. From "
                "a guard's file every submission would get a fresh copy with the whole budget."
            )
        if "@" in (self.guard or self.board or ""):
            raise InvalidSetting("An address cannot contain a name or password; use token.")
        if self.board is not None and _parse_board(self.board)[0] is None:
            raise InvalidSetting(
                "board must be the address of a board's page, like "
                "https://boards.example.org/boards/digits."
            )
        if not isinstance(self.teams, dict) or not all(
            isinstance(word, str) and isinstance(name, str) and name
            for word, name in self.teams.items()
        ):
            raise InvalidSetting(
                "teams must be an object whose keys are words and whose values are teams."
            )
        if any(len(word) < _MIN_SECRET_LENGTH or word.split() != [word] for word in self.teams):
            raise InvalidSetting(
                f"A team's word needs at least {_MIN_SECRET_LENGTH} characters and no spaces: "
                "others must not guess it."
            )
        if self.board is not None and not self.teams:
            raise InvalidSetting("A board needs teams: an evaluator submits in a team's name.")

    @classmethod
    def read(cls, path: Path) -> BridgeSettings:
        """Read the file; unknown keys are refused."""
        try:
            document = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            raise InvalidSetting(f"The reference data must hold {SETTINGS}, in JSON.") from None
        known = {setting.name for setting in fields(cls)}
        if not isinstance(document, dict) or not set(document) <= known:
            raise InvalidSetting(
                f"{SETTINGS} must be an object with keys among {', '.join(sorted(known))}."
            )
        return cls(**document)


def score(input_folder: Path | str, output: Path | str) -> int:
    """Score a submission in Codabench's layout and return the program's exit code.

    ``input_folder`` holds the submission in ``res`` and the reference data in ``ref``. After an
    answer the code is 0, and ``output`` holds ``scores.json`` and ``detailed_results.html``.
    Otherwise there is no ``scores.json``, so Codabench marks the submission as failed: the code is
    1 if the submission cannot be scored, with the reasons on standard error, and 2 if the organiser
    must act.
    """
    source, output = Path(input_folder), Path(output)
    output.mkdir(parents=True, exist_ok=True)
    (output / "scores.json").unlink(missing_ok=True)
    try:
        settings = BridgeSettings.read(source / "ref" / SETTINGS)
    except InvalidSetting as error:  # its message repeats no setting
        return _fail(f"For the organiser: {error}", 2)
    try:
        release = PublishedRelease.from_reply(_ask(settings, source / "res"))
    except (UnsupportedTarget, MissingDependency) as error:
        return _fail(f"For the organiser: {error}", 2)
    except Exception as error:  # noqa: BLE001 - participants must not read an address
        message = participant_message(error) if isinstance(error, LadderboardError) else None
        if message is not None:
            return _fail(message, 1)
        return _fail(
            f"Scoring is not available now ({type(error).__name__}). Tell the organiser, who can "
            "run this submission again; it costs at most one question.",
            2,
        )
    (output / "scores.json").write_text(json.dumps(release.numbers()))
    (output / "detailed_results.html").write_text(f"<p>{html.escape(str(release))}</p>\n")
    sys.stdout.write(f"{release}\n")
    return 0


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"{message}\n")
    return code


def _ask(settings: BridgeSettings, folder: Path) -> Reply:
    team = _team(settings, folder)
    file = _predictions(settings, folder)
    if settings.guard is not None:
        with Holdout.connect(settings.guard, token=settings.token) as guard:
            check_takes_predictions(guard.takes)
            if settings.teams:
                check_ladders(guard.ladders, len(set(settings.teams.values())))
            return guard.ask(file, ladder=team)
    return _ask_board(settings, team, file)


def _ask_board(settings: BridgeSettings, team: str, file: Path) -> Reply:
    from ladderboard.client import Client  # noqa: PLC0415 - loads httpx

    server, slug = _parse_board(settings.board)
    with Client(server, settings.token, receipts=None) as client:
        check_bridge_board(client.board(slug))
        return client.submit(slug, file, team=team, message="Codabench")


def _parse_board(board: str | None) -> tuple[str | None, str]:
    """Return a board's server and name; None and empty if the address is invalid."""
    try:
        return split_board(board)
    except InvalidSetting:  # its message repeats the address, and participants read it
        return None, ""


def _team(settings: BridgeSettings, folder: Path) -> str:
    """Return a submission's ladder or team id; empty if all share one ladder."""
    if not settings.teams:
        return ""
    word = b""
    path = folder / TEAM
    if path.is_file() and not path.is_symlink():
        with path.open("rb") as file:
            word = file.read(_MAX_SECRET_BYTES).strip()
    matches = [
        name
        for secret, name in settings.teams.items()
        if hmac.compare_digest(secret.encode(), word)
    ]
    if not matches:
        message = f"{TEAM} must hold the word that the organiser gave to your team."
        refuse(InvalidPredictions, "team", message)
    return matches[0]


def _predictions(settings: BridgeSettings, folder: Path) -> Path:
    """Return the predictions file; links are ignored, as they may lead to the reference data."""
    regular_files = sorted(
        path
        for path in (folder.iterdir() if folder.is_dir() else ())
        if path.is_file() and not path.is_symlink() and path.name[0] != "."
        if path.name != _METADATA
    )
    if settings.file is not None:
        candidates = [path for path in regular_files if path.name == settings.file]
        expected = _settings.safe_repr(settings.file)
    else:
        candidates = [path for path in regular_files if path.name != TEAM]
        expected = "one file with predictions"
    if len(candidates) != 1:
        has = format_names(path.name for path in regular_files) or "no file"
        message = f"A submission must hold {expected}, not in a subfolder; this one has {has}."
        refuse(InvalidPredictions, "files", message)
    return candidates[0]
