"""Streaming parser of ``multipart/form-data`` with a file and perhaps a message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from ladderboard.server._uploads._body import InvalidForm

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_HEADERS, _MAX_HEADER_BYTES = 8, 4096
_MAX_MESSAGE_BYTES = 10_000
_SUFFIXES = {
    "csv": "csv", "txt": "csv", "tsv": "tsv", "tab": "tsv", "jsonl": "jsonl", "ndjson": "jsonl",
}  # fmt: skip
_PLAIN_ENCODINGS = {"", "7bit", "8bit", "binary"}


class MultipartForm:
    """A form with one part ``file`` and at most one part ``message``, in any order."""

    def __init__(self, content_type: str) -> None:
        self.format: str | None = None
        self._name = ""
        self._seen: set[str] = set()
        self._headers: dict[str, str] = {}
        self._field = self._value = b""
        self._message = b""
        self._pieces: list[bytes] = []
        self._ended = False
        try:
            boundary = parse_options_header(content_type)[1][b"boundary"]
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._on_part_begin,
                    "on_header_field": self._on_field,
                    "on_header_value": self._on_value,
                    "on_header_end": self._on_header,
                    "on_headers_finished": self._on_headers,
                    "on_part_data": self._on_data,
                    "on_end": self._on_end,
                },
            )
        except (KeyError, FormParserError, UnicodeError, ValueError):
            raise InvalidForm("A form needs a boundary in its Content-Type.") from None
        if not boundary:
            raise InvalidForm("A form needs a boundary in its Content-Type.")

    @property
    def message(self) -> str | None:
        """The message, if there was one."""
        if "message" not in self._seen:
            return None
        try:
            return self._message.decode()
        except UnicodeDecodeError:
            raise InvalidForm("The message must be UTF-8.") from None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the file's parts in some more bytes."""
        try:
            self._parser.write(data)
        except FormParserError:
            raise InvalidForm("The form is damaged.") from None
        pieces, self._pieces = self._pieces, []
        yield from pieces

    def end(self) -> None:
        """Refuse a form that is truncated or has no file."""
        if not self._ended:
            raise InvalidForm("The form is cut off.")
        if "file" not in self._seen:
            raise InvalidForm("The form has no part named file.")

    def _on_part_begin(self) -> None:
        self._headers = {}

    def _on_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]
        self._check_header()

    def _on_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]
        self._check_header()

    def _check_header(self) -> None:
        if len(self._field) + len(self._value) > _MAX_HEADER_BYTES:
            raise InvalidForm("A part of the form has a header that is too long.")

    def _on_header(self) -> None:
        name = self._field.decode("latin-1").strip().lower()
        if name in self._headers or len(self._headers) >= _MAX_HEADERS:
            raise InvalidForm("A part of the form has too many headers.")
        self._headers[name] = self._value.decode("latin-1").strip()
        self._field = self._value = b""

    def _on_headers(self) -> None:
        try:
            kind, options = parse_options_header(self._headers.get("content-disposition", ""))
        except (UnicodeError, ValueError):
            raise InvalidForm("A part of the form has a damaged header.") from None
        self._name = options.get(b"name", b"").decode("latin-1")
        if kind != b"form-data" or self._name not in {"file", "message"}:
            raise InvalidForm("A form has a part named file, and perhaps one named message.")
        if self._name in self._seen:
            raise InvalidForm(f"A form has one part named {self._name}; send one file at a time.")
        if self._headers.get("content-transfer-encoding", "").lower() not in _PLAIN_ENCODINGS:
            raise InvalidForm("The parts of a form must have no Content-Transfer-Encoding.")
        self._seen.add(self._name)
        if self._name == "file":
            self.format = _format_by_suffix(options.get(b"filename", b""))

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        if self._name == "file":
            self._pieces.append(data[start:end])
            return
        self._message += data[start:end]
        if len(self._message) > _MAX_MESSAGE_BYTES:
            raise InvalidForm(f"The message is longer than {_MAX_MESSAGE_BYTES} bytes.")

    def _on_end(self) -> None:
        self._ended = True


def _format_by_suffix(name: bytes) -> str | None:
    """Return the format by a file's suffix; other formats are detected by their first bytes."""
    words = name.decode("latin-1").lower().removesuffix(".gz").rsplit(".", 1)
    return _SUFFIXES.get(words[-1]) if len(words) > 1 else None
