"""A server that stands between a client and another, and breaks things as it is told to."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import threading

__all__ = ["Proxy"]


class Proxy:
    """Takes one request a connection; for each the next of ``faults``, and none after the last.

    ``refuse`` hangs up at once, ``reset`` after the first bytes of a request, ``swallow`` when the
    other server has answered, ``cut`` in the middle of the answer; ``hang`` says nothing. Bytes
    are said in place of an answer, a list of them piece by piece. ``heard`` holds every request
    that came whole.
    """

    def __init__(self, port, *faults):
        self._port, self._faults = port, list(faults)
        self.heard = []
        self._ends = contextlib.ExitStack()
        self._socket = self._ends.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._serve)]
        self._hung = threading.Event()

    def __enter__(self):
        self._threads[0].start()
        return self

    def __exit__(self, *_):
        self._hung.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._ends.close()
        for each in self._threads:
            each.join()

    @property
    def keys(self):
        """The Idempotency-Key of every request."""
        return [each.header("Idempotency-Key") for each in self.heard]

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                line, _ = self._socket.accept()
                fault = self._faults.pop(0) if self._faults else None
                self._threads.append(threading.Thread(target=self._answer, args=(line, fault)))
                self._threads[-1].start()

    def _answer(self, line, fault):
        with line, contextlib.suppress(OSError):
            if fault == "refuse":
                return
            if fault == "reset":
                line.recv(100)
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            heard = Heard(line)
            self.heard.append(heard)
            if isinstance(fault, bytes):
                line.sendall(fault)
            elif isinstance(fault, list):
                for each in fault:
                    line.sendall(each)
                    self._hung.wait(0.02)
            elif fault == "hang":
                self._hung.wait(60)
            else:
                said = heard.pass_on(self._port)
                kept = {"swallow": 0, "cut": len(said) - 20}.get(fault, len(said))
                line.sendall(said[:kept])


class Heard:
    """A request that came whole."""

    def __init__(self, line):
        data = b""
        while b"\r\n\r\n" not in data:
            data += _more(line)
        head, _, self.body = data.partition(b"\r\n\r\n")
        self.head = head.decode()
        while len(self.body) < int(self.header("Content-Length") or 0):
            self.body += _more(line)

    def header(self, name):
        found = re.search(rf"^{name}: (.*?)\r?$", self.head, re.MULTILINE | re.IGNORECASE)
        return found and found.group(1)

    def pass_on(self, port):
        """Return the whole answer of the server at a port."""
        head = re.sub(r"(?im)^connection: .*?\r\n", "", self.head + "\r\n") + "Connection: close"
        with socket.create_connection(("127.0.0.1", port)) as line:
            line.sendall(head.encode() + b"\r\n\r\n" + self.body)
            said = b""
            while piece := line.recv(2**16):
                said += piece
        return said


def _more(line):
    piece = line.recv(2**16)
    if not piece:
        raise ConnectionError
    return piece
