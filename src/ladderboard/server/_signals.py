"""Signals that end a server, and nothing else."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import uvicorn

__all__ = ["stopped_by_signals"]


@contextmanager
def stopped_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Let signals end the server and nothing else, so that what comes after it is done, too.

    uvicorn takes SIGINT and SIGTERM itself and, when it has ended, sends them to whoever had them
    before: that is us.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        server.should_exit = True

    names = ("SIGINT", "SIGTERM", "SIGHUP")
    wanted = [getattr(signal, each) for each in names if hasattr(signal, each)]
    before = {each: signal.getsignal(each) for each in wanted}
    for each, handler in before.items():
        if handler != signal.SIG_IGN:  # as nohup wants it
            signal.signal(each, stop)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
