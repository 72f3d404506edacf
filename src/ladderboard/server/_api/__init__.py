"""The HTTP API under /api/v1, and the endpoints for monitoring: health and metrics."""

from fastapi import APIRouter

from ladderboard.server._api import _boards, _organiser, _server, _submissions, _teams
from ladderboard.server._api._boards import finals_csv, standings_csv
from ladderboard.server._api._routes import Slug, SubmissionId, TeamId, describe_api
from ladderboard.server._api._submissions import accept_submission, check_file

__all__ = [
    "Slug",
    "SubmissionId",
    "TeamId",
    "accept_submission",
    "check_file",
    "describe_api",
    "finals_csv",
    "router",
    "standings_csv",
]

router = APIRouter()
# Flat, so that matching is one loop; the first routes are found first.
for _module in (_submissions, _boards, _teams, _organiser, _server):
    router.routes.extend(_module.router.routes)
