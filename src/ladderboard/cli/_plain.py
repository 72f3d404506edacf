"""A verb whose help has plain words: BOARD, where the library would have {BOARD} and <str>."""

import re
from typing import Any

from typer.core import TyperCommand

__all__ = ["PlainCommand"]

_BRACES = re.compile(r"\{(.*)\}(\.\.\.)?")
_TYPE = re.compile(r" <[^>]*>")


class PlainCommand(TyperCommand):
    """A command that shows its arguments by their names alone.

    Versions of the library differ in what else they show, so that is taken off what comes out.
    """

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the usage line; braces would read as a choice."""
        return [_BRACES.sub(r"\1\2", each) for each in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options down; a type is shown where nothing better is known."""
        found: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            name, said = record
            if param.param_type_name == "argument":
                found["Arguments"].append((_TYPE.sub("", name), said))
            else:
                found["Options"].append((name.replace("<int range>", "<int>"), said))
        for title, records in found.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
