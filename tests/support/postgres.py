"""Runs a PostgreSQL server in a temporary folder, on a loopback port and a Unix socket."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

from support.credentials import random_secret
from support.processes import free_port

PASSWORD = random_secret()
_DEBIAN_PROGRAMS = Path("/usr/lib/postgresql")


def program_folder() -> Path:
    """Return the folder of initdb and postgres; fail if they are not installed."""
    initdb = shutil.which("initdb")
    if initdb:
        return Path(os.path.realpath(initdb)).parent
    versions = sorted(_DEBIAN_PROGRAMS.glob("*/bin"), key=lambda path: int(path.parent.name))
    assert versions, "The tests need a PostgreSQL server; script/postgres installs one."
    return versions[-1]


def _unprivileged_user() -> dict[str, int]:
    """Return Popen options for another user: the server refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        user = pwd.getpwnam("nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


class PostgresServer:
    """A running PostgreSQL server; ``settings`` are passed on its command line."""

    def __init__(self, **settings: str) -> None:
        # A short path: a socket's path is limited to about 100 characters.
        self.folder = Path(tempfile.mkdtemp(prefix="lb-pg-"))
        self.user = _unprivileged_user()
        if self.user:
            os.chown(self.folder, self.user["user"], self.user["group"])
        password_file = self.folder / "password"
        password_file.write_text(PASSWORD)
        password_file.chmod(0o644)
        initdb = [program_folder() / "initdb", "-D", self.folder / "data", "-U", "tester"]
        initdb += ["-E", "UTF8", "--locale=C", "--no-sync", "--auth-local=trust"]
        initdb += ["--auth-host=scram-sha-256", f"--pwfile={password_file}"]
        subprocess.run(
            initdb, check=True, capture_output=True, timeout=120, cwd=self.folder, **self.user
        )
        self.port = free_port()
        self.log = (self.folder / "log").open("ab")
        options = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            "max_connections": "60",
            "autovacuum": "off",  # it would visit the tables of a thousand tests
            **settings,
        }
        self.command = [program_folder() / "postgres", "-D", self.folder / "data"]
        for name, value in options.items():
            self.command += ["-c", f"{name}={value}"]
        self.start()

    def start(self) -> None:
        """Start the server, for the first time or after ``end``."""
        self.process = subprocess.Popen(
            self.command, stdout=self.log, stderr=self.log, cwd=self.folder, **self.user
        )
        self._wait_until_ready()

    def end(self, signal_number: signal.Signals = signal.SIGINT) -> None:
        """End the server as pg_ctl does (SIGINT fast, SIGQUIT immediate); keep its data."""
        self.process.send_signal(signal_number)
        self.process.wait(timeout=30)

    def hang(self) -> None:
        """Suspend all processes of the server: it stops responding but keeps its connections."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume all processes after ``hang``."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, signal_number: signal.Signals) -> None:
        parent = self.process.pid
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        for pid in (parent, *map(int, children)):
            os.kill(pid, signal_number)

    def _wait_until_ready(self) -> None:
        for _ in range(600):
            try:
                psycopg.connect(self.url()).close()
            except psycopg.OperationalError:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                time.sleep(0.05)
            else:
                return
        raise AssertionError((self.folder / "log").read_text())

    def url(self, *, password: str = PASSWORD, query: str = "") -> str:
        """Return the database's URL over TCP."""
        return f"postgresql://tester:{password}@127.0.0.1:{self.port}/postgres{query}"

    def socket_url(self) -> str:
        """Return the database's URL over the Unix socket, without a password."""
        return f"postgresql+psycopg://tester@/postgres?host={self.folder}&port={self.port}"

    def run(self, statement: str, *values: object) -> list[tuple]:
        """Run a statement on a new connection; return the rows."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def stop(self) -> None:
        """Stop the server and remove its folder."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
