"""``ladderboard board amend``, ``data``, ``pause`` and ``resume``: changes to a board."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard import server
from ladderboard._formatting import format_count
from ladderboard.cli._bundle import confirm_change
from ladderboard.cli._database import (
    DEFAULT_DATABASE,
    Database,
    KeyFile,
    Slug,
    open_board,
    open_database,
    organiser,
)
from ladderboard.cli._options import AsJson, parse_integer
from ladderboard.cli._output import echo, echo_json, wrap_lines
from ladderboard.errors import InvalidSetting, StaleCopy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ladderboard.board import Board, Boards

_TEXT_KEYS = {"title", "description", "display.name"}


def amend(
    board: Slug,
    *,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A key of board.yaml and its value, as in submissions=2000 or "
            "files.bytes='20 MB'. It may be given several times.",
        ),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="A board.yaml: every rule that differs is changed."),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="The holdout with corrected labels: the same rows in the same order.",
        ),
    ] = None,
    replay: Annotated[
        str,
        typer.Option(
            metavar="WHICH",
            help="With --labels: what to score again: each team's best, submissions (all), none.",
        ),
    ] = "best",
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            help="Do not ask, also if teams lose by it or it undoes an earlier amendment.",
        ),
    ] = False,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Change the rules of a board, or correct its labels.

    Deadlines, limits, the budget, texts and visibility can change. Every change is an entry of the
    ledger with a new commitment. Loss, mechanism and ladder cannot change. Corrected labels begin a
    new epoch: ladders start again, the budget does not.
    """
    if sum(map(bool, (settings, rules, labels))) != 1:
        raise InvalidSetting("Give one of --set, --rules and --labels.")
    with open_database(database, key_file) as boards:
        opened = open_board(boards, board)
        if labels is not None:
            outcome = _correct_labels(opened, labels, replay)
        else:
            outcome = _amend_rules(opened, settings or [], rules, yes=yes)
        outcome["head"] = opened.book.head().hash.hex()
    if as_json:
        echo_json({"board": board, **outcome})
    else:
        echo(*_describe_amendment(board, outcome))


def data(
    board: Slug,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The board's folder.")],
    *,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Replace the participants' files by those in the folder's data/, and the sample.

    To change links to files elsewhere, use board amend.
    """
    from ladderboard.board import read_data_files  # noqa: PLC0415

    if not (folder / "board.yaml").is_file():  # else data/ itself would withdraw all files
        raise InvalidSetting(
            f"{folder} has no board.yaml. Give the board's folder, which holds data/."
        )
    paths = read_data_files(folder)
    with open_database(database, key_file) as boards:
        opened = open_board(boards, board)
        opened.data.replace(organiser(), paths)
    if as_json:
        echo_json({"board": board, "files": sorted(paths)})
    else:
        names = f": {', '.join(sorted(paths))}" if paths else ""
        echo(f"{board} offers {format_count(len(paths), 'file')}{names}.")


def _amend_rules(
    board: "Board", settings: list[str], file: Path | None, *, yes: bool
) -> dict[str, Any]:
    before = board.rules
    changes = _changes_from_options(settings) if file is None else _changes_from_file(board, file)
    warnings = [] if yes or not changes else board.amendments.warnings(changes)
    if file is not None and not yes:
        warnings += _describe_taken_back(board, changes)
    if warnings:
        confirm_change(" ".join(warnings))
    after = board.amendments.amend(organiser(), changes) if changes else before
    old, new = before.describe(), after.describe()
    pairs = {key: [old.get(key), new.get(key)] for key in {**old, **new}}
    return {"changes": {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}}


def _changes_from_file(board: "Board", file: Path) -> dict[str, Any]:
    from ladderboard.board import (  # noqa: PLC0415
        diff_rules,
        read_rules,
    )

    path = file / "board.yaml" if file.is_dir() else file
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidSetting(f"{path} cannot be read: {reason}.") from None
    return diff_rules(board.rules, read_rules(text, where=path.name, slug=board.slug))


def _describe_taken_back(board: "Board", changes: dict[str, Any]) -> list[str]:
    """Return a warning if changes, once they were checked, restore what the board began with."""
    current = board.rules
    before, after = (rules.describe() for rules in (current, current.amended(changes, used=0)))
    created = board.book.opening["rules"]["board"]
    restored = {key: value for key, value in after.items() if value != before.get(key)}
    since = {part[0] for part in _differences(created, restored)}
    parts = [part for part in _differences(before, restored) if part[0] not in since]
    if not parts:
        return []
    lost = "; ".join(map(_format_change, parts))
    return [f"This file reverts earlier amendments: {lost}."]


def _differences(
    before: "Mapping[str, Any]", after: "Mapping[str, Any]"
) -> list[tuple[str, Any, Any]]:
    """Return the parts of the rules of ``after`` that differ, by the names that people write."""
    from ladderboard.board import differing_parts  # noqa: PLC0415 - keeps --help fast

    return [
        part
        for key, value in after.items()
        if value != before.get(key)
        for part in differing_parts(key, before.get(key), value)
    ]


def _format_change(part: tuple[str, Any, Any]) -> str:
    name, before, after = part
    return f"{name}: {_format_value(before)} -> {_format_value(after)}"


def _changes_from_options(settings: list[str]) -> dict[str, Any]:
    """Return the changes given by options, each a key and a value."""
    changes: dict[str, Any] = {}
    for setting in settings:
        path, equals, text = setting.partition("=")
        key, dot, part = path.strip().partition(".")
        if not equals or not key or (dot and not part):
            raise InvalidSetting(
                f"--set needs KEY=VALUE, as in submissions=2000; got {setting!r:.80}."
            )
        value = text if path.strip() in _TEXT_KEYS else _parse_value(path, text)
        inner = changes.setdefault(key, {} if dot else value)
        if dot and isinstance(inner, dict) and part not in inner:
            inner[part] = value
        elif dot or inner is not value:
            raise InvalidSetting(f"{key} is given twice.")
    return changes


def _parse_value(path: str, text: str) -> Any:
    """Read a value as in board.yaml."""
    from ladderboard.board import read_yaml  # noqa: PLC0415 - keeps --help fast

    errors: list[str] = []
    value, _ = read_yaml(text, lambda _, sentence, __: errors.append(sentence))
    if errors:
        raise InvalidSetting(f"{path.strip()}: the value {errors[0]}")
    return value


def _correct_labels(board: "Board", file: Path, replay: str) -> dict[str, Any]:
    from ladderboard.board import (  # noqa: PLC0415
        count_changed_labels,
        read_corrected_labels,
        sample_key,
    )
    from ladderboard.holdout import decode_sample  # noqa: PLC0415 - same

    row = board.row()
    table = read_corrected_labels(file, board.rules_of(row))
    before = decode_sample(board.book.read_encrypted(sample_key(row.epoch)))
    changed = count_changed_labels(before, table)
    if not changed and len(before) == len(table):
        raise InvalidSetting(f"{file} has the same labels as the board; nothing was changed.")
    asked = board.amendments.correct_labels(
        organiser(), table, replay=replay, sandbox=server.sandbox
    )
    return {"labels": changed, "epoch": row.epoch + 1, "asked_again": asked}


def _describe_amendment(board: str, outcome: dict[str, Any]) -> list[str]:
    if "labels" in outcome:
        labels = "1 label was" if outcome["labels"] == 1 else f"{outcome['labels']:,} labels were"
        count = outcome["asked_again"]
        scored = "1 submission was" if count == 1 else f"{count:,} submissions were"
        return [
            f"{labels} corrected; epoch {outcome['epoch']} of {board} begins.",
            f"{scored} scored again, and counted against the budget.",
        ]
    if not outcome["changes"]:
        return [f"{board} has these rules already; nothing was changed."]
    before, after = (
        {key: pair[index] for key, pair in outcome["changes"].items()} for index in range(2)
    )
    lines = [f"  {_format_change(part)}" for part in _differences(before, after)]
    return [f"{board} is amended, as its ledger records:", *lines]


def _format_value(value: Any) -> str:
    if isinstance(value, list) and all(
        isinstance(phase, dict) and "start" in phase for phase in value
    ):
        return ", ".join(
            f"{phase['name']} ({phase['start'] or 'always'} to {phase['end'] or 'no end'})"
            for phase in value
        )
    text = str(value)
    return text if len(text) <= 200 else f"{text[:197]}..."


def pause(
    board: Slug,
    *,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Accept no submissions until board resume."""
    with open_database(database, key_file) as boards:
        opened = open_board(boards, board)
        opened.amendments.pause(organiser())
        status = opened.row().status
    if as_json:
        echo_json({"board": board, "status": status})
    else:
        echo(f"{board} is {status}. To resume it: ladderboard board resume {board}")


def resume(
    board: Slug,
    *,
    charge: Annotated[
        int | None,
        typer.Option(
            parser=parse_integer,
            help="After a restore: the number of submissions that may have been answered since the "
            "copy.",
        ),
    ] = None,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Resume a paused board.

    After a restore, or with an old copy of the database, --charge is the number of submissions that
    may have been answered since the copy. They are subtracted from the budget; if in doubt, charge
    more.
    """
    with open_database(database, key_file) as boards:
        resumed, was_open = _resume_board(boards, board, charge)
        view = resumed.as_seen_by(organiser())
        summary, budget = view.summary(), view.budget()
    left = budget["remaining"]
    if as_json:
        status = {"status": summary["status"], "charged": charge or 0, "remaining": left}
        echo_json({"board": board, **status})
    else:
        now = "was open already" if was_open else f"is {summary['status']}"
        text = f"{board} {now}. {left:,} submissions are left."
        if charge:
            text = (
                f"{board} {now}. {format_count(charge, 'submission')} charged, {left:,} left. "
                f"Each team now has {budget['share']:,} in all reserved for it; "
                f"{budget['pool'] - budget['pooled']:,} more are first come, first served."
            )
        echo(*wrap_lines(text, indent="  ", first=""))


def _resume_board(boards: "Boards", slug: str, charge: int | None) -> tuple["Board", bool]:
    """Return the resumed board, and whether it was open before."""
    try:
        board = open_board(boards, slug)
        status = board.row().status
        if charge is not None or status != "restored":
            board.amendments.resume(organiser(), charge)
            return board, status == "open"
    except StaleCopy as error:
        if charge is not None:
            return boards.adopt_old_copy(slug, charge), False
        minimum = f", at least {error.missing:,}"
    else:
        minimum = ""
    raise InvalidSetting(
        f"{slug} comes from a copy. Give --charge N, the number of submissions that may have been "
        f"answered since the copy{minimum}; they are taken off the budget."
    )
