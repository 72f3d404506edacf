"""The package's public names and signatures, read from the source without importing it.

So adapters whose libraries are missing are included, and signatures are shown as written.
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
Definition = ast.ClassDef | Function | ast.Assign | ast.AnnAssign
WIDTH = 88


@dataclass(frozen=True)
class Module:
    """A module, parsed from its file."""

    name: str

    @property
    def path(self) -> Path:
        """The file of the module."""
        path = SOURCE.joinpath(*self.name.split("."))
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")

    @property
    def tree(self) -> ast.Module:
        """The syntax tree of the module."""
        return parse_file(self.path)

    @property
    def public(self) -> list[str]:
        """The names in ``__all__``; without one, the module's own classes and functions."""
        for node in self.tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and "__all__" in defined_names(node):
                return list(ast.literal_eval(node.value))  # type: ignore[arg-type]
        defined = [
            node.name for node in self.tree.body if isinstance(node, ast.ClassDef | Function)
        ]
        return sorted(name for name in defined if not name.startswith("_"))

    def find(self, name: str) -> tuple[Module, Definition] | None:
        """Return the definition of a name, here or where it is imported from; None if not ours."""
        for node in iter_statements(self.tree.body):
            if isinstance(node, Definition) and name in defined_names(node):
                return self, node
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ladderboard"):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return Module(str(node.module)).find(alias.name)
        return None


@cache
def parse_file(path: Path) -> ast.Module:
    """Parse a file once; every node gets the lines of the file, for ``source_text``."""
    text = path.read_text()
    lines = text.encode().splitlines()
    tree = ast.parse(text)
    for node in ast.walk(tree):
        node.lines = lines  # type: ignore[attr-defined]
    return tree


def source_text(node: ast.expr) -> str:
    """Return an expression as written, in one line."""
    if node.lineno != node.end_lineno:
        return ast.unparse(node)
    line: bytes = node.lines[node.lineno - 1]  # type: ignore[attr-defined]
    return line[node.col_offset : node.end_col_offset].decode()


def iter_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield every statement of a module, also below ``if TYPE_CHECKING``."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from iter_statements(node.body)


def defined_names(node: ast.stmt) -> list[str]:
    """Return the names that a statement defines."""
    if isinstance(node, ast.ClassDef | Function):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def decorators(node: ast.ClassDef | Function) -> dict[str, ast.expr]:
    """Return the decorators, by their last name."""
    return {
        re.sub(r"\(.*", "", ast.unparse(decorator), flags=re.DOTALL).rpartition(".")[2]: decorator
        for decorator in node.decorator_list
    }


def format_call(head: str, parts: list[str], tail: str) -> str:
    """Return a call in one line, or with a line for each parameter."""
    line = f"{head}({', '.join(parts)}){tail}"
    if len(line) <= WIDTH:
        return line
    return f"{head}(\n" + "".join(f"    {part},\n" for part in parts) + f"){tail}"


def format_parameters(node: Function, *, bound: bool) -> list[str]:
    """Return the parameters of a function, as written."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults += arguments.defaults
    texts = [format_parameter(arg, value) for arg, value in zip(positional, defaults, strict=True)]
    if arguments.posonlyargs:
        texts.insert(len(arguments.posonlyargs), "/")
    texts = texts[1:] if bound else texts
    if arguments.vararg:
        texts.append("*" + format_parameter(arguments.vararg, None))
    elif arguments.kwonlyargs:
        texts.append("*")
    texts += [
        format_parameter(arg, value)
        for arg, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    return [*texts, *(["**" + format_parameter(arguments.kwarg, None)] if arguments.kwarg else [])]


def format_parameter(node: ast.arg, value: ast.expr | None) -> str:
    """Return one parameter with its type and default."""
    kind = f": {source_text(node.annotation)}" if node.annotation else ""
    equals = " = " if kind else "="
    return f"{node.arg}{kind}" + (f"{equals}{source_text(value)}" if value else "")


def format_signature(node: Function, name: str, *, bound: bool) -> str:
    """Return the signature of a function."""
    tail = f" -> {source_text(node.returns)}" if node.returns else ""
    prefix = "await " if isinstance(node, ast.AsyncFunctionDef) else ""
    return format_call(prefix + name, format_parameters(node, bound=bound), tail)


def class_fields(module: Module, node: ast.ClassDef) -> dict[str, str]:
    """Return the fields of a dataclass, a named tuple or a typed dictionary, bases first."""
    texts: dict[str, str] = {}
    for base_module, base in own_bases(module, node):
        texts |= class_fields(base_module, base)
    keyword_only = any("kw_only" in ast.unparse(decorator) for decorator in node.decorator_list)
    for statement in node.body:
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        name, kind, value = statement.target.id, source_text(statement.annotation), statement.value
        if "ClassVar" in kind or name.startswith("_"):
            continue
        text = f"{name}: {kind}"
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
            options = {option.arg: option.value for option in value.keywords}
            if "init" in options:
                continue
            if "default" in options:
                text += f" = {source_text(options['default'])}"
            elif "default_factory" in options:
                text += " = ..."
        elif value:
            text += f" = {source_text(value)}"
        texts[name] = f"*{text}" if keyword_only else text
    return texts


def own_bases(module: Module, node: ast.ClassDef) -> list[tuple[Module, ast.ClassDef]]:
    """Return the bases that are classes of ours, with their modules."""
    bases = [module.find(re.sub(r"\[.*", "", ast.unparse(base))) for base in node.bases]
    return [
        (base_module, base)
        for base_module, base in filter(None, bases)
        if isinstance(base, ast.ClassDef)
    ]


def constructor_signature(module: Module, node: ast.ClassDef) -> str:
    """Return the signature of a class's constructor; nothing if it has none of its own."""
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            return format_call(node.name, format_parameters(statement, bound=True), "")
    kinds = {ast.unparse(base) for base in node.bases}
    if "Enum" in " ".join(kinds):
        return f"class {node.name}({', '.join(sorted(kinds))})"
    if "dataclass" in decorators(node) or kinds & {"NamedTuple", "TypedDict"}:
        texts = list(class_fields(module, node).values())
        keyword_only = [text.removeprefix("*") for text in texts if text.startswith("*")]
        texts = [text for text in texts if not text.startswith("*")]
        return format_call(node.name, [*texts, *(["*", *keyword_only] if keyword_only else [])], "")
    for base_module, base in own_bases(module, node):
        if signature := constructor_signature(base_module, base):
            return signature.replace(base.name, node.name, 1)
    return ""
