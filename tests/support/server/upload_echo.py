"""A server that receives uploads and describes what it received."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ladderboard.errors import InvalidPredictions, StorageFailed
from ladderboard.server._problems import problem_from_exception
from ladderboard.server._uploads._body import BodyLimits, RequestRefused, Spool, receive_body
from support.server.threaded_server import ThreadedServer

if TYPE_CHECKING:
    from pathlib import Path


class UploadEcho(ThreadedServer):
    """Receives uploads under limits that a test may change, and replies with a description."""

    def __init__(self, folder: Path) -> None:
        app = Starlette(routes=[Route("/", self.receive, methods=["POST"])])
        super().__init__(app, lifespan="off")
        self.spool = Spool(folder)
        self.limits = BodyLimits()
        self.disconnects = 0
        self._space = self.spool._available

    async def receive(self, request):
        """Reply with a description of the body."""
        try:
            async with await receive_body(request, self.limits, self.spool) as upload:
                in_file = not isinstance(upload.content, bytes)
                if in_file:
                    upload.content.seek(0)
                    assert not os.fstat(upload.content.fileno()).st_nlink  # it has no name
                data = upload.content.read() if in_file else upload.content
                assert len(data) == upload.size
                described = {
                    "size": upload.size,
                    "hash": hashlib.sha256(data).hexdigest(),
                    "format": upload.format,
                    "message": upload.message,
                    "file": in_file,
                }
                return JSONResponse(described, 201)
        except RequestRefused as refused:
            problem = {"code": refused.code, "detail": str(refused)}
            return JSONResponse(problem, refused.status, headers=refused.headers)
        except InvalidPredictions as error:
            problem = {"code": error.problems[0].code, "detail": str(error)}
            return JSONResponse(problem, 422)
        except StorageFailed as failed:
            return problem_from_exception(failed)[0]
        except ClientDisconnect:
            self.disconnects += 1
            return Response(status_code=400)

    @property
    def spooled(self) -> int:
        """How many bytes of the spool are in use; its files have no names."""
        return self._space - self.spool._available
