"""Keys of vaults as text, which a person may copy: a word, hex digits, and a check of them."""

from __future__ import annotations

import hashlib
import hmac
import os
from pathlib import Path

from ladderboard.errors import InvalidSetting
from ladderboard.ledger._fresh import fresh_file
from ladderboard.ledger._vault_key import PublicKey, SecretKey

__all__ = ["make_secret_key", "read_public_key", "read_secret_key", "write_public_key"]

_PUBLIC, _SECRET = "ladderboard-public-", "ladderboard-secret-"
_KEY, _CHECK = 32, 4
_LONGEST = 4096  # bytes of a key's file


def write_public_key(key: PublicKey) -> str:
    """Return a public key as text.

    >>> write_public_key(PublicKey(bytes(32)))[-12:]
    '000069bb0a7b'
    """
    return _write(_PUBLIC, key.key)


def read_public_key(given: str | os.PathLike[str]) -> PublicKey:
    """Return a public key from its text, or from a file that holds it."""
    text = os.fspath(given).strip()
    if text.startswith(_SECRET):
        raise InvalidSetting(
            "This is a secret key, which nobody else should have; give the public one, which "
            f"begins with {_PUBLIC}."
        )
    if not text.startswith(_PUBLIC):
        text = _find(Path(text), _PUBLIC)
    return PublicKey(_read(_PUBLIC, text))


def make_secret_key(path: Path | str) -> SecretKey:
    """Make a file with a new secret key, readable by its owner only; never in place of another."""
    key = SecretKey.make()
    text = (
        "# Opens what was closed for the public key below. Nobody else should have this file.\n"
        f"# {write_public_key(key.public)}\n{_write(_SECRET, key.key)}\n"
    )
    with fresh_file(Path(path)) as draft:
        draft.write_text(text, encoding="ascii")
    return key


def read_secret_key(path: str | os.PathLike[str]) -> SecretKey:
    """Return the secret key in a file. What the file holds is never shown."""
    return SecretKey(_read(_SECRET, _find(Path(path), _SECRET)))


def _write(word: str, key: bytes) -> str:
    return f"{word}{key.hex()}{_check(word, key).hex()}"


def _check(word: str, key: bytes) -> bytes:
    return hashlib.sha256(word.encode() + key).digest()[:_CHECK]


def _read(word: str, text: str) -> bytes:
    try:
        held = bytes.fromhex(text.removeprefix(word))
    except ValueError:
        held = b""
    key = held[:_KEY]
    if len(held) != _KEY + _CHECK or not hmac.compare_digest(held[_KEY:], _check(word, key)):
        raise InvalidSetting(
            f"This is not a whole key: {word} and {2 * (_KEY + _CHECK)} hex digits, of which the "
            "last ones check the others."
        )
    return key


def _find(path: Path, word: str) -> str:
    """Return the line of a file that holds such a key."""
    try:
        with path.open("rb") as file:
            lines = file.read(_LONGEST).decode("ascii", "replace").splitlines()
    except OSError as error:
        raise InvalidSetting(f"The key file {path} cannot be read: {error.strerror}.") from None
    for line in lines:
        if line.strip().startswith(word):
            return line.strip()
    raise InvalidSetting(f"{path} holds no key that begins with {word}.")
