"""An HTTP proxy that fails in chosen ways."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import threading


class FaultyProxy:
    """Handles one request per connection with the next of ``faults``; without fault at the end.

    ``refuse`` closes the connection at once, ``reset`` after the first bytes of a request,
    ``swallow`` after the server has replied, ``cut`` in the middle of the reply; ``hang`` never
    replies. Bytes are sent instead of a reply, a list of them piece by piece. ``requests`` holds
    every request that arrived completely.
    """

    def __init__(self, port, *faults):
        self._port, self._faults = port, list(faults)
        self.requests = []
        self._ends = contextlib.ExitStack()
        self._socket = self._ends.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._serve)]
        self._closing = threading.Event()

    def __enter__(self):
        self._threads[0].start()
        return self

    def __exit__(self, *_):
        self._closing.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._ends.close()
        for thread in self._threads:
            thread.join()

    @property
    def keys(self):
        """The Idempotency-Key of every request."""
        return [request.header("Idempotency-Key") for request in self.requests]

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                fault = self._faults.pop(0) if self._faults else None
                thread = threading.Thread(target=self._handle, args=(connection, fault))
                self._threads.append(thread)
                thread.start()

    def _handle(self, connection, fault):
        with connection, contextlib.suppress(OSError):
            if fault == "refuse":
                return
            if fault == "reset":
                connection.recv(100)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            request = ReceivedRequest(connection)
            self.requests.append(request)
            if isinstance(fault, bytes):
                connection.sendall(fault)
            elif isinstance(fault, list):
                for piece in fault:
                    connection.sendall(piece)
                    self._closing.wait(0.02)
            elif fault == "hang":
                self._closing.wait(60)
            else:
                reply = request.forward(self._port)
                size = {"swallow": 0, "cut": len(reply) - 20}.get(fault, len(reply))
                connection.sendall(reply[:size])


class ReceivedRequest:
    """A complete request."""

    def __init__(self, connection):
        data = b""
        while b"\r\n\r\n" not in data:
            data += _receive(connection)
        head, _, self.body = data.partition(b"\r\n\r\n")
        self.head = head.decode()
        while len(self.body) < int(self.header("Content-Length") or 0):
            self.body += _receive(connection)

    def header(self, name):
        """Return the value of a header, None without it."""
        match = re.search(rf"^{name}: (.*?)\r?$", self.head, re.MULTILINE | re.IGNORECASE)
        return match and match.group(1)

    def forward(self, port):
        """Return the complete reply of the server at a port."""
        head = re.sub(r"(?im)^connection: .*?\r\n", "", self.head + "\r\n") + "Connection: close"
        with socket.create_connection(("127.0.0.1", port)) as server:
            server.sendall(head.encode() + b"\r\n\r\n" + self.body)
            reply = b""
            while piece := server.recv(2**16):
                reply += piece
        return reply


def _receive(connection):
    piece = connection.recv(2**16)
    if not piece:
        raise ConnectionError
    return piece
