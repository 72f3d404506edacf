"""``ladderboard doctor``: versions, settings, database, key file, disks and port, all unchanged.

Every check is a function that returns findings.
"""

from ladderboard.server._doctor._examine import check_installation
from ladderboard.server._doctor._finding import Finding

__all__ = ["Finding", "check_installation"]
