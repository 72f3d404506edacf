"""The config file: tokens that ``ladderboard login`` keeps, each for one board of one server."""

from __future__ import annotations

import json
import os
import stat
import tempfile
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ladderboard.client._places import config_file, make_folder
from ladderboard.errors import InvalidSetting

__all__ = ["Config", "read_config"]


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
        lines += [] if self.default is None else [f"default = {json.dumps(self.default)}"]
        for server, tokens in self.tokens.items():
            lines += ["", f"[servers.{json.dumps(server)}]"]
            lines += [f"{json.dumps(board)} = {json.dumps(each)}" for board, each in tokens.items()]
        try:
            make_folder(path.parent)
            with tempfile.TemporaryDirectory(dir=path.parent, prefix=".login-") as folder:
                new = Path(folder, path.name)
                with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT, 0o600), "w") as opened:
                    opened.write("\n".join(lines) + "\n")
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
