"""The user's config file, and which server and token a client uses.

Arguments come first, then the environment, then the config file. A token is sent only to its own
server, and unencrypted to another machine only with ``insecure``.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlsplit

from ladderboard import _settings
from ladderboard._atomic_file import atomic_write
from ladderboard.errors import InvalidSetting

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable

URL, TOKEN = "LADDERBOARD_URL", "LADDERBOARD_TOKEN"


@dataclass(frozen=True)
class Config:
    """A default server, and for every server the tokens of its boards."""

    default: str | None = None
    tokens: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)

    def with_token(self, server: str, board: str, token: str) -> Config:
        """Return a copy with one more token; the first server becomes the default."""
        tokens = {**self.tokens, server: {**self.tokens.get(server, {}), board: token}}
        return replace(self, default=self.default or server, tokens=tokens)

    def without_token(self, server: str, board: str | None = None) -> Config:
        """Return a copy without a board's token, or without all tokens of a server."""
        remaining = {} if board is None else dict(self.tokens.get(server, {}))
        if board is not None:
            remaining.pop(board, None)
        tokens = {name: token for name, token in self.tokens.items() if name != server}
        if remaining:
            tokens[server] = remaining
        default = self.default if self.default in tokens else next(iter(tokens), None)
        return replace(self, default=default, tokens=tokens)

    def write(self) -> Path:
        """Replace the config file atomically and return its path."""
        path = config_file()
        lines = [
            "# Written by `ladderboard login`. Keep it secret: these tokens submit in your name."
        ]
        lines += [] if self.default is None else [f"default = {_toml_string(self.default)}"]
        for server, tokens in self.tokens.items():
            lines += ["", f"[servers.{_toml_string(server)}]"]
            lines += [
                f"{_toml_string(board)} = {_toml_string(token)}" for board, token in tokens.items()
            ]
        try:
            make_folder(path.parent)
            atomic_write(path, "\n".join([*lines, ""]).encode())
        except OSError as error:
            raise InvalidSetting(f"{path} cannot be written: {error.strerror}.") from None
        return path


def read_config() -> Config:
    """Return the config; an empty one without a file. A file that others can read is refused."""
    path = config_file()
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if os.name == "posix" and mode & 0o077:
                raise InvalidSetting(
                    f"{path} holds tokens and others can read it. Run: chmod 600 {path}"
                )
            document = tomllib.load(file)
    except FileNotFoundError:
        return Config()
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be read: {error.strerror}.") from None
    except (
        tomllib.TOMLDecodeError,
        UnicodeDecodeError,
    ):  # tomllib's message quotes the line, which may hold a token
        raise _damaged_config_error(path) from None
    return _parse_config(path, document)


def change_config(change: Callable[[Config], Config]) -> tuple[bool, Path]:
    """Update the config file; return whether anything changed, and the file's path.

    A lock makes concurrent updates wait, so that all of them are saved.
    """
    path = config_file()
    try:
        make_folder(path.parent)
        lock = os.open(path.with_suffix(".lock"), os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(lock, "wb"):
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            old = read_config()
            new = change(old)
            if new != old:
                new.write()
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be written: {error.strerror}.") from None
    return new != old, path


def _toml_string(text: str) -> str:
    """Return a TOML string; unlike JSON, TOML has no surrogate pairs, so nothing is escaped."""
    return json.dumps(text, ensure_ascii=False)


def _parse_config(path: Path, document: dict[str, Any]) -> Config:
    default, servers = document.get("default"), document.get("servers", {})
    valid = isinstance(default, str | None) and isinstance(servers, dict)
    if not valid or not all(
        isinstance(boards, dict) and all(isinstance(board, str) for board in boards.values())
        for boards in servers.values()
    ):
        raise _damaged_config_error(path)
    return Config(default, servers)


def _damaged_config_error(path: Path) -> InvalidSetting:
    return InvalidSetting(
        f"{path} is damaged. Repair it, or delete it and run ladderboard login again."
    )


@dataclass(frozen=True)
class Access:
    """A server, and one token for everything or the stored tokens of its boards."""

    address: Address
    token: str | None = field(default=None, repr=False)
    board_tokens: dict[str, str] = field(default_factory=dict, repr=False)
    insecure: bool = False

    def token_for(self, board: str | None) -> str | None:
        """Return the token for a board; None for public access."""
        token = self.board_tokens.get(board or "") if self.token is None else self.token
        if not token:
            return None
        if not (token.isascii() and token.isprintable() and " " not in token):
            raise InvalidSetting("A token must be printable ASCII without spaces, like lb_team_...")
        self.check_encrypted()
        return token

    def check_encrypted(self) -> None:
        """Refuse to send a token unencrypted to another machine."""
        if not self.address.is_secure and not self.insecure:
            raise InvalidSetting(
                f"A token is not sent unencrypted to another machine: {self.address.origin} is not "
                "https. If you trust the network, allow it with insecure."
            )


def find_access(url: str | None, token: str | None, *, insecure: bool = False) -> Access:
    """Return server and token from the arguments, the environment and the config file."""
    environment_url = os.environ.get(URL) or None
    if url is not None and token is not None:
        return Access(parse_address(url), token, insecure=insecure)
    if token is None:
        # A token in the environment belongs to the server in the environment.
        same_server = (
            url is None
            or environment_url is None
            or parse_address(url) == parse_address(environment_url)
        )
        token = (os.environ.get(TOKEN) or None) if same_server else None
    url = url or environment_url
    if url is not None and token is not None:
        return Access(parse_address(url), token, insecure=insecure)
    config = read_config()
    url = url or config.default
    if url is None:
        raise InvalidSetting(
            f"No server is set: give its address, set {URL}, or run: ladderboard login URL"
        )
    address = parse_address(url)
    return Access(address, token, config.tokens.get(address.url, {}), insecure)


def config_file() -> Path:
    """Return the file where ``ladderboard login`` stores tokens."""
    return _xdg_folder("XDG_CONFIG_HOME", ".config") / "ladderboard" / "config.toml"


def receipts_folder() -> Path:
    """Return the default folder of receipts."""
    return _xdg_folder("XDG_STATE_HOME", ".local/state") / "ladderboard" / "receipts"


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents, readable by the user alone."""
    for folder in (*reversed(path.parents), path):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)


def _xdg_folder(variable: str, default: str) -> Path:
    value = os.environ.get(variable, "")
    # The XDG specification says to ignore relative paths.
    return Path(value) if Path(value).is_absolute() else Path.home() / default


RESERVED_PATHS = frozenset(
    {
        "api",
        "boards",
        "healthz",
        "install",
        "login",
        "metrics",
        "openapi.json",
        "session",
        "sign-in",
        "static",
    }
)
"""First parts of a server's own paths; a prefix has none of them, so its end is unambiguous."""

_SLUG = re.compile("[a-z0-9][a-z0-9-]{0,62}")
# No empty labels and nothing unprintable: hosts are stored and shown.
_PART = r"[a-z0-9_\-\x80-\U0010ffff]{1,63}"
_HOST = re.compile(rf"{_PART}(\.{_PART})*\.?|[0-9a-f:.]*:[0-9a-f:.]*")
_PREFIX = re.compile("(/[A-Za-z0-9_~-][A-Za-z0-9_~.-]*)*")
_MAX_PREFIX = 200  # characters of a prefix
_PORTS = {"http": 80, "https": 443}


class Address(NamedTuple):
    """A server's address, normalised: equal addresses are equal tuples.

    ``prefix`` is the path below which the server runs, such as ``/ladder``; empty for none.
    """

    scheme: str
    host: str
    port: int
    prefix: str = ""

    @property
    def origin(self) -> str:
        """The address without the prefix."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    @property
    def url(self) -> str:
        """The address as text."""
        return self.origin + self.prefix

    @property
    def folder_name(self) -> str:
        """A folder name that is unique for this address."""
        below = f"_{quote(self.prefix, safe='')}" if self.prefix else ""
        return f"{self.scheme}_{quote(self.host, safe='')}_{self.port}{below}"

    @property
    def is_secure(self) -> bool:
        """Whether the connection is encrypted, or stays on this machine."""
        return self.scheme == "https" or _settings.is_loopback(self.host)


def parse_address(url: Any) -> Address:
    """Return the address in a text, normalised.

    >>> parse_address("HTTPS://Boards.Example.org:443/").url
    'https://boards.example.org'
    >>> parse_address("https://example.org/ladder/").url
    'https://example.org/ladder'
    """
    split = _split_url(url)
    address = None if split is None else _with_prefix(*split)
    if split is None or address is None:
        parts = [] if split is None else split[1].split("/")
        reserved = [part for part in parts if part in RESERVED_PATHS]
        reason = f" Its path cannot contain {reserved[0]}: the server uses it." if reserved else ""
        raise InvalidSetting(
            "A server's address is like https://boards.example.org or https://example.org/ladder; "
            f"got {_settings.safe_repr(url)}.{reason}"
        )
    return address


def _with_prefix(address: Address, path: str) -> Address | None:
    """Return the address of a server at a path, if one can be there."""
    prefix = path.removesuffix("/")
    valid = len(prefix) <= _MAX_PREFIX and _PREFIX.fullmatch(prefix)
    if not valid or not RESERVED_PATHS.isdisjoint(prefix.split("/")):
        return None
    return address._replace(prefix=prefix)


def split_board(board: Any) -> tuple[str | None, str]:
    """Return the server, or None if only a name was given, and the board's name.

    >>> split_board("digits"), split_board("http://127.0.0.1:8000/boards/digits#submit")
    ((None, 'digits'), ('http://127.0.0.1:8000', 'digits'))
    >>> split_board("https://example.org/ladder/boards/digits/submit")
    ('https://example.org/ladder', 'digits')
    """
    if isinstance(board, str) and "/" in board:
        split = _split_url(board.partition("#")[0])
        prefix, is_page, path = ("", "", "") if split is None else split[1].partition("/boards/")
        server = _with_prefix(split[0], prefix) if split is not None and is_page else None
        if server is not None:
            return server.url, check_board_name(path.partition("/")[0])
    return None, check_board_name(board)


def check_board_name(board: Any) -> str:
    """Return a board's name; refuse an invalid one."""
    if not isinstance(board, str) or not _SLUG.fullmatch(board):
        raise InvalidSetting(
            "A board is given by its short name, like digits, or its page's address, like "
            f"https://boards.example.org/boards/digits; got {_settings.safe_repr(board)}."
        )
    return board


def _split_url(url: Any) -> tuple[Address, str] | None:
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is None or parts.scheme not in _PORTS or not parts.hostname:
            return None
        if parts.query or parts.fragment or parts.username or parts.password:
            return None
        if not _HOST.fullmatch(parts.hostname) or not parts.hostname.isprintable():
            return None
        port = _PORTS[parts.scheme] if parts.port is None else parts.port
        return Address(parts.scheme, parts.hostname, port), parts.path
    except ValueError:
        return None
