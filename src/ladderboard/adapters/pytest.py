"""pytest: the pass and fail of a run become one look at a gate.

    pytest --ladderboard-gate gate.db --ladderboard-require not-worse

People who see which tests failed can fit the code to them, and then verdicts promise nothing about
other cases; ``--ladderboard-hide`` hides names and details of failures.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ladderboard.errors import LadderboardError

if TYPE_CHECKING:
    from ladderboard.holdout import Verdict

_URLS = ("http://", "https://", "unix:")
_WARNING = (
    "The names of failed tests were shown. Verdicts promise nothing if code is fitted to them."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the gate."""
    group = parser.getgroup("ladderboard", "Ladderboard gate")
    group.addoption(
        "--ladderboard-gate", metavar="FILE", help="A gate of scores: its file, or its address."
    )
    group.addoption(
        "--ladderboard-require",
        choices=["better", "not-worse"],
        help="The run succeeds if and only if this is proven.",
    )
    group.addoption(
        "--ladderboard-margin", type=float, help='The margin of "not worse"; the gate\'s own.'
    )
    group.addoption(
        "--ladderboard-promote",
        action="store_true",
        help="Make this run the incumbent instead of checking it.",
    )
    group.addoption(
        "--ladderboard-results", metavar="FILE", help="Write pass or fail of every test as JSON."
    )
    group.addoption(
        "--ladderboard-hide",
        action="store_true",
        help="Show neither which tests failed nor how many.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collect results if a gate or a file for them is given; refuse options that need a gate."""
    for name in ("require", "margin", "promote"):
        value = config.getoption(f"ladderboard_{name}")
        is_given = value is not None and value is not False
        if is_given and not config.getoption("ladderboard_gate"):
            raise pytest.UsageError(f"--ladderboard-{name} needs --ladderboard-gate FILE.")
    if config.getoption("ladderboard_gate") or config.getoption("ladderboard_results"):
        config.pluginmanager.register(GateReporter(config), "ladderboard-gate")


class GateReporter:
    """Collects the results of a run, and looks at the gate at its end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._hide = bool(config.getoption("ladderboard_hide"))
        self._passed: dict[str, bool] = {}
        self._lines: list[str] = []
        if self._hide:
            config.option.tbstyle = "no"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a phase of a test: a test passed if no phase failed and its call passed."""
        passed = self._passed.setdefault(report.nodeid, True)
        self._passed[report.nodeid] = passed and report.passed

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        """Show the same for every test, if results are hidden."""
        if not self._hide or not isinstance(report, pytest.TestReport):
            return None
        # Setup is the one phase that every test has, also one that is skipped or has an error.
        return ("run", ".", "RUN") if report.when == "setup" else ("", "", "")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the results and look at the gate; decide the exit code of the run."""
        if hasattr(self._config, "workerinput") or not self._passed:  # a worker of pytest-xdist
            return
        path = self._config.getoption("ladderboard_results")
        if path:
            Path(path).write_text(json.dumps(self._passed, indent=1), encoding="utf-8")
        if not self._config.getoption("ladderboard_gate"):
            return
        try:
            succeeded = self._look()
        except LadderboardError as error:
            self._lines.append(f"No verdict: {error}")
            succeeded = False
        required = self._config.getoption("ladderboard_require") is not None
        if required or self._hide or not succeeded:
            session.exitstatus = pytest.ExitCode.OK if succeeded else pytest.ExitCode.TESTS_FAILED

    def _look(self) -> bool:
        """Look at the gate, or promote; return whether the run succeeds."""
        from ladderboard.holdout import Gate  # noqa: PLC0415 - only with a gate

        option = self._config.getoption
        address = option("ladderboard_gate")
        gate: Any = Gate.connect(address) if address.startswith(_URLS) else Gate.open(address)
        values = [float(passed) for passed in self._passed.values()]
        scores = {"id": list(self._passed), "score": values}
        try:
            if option("ladderboard_promote"):
                number = gate.promote(scores)
                self._lines.append(f"This run is now the incumbent, number {number}.")
                return True
            verdict: Verdict = gate.check(scores, margin=option("ladderboard_margin"))
        finally:
            gate.close()
        self._lines.append(str(verdict))
        require = option("ladderboard_require")
        if require is None:
            return True
        return verdict.better if require == "better" else verdict.not_worse

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the verdict."""
        if not self._lines:
            return
        terminalreporter.section("Ladderboard gate")
        for line in self._lines:
            terminalreporter.line(line)
        if not self._hide:
            terminalreporter.line(_WARNING)
