"""A server as a process, at a path, behind a real nginx with the how-to page's configuration."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import ssl
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from support.nginx import Nginx
from support.processes import free_port

HERE = {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
RULES = """slug: {slug}
title: {slug}
loss: zero_one
mechanism: {{name: ladder, step: 0.01}}
questions: 200
teams: 20
registration: open
{more}"""


@dataclass
class Site:
    """What people see: an address, behind which a proxy and a server are."""

    url: str
    nginx: object
    listening: str
    folder: Path
    organiser: str

    @property
    def origin(self):
        """The address of the proxy."""
        return f"https://localhost:{self.nginx.port}"

    @property
    def authority(self):
        """The file of the certificate authority of the proxy's name."""
        return str(self.nginx.authority)

    def browser(self, *, address="127.0.0.1", **options):
        """Return a client with cookies of its own, that comes from an address of the loopback."""
        context = ssl.create_default_context(cafile=self.authority)
        return httpx.Client(
            base_url=self.origin + urlsplit(self.url).path,
            transport=httpx.HTTPTransport(verify=context, local_address=address),
            timeout=60,
            **options,
        )

    def program(self, *args, stdin=None, **environment):
        """Run a verb as a participant: what it needs is in the environment, as always."""
        known = {name: value for name, value in os.environ.items() if not name.startswith("LADDER")}
        home = {"XDG_CONFIG_HOME": str(self.folder), "XDG_STATE_HOME": str(self.folder)}
        return subprocess.run(
            [sys.executable, "-m", "ladderboard", *map(str, args)],
            env={**known, **HERE, **home, "SSL_CERT_FILE": self.authority, **environment},
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def raw(self, text):
        """Say something to nginx that no library would say, and return what it says."""
        context = ssl.create_default_context(cafile=self.authority)
        with (
            socket.create_connection(("127.0.0.1", self.nginx.port)) as line,
            context.wrap_socket(line, server_hostname="localhost") as safe,
        ):
            safe.sendall(text.encode())
            parts = []
            while part := safe.recv(65536):
                parts.append(part)
        return b"".join(parts).decode("latin-1")

    def team(self, name, board="first"):
        """Make a team, as the organiser does; return its token."""
        response = httpx.post(
            f"{self.listening}/api/v1/boards/{board}/teams",
            json={"name": name},
            headers={"Authorization": f"Bearer {self.organiser}"},
        )
        assert response.status_code == 201, response.text
        return response.json()["token"]

    def sign_in(self, browser, token, **fields):
        """Sign a browser in through the form."""
        word = csrf_of(browser.get("/login").text)
        return browser.post("/session", data={"token": token, "csrf": word, **fields})


def csrf_of(page):
    """Return the word that a page's forms say."""
    return re.search(r'name="csrf" value="([^"]+)"', page).group(1)


def make_board(folder, slug, rows, rules=""):
    """Write a board's folder."""
    path = folder / slug
    path.mkdir()
    (path / "board.yaml").write_text(RULES.format(slug=slug, more=rules))
    lines = "".join(
        f"row-{index:08},{index % 2},{'private' if index % 4 == 3 else 'public'}\n"
        for index in range(rows)
    )
    (path / "holdout.csv").write_text(f"id,label,split\n{lines}")
    return path


@pytest.fixture(scope="session")
def predict():
    """Make predictions for this many rows, with this many wrong."""

    def make(rows, wrong=0):
        lines = "".join(f"row-{index:08},{index % 2 ^ (index < wrong)}\n" for index in range(rows))
        return f"id,prediction\n{lines}".encode()

    return make


@contextlib.contextmanager
def serving(folder, boards, *args):
    """Run a server; give what it says for machines."""
    command = [sys.executable, "-m", "ladderboard", "serve", *boards, "--json", "--port", "0"]
    command += ["--database", folder / "boards.db", *args]
    log = (folder / "log").open("wb")
    options = {
        "stdout": subprocess.PIPE,
        "stderr": log,
        "cwd": folder,
        "env": {**os.environ, **HERE},
    }
    with subprocess.Popen(command, **options) as process:
        try:
            line = process.stdout.readline()
            assert line, (folder / "log").read_text()
            yield json.loads(line)
        finally:
            process.terminate()
            process.wait(timeout=60)
            log.close()


@pytest.fixture(scope="session")
def make_site(tmp_path_factory):
    """Serve boards below a prefix of https://localhost:PORT, behind nginx with some changes."""

    @contextlib.contextmanager
    def make(boards, *, prefix="/ladder", changes=None):
        folder, port = tmp_path_factory.mktemp("site"), free_port()
        folders = [make_board(folder, *board) for board in boards]
        url = f"https://localhost:{port}{prefix}"
        with serving(folder, folders, "--url", url, "--proxy", "127.0.0.1") as output:
            assert output.get("url") == url, output
            nginx = Nginx(port_of(output["listening"]), port=port, changes=changes)
            try:
                yield Site(url, nginx, output["listening"], folder, output["token"])
            finally:
                nginx.stop()

    return make


@pytest.fixture(scope="session")
def site(make_site):
    """Serve boards at https://localhost:PORT/ladder, for all tests of this process."""
    small = "files: {bytes: 20000}\n"
    with make_site([("first", 400), ("large", 200_000), ("small", 40, small)]) as started:
        yield started


def port_of(url):
    """Return the port of an address."""
    return int(url.rpartition(":")[2])


@pytest.fixture
def another_proxy(site):
    """Run another nginx before the same server, with changes to what the page says."""
    running = []

    def run(changes, to=None):
        running.append(Nginx(to or port_of(site.listening), changes=changes))
        return replace(site, nginx=running[-1])

    yield run
    for process in running:
        process.stop()
