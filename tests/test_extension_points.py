"""Nothing outside losses/ and mechanisms/ asks which loss or mechanism it has.

Asking for a class or a name is a missing method: a new loss or mechanism would need an edit there.
"""

import ast
from pathlib import Path

import pytest

from ladderboard.losses import LOSSES, METRICS, Custom, Loss
from ladderboard.mechanisms import MECHANISMS, Mechanism

SOURCE = Path(__file__).parent.parent / "src" / "ladderboard"
NAMED = {"loss", "mechanism", "metric"}
NAMES = {*LOSSES, *METRICS, *MECHANISMS}
# Comparisons with a word that is also the name of something else.
OTHER_NAMES = {
    "name == 'one_bit'": "the attack",
    "source.name == 'score'": "a column",
    "kind == 'ladder'": "an entry of the ledger",
    "fields['kind'] == 'ladder'": "an entry of the ledger",
}


def concrete_classes():
    """Return the names of all losses and mechanisms, with their parents but for the base class."""
    kinds = [*LOSSES.values(), *MECHANISMS.values(), Custom]
    parents = {parent for kind in kinds for parent in kind.__mro__}
    return {
        parent.__name__
        for parent in parents
        if issubclass(parent, (Loss, Mechanism)) and parent not in {Loss, Mechanism}
    }


CLASSES = concrete_classes()


def named_classes(node):
    """Return the classes of losses and mechanisms that an expression names."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    names |= {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return names & CLASSES


def is_name_of_one(node):
    """Return whether an expression is the name of a loss or mechanism: ``loss.name`` and such."""
    if isinstance(node, ast.Attribute) and node.attr == "name":
        owner = node.value
        text = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
        return text in CLASSES or any(word in text for word in NAMED)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.slice.value in NAMED and isinstance(node.value, ast.Subscript)
    return False


def registered_names(node):
    """Return the registered names that an expression is, or that are items of it."""
    items = node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else [node]
    return {item.value for item in items if isinstance(item, ast.Constant)} & NAMES


def calls(node, *names):
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") in names


def asks_for_kind(node):
    """Return whether a node asks for the class or the name of a loss or a mechanism."""
    if calls(node, "isinstance", "issubclass"):
        return bool(named_classes(node.args[1]))
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        asks_type = any(calls(part, "type") for side in sides for part in ast.walk(side))
        return (
            (asks_type and any(map(named_classes, sides)))
            or any(isinstance(side, ast.Name) and side.id in CLASSES for side in sides)
            or any(map(is_name_of_one, sides))
            or (any(map(registered_names, sides)) and ast.unparse(node) not in OTHER_NAMES)
        )
    if isinstance(node, ast.MatchClass):
        return bool(named_classes(node.cls))
    if isinstance(node, ast.MatchValue):
        return bool(registered_names(node.value))
    return is_table_of_kinds(node)


def is_table_of_kinds(node):
    """Return whether a node is a table of losses or mechanisms, or looks one of them up."""
    if isinstance(node, ast.Dict):
        return any(isinstance(key, ast.Name) and key.id in CLASSES for key in node.keys)
    if isinstance(node, ast.Set):
        return len(registered_names(node)) > 1
    return isinstance(node, ast.Subscript) and is_name_of_one(node.slice)


def type_switches(source):
    """Return the lines that ask for the class or the name of a loss or a mechanism."""
    return [
        getattr(node, "lineno", 0) for node in ast.walk(ast.parse(source)) if asks_for_kind(node)
    ]


def test_no_package_asks_for_the_class_or_name_of_a_loss_or_mechanism():
    switches = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).parts[0] not in {"losses", "mechanisms", "testing"}
        for line in type_switches(path.read_text(encoding="utf-8"))
    ]
    assert switches == []


@pytest.mark.parametrize(
    "code",
    [
        "isinstance(loss, ZeroOne)",
        "isinstance(loss, losses.Brier | Log)",
        "issubclass(kind, (int, Ladder))",
        "type(mechanism) is ShakyLadder",
        "type(loss) in (ZeroOne, TopK)",
        "kind is OneBit",
        "loss.name == 'zero_one'",
        "self.mechanism.name in {'exact'}",
        "opening['loss']['loss'] == Shortfall.name",
        "board['mechanism']['mechanism'] == 'one_bit'",
        "{Noisy: 'text'}",
        "board.key == 'exact'",
        "'ladder' != key",
        "name in ('rmse', 'mae')",
        "_ACRONYMS = {'rmse', 'mae'}",
        "TEXTS[mechanism.name]",
        "match key:\n    case 'growing_ladder':\n        pass",
        "match loss:\n    case ZeroOne():\n        pass",
        "match loss:\n    case losses.ZeroOne(classes=None):\n        pass",
    ],
)
def test_the_search_finds_every_way_to_ask(code):
    assert type_switches(code)


@pytest.mark.parametrize(
    "code",
    [
        "isinstance(loss, Loss)",
        "isinstance(mechanism, Mechanism)",
        "ShakyLadder.calibrated(n=n, questions=k)",
        "type(loss) in LOSSES.values()",
        "{'exact': Exact()}",
        "rules['ladder'] == 'board'",
        "fields['kind'] == 'ladder'",
        "{'rules', 'ladder'}",
        "team.name == name",
    ],
)
def test_the_search_leaves_other_code_alone(code):
    assert not type_switches(code)
