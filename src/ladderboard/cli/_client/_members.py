"""``ladderboard members``, ``invite`` and ``terms``: the people of a team, and what it accepts."""

from typing import TYPE_CHECKING, Annotated

import typer

from ladderboard._formatting import format_count
from ladderboard.cli._client._options import BoardName, Insecure, Quiet, Url, open_client
from ladderboard.cli._options import AsJson
from ladderboard.cli._output import echo, echo_json, echo_secret, echo_table, format_minute
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from ladderboard.client import TeamMembers

_MIN_VERSION_DIGITS = 12


def members(
    board: BoardName,
    *,
    owner: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Make this person an owner.")
    ] = None,
    member: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Make this person a member.")
    ] = None,
    remove: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Remove this person from the team.")
    ] = None,
    revoke: Annotated[
        str | None, typer.Option(metavar="ID", help="Revoke this invitation to the team.")
    ] = None,
    url: Url = None,
    insecure: Insecure = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """List the people in your team and its invitations, or change them.

    Name a person by the number in the list. Someone you remove may still know the team's token:
    replace it on the Submit page.
    """
    with open_client(board, url, insecure=insecure, quiet=quiet or as_json) as (client, slug):
        if owner is not None:
            client.set_role(slug, owner, "owner")
        if member is not None:
            client.set_role(slug, member, "member")
        if remove is not None:
            client.remove_member(slug, remove)
        if revoke is not None:
            client.revoke_invitation(slug, revoke)
        people = client.members(slug)
    if as_json:
        echo_json(people.describe())
        return
    _echo_members(people, slug)


def _echo_members(people: "TeamMembers", slug: str) -> None:
    if not people.members:
        echo(f"Nobody has signed in for {people.team.name}; it uses its token.")
    else:
        echo_table(
            ("number", "name", "role"),
            [(person.number, person.name, person.role) for person in people.members],
            right=("number",),
        )
    if people.invitations:
        echo("", "Invitations:")
        echo_table(
            ("id", "admits", "until (UTC)"),
            [
                (
                    invitation.id,
                    format_count(invitation.uses, "person", "people"),
                    format_minute(raw["expires"]),
                )
                for invitation, raw in zip(
                    people.invitations, people.raw["invitations"], strict=True
                )
            ],
        )
    elif people.members:
        echo(f"To invite others: ladderboard invite {slug}")


def invite(
    board: BoardName,
    *,
    days: Annotated[float, typer.Option(help="For how many days it is valid.")] = 7,
    uses: Annotated[int, typer.Option(help="How many people it admits.")] = 1,
    url: Url = None,
    insecure: Insecure = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Print a link with which people who sign in join your team.

    The link is alone on stdout, for a shell to capture.
    """
    with open_client(board, url, insecure=insecure, quiet=quiet or as_json) as (client, slug):
        invitation = client.invite_member(slug, days=days, uses=uses)
        link = f"{client.url}/boards/{slug}/join#{invitation}"
    if as_json:
        echo_json({"board": slug, "invitation": invitation, "link": link})
        return
    people = format_count(uses, "person", "people")
    echo_secret(f"An invitation to your team (for {people}, valid for {days:g} days)", link)


def terms(
    board: BoardName,
    *,
    accept: Annotated[
        str,
        typer.Option(
            metavar="VERSION", help="Accept the version that begins with these 12 digits or more."
        ),
    ] = "",
    url: Url = None,
    insecure: Insecure = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Show the terms of a board, or accept them for your team.

    A team cannot submit before it has accepted the current version; the ledger records it.
    """
    with open_client(board, url, insecure=insecure, quiet=quiet or as_json) as (client, slug):
        current = client.terms(slug)
        if accept:
            if len(accept) < _MIN_VERSION_DIGITS or not current.version.startswith(accept.lower()):
                raise InvalidSetting(
                    f"--accept must be the version of the current terms, {current.version[:12]}, "
                    f"or more digits of it; got {accept!r:.80}. Read them again."
                )
            current = client.accept_terms(slug, current.version)
    if as_json:
        echo_json(current.describe())
        return
    if accept:
        echo(f"Your team has accepted the terms of {slug}.")
        return
    echo(*current.text.splitlines(), "")
    command = f"ladderboard terms {slug} --accept {current.version[:12]}"
    echo("Your team has accepted them." if current.accepted else f"To accept them: {command}")
