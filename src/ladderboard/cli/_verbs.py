"""Groups of verbs that are loaded when they are wanted."""

from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup
from typer.main import get_command

from ladderboard.cli._plain import PlainCommand

__all__ = ["Verbs", "load"]


class Verbs(TyperGroup):
    """A group whose verbs are looked up by name, so that one verb does not pay for the others.

    ``homes`` says where each is: a module of this room and, in it, a function or a ``Typer``.
    ``short`` says what a verb does, in the list of all, where its first sentence is too long.
    """

    homes: ClassVar[dict[str, str]] = {}
    short: ClassVar[dict[str, str]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the verbs in the order of their homes."""
        return list(self.homes)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a verb, loaded; None where there is none of that name."""
        if cmd_name not in self.homes:
            for each in self.homes:  # what a mistyped verb may have meant is looked for here
                self.get_command(ctx, each)
            return None
        if cmd_name not in self.commands:
            command = _command(cmd_name, self.homes[cmd_name])
            command.short_help = self.short.get(cmd_name, command.short_help)
            self.commands[cmd_name] = command
        return self.commands[cmd_name]


def load(home: str) -> Any:
    """Return what is at home in a module of this room."""
    module, _, name = home.partition(":")
    return getattr(import_module(f"ladderboard.cli.{module}"), name)


def _command(verb: str, home: str) -> Any:
    found = load(home)
    if isinstance(found, typer.Typer):
        return get_command(found)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(verb, cls=PlainCommand)(found)
    return get_command(alone)
