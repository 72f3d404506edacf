"""An application that takes bodies in, and says what it took; and ways to send them."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import threading
import time
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ladderboard.errors import InvalidPredictions, StorageFailed
from ladderboard.server._problems import problem_of
from ladderboard.server._uploads._body import BodyLimits, Refused, Spool, receive


class Taker:
    """Takes bodies in under limits that a test may change."""

    def __init__(self, folder: Path) -> None:
        self.spool = Spool(folder)
        self.limits = BodyLimits()
        self.gone = 0
        self.modes: set[int] = set()
        self.app = Starlette(routes=[Route("/", self.take, methods=["POST"])])

    async def take(self, request):
        """Answer with what came in."""
        try:
            async with await receive(request, self.limits, self.spool) as got:
                in_file = isinstance(got.content, Path)
                if in_file:
                    self.modes.add(got.content.stat().st_mode & 0o777)
                data = got.content.read_bytes() if in_file else got.content
                assert len(data) == got.size
                said = {
                    "size": got.size,
                    "hash": hashlib.sha256(data).hexdigest(),
                    "format": got.format,
                    "message": got.message,
                    "file": in_file,
                }
                return JSONResponse(said, 201)
        except Refused as refused:
            said = {"code": refused.code, "detail": str(refused)}
            return JSONResponse(said, refused.status, headers=refused.headers)
        except InvalidPredictions as error:
            said = {"code": error.problems[0].code, "detail": str(error)}
            return JSONResponse(said, 422)
        except StorageFailed as failed:
            return problem_of(failed)[0]
        except ClientDisconnect:
            self.gone += 1
            return Response(status_code=400)

    @property
    def left(self) -> list[str]:
        """What lies in the spool."""
        return [each.name for each in self.spool.path.iterdir()]


@contextlib.contextmanager
def served(app):
    """Serve an application on loopback, and give its port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app, log_config=None, lifespan="off", access_log=False)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.005)
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()
