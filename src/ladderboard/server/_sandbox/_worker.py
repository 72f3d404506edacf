"""The parser process: turns a body into predictions in the holdout's order.

It gets ids, a loss and limits; no label, no key, no database. It is started by its path, so that
the server's package is not imported. The protocol of its socket:

- a request has the number of the format, whether the body is only checked, whether it is attached
  as an open file, the length of the specification (0 if it is the one before) and that of the body,
  then these two;
- a reply has one letter, a length and as many bytes: an array, or text as JSON. For a check, text
  that says how the body was read takes the place of the array. An array has a head
  (dtype kind, encodings of values and lengths, dimensions, rows, columns, bytes of lengths), then
  the lengths if it is text, then the values, both as the ledger writes them.

The server must not trust the replies: a body may have taken the process over.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import math
import os
import runpy
import socket
import struct
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ladderboard.errors import InvalidPredictions, MissingDependency
from ladderboard.files import DeclaredColumns, Limits, Roster, load_polars, read_predictions
from ladderboard.ledger import decode, encode, read_array, write_array
from ladderboard.losses import LOSSES, Loss, loss, made_from_description

if TYPE_CHECKING:
    from numpy.typing import NDArray

REQUEST_HEADER = struct.Struct(">B??QQ")
REPLY_HEADER = struct.Struct(">cQ")
ARRAY_HEAD = struct.Struct(">cBBBQQQ")
TYPES = ("i1", "i2", "i4", "i8", "f8", "text")
ARRAY, NOTES, REFUSED, MEMORY, BROKEN, READY = b"A", b"N", b"R", b"M", b"B", b"+"
FORMATS = (None, "csv", "tsv", "parquet", "arrow", "jsonl", "npy")

_FILES = 32
_SPEC_SECONDS = 30  # extra seconds for a new specification
_CSV = b"id,prediction\n0,1\n1,0.5\n"
_LINES = b'{"id": 0, "prediction": 1}\n{"id": 1, "prediction": 2}\n'


class _Spec(NamedTuple):
    """What is needed to read predictions."""

    roster: Roster
    loss: Loss
    limits: Limits


def pack_spec(roster: Roster, described: Loss, limits: Limits) -> bytes:
    """Return the specification of a board as bytes."""
    ids = roster.ids
    if ids is not None and not isinstance(ids, np.ndarray):
        ids = np.array(list(ids), dtype=object)
    kind = type(described)
    loss_spec: dict[str, Any] = {"description": described.describe()}
    if not made_from_description(described):
        loss_spec = {"class": f"{kind.__module__}:{kind.__qualname__}", "params": described.params}
    return encode(
        {
            "n": roster.n,
            "ids": None if ids is None else write_array(ids),
            "kind": roster.kind,
            "width": roster.width,
            "columns": None if roster.columns is None else roster.columns.describe(),
            "loss": json.dumps(loss_spec),
            "limits": [limits.bytes, limits.rows, limits.columns],
        }
    )


def _read_spec(packed: bytes) -> _Spec:
    """Return the specification that ``pack_spec`` wrote."""
    content = decode(packed)
    ids = None if content["ids"] is None else read_array(content["ids"])
    if ids is not None and ids.dtype.kind == "T":
        ids = ids.tolist()
    elif ids is not None:
        ids = ids.astype(np.int64)
    loss_spec = json.loads(content["loss"])
    if "class" in loss_spec:
        module, _, name = loss_spec["class"].partition(":")
        loss_class: Any = importlib.import_module(module)
        for part in name.split("."):
            loss_class = getattr(loss_class, part)
        described_loss = loss_class(**loss_spec["params"])
    else:
        described_loss = loss(loss_spec["description"])
    columns = DeclaredColumns.read(content["columns"])
    roster = Roster(content["n"], ids, content["kind"], content["width"], columns)
    return _Spec(roster, described_loss, Limits(*content["limits"]))


def _pack_array(array: NDArray[Any]) -> bytes:
    written = write_array(array)
    lengths = written.get("lengths", {"type": "i1", "values": b""})
    rows, columns = (*array.shape, 0)[:2]
    head = ARRAY_HEAD.pack(
        array.dtype.kind.encode(),
        TYPES.index(written["type"]),
        TYPES.index(lengths["type"]),
        array.ndim,
        rows,
        columns,
        len(lengths["values"]),
    )
    return b"".join((head, lengths["values"], written["values"]))


def _send_reply(sock: socket.socket, kind: bytes, content: bytes) -> None:
    sock.sendall(REPLY_HEADER.pack(kind, len(content)) + content)


def _receive(sock: socket.socket, size: int) -> bytes:
    """Return this many bytes; exit if the server has gone."""
    data = sock.recv(size, socket.MSG_WAITALL) if size else b""
    if len(data) < size:
        raise SystemExit
    return data


def _read_file(descriptor: int) -> bytes:
    """Return a whole file, wherever the server has left its position."""
    with os.fdopen(descriptor, "rb") as file:
        file.seek(0)
        return file.read()


def _parse_body(
    spec: _Spec, body: bytes, file_format: str | None, *, only_check: bool
) -> tuple[bytes, bytes]:
    """Return the kind and content of the reply to a body."""
    notes: list[str] | None = [] if only_check else None
    try:
        aligned = read_predictions(
            body, spec.roster, spec.loss, format=file_format, limits=spec.limits, notes=notes
        )
        return (
            (ARRAY, _pack_array(aligned)) if notes is None else (NOTES, json.dumps(notes).encode())
        )
    except MemoryError:
        return MEMORY, b""
    except InvalidPredictions as error:
        # An exception of polars is reported by its name only.
        if "(MemoryError)" in str(error):
            return MEMORY, b""
        listed = [[x.code, x.column, x.count, list(x.ids), x.message] for x in error.problems]
        return REFUSED, json.dumps({"message": str(error), "problems": listed}).encode()


def _describe_crash(error: Exception) -> bytes:
    """Return the type of an exception; the text of a foreign one could hold anything."""
    text = f": {error}" if isinstance(error, MissingDependency) else ""
    return json.dumps(f"{type(error).__name__}{text}").encode()


def _serve(sock: socket.socket, seconds: float) -> None:
    """Answer requests until the server is gone or something fails."""
    spec: Any = None
    while True:
        head, files, *_ = socket.recv_fds(sock, REQUEST_HEADER.size, 1, socket.MSG_WAITALL)
        if len(head) < REQUEST_HEADER.size:
            return
        format_code, only_check, has_file, spec_size, size = REQUEST_HEADER.unpack(head)
        _limit_time(seconds + _SPEC_SECONDS * bool(spec_size))
        try:
            if spec_size:
                spec = _read_spec(_receive(sock, spec_size))
            body = _read_file(files[0]) if has_file else _receive(sock, size)
            kind, content = _parse_body(spec, body, FORMATS[format_code], only_check=only_check)
        except MemoryError:
            kind, content = MEMORY, b""
        except Exception as error:  # noqa: BLE001 - it is reported, and ends the process
            kind, content = BROKEN, _describe_crash(error)
        body = b""
        _send_reply(sock, kind, content)
        if kind in {MEMORY, BROKEN}:
            return


def _limit_memory(memory: int) -> None:
    """Limit memory and open files from now on, and forbid writing files."""
    import resource  # noqa: PLC0415 - not on Windows

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, _FILES))
    with suppress(OSError, ValueError):  # not on macOS
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
        base = int(pages) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (base + memory, base + memory))


def _limit_time(seconds: float) -> None:
    """Limit processor time from now on; beyond it the kernel kills the process."""
    import resource  # noqa: PLC0415 - same

    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu_limit = math.ceil(used.ru_utime + used.ru_stime + seconds) + 1
    _, hard_limit = resource.getrlimit(resource.RLIMIT_CPU)
    if hard_limit == resource.RLIM_INFINITY or cpu_limit < hard_limit:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_limit, hard_limit))


def _warm_up() -> None:
    """Load all modules, so that the first body is read as fast as the others."""
    _ = list(LOSSES.values())  # each is imported when it is first used
    roster, zero_one = Roster.of(2, kind="number"), loss("zero_one")
    with suppress(MissingDependency):
        polars = load_polars()
        file = io.BytesIO()
        polars.DataFrame({"id": [0, 1], "prediction": [1.0, 0.5]}).write_parquet(file)
        read_predictions(file.getvalue(), roster, zero_one)
        read_predictions(_CSV, roster, zero_one)
    read_predictions(_LINES, roster, zero_one, format="jsonl")


def main() -> None:
    """Serve the server at the other end of standard input."""
    settings = json.loads(sys.argv[1])
    isolation = runpy.run_path(str(Path(__file__).parents[1] / "_isolation.py"))
    isolation["die_with_parent"](settings["parent"])
    isolation["forbid_new_privileges"]()
    with socket.socket(fileno=os.dup(0)) as sock:
        _warm_up()
        gc.freeze()  # collections that look at all modules again took half of the time of a body
        # No temporary file for panic reports: looking for a writable folder would take long.
        tempfile.tempdir = os.devnull
        _limit_memory(settings["memory"])
        isolation["apply_landlock"]()
        _send_reply(sock, READY, b"")
        _serve(sock, settings["seconds"])


if __name__ == "__main__":
    main()
