"""A strict subset of YAML.

PyYAML parses the structure; this module decides what a scalar means. ``no`` is text and not False,
``1:30`` is text and not a number, and dates stay text. Anchors, aliases, tags, a second document
and duplicate keys are refused.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard._formatting import printable
from ladderboard.errors import MissingDependency

if TYPE_CHECKING:
    from collections.abc import Callable

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
    tree = _YamlBuilder(note)
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            tree.add_event(type(event).__name__.removesuffix("Event"), event)
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
    return tree.root, tree.lines


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


@dataclass
class _OpenCollection:
    """A mapping or list whose end was not reached; ``key`` waits for its value."""

    path: tuple[str | int, ...]
    content: dict[str, Any] | list[Any]
    key: str | None = None
    dropped: bool = False  # a duplicate key: its value is ignored


@dataclass
class _YamlBuilder:
    """Builds the value from parser events, without recursion."""

    note: Callable[[str, str, int | None], None]
    root: Any = None
    lines: Lines = field(default_factory=dict)
    stack: list[_OpenCollection] = field(default_factory=list)
    documents: int = 0
    values: int = 0

    def add_event(self, kind: str, event: Any) -> None:
        """Add the next event."""
        line = event.start_mark.line + 1
        if getattr(event, "anchor", None) is not None:
            message = "holds an anchor or an alias (& or *), which are not read; write it out."
            raise _YamlRefused("anchor", message, line)
        if getattr(event, "tag", None) not in {None, "!"}:
            message = "holds a tag (!), which is not read; remove it, or put the text in quotes."
            raise _YamlRefused("tag", message, line)
        if kind == "DocumentStart":
            self.documents += 1
            if self.documents > 1:
                raise _YamlRefused(
                    "documents", "must hold one document; a second begins here.", line
                )
        elif kind == "Scalar":
            self.values += 1
            if self.values > MAX_VALUES:
                raise _YamlRefused(
                    "yaml", f"must hold at most {MAX_VALUES:,} keys and values.", line
                )
            self._add_scalar(event, line)
        elif kind in {"MappingStart", "SequenceStart"}:
            self._open_collection({} if kind == "MappingStart" else [], line)
        elif kind in {"MappingEnd", "SequenceEnd"}:
            self.stack.pop()

    def _add_scalar(self, event: Any, line: int) -> None:
        top = self.stack[-1] if self.stack else None
        if top is not None and isinstance(top.content, dict) and top.key is None:
            self._start_key(top, event.value, line)
            return
        is_plain = event.style is None and event.tag is None
        self._put_value(_parse_scalar(event.value) if is_plain else event.value, line)

    def _start_key(self, top: _OpenCollection, key: str, line: int) -> None:
        top.key, top.dropped = key, key in top.content
        if top.dropped:
            first = self.lines[*top.path, key]
            message = (
                f"has {_settings.safe_repr(key)} twice: here and on line {first}; keep one of them."
            )
            self.note("duplicate_key", message, line)
        else:
            self.lines[*top.path, key] = line

    def _open_collection(self, content: dict[str, Any] | list[Any], line: int) -> None:
        top = self.stack[-1] if self.stack else None
        if top is not None and isinstance(top.content, dict) and top.key is None:
            raise _YamlRefused("yaml", "must have text for its keys; here is something else.", line)
        if len(self.stack) == _MAX_DEPTH:
            raise _YamlRefused("yaml", f"must not be nested more than {_MAX_DEPTH} deep.", line)
        self.stack.append(_OpenCollection(self._put_value(content, line), content))

    def _put_value(self, value: Any, line: int) -> tuple[str | int, ...]:
        """Put a value into the open collection, and return its path."""
        if not self.stack:
            self.root = value
            return ()
        top = self.stack[-1]
        if isinstance(top.content, list):
            path = (*top.path, len(top.content))
            top.content.append(value)
            self.lines[path] = line
            return path
        key, top.key = top.key, None
        if key is None:
            raise _YamlRefused("yaml", "has a value without a key.", line)
        if not top.dropped:
            top.content[key] = value
        return (*top.path, key)


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
