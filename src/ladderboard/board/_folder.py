"""A board's folder: reading and checking it, the example board, imports from elsewhere."""

from __future__ import annotations

import csv
import hashlib
import json
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard._formatting import format_count
from ladderboard.board._access import parse_people
from ladderboard.board._data import check_data_files
from ladderboard.board._rules import (
    MAX_TERMS,
    RuleProblems,
    Rules,
    TermsRules,
    read_declared_columns,
    read_long_text,
    read_rules,
    read_yaml,
)
from ladderboard.errors import InvalidInput, InvalidLabels, InvalidRules
from ladderboard.files import (
    DeclaredColumns,
    HoldoutTable,
    Limits,
    Roster,
    format_names,
    guess_columns,
    read_holdout,
    read_predictions,
)
from ladderboard.holdout import Scorer, describe_sample, is_zero_one, sample_digest
from ladderboard.ledger import digest
from ladderboard.losses import metric as metric_of
from ladderboard.mechanisms import Setup

if TYPE_CHECKING:
    from numpy.typing import NDArray


SPLITS = ("public", "private", "ignored")
PLACEHOLDER = "What is to be predicted, from what, and where the data are."
"""The start of a description that was not replaced yet."""
_RULES_FILE = "board.yaml"
_DATA = "data"
_SUFFIXES = ("csv", "tsv", "txt", "parquet", "pq", "arrow", "feather", "jsonl", "ndjson")
_COMPRESSIONS = ("", ".gz", ".zip")
_TRAIN, _PUBLIC, _PRIVATE = 1_000, 3_000, 1_000
_FEATURES = "temperature,strength,waited"

_EXAMPLE_RULES = """\
# An example board: which guests ask for a second cup of coffee? All data are synthetic.
title: A second cup
description: |
  Will the guest who got this cup ask for another one? For each cup you know its temperature on
  arrival (degrees), its strength (grams of coffee per litre) and how long the guest had waited for
  it (minutes).

  Learn from `train.csv`, predict 0 or 1 for every cup in `test.csv`, and send a table with the
  columns `id` and `prediction`. `example_submission.py` does so in ten lines, and can be beaten.

  An unchanged score means that no improvement was measured.

loss: {name: accuracy, classes: [0, 1]}
display: {name: accuracy, digits: 3}

# Five teams with twenty submissions each, and one for the baseline.
submissions: 101
teams: 5
registration: invited
ladder: team

baselines:
- {name: Short wait, file: baselines/waited.csv}
- {name: Guessing, value: 0.5, source: a coin}

finals: {selections: 2}

# This is a demonstration: the Play page shows what attacks gain.
play: true
"""

_EXAMPLE_README = """\
# A second cup

- `train.csv`: 1,000 cups with their `label`: 1 where the guest asked for another one.
- `test.csv`: 4,000 cups with an `id` and no label.
- `example_submission.py`: learns from the first, predicts the second, writes `predictions.csv`. It
  needs NumPy. It draws a straight line; but coffee can be too hot and too cold.

Send a table with a row for every `id` of `test.csv`:

```text
id,prediction
cup-0000,1
cup-0001,0
```

All data are synthetic.
"""

_EXAMPLE_SCRIPT = '''\
"""Predict second cups by a straight line, and write predictions.csv to the current folder."""

from pathlib import Path

import numpy as np

here = Path(__file__).parent
train = np.loadtxt(here / "train.csv", delimiter=",", skiprows=1)
rows = [line.split(",") for line in (here / "test.csv").read_text().splitlines()[1:]]
test = np.array([row[1:] for row in rows], dtype=float)


def features(cups):
    """The columns of each cup, and a constant. Add (cups - 62) ** 2 to improve the model."""
    return np.column_stack([np.ones(len(cups)), cups])


line, *_ = np.linalg.lstsq(features(train[:, 1:]), train[:, 0], rcond=None)
guesses = (features(test) @ line > 0.5).astype(int)

lines = [f"{row[0]},{guess}" for row, guess in zip(rows, guesses, strict=True)]
Path("predictions.csv").write_text("\\n".join(["id,prediction", *lines]) + "\\n")
print(f"predictions.csv holds {len(lines)} predictions.")
'''
_SETTINGS, _SOLUTION, _DESCRIPTION = "conf.json", "solution.csv", "COMPETITION_DESC.md"
_HUGGINGFACE_RULES = """\
# From the competition's {settings}. Set two numbers yourself: submissions (of all teams together)
# and teams. To see what gains show: ladderboard plan --n ROWS --submissions 1000
title: {title}
description: |2
{description}
metric: {loss}
submissions: 1000
teams: 20
registration: invited
"""
_SAMPLE = "sample_submission.csv"
_COMPETITION = "competition.yaml"
_KAGGLE_RULES = """\
# {sentence}
# Set two numbers yourself: submissions (of all teams together) and teams.
title: {title}
metric: {metric}
submissions: 1000
teams: 20
registration: invited
"""


@dataclass(frozen=True, eq=False)
class BoardFolder:
    """The contents of a board's folder, with the labels; for the organiser only.

    ``table`` has every row, its ``split`` spelled public, private or ignored (None: all are
    public). ``sample`` is the sample submission, if any. ``baselines`` has the files of baselines
    by name, in the order of the rules, ``people`` the list of those who may register, ``data`` the
    files for participants by name. ``derived`` is whether the classes were taken from the labels or
    the sample submission instead of the rules.
    """

    path: Path
    rules: Rules
    table: HoldoutTable
    sample: Path | None
    baselines: dict[str, Path]
    derived: bool = False
    people: tuple[str, ...] = ()
    data: dict[str, Path] = field(default_factory=dict)

    @property
    def public(self) -> NDArray[np.bool_]:
        """The mask of the rows that the leaderboard uses."""
        if self.table.split is None:
            return np.ones(len(self.table), np.bool_)
        return np.asarray(self.table.split == "public")

    @property
    def private(self) -> NDArray[np.bool_]:
        """The mask of the rows that the final ranking uses."""
        if self.table.split is None:
            return np.zeros(len(self.table), np.bool_)
        return np.asarray(self.table.split == "private")

    def part(self, which: Literal["public", "private"]) -> HoldoutTable:
        """Return the rows of one split, in their order."""
        return self.table.select_rows(self.public if which == "public" else self.private)

    @property
    def effective_n(self) -> int:
        """The effective number of independent public examples: groups, fewer with weights."""
        return int(self.part("public").grouping.effective_n)

    @property
    def zero_one(self) -> bool:
        """Whether every public risk is a multiple of 1/n."""
        return is_zero_one(self.rules.loss, self.part("public").grouping)

    def digest(self) -> bytes:
        """Return a hash of everything that decides the board's answers.

        Keep it secret: it covers the labels without a salt, so it can confirm guesses.
        """
        baselines = {name: hashlib.sha256(path.read_bytes()).digest()
                 for name, path in self.baselines.items()}  # fmt: skip
        sample = sample_digest(describe_sample(self.table))
        return digest(
            "board", {"rules": self.rules.describe(), "sample": sample, "asked": baselines}
        )

    def __repr__(self) -> str:
        return f"BoardFolder({str(self.path)!r}, {self.table!r})"


def read_folder(path: Path | str) -> BoardFolder:
    """Read a board's folder.

    Raises
    ------
    InvalidRules
        ``problems`` lists everything that is wrong in the rules and in the files.
    """
    folder = Path(path)
    problems = RuleProblems()
    if not folder.is_dir():
        problems.add("not_a_folder", f"{str(path)!r} must be a folder with {_RULES_FILE} in it.")
        problems.refuse_if_any()
    rules, columns = _read_rules_file(folder, problems)
    holdout = _find_holdout(folder, problems)
    table = None if holdout is None else read_table(folder / holdout, rules, problems, columns)
    sample = _find_sample(folder, problems)
    baselines: dict[str, Path] = {}
    for baseline in () if rules is None else rules.baselines:
        if baseline.file is not None and _check_inside(folder, baseline.file, problems):
            baselines[baseline.name] = folder / baseline.file
    rules = _read_terms(folder, rules, problems)
    people = _read_people(folder, rules, problems)
    data = _find_data_files(folder, sample, problems)
    rules, table = problems.require(rules), problems.require(table)
    sample_values = _read_sample_values(sample, rules, table)
    loss = rules.loss.with_inferred_classes(table.labels, sample_values)
    metrics = [
        replace(metric, loss=metric.loss.with_inferred_classes(table.labels, sample_values))
        for metric in rules.metrics
    ]
    derived, rules = loss != rules.loss, replace(rules, loss=loss, metrics=tuple(metrics))
    _check_metrics(table, rules, problems)
    board_folder = BoardFolder(folder, rules, table, sample, baselines, derived, people, data)
    _check_mechanism(board_folder, problems)
    problems.refuse_if_any()
    return board_folder


def _read_rules_file(
    folder: Path, problems: RuleProblems
) -> tuple[Rules | None, DeclaredColumns | None]:
    """Return the rules and the names of columns, which may be right if other rules are wrong."""
    if not _check_inside(folder, _RULES_FILE, problems):
        return None, None
    try:
        text = (folder / _RULES_FILE).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problems.add("encoding", f"{_RULES_FILE} must be UTF-8; it is not at byte {error.start}.")
        return None, None
    except OSError as error:
        problems.add(
            "not_a_file", f"{_RULES_FILE} cannot be read: {error.strerror}.", key=_RULES_FILE
        )
        return None, None
    try:
        rules = read_rules(text, where=_RULES_FILE, slug=folder.resolve().name)
    except InvalidRules as error:
        problems.entries += [(0, problem) for problem in error.problems]
        return None, read_declared_columns(text)
    return rules, rules.columns


def _read_terms(folder: Path, rules: Rules | None, problems: RuleProblems) -> Rules | None:
    """Return the rules with the text of the terms, if they are in a file."""
    name = None if rules is None or rules.terms is None else rules.terms.file
    if rules is None or name is None or not _check_inside(folder, name, problems):
        return rules
    try:
        text = (folder / name).read_text("utf-8-sig")
        if not text.strip():
            raise InvalidRules("it is empty.")
        text = read_long_text("the text", text, max_length=MAX_TERMS)
    except (OSError, UnicodeDecodeError, InvalidInput) as error:
        problems.add("bad_value", f"{name}: {error}", key=name)
        return rules
    return replace(rules, terms=TermsRules(text))


def _read_people(folder: Path, rules: Rules | None, problems: RuleProblems) -> tuple[str, ...]:
    """Return the lines of the list of people who may register by signing in."""
    name = None if rules is None or rules.sign_in is None else rules.sign_in.people
    if name is None or not _check_inside(folder, name, problems):
        return ()
    try:
        lines = (folder / name).read_text("utf-8-sig").splitlines()
        parse_people(lines)
    except (OSError, UnicodeDecodeError, InvalidInput) as error:
        problems.add("bad_value", f"{name}: {error}", key=name)
        return ()
    return tuple(lines)


def read_data_files(path: Path | str) -> dict[str, Path]:
    """Return the files for participants in a board's folder, by name.

    Raises
    ------
    InvalidRules
        ``problems`` lists the files that cannot be offered.
    """
    folder, problems = Path(path), RuleProblems()
    paths = _find_data_files(folder, _find_sample(folder, problems), problems)
    problems.refuse_if_any()
    return paths


def _find_data_files(folder: Path, sample: Path | None, problems: RuleProblems) -> dict[str, Path]:
    """Return the sample and the files in ``data``; note those that cannot be offered."""
    data = folder / _DATA
    names = sorted(path.name for path in data.iterdir()) if data.is_dir() else []
    names = [name for name in names if not name.startswith(".")]
    paths = {
        name: data / name for name in names if _check_inside(folder, f"{_DATA}/{name}", problems)
    }
    if sample is not None:
        paths.setdefault(sample.name, sample)
    try:
        check_data_files(paths)
    except InvalidInput as error:
        problems.add("bad_value", f"{_DATA}/: {error}", key=_DATA)
    return paths


def is_table(path: Path) -> bool:
    """Return whether a file is a table by its name, packed or not."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    return bool(suffixes) and suffixes[-1].removeprefix(".") in _SUFFIXES


def _find_holdout(folder: Path, problems: RuleProblems) -> str | None:
    """Return the name of the only holdout file; note a problem if there is none or several."""
    names = [f"holdout.{suffix}{packed}" for suffix in _SUFFIXES for packed in _COMPRESSIONS]
    present = [name for name in names if (folder / name).exists() or (folder / name).is_symlink()]
    if len(present) == 1:
        return present[0] if _check_inside(folder, present[0], problems) else None
    if present:
        problems.add(
            "several_files", f"expected exactly one holdout file; found {', '.join(present)}."
        )
    else:
        message = (
            "there must be a holdout.csv with the columns id and label, or the same as .parquet."
        )
        problems.add("missing_file", message, key="holdout.csv")
    return None


def _find_sample(folder: Path, problems: RuleProblems) -> Path | None:
    names = [
        f"sample_submission.{suffix}{packed}" for suffix in _SUFFIXES for packed in _COMPRESSIONS
    ]
    for name in names:
        if (folder / name).exists() or (folder / name).is_symlink():
            return folder / name if _check_inside(folder, name, problems) else None
    return None


def _read_sample_values(sample: Path | None, rules: Rules, table: HoldoutTable) -> Any:
    """Return the sample's predictions; None if it cannot be read, which a check reports."""
    if sample is None or not rules.loss.uses_labels:
        return None
    try:
        roster = Roster.of(table, columns=rules.columns)
        return read_predictions(sample, roster, rules.loss, limits=rules.files.limits)
    except InvalidInput:
        return None


def _check_inside(folder: Path, name: str, problems: RuleProblems) -> bool:
    """Return whether a file is in the folder; note one that is missing or linked outside."""
    path = folder / name
    try:
        real = path.resolve()
    except (OSError, RuntimeError):  # circular links
        real = Path("/")
    if not real.is_relative_to(folder.resolve()):
        problems.add(
            "outside", f"{name} must be inside the folder; its link leads out of it.", key=name
        )
    elif not real.is_file():
        problems.add("missing_file", f"{name} is missing from the folder.", key=name)
    else:
        return True
    return False


def _check_mechanism(folder: BoardFolder, problems: RuleProblems) -> None:
    """Note a mechanism that does not work with this holdout."""
    mechanism = folder.rules.mechanism_for(folder.effective_n)
    grouping = folder.part("public").grouping
    is_mean = folder.rules.loss.is_mean
    if mechanism.needs == "losses" and (grouping.weight is not None or not is_mean):
        message = f"{mechanism.name} compares losses one by one; it takes neither weights nor "
        message += "statistics such as AUC."
        problems.add("bad_value", message, key="mechanism")
    if not is_mean and (grouping.weight is not None or grouping.n != grouping.examples):
        message = f"{folder.rules.loss.name} is computed from all examples together; it takes no "
        message += "groups and no weights. Leave out those columns, or take a mean over examples, "
        problems.add("bad_value", f"{message}such as accuracy.", key="loss")
    try:
        mechanism.check(Setup(grouping.n, 0.0, 1.0))
    except ValueError as error:
        problems.add("bad_value", str(error), key="mechanism")


def _check_metrics(table: HoldoutTable, rules: Rules, problems: RuleProblems) -> None:
    """Note further metrics that do not work with the labels or the submissions."""
    splits = {None} if table.split is None else {"public", "private"} & set(table.split.tolist())
    for metric in rules.metrics:
        try:
            for split in sorted(splits, key=str):
                rows = None if split is None else split_mask(table, split)
                Scorer(table, metric.loss, rows=rows, read_by=rules.loss)
        except InvalidInput as error:
            problems.add("bad_value", f"metrics, {metric.display.name}: {error}", key="metrics")
    if rules.answers > 1 and rules.mechanism is not None and rules.mechanism.needs == "losses":
        message = f"{rules.mechanism.name} compares losses one by one; show metrics at the close"
        problems.add("bad_value", f"{message}, not live.", key="metrics")


def read_table(
    path: Path, rules: Rules | None, problems: RuleProblems, columns: DeclaredColumns | None
) -> HoldoutTable | None:
    """Return the holdout's table with normalized splits; note everything that is wrong."""
    name = path.name
    try:
        table = read_holdout(
            path,
            kind=None if rules is None else rules.loss.label_kind,
            limits=Limits(bytes=2**40),
            labelled=rules is None or rules.loss.uses_labels,
            columns=columns,
            empty=rules is not None and rules.loss.takes_empty,
        )
    except InvalidInput as error:
        for problem in error.problems or ():
            advice = _suggest_classes(path, rules) if problem.code == "not_a_number" else ""
            message = f"{name}: {problem.message}{advice}"
            problems.entries.append((0, replace(problem, message=message)))
        if not error.problems:
            problems.add("labels", f"{name}: {error}", key=name)
        return None
    if table.ids is None:
        problems.add("missing_column", f"{name}: a board's holdout needs a column id.", key="id")
    table = _normalize_splits(table, name, problems)
    _check_groups(table, name, problems)
    if rules is not None:
        _check_rules(table, rules, name, problems)
    return table


def _suggest_classes(path: Path, rules: Rules | None) -> str:
    """Return how to declare labels that are two words, if the loss has classes."""
    if rules is None or not hasattr(rules.loss, "classes"):
        return ""
    try:
        table = read_holdout(path, kind="text", limits=Limits(bytes=2**40), columns=rules.columns)
    except InvalidInput:
        return ""
    classes = sorted(set(np.ravel(table.labels).tolist()))
    if len(classes) != 2:
        return ""
    name = _metric_name(rules.loss.name) or rules.loss.name
    return (
        f" To predict words, declare them: metric: {{name: {name}, classes: "
        f"[{', '.join(map(_quote_yaml, classes))}]}}, the positive class last."
    )


def split_mask(table: HoldoutTable, split: str) -> NDArray[np.bool_] | None:
    """Return the mask of a split's rows; None if there is no split and all are public."""
    return None if table.split is None else np.asarray(table.split == split)


def make_scorers(table: HoldoutTable, rules: Rules, split: str) -> tuple[Scorer, ...]:
    """Return the scorers of a split, one for each metric; the first reads submissions."""
    rows = split_mask(table, split)
    first = Scorer(table, rules.loss, rules.files.limits, rows=rows, columns=rules.columns)
    return (
        first,
        *(
            Scorer(table, metric.loss, rules.files.limits, rows=rows, read_by=rules.loss)
            for metric in rules.metrics
        ),
    )


def _normalize_splits(table: HoldoutTable, name: str, problems: RuleProblems) -> HoldoutTable:
    """Return the table with lower-case splits: Public and PUBLIC become public."""
    if table.split is None:
        return table
    spellings, spelling_of_row = np.unique(table.split, return_inverse=True)
    normalized = [str(spelling).strip().casefold() for spelling in spellings.tolist()]
    other = [
        original
        for original, spelling in zip(spellings.tolist(), normalized, strict=True)
        if spelling not in SPLITS
    ]
    if other:
        message = f"{name}: split must be public, private or ignored; got {format_names(other)}."
        problems.add("unknown_split", message, key="split")
    elif "public" not in normalized:
        problems.add("unknown_split", f"{name}: no row is public, so nothing could be scored.",
                  key="split")  # fmt: skip
    return replace(table, split=np.array(normalized, dtype=table.split.dtype)[spelling_of_row])


def _check_groups(table: HoldoutTable, name: str, problems: RuleProblems) -> None:
    """Note groups that lie in several splits: answers about one split would reveal the other."""
    if table.group is None or table.split is None:
        return
    groups, of = np.unique(table.group, return_inverse=True)
    _, first = np.unique(of, return_index=True)
    split_groups = np.unique(of[table.split != table.split[first][of]])
    if len(split_groups):
        names = format_names(groups[split_groups].tolist())
        message = f"{format_count(len(split_groups), 'group')} in two splits: {names}"
        problems.add(
            "torn_group", f"{name}: a group must lie in one split; {message}.", key="group"
        )


def _check_rules(table: HoldoutTable, rules: Rules, name: str, problems: RuleProblems) -> None:
    """Note what the rules need and the holdout lacks."""
    try:
        rules.loss.read_labels(table.labels)
    except InvalidLabels as error:
        problems.add("labels", f"{name}: {error}", key="label")
    except InvalidInput as error:  # a custom loss
        problems.add("labels", f"{name}: the loss refused the labels: {error}", key="label")
    private = table.split is not None and bool((table.split == "private").any())
    if private and not rules.loss.is_mean:
        _check_splits(table, rules, name, problems)
    if private:
        return
    if table.split is not None and not np.isin(table.split, SPLITS).all():
        return  # an unknown split is a problem of its own, and may be the private one
    end = f"{name} has none. Add a column split with public and private."
    if rules.ladder == "board":
        message = "ladder: board needs a private split to rank by, because it shows only records"
        problems.add("no_private", f"{message}; {end}", key="ladder")
    if rules.finals is not None:
        problems.add("no_private", f"finals need a private split to rank by; {end}", key="finals")
    if rules.prizes:
        problems.add("no_private", f"prizes need a private split to rank by; {end}", key="prizes")


def _check_splits(table: HoldoutTable, rules: Rules, name: str, problems: RuleProblems) -> None:
    """Note a split of which a statistic is not defined: one without positives, for AUC."""
    for split in ("public", "private"):
        try:
            rules.loss.read_labels(table.labels[np.asarray(table.split == split)])
        except InvalidLabels as error:
            problems.add("labels", f"{name}, the {split} rows: {error}", key="split")


def write_example_board(folder: Path, rng: np.random.Generator | None = None) -> list[Path]:
    """Write an example board into a folder, and return the files.

    The labels are new: they are drawn with ``rng``, by default seeded by the operating system.
    """
    rng = np.random.default_rng() if rng is None else rng
    learned, holdout = _draw_cups(rng, _TRAIN), _draw_cups(rng, _PUBLIC + _PRIVATE)
    ids = [f"cup-{number:04d}" for number in range(_PUBLIC + _PRIVATE)]
    # An id must not reveal its split.
    split = rng.permutation(["public"] * _PUBLIC + ["private"] * _PRIVATE).tolist()
    labels, known = holdout.ordered_again.tolist(), holdout.rows
    little = (holdout.waited < np.median(learned.waited)).astype(int).tolist()
    files = {
        "board.yaml": _EXAMPLE_RULES,
        "holdout.csv": _format_csv("id,label,split", zip(ids, labels, split, strict=True)),
        "sample_submission.csv": _format_csv("id,prediction", ((id_, 0) for id_ in ids)),
        "baselines/waited.csv": _format_csv("id,prediction", zip(ids, little, strict=True)),
        "data/README.md": _EXAMPLE_README,
        "data/example_submission.py": _EXAMPLE_SCRIPT,
        "data/train.csv": _format_csv(
            f"label,{_FEATURES}", zip(learned.ordered_again.tolist(), learned.rows, strict=True)
        ),
        "data/test.csv": _format_csv(f"id,{_FEATURES}", zip(ids, known, strict=True)),
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    return [folder / name for name in files]


class _Cups(NamedTuple):
    """Cups of coffee, and whether each guest asked for another."""

    ordered_again: NDArray[np.int64]
    waited: NDArray[np.float64]
    rows: list[str]


def _draw_cups(rng: np.random.Generator, count: int) -> _Cups:
    hot, strong = rng.normal(64, 9, count).round(1), rng.normal(58, 10, count).round(1)
    waited = rng.gamma(3, 2, count).round(1)
    # Best at 62 degrees; stronger is better up to a point; waiting is bad.
    joy = 2.2 - ((hot - 62) / 7) ** 2 + (strong - 58) / 8 - ((strong - 58) / 14) ** 2
    joy += (6 - waited) / 4
    ordered_again = (rng.logistic(size=count) < 1.5 * joy).astype(np.int64)
    rows = [f"{a},{b},{c}" for a, b, c in zip(hot, strong, waited, strict=True)]
    return _Cups(ordered_again, waited, rows)


def _format_csv(header: str, rows: object) -> str:
    lines = [",".join(map(str, row)) for row in rows]  # type: ignore[attr-defined]
    return "\n".join([header, *lines]) + "\n"


def import_huggingface(source: Path, folder: Path) -> list[Path]:
    """Write a board's rules and holdout from a Hugging Face competition's folder.

    Nothing is written if its settings or its solution cannot be read.
    """
    settings = _read_competition_settings(source)
    ids, answers = _competition_columns(settings)
    rows = _read_solution(source / _SOLUTION, [ids, *answers, "split"])
    text = _format_rules(settings, source)
    header = ["id", "label"]
    if (ids, answers) != ("id", ["pred"]):
        text += _format_columns(DeclaredColumns((ids,), tuple(answers)))
        header = [ids, *answers]
    rules, holdout = folder / "board.yaml", folder / "holdout.csv"
    rules.write_text(text, encoding="utf-8")
    with holdout.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*header, "split"])
        writer.writerows(rows)
    return [rules, holdout]


def import_kaggle(source: Path, folder: Path, metric: str) -> tuple[list[Path], str]:
    """Write a board's rules and files from a Kaggle competition's folder.

    It has solution.csv, with a column Usage if rows are split, and sample_submission.csv, from
    which the columns are guessed. Returns the files and a sentence that says what was guessed.
    """
    loss = metric_of(metric).loss
    sample, solution = source / _SAMPLE, source / _SOLUTION
    for path in (sample, solution):
        if not path.is_file():
            raise InvalidInput(f"A Kaggle competition's folder needs {path.name}.")
    form = loss.columns(kind=loss.label_kind or "text", width=2).form
    columns, sentence = guess_columns(sample, width=1 if form == "one" else None)
    rules = _KAGGLE_RULES.format(
        title=_quote_yaml(source.resolve().name.replace("-", " ").replace("_", " ").capitalize()),
        metric=_quote_yaml(metric),
        sentence=" ".join(sentence.split()),
    )
    files = [folder / "board.yaml", folder / "holdout.csv", folder / _SAMPLE]
    files[0].write_text(rules + _format_columns(columns), encoding="utf-8")
    files[1].write_bytes(solution.read_bytes())
    files[2].write_bytes(sample.read_bytes())
    return files, sentence


def import_codabench(source: Path, folder: Path, metric: str | None) -> tuple[list[Path], str]:
    """Write a board's rules and labels from the bundle of a Codabench competition.

    It has competition.yaml and the reference data of its first task, a folder or a zip file with
    one table. Columns of the leaderboard that are known metrics become those of the board, and
    ``metric`` names the first one. Returns the files and a sentence that says what was guessed.
    """
    settings = _read_competition_yaml(source / _COMPETITION)
    task, phase = (_first_mapping(settings.get(key)) for key in ("tasks", "phases"))
    metrics = [metric_of(metric).name] if metric is not None else []
    board = _first_mapping(settings.get("leaderboards") or settings.get("leaderboard"))
    metrics += [name for name in _leaderboard_metrics(board) if name not in metrics]
    if not metrics:
        raise InvalidInput(
            f"No column of the leaderboard in {_COMPETITION} is the name of a metric; give one "
            "with --metric NAME."
        )
    name, body = _read_reference_data(source, task.get("reference_data"))
    columns, sentence = None, f"Labels are the lines of {name}, with ids from 0."
    if b"," in body.partition(b"\n")[0]:
        loss = metric_of(metrics[0]).loss
        form = loss.columns(kind=loss.label_kind or "text", width=2).form
        columns, sentence = guess_columns(body, width=1 if form == "one" else None)
        sentence = sentence.replace("the sample submission", name).replace("predictions", "labels")
    else:
        lines = body.decode("utf-8-sig").split("\n")
        labels = [line.strip() for line in lines if line.strip()]
        body = "\n".join(
            ["id,label", *(f"{number},{label}" for number, label in enumerate(labels)), ""]
        ).encode()
    rules = _KAGGLE_RULES.format(
        title=_quote_yaml(str(settings.get("title") or source.resolve().name)),
        metric=_quote_yaml(metrics[0]),
        sentence=" ".join(sentence.split()),
    )
    if metrics[1:]:
        rules += f"metrics: [{', '.join(map(_quote_yaml, metrics[1:]))}]\n"
    daily, total = (phase.get(key) for key in ("max_submissions_per_day", "max_submissions"))
    if isinstance(daily, int):
        rules += f"window: {{submissions: {daily}, days: 1}}\n"
    if isinstance(total, int):
        rules += f"per_team: {min(total, 1000)}\n"
    files = [folder / "board.yaml", folder / "holdout.csv"]
    files[0].write_text(
        rules + ("" if columns is None else _format_columns(columns)), encoding="utf-8"
    )
    files[1].write_bytes(body)
    return files, sentence


def _read_competition_yaml(path: Path) -> dict[str, Any]:
    def refuse(_code: str, sentence: str, line: int | None) -> None:
        raise InvalidInput(f"{path.name}{'' if line is None else f', line {line}'}: it {sentence}")

    try:
        settings, _ = read_yaml(path.read_text(encoding="utf-8-sig"), refuse)
    except (OSError, UnicodeError):
        raise InvalidInput(
            f"A Codabench bundle needs {_COMPETITION}; {path} cannot be read as text."
        ) from None
    if not isinstance(settings, dict):
        raise InvalidInput(f"{path.name} must hold keys with values.")
    return settings


def _first_mapping(items: Any) -> dict[str, Any]:
    """Return the first of a list of mappings, or the mapping itself; empty if there is none."""
    first = items[0] if isinstance(items, list) and items else items
    return first if isinstance(first, dict) else {}


def _leaderboard_metrics(board: dict[str, Any]) -> list[str]:
    """Return the columns of a leaderboard whose key or title is the name of a metric, in order."""
    columns = board.get("columns")
    names: dict[str, None] = {}
    for column in columns if isinstance(columns, list) else []:
        for key in ("key", "title"):
            text = column.get(key) if isinstance(column, dict) else None
            # "module:name" would be imported and run
            if isinstance(text, str) and ":" not in text and (known := _metric_name(text)):
                names[known] = None
                break
    return list(names)


def _metric_name(text: str) -> str | None:
    """Return the name of a metric of labels; None for other words, such as score."""
    try:
        known = metric_of(text)
    except InvalidInput:
        return None
    return known.name if known.loss.uses_labels else None


def _read_reference_data(source: Path, name: Any) -> tuple[str, bytes]:
    """Return the only table of a task's reference data: its name and its bytes."""
    path = source / str(name or "reference_data")
    if not path.resolve().is_relative_to(source.resolve()):
        raise InvalidInput("reference_data must be a file or folder in the bundle.")
    try:
        if path.is_dir():
            tables = {
                file.name: file
                for file in sorted(path.iterdir())
                if file.is_file() and not file.name.startswith((".", "_"))
            }
            if len(tables) == 1:
                ((file_name, file),) = tables.items()
                return file_name, file.read_bytes()
        else:
            with zipfile.ZipFile(path) as bundle:
                tables = {
                    item.filename: path
                    for item in bundle.infolist()
                    if not item.is_dir() and not Path(item.filename).name.startswith((".", "_"))
                }
                if len(tables) == 1:
                    (file_name,) = tables
                    return Path(file_name).name, bundle.read(file_name)
    except (OSError, zipfile.BadZipFile):
        raise InvalidInput(
            f"The reference data of the first task, {path}, cannot be read."
        ) from None
    listed = ", ".join(sorted(tables)[:5]) or "none"
    raise InvalidInput(f"The reference data must be one table; got {listed}. Leave one in {path}.")


def _format_columns(columns: DeclaredColumns) -> str:
    """Return declared columns as lines of a board.yaml."""
    lines = [
        f"  {key}: [{', '.join(map(_quote_yaml, names))}]"
        for key, names in columns.describe().items()
    ]
    return "\n".join(["columns:", *lines]) + "\n"


def _read_competition_settings(source: Path) -> dict[str, Any]:
    try:
        settings = json.loads((source / _SETTINGS).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(
            f"A competition's folder has {_SETTINGS} and {_SOLUTION}; {source / _SETTINGS} cannot "
            f"be read: {error.strerror}."
        ) from None
    except (RecursionError, ValueError):
        raise InvalidInput(f"{source / _SETTINGS} is not JSON.") from None
    if not isinstance(settings, dict):
        raise InvalidInput(f"{source / _SETTINGS} must be a JSON object.")
    return settings


def _competition_columns(settings: dict[str, Any]) -> tuple[str, list[str]]:
    """Return the name of the id column, and those of the answers."""
    ids = settings.get("SUBMISSION_ID_COLUMN", "id")
    listed = settings.get("SUBMISSION_COLUMNS", "id,pred")
    named = listed.split(",") if isinstance(listed, str) else listed
    if not isinstance(ids, str) or not isinstance(named, list):
        raise InvalidInput(f"{_SETTINGS} must name the columns: SUBMISSION_COLUMNS: 'id,pred'.")
    answers = [str(column).strip() for column in named if str(column).strip() != ids]
    if not answers:
        raise InvalidInput(f"SUBMISSION_COLUMNS of {_SETTINGS} names no column of answers.")
    return ids, answers


def _read_solution(path: Path, columns: list[str]) -> list[list[str]]:
    """Return these columns of all rows of a solution file."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file)
            missing = [column for column in columns if column not in (table.fieldnames or ())]
            if missing:
                raise InvalidInput(
                    f"{path} has no column {_settings.safe_repr(missing[0])}; it must have "
                    f"{', '.join(map(_settings.safe_repr, columns))}."
                )
            return [[row[column] or "" for column in columns] for row in table]
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise InvalidInput(f"{path} is not a CSV file in UTF-8.") from None


def _format_rules(settings: dict[str, Any], source: Path) -> str:
    metric = settings.get("EVAL_METRIC", "")
    if not isinstance(metric, str) or ":" in metric:  # "module:name" would be imported and run
        raise InvalidInput(
            f"EVAL_METRIC must be the name of a metric; got {_settings.safe_repr(metric)}."
        )
    text = source / _DESCRIPTION
    description = text.read_text(encoding="utf-8-sig", errors="replace") if text.is_file() else ""
    lines = description.splitlines() or [PLACEHOLDER]
    name = str(settings.get("COMPETITION_ID") or source.resolve().name).rpartition("/")[2]
    rules = _HUGGINGFACE_RULES.format(
        settings=_SETTINGS,
        title=_quote_yaml(name.replace("-", " ").replace("_", " ").capitalize()),
        description="\n".join(f"  {line}" for line in lines),
        loss=_quote_yaml(metric.removeprefix("neg_")),
    )
    daily, selected, end = (
        settings.get(key) for key in ("SUBMISSION_LIMIT", "SELECTION_LIMIT", "END_DATE")
    )
    if isinstance(daily, int):
        rules += f"window: {{submissions: {daily}, days: 1}}\n"
    if isinstance(selected, int):
        rules += f"finals: {{selections: {selected}}}\n"
    if isinstance(end, str) and end:
        rules += f"end: {_quote_yaml(f'{end} AoE' if len(end) == 10 else end)}\n"
    return rules


def _quote_yaml(text: str) -> str:
    """Return text quoted for YAML; emoji stay single characters, not JSON surrogate pairs."""
    valid = text.encode("utf-8", "replace").decode("utf-8")
    return json.dumps(valid, ensure_ascii=False)
