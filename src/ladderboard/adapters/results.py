"""Pass or fail of test cases: a JSON object of ids, or a JUnit XML file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

import numpy as np

from ladderboard.adapters._scores import LogProblems, Scores, check_log_file, to_score
from ladderboard.errors import InvalidPredictions

if TYPE_CHECKING:
    from pathlib import Path

_NOT_PASSED = frozenset({"failure", "error", "skipped"})


def read_results(path: Path | str) -> Scores:
    """Return the scores in a JSON object that maps each case to pass or fail.

    A value is true or false, a number in [0, 1], or a list of them: several runs of one case, whose
    mean counts.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "results.json"
    ...     _ = path.write_text('{"a": true, "b": [1, 0]}')
    ...     read_results(path).values.tolist()
    [1.0, 0.5]
    """
    path = check_log_file(path, "results", "a JSON object of ids", ["*.json"])
    try:
        content = json.loads(path.read_bytes(), object_pairs_hook=_refuse_repeated)
    except (ValueError, RecursionError) as error:
        option = {".xml": "--junit", ".eval": "--inspect"}.get(path.suffix.lower())
        hint = f" Give it with {option}." if option else ""
        raise InvalidPredictions(f"{path} is not a JSON object of ids: {error}.{hint}") from None
    if not isinstance(content, dict):
        raise InvalidPredictions(f'{path} must hold an object, as in {{"case-1": true}}.')
    return _make_scores(
        {case: runs if isinstance(runs, list) else [runs] for case, runs in content.items()},
        path,
        "pass",
    )


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("an id occurs twice")
    return content


def read_junit(path: Path | str) -> Scores:
    """Return the scores in a JUnit XML file: 1 for a test case that passed, else 0.

    A case that was skipped did not pass. An id is the class name and the name of a test case, with
    a dot between them; if it occurs several times, the mean counts.
    """
    path = check_log_file(path, "a JUnit file", "as pytest --junit-xml writes it", ["*.xml"])
    reader = _JunitReader()
    try:
        reader.read(path)
    except expat.ExpatError as error:
        raise InvalidPredictions(f"{path} is not XML: {error}.") from None
    return _make_scores(reader.runs, path, "pass")


class _JunitReader:
    """Collects the runs of every test case. Document types, which can expand, are refused."""

    def __init__(self) -> None:
        self.runs: dict[str, list[Any]] = {}
        self._case = ""

    def read(self, path: Path) -> None:
        """Read a file."""
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        with path.open("rb") as file:
            parser.ParseFile(file)

    @staticmethod
    def _refuse_doctype(*_: Any) -> None:
        raise InvalidPredictions("A JUnit file with a document type is refused.")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "testcase":
            names = (attributes.get("classname"), attributes.get("name"))
            self._case = ".".join(name for name in names if name)
            self.runs.setdefault(self._case, []).append(1)
        elif self._case and tag in _NOT_PASSED:
            self.runs[self._case][-1] = 0

    def _end(self, tag: str) -> None:
        if tag == "testcase":
            self._case = ""


def _make_scores(runs: dict[str, list[Any]], path: Path, metric: str) -> Scores:
    problems = LogProblems("case")
    values = []
    for case, results in runs.items():
        scores = [to_score(result) for result in results]
        if not case:
            problems.add("id", "A case needs a name", case)
        if not scores or any(score is None or np.isnan(score) for score in scores):
            problems.add("score", "A result is true, false or a number in [0, 1]", case)
        else:
            values.append(float(np.mean([score for score in scores if score is not None])))
    problems.refuse_if_any()
    if not values:
        raise InvalidPredictions(f"{path} holds no case.")
    return Scores(tuple(runs), np.array(values), metric, dataset_size=len(values))
