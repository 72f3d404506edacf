"""A PostgreSQL server of the tests' own, on a loopback port and a socket, in a folder that goes."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

PASSWORD = "correct-horse"  # noqa: S105 - a server that lives for a minute
_DEBIAN = Path("/usr/lib/postgresql")


def programs() -> Path:
    """Return where initdb and postgres are; without them the tests fail, and say so."""
    found = shutil.which("initdb")
    if found:
        return Path(os.path.realpath(found)).parent
    for folder in sorted(_DEBIAN.glob("*/bin"), key=lambda each: int(each.parent.name)):
        found = folder
    assert found, "The tests need a PostgreSQL server; script/postgres installs one."
    return found


def _other_user() -> dict[str, int]:
    """Return who shall run the server, which refuses to be root."""
    if os.geteuid() != 0:
        return {}
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        user = pwd.getpwnam("nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A running server; ``settings`` are given to it on its command line."""

    def __init__(self, **settings: str) -> None:
        # A short path: that of a socket may have about a hundred characters.
        self.folder = Path(tempfile.mkdtemp(prefix="lb-pg-"))
        self.user = _other_user()
        if self.user:
            os.chown(self.folder, self.user["user"], self.user["group"])
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        initdb = [programs() / "initdb", "-D", self.folder / "data", "-U", "tester", "-E", "UTF8"]
        initdb += ["--locale=C", "--no-sync", "--auth-local=trust"]
        initdb += ["--auth-host=scram-sha-256", f"--pwfile={secret}"]
        subprocess.run(
            initdb, check=True, capture_output=True, timeout=120, cwd=self.folder, **self.user
        )
        self.port = _free_port()
        self.log = (self.folder / "log").open("ab")
        options = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            "max_connections": "60",
            **settings,
        }
        self.command = [programs() / "postgres", "-D", self.folder / "data"]
        for name, value in options.items():
            self.command += ["-c", f"{name}={value}"]
        self.start()

    def start(self) -> None:
        """Start it, at first or after it was ended."""
        self.process = subprocess.Popen(
            self.command, stdout=self.log, stderr=self.log, cwd=self.folder, **self.user
        )
        self._wait()

    def end(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it as pg_ctl does: SIGINT is fast, SIGQUIT immediate; what it holds is kept."""
        self.process.send_signal(how)
        self.process.wait(timeout=30)

    def hang(self) -> None:
        """Let all of its processes say nothing more, and end nothing either."""
        self._tell_all(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let them go on as if nothing had been."""
        self._tell_all(signal.SIGCONT)

    def _tell_all(self, what: signal.Signals) -> None:
        mine = self.process.pid
        children = Path(f"/proc/{mine}/task/{mine}/children").read_text().split()
        for each in (mine, *map(int, children)):
            os.kill(each, what)

    def _wait(self) -> None:
        for _ in range(600):
            try:
                psycopg.connect(self.url()).close()
            except psycopg.OperationalError:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                time.sleep(0.05)
            else:
                return
        raise AssertionError((self.folder / "log").read_text())

    def url(self, *, password: str = PASSWORD, more: str = "") -> str:
        """Return the address of the database, through the loopback."""
        return f"postgresql://tester:{password}@127.0.0.1:{self.port}/postgres{more}"

    def socket_url(self) -> str:
        """Return the same through the Unix socket, without a password."""
        return f"postgresql+psycopg://tester@/postgres?host={self.folder}&port={self.port}"

    def run(self, statement: str, *values: object) -> list[tuple]:
        """Run a statement beside what is tested."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def stop(self) -> None:
        """Stop the server, and remove its folder."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
