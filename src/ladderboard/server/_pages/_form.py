"""A form of ours: its fields, once it is known not to be of another's making."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from ladderboard.server._context import work_of
from ladderboard.server._problems import Refused

if TYPE_CHECKING:
    from fastapi import Request

__all__ = ["read_fields", "read_form"]

_FIELDS = 200


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form of ours, which was not made by another's page."""
    return dict(await read_fields(request))


async def read_fields(request: Request) -> list[tuple[str, str]]:
    """Return the same where a field may be there several times."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused(415, "content_type", "Send this as a form.")
    body = await request.body()
    try:
        fields = parse_qsl(
            body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_FIELDS
        )
    except ValueError:
        raise Refused(422, "invalid", f"A form has at most {_FIELDS} fields.") from None
    work = work_of(request)
    work.who.check_form(request, work.sessions.read(request), dict(fields).get("csrf", ""))
    return fields
