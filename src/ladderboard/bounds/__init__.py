"""What can be promised.

A *certificate* is an interval for the best true risk so far, with its confidence and assumptions:
everything that a mechanism could ever be seen to say is counted, and what was seen is paid for in
nats. The proofs are in docs/explanation/certificates.md. The paper's own theorem is here too, with
its constants.
"""

from ladderboard.bounds._alternatives import FEW as FEW
from ladderboard.bounds._alternatives import MEASURED as MEASURED
from ladderboard.bounds._alternatives import OTHERS as OTHERS
from ladderboard.bounds._alternatives import TYPICAL as TYPICAL
from ladderboard.bounds._alternatives import WORST_CASE as WORST_CASE
from ladderboard.bounds._alternatives import Alternative as Alternative
from ladderboard.bounds._alternatives import after as after
from ladderboard.bounds._best_ladder import best_ladder, floor
from ladderboard.bounds._certificate import AS_PRINTED as AS_PRINTED
from ladderboard.bounds._certificate import CORRECTED as CORRECTED
from ladderboard.bounds._certificate import NONE as NONE
from ladderboard.bounds._certificate import Certificate
from ladderboard.bounds._certify import certificate, nothing, read_beta, read_count
from ladderboard.bounds._kl import kl_lower as kl_lower
from ladderboard.bounds._kl import kl_upper as kl_upper
from ladderboard.bounds._kl import untouched
from ladderboard.bounds._paper import PaperBound, Privacy, paper
from ladderboard.bounds._plan import Plan, PlanRow, plan

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
