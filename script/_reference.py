"""Write what is generated of the reference: the API from its docstrings, and every ``--help``.

``script/reference`` writes it, and a test compares what is there with what it would write.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _source import (
    SOURCE,
    WIDTH,
    Function,
    Module,
    bases,
    call,
    construction,
    marks,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    "mechanisms", "tape", "losses", "bounds", "analysts", "reduction", "arena", "files", "ledger",
    "holdout", "board", "verify", "client", "server", "adapters", "testing", "errors",
)  # fmt: skip
SECTIONS = re.compile(r"^(Parameters|Raises|Notes|Examples|References)\n-+\n", re.MULTILINE)
PROPERTIES = {"property", "cached_property"}
ENTRY = re.compile(r"[\w*]+(, [\w*]+)*")
FRONT = """# The API

`import ladderboard as lb` gives the names that most people need. Each lives in a room, which has
more of its kind. These pages are made from the docstrings, by `script/reference`; how things fit
together is told by the other pages of this shelf.

| name | what it is |
|---|---|"""
REST = """
## Rooms

A room is a module with a door: what is listed here is all that can be imported from it.

| room | what is in it |
|---|---|"""
HELP = """# What --help says

Every verb, as a terminal of 80 columns shows it; made by `script/reference`.
[The command line](cli.md) says more about each.
"""


def words(text: str, up: str) -> str:
    """A docstring's prose as Markdown."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text.replace("``", "`"))
    parts = re.split(r"(`[^`]*`)", text)
    for at in range(0, len(parts), 2):
        said = parts[at].replace("<", "&lt;")
        said = re.sub(r"(\*\w[^*]*\*)|\*", lambda found: found[1] or r"\*", said)
        parts[at] = re.sub(
            r"docs/([\w/-]+)\.md(#[\w-]+)?",
            lambda found: f"[{found[1]}]({up}{found[1]}.md{found[2] or ''})",
            said,
        )
    return "".join(parts)


def blocks(text: str, up: str) -> str:
    """Paragraphs, examples and drawings as Markdown."""
    made: list[str] = []
    for part in re.split(r"\n\n+", text.strip()):
        if part.startswith(">>>"):
            if made and made[-1].startswith("```python") and made[-1].endswith("```"):
                made[-1] = made[-1].removesuffix("```") + f"\n{part}\n```"
            else:
                made.append(f"```python\n{part}\n```")
        elif part.startswith("    "):
            made.append(f"```text\n{inspect.cleandoc(part)}\n```")
        elif part != "::":
            made.append(words(part.removesuffix("::") + (":" if part.endswith("::") else ""), up))
    return "\n\n".join(made)


def listed(text: str, up: str) -> str:
    """A section of parameters or exceptions as a list; what is said after them stays below."""
    items: list[tuple[str, list[str]]] = []
    lines = text.strip().splitlines()
    while lines and (not lines[0] or lines[0].startswith(" ") or ENTRY.fullmatch(lines[0])):
        line = lines.pop(0)
        if line and not line.startswith(" "):
            items.append((line, []))
        elif line.strip():
            items[-1][1].append(line.strip())
    made = []
    for head, said in items:
        called = ", ".join(f"`{part.strip()}`" for part in head.split(","))
        made.append(f"- {called}: {words(' '.join(said), up)}" if said else f"- {called}")
    return "\n\n".join(filter(None, ["\n".join(made), blocks("\n".join(lines), up)]))


def docstring(node: ast.AST, up: str) -> str:
    """What a docstring says, with its sections."""
    text = ast.get_docstring(node) or ""  # type: ignore[arg-type]
    first, *rest = SECTIONS.split(text)
    made = [blocks(first, up)] if first.strip() else []
    for name, said in zip(rest[::2], rest[1::2], strict=True):
        body = listed(said, up) if name in {"Parameters", "Raises"} else blocks(said, up)
        made.append(body if name == "Examples" else f"**{name}**\n\n{body}")
    return "\n\n".join(made)


def kinds(module: Module, node: ast.ClassDef, known: set[str]) -> list[ast.ClassDef]:
    """The nearest bases that have a page of their own."""
    made = []
    for where, base in bases(module, node):
        made += [base] if base.name in known else kinds(where, base, known)
    return made


def methods(module: Module, node: ast.ClassDef, known: set[str]) -> dict[str, Function]:
    """What can be asked of one, and is not told where its bases are."""
    made: dict[str, Function] = {}
    told: set[str] = set()
    for where, base in bases(module, node):
        if base.name in known:
            told |= set(methods(where, base, known)) | {name for name, _ in inherited(where, base)}
        else:
            made |= methods(where, base, known)
    made |= {
        each.name: each
        for each in node.body
        if isinstance(each, Function)
        and not each.name.startswith("_")
        and not {"overload", "setter"} & set(marks(each))
    }
    return {name: each for name, each in made.items() if name not in told}


def inherited(module: Module, node: ast.ClassDef) -> Iterator[tuple[str, Function]]:
    """Every method of the bases."""
    for where, base in bases(module, node):
        yield from ((each.name, each) for each in base.body if isinstance(each, Function))
        yield from inherited(where, base)


def class_page(module: Module, node: ast.ClassDef, known: set[str], level: str, up: str) -> str:
    """A class: how it is made, what it says of itself, its properties and methods."""
    made = []
    how = construction(module, node)
    if how and "Made by" not in (ast.get_docstring(node) or ""):
        made.append(f"```python\n{how}\n```")
    if over := kinds(module, node, known):
        made.append(f"A kind of {' and '.join(f'`{each.name}`' for each in over)}.")
    made.append(docstring(node, up))
    found = methods(module, node, known)
    read = {name for name, each in found.items() if PROPERTIES & set(marks(each))}
    if read:
        lines = []
        for name in (each for each in found if each in read):
            kind = f" (`{written(found[name].returns)}`)" if found[name].returns else ""
            said = summary(found[name], up)
            lines.append(f"- `{name}`{kind}: {said}" if said else f"- `{name}`{kind}")
        made.append("**Properties**\n\n" + "\n".join(lines))
    for name, each in found.items():
        if name not in read:
            marked = set(marks(each))
            called = f"{node.name}.{name}" if marked & {"classmethod", "staticmethod"} else name
            how = call(each, called, bound="staticmethod" not in marked)
            made.append(f"{level}# {node.name}.{name}")
            made.append(f"```python\n{how}\n```")
            made.append(docstring(each, up))
    return "\n\n".join(filter(None, made))


def heading(module: Module, name: str) -> str:
    """A name, told apart from one that differs in its first letter only: Loss and loss."""
    return f"The function {name}" if name.capitalize() in set(module.public) - {name} else name


def thing_page(module: Module, name: str, known: set[str], level: str, up: str) -> str:
    """A public name with all that is said of it."""
    found = module.find(name)
    if found is None:
        sys.exit(f"{module.name}: {name} is in __all__, and is not found.")
    where, node = found
    if isinstance(node, ast.ClassDef):
        body = class_page(where, node, known, level, up)
    elif isinstance(node, Function):
        body = f"```python\n{call(node, name, bound=False)}\n```\n\n{docstring(node, up)}"
    else:
        body = constant(where, node, up)
    return f"{level} {heading(module, name)}\n\n{body.strip()}".strip()


def constant(module: Module, node: ast.Assign | ast.AnnAssign, up: str) -> str:
    """A name for a value or a type: the comment above it, and what it is if that is short."""
    lines = module.path.read_text().splitlines()
    at, above = node.lineno - 2, []
    while lines[at].startswith("# "):
        above.insert(0, lines[at].removeprefix("# "))
        at -= 1
    said = ast.unparse(node)
    said = said if len(said) <= WIDTH else said.partition(" = ")[0]
    return f"```python\n{said}\n```\n\n{words(' '.join(above), up)}"


def rooms() -> dict[str, list[Module]]:
    """Every room's modules that have a door: one, but for the adapters."""
    made = {name: [Module(f"ladderboard.{name}")] for name in ROOMS}
    there = sorted(path.stem for path in (SOURCE / "ladderboard/adapters").iterdir())
    made["adapters"] += [
        Module(f"ladderboard.adapters.{each}") for each in there if not each.startswith("_")
    ]
    return made


def api() -> dict[str, str]:
    """The pages of the API, by their places in ``docs/``."""
    known = {name for each in rooms().values() for module in each for name in module.public}
    pages = {}
    for room, modules in rooms().items():
        made = []
        for number, module in enumerate(modules):
            made.append(f"{'##' if number else '#'} {module.name}")
            made.append(docstring(module.tree, "../../"))
            level = "###" if number else "##"
            made += [thing_page(module, name, known, level, "../../") for name in module.public]
        pages[f"reference/api/{room}.md"] = "\n\n".join(filter(None, made)) + "\n"
    return {"reference/api.md": front(), **pages}


def front() -> str:
    """The names of ``import ladderboard as lb``, and the rooms."""
    house = Module("ladderboard")
    short = []
    for name in house.public:
        found = None if name in ROOMS else house.find(name)
        if found and isinstance(found[1], ast.ClassDef | ast.FunctionDef):
            room = found[0].name.split(".")[1]
            slug = heading(Module(f"ladderboard.{room}"), name).lower().replace(" ", "-")
            said = summary(found[1], "../")
            short.append(f"| [`lb.{name}`](api/{room}.md#{slug}) | {said} |")
    whole = [
        f"| [`ladderboard.{name}`](api/{name}.md) | {summary(modules[0].tree, '../')} |"
        for name, modules in rooms().items()
    ]
    return "\n".join([FRONT, *short, REST, *whole, ""])


def summary(node: ast.AST, up: str) -> str:
    """The first paragraph of a docstring in one line, for a list or a table."""
    text = (ast.get_docstring(node) or "").partition("\n\n")[0]  # type: ignore[arg-type]
    return words(" ".join(text.split()), up).replace("|", r"\|")


def helps() -> str:
    """Every ``--help``, as a terminal of 80 columns shows it."""
    import typer  # noqa: PLC0415 - the API is read without any library

    from ladderboard.cli._app import app  # noqa: PLC0415 - same

    made = [HELP]

    def visit(command: Any, name: str, above: Any) -> None:
        context = typer.Context(command, info_name=name, parent=above, terminal_width=80)
        said = command.get_help(context).rstrip()
        made.append(f"## {context.command_path}\n\n```text\n{said}\n```\n")
        for below in command.list_commands(context) if hasattr(command, "list_commands") else ():
            visit(command.get_command(context, below), below, context)

    visit(typer.main.get_command(app), "ladderboard", None)
    return "\n".join(made)


def main() -> None:
    """Write all pages, and take away those of rooms that are no more."""
    pages = {**api(), "reference/help.md": helps()}
    for old in (ROOT / "docs/reference/api").glob("*.md"):
        if f"reference/api/{old.name}" not in pages:
            old.unlink()
    for place, text in pages.items():
        file = ROOT / "docs" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


if __name__ == "__main__":
    main()
