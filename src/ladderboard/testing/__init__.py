"""Conformance suites for extension points.

Wrote a mechanism, a loss, an analyst, a storage or a callback of your own? Run these on it. Each
raises ``AssertionError`` with a sentence that says which promise is broken. Ladderboard's own pass
through them too.
"""

from ladderboard.testing._analysts import check_analyst
from ladderboard.testing._losses import check_loss
from ladderboard.testing._mechanisms import check_mechanism
from ladderboard.testing._stopping import check_stopping
from ladderboard.testing._storage import check_storage

__all__ = ["check_analyst", "check_loss", "check_mechanism", "check_stopping", "check_storage"]
