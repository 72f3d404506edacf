"""Fixtures for all tests. Property tests are derandomised: a failure stays until it is mended."""

from __future__ import annotations

import pytest
from hypothesis import settings

from ladderboard.tape import Tape

settings.register_profile("fixed", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("fixed")


class ScriptedTape(Tape):
    """A tape that plays back given draws: row q holds the draws of question q."""

    def __init__(self, rows):
        super().__init__(seed=0)
        self.rows = rows

    def draw(self, laws, *, ladder, question, context=b""):
        assert len(self.rows[question]) == len(laws)
        return tuple(self.rows[question])


@pytest.fixture
def scripted():
    """Make a tape from a list of rows."""
    return ScriptedTape
