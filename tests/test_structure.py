"""The structure of ``src``: packages, the modules in them, and what they import of each other."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"
FILES = sorted(SRC.rglob("*.py"))
FOLDERS = sorted({path.parent for path in FILES})
MODULES_IN_A_FOLDER = 15  # without __init__.py
MODULES_WITH_A_PREFIX = 3
# Class names with more than one class, each with its reason.
_IN_OPENAPI = "the class of this name in _api/_models.py is part of the published OpenAPI schema"
SHARED_CLASS_NAMES = {
    "GuardStopping": "one callback for each training library, imported from that library's adapter",
    "Problem": _IN_OPENAPI,
    "Receipt": _IN_OPENAPI,
    "Setting": "one is a row of the organiser's page, the other a setting of the server",
}


def module_name(path: Path) -> str:
    """Return the dotted name of a file.

    >>> module_name(SRC / "ladderboard" / "board" / "__init__.py")
    'ladderboard.board'
    """
    return ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


MODULES = frozenset(map(module_name, FILES))


def imported_modules(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the module of every import of ours, those inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield node.lineno, inner if inner in MODULES else node.module


def is_private_to_others(importer: str, imported: str) -> bool:
    """Return whether a module lies behind the ``__init__.py`` of a package that we are not in.

    >>> is_private_to_others("ladderboard.cli._run", "ladderboard.board._board")
    True
    >>> is_private_to_others("ladderboard.board._board", "ladderboard.board._rules")
    False
    >>> is_private_to_others("ladderboard.board._board", "ladderboard.board._rules._parse")
    True
    """
    parts = imported.split(".")
    owners = (".".join(parts[:depth]) for depth, part in enumerate(parts) if part.startswith("_"))
    return any(importer != owner and not importer.startswith(f"{owner}.") for owner in owners)


def test_no_module_imports_a_private_module_of_another_package():
    offenders = [
        f"{path.relative_to(SRC)}:{line} imports {imported}"
        for path in FILES
        for line, imported in imported_modules(ast.parse(path.read_text("utf-8")))
        if imported.startswith("ladderboard.") and is_private_to_others(module_name(path), imported)
    ]
    assert not offenders, "\n".join(["Export it from the package's __init__.py:", *offenders])


def test_no_folder_has_too_many_modules_side_by_side():
    sizes = {folder: len(_modules_in(folder)) for folder in FOLDERS}
    offenders = {str(path): size for path, size in sizes.items() if size > MODULES_IN_A_FOLDER}
    assert not offenders, f"Group what changes together into sub-packages: {offenders}"


def test_no_folder_has_a_family_of_modules_with_one_prefix():
    offenders = {
        f"{folder.relative_to(SRC)}/_{prefix}*": count
        for folder in FOLDERS
        for prefix, count in Counter(map(_first_word, _modules_in(folder))).items()
        if count > MODULES_WITH_A_PREFIX
    }
    assert not offenders, f"Make a sub-package of each: {offenders}"


def test_each_class_name_is_used_once():
    names = Counter(
        node.name
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, count in names.items() if count > 1} == set(SHARED_CLASS_NAMES)


def test_only_packages_and_errors_list_their_names():
    offenders = [
        str(path.relative_to(SRC))
        for path in FILES
        if path.name not in {"__init__.py", "errors.py"}
        and any(_assigns_all(node) for node in ast.parse(path.read_text("utf-8")).body)
    ]
    assert not offenders, f"__all__ is for __init__.py and errors.py: {offenders}"


def _modules_in(folder: Path) -> list[str]:
    return [path.stem for path in folder.glob("*.py") if path.name != "__init__.py"]


def _first_word(module: str) -> str:
    return module.lstrip("_").split("_")[0]


def _assigns_all(node: ast.stmt) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)
