"""Opens connections that put a server under load, until standard input is closed:

python hostile_clients.py PORT COUNT KIND ADDRESS PATH

Of kind ``deaf`` they send requests and read no reply; of kind ``flood`` they read and send again at
once, eight requests ahead. ADDRESS goes into X-Forwarded-For. Prints "started" when all have begun.
"""

import contextlib
import select
import socket
import sys


def main():
    port, count, kind, address, path = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
    request = (
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: {address}\r\n\r\n".encode()
    )

    def connect():
        connection = socket.socket()
        if kind == "deaf":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", port))
        connection.setblocking(False)
        connection.send(8 * request)
        return connection

    connections = [connect() for _ in range(count)]
    sys.stdout.write("started\n")
    sys.stdout.flush()
    while True:
        readable = connections if kind == "flood" else []
        ready, _, _ = select.select([sys.stdin, *readable], [], [])
        if sys.stdin in ready:
            return
        for connection in ready:
            data = b""
            with contextlib.suppress(OSError):
                data = connection.recv(2**20)
            if not data:
                connections.remove(connection)
                connections.append(connect())
                continue
            with contextlib.suppress(OSError):
                connection.send(data.count(b"HTTP/1.1 ") * request)


if __name__ == "__main__":
    main()
