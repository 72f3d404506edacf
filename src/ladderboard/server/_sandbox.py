"""The sandboxed parsers for code that is not asynchronous: the close, and the command line."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ladderboard.server._parse import Parsers, Spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.board import Parse
    from ladderboard.files import Limits, Roster
    from ladderboard.holdout import Submission
    from ladderboard.losses import Loss

__all__ = ["sandbox"]


class _Body(NamedTuple):
    content: bytes
    format: str | None


@contextmanager
def sandbox() -> Iterator[Parse]:
    """Give a function that parses a file in a process of its own, with limits on time and memory.

    The process is started with the first file, and ended with the block. It knows no label and no
    key. Not for a thread in which an event loop runs.
    """
    with asyncio.Runner() as runner:
        parsers = Parsers(1)

        def parse(
            roster: Roster,
            loss: Loss,
            limits: Limits,
            body: bytes,
            format: str | None,  # noqa: A002 - the word people use
        ) -> Submission:
            spec = Spec(roster, loss, limits)
            key = (id(roster), limits)
            return runner.run(parsers.read(key, spec, _Body(body, format)))

        try:
            yield parse
        finally:
            runner.run(parsers.close())
