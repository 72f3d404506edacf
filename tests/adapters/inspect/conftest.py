"""Warnings of the real library are ignored."""

import warnings

import pytest


@pytest.hookimpl(trylast=True)
def pytest_configure(config) -> None:
    """Ignore warnings about streams that a run of Inspect leaves open."""
    for category in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning"):
        config.addinivalue_line("filterwarnings", f"ignore::{category}")
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning:inspect_ai")


def pytest_unconfigure(config) -> None:
    """Ignore them at the very end, too."""
    warnings.simplefilter("ignore")
