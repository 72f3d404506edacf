"""The hidden labelled sample as a guard keeps it, and how another one differs from it."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.errors import InvalidLabels, InvalidState
from ladderboard.files import HoldoutTable, Limits, read_holdout
from ladderboard.ledger import decode, digest, encode, pad, read_array, unpad, write_array

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_LISTED = 10
_LABEL, _ROOM = 8, 4096  # bytes: any number, and which word it is; the words themselves


def make_sample(
    labels: Any,
    *,
    ids: Any = None,
    group: Any = None,
    weight: Any = None,
    kind: Any = None,
    format: str | None = None,  # noqa: A002 - the word people use
    labelled: bool = True,
) -> HoldoutTable:
    """Return the owner's table from labels in memory, or from a file that holds everything.

    Without ``labelled``, as for a loss that looks at none, labels are ids alone or such a file.
    """
    if isinstance(labels, HoldoutTable):
        return labels if labelled else labels.unlabelled()
    columns = {"id": ids, "group": group, "weight": weight}
    given = {name: each for name, each in columns.items() if each is not None}
    if isinstance(labels, str | bytes | PathLike) or hasattr(labels, "read") or _is_table(labels):
        if given:
            raise InvalidLabels(
                f"These labels come with their own columns; put {' and '.join(given)} there, too."
            )
        limits = Limits(bytes=2**40)
        return read_holdout(labels, kind=kind, format=format, limits=limits, labelled=labelled)
    if not labelled:
        return _unlabelled(labels, given)
    if labels is None:
        raise InvalidLabels("This loss compares predictions with labels; give labels= too.")
    array = labels if hasattr(labels, "__array__") else np.array(labels, dtype=object)
    shape = np.shape(array)
    if len(shape) == 2:
        array = np.asarray(array)
        given |= {f"label_{at + 1}": array[:, at] for at in range(shape[1])}
    else:
        given["label"] = array
    return read_holdout(given, kind=kind)


def _unlabelled(labels: Any, given: dict[str, Any]) -> HoldoutTable:
    if labels is not None or "id" not in given:
        raise InvalidLabels(
            "This loss looks at no labels, for evaluators give the scores; give ids= and leave "
            "labels= out."
        )
    return read_holdout(given, labelled=False)


def _is_table(labels: Any) -> bool:
    """Tell a table with names for its columns from a vector or a matrix."""
    return isinstance(labels, dict) or hasattr(labels, "columns")


def describe_sample(table: HoldoutTable) -> dict[str, Any]:
    """Return everything that decides risks, with a canonical form."""
    split = {"split": table.split, "group": table.group}
    return {
        "kind": table.kind,
        "ids": None if table.ids is None else write_array(_ids(table.ids)),
        "labels": write_array(table.labels),
        "weight": None if table.weight is None else write_array(table.weight),
        **{name: None if each is None else write_array(each) for name, each in split.items()},
    }


def sample_digest(written: Mapping[str, Any]) -> bytes:
    """Return the digest that a guard commits to."""
    return digest("sample", written)


def decode_sample(form: bytes) -> HoldoutTable:
    """Return the table that ``encode_sample`` wrote."""
    try:
        written = decode(form)
        return _table(written, _read_labels(decode(unpad(written["labels"]))))
    except (KeyError, TypeError, ValueError):
        raise InvalidState("The labels that were kept cannot be read; they were damaged.") from None


def sample_from_description(written: Mapping[str, Any]) -> HoldoutTable:
    """Return the table that ``describe_sample`` described."""
    return _table(written, read_array(written["labels"]))


def _table(written: Mapping[str, Any], labels: NDArray[Any]) -> HoldoutTable:
    read: dict[str, Any] = {
        name: None if written[name] is None else read_array(written[name])
        for name in ("ids", "weight", "split", "group")
    }
    ids, weight = read["ids"], read["weight"]
    if ids is not None:  # as they were read at first
        read["ids"] = ids.tolist() if ids.dtype.kind == "T" else ids.astype(np.int64)
    if weight is not None:
        read["weight"] = weight.astype(np.float64)
    return HoldoutTable(kind=written["kind"], labels=labels, **read)


def encode_sample(table: HoldoutTable) -> bytes:
    """Return what is kept. Its size does not tell how often which label comes, nor how large.

    Text is kept as the words there are and which of them each label is, and padded.
    """
    labels: Any = {"values": write_array(table.labels)}
    if table.labels.dtype.kind == "T":
        words, which = np.unique(table.labels.ravel(), return_inverse=True)
        which = which.reshape(table.labels.shape)
        labels = {"values": write_array(words), "which": write_array(which)}
    padded = pad(encode(labels), _LABEL * table.labels.size + _ROOM)
    return encode({**describe_sample(table), "labels": padded})


def _read_labels(kept: Mapping[str, Any]) -> NDArray[Any]:
    values = read_array(kept["values"])
    return values[read_array(kept["which"])] if "which" in kept else values


def _ids(ids: Any) -> NDArray[Any]:
    if isinstance(ids, np.ndarray):
        return ids.astype(np.int64)
    listed = ids if isinstance(ids, list) else ids.to_list()
    return np.array(listed, dtype=object)


def check_same_sample(kept: HoldoutTable, given: HoldoutTable) -> None:
    """Refuse another holdout: differing ids are named, of the rest it is only said that it differs.

    The order of rows does not matter where there are ids.
    """
    if (kept.ids is None) != (given.ids is None):
        have, lack = ("The guard's", "this one") if given.ids is None else ("This", "the guard's")
        raise InvalidLabels(f"This is another holdout: {have} has ids and {lack} has none.")
    if kept.ids is None:
        if len(kept) != len(given):
            raise InvalidLabels(
                f"This is another holdout: it has {len(given)} rows, the guard's has {len(kept)}."
            )
        order = np.arange(len(kept))
    else:
        order = _aligned(_ids(kept.ids).tolist(), _ids(given.ids).tolist())
    for name in ("labels", "group", "weight", "split"):
        before, after = getattr(kept, name), getattr(given, name)
        if before is None and after is None:
            continue
        same = before is not None and after is not None and kept.kind == given.kind
        if not same or write_array(before) != write_array(after[order]):
            raise InvalidLabels(f"This is another holdout: its {name} differ from the guard's.")


def _aligned(kept: list[Any], given: list[Any]) -> NDArray[np.int64]:
    """Return where each kept id stands among the given ones, or refuse and name what differs."""
    places = {each: at for at, each in enumerate(given)}
    missing = [each for each in kept if each not in places]
    known = set(kept)
    unknown = [each for each in given if each not in known]
    if missing or unknown:
        said = [
            f"{len(some)} id{'s' * (len(some) > 1)} {what} ({', '.join(map(repr, some[:_LISTED]))}"
            f"{', ...' if len(some) > _LISTED else ''})"
            for some, what in ((missing, "missing"), (unknown, "unknown"))
            if some
        ]
        raise InvalidLabels(f"This is another holdout: {' and '.join(said)}.")
    return np.array([places[each] for each in kept], dtype=np.int64)
