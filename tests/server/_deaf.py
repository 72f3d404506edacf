"""Opens connections that press a server, and holds them until standard input ends:

python _deaf.py PORT COUNT KIND ADDRESS PATH

``deaf`` sends requests and reads no answer; ``flood`` reads and asks again at once, eight requests
ahead. ADDRESS is who a proxy would say it is. A line on standard output says that all have begun.
"""

import contextlib
import select
import socket
import sys


def main():
    port, count, kind, address, path = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
    asked = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: {address}\r\n\r\n".encode()

    def dial():
        line = socket.socket()
        if kind == "deaf":
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(("127.0.0.1", port))
        line.setblocking(False)
        line.send(8 * asked)
        return line

    lines = [dial() for _ in range(count)]
    print("begun", flush=True)  # noqa: T201
    while True:
        heard = lines if kind == "flood" else []
        ready, _, _ = select.select([sys.stdin, *heard], [], [])
        if sys.stdin in ready:
            return
        for line in ready:
            got = b""
            with contextlib.suppress(OSError):
                got = line.recv(2**20)
            if not got:
                lines.remove(line)
                lines.append(dial())
                continue
            with contextlib.suppress(OSError):
                line.send(got.count(b"HTTP/1.1 ") * asked)


if __name__ == "__main__":
    main()
