"""A board's folder from the private repository of a Hugging Face competition."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["write_huggingface"]

_SETTINGS, _SOLUTION, _TEXT = "conf.json", "solution.csv", "COMPETITION_DESC.md"
_RULES = """\
# From the competition's {settings}. Two numbers it has no words for: how many questions in all,
# and for how many teams. How many the holdout can bear: ladderboard plan --n ROWS --error 0.05
title: {title}
description: |2
{description}
loss: {loss}
questions: 1000
teams: 20
registration: invited
"""


def write_huggingface(source: Path, folder: Path) -> list[Path]:
    """Write a board's rules and holdout from a competition's settings and solution.

    Nothing is written where either cannot be read.
    """
    said = _settings_of(source)
    ids, answers = _columns(said)
    rows = _solution(source / _SOLUTION, [ids, *answers, "split"])
    told = _rules(said, source)
    rules, holdout = folder / "board.yaml", folder / "holdout.csv"
    rules.write_text(told, encoding="utf-8")
    with holdout.open("w", encoding="utf-8", newline="") as file:
        written = csv.writer(file, lineterminator="\n")
        written.writerow(["id", *(["label"] if len(answers) == 1 else answers), "split"])
        written.writerows(rows)
    return [rules, holdout]


def _settings_of(source: Path) -> dict[str, Any]:
    try:
        said = json.loads((source / _SETTINGS).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(
            f"A competition's folder has {_SETTINGS} and {_SOLUTION}; {source / _SETTINGS} cannot "
            f"be read: {error.strerror}."
        ) from None
    except (RecursionError, ValueError):
        raise InvalidInput(f"{source / _SETTINGS} is no JSON.") from None
    if not isinstance(said, dict):
        raise InvalidInput(f"{source / _SETTINGS} must be a JSON object.")
    return said


def _columns(said: dict[str, Any]) -> tuple[str, list[str]]:
    """Return the column of ids, and those of answers."""
    ids = said.get("SUBMISSION_ID_COLUMN", "id")
    listed = said.get("SUBMISSION_COLUMNS", "id,pred")
    named = listed.split(",") if isinstance(listed, str) else listed
    if not isinstance(ids, str) or not isinstance(named, list):
        raise InvalidInput(f"{_SETTINGS} must name the columns: SUBMISSION_COLUMNS: 'id,pred'.")
    answers = [str(each).strip() for each in named if str(each).strip() != ids]
    if not answers:
        raise InvalidInput(f"SUBMISSION_COLUMNS of {_SETTINGS} names no column of answers.")
    return ids, answers


def _solution(path: Path, columns: list[str]) -> list[list[str]]:
    """Return the rows of a solution file, these columns of them."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file)
            missing = [each for each in columns if each not in (table.fieldnames or ())]
            if missing:
                raise InvalidInput(
                    f"{path} has no column {_settings.shown(missing[0])}; it must have "
                    f"{', '.join(map(_settings.shown, columns))}."
                )
            return [[row[each] or "" for each in columns] for row in table]
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise InvalidInput(f"{path} is no table of text in UTF-8, with commas.") from None


def _rules(said: dict[str, Any], source: Path) -> str:
    metric = said.get("EVAL_METRIC", "")
    if not isinstance(metric, str) or ":" in metric:  # which would be imported, and run
        raise InvalidInput(
            f"EVAL_METRIC must be the name of a metric; got {_settings.shown(metric)}."
        )
    text = source / _TEXT
    told = text.read_text(encoding="utf-8-sig", errors="replace") if text.is_file() else ""
    lines = told.splitlines() or ["What is to be predicted, from what, and where the data are."]
    name = str(said.get("COMPETITION_ID") or source.resolve().name).rpartition("/")[2]
    rules = _RULES.format(
        settings=_SETTINGS,
        title=_quoted(name.replace("-", " ").replace("_", " ").capitalize()),
        description="\n".join(f"  {line}" for line in lines),
        loss=_quoted(metric.removeprefix("neg_")),
    )
    daily, selected, end = (
        said.get(each) for each in ("SUBMISSION_LIMIT", "SELECTION_LIMIT", "END_DATE")
    )
    if isinstance(daily, int):
        rules += f"window: {{questions: {daily}, days: 1}}\n"
    if isinstance(selected, int):
        rules += f"finals: {{selections: {selected}}}\n"
    if isinstance(end, str) and end:
        rules += f"end: {_quoted(f'{end} AoE' if len(end) == 10 else end)}\n"
    return rules


def _quoted(text: str) -> str:
    """Return text as YAML has it; JSON would write a letter like a rocket as two halves."""
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return json.dumps(whole, ensure_ascii=False)
