"""The documentation, built as a site once for all tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "script"))

import _site as builder

from support.built_once import build_once


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Build the site, strictly."""

    def build(folder):
        builder.build(folder / "site", builder.reference_pages())

    return build_once(tmp_path_factory, "docs", build) / "site"
