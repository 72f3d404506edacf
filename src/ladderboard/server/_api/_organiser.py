"""Routes of organisers: tokens, invitations, disqualification, pausing, amending, closing."""

from fastapi import Request, Response

from ladderboard.board import Role, check_permission
from ladderboard.server._api._models import (
    Amendment,
    BoardSummary,
    ErasureResult,
    Finals,
    Invitation,
    InvitationRequest,
    MergeRequest,
    NewTeam,
    NewToken,
    PeopleRequest,
    RegistrationDecision,
    RegistrationList,
    ResumeRequest,
    StaffTokenRequest,
    State,
    TokenList,
    WebhookList,
    WebhookRequest,
    WebhookSecret,
)
from ladderboard.server._api._routes import (
    PersonNumber,
    Slug,
    TeamId,
    TokenId,
    WebhookNumber,
    make_router,
    no_content,
    no_content_route,
    private_route,
)
from ladderboard.server._context import get_context, log_erasure, make_response, open_board
from ladderboard.server._sandbox import sandbox
from ladderboard.server._webhook_sender import check_literal_address

router = make_router("organiser")


@router.post("/boards/{board}/teams/{team}/token", response_model=NewTeam, **private_route())
def rotate_team_token(request: Request, board: Slug, team: TeamId) -> Response:
    """Replace a team's token; the old token and its sign-in sessions end."""
    opened, caller = open_board(request, board)
    team_with_token = opened.teams.rotate_token(caller, team)
    return make_response(request, team_with_token._asdict())


@router.delete("/boards/{board}/teams/{team}/token", **no_content_route())
def revoke_team_token(request: Request, board: Slug, team: TeamId) -> Response:
    """Revoke a team's token; its sign-in sessions end."""
    opened, caller = open_board(request, board)
    opened.teams.revoke_team_tokens(caller, team)
    return no_content()


@router.put("/boards/{board}/teams/{team}/disqualification", **no_content_route())
def disqualify_team(request: Request, board: Slug, team: TeamId) -> Response:
    """Disqualify a team: it leaves the leaderboard, and no score changes."""
    opened, caller = open_board(request, board)
    opened.teams.disqualify(caller, team)
    return no_content()


@router.delete("/boards/{board}/teams/{team}/disqualification", **no_content_route())
def reinstate_team(request: Request, board: Slug, team: TeamId) -> Response:
    """Reinstate a disqualified team."""
    opened, caller = open_board(request, board)
    opened.teams.disqualify(caller, team, reinstate=True)
    return no_content()


@router.put("/boards/{board}/teams/{team}/erasure", response_model=ErasureResult, **private_route())
def erase_team(request: Request, board: Slug, team: TeamId) -> Response:
    """Erase a team's name and the identities of its people for good; a pseudonym stays."""
    opened, caller = open_board(request, board)
    erased = opened.erasure.erase_team(caller, team)
    log_erasure(request, opened.slug, erased.team)
    return make_response(request, erased._asdict())


@router.put(
    "/boards/{board}/registrations/{number}/erasure",
    response_model=ErasureResult,
    **private_route(409),
)
def erase_person(request: Request, board: Slug, number: PersonNumber) -> Response:
    """Erase the name and identity of a person who signed in, for good."""
    opened, caller = open_board(request, board)
    erased = opened.erasure.erase_person(caller, number)
    log_erasure(request, opened.slug, erased.team, number)
    return make_response(request, erased._asdict())


@router.post(
    "/boards/{board}/invitations",
    status_code=201,
    response_model=Invitation,
    **private_route(408, 413, 415),
)
def invite(request: Request, board: Slug, wanted: InvitationRequest | None = None) -> Response:
    """Create an invitation with which one team can register."""
    days = 7.0 if wanted is None else wanted.days
    opened, caller = open_board(request, board)
    invitation = opened.teams.invite_team(caller, days=days)
    return make_response(request, {"invitation": invitation}, 201)


@router.post(
    "/boards/{board}/tokens",
    status_code=201,
    response_model=NewToken,
    **private_route(408, 413, 415),
)
def create_token(request: Request, board: Slug, wanted: StaffTokenRequest) -> Response:
    """Create a token for an evaluator or an organiser of this board."""
    role = Role[wanted.role.upper()]
    opened, caller = open_board(request, board)
    token = opened.teams.issue_staff_token(caller, role)
    return make_response(request, {"token": token}, 201)


@router.get("/boards/{board}/tokens", response_model=TokenList, **private_route())
def list_tokens(request: Request, board: Slug) -> Response:
    """Return the valid tokens and invitations of this board, without their secrets."""
    opened, caller = open_board(request, board)
    tokens = opened.teams.list_tokens(caller)
    return make_response(request, {"tokens": tokens})


@router.delete("/boards/{board}/tokens/{token}", **no_content_route())
def revoke_token(request: Request, board: Slug, token: TokenId) -> Response:
    """Revoke a token or an invitation of this board; its sign-in sessions end."""
    opened, caller = open_board(request, board)
    opened.teams.revoke_token(caller, token)
    return no_content()


@router.get("/boards/{board}/registrations", response_model=RegistrationList, **private_route())
def list_registrations(request: Request, board: Slug) -> Response:
    """Return the people who signed in, and their teams."""
    opened, caller = open_board(request, board)
    return make_response(request, opened.identities.registrations(caller))


@router.put(
    "/boards/{board}/registrations/{number}",
    response_model=RegistrationList,
    **private_route(408, 409, 413, 415),
)
def decide_registration(
    request: Request, board: Slug, number: PersonNumber, wanted: RegistrationDecision
) -> Response:
    """Approve or reject the registration of a person who signed in."""
    opened, caller = open_board(request, board)
    if wanted.approve:
        opened.identities.approve(caller, number)
    else:
        opened.identities.reject(caller, number, wanted.reason)
    return make_response(request, opened.identities.registrations(caller))


@router.post(
    "/boards/{board}/people", response_model=RegistrationList, **private_route(408, 413, 415)
)
def extend_list(request: Request, board: Slug, wanted: PeopleRequest) -> Response:
    """Add people to the list of those who may register by signing in."""
    opened, caller = open_board(request, board)
    opened.identities.extend_list(caller, wanted.people)
    return make_response(request, opened.identities.registrations(caller))


@router.delete("/boards/{board}/registrations/{number}/sessions", **no_content_route())
def sign_out_person(request: Request, board: Slug, number: PersonNumber) -> Response:
    """End all sign-in sessions of a person."""
    opened, caller = open_board(request, board)
    opened.identities.sign_out_everywhere(caller, number)
    return no_content()


@router.put("/boards/{board}/registrations/{number}/organiser", **no_content_route())
def appoint_organiser(request: Request, board: Slug, number: PersonNumber) -> Response:
    """Make a person who signed in an organiser of this board; the ledger records it."""
    opened, caller = open_board(request, board)
    opened.members.set_organiser(caller, number, organiser=True)
    return no_content()


@router.delete("/boards/{board}/registrations/{number}/organiser", **no_content_route())
def dismiss_organiser(request: Request, board: Slug, number: PersonNumber) -> Response:
    """Remove an organiser of this board; the person cannot join a team afterwards.

    The ledger records it.
    """
    opened, caller = open_board(request, board)
    opened.members.set_organiser(caller, number, organiser=False)
    return no_content()


@router.post("/boards/{board}/teams/{team}/merge", **no_content_route(408, 413, 415))
def merge_teams(request: Request, board: Slug, team: TeamId, wanted: MergeRequest) -> Response:
    """Merge a team into another if neither has submitted; its people move, its token ends."""
    opened, caller = open_board(request, board)
    opened.members.merge(caller, team, wanted.into)
    return no_content()


@router.get("/boards/{board}/webhooks", response_model=WebhookList, **private_route())
def list_webhooks(request: Request, board: Slug) -> Response:
    """Return the webhooks, each with the result of its last delivery."""
    opened, caller = open_board(request, board)
    return make_response(request, {"webhooks": opened.webhooks.list(caller)})


@router.post(
    "/boards/{board}/webhooks",
    status_code=201,
    response_model=WebhookSecret,
    **private_route(408, 409, 413, 415),
)
def add_webhook(request: Request, board: Slug, wanted: WebhookRequest) -> Response:
    """Create a webhook, and return its signing secret, which is shown only once."""
    opened, caller = open_board(request, board)
    check_permission(caller, "run")
    check_literal_address(wanted.url, private=get_context(request).settings.webhook_private)
    events = {} if wanted.events is None else {"events": tuple(wanted.events)}
    added = opened.webhooks.add(caller, wanted.url, kind=wanted.format, **events)
    return make_response(request, added._asdict(), 201)


@router.delete("/boards/{board}/webhooks/{number}", **no_content_route())
def remove_webhook(request: Request, board: Slug, number: WebhookNumber) -> Response:
    """Delete a webhook; waiting deliveries are not sent."""
    opened, caller = open_board(request, board)
    opened.webhooks.remove(caller, number)
    return no_content()


@router.post("/boards/{board}/webhooks/{number}/test", **no_content_route())
def test_webhook(request: Request, board: Slug, number: WebhookNumber) -> Response:
    """Send a test to a webhook; the list of webhooks has the result."""
    opened, caller = open_board(request, board)
    opened.webhooks.test(caller, number)
    return no_content()


@router.post("/boards/{board}/pause", response_model=State, **private_route(409))
def pause_board(request: Request, board: Slug) -> Response:
    """Pause the board: it takes no submissions until it is resumed."""
    opened, caller = open_board(request, board)
    opened.amendments.pause(caller)
    return make_response(request, {"board": board, "status": opened.row().status})


@router.post("/boards/{board}/resume", response_model=State, **private_route(408, 409, 413, 415))
def resume_board(request: Request, board: Slug, wanted: ResumeRequest | None = None) -> Response:
    """Resume a paused board.

    After a restore, `charge` counts the submissions that the restored copy may lack.
    """
    opened, caller = open_board(request, board)
    opened.amendments.resume(caller, None if wanted is None else wanted.charge)
    return make_response(request, {"board": board, "status": opened.row().status})


@router.patch(
    "/boards/{board}/rules", response_model=BoardSummary, **private_route(408, 409, 413, 415)
)
def amend_rules(request: Request, board: Slug, changes: Amendment) -> Response:
    """Change rules of the board, such as deadlines and limits; the ledger records each change."""
    opened, caller = open_board(request, board)
    opened.amendments.amend(caller, changes.root)
    return make_response(request, opened.as_seen_by(caller).summary())


_CLOSE = private_route(409)
_CLOSE["responses"][200] = {"description": "The final ranking; null without a private split."}


@router.post("/boards/{board}/close", response_model=Finals | None, **_CLOSE)
def close_board(request: Request, board: Slug) -> Response:
    """Close the board for good, and rank the selected submissions on the private split."""
    opened, caller = open_board(request, board)
    final = opened.closer.close(caller, sandbox=sandbox)
    return make_response(request, None if final is None else opened.as_seen_by(caller).finals())
