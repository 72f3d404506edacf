"""Signals that end a server, and nothing else."""

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
    """Let signals end the server and nothing else, so that what comes after it is done, too.

    uvicorn takes SIGINT and SIGTERM itself and, when it has ended, sends them to whoever had them
    before: that is us.
    """

    def stop(_: int) -> None:
        server.should_exit = True

    with handle_signals({"SIGINT": stop, "SIGTERM": stop, "SIGHUP": stop}):
        yield


@contextmanager
def handle_signals(handlers: Mapping[str, Callable[[int], None]]) -> Iterator[None]:
    """Call these at their signals, where there are such; those that are ignored stay so."""
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
    """End this process at once, as if nobody had handled the signal."""
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
    os._exit(128 + number)  # the first process of a container is spared by its own signals


def is_terminal_closed(terminal: bool) -> bool:
    """Tell whether a terminal that was there at the start is no more."""
    return terminal and not has_terminal()


def has_terminal() -> bool:
    """Tell whether somebody sits at a terminal."""
    try:
        return sys.stdin.isatty()
    except (AttributeError, ValueError):  # closed, or never there
        return False
