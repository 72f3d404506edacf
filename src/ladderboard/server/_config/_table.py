"""The table of all settings of a server: what is not in here cannot be set.

The file, the environment, ``ladderboard settings`` and the page docs/reference/settings.md are made
from it or compared with it, and so are the fields of ``Serving`` and ``Settings``.
"""

from __future__ import annotations

from ladderboard.server._config._kinds import (
    FLAG,
    LIST,
    PATH,
    RATE,
    TEXT,
    TOKEN,
    URL,
    number,
    whole,
)
from ladderboard.server._config._setting import Setting

__all__ = ["SETTINGS"]

_ROWS = (
    Setting(
        name="database",
        kind=TEXT,
        default="ladderboard.db",
        option="--database",
        meaning="The database: a file, or postgresql+psycopg://user@host/name.",
    ),
    Setting(
        name="key_file",
        kind=PATH,
        default=None,
        option="--key-file",
        meaning="Encrypts labels and everything else that is secret; made with a new database.",
    ),
    Setting(
        name="serve.host",
        kind=TEXT,
        default="127.0.0.1",
        option="--host",
        meaning="The address to listen at; 0.0.0.0 for all of the machine's.",
    ),
    Setting(
        name="serve.port",
        kind=whole(0, 65535),
        default=8000,
        option="--port",
        meaning="The port to listen on; 0 for any that is free.",
    ),
    Setting(
        name="serve.workers",
        kind=whole(1, 256),
        default=1,
        option="--workers",
        meaning="How many processes answer; several need PostgreSQL.",
    ),
    Setting(
        name="serve.url",
        kind=URL,
        default=None,
        option="--url",
        meaning="What people type to come here, where a name leads to the server.",
    ),
    Setting(
        name="serve.proxy",
        kind=LIST,
        default=(),
        option="--proxy",
        meaning="Addresses of reverse proxies that are believed who asks, and whether by TLS.",
    ),
    Setting(
        name="serve.hosts",
        kind=LIST,
        default=(),
        meaning="Further names by which the server is known, besides that in url.",
    ),
    Setting(
        name="serve.secure",
        kind=FLAG,
        default=None,
        meaning="Whether cookies go over TLS only; where nobody says, if url or the request is "
        "https.",
    ),
    Setting(
        name="serve.parsers",
        kind=whole(1, 256),
        default=2,
        meaning="How many processes read submissions, for each that answers.",
    ),
    Setting(
        name="serve.threads",
        kind=whole(1, 1000),
        default=32,
        meaning="How many requests each process works on at once.",
    ),
    Setting(
        name="serve.spool",
        kind=PATH,
        default=None,
        meaning="A folder for submissions too large for memory, while they come in; where nobody "
        "says, beside an SQLite file, else in the system's temporary folder.",
    ),
    Setting(
        name="serve.trials",
        kind=PATH,
        default=None,
        meaning="A folder for what attackers that an organiser let play have found; where nobody "
        "says, a temporary one.",
    ),
    Setting(
        name="serve.body_seconds",
        kind=number(0),
        default=300.0,
        meaning="How long a submission may take to come in, in seconds.",
    ),
    Setting(
        name="serve.session_seconds",
        kind=whole(1),
        default=12 * 3600,
        meaning="How long somebody stays signed in on the pages, in seconds.",
    ),
    Setting(
        name="serve.trial_seconds",
        kind=number(0),
        default=900.0,
        meaning="How long attackers that an organiser lets play may take, in seconds.",
    ),
    Setting(
        name="serve.address_connections",
        kind=whole(1),
        default=100,
        meaning="How many connections one client address may have at each process; behind a "
        "trusted proxy, how many requests under way.",
    ),
    Setting(
        name="serve.failures",
        kind=RATE,
        default=(30, 10.0),
        meaning="Wrong tokens from one address: how many at once, and the seconds until one more.",
    ),
    Setting(
        name="serve.registrations",
        kind=RATE,
        default=(10, 60.0),
        meaning="Registrations from one address: how many at once, and the seconds until one more.",
    ),
    Setting(
        name="serve.invalid",
        kind=RATE,
        default=(30, 20.0),
        meaning="Invalid files of one team: how many at once, and the seconds until one more.",
    ),
    Setting(
        name="serve.metrics_token",
        kind=TOKEN,
        default=None,
        secret=True,
        meaning="Opens /metrics, besides the organiser's token; better kept in a file of its own.",
    ),
    Setting(
        name="serve.metrics_token_file",
        kind=PATH,
        default=None,
        meaning="A file whose first line is that token.",
    ),
    Setting(
        name="serve.log_client",
        kind=FLAG,
        default=False,
        meaning="Whether the log names the addresses that requests come from.",
    ),
)

SETTINGS: dict[str, Setting] = {each.name: each for each in _ROWS}
"""All settings by name, in the order in which they are shown."""
