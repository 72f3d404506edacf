"""Refusals are raised as the same exceptions as in the server."""

from __future__ import annotations

import inspect
import json

import httpx
import pytest

from ladderboard import errors
from ladderboard.client import AsyncClient, Client
from ladderboard.client._requests import board, boards, make_upload_body, submissions, submit
from ladderboard.client._transport import (
    ERRORS_BY_CODE,
    RawResponse,
    RetryBackoff,
    error_from_problem,
)
from ladderboard.server._problems import _KINDS, PROBLEMS
from support.server.live_server import make_predictions


def problem(code, **fields):
    return {"detail": f"Said of {code}.", "code": code, "errors": [], **fields}


def test_every_code_is_known():
    assert set(ERRORS_BY_CODE) == set(PROBLEMS)
    for code, text in PROBLEMS.items():
        error = error_from_problem(int(text.partition(":")[0]), problem(code), None)
        assert type(error) is ERRORS_BY_CODE[code]
        assert str(error) == f"Said of {code}."


def test_a_server_error_is_raised_as_the_same_class():
    ours = {"storage", "unavailable", "broken"}  # where a fixed sentence stands in its place
    for raised, kind in _KINDS:
        if kind.code not in ours and raised is not errors.SessionClosed:
            assert ERRORS_BY_CODE[kind.code] is raised


def test_problems_of_a_file_are_restored_item_by_item(live_server, token, call):
    rows = "\n".join(f"{index},{index % 2}" for index in range(2, 400))
    with pytest.raises(errors.InvalidPredictions) as refused:
        call(
            live_server.url, token, "submit", live_server.slug, f"id,prediction\n{rows}\n".encode()
        )
    (problem_,) = refused.value.problems
    assert (problem_.code, problem_.count, problem_.ids) == ("missing_id", 2, ("0", "1"))
    assert problem_.message in str(refused.value)
    with Client(live_server.url, token) as client:
        assert client.team(live_server.slug).submissions == 0


def test_a_limit_over_time_says_how_long(empty_server, call):
    live_server = empty_server
    live_server.create_board(window="{questions: 1, hours: 1}")
    _, token = live_server.join("Ada")
    reply = call(live_server.url, token, "submit", live_server.slug, make_predictions(10))
    assert reply.remaining == 0
    assert reply.next_submission_at.timestamp() == live_server.clock.now + 3600
    with pytest.raises(errors.RateLimited) as refused:
        call(live_server.url, token, "submit", live_server.slug, make_predictions(20))
    assert refused.value.wait == 3600


@pytest.mark.parametrize("call", ["sync", "async"], indirect=True)
def test_other_refusals(live_server, token, call):
    with pytest.raises(errors.NotFound):
        call(live_server.url, None, "board", "nowhere")
    with pytest.raises(errors.NotAllowed, match=rf"needs a token.*login {live_server.url}/boards/"):
        call(live_server.url, None, "submit", live_server.slug, make_predictions(1))
    with pytest.raises(errors.NotAllowed, match="not valid on this board"):
        call(live_server.url, "lb_team_wrong", "team", live_server.slug)
    with pytest.raises(errors.Conflict):
        call(live_server.url, None, "register", live_server.slug, "Ada")
    call(live_server.url, token, "submit", live_server.slug, make_predictions(1), key="mine")
    with pytest.raises(errors.IdempotencyKeyReused):
        call(live_server.url, token, "submit", live_server.slug, make_predictions(2), key="mine")
    with pytest.raises(errors.InvalidSetting):
        call(
            live_server.url,
            token,
            "submit",
            live_server.slug,
            make_predictions(2),
            message="x" * 501,
        )
    with pytest.raises(errors.InvalidSetting, match="A board is given by its short name"):
        call(live_server.url, token, "submit", "../teams", make_predictions(2))
    live_server.call("POST", "/boards/first/pause", live_server.organiser)
    with pytest.raises(errors.NotOpen):
        call(live_server.url, token, "submit", live_server.slug, make_predictions(2))


def test_an_unknown_problem_code_is_mapped_by_its_status():
    expected = {401: errors.NotAllowed, 404: errors.NotFound, 418: errors.InvalidSetting}
    for status, kind in {**expected, 599: errors.ServerUnreachable}.items():
        assert type(error_from_problem(status, problem("unheard_of"), None)) is kind


def test_control_characters_in_a_problem_are_escaped():
    error = error_from_problem(422, problem("invalid", detail="a\x1b[2Jb\nc"), None)
    assert str(error) == "a\\x1b[2Jb\nc"


STRANGE = [
    (200, b""),
    (200, b"<h1>Hello</h1>"),
    (200, b"[]"),
    (200, b'{"slug": "first"}'),
    (404, b"<h1>Nothing</h1>"),
    (422, b'{"detail": 5, "code": "invalid", "errors": []}'),
    (422, b'{"detail": "a", "code": "invalid", "errors": [{}]}'),
    (200, b'{"boards": ' + b"[" * 100_000),
    (422, b'{"detail": "a", "code": ' + b"[" * 500 + b"]" * 500 + b', "errors": []}'),
    *(
        (422, b'{"detail": "a", "code": "invalid_predictions", "errors": [{"code": "a", "column":'
        b' null, "ids": [], "message": "m", "count": %b}]}' % endless)
        for endless in (b"Infinity", b"1e999")
    ),
]  # fmt: skip


@pytest.mark.parametrize(("status", "content"), STRANGE)
def test_an_answer_that_is_not_from_ladderboard_is_recognised(status, content):
    client = Client("http://127.0.0.1:9", "lb_team_secret")
    with pytest.raises(errors.ServerUnreachable, match="is not a Ladderboard server"):
        client._handle_response(
            board("first"), RetryBackoff(0), RawResponse(status, httpx.Headers(), content)
        )


def test_extra_fields_are_ignored_and_missing_or_wrong_fields_refused(live_server, client):
    answer = client.submit(live_server.slug, make_predictions(10)).raw
    request = submit("first", make_upload_body(make_predictions(10)), "key", "", None)

    def read(message):
        content = json.dumps(message).encode()
        return client._handle_response(
            request, RetryBackoff(0), RawResponse(201, httpx.Headers(), content)
        ).value

    assert read({**answer, "newer": 1, "certify": 1}).id == answer["id"]
    for name in set(answer) - {"metrics", "proven"}:  # these two came later
        with pytest.raises(errors.ServerUnreachable):
            read({key: field_value for key, field_value in answer.items() if key != name})
    changed = {"improved": 1, "question": True, "released": "0.1", "bound": {}, "time": "now"}
    for name, value in {
        **changed,
        "limits": {},
        "team": None,
        "number": 1.5,
        "reason": "\x1b",
    }.items():
        with pytest.raises(errors.ServerUnreachable):
            read({**answer, name: value})


@pytest.mark.parametrize("slug", ["x\x1b]0;owned\x07", "x/../y", ""])
def test_control_characters_in_a_board_name_are_refused(live_server, client, slug):
    """The prompt for a token shows it unescaped."""
    answer = client.board(live_server.slug).raw
    content = json.dumps({"boards": [{**answer, "slug": slug}]}).encode()
    with pytest.raises(errors.ServerUnreachable, match="not a Ladderboard server"):
        client._handle_response(
            boards(None), RetryBackoff(0), RawResponse(200, httpx.Headers(), content)
        )


@pytest.mark.parametrize("number", [b"1" + b"0" * 400, b"1e999", b"NaN", b"Infinity"])
def test_infinite_and_nan_numbers_are_refused(live_server, client, number):
    answer = client.submit(live_server.slug, make_predictions(10)).raw
    request_ = submit("first", make_upload_body(make_predictions(10)), "key", "", None)

    def refused(request, message):
        content = json.dumps(message).encode().replace(b'"here"', number)
        with pytest.raises(errors.ServerUnreachable):
            client._handle_response(
                request, RetryBackoff(0), RawResponse(200, httpx.Headers(), content)
            )

    refused(request_, {**answer, "released": "here"})
    if not number.isdigit():
        refused(request_, {**answer, "newer": "here"})  # it could not be printed as JSON again
        refused(submissions("first", None, None), {"submissions": [], "next": "here"})


@pytest.mark.parametrize("digits", [-3, 18, 10**8, 2**31])
def test_integers_with_too_many_digits_are_refused(live_server, client, digits):
    answer = client.board(live_server.slug).raw
    content = json.dumps({**answer, "display": {**answer["display"], "digits": digits}}).encode()
    with pytest.raises(errors.ServerUnreachable):
        client._handle_response(
            board("first"), RetryBackoff(0), RawResponse(200, httpx.Headers(), content)
        )


@pytest.mark.parametrize("url", ["https://\U0001f600.example", "https://\u2488.example"])
def test_an_unresolvable_host_name(call, url):
    with pytest.raises(errors.ServerUnreachable, match="cannot be reached"):
        call(url, None, "boards")


def test_both_clients_have_the_same_verbs():
    def public_methods(kind):
        return {
            name: inspect.signature(method).parameters
            for name, method in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("_") and name != "guard"
        }

    assert public_methods(Client) == public_methods(AsyncClient)
