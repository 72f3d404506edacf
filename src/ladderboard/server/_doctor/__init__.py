"""``ladderboard doctor``: versions, settings, database, key file, disks and port, all unchanged.

Every check is a function that returns findings.
"""

from ladderboard.server._doctor._database import Finding
from ladderboard.server._doctor._examine import check_installation

__all__ = ["Finding", "check_installation"]
