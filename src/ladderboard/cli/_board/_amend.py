"""``ladderboard board amend``, ``pause`` and ``resume``: changes after the start."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
from ladderboard.cli._output import echo, echo_json
from ladderboard.errors import InvalidSetting, StaleCopy

if TYPE_CHECKING:
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
            help="A key of board.yaml and its value, as in questions=2000 or files.bytes='20 MB'; "
            "may be given several times.",
        ),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="A board.yaml: whatever differs in it is changed."),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="The holdout with corrected labels: the same rows in order."
        ),
    ] = None,
    replay: Annotated[
        str,
        typer.Option(
            metavar="WHICH",
            help="With --labels: ask each team's best again, or none. They count as questions.",
        ),
    ] = "best",
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Change what may change, or correct labels.

    Deadlines, limits, the budget, texts, visibility. Every change is an entry of the ledger with a
    new commitment. Loss, mechanism and ladder cannot change. Corrected labels begin a new epoch:
    ladders start again, the budget does not.
    """
    given = [name for name, each in _named(settings, rules, labels) if each]
    if len(given) != 1:
        raise InvalidSetting("Give one of --set, --rules and --labels.")
    with open_database(database, key_file) as boards:
        found = open_board(boards, board)
        if labels is not None:
            told = _correct_labels(found, labels, replay)
        else:
            told = _amend_rules(found, settings or [], rules)
        told["head"] = found.book.head().hash.hex()
    if as_json:
        echo_json({"board": board, **told})
    else:
        echo(*_describe_amendment(board, told))


def _named(*values: Any) -> list[tuple[str, Any]]:
    return list(zip(("--set", "--rules", "--labels"), values, strict=True))


def _amend_rules(board: "Board", settings: list[str], file: Path | None) -> dict[str, Any]:
    before = board.rules
    changes = _changes_from_options(settings) if file is None else _changes_from_file(board, file)
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
        said = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidSetting(f"{path} cannot be read: {said}.") from None
    return diff_rules(board.rules, read_rules(text, where=path.name, slug=board.slug))


def _changes_from_options(settings: list[str]) -> dict[str, Any]:
    """Return changes from what was typed, one key and value each."""
    changes: dict[str, Any] = {}
    for setting in settings:
        path, equals, text = setting.partition("=")
        key, dot, part = path.strip().partition(".")
        if not equals or not key or (dot and not part):
            raise InvalidSetting(
                f"--set needs a key, = and a value, as in questions=2000; got {setting!r:.80}."
            )
        value = text if path.strip() in _TEXT_KEYS else _parse_value(path, text)
        inner = changes.setdefault(key, {} if dot else value)
        if dot and isinstance(inner, dict) and part not in inner:
            inner[part] = value
        elif dot or inner is not value:
            raise InvalidSetting(f"{key} is given twice.")
    return changes


def _parse_value(path: str, text: str) -> Any:
    """Return what a value means in board.yaml."""
    from ladderboard.board import read_yaml  # noqa: PLC0415 - keeps --help fast

    wrong: list[str] = []
    value, _ = read_yaml(text, lambda _, sentence, __: wrong.append(sentence))
    if wrong:
        raise InvalidSetting(f"{path.strip()}: the value {wrong[0]}")
    return value


def _correct_labels(board: "Board", file: Path, replay: str) -> dict[str, Any]:
    from ladderboard.board import (  # noqa: PLC0415
        count_changed_labels,
        read_corrected_labels,
        sample_key,
    )
    from ladderboard.holdout import read_sample  # noqa: PLC0415 - same
    from ladderboard.server import sandbox  # noqa: PLC0415 - same

    row = board.row()
    table = read_corrected_labels(file, board.rules_of(row))
    before = read_sample(board.book.read_encrypted(sample_key(row.epoch)))
    changed = count_changed_labels(before, table)
    if not changed and len(before) == len(table):
        raise InvalidSetting(f"{file} has the labels that the board has; nothing was changed.")
    asked = board.amendments.correct_labels(organiser(), table, again=replay, sandbox=sandbox)
    return {"labels": changed, "epoch": row.epoch + 1, "asked_again": asked}


def _describe_amendment(board: str, told: dict[str, Any]) -> list[str]:
    if "labels" in told:
        labels = "1 label was" if told["labels"] == 1 else f"{told['labels']:,} labels were"
        asked = told["asked_again"]
        asked = "1 submission was" if asked == 1 else f"{asked:,} submissions were"
        return [
            f"{labels} corrected; epoch {told['epoch']} of {board} begins.",
            f"{asked} asked again, and counted.",
        ]
    if not told["changes"]:
        return [f"{board} has these rules already; nothing was changed."]
    lines = [
        move
        for key, (old, new) in told["changes"].items()
        for move in _describe_change(key, old, new)
    ]
    return [f"{board} is amended, and its ledger says so:", *(f"  {line}" for line in lines)]


def _describe_change(key: str, old: Any, new: Any) -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            f"{key}.{each}: {_format_value(old.get(each))} -> {_format_value(part)}"
            for each, part in new.items()
            if part != old.get(each)
        ]
    return [f"{key}: {_format_value(old)} -> {_format_value(new)}"]


def _format_value(value: Any) -> str:
    if isinstance(value, list) and all(
        isinstance(each, dict) and "start" in each for each in value
    ):
        return ", ".join(
            f"{each['name']} ({each['start'] or 'always'} to {each['end'] or 'no end'})"
            for each in value
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
    """Take no questions until board resume."""
    with open_database(database, key_file) as boards:
        found = open_board(boards, board)
        found.amendments.pause(organiser())
        status = found.row().status
    if as_json:
        echo_json({"board": board, "status": status})
    else:
        echo(f"{board} is {status}; ladderboard board resume {board} lets it go on.")


def resume(
    board: Slug,
    *,
    charge: Annotated[
        int | None,
        typer.Option(
            parser=parse_integer,
            help="After a restore: how many questions may have been answered since the copy.",
        ),
    ] = None,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Let a paused board go on.

    After a restore, or with an old copy of the database, say how many questions may have been
    answered since the copy was made. They are charged; charge too many rather than too few.
    """
    with open_database(database, key_file) as boards:
        found = _resume_board(boards, board, charge)
        summary = found.as_seen_by(organiser()).summary()
    left = summary["questions"] - summary["used"]
    if as_json:
        told = {"status": summary["status"], "charged": charge or 0, "remaining": left}
        echo_json({"board": board, **told})
    else:
        charged = f" {charge:,} questions were charged." if charge else ""
        echo(f"{board} is {summary['status']}.{charged} {left:,} questions are left.")


def _resume_board(boards: "Boards", slug: str, charge: int | None) -> "Board":
    try:
        board = open_board(boards, slug)
        if charge is not None or board.row().status != "restored":
            board.amendments.resume(organiser(), charge)
            return board
    except StaleCopy as error:
        if charge is not None:
            return boards.adopt_old_copy(slug, charge)
        least = f", at least {error.missing:,}"
    else:
        least = ""
    raise InvalidSetting(
        f"{slug} comes from a copy. Say with --charge N how many questions may have been answered "
        f"since the copy was made{least}; they are taken off the budget."
    )
