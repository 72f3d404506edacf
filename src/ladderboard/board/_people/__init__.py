"""Who takes part: teams with their tokens, and people who sign in; and how both are erased."""

from ladderboard.board._people._erasure import Erased, Erasure, forget_erased
from ladderboard.board._people._identities import Identities, VerifiedIdentity, caller_of
from ladderboard.board._people._teams import (
    NAMELESS_VISIBILITIES,
    Teams,
    TeamWithToken,
    disambiguate_team_names,
    new_credential,
)

__all__ = [
    "NAMELESS_VISIBILITIES",
    "Erased",
    "Erasure",
    "Identities",
    "TeamWithToken",
    "Teams",
    "VerifiedIdentity",
    "caller_of",
    "disambiguate_team_names",
    "forget_erased",
    "new_credential",
]
