"""An answer in Markdown, appended to a file, as the step summaries of CI services are."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ladderboard.cli._said import printable
from ladderboard.errors import InvalidSetting, LadderboardError

if TYPE_CHECKING:
    from ladderboard.bounds import Certificate
    from ladderboard.holdout import Reply

__all__ = ["noting"]


@contextmanager
def noting(path: Path) -> Iterator[Callable[["Reply"], None]]:
    """Open a summary before anything is asked, so that no question is spent on a wrong path.

    What the block notes is appended; if it is refused, so is the refusal. Should the disk be full
    by then, the answer still counts, and stderr says what was not written.
    """
    try:
        file = path.open("a", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InvalidSetting(
            f"The summary {path} cannot be written: {error.strerror}. Nothing was asked."
        ) from None
    said: list[str] = []
    try:
        yield lambda reply: said.extend(_answer(reply))
    except LadderboardError as error:
        said.extend(_refused(error))
        raise
    finally:
        try:
            with file:
                file.write("".join(f"{line}\n" for line in said))
        except OSError as error:
            print(  # noqa: T201
                f"ladderboard: The summary {printable(path)} was not written: {error.strerror}.",
                file=sys.stderr,
            )


def _answer(reply: "Reply") -> list[str]:
    on = f" on ladder {_plain(reply.ladder)}" if reply.ladder else ""
    rows = [
        ("released", "at the close" if reply.released is None else f"{reply.released:.6g}"),
        ("improved", "yes" if reply.improved else "no"),
        ("question", f"{reply.question:,}{on}"),
        ("questions left", f"{reply.remaining:,}"),
        _bound(reply.bound),
    ]
    return [
        "### Holdout guard",
        "",
        _plain(reply.reason),
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in rows),
        "",
    ]


def _refused(error: LadderboardError) -> list[str]:
    lines = [_plain(line.removeprefix("- ")) for line in str(error).splitlines()]
    return [
        "### Holdout guard",
        "",
        f"**Not answered.** {lines[0]}",
        "",
        *(f"- {line}" for line in lines[1:]),
        *([""] if lines[1:] else []),
    ]


def _bound(bound: "Certificate") -> tuple[str, str]:
    from ladderboard._formatting import format_confidence  # noqa: PLC0415 - only where it is wanted
    from ladderboard.cli._guard_words import interval  # noqa: PLC0415 - same

    what = "best true risk less the released value" if bound.differences else "best true risk"
    return f"{what}, at {format_confidence(bound.beta)}", interval(bound)


def _plain(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return "".join(f"\\{each}" if each in _SPECIAL else each for each in printable(text))


_SPECIAL = set("\\`*_{}[]<>#|~&!")
