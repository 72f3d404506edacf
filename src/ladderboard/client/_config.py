"""The config file: tokens that ``ladderboard login`` keeps, each for one board of one server."""

from __future__ import annotations

import json
import os
import stat
import tempfile
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard.client._places import config_file, make_folder
from ladderboard.errors import InvalidSetting

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Config", "change_config", "read_config"]


@dataclass(frozen=True)
class Config:
    """What is kept: a default server, and for every server the tokens of its boards."""

    default: str | None = None
    tokens: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)

    def keep(self, server: str, board: str, token: str) -> Config:
        """Return it with one token more; the first server is the default."""
        tokens = {**self.tokens, server: {**self.tokens.get(server, {}), board: token}}
        return replace(self, default=self.default or server, tokens=tokens)

    def forget(self, server: str, board: str | None = None) -> Config:
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
        lines += [] if self.default is None else [f"default = {_quoted(self.default)}"]
        for server, tokens in self.tokens.items():
            lines += ["", f"[servers.{_quoted(server)}]"]
            lines += [f"{_quoted(board)} = {_quoted(each)}" for board, each in tokens.items()]
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
        raise _damaged(path) from None
    return _understood(path, said)


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


def _quoted(text: str) -> str:
    """Return a text as TOML has it, which knows no pairs of surrogates."""
    return json.dumps(text, ensure_ascii=False)


def _understood(path: Path, said: dict[str, Any]) -> Config:
    default, servers = said.get("default"), said.get("servers", {})
    right = isinstance(default, str | None) and isinstance(servers, dict)
    if not right or not all(
        isinstance(boards, dict) and all(isinstance(each, str) for each in boards.values())
        for boards in servers.values()
    ):
        raise _damaged(path)
    return Config(default, servers)


def _damaged(path: Path) -> InvalidSetting:
    return InvalidSetting(
        f"{path} is not as ladderboard login writes it. Mend it, or remove it and log in again."
    )
