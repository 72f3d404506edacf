"""The documentation, built as a site once for all tests of a module."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "script"))

import _site as builder


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Build the site, strictly."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    builder.build(folder, builder.reference_pages())
    return folder
