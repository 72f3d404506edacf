"""Conformance suites for extension points.

Wrote a mechanism, a loss or an analyst of your own? Run these on it. Each raises ``AssertionError``
with a sentence that says which promise is broken. Ladderboard's own classes pass through them too.
"""

from ladderboard.testing._analysts import check_analyst
from ladderboard.testing._losses import check_loss
from ladderboard.testing._mechanisms import check_mechanism

__all__ = ["check_analyst", "check_loss", "check_mechanism"]
