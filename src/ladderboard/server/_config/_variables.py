"""Environment variables that are no settings of a server, and those that mean nothing."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, NamedTuple

from ladderboard.server._config._table import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CONFIG", "VARIABLES", "Variable", "strangers"]

CONFIG = "LADDERBOARD_CONFIG"
_OURS = "LADDERBOARD_"


class Variable(NamedTuple):
    """A variable: what it means, whether it is secret, and which library reads it if not we."""

    name: str
    meaning: str
    secret: bool = False
    library: str | None = None


VARIABLES: tuple[Variable, ...] = (
    Variable(CONFIG, "The settings file, where --config names none."),
    Variable("LADDERBOARD_URL", "The server, or the guard, that is asked where none is named."),
    Variable("LADDERBOARD_TOKEN", "The token to ask it with.", secret=True),
    Variable("LADDERBOARD_PASSPHRASE", "The passphrase of a dump.", secret=True),
    Variable("XDG_CONFIG_HOME", "The folder for tokens that login keeps; ~/.config if not set."),
    Variable("XDG_STATE_HOME", "The folder for receipts; ~/.local/state if not set."),
    Variable("LISTEN_FDS", "How many sockets systemd gives the server: one, or none."),
    Variable("LISTEN_PID", "Which process it gives them to."),
    Variable("LISTEN_FDNAMES", "How it calls them; not looked at."),
    Variable("TERM", "What a terminal can do: on one that is dumb nothing is drawn."),
    Variable("NO_COLOR", "If set, no colours on a terminal.", library="rich"),
    Variable("COLUMNS", "How wide a terminal is, where it does not say.", library="rich"),
    Variable("TMPDIR", "The folder for temporary files.", library="Python"),
    Variable("PGPASSWORD", "The password for PostgreSQL.", secret=True, library="libpq"),
    Variable("PGPASSFILE", "A file with passwords; ~/.pgpass if not set.", library="libpq"),
    Variable(
        "HTTPS_PROXY",
        "A proxy that those who take part ask an https server by.",
        secret=True,
        library="httpx",
    ),
    Variable("SSL_CERT_FILE", "Certificates that they trust.", library="httpx"),
    Variable("TZ", "The time zone; what is told is in UTC all the same.", library="Python"),
    Variable("LANG", "The language, for processes that help the server.", library="Python"),
    Variable("LC_ALL", "The same.", library="Python"),
    Variable("LC_CTYPE", "The same.", library="Python"),
    Variable("LD_LIBRARY_PATH", "Where libraries are, for the same.", library="the system"),
)


def strangers(environment: Mapping[str, str]) -> list[str]:
    """Return a sentence for every variable that looks like one of ours and is none.

    >>> strangers({"LADDERBOARD_SERVE_PROT": "80", "PATH": "/bin"})
    ['LADDERBOARD_SERVE_PROT is set and means nothing; is LADDERBOARD_SERVE_PORT meant?']
    """
    known = [each.variable for each in SETTINGS.values()]
    known += [each.name for each in VARIABLES if each.name.startswith(_OURS)]
    said = []
    for name in sorted(environment):
        if name.startswith(_OURS) and name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
            meant = f"is {near[0]} meant?" if near else "ladderboard settings lists all."
            said.append(f"{name} is set and means nothing; {meant}")
    return said
