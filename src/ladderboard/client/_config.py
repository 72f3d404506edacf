"""Settings of a user: the config file, where it is, and which server and token are used.

What is given counts before the environment, and that before the config file. A token goes only to
the server that it belongs to, and never in the clear to another machine unless that is wanted.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    """What is kept: a default server, and for every server the tokens of its boards."""

    default: str | None = None
    tokens: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)

    def with_token(self, server: str, board: str, token: str) -> Config:
        """Return it with one token more; the first server is the default."""
        tokens = {**self.tokens, server: {**self.tokens.get(server, {}), board: token}}
        return replace(self, default=self.default or server, tokens=tokens)

    def without_token(self, server: str, board: str | None = None) -> Config:
        """Return it without the token of a board, or without anything of a server."""
        left = {} if board is None else dict(self.tokens.get(server, {}))
        if board is not None:
            left.pop(board, None)
        tokens = {name: each for name, each in self.tokens.items() if name != server}
        if left:
            tokens[server] = left
        default = self.default if self.default in tokens else next(iter(tokens), None)
        return replace(self, default=default, tokens=tokens)

    def write(self) -> Path:
        """Put it in place of what was there, whole or not at all."""
        path = config_file()
        lines = ["# Kept by `ladderboard login`. Whoever reads this can submit in your name."]
        lines += [] if self.default is None else [f"default = {_toml_string(self.default)}"]
        for server, tokens in self.tokens.items():
            lines += ["", f"[servers.{_toml_string(server)}]"]
            lines += [
                f"{_toml_string(board)} = {_toml_string(each)}" for board, each in tokens.items()
            ]
        try:
            make_folder(path.parent)
            with tempfile.TemporaryDirectory(dir=path.parent, prefix=".login-") as folder:
                new = Path(folder, path.name)
                with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as opened:
                    opened.write("\n".join([*lines, ""]).encode())
                    opened.flush()
                    os.fsync(opened.fileno())
                new.replace(path)
        except OSError as error:
            raise InvalidSetting(f"{path} cannot be written: {error.strerror}.") from None
        return path


def read_config() -> Config:
    """Return what is kept; nothing where there is no file. One that others can read is refused."""
    path = config_file()
    try:
        with path.open("rb") as opened:
            mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
            if os.name == "posix" and mode & 0o077:
                raise InvalidSetting(
                    f"{path} holds tokens and can be read by others. Type: chmod 600 {path}"
                )
            said = tomllib.load(opened)
    except FileNotFoundError:
        return Config()
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be read: {error.strerror}.") from None
    except (
        tomllib.TOMLDecodeError,
        UnicodeDecodeError,
    ):  # tomllib's own names the line, which may hold a token
        raise _damaged_config_error(path) from None
    return _parse_config(path, said)


def change_config(change: Callable[[Config], Config]) -> tuple[bool, Path]:
    """Change what is kept, and return whether anything changed, and the file.

    Others who change it at the same time wait, so that nothing is lost.
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
    """Return a text as TOML has it, which knows no pairs of surrogates."""
    return json.dumps(text, ensure_ascii=False)


def _parse_config(path: Path, said: dict[str, Any]) -> Config:
    default, servers = said.get("default"), said.get("servers", {})
    right = isinstance(default, str | None) and isinstance(servers, dict)
    if not right or not all(
        isinstance(boards, dict) and all(isinstance(each, str) for each in boards.values())
        for boards in servers.values()
    ):
        raise _damaged_config_error(path)
    return Config(default, servers)


def _damaged_config_error(path: Path) -> InvalidSetting:
    return InvalidSetting(
        f"{path} is not as ladderboard login writes it. Mend it, or remove it and log in again."
    )


@dataclass(frozen=True)
class Access:
    """A server, one token for everything, or those that are kept for its boards."""

    address: Address
    token: str | None = field(default=None, repr=False)
    board_tokens: dict[str, str] = field(default_factory=dict, repr=False)
    insecure: bool = False

    def token_for(self, board: str | None) -> str | None:
        """Return the token to show on a board; None to come as the public."""
        token = self.board_tokens.get(board or "") if self.token is None else self.token
        if not token:
            return None
        if not (token.isascii() and token.isprintable() and " " not in token):
            raise InvalidSetting("A token must be one word of plain characters, like lb_team_...")
        self.check_encrypted()
        return token

    def check_encrypted(self) -> None:
        """Refuse a server to which a token would go in the clear."""
        if not self.address.is_secure and not self.insecure:
            raise InvalidSetting(
                f"A token is not sent in the clear to another machine: {self.address.origin} is "
                "not https. Where everybody on the way is trusted, insecure allows it."
            )


def find_access(url: str | None, token: str | None, *, insecure: bool = False) -> Access:
    """Return whom to ask, from what was given, the environment and the config file."""
    told = os.environ.get(URL) or None
    if url is not None and token is not None:
        return Access(parse_address(url), token, insecure=insecure)
    if token is None:
        # One that came with a server's address belongs to that server.
        fits = url is None or told is None or parse_address(url) == parse_address(told)
        token = (os.environ.get(TOKEN) or None) if fits else None
    url = url or told
    if url is not None and token is not None:
        return Access(parse_address(url), token, insecure=insecure)
    config = read_config()
    url = url or config.default
    if url is None:
        raise InvalidSetting(
            f"No server is named: give its address, set {URL}, or type: ladderboard login URL"
        )
    address = parse_address(url)
    return Access(address, token, config.tokens.get(address.url, {}), insecure)


def config_file() -> Path:
    """Return where ``ladderboard login`` keeps tokens."""
    return _xdg_folder("XDG_CONFIG_HOME", ".config") / "ladderboard" / "config.toml"


def receipts_folder() -> Path:
    """Return where receipts are kept unless another place is given."""
    return _xdg_folder("XDG_STATE_HOME", ".local/state") / "ladderboard" / "receipts"


def make_folder(path: Path) -> None:
    """Make a folder, and those above it that are not there, for oneself alone."""
    for each in (*reversed(path.parents), path):
        if not each.exists():
            each.mkdir(mode=0o700, exist_ok=True)


def _xdg_folder(variable: str, otherwise: str) -> Path:
    told = os.environ.get(variable, "")
    # The standard wants whole paths, and others to be passed over.
    return Path(told) if Path(told).is_absolute() else Path.home() / otherwise
