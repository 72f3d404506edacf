"""Conformance suites for extension points.

Run these on your own mechanism, loss, analyst or training callback. Each raises
``AssertionError`` with a sentence that says which requirement is broken. Ladderboard's own
implementations are tested with them too.
"""

from ladderboard.testing._analysts import check_analyst
from ladderboard.testing._losses import check_loss
from ladderboard.testing._mechanisms import check_mechanism
from ladderboard.testing._stopping import check_stopping

__all__ = ["check_analyst", "check_loss", "check_mechanism", "check_stopping"]
