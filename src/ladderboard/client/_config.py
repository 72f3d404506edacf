"""The user's config file, and which server and token a client uses.

Arguments come first, then the environment, then the config file. A token is sent only to its own
server, and unencrypted to another machine only with ``insecure``.
"""

from __future__ import annotations

import json
import os
import stat
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard._atomic_file import atomic_write
from ladderboard.client._address import Address, parse_address
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
