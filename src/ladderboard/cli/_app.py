"""The program ``ladderboard``: its commands, each loaded when it is used."""

import re
from importlib import import_module
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from ladderboard._version import __version__

_BRACES = re.compile(r"\{(.*)\}(\.\.\.)?")
_TYPE = re.compile(r" <[^>]*>")


class PlainCommand(TyperCommand):
    """A command that shows its arguments by their names alone.

    Versions of the library differ in what else they show, so that is taken off what comes out.
    """

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the usage line; braces would read as a choice."""
        return [_BRACES.sub(r"\1\2", piece) for piece in super().collect_usage_pieces(ctx)]

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


class LazyGroup(TyperGroup):
    """A group whose verbs are looked up by name, so that one verb does not pay for the others.

    ``homes`` says where each is: a module of this room and, in it, a function or a ``Typer``.
    ``short`` says what a verb does, in the list of all, where its first sentence is too long.
    """

    import_paths: ClassVar[dict[str, str]] = {}
    short_helps: ClassVar[dict[str, str]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the verbs in the order of their homes."""
        return list(self.import_paths)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a verb, loaded; None where there is none of that name."""
        if cmd_name not in self.import_paths:
            for home in self.import_paths:  # what a mistyped verb may have meant is looked for here
                self.get_command(ctx, home)
            return None
        if cmd_name not in self.commands:
            command = _build_command(cmd_name, self.import_paths[cmd_name])
            command.short_help = self.short_helps.get(cmd_name, command.short_help)
            self.commands[cmd_name] = command
        return self.commands[cmd_name]


def load_command(home: str) -> Any:
    """Return what is at home in a module of this room."""
    module, _, name = home.partition(":")
    return getattr(import_module(f"ladderboard.cli.{module}"), name)


def _build_command(verb: str, home: str) -> Any:
    found = load_command(home)
    if isinstance(found, typer.Typer):
        return get_command(found)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(verb, cls=PlainCommand)(found)
    return get_command(alone)


class _RootGroup(LazyGroup):
    import_paths: ClassVar[dict[str, str]] = {
        "plan": "_plan:plan",
        "calibrate": "_plan:calibrate",
        "guard": "_guard:app",
        "serve": "_serve:serve",
        "board": "_board:app",
        "team": "_team:app",
        "backup": "_backup:app",
        "settings": "_doctor:settings",
        "doctor": "_doctor:doctor",
        "login": "_client._login:login",
        "submit": "_client._submit:submit",
        "submissions": "_client._submit:submissions",
        "leaderboard": "_client._leaderboard:leaderboard",
        "ledger": "_client._ledger:ledger",
        "mcp": "_mcp:mcp",
        "verify": "_verify:verify",
        "attack": "_experiment:attack_app",
        "experiment": "_experiment:experiment_app",
    }
    short_helps: ClassVar[dict[str, str]] = {
        "plan": "Plan a holdout: size, questions or error.",
        "calibrate": "Find the best settings of the Shaky Ladder.",
        "guard": "Keep labels behind a budget, in one file.",
        "serve": "Serve boards over HTTP.",
        "backup": "Back up all boards, try it out, restore it.",
        "settings": "List what a server is set to, and by whom.",
        "doctor": "Look whether all that a server needs is well.",
        "login": "Keep the token of a board.",
        "submit": "Submit predictions to a board.",
        "leaderboard": "Show or download the standings of a board.",
        "ledger": "Fetch the public ledger of a board.",
        "mcp": "Give an agent tools to ask a guard or a board.",
        "verify": "Check a board or a guard from what it opened.",
        "attack": "Simulate an attack.",
        "experiment": "Run an experiment: tables and figures.",
    }


app = typer.Typer(
    name="ladderboard",
    cls=_RootGroup,
    help="A leaderboard that stays honest.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ladderboard {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """A leaderboard that stays honest."""
