"""``ladderboard board new``, ``check`` and ``create``: from an empty folder to a board."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ladderboard._formatting import printable
from ladderboard.cli._database import (
    DEFAULT_DATABASE,
    Database,
    Folder,
    KeyFile,
    describe_created,
    open_database,
    refuse_if_lost,
)
from ladderboard.cli._options import AsJson
from ladderboard.cli._output import echo, echo_json, program_command, wrap_lines
from ladderboard.errors import Conflict, InvalidInput, InvalidSetting

_TEMPLATE = """\
# The rules of a board. Lines after # are suggestions. The reference in the documentation explains
# every key, under board.yaml; ladderboard board new DIR --example creates a complete example.
title: {title}
description: |
  What is to be predicted, from what, and where the data are. Markdown.

# What a prediction costs: a metric or a loss by name. It can never change. With score, evaluators
# submit a score for each example on behalf of teams, and the holdout has no labels.
metric: accuracy
# Classes are public, and other predictions are refused. If left out, they are those of
# sample_submission.csv if it has every label, and those of the labels otherwise. To declare them,
# write {{name: accuracy, classes: [cat, dog]}} instead of accuracy.
# display: {{name: accuracy, digits: 3}}

# If your files have other columns than id, label and prediction:
# columns: {{id: image_id, prediction: target}}
# Files for participants go into data/ beside this file.

# Total submissions, and the maximum number of teams. Each team's share is reserved. What shows
# with how many rows: ladderboard plan --n ROWS --submissions 1000 --teams 20
submissions: 1000
teams: 20
# How many teams may secretly be one attacker's, and how much such an attacker may gain: open
# shows finer differences, strict coarser ones.
# accounts: 2
# protection: balanced
# window: {{submissions: 5, days: 1}}

# Times need a zone: an offset, Z, or AoE, the end of the day anywhere on earth.
# start: 2027-01-01T09:00:00+01:00
# end: 2027-01-31 AoE

# Who can register teams: open (everybody), invited (with an invitation) or organiser.
registration: invited

# Who sees the standings: public, hidden, anonymous or frozen.
visibility: public

# Scored at the start, as submissions; or a loss that is known from elsewhere.
# baselines:
# - {{name: The last letter, file: baselines/last.csv}}
# - {{name: Guessing, value: 0.5, source: a coin}}

# How many submissions a team selects for the final ranking, which needs a private split.
# finals: {{selections: 2}}
"""


_EXAMPLE_ROWS = (3_000,)


def new(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to create.")],
    *,
    example: Annotated[
        bool,
        typer.Option("--example", help="Fill it with an example that is ready to serve."),
    ] = False,
    huggingface: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Fill it from the private repository of a Hugging Face competition.",
        ),
    ] = None,
    kaggle: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Fill it from a folder with solution.csv and sample_submission.csv.",
        ),
    ] = None,
    codabench: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Fill it from the unpacked bundle of a Codabench competition.",
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The metric, with --kaggle; with --codabench, if its leaderboard names none.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a board's folder: a board.yaml to fill in, an example, or an imported competition.

    The example has rules, random new labels, training data and a script that takes part. From a
    Hugging Face competition come labels, metric, limits and text; from Kaggle's files labels, split
    and columns; from a Codabench bundle labels, metrics, columns and limits.
    """
    from ladderboard.board import (  # noqa: PLC0415
        describe_sizes,
        import_codabench,
        read_folder,
        read_rules,
    )

    imported = [path for path in (huggingface, kaggle, codabench) if path is not None]
    if example + len(imported) > 1:
        raise InvalidSetting(
            "Give one of --example, --huggingface FOLDER, --kaggle FOLDER and --codabench FOLDER."
        )
    if (kaggle is None) != (metric is None) and codabench is None:
        raise InvalidSetting("--kaggle FOLDER needs --metric NAME, and --metric is for it only.")
    try:
        folder.mkdir()
        if codabench is not None:
            files, guessed = import_codabench(codabench, folder, metric)
        else:
            files, guessed = _write_files(folder, huggingface, kaggle, metric, example=example)
    except InvalidInput:
        folder.rmdir()
        raise
    except FileExistsError:
        raise InvalidSetting(f"{folder} exists already; nothing was changed.") from None
    except OSError as error:
        raise InvalidSetting(f"{folder} cannot be created: {error.strerror}.") from None
    if as_json:
        written = {"folder": str(folder), "files": [str(file) for file in files]}
        echo_json({**written, **({"guessed": guessed} if guessed else {})})
        return
    quoted = printable(shlex.quote(str(folder)))
    if example:
        echo(
            f"{printable(folder)} is an example board with random labels, new in every folder:",
            "  board.yaml   the rules, and holdout.csv the labels, for the organiser",
            "  data         training data, and a script that takes part",
            *wrap_lines(describe_sizes(read_folder(folder).rules, _EXAMPLE_ROWS), indent=""),
            "Serve it, and follow the steps that this prints:",
            f"  {program_command()} serve {quoted}",
        )
        return
    if imported:
        echo(
            *([printable(guessed)] if guessed else []),
            f"{printable(folder)} has the rules and labels of {printable(imported[0])}. Set "
            "submissions and teams in board.yaml, then:",
            f"  {program_command()} board check {quoted}",
        )
        return
    echo(
        f"{printable(files[0])} is created. Fill it in, and put beside it",
        "  holdout.csv            the labels, with the columns id and label, and if needed split",
        "                         (public, private or ignored), group and weight",
        "  sample_submission.csv  an example of a submission; optional",
        *wrap_lines(
            describe_sizes(read_rules(files[0].read_text(encoding="utf-8"), slug="board")),
            indent="",
        ),
        "Then:",
        f"  {program_command()} board check {quoted}",
    )


def _write_files(
    folder: Path,
    huggingface: Path | None,
    kaggle: Path | None,
    metric: str | None,
    *,
    example: bool,
) -> tuple[list[Path], str]:
    """Fill a new folder; return its files, and a sentence that says what was guessed."""
    from ladderboard.board import (  # noqa: PLC0415
        import_huggingface,
        import_kaggle,
        write_example_board,
    )

    if huggingface is not None:
        return import_huggingface(huggingface, folder), ""
    if kaggle is not None and metric is not None:
        return import_kaggle(kaggle, folder, metric)
    return write_example_board(folder) if example else [_write_template(folder)], ""


def _write_template(folder: Path) -> Path:
    """Write a board.yaml to fill in."""
    rules = folder / "board.yaml"
    title = folder.name.replace("-", " ").replace("_", " ").capitalize()
    rules.write_text(_TEMPLATE.format(title=_quote_yaml(title)), encoding="utf-8")
    return rules


def _quote_yaml(title: str) -> str:
    """Return a folder's name as a quoted YAML string."""
    plain = "".join(char for char in title if char.isprintable())
    return "'" + plain.replace("'", "''") + "'"


def check(folder: Folder, *, as_json: AsJson = False) -> None:
    """Check a board's folder before publishing it.

    Reports whether everything can be scored, what the certificate will say, what an attacker could
    gain, and what to reconsider. It takes some seconds and changes nothing. The exit code is 1 if
    something must be fixed.
    """
    from ladderboard.board import check_board  # noqa: PLC0415 - keeps --help fast

    report = check_board(folder)
    if as_json:
        echo_json(report.describe())
    else:
        echo(*report.lines)
        if report.ok:
            quoted = printable(shlex.quote(str(folder)))
            echo("Next:", f"  {program_command()} serve {quoted}")
    if not report.ok:
        raise typer.Exit(1)


def create(
    folder: Folder,
    *,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Create a board in the database, and score its baselines.

    The database is created if needed. From then on the board is committed to its labels, noise key
    and rules. Use board amend to change the rules that may change.
    """
    from ladderboard.board import read_folder  # noqa: PLC0415 - keeps --help fast

    content = read_folder(folder)
    slug = content.rules.slug
    refuse_if_lost(database)
    with open_database(database, key_file, create=True) as boards:
        if slug in boards.list():
            raise Conflict(
                f"The board {slug!r} exists already in this database; nothing was changed. To "
                f"change its rules: ladderboard board amend {slug}"
            )
        board = boards.create(content)
        if as_json:
            opening = board.book.opening
            echo_json({"board": slug, "n": opening["n"], "commitment": opening["commitment"]})
        else:
            echo(*describe_created(content, board))
