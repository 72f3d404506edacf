"""The documentation, built as a site once for all tests of a module."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "browser"), str(HERE.parents[1] / "script")]

import _site as builder  # noqa: E402


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Build the site, strictly."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    builder.build(folder)
    return folder
