"""The package's source, read and not imported: what is public, and how it is called.

An adapter whose library is missing is read all the same, and signatures stand as they were written.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).resolve().parents[1] / "src"
Function = ast.FunctionDef | ast.AsyncFunctionDef
Thing = ast.ClassDef | Function | ast.Assign | ast.AnnAssign
WIDTH = 88


@dataclass(frozen=True)
class Module:
    """A module as it stands in its file."""

    name: str

    @property
    def path(self) -> Path:
        """Its file."""
        path = SOURCE.joinpath(*self.name.split("."))
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")

    @property
    def tree(self) -> ast.Module:
        """Its syntax."""
        return parse(self.path)

    @property
    def public(self) -> list[str]:
        """The names in ``__all__``; without one, the module's own classes and functions."""
        for node in self.tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and "__all__" in names(node):
                return list(ast.literal_eval(node.value))  # type: ignore[arg-type]
        own = [node.name for node in self.tree.body if isinstance(node, ast.ClassDef | Function)]
        return sorted(name for name in own if not name.startswith("_"))

    def find(self, name: str) -> tuple[Module, Thing] | None:
        """Where a name is defined: here, or where it is imported from; None outside the house."""
        for node in walk(self.tree.body):
            if isinstance(node, Thing) and name in names(node):
                return self, node
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ladderboard"):
                for each in node.names:
                    if (each.asname or each.name) == name:
                        return Module(str(node.module)).find(each.name)
        return None


@cache
def parse(path: Path) -> ast.Module:
    """Read a file once; every expression keeps the lines that it stands in."""
    text = path.read_text()
    lines = text.encode().splitlines()
    tree = ast.parse(text)
    for node in ast.walk(tree):
        node.lines = lines  # type: ignore[attr-defined]
    return tree


def written(node: ast.expr) -> str:
    """An expression as it was written, in one line."""
    if node.lineno != node.end_lineno:
        return ast.unparse(node)
    line: bytes = node.lines[node.lineno - 1]  # type: ignore[attr-defined]
    return line[node.col_offset : node.end_col_offset].decode()


def walk(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Every statement of a module, those for type checkers too."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from walk(node.body)


def names(node: ast.stmt) -> list[str]:
    """What a statement names."""
    if isinstance(node, ast.ClassDef | Function):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def marks(node: ast.ClassDef | Function) -> dict[str, ast.expr]:
    """The decorators, by their last name."""
    return {
        re.sub(r"\(.*", "", ast.unparse(each), flags=re.DOTALL).rpartition(".")[2]: each
        for each in node.decorator_list
    }


def wrapped(head: str, parts: list[str], tail: str) -> str:
    """A call in one line, or with a line for each parameter."""
    line = f"{head}({', '.join(parts)}){tail}"
    if len(line) <= WIDTH:
        return line
    return f"{head}(\n" + "".join(f"    {part},\n" for part in parts) + f"){tail}"


def parameters(node: Function, *, bound: bool) -> list[str]:
    """The parameters of a function, as they were written."""
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    values: list[ast.expr | None] = [None] * (len(plain) - len(given.defaults))
    values += given.defaults
    made = [parameter(each, value) for each, value in zip(plain, values, strict=True)]
    if given.posonlyargs:
        made.insert(len(given.posonlyargs), "/")
    made = made[1:] if bound else made
    if given.vararg:
        made.append("*" + parameter(given.vararg, None))
    elif given.kwonlyargs:
        made.append("*")
    made += [
        parameter(each, value)
        for each, value in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]
    return [*made, *(["**" + parameter(given.kwarg, None)] if given.kwarg else [])]


def parameter(node: ast.arg, value: ast.expr | None) -> str:
    """One parameter with its type and what it is if left out."""
    kind = f": {written(node.annotation)}" if node.annotation else ""
    equals = " = " if kind else "="
    return f"{node.arg}{kind}" + (f"{equals}{written(value)}" if value else "")


def call(node: Function, name: str, *, bound: bool) -> str:
    """How a function is called."""
    tail = f" -> {written(node.returns)}" if node.returns else ""
    prefix = "await " if isinstance(node, ast.AsyncFunctionDef) else ""
    return wrapped(prefix + name, parameters(node, bound=bound), tail)


def fields(module: Module, node: ast.ClassDef) -> dict[str, str]:
    """What a dataclass, a named tuple or a typed dictionary is made of, bases first."""
    made: dict[str, str] = {}
    for where, base in bases(module, node):
        made |= fields(where, base)
    alone = any("kw_only" in ast.unparse(each) for each in node.decorator_list)
    for each in node.body:
        if not isinstance(each, ast.AnnAssign) or not isinstance(each.target, ast.Name):
            continue
        kind, value = written(each.annotation), each.value
        if "ClassVar" in kind or each.target.id.startswith("_"):
            continue
        said = f"{each.target.id}: {kind}"
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
            options = {option.arg: option.value for option in value.keywords}
            if "init" in options:
                continue
            if "default" in options:
                said += f" = {written(options['default'])}"
            elif "default_factory" in options:
                said += " = ..."
        elif value:
            said += f" = {written(value)}"
        made[each.target.id] = f"*{said}" if alone else said
    return made


def bases(module: Module, node: ast.ClassDef) -> list[tuple[Module, ast.ClassDef]]:
    """The bases that are classes of the house, with the modules they stand in."""
    found = [module.find(re.sub(r"\[.*", "", ast.unparse(base))) for base in node.bases]
    return [(at, each) for at, each in filter(None, found) if isinstance(each, ast.ClassDef)]


def construction(module: Module, node: ast.ClassDef) -> str:
    """How one is made; nothing for a class that says nothing about it."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            return wrapped(node.name, parameters(each, bound=True), "")
    kinds = {ast.unparse(each) for each in node.bases}
    if "Enum" in " ".join(kinds):
        return f"class {node.name}({', '.join(sorted(kinds))})"
    if "dataclass" in marks(node) or kinds & {"NamedTuple", "TypedDict"}:
        said = list(fields(module, node).values())
        alone = [each.removeprefix("*") for each in said if each.startswith("*")]
        said = [each for each in said if not each.startswith("*")]
        return wrapped(node.name, [*said, *(["*", *alone] if alone else [])], "")
    for where, base in bases(module, node):
        if made := construction(where, base):
            return made.replace(base.name, node.name, 1)
    return ""
