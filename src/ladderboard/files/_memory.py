"""Objects in memory: arrays, lists, dicts of columns, pandas and polars objects.

Neither pandas nor polars is loaded for this: callers who pass their objects have loaded them.

``read_vector`` is the fast path for a plain vector. Where nothing is wrong with it, no columns,
masks and lists of problems have to be made; where anything is, None is returned, and the general
path says what is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.files._columns import MemoryTable, Mixed, Numbers, Text
from ladderboard.files._problems import Refusal, refuse, single_refusal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ladderboard.files._column_matching import ExpectedColumns
    from ladderboard.files._columns import Column

_INDEX = "__index_level_0__"  # a named index: ignored unless it holds the holdout's ids
_FORMS = (
    "Predictions are a path, bytes, an open binary file, an array, a list, a dict of columns, "
    "or an object of pandas or polars"
)
_TEXT = np.dtypes.StringDType()
_FEW = 16  # comparing with each class takes longer than sorting if there are more


def read_memory(source: Any, refusal: Refusal) -> MemoryTable:
    """Return an object in memory as a sheet."""
    rule = f"{_FORMS}; got something of type {type(source).__name__}."
    try:
        sheet = _read(source)
    except Exception as error:  # whatever a foreign object raises when it is looked at
        raise single_refusal(refusal, "format", rule) from error
    if sheet is None:
        refuse(refusal, "format", rule)
    lengths = {len(each) for each in sheet.columns}
    if len(lengths) > 1:
        refuse(refusal, "ragged", "All columns must be of one length.")
    return sheet


def _read(source: Any) -> MemoryTable | None:
    if isinstance(source, Mapping):
        columns = [as_column(each) for each in source.values()]
        return None if None in columns else _sheet(list(source), columns)
    family = _family(source)
    if family == "polars":
        return _read_polars(source)
    if family == "pandas":
        return _read_pandas(source)
    if isinstance(source, list | tuple) and any(_is_row(each) for each in source[:1]):
        rows = [list(each) for each in source]  # zip refuses rows of several lengths
        return MemoryTable(None, [_list_column(list(each)) for each in zip(*rows, strict=True)])
    if hasattr(source, "__array__"):
        return array_sheet(source if isinstance(source, np.ndarray) else np.asarray(source))
    column = as_column(source)
    return None if column is None else MemoryTable(None, [column])


def array_sheet(array: NDArray[Any]) -> MemoryTable | None:
    """Return a vector or a matrix as a sheet of bare columns; a structured one has names."""
    if array.dtype.names:
        names = list(array.dtype.names)
        return _sheet(names, [_array_column(array[each]) for each in names])
    if array.ndim == 1:
        return MemoryTable(None, [_array_column(array)])
    if array.ndim == 2:
        return MemoryTable(None, [_array_column(each) for each in array.T])
    return None


def as_column(values: Any) -> Column | None:
    """Return a vector in memory as a column, None if it is none."""
    family = _family(values)
    if family == "polars":
        return series_column(values) if hasattr(values, "null_count") else None
    if family == "pandas":
        return _pandas_column(values)
    if isinstance(values, np.ndarray):
        return _array_column(values) if values.ndim == 1 else None
    if isinstance(values, range):
        return Numbers(np.arange(values.start, values.stop, values.step))
    if isinstance(values, list | tuple):
        return _list_column(list(values))
    return None


def _list_column(values: list[Any]) -> Column:
    kinds = set(map(type, values))
    try:
        if kinds == {int}:
            return Numbers(np.array(values, dtype=np.int64))
        if kinds == {float}:
            return Numbers(np.array(values))
    except OverflowError:
        pass
    return Mixed(values)


def _array_column(array: NDArray[Any]) -> Column:
    missing = None
    if isinstance(array, np.ma.MaskedArray):
        missing = np.ma.getmaskarray(array)
        array = np.asarray(array.filled())
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            array = array.astype(np.float64)
    if array.dtype.kind in "biuf":
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        return Numbers(array, missing)
    if array.dtype.kind == "U":
        _check_characters(array)
    values = array.tolist() if array.dtype.kind in "UTO" else [array.dtype] * len(array)
    if missing is not None:
        values = [None if gap else each for each, gap in zip(values, missing, strict=True)]
    return Mixed(values)


def _check_characters(array: NDArray[Any]) -> None:
    """Raise if a file put numbers where characters are; NumPy itself takes them as they come."""
    native = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("=")))
    if native.size and native.dtype.itemsize and native.view(np.uint32).max() > sys.maxunicode:
        raise ValueError


def series_column(series: Any) -> Column:
    """Return a polars series as a column."""
    kind = series.dtype
    if str(kind).startswith(("Categorical", "Enum")):
        series = series.cast(_polars_type("String"))
        kind = series.dtype
    if str(kind) == "String":
        return Text(series)
    if str(kind).startswith(("Decimal", "Int128", "UInt128", "Float16")):
        series = series.cast(_polars_type("Float64"))
        kind = series.dtype
    if str(kind) == "Null":
        return Numbers(np.zeros(len(series)), np.ones(len(series), np.bool_))
    if kind.is_numeric() or str(kind) == "Boolean":
        if not series.null_count():
            return Numbers(series.to_numpy())
        missing = series.is_null().to_numpy()
        filled = series.fill_null(value=False if str(kind) == "Boolean" else 0)
        return Numbers(filled.to_numpy(), missing)
    return Mixed([kind] * len(series))


def _polars_type(name: str) -> Any:
    return getattr(sys.modules["polars"], name)


def _read_polars(source: Any) -> MemoryTable | None:
    if hasattr(source, "null_count") and hasattr(source, "get_columns"):
        return _sheet(source.columns, [series_column(each) for each in source.get_columns()])
    if hasattr(source, "null_count"):
        return MemoryTable(None, [series_column(source)])
    return None


def _read_pandas(source: Any) -> MemoryTable | None:
    names: list[Any] = []
    columns: list[Column] = []
    if source.index.nlevels == 1 and source.index.name is not None:
        names.append("id" if _is_id(source.index.name) else _INDEX)
        columns.append(_pandas_column(source.index))
    if source.ndim == 1:
        column = _pandas_column(source)
        if not names:
            return MemoryTable(None, [column])
        return _sheet([*names, "prediction"], [*columns, column])
    names += list(source.columns)
    columns += [_pandas_column(source.iloc[:, at]) for at in range(source.shape[1])]
    return _sheet(names, columns)


def _pandas_column(series: Any) -> Column:
    if isinstance(series.dtype, np.dtype):
        return _array_column(series.to_numpy())
    return Mixed(series.to_numpy(dtype=object, na_value=None).tolist())


def _sheet(names: list[Any], columns: list[Any]) -> MemoryTable:
    return MemoryTable([each if isinstance(each, str) else str(each) for each in names], columns)


def _is_id(name: Any) -> bool:
    return isinstance(name, str) and name.strip().casefold() == "id"


def _is_row(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray)


def _family(source: Any) -> str:
    """Return the package an object's class comes from, subclasses included."""
    roots = {str(each.__module__).partition(".")[0] for each in type(source).__mro__}
    return "pandas" if "pandas" in roots else "polars" if "polars" in roots else ""


def read_vector(source: Any, n: int, expected: ExpectedColumns) -> NDArray[Any] | None:
    """Return a copy of a vector of ``n`` values, one a row, if all can be used; else None.

    >>> from ladderboard.files._column_matching import ExpectedColumns
    >>> read_vector(np.array([True, False]), 2, ExpectedColumns("number", "one"))
    array([1, 0])
    """
    if expected.form != "one" or not isinstance(source, np.ndarray | list) or len(source) != n:
        return None
    values = _number_vector(source) if expected.number else _text_vector(source)
    if values is None or expected.classes is None:
        return values
    if len(expected.classes) > _FEW:
        return None
    known = np.zeros(n, np.bool_)
    for each in expected.classes:
        known |= values == (float(each) if expected.number else each)
    return values if known.all() else None


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
        plain = source.ndim == 1 and (source.dtype.kind == "U" or source.dtype == _TEXT)
    else:
        plain = type(source) is list and set(map(type, source)) == {str}
    if not plain:
        return None
    try:
        values = np.array(source, dtype=_TEXT)
    except (UnicodeError, TypeError):  # half a character, or what is none
        return None
    return None if (values == "").any() else values
