"""Record the calls of our own functions in this process, for ``script/trace-submission``.

A ``.pth`` file in the environment of the traced server imports this into every Python process that
the server starts. A parser can neither see the server's environment variables nor write to a file,
so everything goes through two files that are mapped into memory before the sandbox closes: one
byte that says which phase is being recorded, and a log of one JSON array per call.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

LOG_BYTES = 2**24  # a sparse file: only what is written takes space
# Python 3.12 runs most of these inside the function that contains them.
_NOT_FUNCTIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<module>"}


def _map(path: Path, size: int) -> mmap.mmap:
    with path.open("a+b") as file:
        file.truncate(size)
        return mmap.mmap(file.fileno(), size)


class _Recorder:
    def __init__(self, source: str, folder: Path) -> None:
        self._source = source + os.sep
        self._phase = _map(folder / "phase", 1)
        self._log = _map(folder / f"{os.getpid()}.log", LOG_BYTES)
        self._lock = threading.Lock()
        self._stacks: dict[tuple[int, int], list[FrameType]] = {}
        ours = (arg for arg in sys.orig_argv if arg.startswith(self._source))
        self._write([self._path(next(ours, self._source))])

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Take an event of ``sys.setprofile``; resumed coroutines and generators are calls, too."""
        phase = self._phase[0]
        code = frame.f_code
        if phase == 0 or event not in {"call", "return"}:
            return
        if not code.co_filename.startswith(self._source):
            return
        # Frames that were entered before the phase began, such as the event loop's, call nothing.
        stack = self._stacks.setdefault((phase, threading.get_ident()), [])
        if event == "return":
            if frame in stack:
                del stack[stack.index(frame) :]
            return
        caller = self._path(stack[-1].f_code.co_filename) if stack else None
        stack.append(frame)
        if code.co_name in _NOT_FUNCTIONS:
            return
        # The argument of the instruction RESUME is 0 at the start of a function.
        resumed = code.co_code[frame.f_lasti + 1] & 3 != 0
        depth = sum(entered.f_code.co_name not in _NOT_FUNCTIONS for entered in stack) - 1
        root = stack[0].f_code
        self._write(
            [
                *(phase, time.monotonic_ns(), threading.current_thread().name, depth, resumed),
                *(self._path(code.co_filename), code.co_qualname, caller),
                f"{self._path(root.co_filename)}:{root.co_qualname}",
            ]
        )

    def _path(self, filename: str) -> str:
        return filename.removeprefix(self._source)

    def _write(self, row: list[Any]) -> None:
        with self._lock:
            self._log.write(json.dumps(row).encode() + b"\n")


def start(source: str) -> None:
    """Record calls of functions below a folder, in this thread and all that are started later."""
    recorder = _Recorder(source, Path(sys.prefix, "trace"))
    threading.setprofile(recorder)
    sys.setprofile(recorder)
