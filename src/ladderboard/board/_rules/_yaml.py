"""A strict subset of YAML.

PyYAML parses the structure; this module decides what a scalar means. ``no`` is text and not False,
``1:30`` is text and not a number, and dates stay text. Anchors, aliases, tags, a second document
and duplicate keys are refused.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard._formatting import printable
from ladderboard.errors import MissingDependency

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_BYTES = 1_000_000
MAX_VALUES = 50_000  # some losses have twenty thousand classes
_MAX_DEPTH = 16
_NULL = {"", "~", "null", "Null", "NULL"}
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*(_[0-9]+)*)")
_REAL = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,4})?")
_MAX_NUMBER_LENGTH = 40  # characters
_MAX_MESSAGE_LENGTH = 200  # characters of a parser's message

Lines = dict[tuple[str | int, ...], int]
"""The line on which each key or item stands, by its path."""


def read_yaml(text: str, note: Callable[[str, str, int | None], None]) -> tuple[Any, Lines]:
    """Return the parsed value: dicts, lists, text, numbers, booleans and None, with its lines.

    ``note(code, sentence, line)`` is called with each problem; the value may be None then.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        note("too_many_bytes", f"must have at most {MAX_BYTES:,} bytes.", None)
        return None, {}
    yaml = _import_yaml()
    reader = _Reader(yaml.parse(text, Loader=yaml.SafeLoader), note)
    try:
        return reader.read_document(), reader.lines
    except _YamlRefused as error:
        note(error.code, error.sentence, error.line)
        return None, {}
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"must be text without control characters; there is U+{error.character:04X}."
        note("yaml", message, line)
        return None, {}
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        parts = filter(None, (error.context, error.problem))
        message = " ".join(printable(part)[:_MAX_MESSAGE_LENGTH] for part in parts)
        note("yaml", f"is not YAML: {message}.", None if mark is None else mark.line + 1)
        return None, {}
    except (ValueError, OverflowError):  # an escape such as "\UFFFFFFFF", which is not a character
        note("yaml", "holds an escape that is not a character.", None)
        return None, {}


def _import_yaml() -> Any:
    try:
        import yaml  # noqa: PLC0415 - optional, and needed for boards only
    except ImportError:
        raise MissingDependency(
            "Reading board.yaml needs PyYAML: pip install 'ladderboard[server]'."
        ) from None
    return yaml


class _YamlRefused(Exception):
    def __init__(self, code: str, sentence: str, line: int) -> None:
        super().__init__(sentence)
        self.code, self.sentence, self.line = code, sentence, line


class _Reader:
    """Makes values of the parser's events; ``yaml.compose`` would recurse without a limit."""

    def __init__(self, events: Iterable[Any], note: Callable[[str, str, int | None], None]) -> None:
        self._events = ((type(event).__name__.removesuffix("Event"), event) for event in events)
        self._note, self._scalars = note, 0
        self.lines: Lines = {}

    def read_document(self) -> Any:
        """Return the value of the only document; None if there is none."""
        root, documents = None, 0
        for kind, event in self._events:
            if kind == "DocumentStart":
                documents += 1
                if documents > 1:
                    message = "must hold one document; a second begins here."
                    raise _YamlRefused("documents", message, event.start_mark.line + 1)
                root = self._read_value(*next(self._events), ())
        return root

    def _read_value(self, kind: str, event: Any, path: tuple[str | int, ...]) -> Any:
        line = self._check(kind, event)
        if kind == "Scalar":
            is_plain = event.style is None and event.tag is None
            return _parse_scalar(event.value) if is_plain else event.value
        if len(path) == _MAX_DEPTH:
            raise _YamlRefused("yaml", f"must not be nested more than {_MAX_DEPTH} deep.", line)
        return self._read_mapping(path) if kind == "MappingStart" else self._read_list(path)

    def _read_list(self, path: tuple[str | int, ...]) -> list[Any]:
        items: list[Any] = []
        while (following := next(self._events))[0] != "SequenceEnd":
            inner = (*path, len(items))
            self.lines[inner] = following[1].start_mark.line + 1
            items.append(self._read_value(*following, inner))
        return items

    def _read_mapping(self, path: tuple[str | int, ...]) -> dict[str, Any]:
        content: dict[str, Any] = {}
        while (following := next(self._events))[0] != "MappingEnd":
            line = self._check(*following)
            if following[0] != "Scalar":
                message = "must have text for its keys; here is something else."
                raise _YamlRefused("yaml", message, line)
            key = following[1].value
            first = self.lines.setdefault((*path, key), line)
            if key in content:
                message = f"has {_settings.safe_repr(key)} twice: here and on line {first}; "
                self._note("duplicate_key", f"{message}keep one of them.", line)
            content.setdefault(key, self._read_value(*next(self._events), (*path, key)))
        return content

    def _check(self, kind: str, event: Any) -> int:
        """Return the line of an event; refuse an anchor, an alias, a tag or too many values."""
        line: int = event.start_mark.line + 1
        if event.anchor is not None:
            message = "holds an anchor or an alias (& or *), which are not read; write it out."
            raise _YamlRefused("anchor", message, line)
        if event.tag not in {None, "!"}:
            message = "holds a tag (!), which is not read; remove it, or put the text in quotes."
            raise _YamlRefused("tag", message, line)
        self._scalars += kind == "Scalar"
        if self._scalars > MAX_VALUES:
            message = f"must hold at most {MAX_VALUES:,} keys and values."
            raise _YamlRefused("yaml", message, line)
        return line


def _parse_scalar(text: str) -> Any:
    """Return the value of a scalar without quotes."""
    if text in _NULL:
        return None
    if text in _TRUTH:
        return _TRUTH[text]
    if len(text) <= _MAX_NUMBER_LENGTH:
        if _INTEGER.fullmatch(text):
            return int(text.replace("_", ""))
        if _REAL.fullmatch(text) and math.isfinite(real := float(text)):
            return real
    return text
