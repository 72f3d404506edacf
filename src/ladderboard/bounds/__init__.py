"""What can be promised.

A *certificate* is an interval for the best true risk so far, with its confidence and assumptions:
everything that a mechanism could ever be seen to say is counted, and what was seen is paid for in
nats. The proofs are in docs/explanation/certificates.md. The paper's own theorem is here too, with
its constants.
"""

from ladderboard.bounds._asked import PlanRow
from ladderboard.bounds._best_ladder import best_ladder, floor
from ladderboard.bounds._certificate import Certificate
from ladderboard.bounds._certify import certificate, read_beta, read_count
from ladderboard.bounds._paper import PaperBound, Privacy, paper
from ladderboard.bounds._plan import Plan, plan
from ladderboard.bounds._uncounted import nothing
from ladderboard.bounds._untouched import untouched

__all__ = [
    "Certificate",
    "PaperBound",
    "Plan",
    "PlanRow",
    "Privacy",
    "best_ladder",
    "certificate",
    "floor",
    "nothing",
    "paper",
    "plan",
    "read_beta",
    "read_count",
    "untouched",
]
