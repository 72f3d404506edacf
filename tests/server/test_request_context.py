"""What handlers share: parameters that are read without FastAPI."""

import json
from typing import Annotated

import pytest
from fastapi import FastAPI, Header, Path, Query, Request
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.testclient import TestClient

from ladderboard.server._context import ApiRoute


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/boards/first?limit=5", {"X-Key": "k"}),
        ("/boards/first", {}),
        ("/boards/First?limit=5", {}),
        ("/boards/first?limit=0", {}),
        ("/boards/first?limit=x", {}),
        ("/boards/first?limit=", {}),
        ("/boards/first?limit=5", {"X-Key": ""}),
    ],
)
def test_parameters_are_read_as_fastapi_reads_them(path, headers):
    async def show(
        request: Request,
        board: Annotated[str, Path(pattern="^[a-z]+$")],
        limit: Annotated[int, Query(ge=1)] = 100,
        key: Annotated[str | None, Header(alias="X-Key", min_length=1)] = None,
    ) -> Response:
        return Response(json.dumps([request.url.path, board, limit, key]))

    def call(route_class):
        app = FastAPI()
        app.router.route_class = route_class
        app.get("/boards/{board}")(show)
        response = TestClient(app).get(path, headers=headers)
        return response.status_code, response.json()

    assert call(ApiRoute) == call(APIRoute)
