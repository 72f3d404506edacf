"""A receiver of webhooks on loopback, and what tests do with webhooks."""

from __future__ import annotations

import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ladderboard.board import list_due_deliveries


class Receiver:
    """A receiver on loopback that records requests, and answers, redirects or hangs.

    ``certificates`` is a folder with those of a receiver that speaks TLS.
    """

    def __init__(self, certificates=None):
        self.requests, self.statuses = [], []
        self.release = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append((self.path, dict(self.headers.items()), body))
                status = receiver.statuses.pop(0) if receiver.statuses else 204
                if status == "hang":
                    receiver.release.wait(30)
                    return
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self._server = Server(("127.0.0.1", 0), Handler)
        if certificates is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(certificates / "chain.pem", certificates / "key.pem")
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self):
        self.release.set()
        self._server.shutdown()
        self._server.server_close()

    def wait_for(self, count, seconds=20):
        """Return the requests once there are this many."""
        deadline = time.monotonic() + seconds
        while len(self.requests) < count:
            assert time.monotonic() < deadline, f"{len(self.requests)} of {count} requests"
            time.sleep(0.01)
        return self.requests


def add(server, url, slug=None, **fields):
    """Add a webhook through the API; return its number and secret."""
    path = f"/boards/{slug or server.slug}/webhooks"
    reply = server.call("POST", path, server.organiser, json={"url": url, **fields})
    assert reply.status_code == 201, reply.text
    return reply.json()["number"], reply.json()["secret"]


def listed(server):
    return server.call("GET", "/boards/first/webhooks", server.organiser).json()["webhooks"]


def wait_for_result(server, number=1, **expected):
    """Return a webhook once its fields have the expected values."""
    deadline = time.monotonic() + 20
    while True:
        webhook = listed(server)[number - 1]
        if all(webhook[name] == value for name, value in expected.items()):
            return webhook
        assert time.monotonic() < deadline, webhook
        time.sleep(0.02)


def due(server, seconds):
    """Return the deliveries that are due after some seconds."""
    return list_due_deliveries(
        server.boards.storage.query_tables, server.clock.now + seconds, 2_000
    )


def pause(server):
    assert server.call("POST", "/boards/first/pause", server.organiser).status_code == 200


def resume(server):
    assert server.call("POST", "/boards/first/resume", server.organiser).status_code == 200
