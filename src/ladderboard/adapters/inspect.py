"""Inspect AI: the scores of a run, from its log.

The log, ``.eval`` or ``.json``, is read with Inspect's own public functions. Samples are read in
batches and without their messages.
"""

from __future__ import annotations

import math
import statistics
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard import _settings
from ladderboard._formatting import format_count
from ladderboard.adapters import import_library
from ladderboard.adapters._scores import LogProblems, Scores, check_log_file, to_score
from ladderboard.errors import InvalidPredictions, InvalidSetting, LadderboardError
from ladderboard.files import format_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # correct, partly, incorrect, no answer
_REDUCERS: dict[str, Callable[[list[float]], float]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "max": max,
}
_BATCH_SIZE = 100
_MAX_RESULTS = 10_000_000
# Fields of a sample that may be large and are not needed.
_EXCLUDED_FIELDS = {
    "attachments", "events", "events_data", "messages", "metadata", "output", "store", "timelines",
}  # fmt: skip


def read_log(path: Path | str, metric: str | None = None, reducer: str | None = None) -> Scores:
    """Return the score of every sample in an Inspect log.

    The run must have succeeded, and every sample must have been scored without an error; otherwise
    the error names the samples. Ids are the samples' ids, as text. Grades count as in Inspect: C 1,
    P 0.5, I and N 0. With several epochs the scores are those of Inspect's reducer, after a check
    that they fit the epochs.

    Parameters
    ----------
    path
        A log, ``.eval`` or ``.json``.
    metric
        The name of a scorer, required if there are several; ``scorer/value`` for a scorer with
        several values.
    reducer
        The reducer of epochs, required if there are several.

    Raises
    ------
    InvalidPredictions
        The run failed or is incomplete, or the log cannot be read.
    """
    log = import_library("inspect_ai.log", extra="inspect")
    path = check_log_file(path, "a log of Inspect", "a .eval or .json file", ["*.eval", "*.json"])
    try:
        return _read(log, path, metric, reducer)
    except (LadderboardError, MemoryError):
        raise
    except Exception as error:  # a damaged file can fail anywhere in Inspect
        raise InvalidPredictions(
            f"{path} cannot be read as a log of Inspect: {type(error).__name__}. It may be cut "
            "off, still being written, or another kind of file."
        ) from error


def _read(log: Any, path: Path, metric: str | None, reducer: str | None) -> Scores:
    header = log.read_eval_log(str(path), header_only=True)
    _check_status(path, header)
    _check_size(path, header)
    recorded: set[tuple[str, int]] = set()
    if path.suffix == ".json" or header.eval.dataset.sample_ids is None:
        # Inspect reads such a file completely anyway.
        header = log.read_eval_log(str(path))
        samples = iter(header.samples or ())
    else:
        samples = _samples(log, path, header)
        # _samples reads the listed samples only; the summaries name all of them.
        summaries = log.read_eval_log_sample_summaries(str(path))
        recorded.update((str(summary.id), summary.epoch) for summary in summaries)
    ids = header.eval.dataset.sample_ids or []
    epochs = header.eval.config.epochs or 1
    scores_by_sample = _collect_scores(samples, recorded, ids, epochs)
    scorer, part = _select_scorer(path, scores_by_sample, metric)
    if epochs > 1:
        reducer, reduced = _reduced_values(header, scorer, reducer)
    elif reducer is None:
        reducer, reduced = "", {}
    else:
        raise InvalidSetting("The run has one epoch, so there is no reducer; leave it out.")
    values = _values(scores_by_sample, (reducer, reduced), scorer, part)
    name = scorer if part is None else f"{scorer}/{part}"
    spec = header.eval
    return Scores(tuple(values), _array(values), name, spec.task, spec.model, spec.dataset.samples)


def _check_status(path: Path, header: Any) -> None:
    if header.status != "success":
        raise InvalidPredictions(
            f"Only successful runs are accepted; the status of {path} is "
            f"{_settings.safe_repr(str(header.status))}. Continue it: inspect eval-retry {path}"
        )
    if getattr(header, "invalidated", False):
        raise InvalidPredictions(
            f"Samples of {path} were marked as invalid. Run them again: inspect eval-retry {path}"
        )


def _check_size(path: Path, header: Any) -> None:
    """Refuse a log that claims too many results, before a list of them is built."""
    ids, epochs = header.eval.dataset.sample_ids or (), header.eval.config.epochs or 1
    if len(ids) * epochs > _MAX_RESULTS:
        raise InvalidPredictions(
            f"{path} claims {format_count(len(ids), 'sample')} in {format_count(epochs, 'epoch')}; "
            f"at most {_MAX_RESULTS:,} results are read."
        )


def _samples(log: Any, path: Path, header: Any) -> Iterator[Any]:
    """Read samples in batches; Inspect's read_eval_log_samples opens the file for each sample."""
    epochs = range(1, (header.eval.config.epochs or 1) + 1)
    sample_epochs = [
        (sample_id, epoch) for sample_id in header.eval.dataset.sample_ids for epoch in epochs
    ]
    for start in range(0, len(sample_epochs), _BATCH_SIZE):
        batch = sample_epochs[start : start + _BATCH_SIZE]
        try:
            samples = log.read_eval_log_samples_by_id(
                str(path), batch, exclude_fields=_EXCLUDED_FIELDS
            )
        except IndexError:  # at least one is missing; _collect_scores reports which
            samples = []
            for sample_epoch in batch:
                with suppress(IndexError):
                    samples += log.read_eval_log_samples_by_id(
                        str(path), [sample_epoch], exclude_fields=_EXCLUDED_FIELDS
                    )
        yield from samples


def _refuse_missing(missing: list[tuple[Any, int]]) -> None:
    problems = LogProblems("sample")
    for sample_id, epoch in missing:
        problems.add("missing_sample", "Missing from the log", _name(sample_id, epoch))
    problems.refuse_if_any()


def _name(sample: Any, epoch: int) -> str:
    return str(sample) if epoch == 1 else f"{sample} in epoch {epoch}"


def _collect_scores(
    samples: Iterator[Any], recorded: set[tuple[str, int]], ids: list[Any], epochs: int
) -> dict[str, list[dict[str, Any]]]:
    """Return each sample's scores by scorer, one dict for each epoch; refuse an incomplete log."""
    scores_by_sample: dict[str, list[dict[str, Any]]] = {}
    seen: set[tuple[str, int]] = set()
    problems = LogProblems("sample")
    for sample in samples:
        name, sample_epoch = _name(sample.id, sample.epoch), (str(sample.id), sample.epoch)
        if sample_epoch in seen:
            problems.add("duplicate_id", "More than once in the log", name)
        seen.add(sample_epoch)
        if sample.error is not None:
            problems.add("sample_error", "Ended with an error", name)
        scores = {key: score.value for key, score in (sample.scores or {}).items()}
        scores_by_sample.setdefault(str(sample.id), []).append(scores)
    problems.refuse_if_any()
    expected = [(id_, epoch) for id_ in ids for epoch in range(1, epochs + 1)]
    _refuse_missing([key for key in expected if (str(key[0]), key[1]) not in seen])
    seen |= recorded
    if len(expected) != len(seen):
        raise InvalidPredictions(
            f"The log lists {format_count(len(ids), 'sample')} in {format_count(epochs, 'epoch')} "
            f"and has {len(seen)} results; ids must be different as text, and results listed."
        )
    return scores_by_sample


def _select_scorer(
    path: Path, scores_by_sample: dict[str, list[dict[str, Any]]], metric: str | None
) -> tuple[str, str | None]:
    """Return the scorer to use, and which of its values if it gives several."""
    scorers = list(
        dict.fromkeys(
            name for epochs in scores_by_sample.values() for scores in epochs for name in scores
        )
    )
    if not scorers:
        raise InvalidPredictions(
            f"Nothing in {path} was scored. Score it first: inspect score {path}"
        )
    if metric is None:
        if len(scorers) > 1:
            raise InvalidSetting(
                f"{path} has several scores ({format_names(scorers)}); name one as the metric, "
                f"as in --metric {scorers[0]:.80}."
            )
        metric = scorers[0]
    if metric in scorers:
        _check_single(scores_by_sample, metric)
        return metric, None
    scorer, _, part = metric.rpartition("/")
    if scorer in scorers:
        return scorer, part
    raise InvalidSetting(
        f"There is no score {metric!r:.80} in {path}; choose from {format_names(scorers)}."
    )


def _check_single(scores_by_sample: dict[str, list[dict[str, Any]]], scorer: str) -> None:
    """Refuse a scorer that gives several values if none of them was named."""
    for epochs in scores_by_sample.values():
        for scores in epochs:
            value = scores.get(scorer)
            if isinstance(value, dict):
                parts = [f"{scorer}/{part}" for part in value]
                raise InvalidSetting(
                    f"{scorer:.80} gives several values ({format_names(parts)}); "
                    "name one as the metric."
                )


def _reduced_values(header: Any, scorer: str, reducer: str | None) -> tuple[str, dict[str, Any]]:
    """Return the name of Inspect's reducer, and each sample's reduced value."""
    reductions = [reduction for reduction in header.reductions or () if reduction.scorer == scorer]
    by_reducer = {reduction.reducer or "mean": reduction for reduction in reductions}
    if len(by_reducer) != len(reductions):
        raise InvalidPredictions(
            f"The log reduces the scores of {scorer!r:.80} twice by one reducer."
        )
    epochs = header.eval.config.epochs
    if not by_reducer:
        raise InvalidPredictions(
            f"The run has {epochs} epochs, and the log has no reduced scores of {scorer!r:.80}. "
            "Score it again: inspect score LOG"
        )
    if reducer is None and len(by_reducer) > 1:
        raise InvalidSetting(
            f"The {epochs} epochs were reduced in several ways ({format_names(by_reducer)}); name "
            f"one, as in reducer={next(iter(by_reducer))!r:.80}, or on a command line --metric "
            "SCORER,REDUCER."
        )
    if reducer is not None and reducer not in by_reducer:
        raise InvalidSetting(
            f"There is no reducer {reducer!r:.80} in the log; choose from "
            f"{format_names(by_reducer)}."
        )
    name = next(iter(by_reducer)) if reducer is None else reducer
    problems = LogProblems("sample")
    values: dict[str, Any] = {}
    for sample in by_reducer[name].samples:
        if str(sample.sample_id) in values:
            problems.add("duplicate_id", "Reduced more than once", sample.sample_id)
        values[str(sample.sample_id)] = sample.value
    problems.refuse_if_any()
    return name, values


def _values(
    scores_by_sample: dict[str, list[dict[str, Any]]],
    reduced: tuple[str, dict[str, Any]],
    scorer: str,
    part: str | None,
) -> dict[str, float]:
    """Return the score of each sample; refuse a log with samples that have none."""
    problems = LogProblems("sample")
    values: dict[str, float] = {}
    reducer, reduced_values = reduced
    for name, epochs in scores_by_sample.items():
        # Inspect's reducers skip unscored epochs; the mean would then be of fewer.
        scores = [_score(epoch.get(scorer), part) for epoch in epochs]
        if reducer:
            scores.append(_score(reduced_values.get(name), part))
        if any(score is not None and math.isnan(score) for score in scores):
            problems.add("unscored", f"Without a score of {scorer}", name)
        elif any(score is None for score in scores):
            rule = f"The score of {scorer} is not C, P, I, N or a number in [0, 1]"
            problems.add("not_a_score", rule, name)
        elif reducer and not _is_consistent(reducer, scores):
            rule = f"The score of {scorer}, reduced, is not that of its epochs"
            problems.add("not_reduced", rule, name)
        values[name] = scores[-1] if scores[-1] is not None else math.nan
    problems.refuse_if_any()
    return values


def _is_consistent(reducer: str, scores: list[Any]) -> bool:
    """Return whether the last score can be the reducer's result for those before it."""
    *epochs, reduced = scores
    if reducer in _REDUCERS:
        return math.isclose(_REDUCERS[reducer](epochs), reduced, abs_tol=1e-9)
    if reducer in {"mode", "majority"}:
        return reduced in epochs
    # Other reducers count epochs above a threshold in (0, 1] that the log does not contain.
    return math.floor(min(epochs)) <= reduced <= math.ceil(max(epochs))


def _score(value: Any, part: str | None) -> float | None:
    """Return one of Inspect's values as a score: NaN if missing, None if invalid."""
    if value is None:
        return math.nan
    if part is not None:
        return _score(value.get(part), None) if isinstance(value, dict) else None
    return _GRADES.get(value) if isinstance(value, str) else to_score(value)


def _array(values: dict[str, float]) -> Any:
    return np.fromiter(values.values(), np.float64, len(values))
