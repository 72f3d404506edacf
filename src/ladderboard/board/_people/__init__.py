"""Who takes part: teams with their people and tokens, people who sign in, and erasure."""

from ladderboard.board._people._erasure import Erased, Erasure, forget_erased
from ladderboard.board._people._identities import Identities, VerifiedIdentity, caller_of
from ladderboard.board._people._members import Members, Terms, accepted_version
from ladderboard.board._people._teams import (
    NAMELESS_VISIBILITIES,
    Teams,
    TeamWithToken,
    disambiguate_team_names,
    move_invitations_with_deadline,
    new_credential,
)

__all__ = [
    "NAMELESS_VISIBILITIES",
    "Erased",
    "Erasure",
    "Identities",
    "Members",
    "TeamWithToken",
    "Teams",
    "Terms",
    "VerifiedIdentity",
    "accepted_version",
    "caller_of",
    "disambiguate_team_names",
    "forget_erased",
    "move_invitations_with_deadline",
    "new_credential",
]
