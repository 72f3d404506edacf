"""lm-evaluation-harness: the scores of a run with ``--log_samples``, from its samples file.

The harness need not be installed. A line of ``samples_TASK_DATE.jsonl`` holds the result for one
document under one filter.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard import _settings
from ladderboard.adapters._scores import LogProblems, Scores, check_log_file, to_score
from ladderboard.errors import InvalidPredictions, InvalidSetting, NoPerExampleLoss
from ladderboard.files import format_names

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+)\.jsonl")
_KEYS = ("doc_id", "doc_hash", "target_hash", "filter", "metrics")
_MEANS = ("mean", "nanmean")
# Metrics that are not means of values in [0, 1], although a file may contain such values.
_NOT_MEANS = (
    "bits_per_byte", "bleu", "brier_score", "byte_perplexity", "chrf", "matthews_corrcoef", "mcc",
    "perplexity", "ter", "wer", "word_perplexity",
)  # fmt: skip


def read_samples(path: Path | str, metric: str = "acc", filter: str | None = None) -> Scores:  # noqa: A002 - the harness's word
    """Return the score of every document in a samples file.

    An example's id is its ``doc_hash`` and ``target_hash``, joined by a hyphen, so it depends on
    the document and its answer but not on prompt or order. If the harness's ``results_DATE.json``
    is in the same folder, model and size are read from it, and the file is checked against it.

    Parameters
    ----------
    path
        ``samples_TASK_DATE.jsonl``, as ``--log_samples`` writes it.
    metric
        A metric with a value in [0, 1] for each document that the harness averages.
    filter
        Required if the task has several filters.

    Raises
    ------
    InvalidPredictions
        The file is not a samples file, is cut off, or has repeated or unscored documents, which are
        named by ``doc_id``.
    NoPerExampleLoss
        The metric is not a mean of scores.
    """
    path = check_log_file(path, "a samples file", "samples_TASK_DATE.jsonl", ["samples_*.jsonl"])
    if metric in _NOT_MEANS:
        raise _not_a_mean_error(metric)
    run = _RunResults.from_folder_of(path)
    run.check(metric)
    filters: dict[str, None] = {}
    metrics: dict[str, None] = {}
    scores: dict[str, float] = {}
    problems = LogProblems("document")
    for row in _rows(path):
        name = str(row["filter"])
        filters.setdefault(name)
        if name != (next(iter(filters)) if filter is None else filter):
            continue
        metrics.update(dict.fromkeys(map(str, row["metrics"])))
        example = f"{row['doc_hash']}-{row['target_hash']}"
        if example in scores:
            problems.add("duplicate_id", "More than once in the file", row["doc_id"])
        scores[example] = _score(row, metric, problems)
    _check_filters(path, filters, filter)
    if metric not in metrics:
        raise InvalidSetting(
            f"There is no metric {metric!r:.80} in {path}; choose from {format_names(metrics)}."
        )
    problems.refuse_if_any()
    run.check_size(len(scores))
    values = np.fromiter(scores.values(), np.float64, len(scores))
    return Scores(tuple(scores), values, metric, run.task, run.model, run.size("original"))


class _RunResults:
    """The results file in the folder of a samples file; empty if there is none."""

    def __init__(self, task: str, results: dict[str, Any]) -> None:
        self.task, self._results = task, results
        self.model = str(results.get("model_name") or results.get("model_source") or "")

    @classmethod
    def from_folder_of(cls, path: Path) -> _RunResults:
        """Read the results of the same date and task; empty if they cannot be read."""
        name_match = _NAME.fullmatch(path.name)
        if name_match is None:
            return cls("", {})
        try:
            results = json.loads(path.with_name(f"results_{name_match['date']}.json").read_bytes())
        except (OSError, ValueError, RecursionError):
            results = {}
        return cls(name_match["task"], results if isinstance(results, dict) else {})

    def _lookup(self, key: str, *rest: str) -> Any:
        value: Any = self._results
        for part in (key, self.task, *rest):
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def check(self, metric: str) -> None:
        """Refuse a metric that is not a mean, or better when it is lower."""
        if self._lookup("higher_is_better", metric) is False:
            raise InvalidSetting(
                f"{metric!r:.80} is better when lower, but a score is best at 1; use another "
                "metric."
            )
        listed_metrics = self._lookup("configs", "metric_list")
        for listed_metric in listed_metrics if isinstance(listed_metrics, list) else ():
            if isinstance(listed_metric, dict) and listed_metric.get("metric") == metric:
                aggregation = listed_metric.get("aggregation", "mean")
                if isinstance(aggregation, str) and aggregation not in _MEANS:
                    raise _not_a_mean_error(
                        metric, f": the task takes their {_settings.safe_repr(aggregation)}"
                    )

    def size(self, which: str) -> int | None:
        """Return how many documents the task has, or how many of them the run evaluated."""
        size = self._lookup("n-samples", which)
        return size if isinstance(size, int) and not isinstance(size, bool) else None

    def check_size(self, rows: int) -> None:
        """Refuse a file that does not hold all evaluated documents."""
        size = self.size("effective")
        if size is not None and size != rows:
            raise InvalidPredictions(
                f"The run evaluated {size} documents according to its results, and the file has "
                f"{rows}: it was cut off or assembled from other files."
            )


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """Read a file line by line; it may be large, as it holds every prompt and answer."""
    number = 0
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                cut = "" if line.endswith(b"\n") else "; the file seems to be cut off there"
                raise InvalidPredictions(f"Line {number} of {path} is not JSON{cut}.") from None
            if not isinstance(row, dict) or any(key not in row for key in _KEYS):
                raise InvalidPredictions(
                    f"Line {number} of {path} is not from a samples file: it needs "
                    f"{format_names(_KEYS)}. lm_eval writes such files with --log_samples."
                )
            if not isinstance(row["metrics"], list):
                raise InvalidPredictions(f"Line {number} of {path} does not list its metrics.")
            yield row
    if not number:
        raise InvalidPredictions(f"{path} is empty.")


def _score(row: dict[str, Any], metric: str, problems: LogProblems) -> float:
    """Return the score of one line; NaN, with a problem recorded, if it has none."""
    value = row.get(metric) if metric in row["metrics"] else None
    score = to_score(value)
    if isinstance(value, list | dict):
        raise _not_a_mean_error(metric)
    if value is None or (score is not None and math.isnan(score)):
        problems.add("unscored", f"No value of {metric}", row["doc_id"])
    elif score is None:
        rule = f"The value of {metric} is not a number in [0, 1]"
        problems.add("not_a_score", rule, row["doc_id"])
    return math.nan if score is None else score


def _check_filters(path: Path, filters: dict[str, None], chosen: str | None) -> None:
    names = format_names(filters)
    if chosen is None and len(filters) > 1:
        raise InvalidSetting(
            f"{path} has answers under several filters ({names}); name one, as in "
            f"filter={next(iter(filters))!r:.80}, or on a command line --metric METRIC,FILTER."
        )
    if chosen is not None and chosen not in filters:
        raise InvalidSetting(f"There is no filter {chosen!r:.80} in {path}; choose from {names}.")


def _not_a_mean_error(metric: str, why: str = "") -> NoPerExampleLoss:
    return NoPerExampleLoss(
        f"{metric!r:.80} is not a mean of a score in [0, 1] for each document{why}. Use one that "
        "is, such as acc or exact_match.",
        nearest="shortfall",
    )
