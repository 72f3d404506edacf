"""A doctor: looks at everything that a server needs, changes nothing, and says what to do.

Every check is a function that returns findings. Nothing here needs an extra.
"""

from ladderboard.server._doctor._examine import check_installation
from ladderboard.server._doctor._finding import Finding
from ladderboard.server._doctor._machine import EXTRAS, Extra

__all__ = ["EXTRAS", "Extra", "Finding", "check_installation"]
