"""Extras: what each adds, and the modules by which it is known to be there."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, NamedTuple

from ladderboard.server._doctor._finding import note, ok

if TYPE_CHECKING:
    from ladderboard.server._doctor._finding import Finding

__all__ = ["EXTRAS", "Extra", "check_extras", "missing"]


class Extra(NamedTuple):
    """An extra of the package: what it adds, and what is imported from what it installs."""

    adds: str
    modules: tuple[str, ...]


# Compared with pyproject.toml by a test, and told by docs/how-to/install.md.
EXTRAS: dict[str, Extra] = {
    "client": Extra(
        "taking part in boards from a shell or Python, and verifying them",
        ("httpx", "typer", "rich"),
    ),
    "files": Extra("predictions from CSV, Parquet, Arrow and JSON Lines", ("polars",)),
    "guard": Extra(
        "a holdout behind a budget from a shell or over HTTP, key files",
        ("polars", "cryptography", "typer", "rich", "starlette", "uvicorn"),
    ),
    "server": Extra(
        "boards on SQLite or PostgreSQL, and the server of them",
        (
            "polars",
            "cryptography",
            "typer",
            "rich",
            "starlette",
            "uvicorn",
            "httpx",
            "psycopg",
            "yaml",
            "fastapi",
            "pydantic",
            "jinja2",
            "python_multipart",
            "itsdangerous",
            "markdown_it",
            *(() if sys.platform == "win32" else ("uvloop",)),
            "httptools",
        ),
    ),
    "arena": Extra(
        "attacks, experiments, calibration, plans and figures",
        ("numba", "scipy", "matplotlib", "typer", "rich", "cloudpickle"),
    ),
    "cluster": Extra(
        "experiments on a Dask cluster",
        ("numba", "scipy", "matplotlib", "typer", "rich", "cloudpickle", "distributed"),
    ),
    "mcp": Extra("tools for research agents", ("httpx", "typer", "rich", "mcp")),
    "sklearn": Extra("searches of scikit-learn that a guard judges", ("sklearn",)),
    "optuna": Extra("studies of Optuna that a guard judges", ("optuna",)),
    "lightning": Extra("trainings of Lightning that a guard stops", ("lightning",)),
    "xgboost": Extra("trainings of XGBoost that a guard stops", ("xgboost",)),
    "lightgbm": Extra("trainings of LightGBM that a guard stops", ("lightgbm",)),
    "inspect": Extra("logs of Inspect AI", ("inspect_ai",)),
}

_OTHERS = ("cluster", "mcp", "sklearn", "optuna", "lightning", "xgboost", "lightgbm", "inspect")


def missing(extra: Extra) -> list[str]:
    """Return the modules of an extra that are not there; nothing is imported."""
    return [name for name in extra.modules if not _is_there(name)]


def _is_there(name: str) -> bool:
    if name in sys.modules:
        return sys.modules[name] is not None
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def check_extras() -> list[Finding]:
    """Look which optional parts are installed. What is not is no problem: it may not be wanted.

    Of those for other libraries, which few want all of, one finding names what is not there.
    """
    found, others = [], []
    for name, extra in EXTRAS.items():
        lacking = missing(extra)
        about = f"extra {name}"
        if not lacking:
            found.append(ok(about, f"Installed: {extra.adds}."))
        elif name in _OTHERS:
            others.append(name)
        else:
            found.append(
                note(
                    about,
                    f"Not installed: {extra.adds} ({', '.join(lacking)} missing).",
                    f"If it is wanted: pip install 'ladderboard[{name}]'",
                )
            )
    if others:
        way = f"Those that are wanted, as in: pip install 'ladderboard[{others[0]}]'"
        found.append(note("other extras", f"Not installed: {', '.join(others)}.", way))
    return found
