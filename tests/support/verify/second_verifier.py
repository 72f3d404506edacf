"""The second verifier, ``examples/check_bundle.py``, run in the test's process."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import sys
from functools import cache
from pathlib import Path
from unittest import mock

PROGRAM = Path(__file__).parents[3] / "examples" / "check_bundle.py"


@cache
def load_program():
    """Return the program as a module."""
    spec = importlib.util.spec_from_file_location("_ladderboard_test_check_bundle", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_second_verifier(path, *options):
    """Check a file; return the first line of the output, or what differs."""
    program, output = load_program(), io.StringIO()
    arguments = ["check_bundle.py", str(path), *options]
    with mock.patch.object(sys, "argv", arguments), contextlib.redirect_stdout(output):
        try:
            program.main()
        except program.Differs as differs:
            return str(differs)
    return output.getvalue().splitlines()[0]
