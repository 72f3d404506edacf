"""A guard served in a thread of the test's process."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import threading
import time

import numpy as np

from ladderboard.server import listen_on_loopback, serve_guard
from support.server.threaded_server import ServerThread


class GuardServer(ServerThread):
    """Serves a guard; ``listener`` is a free port by default, ``options`` go to ``serve_guard``."""

    def __init__(self, guard, listener=None, **options):
        self.guard, self.listener = guard, listener or listen_on_loopback(port=0)
        self.url = self.listener.url
        self._servers = []
        options["before_run"] = self._servers.append
        self._thread = threading.Thread(
            target=serve_guard, args=(guard, self.listener), kwargs=options
        )

    def start(self):
        """Start the thread; return when the server accepts connections."""
        self._thread.start()
        while not self._servers or not self._servers[0].started:
            assert self._thread.is_alive()
            time.sleep(0.01)
        self.server = self._servers[0]

    def call(self, method="GET", path="/api/v1/guard", body=None, headers=None):
        """Send a request on a new connection; return status, headers and the decoded body."""
        port = self.listener.socket.getsockname()[1]
        connection = http.client.HTTPConnection("127.0.0.1", port)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {})
            reply = connection.getresponse()
            content = reply.read()
        received = {name.lower(): value for name, value in reply.getheaders()}
        return reply.status, received, json.loads(content) if content else None

    def ask(self, body, query="", **headers):
        """Send predictions."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.call("POST", f"/api/v1/guard/questions{query}", body, named)


def to_npy(array):
    """Return an array as an .npy file."""
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()


def to_csv(array):
    """Return predictions for the ids 0, 1 and so on as a CSV file."""
    rows = "".join(f"{index},{value}\n" for index, value in enumerate(array))
    return f"id,prediction\n{rows}".encode()
