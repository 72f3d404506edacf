"""Inspect AI: the scores of a run, from its log.

The log is read with Inspect's own public functions, so whatever format it has, ``.eval`` or
``.json``, Inspect says what it means. Samples are read a few at a time and without what was said in
them.
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
_AT_ONCE, _MOST = 100, 10_000_000
# What a sample holds besides its id, its error and its scores, and may be large.
_LARGE = {
    "attachments", "events", "events_data", "messages", "metadata", "output", "store", "timelines",
}  # fmt: skip


def read_log(path: Path | str, metric: str | None = None, reducer: str | None = None) -> Scores:
    """Return the score of every sample in a log of Inspect.

    The run must have succeeded, and every sample of it must have ended without an error and have
    been scored; otherwise the samples are named. Ids are those of the samples, as text. Grades
    count as Inspect has them: C 1, P 0.5, I and N 0. Of several epochs the scores are those that
    Inspect's reducer made, if it can have made them.

    Parameters
    ----------
    path
        A log, ``.eval`` or ``.json``.
    metric
        The name of a scorer; needed where there are several. Where a scorer gives several values,
        ``scorer/value``.
    reducer
        Of epochs; needed where there are several.

    Raises
    ------
    InvalidPredictions
        The run failed or is not whole, or the log cannot be read.
    """
    log = import_library("inspect_ai.log", extra="inspect")
    path = check_log_file(path, "a log of Inspect", "a .eval or .json file", ["*.eval", "*.json"])
    try:
        return _read(log, path, metric, reducer)
    except (LadderboardError, MemoryError):
        raise
    except Exception as error:  # a file that is damaged fails wherever it is
        raise InvalidPredictions(
            f"{path} cannot be read as a log of Inspect: {type(error).__name__}. It may be cut "
            "off, still be written, or be something else."
        ) from error


def _read(log: Any, path: Path, metric: str | None, reducer: str | None) -> Scores:
    header = log.read_eval_log(str(path), header_only=True)
    _check_status(path, header)
    _check_size(path, header)
    there: set[tuple[str, int]] = set()
    if path.suffix == ".json" or header.eval.dataset.sample_ids is None:
        # Such a file is read whole, whatever one asks for.
        header = log.read_eval_log(str(path))
        samples = iter(header.samples or ())
    else:
        samples = _samples(log, path, header)
        # Only those that are listed are read; here are all.
        told = log.read_eval_log_sample_summaries(str(path))
        there.update((str(each.id), each.epoch) for each in told)
    ids = header.eval.dataset.sample_ids or []
    epochs = header.eval.config.epochs or 1
    given = _gather(samples, there, ids, epochs)
    scorer, part = _choose(path, given, metric)
    if epochs > 1:
        reducer, reduced = _reduced(header, scorer, reducer)
    elif reducer is None:
        reducer, reduced = "", {}
    else:
        raise InvalidSetting("There is one epoch, and nothing to reduce; leave the reducer out.")
    values = _values(given, (reducer, reduced), scorer, part)
    name = scorer if part is None else f"{scorer}/{part}"
    spec = header.eval
    return Scores(tuple(values), _array(values), name, spec.task, spec.model, spec.dataset.samples)


def _check_status(path: Path, header: Any) -> None:
    if header.status != "success":
        raise InvalidPredictions(
            f"Only a run that succeeded is asked about; the status of {path} is "
            f"{_settings.safe_repr(str(header.status))}. Go on with it: inspect eval-retry {path}"
        )
    if getattr(header, "invalidated", False):
        raise InvalidPredictions(
            f"Samples of {path} were marked as invalid. Run them again: inspect eval-retry {path}"
        )


def _check_size(path: Path, header: Any) -> None:
    """Refuse a log that claims more results than anybody has, before a list of them is made."""
    ids, epochs = header.eval.dataset.sample_ids or (), header.eval.config.epochs or 1
    if len(ids) * epochs > _MOST:
        raise InvalidPredictions(
            f"{path} claims {format_count(len(ids), 'sample')} in {format_count(epochs, 'epoch')}; "
            f"at most {_MOST:,} results are read."
        )


def _samples(log: Any, path: Path, header: Any) -> Iterator[Any]:
    """Read samples, a hundred at a time; read_eval_log_samples opens the file for every one."""
    epochs = range(1, (header.eval.config.epochs or 1) + 1)
    wanted = [
        (sample_id, epoch) for sample_id in header.eval.dataset.sample_ids for epoch in epochs
    ]
    for at in range(0, len(wanted), _AT_ONCE):
        some = wanted[at : at + _AT_ONCE]
        try:
            found = log.read_eval_log_samples_by_id(str(path), some, exclude_fields=_LARGE)
        except IndexError:  # at least one is missing; whoever counts them will say which
            found = []
            for one in some:
                with suppress(IndexError):
                    found += log.read_eval_log_samples_by_id(
                        str(path), [one], exclude_fields=_LARGE
                    )
        yield from found


def _refuse_missing(missing: list[tuple[Any, int]]) -> None:
    problems = LogProblems("sample")
    for each, epoch in missing:
        problems.add("missing_sample", "Missing from the log", _name(each, epoch))
    problems.refuse_if_any()


def _name(sample: Any, epoch: int) -> str:
    return str(sample) if epoch == 1 else f"{sample} in epoch {epoch}"


def _gather(
    samples: Iterator[Any], there: set[tuple[str, int]], ids: list[Any], epochs: int
) -> dict[str, list[dict[str, Any]]]:
    """Return what each scorer gave to each sample in each epoch; refuse what is not whole."""
    given: dict[str, list[dict[str, Any]]] = {}
    seen: set[tuple[str, int]] = set()
    problems = LogProblems("sample")
    for sample in samples:
        name, place = _name(sample.id, sample.epoch), (str(sample.id), sample.epoch)
        if place in seen:
            problems.add("duplicate_id", "More than once in the log", name)
        seen.add(place)
        if sample.error is not None:
            problems.add("sample_error", "Ended with an error", name)
        scores = {each: score.value for each, score in (sample.scores or {}).items()}
        given.setdefault(str(sample.id), []).append(scores)
    problems.refuse_if_any()
    wanted = [(id_, epoch) for id_ in ids for epoch in range(1, epochs + 1)]
    _refuse_missing([each for each in wanted if (str(each[0]), each[1]) not in seen])
    seen |= there
    if len(wanted) != len(seen):
        raise InvalidPredictions(
            f"The log lists {format_count(len(ids), 'sample')} in {format_count(epochs, 'epoch')} "
            f"and has {len(seen)} results; ids must be different as text, and results listed."
        )
    return given


def _choose(
    path: Path, given: dict[str, list[dict[str, Any]]], metric: str | None
) -> tuple[str, str | None]:
    """Return the scorer to take, and which of its values if it gives several."""
    there = list(dict.fromkeys(name for every in given.values() for one in every for name in one))
    if not there:
        raise InvalidPredictions(
            f"Nothing in {path} was scored. Score it first: inspect score {path}"
        )
    if metric is None:
        if len(there) > 1:
            raise InvalidSetting(
                f"{path} has several scores ({format_names(there)}); name one as the metric, as in "
                f"--metric {there[0]:.80}."
            )
        metric = there[0]
    if metric in there:
        _check_single(given, metric)
        return metric, None
    scorer, _, part = metric.rpartition("/")
    if scorer in there:
        return scorer, part
    raise InvalidSetting(
        f"There is no score {metric!r:.80} in {path}; there is {format_names(there)}."
    )


def _check_single(given: dict[str, list[dict[str, Any]]], scorer: str) -> None:
    """Refuse a scorer that gives several values, of which none was named."""
    for every in given.values():
        for one in every:
            value = one.get(scorer)
            if isinstance(value, dict):
                parts = [f"{scorer}/{each}" for each in value]
                raise InvalidSetting(
                    f"{scorer:.80} gives several values ({format_names(parts)}); "
                    "name one as the metric."
                )


def _reduced(header: Any, scorer: str, reducer: str | None) -> tuple[str, dict[str, Any]]:
    """Return the name of Inspect's reducer, and what it made of each sample's epochs."""
    there = [reduction for reduction in header.reductions or () if reduction.scorer == scorer]
    made = {each.reducer or "mean": each for each in there}
    if len(made) != len(there):
        raise InvalidPredictions(f"The log has scores of {scorer!r:.80} reduced twice in one way.")
    epochs = header.eval.config.epochs
    if not made:
        raise InvalidPredictions(
            f"The run has {epochs} epochs, and the log has no reduced scores of {scorer!r:.80}. "
            "Score it again: inspect score LOG"
        )
    if reducer is None and len(made) > 1:
        raise InvalidSetting(
            f"The {epochs} epochs were reduced in several ways ({format_names(made)}); "
            f"name one, as in reducer={next(iter(made))!r:.80}, or on a command line "
            "--metric SCORER,REDUCER."
        )
    if reducer is not None and reducer not in made:
        raise InvalidSetting(
            f"There is no reducer {reducer!r:.80} in the log; there is {format_names(made)}."
        )
    name = next(iter(made)) if reducer is None else reducer
    problems = LogProblems("sample")
    values: dict[str, Any] = {}
    for sample in made[name].samples:
        if str(sample.sample_id) in values:
            problems.add("duplicate_id", "Reduced more than once", sample.sample_id)
        values[str(sample.sample_id)] = sample.value
    problems.refuse_if_any()
    return name, values


def _values(
    given: dict[str, list[dict[str, Any]]],
    reduced: tuple[str, dict[str, Any]],
    scorer: str,
    part: str | None,
) -> dict[str, float]:
    """Return the score of each sample; name those that have none."""
    problems = LogProblems("sample")
    values: dict[str, float] = {}
    reducer, made = reduced
    for name, epochs in given.items():
        # Inspect's reducers leave out what was not scored; then the mean would be of less.
        scores = [_score(epoch.get(scorer), part) for epoch in epochs]
        if reducer:
            scores.append(_score(made.get(name), part))
        if any(score is not None and math.isnan(score) for score in scores):
            problems.add("unscored", f"Without a score of {scorer}", name)
        elif any(score is None for score in scores):
            rule = f"The score of {scorer} is not C, P, I, N or a number in [0, 1]"
            problems.add("not_a_score", rule, name)
        elif reducer and not _is_made_of(reducer, scores):
            rule = f"The score of {scorer}, reduced, is not that of its epochs"
            problems.add("not_reduced", rule, name)
        values[name] = scores[-1] if scores[-1] is not None else math.nan
    problems.refuse_if_any()
    return values


def _is_made_of(reducer: str, scores: list[Any]) -> bool:
    """Return whether a reducer can have made the last score of those before it."""
    *epochs, made = scores
    if reducer in _REDUCERS:
        return math.isclose(_REDUCERS[reducer](epochs), made, abs_tol=1e-9)
    if reducer in {"mode", "majority"}:
        return made in epochs
    # Others count epochs above a threshold that the log does not tell; it is above 0, at most 1.
    return math.floor(min(epochs)) <= made <= math.ceil(max(epochs))


def _score(value: Any, part: str | None) -> float | None:
    """Return a value of Inspect's as a score: NaN for none, None for what is no score."""
    if value is None:
        return math.nan
    if part is not None:
        return _score(value.get(part), None) if isinstance(value, dict) else None
    return _GRADES.get(value) if isinstance(value, str) else to_score(value)


def _array(values: dict[str, float]) -> Any:
    return np.fromiter(values.values(), np.float64, len(values))
