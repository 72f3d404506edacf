"""Tests against heavy libraries run in environments of their own, which script/adapters makes."""

from __future__ import annotations

import os
from pathlib import Path

HERE = Path(__file__).parent
LOCKS = HERE.parents[1] / "requirements/adapters"
ADAPTER = os.environ.get("LADDERBOARD_ADAPTER", "")

collect_ignore = [each.stem for each in LOCKS.glob("*.txt") if each.stem != ADAPTER]


def pytest_configure(config) -> None:
    """Leave warnings of other people's code alone there; ours stay errors."""
    if ADAPTER:
        config.addinivalue_line("filterwarnings", "default")
        config.addinivalue_line("filterwarnings", "error:::ladderboard")
