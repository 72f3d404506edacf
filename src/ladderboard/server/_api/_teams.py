"""Routes of teams: registration, status, members, terms, tokens and selections."""

from typing import Annotated

from fastapi import Query, Request, Response

from ladderboard.board import Role
from ladderboard.errors import NotAllowed
from ladderboard.server._api._models import (
    ErasureResult,
    Invitation,
    JoinRequest,
    MemberInvitationRequest,
    MemberList,
    Membership,
    NewTeam,
    Person,
    Registration,
    RoleChange,
    SelectionList,
    SelectionRequest,
    Team,
    TeamList,
    TermsAcceptance,
    TermsText,
)
from ladderboard.server._api._routes import (
    PersonNumber,
    Slug,
    TokenId,
    make_router,
    no_content,
    no_content_route,
    private_route,
    public_route,
)
from ladderboard.server._context import get_context, log_erasure, make_response, open_board

router = make_router("teams")


_REGISTER = public_route(408, 409, 413, 415, tagged=False)
_REGISTER["responses"][202] = {
    "model": Person,
    "description": "The organiser must approve it first.",
}


@router.post("/boards/{board}/teams", status_code=201, response_model=NewTeam, **_REGISTER)
def register_team(request: Request, board: Slug, wanted: Registration) -> Response:
    """Register a team, and return its token, which is shown only once."""
    opened, caller = open_board(request, board)
    if caller.role < Role.ORGANISER:
        get_context(request).limit_registrations(request)
    if caller.identity is not None and wanted.invitation is None:
        registered = opened.identities.register(caller, wanted.name)
        if registered is None:
            return make_response(request, opened.identities.own_registration(caller), 202)
        return make_response(request, registered._asdict(), 201)
    team_with_token = opened.teams.register_or_create(caller, wanted.name, wanted.invitation)
    return make_response(request, team_with_token._asdict(), 201)


@router.get("/boards/{board}/teams", response_model=TeamList, **private_route())
def list_teams(
    request: Request,
    board: Slug,
    limit: Annotated[int, Query(ge=1, le=1000, description="Rows of a page.")] = 100,
    after: Annotated[int, Query(ge=0, le=2**53, description="The `next` of the page before.")] = 0,
) -> Response:
    """Return a page of all teams, for evaluators and organisers."""
    opened, caller = open_board(request, board)
    teams = opened.as_seen_by(caller).teams(limit=limit, after=after)
    next_cursor = teams[-1]["number"] if len(teams) == limit else None
    return make_response(request, {"teams": teams, "next": next_cursor})


@router.get("/boards/{board}/team", response_model=Team, **private_route())
def get_team(request: Request, board: Slug) -> Response:
    """Return the caller's team: its best, its limits and when it may submit next."""
    opened, caller = open_board(request, board)
    status = opened.as_seen_by(caller).team()
    return make_response(request, status)


@router.post("/boards/{board}/team/token", response_model=NewTeam, **private_route())
def rotate_own_token(request: Request, board: Slug) -> Response:
    """Replace the token of the caller's team; the old token and its sign-in sessions end."""
    opened, caller = open_board(request, board)
    team_with_token = opened.teams.rotate_token(caller)
    return make_response(request, team_with_token._asdict())


@router.post("/boards/{board}/erasure", response_model=ErasureResult, **private_route(409))
def erase_own(request: Request, board: Slug) -> Response:
    """Erase the caller's name and identity for good; scores stay under a pseudonym."""
    opened, caller = open_board(request, board)
    erased = opened.erasure.erase_own(caller)
    log_erasure(request, opened.slug, erased.team, caller.identity)
    return make_response(request, erased._asdict())


@router.get("/boards/{board}/selections", response_model=SelectionList, **private_route())
def get_selections(request: Request, board: Slug) -> Response:
    """Return the submissions that the caller's team selected for the final ranking."""
    opened, caller = open_board(request, board)
    submissions = opened.as_seen_by(caller).selections()
    return make_response(request, {"submissions": submissions})


@router.put(
    "/boards/{board}/selections", response_model=SelectionList, **private_route(408, 409, 413, 415)
)
def select(request: Request, board: Slug, wanted: SelectionRequest) -> Response:
    """Select submissions for the final ranking; this replaces the earlier selection."""
    opened, caller = open_board(request, board)
    opened.closer.select_submissions(caller, wanted.submissions)
    submissions = opened.as_seen_by(caller).selections()
    return make_response(request, {"submissions": submissions})


@router.get("/boards/{board}/registration", response_model=Person, **private_route())
def get_registration(request: Request, board: Slug) -> Response:
    """Return the registration of the caller, a person who signed in."""
    opened, caller = open_board(request, board)
    registration = opened.identities.own_registration(caller)
    if registration is None:
        raise NotAllowed("This is for people who signed in. Sign in on the board's Join page.")
    return make_response(request, registration)


@router.get("/boards/{board}/team/members", response_model=MemberList, **private_route())
def list_members(request: Request, board: Slug) -> Response:
    """Return the members of the caller's team, and its valid invitations."""
    opened, caller = open_board(request, board)
    return make_response(request, opened.members.list(caller))


@router.put(
    "/boards/{board}/team/members/{number}",
    response_model=MemberList,
    **private_route(408, 409, 413, 415),
)
def set_member_role(
    request: Request, board: Slug, number: PersonNumber, wanted: RoleChange
) -> Response:
    """Set the role of a member of the caller's team. Only owners may."""
    opened, caller = open_board(request, board)
    opened.members.set_role(caller, number, wanted.role)
    return make_response(request, opened.members.list(caller))


@router.delete("/boards/{board}/team/members/{number}", **no_content_route())
def remove_member(request: Request, board: Slug, number: PersonNumber) -> Response:
    """Remove a person from the caller's team. Only owners may.

    Replace the team's token if the person knows it.
    """
    opened, caller = open_board(request, board)
    opened.members.remove(caller, number)
    return no_content()


@router.post(
    "/boards/{board}/team/invitations",
    status_code=201,
    response_model=Invitation,
    **private_route(408, 409, 413, 415),
)
def invite_member(
    request: Request, board: Slug, wanted: MemberInvitationRequest | None = None
) -> Response:
    """Create an invitation to the caller's team, for people who sign in. Only owners may."""
    wanted = wanted or MemberInvitationRequest()
    opened, caller = open_board(request, board)
    invitation = opened.members.invite_member(caller, days=wanted.days, uses=wanted.uses)
    return make_response(request, {"invitation": invitation}, 201)


@router.delete("/boards/{board}/team/invitations/{token}", **no_content_route())
def revoke_invitation(request: Request, board: Slug, token: TokenId) -> Response:
    """Revoke an invitation to the caller's team. Only owners may."""
    opened, caller = open_board(request, board)
    opened.members.revoke_invitation(caller, token)
    return no_content()


@router.post(
    "/boards/{board}/membership",
    response_model=Membership,
    **private_route(408, 409, 413, 415),
)
def join_team(request: Request, board: Slug, wanted: JoinRequest) -> Response:
    """Join a team with its invitation, as a person who signed in."""
    opened, caller = open_board(request, board)
    get_context(request).limit_registrations(request)
    team = opened.members.join(caller, wanted.invitation, merge=wanted.merge)
    return make_response(request, {"team": team})


@router.delete("/boards/{board}/membership", **no_content_route())
def leave_team(request: Request, board: Slug) -> Response:
    """Leave the caller's team, as a person who signed in."""
    opened, caller = open_board(request, board)
    opened.members.leave(caller)
    return no_content()


@router.get("/boards/{board}/terms", response_model=TermsText, **public_route())
def get_terms(request: Request, board: Slug) -> Response:
    """Return the terms that teams accept before they submit."""
    opened, caller = open_board(request, board)
    return make_response(request, opened.terms.summary(caller))


@router.post("/boards/{board}/terms", response_model=TermsText, **private_route(408, 409, 413, 415))
def accept_terms(request: Request, board: Slug, wanted: TermsAcceptance) -> Response:
    """Accept the terms for the caller's team; the ledger records it."""
    opened, caller = open_board(request, board)
    opened.terms.accept(caller, wanted.version)
    return make_response(request, opened.terms.summary(caller))
