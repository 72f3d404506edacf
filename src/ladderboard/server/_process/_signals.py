"""Signal handlers of a server."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import uvicorn


@contextmanager
def stop_on_signals(server: uvicorn.Server) -> Iterator[None]:
    """Let signals stop only the server, so that the code after it still runs.

    uvicorn handles SIGINT and SIGTERM itself and, when it has stopped, raises them again for the
    previous handlers: these.
    """

    def stop(_: int) -> None:
        server.should_exit = True

    with handle_signals({"SIGINT": stop, "SIGTERM": stop, "SIGHUP": stop}):
        yield


@contextmanager
def handle_signals(handlers: Mapping[str, Callable[[int], None]]) -> Iterator[None]:
    """Handle signals by name, where they exist; ignored signals stay ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers_by_signal = {
        getattr(signal, name): handler
        for name, handler in handlers.items()
        if hasattr(signal, name)
    }
    before = {number: signal.getsignal(number) for number in handlers_by_signal}
    for number, handler in handlers_by_signal.items():
        if before[number] != signal.SIG_IGN:  # as under nohup
            signal.signal(number, _make_handler(handler))
    if hasattr(signal, "pthread_sigmask"):  # signals that arrived during reexec are delivered now
        signal.pthread_sigmask(signal.SIG_UNBLOCK, handlers_by_signal)
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def _make_handler(callback: Callable[[int], None]) -> Callable[[int, Any], None]:
    return lambda number, _: callback(number)


def die_from_signal(number: int) -> None:
    """End this process at once, as the signal would without a handler."""
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
    os._exit(128 + number)  # process 1 of a container survives its own signals


def is_terminal_closed(terminal: bool) -> bool:
    """Tell whether the terminal of the start has been closed."""
    return terminal and not has_terminal()


def has_terminal() -> bool:
    """Tell whether standard input is a terminal."""
    try:
        return sys.stdin.isatty()
    except (AttributeError, ValueError):  # closed, or never there
        return False
