"""``ladderboard doctor``: checks everything that a server needs, and changes nothing.

Every check is a function that returns findings. Needs no extra.
"""

from ladderboard.server._doctor._examine import check_installation
from ladderboard.server._doctor._finding import Finding
from ladderboard.server._doctor._machine import EXTRAS, Extra

__all__ = ["EXTRAS", "Extra", "Finding", "check_installation"]
