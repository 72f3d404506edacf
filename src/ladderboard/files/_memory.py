"""Reads objects in memory: arrays, lists, dicts of columns, pandas and polars objects; sends them.

This imports neither pandas nor polars: a caller that passes their objects has imported them.

``read_vector`` is the fast path for a valid plain vector, without columns, masks and lists of
problems. For anything else it returns None, and the general path reports what is wrong.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard import _settings
from ladderboard.errors import InvalidPredictions, Problem
from ladderboard.files._columns import MemoryTable, MixedColumn, NumberColumn, TextColumn
from ladderboard.files._source import ErrorClass, refuse, single_refusal
from ladderboard.losses import are_classes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.files._columns import Column
    from ladderboard.losses import ExpectedColumns

_INDEX_NAME = "__index_level_0__"  # a named index, ignored unless it holds the holdout's ids
_ACCEPTED = (
    "Predictions are a path, bytes, an open binary file, an array, a list, a dict of columns "
    "as {'id': [...], 'prediction': [...]}, or an object of pandas or polars"
)
_TEXT = np.dtypes.StringDType()
_MAX_COMPARED_CLASSES = 16  # with more classes, sorting is faster than comparing with each


def read_memory(source: Any, error_class: ErrorClass) -> MemoryTable:
    """Return an object in memory as a table."""
    rule = f"{_ACCEPTED}; got {type(source).__name__}."
    try:
        table = _read_object(source)
    except Exception as error:  # a foreign object may raise anything
        raise single_refusal(error_class, "format", rule) from error
    if table is None:
        refuse(error_class, "format", rule)
    lengths = {len(column) for column in table.columns}
    if len(lengths) > 1:
        refuse(error_class, "ragged", "All columns must be of one length.")
    return table


def _read_object(source: Any) -> MemoryTable | None:
    if isinstance(source, Mapping):
        columns = [as_column(values) for values in source.values()]
        return None if None in columns else _named_table(list(source), columns)
    family = _package_of(source)
    if family == "polars":
        return _read_polars(source)
    if family == "pandas":
        return _read_pandas(source)
    if isinstance(source, list | tuple) and any(_is_row(row) for row in source[:1]):
        rows = [list(row) for row in source]  # zip refuses rows of different lengths
        return MemoryTable(None, [_list_column(list(values)) for values in zip(*rows, strict=True)])
    if hasattr(source, "__array__"):
        return array_to_table(source if isinstance(source, np.ndarray) else np.asarray(source))
    column = as_column(source)
    return None if column is None else MemoryTable(None, [column])


def array_to_table(array: NDArray[Any]) -> MemoryTable | None:
    """Return an array as a table; its columns have names if the array is structured."""
    if array.dtype.names:
        names = list(array.dtype.names)
        return _named_table(names, [_array_column(array[name]) for name in names])
    if array.ndim == 1:
        return MemoryTable(None, [_array_column(array)])
    if array.ndim == 2:
        return MemoryTable(None, [_array_column(column) for column in array.T])
    return None


def as_column(values: Any) -> Column | None:
    """Return a vector in memory as a column, None if it is not a vector."""
    family = _package_of(values)
    if family == "polars":
        return column_from_series(values) if hasattr(values, "null_count") else None
    if family == "pandas":
        return _pandas_column(values)
    if isinstance(values, np.ndarray):
        return _array_column(values) if values.ndim == 1 else None
    if isinstance(values, range):
        return NumberColumn(np.arange(values.start, values.stop, values.step))
    if isinstance(values, list | tuple):
        return _list_column(list(values))
    return None


def _list_column(values: list[Any]) -> Column:
    kinds = set(map(type, values))
    try:
        if kinds == {int}:
            return NumberColumn(np.array(values, dtype=np.int64))
        if kinds == {float}:
            return NumberColumn(np.array(values))
    except OverflowError:
        pass
    return MixedColumn(values)


def _array_column(array: NDArray[Any]) -> Column:
    missing = None
    if _settings.is_masked_array(array):
        missing = np.ma.getmaskarray(array)
        array = np.asarray(np.ma.filled(array))
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            array = array.astype(np.float64)
    if array.dtype.kind in "biuf":
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        return NumberColumn(array, missing)
    if array.dtype.kind == "U":
        _check_characters(array)
    values = array.tolist() if array.dtype.kind in "UTO" else [array.dtype] * len(array)
    if missing is not None:
        values = [
            None if is_missing else value for value, is_missing in zip(values, missing, strict=True)
        ]
    return MixedColumn(values)


def _check_characters(array: NDArray[Any]) -> None:
    """Raise ``ValueError`` for code points that do not exist; NumPy does not check them."""
    native = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("=")))
    if native.size and native.dtype.itemsize and native.view(np.uint32).max() > sys.maxunicode:
        raise ValueError


def column_from_series(series: Any) -> Column:
    """Return a polars series as a column."""
    kind = series.dtype
    if str(kind).startswith(("Categorical", "Enum")):
        series = series.cast(_polars_type("String"))
        kind = series.dtype
    if str(kind) == "String":
        return TextColumn(series)
    if str(kind).startswith(("Decimal", "Int128", "UInt128", "Float16")):
        series = series.cast(_polars_type("Float64"))
        kind = series.dtype
    if str(kind) == "Null":
        return NumberColumn(np.zeros(len(series)), np.ones(len(series), np.bool_))
    if kind.is_numeric() or str(kind) == "Boolean":
        if not series.null_count():
            return NumberColumn(series.to_numpy())
        missing = series.is_null().to_numpy()
        filled = series.fill_null(value=False if str(kind) == "Boolean" else 0)
        return NumberColumn(filled.to_numpy(), missing)
    return MixedColumn([kind] * len(series))


def _polars_type(name: str) -> Any:
    return getattr(sys.modules["polars"], name)


def _read_polars(source: Any) -> MemoryTable | None:
    if hasattr(source, "null_count") and hasattr(source, "get_columns"):
        return _named_table(
            source.columns, [column_from_series(get_column) for get_column in source.get_columns()]
        )
    if hasattr(source, "null_count"):
        return MemoryTable(None, [column_from_series(source)])
    return None


def _read_pandas(source: Any) -> MemoryTable | None:
    names: list[Any] = []
    columns: list[Column] = []
    if source.index.nlevels == 1 and source.index.name is not None:
        names.append("id" if _is_id(source.index.name) else _INDEX_NAME)
        columns.append(_pandas_column(source.index))
    if source.ndim == 1:
        column = _pandas_column(source)
        if not names:
            return MemoryTable(None, [column])
        return _named_table([*names, "prediction"], [*columns, column])
    names += list(source.columns)
    columns += [_pandas_column(source.iloc[:, position]) for position in range(source.shape[1])]
    return _named_table(names, columns)


def _pandas_column(series: Any) -> Column:
    if isinstance(series.dtype, np.dtype):
        return _array_column(series.to_numpy())
    return MixedColumn(series.to_numpy(dtype=object, na_value=None).tolist())


def _named_table(names: list[Any], columns: list[Any]) -> MemoryTable:
    return MemoryTable([name if isinstance(name, str) else str(name) for name in names], columns)


def _is_id(name: Any) -> bool:
    return isinstance(name, str) and name.strip().casefold() == "id"


def _is_row(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray)


def _package_of(source: Any) -> str:
    """Return "pandas" or "polars" if the class of an object or a base class comes from there."""
    roots = {str(base.__module__).partition(".")[0] for base in type(source).__mro__}
    return "pandas" if "pandas" in roots else "polars" if "polars" in roots else ""


def read_class_bytes(source: Any, n: int, expected: ExpectedColumns) -> NDArray[np.int8] | None:
    """Return a vector of whole numbers as signed bytes, which must hold all classes; else None.

    To read and write eight bytes for each number would take most of the time.
    """
    is_vector = type(source) is np.ndarray and source.shape == (n,) and expected.form == "one"
    if not is_vector or source.dtype.kind != "i" or not source.dtype.isnative:
        return None
    valid = expected.classes is not None and are_classes(source, expected.classes)
    return source.astype(np.int8) if valid else None


def read_vector(source: Any, n: int, expected: ExpectedColumns) -> NDArray[Any] | None:
    """Return a copy of a vector of ``n`` values, one per row, if all are valid; else None.

    >>> from ladderboard.losses import ExpectedColumns
    >>> read_vector(np.array([True, False]), 2, ExpectedColumns("number", "one"))
    array([1, 0])
    """
    if expected.form != "one" or not isinstance(source, np.ndarray | list) or len(source) != n:
        return None
    values = _number_vector(source) if expected.number else _text_vector(source)
    if values is None or expected.classes is None:
        return values
    if expected.number:
        return values if are_classes(values, expected.classes) else None
    if len(expected.classes) > _MAX_COMPARED_CLASSES:
        return None
    is_known = np.zeros(n, np.bool_)
    for class_ in expected.classes:
        is_known |= values == class_
    return values if is_known.all() else None


def _number_vector(source: Any) -> NDArray[Any] | None:
    if type(source) is not np.ndarray or source.ndim != 1:
        return None
    kind = source.dtype.kind
    if kind == "f" and source.itemsize <= 8 and np.isfinite(source).all():
        return source.astype(np.float64)
    if kind in "bi" or (kind == "u" and source.itemsize < 8):
        return source.astype(np.int64)
    return None


def _text_vector(source: Any) -> NDArray[Any] | None:
    if type(source) is np.ndarray:
        is_text = source.ndim == 1 and (source.dtype.kind == "U" or source.dtype == _TEXT)
    else:
        is_text = type(source) is list and set(map(type, source)) == {str}
    if not is_text:
        return None
    try:
        values = np.array(source, dtype=_TEXT)
    except (UnicodeError, TypeError):  # a lone surrogate, or a value that is not text
        return None
    return None if (values == "").any() else values


EncodedTable = tuple[bytes, str]
"""The bytes of a file, and the name of its format."""
_MAX_TEXT_WIDTH = 64  # characters; .npy pads all text to the longest one
_MAX_NPY_COLUMNS = 50  # their names must fit into the header of a .npy file
_ROWS = (list, tuple, np.ndarray)


def encode_memory(source: Any) -> EncodedTable:
    """Return an object in memory as the bytes of a file, and the name of its format.

    Numbers become .npy, text, missing and mixed values JSON Lines, and polars frames Parquet.
    """
    if hasattr(source, "write_parquet") and hasattr(source, "get_columns"):  # polars
        out = io.BytesIO()
        source.write_parquet(out)
        return out.getvalue(), "parquet"
    if isinstance(source, Mapping):
        return _encode_columns(
            [(str(name), _sent_vector(values)) for name, values in source.items()]
        )
    if hasattr(source, "iloc"):  # pandas
        return _encode_pandas(source)
    if isinstance(source, list | tuple) and isinstance(next(iter(source), None), _ROWS):
        return _encode_matrix([list(row) for row in source])
    if getattr(source, "ndim", 1) == 2:
        array = np.asarray(source)
        return _encode_matrix(array.tolist()) if _holds_objects(source) else _encode_npy(array)
    return _encode_vector(_sent_vector(source))


def _holds_objects(array: Any) -> bool:
    """Return whether an array holds missing values, objects or text of any length."""
    kind = array.dtype.kind if isinstance(array, np.ndarray) else "O"
    return kind in "OT" or _settings.is_masked_array(array)


def _sent_vector(values: Any) -> Any:
    """Return a vector as an array of numbers or short text, or as a list of anything."""
    if isinstance(values, range):
        return np.arange(values.start, values.stop, values.step)
    if isinstance(values, list | tuple):
        return _vector_from_list(list(values))
    if hasattr(values, "null_count"):  # a polars series
        return values.to_list() if values.null_count() else _sent_vector(values.to_numpy())
    if hasattr(values, "iloc") or hasattr(values, "nlevels"):  # a pandas series or index
        plain = isinstance(values.dtype, np.dtype)
        values = values.to_numpy() if plain else values.to_numpy(dtype=object, na_value=None)
    return _vector_from_array(values if _settings.is_masked_array(values) else np.asarray(values))


def _vector_from_list(values: list[Any]) -> Any:
    kinds = set(map(type, values))
    if kinds <= {int, float} and (len(kinds) < 2 or _are_exact_as_floats(values)):
        with contextlib.suppress(OverflowError):
            return np.array(values, dtype=np.int64 if kinds == {int} else np.float64)
    return values


def _are_exact_as_floats(values: list[Any]) -> bool:
    """Return whether all integers are exact as floats."""
    return all(type(value) is float or abs(value) <= 2**53 for value in values)


def _vector_from_array(array: Any) -> Any:
    if array.dtype.names:
        return array
    if array.ndim != 1:
        raise TypeError
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    is_wide_text = array.dtype.kind == "U" and array.dtype.itemsize > 4 * _MAX_TEXT_WIDTH
    return array.tolist() if is_wide_text or _holds_objects(array) else array


def _encode_vector(vector: Any) -> EncodedTable:
    if isinstance(vector, np.ndarray):
        return _encode_npy(vector)
    return _encode_json_lines(["prediction"], [vector])


def _encode_pandas(source: Any) -> EncodedTable:
    named = source.index.nlevels == 1 and str(source.index.name or "").strip().casefold() == "id"
    columns = [("id", _sent_vector(source.index))] if named else []
    if source.ndim == 1:
        column = _sent_vector(source)
        column_name = "score" if source.name == "score" else "prediction"
        return (
            _encode_columns([*columns, (column_name, column)]) if named else _encode_vector(column)
        )
    columns += [
        (str(name), _sent_vector(source.iloc[:, position]))
        for position, name in enumerate(source.columns)
    ]
    return _encode_columns(columns)


def _encode_columns(columns: list[tuple[str, Any]]) -> EncodedTable:
    names = [name for name, _ in columns]
    if len(set(names)) < len(names):
        raise _sending_refusal("duplicate_column", "Every column must have a name of its own.")
    lengths = {len(values) for _, values in columns}
    if len(lengths) > 1:
        raise _sending_refusal("ragged", "All columns must be of one length.")
    arrays = all(isinstance(values, np.ndarray) and not values.dtype.names for _, values in columns)
    if (
        arrays
        and 0 < len(columns) <= _MAX_NPY_COLUMNS
        and all(0 < len(name) <= 80 for name in names)
    ):
        table = np.empty(lengths.pop(), [(name, values.dtype) for name, values in columns])
        for name, values in columns:
            table[name] = values
        return _encode_npy(table)
    return _encode_json_lines(
        names,
        [values.tolist() if isinstance(values, np.ndarray) else values for _, values in columns],
    )


def _encode_matrix(rows: list[list[Any]]) -> EncodedTable:
    """Encode a matrix without names; missing values become NaN or empty text."""
    if len({len(row) for row in rows}) != 1:
        raise _sending_refusal("ragged", "All rows must be of one length.")
    flat = [
        value.item() if isinstance(value, np.generic) else value for row in rows for value in row
    ]
    shape = (len(rows), len(rows[0]))
    kinds = set(map(type, flat)) - {type(None)}
    if kinds <= {bool, int} and None not in flat:
        return _encode_npy(np.array(flat, dtype=np.int64).reshape(shape))
    if kinds <= {bool, int, float}:
        numbers = [np.nan if value is None else value for value in flat]
        return _encode_npy(np.array(numbers, dtype=np.float64).reshape(shape))
    if kinds != {str}:
        raise TypeError
    return _encode_npy(np.array(["" if value is None else value for value in flat]).reshape(shape))


def _encode_npy(array: Any) -> EncodedTable:
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(array), allow_pickle=False)
    return out.getvalue(), "npy"


def _encode_json_lines(names: list[str], columns: list[list[Any]]) -> EncodedTable:
    keys = [json.dumps(name) for name in names]
    encoded = [[json.dumps(value, default=_json_default) for value in column] for column in columns]
    rows = zip(*encoded, strict=True)
    lines = ("{" + ",".join(map(":".join, zip(keys, row, strict=True))) + "}" for row in rows)
    return "\n".join(lines).encode("ascii"), "jsonl"


def _json_default(value: Any) -> Any:
    """Return a NumPy scalar or a missing pandas value for JSON; else a list, which is refused."""
    if isinstance(value, np.generic):
        return value.item() if value.dtype.kind in "biufU" else []
    return None if type(value).__name__ in {"NAType", "NaTType"} else []


def _sending_refusal(code: str, message: str) -> InvalidPredictions:
    return InvalidPredictions(message, problems=(Problem(code, None, 1, (), message),))
