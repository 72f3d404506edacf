"""The program ``ladderboard``: its commands, each loaded when it is used."""

import re
from importlib import import_module
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from ladderboard._version import __version__
from ladderboard.errors import InvalidSetting

_BRACES = re.compile(r"\{(.*)\}(\.\.\.)?")
_TYPE = re.compile(r" <[^>]*>")


class PlainCommand(TyperCommand):
    """A command whose help shows arguments by their names alone.

    Versions of Typer differ in what else they show, so the rest is removed from their output.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line; say where a token belongs instead."""
        given = any(word.partition("=")[0] == "--token" for word in args)
        if given and any("--insecure" in param.opts for param in self.params):
            raise InvalidSetting(
                "A token on the command line can be seen by other users of this machine. Save it "
                "with ladderboard login, or set LADDERBOARD_TOKEN."
            )
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line, without braces, which would read as a choice."""
        return [_BRACES.sub(r"\1\2", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the lists of arguments and options; an option without a metavar shows its type."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            name, text = record
            if param.param_type_name == "argument":
                sections["Arguments"].append((_TYPE.sub("", name), text))
            else:
                sections["Options"].append((name.replace("<int range>", "<int>"), text))
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class LazyGroup(TyperGroup):
    """A group that imports a command's module only when the command is used.

    ``import_paths`` maps a command to ``module:name``: a module of this package and, in it, a
    function or a ``Typer``. ``short_helps`` describes commands in the list of commands, which
    imports only those that it does not describe: their first sentence is short enough.
    ``headings`` divides that list; without it there is one heading.
    """

    import_paths: ClassVar[dict[str, str]] = {}
    short_helps: ClassVar[dict[str, str]] = {}
    headings: ClassVar[dict[str, list[str]]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, in the order of ``import_paths``."""
        return list(self.import_paths)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command and return it; None if the name is unknown."""
        if cmd_name not in self.import_paths:
            # Typer suggests similar names from ``commands``, and uses nothing else of it.
            self.commands: dict[str, Any] = dict.fromkeys(self.import_paths)
            return None
        if cmd_name not in self.commands:
            self.commands[cmd_name] = _build_command(cmd_name, self.import_paths[cmd_name])
        return self.commands[cmd_name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands, under their headings."""
        width = max(map(len, self.import_paths))
        for heading, names in (self.headings or {"Commands": self.list_commands(ctx)}).items():
            helps = (
                self.short_helps.get(name) or self.get_command(ctx, name).get_short_help_str()
                for name in names
            )
            rows = [(name.ljust(width), text) for name, text in zip(names, helps, strict=True)]
            with formatter.section(heading):
                formatter.write_dl(rows)


def make_group(
    name: str, help_text: str, import_paths: dict[str, str], short_helps: dict[str, str]
) -> typer.Typer:
    """Return a group of commands that are loaded when they are used; see :class:`LazyGroup`."""
    attributes = {"import_paths": import_paths, "short_helps": short_helps}
    group = typer.Typer(
        name=name,
        cls=type("Group", (LazyGroup,), attributes),
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
    )
    group.callback(help=help_text)(lambda: None)
    return group


def load_command(import_path: str) -> Any:
    """Import a module of this package and return the name in it, from ``module:name``."""
    module, _, name = import_path.partition(":")
    return getattr(import_module(f"ladderboard.cli.{module}"), name)


def _build_command(name: str, import_path: str) -> Any:
    loaded = load_command(import_path)
    if isinstance(loaded, typer.Typer):
        return get_command(loaded)
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name, cls=PlainCommand)(loaded)
    return get_command(single)


# Each command with its module and its line in the list of commands, under what people do with it.
_COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Take part in a board": {
        "login": ("_client._login:login", "Save the token for a board."),
        "submit": ("_client._submit:submit", "Submit predictions to a board."),
        "submissions": ("_client._submit:submissions", "List a team's submissions, newest first."),
        "leaderboard": (
            "_client._leaderboard:leaderboard",
            "Show or download the standings of a board.",
        ),
        "ledger": ("_client._ledger:ledger", "Fetch the public ledger of a board."),
        "members": ("_client._members:members", "List the people in your team, or change them."),
        "invite": ("_client._members:invite", "Invite people into your team."),
        "terms": ("_client._members:terms", "Show the terms of a board, or accept them."),
    },
    "Run boards": {
        "board": ("_board:app", "Create, run and move boards."),
        "team": ("_team:app", "Add teams and manage their tokens."),
        "serve": ("_serve:serve", "Serve boards over HTTP."),
        "backup": ("_backup:app", "Back up all boards; check and restore backups."),
        "settings": ("_doctor:settings", "List a server's settings and their sources."),
        "doctor": ("_doctor:doctor", "Check the installation."),
    },
    "Guard a test set": {
        "guard": ("_guard:app", "Keep labels behind a budget, in one file."),
        "gate": ("_guard._gate:app", "Compare candidates with an incumbent."),
        "grade": ("_guard._grade:app", "Grade the submissions of agents."),
        "mcp": ("_mcp:mcp", "Serve a guard or a board to an agent over MCP."),
    },
    "Plan and check": {
        "plan": ("_plan:plan", "Plan a holdout: size, questions or error."),
        "verify": ("_verify:verify", "Verify a closed board or guard from its bundle."),
    },
    "Research": {
        "attack": ("_experiment:attack_app", "Simulate an attack."),
        "experiment": ("_experiment:experiment_app", "Run an experiment: tables and figures."),
        "calibrate": ("_plan:calibrate", "Find the best settings of the Shaky Ladder."),
    },
}


class _RootGroup(LazyGroup):
    import_paths: ClassVar[dict[str, str]] = {
        name: path for commands in _COMMANDS.values() for name, (path, _) in commands.items()
    }
    short_helps: ClassVar[dict[str, str]] = {
        name: text for commands in _COMMANDS.values() for name, (_, text) in commands.items()
    }
    headings: ClassVar[dict[str, list[str]]] = {
        heading: list(commands) for heading, commands in _COMMANDS.items()
    }


app = typer.Typer(
    name="ladderboard",
    cls=_RootGroup,
    help="Leaderboards and holdouts that resist overfitting, however often people submit.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(requested: bool) -> None:
    if requested:
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
    """Leaderboards and holdouts that resist overfitting."""
