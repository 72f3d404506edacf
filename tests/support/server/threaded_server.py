"""Runs an ASGI application with uvicorn in a thread."""

from __future__ import annotations

import threading
import time

import uvicorn


class ServerThread:
    """A uvicorn server in a thread; subclasses set ``server`` and ``_thread`` and start them."""

    def stop(self):
        """Shut the server down and wait for the thread to end."""
        self.server.should_exit = True
        self._thread.join()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()


class ThreadedServer(ServerThread):
    """An ASGI application served in a thread, on a free loopback port.

    ``options`` are passed to ``uvicorn.Config``. After ``start`` the server is at ``url``.
    """

    def __init__(self, app, **options):
        self.app = app
        config = uvicorn.Config(
            app, port=0, ws="none", log_level="critical", log_config=None, server_header=False,
            date_header=False, **options,
        )  # fmt: skip
        self.server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self.server.run)

    def start(self):
        """Start the thread; return when the server accepts connections."""
        self._thread.start()
        while not self.server.started:
            assert self._thread.is_alive()
            time.sleep(0.005)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
