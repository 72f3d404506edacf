"""The hidden labelled sample: how it is made, stored, described and compared with another one."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard._formatting import format_count
from ladderboard.errors import InvalidLabels, InvalidState
from ladderboard.files import HoldoutTable, Limits, read_holdout, share_ids
from ladderboard.ledger import decode, digest, encode, pad, read_array, unpad, write_array

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ladderboard.files import DeclaredColumns

_MAX_LISTED = 10
_LABEL_BYTES = 8  # of a number, or of the index of a word
_WORDS_BYTES = 4096


def make_sample(
    labels: Any,
    *,
    ids: Any = None,
    group: Any = None,
    weight: Any = None,
    kind: Any = None,
    format: str | None = None,  # noqa: A002 - the word people use
    labelled: bool = True,
    columns: DeclaredColumns | None = None,
    empty: bool = False,
) -> HoldoutTable:
    """Return the owner's table from labels in memory, or from a file with all columns.

    With ``labelled=False``, for a loss that uses no labels, give only ids, or a file without
    labels.
    """
    if isinstance(labels, HoldoutTable):
        return labels if labelled else labels.without_labels()
    optional = {"id": ids, "group": group, "weight": weight}
    parts = {name: values for name, values in optional.items() if values is not None}
    if isinstance(labels, str | bytes | PathLike) or hasattr(labels, "read") or _is_table(labels):
        if parts:
            raise InvalidLabels(
                f"These labels are a table; add {' and '.join(parts)} as columns of the table."
            )
        limits = Limits(bytes=2**40)
        return read_holdout(
            labels, kind=kind, format=format, limits=limits, labelled=labelled, columns=columns,
            empty=empty,
        )  # fmt: skip
    if not labelled:
        return _make_unlabelled_sample(labels, parts)
    if labels is None:
        raise InvalidLabels("This loss compares predictions with labels; give labels= too.")
    array = labels if hasattr(labels, "__array__") else np.array(labels, dtype=object)
    shape = np.shape(array)
    if len(shape) == 2:
        array = np.asarray(array)
        parts |= {f"label_{position + 1}": array[:, position] for position in range(shape[1])}
    else:
        parts["label"] = array
    return read_holdout(parts, kind=kind, empty=empty)


def _make_unlabelled_sample(labels: Any, columns: dict[str, Any]) -> HoldoutTable:
    if labels is not None or "id" not in columns:
        raise InvalidLabels(
            "This loss uses no labels, because evaluators submit the scores; give ids= and leave "
            "labels= out."
        )
    return read_holdout(columns, labelled=False)


def _is_table(labels: Any) -> bool:
    """Return whether labels are a table with named columns, not a vector or a matrix."""
    return isinstance(labels, dict) or hasattr(labels, "columns")


def describe_sample(table: HoldoutTable) -> dict[str, Any]:
    """Return everything that risks depend on, as JSON-able values in a canonical form."""
    split = {"split": table.split, "group": table.group}
    return {
        "kind": table.kind,
        "ids": None if table.ids is None else write_array(_ids_to_array(table.ids)),
        "labels": write_array(table.labels),
        "weight": None if table.weight is None else write_array(table.weight),
        **{name: None if values is None else write_array(values) for name, values in split.items()},
    }


def sample_digest(description: Mapping[str, Any]) -> bytes:
    """Return the digest of a description, to which a guard commits."""
    return digest("sample", description)


def decode_sample(data: bytes) -> HoldoutTable:
    """Return the table that ``encode_sample`` encoded."""
    try:
        description = decode(data)
        return _build_table(description, _decode_labels(decode(unpad(description["labels"]))))
    except (KeyError, TypeError, ValueError):
        raise InvalidState("The stored labels are damaged and cannot be read.") from None


def sample_from_description(description: Mapping[str, Any]) -> HoldoutTable:
    """Return the table that ``describe_sample`` described."""
    return _build_table(description, read_array(description["labels"]))


def _build_table(description: Mapping[str, Any], labels: NDArray[Any]) -> HoldoutTable:
    columns: dict[str, Any] = {
        name: None if description[name] is None else read_array(description[name])
        for name in ("ids", "weight", "split", "group")
    }
    ids, weight = columns["ids"], columns["weight"]
    if ids is not None:  # restore the types of the original table
        columns["ids"] = ids.tolist() if ids.dtype.kind == "T" else share_ids(ids.astype(np.int64))
    if weight is not None:
        columns["weight"] = weight.astype(np.float64)
    return HoldoutTable(kind=description["kind"], labels=labels, **columns)


def encode_sample(table: HoldoutTable) -> bytes:
    """Return the bytes to store. Their size reveals neither frequencies nor lengths of labels.

    Text is stored as a list of distinct words and the index of each label's word, and padded.
    """
    labels: Any = {"values": write_array(table.labels)}
    if table.labels.dtype.kind == "T":
        words, indices = np.unique(table.labels.ravel(), return_inverse=True)
        indices = indices.reshape(table.labels.shape)
        labels = {"values": write_array(words), "which": write_array(indices)}
    padded = pad(encode(labels), _LABEL_BYTES * table.labels.size + _WORDS_BYTES)
    return encode({**describe_sample(table), "labels": padded})


def _decode_labels(stored: Mapping[str, Any]) -> NDArray[Any]:
    values = read_array(stored["values"])
    return values[read_array(stored["which"])] if "which" in stored else values


def _ids_to_array(ids: Any) -> NDArray[Any]:
    if isinstance(ids, np.ndarray):
        return ids.astype(np.int64)
    listed = ids if isinstance(ids, list) else ids.to_list()
    return np.array(listed, dtype=object)


def check_same_sample(stored: HoldoutTable, given: HoldoutTable) -> None:
    """Refuse another holdout. Differing ids are listed; for other columns only the name is given.

    With ids, the order of rows does not matter.
    """
    if (stored.ids is None) != (given.ids is None):
        with_ids, without_ids = (
            ("the guard's", "this one") if given.ids is None else ("this one", "the guard's")
        )
        raise InvalidLabels(
            f"These labels belong to another holdout: {with_ids} has ids, {without_ids} has none."
        )
    if stored.ids is None:
        if len(stored) != len(given):
            raise InvalidLabels(
                f"These labels belong to another holdout: it has {len(given)} rows, the guard's "
                f"has {len(stored)}."
            )
        order = np.arange(len(stored))
    else:
        order = _match_ids(_ids_to_array(stored.ids).tolist(), _ids_to_array(given.ids).tolist())
    for name in ("labels", "group", "weight", "split"):
        stored_values, given_values = getattr(stored, name), getattr(given, name)
        if stored_values is None and given_values is None:
            continue
        same = stored_values is not None and given_values is not None and stored.kind == given.kind
        if not same or write_array(stored_values) != write_array(given_values[order]):
            raise InvalidLabels(
                f"These labels belong to another holdout: its {name} differ from the guard's."
            )


def _match_ids(stored: list[Any], given: list[Any]) -> NDArray[np.int64]:
    """Return the position of each stored id among the given ones; refuse and list differences."""
    position_by_id = {id_: position for position, id_ in enumerate(given)}
    missing = [id_ for id_ in stored if id_ not in position_by_id]
    known = set(stored)
    unknown = [id_ for id_ in given if id_ not in known]
    if missing or unknown:
        problems = [
            f"{format_count(len(ids), 'id')} {problem} "
            f"({', '.join(map(repr, ids[:_MAX_LISTED]))}{', ...' * (len(ids) > _MAX_LISTED)})"
            for ids, problem in ((missing, "missing"), (unknown, "unknown"))
            if ids
        ]
        raise InvalidLabels(f"These labels belong to another holdout: {' and '.join(problems)}.")
    return np.array([position_by_id[id_] for id_ in stored], dtype=np.int64)
