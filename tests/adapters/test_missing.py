"""An adapter whose library is not installed says in one sentence what to type."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

from ladderboard import adapters

# adapter: (the module that is hidden, the extra that brings it, what makes the adapter look for it
# if importing it does not)
NEEDS: dict[str, tuple[str, str, str]] = {
    "inspect": ("inspect_ai", "inspect", "inspect.read_log('log.eval')"),
    "lightgbm": ("lightgbm", "lightgbm", ""),
    "lightning": ("lightning", "lightning", ""),
    "mcp": ("mcp", "mcp", "mcp.serve(mcp.open_toolset('unix:guard.sock'))"),
    "optuna": ("optuna", "optuna", "optuna.guard_objective(None, None)"),
    "sklearn": ("sklearn", "sklearn", "sklearn.judge_search(None, None, None, None)"),
    "xgboost": ("xgboost", "xgboost", ""),
}
NEEDS_NOTHING: set[str] = {"codabench", "evalai", "lm_eval", "pytest", "results"}

WITHOUT = """
import sys
sys.modules[{module!r}] = None  # as if it were not installed
from ladderboard.errors import MissingDependency
try:
    from ladderboard.adapters import {name}
    {use}
except MissingDependency as error:
    print(error)
"""


def test_every_adapter_is_covered() -> None:
    modules = {
        module.name for module in pkgutil.iter_modules(adapters.__path__) if module.name[0] != "_"
    }
    assert modules == set(NEEDS) | NEEDS_NOTHING


@pytest.mark.parametrize("name", sorted(NEEDS))
def test_a_missing_library_is_one_sentence_with_the_command(name: str) -> None:
    module, extra, use = NEEDS[name]
    code = WITHOUT.format(module=module, name=name, use=use or "pass")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == f"This adapter needs {module}: pip install 'ladderboard[{extra}]'.\n"
