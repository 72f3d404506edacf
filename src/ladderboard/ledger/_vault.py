"""Encrypted files for dumps: their keys, the encrypted stream, the records in it.

A vault is a head, then pieces of one size. A piece is encrypted with ChaCha20-Poly1305 (RFC 8439),
with the whole head as associated data; its nonce is its number and whether it is the last. So a
piece that was changed, moved, removed or added is detected. docs/reference/dump.md describes the
bytes.

The head says how to derive the key. Of 64 bytes from HKDF-SHA256 the first half is the key; the
second half is stored at the end of the head, to tell a wrong key from damage, and so that no vault
can be made that opens with two keys.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import struct
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard.errors import (
    BrokenDump,
    InvalidSetting,
    InvalidState,
    MissingDependency,
    StorageFailed,
    WrongKey,
)
from ladderboard.ledger._atomic_file import atomic_create
from ladderboard.ledger._encoding import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
except ImportError:
    message = "A dump needs cryptography: pip install 'ladderboard[guard]'."
    raise MissingDependency(message) from None


CHECK_BYTES = 32  # bytes at the end of a head
_DOMAIN = b"ladderboard:1:vault\n"
_SALT_BYTES = 32
_MIN_PASSPHRASE = 8
_MAX_SCRYPT_WORK = 2**23  # N * r * p when opening a vault: 1 GiB, and some seconds
_PUBLIC, _SECRET = "ladderboard-public-", "ladderboard-secret-"
_KEY_BYTES, _CHECKSUM_BYTES = 32, 4
_MAX_KEY_FILE = 4096  # bytes of a key file
_NAME = b"ladderboard vault "
_START = _NAME + b"1\n"
_LENGTH = struct.Struct(">I")
_CHUNK_BYTES = 64 * 1024  # bytes of a piece before it is encrypted
_CHUNK_CONTENT = _CHUNK_BYTES - _LENGTH.size
_ENCRYPTED_CHUNK = _CHUNK_BYTES + 16
_RECORD_LENGTH = struct.Struct(">Q")
_END = "end"


class EncryptionKey(ABC):
    """A key that can encrypt a new vault."""

    @abstractmethod
    def create_header(self, start: bytes) -> tuple[bytes, bytes]:
        """Return the head of a new vault, which begins with ``start``, and its key."""


class DecryptionKey(ABC):
    """A key that can decrypt a vault."""

    kind: bytes
    """The byte in the head that names the kind of key."""
    size: int
    """How many bytes of the head follow it, without the check bytes."""

    @abstractmethod
    def open_header(self, head: bytes) -> bytes:
        """Return the key of a vault with this head, or raise ``WrongKey``."""


class ScryptCost(NamedTuple):
    """The cost parameters of scrypt: N = 2**log2_n, r = block_size, p = parallelism."""

    log2_n: int
    block_size: int
    parallelism: int


_COST = ScryptCost(17, 8, 1)  # 128 MiB, and about a third of a second


@dataclass(frozen=True, repr=False)
class Passphrase(EncryptionKey, DecryptionKey):
    """A passphrase; with scrypt each guess at it costs 128 MiB of memory.

    Parameters
    ----------
    words
        At least eight characters; normalised to Unicode NFC.
    cost
        The cost of a new vault; an existing one records its own.
    """

    words: str
    cost: ScryptCost = _COST
    kind = b"p"
    size = len(ScryptCost._fields) + _SALT_BYTES

    def create_header(self, start: bytes) -> tuple[bytes, bytes]:
        """Return a head with a fresh salt, and the key; refuse a short passphrase."""
        if len(self.words.strip()) < _MIN_PASSPHRASE:
            raise InvalidSetting(
                f"A passphrase must have at least {_MIN_PASSPHRASE} characters; use four random "
                "words."
            )
        head = start + self.kind + bytes(self.cost) + secrets.token_bytes(_SALT_BYTES)
        return _append_check(head, self._stretch(head))

    def open_header(self, head: bytes) -> bytes:
        """Derive the key from the passphrase and the head."""
        return _checked_key(
            head,
            self._stretch(head[:-CHECK_BYTES]),
            "The passphrase is wrong, or the beginning of the file was damaged.",
        )

    def _stretch(self, head: bytes) -> bytes:
        log2_n, block_size, parallelism = head[
            -_SALT_BYTES - len(ScryptCost._fields) : -_SALT_BYTES
        ]
        size = 2**log2_n
        sound = parallelism and 0 < log2_n < 16 * block_size  # RFC 7914, section 2
        if not sound or size * block_size * parallelism > _MAX_SCRYPT_WORK:
            raise InvalidState(
                "The file asks for more memory or work than a passphrase needs; it is damaged, or "
                "crafted to exhaust memory."
            )
        words = unicodedata.normalize("NFC", self.words).encode("utf-8", "surrogatepass")
        scrypt = Scrypt(salt=head[-_SALT_BYTES:], length=32, n=size, r=block_size, p=parallelism)
        try:
            stretched = scrypt.derive(words)
        except MemoryError:
            needed = size * block_size * 128 // 2**20
            raise StorageFailed(f"A passphrase needs {needed} MiB of memory here.") from None
        return _expand(stretched, head)


@dataclass(frozen=True)
class PublicKey(EncryptionKey):
    """A public key: anyone can encrypt a vault with it, and only the secret key decrypts it.

    It does not authenticate the writer.
    """

    key: bytes

    def create_header(self, start: bytes) -> tuple[bytes, bytes]:
        """Return a head with an ephemeral public key, and the key derived from the exchange."""
        ephemeral = X25519PrivateKey.generate()
        head = start + SecretKey.kind + ephemeral.public_key().public_bytes_raw()
        try:
            shared = ephemeral.exchange(X25519PublicKey.from_public_bytes(self.key))
        except ValueError:  # a point of low order: the shared secret would be public
            raise InvalidSetting("This public key is insecure; use another one.") from None
        return _append_check(head, _expand(shared, head + self.key))


@dataclass(frozen=True, repr=False)
class SecretKey(DecryptionKey):
    """The secret key (X25519, 32 bytes) that belongs to a public key; keep it private."""

    key: bytes
    kind = b"k"
    size = 32

    @classmethod
    def make(cls) -> SecretKey:
        """Return a new random key."""
        return cls(X25519PrivateKey.generate().private_bytes_raw())

    @property
    def public(self) -> PublicKey:
        """The public key, which can be given to others."""
        private_key = X25519PrivateKey.from_private_bytes(self.key)
        return PublicKey(private_key.public_key().public_bytes_raw())

    def open_header(self, head: bytes) -> bytes:
        """Derive the key from this one and the head."""
        ephemeral = head[-CHECK_BYTES - self.size : -CHECK_BYTES]
        try:
            private_key = X25519PrivateKey.from_private_bytes(self.key)
            shared = private_key.exchange(X25519PublicKey.from_public_bytes(ephemeral))
        except ValueError:
            shared = b""
        return _checked_key(
            head,
            _expand(shared, head[:-CHECK_BYTES] + self.public.key),
            "The file was encrypted for another key, or its beginning was damaged.",
        )


def _expand(shared: bytes, context: bytes) -> bytes:
    return HKDF(SHA256(), length=32 + CHECK_BYTES, salt=None, info=_DOMAIN + context).derive(shared)


def _append_check(head: bytes, derived: bytes) -> tuple[bytes, bytes]:
    return head + derived[32:], derived[:32]


def _checked_key(head: bytes, derived: bytes, message: str) -> bytes:
    if not hmac.compare_digest(head[-CHECK_BYTES:], derived[32:]):
        raise WrongKey(message)
    return derived[:32]


def write_public_key(key: PublicKey) -> str:
    """Return a public key as text.

    >>> write_public_key(PublicKey(bytes(32)))[-12:]
    '000069bb0a7b'
    """
    return _write_key(_PUBLIC, key.key)


def read_public_key(key_or_path: str | os.PathLike[str]) -> PublicKey:
    """Return a public key from its text, or from a file that holds it."""
    text = os.fspath(key_or_path).strip()
    if text.startswith(_SECRET):
        raise InvalidSetting(
            "This is a secret key, which must stay private; give the public one, which begins "
            f"with {_PUBLIC}."
        )
    if not text.startswith(_PUBLIC):
        text = _find_key(Path(text), _PUBLIC)
    return PublicKey(_read_key(_PUBLIC, text))


def make_secret_key(path: Path | str) -> SecretKey:
    """Create a file with a new secret key, readable by its owner only; never replace one."""
    key = SecretKey.make()
    text = (
        "# Decrypts what was encrypted for the public key below. Keep this file private.\n"
        f"# {write_public_key(key.public)}\n{_write_key(_SECRET, key.key)}\n"
    )
    with atomic_create(Path(path)) as draft:
        draft.write_text(text, encoding="ascii")
    return key


def read_secret_key(path: str | os.PathLike[str]) -> SecretKey:
    """Return the secret key in a file. Errors never show the file's content."""
    return SecretKey(_read_key(_SECRET, _find_key(Path(path), _SECRET)))


def _write_key(prefix: str, key: bytes) -> str:
    return f"{prefix}{key.hex()}{_checksum(prefix, key).hex()}"


def _checksum(prefix: str, key: bytes) -> bytes:
    return hashlib.sha256(prefix.encode() + key).digest()[:_CHECKSUM_BYTES]


def _read_key(prefix: str, text: str) -> bytes:
    try:
        content = bytes.fromhex(text.removeprefix(prefix))
    except ValueError:
        content = b""
    key = content[:_KEY_BYTES]
    if len(content) != _KEY_BYTES + _CHECKSUM_BYTES or not hmac.compare_digest(
        content[_KEY_BYTES:], _checksum(prefix, key)
    ):
        raise InvalidSetting(
            f"This is not a complete key: {prefix} and "
            f"{2 * (_KEY_BYTES + _CHECKSUM_BYTES)} hex digits, the last of which are a checksum."
        )
    return key


def _find_key(path: Path, prefix: str) -> str:
    """Return the line of a file with a key of this prefix."""
    try:
        with path.open("rb") as file:
            lines = file.read(_MAX_KEY_FILE).decode("ascii", "replace").splitlines()
    except OSError as error:
        raise InvalidSetting(f"The key file {path} cannot be read: {error.strerror}.") from None
    for line in lines:
        if line.strip().startswith(prefix):
            return line.strip()
    raise InvalidSetting(f"{path} has no key that begins with {prefix}.")


_WRONG_KIND = {
    Passphrase.kind: "The file was encrypted with a passphrase, not for a key.",
    SecretKey.kind: "The file was encrypted for a key, not with a passphrase.",
}


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(11) + bytes([last])


class VaultWriter:
    """Encrypts what is written to it; the file is complete only after ``finish``."""

    def __init__(self, file: BinaryIO, key: EncryptionKey) -> None:
        self._file = file
        self._head, vault_key = key.create_header(_START)
        self._cipher = ChaCha20Poly1305(vault_key)
        self._buffer = bytearray()
        self._number = 0
        file.write(self._head)

    def write(self, content: bytes) -> None:
        """Add bytes."""
        self._buffer += content
        done = 0
        while len(self._buffer) - done > _CHUNK_CONTENT:  # the last piece is written by finish
            self._write_chunk(bytes(self._buffer[done : done + _CHUNK_CONTENT]), last=False)
            done += _CHUNK_CONTENT
        if done:
            del self._buffer[:done]

    def finish(self) -> None:
        """Write the last piece."""
        self._write_chunk(bytes(self._buffer), last=True)
        self._buffer.clear()

    def _write_chunk(self, content: bytes, *, last: bool) -> None:
        # The last piece is padded with zeros, to hide the size and to detect a truncated file.
        piece = _LENGTH.pack(len(content)) + content.ljust(_CHUNK_CONTENT, b"\0")
        nonce = _nonce(self._number, last=last)
        self._file.write(self._cipher.encrypt(nonce, piece, self._head))
        self._number += 1


class VaultReader:
    """Decrypts what a ``VaultWriter`` wrote; returns only authenticated content."""

    def __init__(self, file: BinaryIO, key: DecryptionKey) -> None:
        self._file = file
        self._head = _read_head(file, key)
        self._cipher = ChaCha20Poly1305(key.open_header(self._head))
        self._number = 0
        self._last = False
        self._buffer = memoryview(b"")

    def read(self, count: int) -> bytes:
        """Return so many bytes, or fewer at the end of the content."""
        parts = []
        while count:
            if not self._buffer:
                if self._last:
                    break
                self._read_chunk()
                continue
            part = self._buffer[:count]
            self._buffer = self._buffer[count:]
            count -= len(part)
            parts.append(part)
        return b"".join(parts)

    def _read_chunk(self) -> None:
        closed = self._file.read(_ENCRYPTED_CHUNK)
        if len(closed) < _ENCRYPTED_CHUNK:
            raise BrokenDump("The file is cut off: its end is missing.")
        piece = self._decrypt_chunk(closed)
        length = _LENGTH.unpack_from(piece)[0]
        # Only a holder of the key could have written it differently.
        if (
            length > _CHUNK_CONTENT
            or (length < _CHUNK_CONTENT and not self._last)
            or any(piece[4 + length :])
        ):
            raise BrokenDump(f"Piece {self._number} of the file is not in Ladderboard's format.")
        self._buffer = memoryview(piece)[4 : 4 + length]
        self._number += 1
        if self._last and self._file.read(1):
            raise BrokenDump("Something was added after the end of the file.")

    def _decrypt_chunk(self, closed: bytes) -> bytes:
        for last in (False, True):
            try:
                piece = self._cipher.decrypt(_nonce(self._number, last=last), closed, self._head)
            except InvalidTag:
                continue
            self._last = last
            return piece
        raise BrokenDump(
            f"The file is damaged: piece {self._number} was changed, or belongs elsewhere."
        )


def _read_head(file: BinaryIO, key: DecryptionKey) -> bytes:
    """Return the head of a vault; refuse one for another kind of key."""
    start = file.read(len(_START))
    if start != _START:
        if start.startswith(_NAME):
            raise InvalidState("The file was written by a newer Ladderboard; install that one.")
        raise InvalidState("This is not a dump of Ladderboard.")
    kind = file.read(1)
    if kind not in _WRONG_KIND:
        raise BrokenDump("The beginning of the file is damaged.")
    if kind != key.kind:
        raise WrongKey(_WRONG_KIND[kind])
    rest = file.read(key.size + CHECK_BYTES)
    if len(rest) < key.size + CHECK_BYTES:
        raise BrokenDump("The file is cut off: its end is missing.")
    return start + kind + rest


@contextmanager
def write_vault(path: Path, key: EncryptionKey) -> Iterator[VaultWriter]:
    """Create a file, readable by its owner only, that appears once it is complete."""
    with atomic_create(path) as draft, draft.open("r+b") as file:
        writer = VaultWriter(file, key)
        yield writer
        writer.finish()


@contextmanager
def read_vault(path: Path, key: DecryptionKey) -> Iterator[VaultReader]:
    """Open a vault; refuse another file or a wrong key at once."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise StorageFailed(f"{path} cannot be read: {error.strerror}.") from None
    with file:
        yield VaultReader(file, key)


class RecordWriter:
    """Writes records: each its length in 8 bytes, then the encoded ``[kind, content]``."""

    def __init__(self, vault: VaultWriter) -> None:
        self._vault = vault
        self._counts: Counter[str] = Counter()

    def write_record(self, kind: str, content: Any) -> None:
        """Write a record."""
        encoded = encode([kind, content])
        self._vault.write(_RECORD_LENGTH.pack(len(encoded)) + encoded)
        self._counts[kind] += 1

    def finish(self) -> None:
        """Write the last record, with the number of records of each kind."""
        self.write_record(_END, dict(self._counts))


class RecordReader:
    """Reads what a ``RecordWriter`` wrote, kind by kind, in the order of writing."""

    def __init__(self, vault: VaultReader) -> None:
        self._vault = vault
        self._counts: Counter[str] = Counter()
        self._read_chunk: tuple[str, Any] | None = None

    def read_record(self, kind: str) -> Any:
        """Return the content of the next record, which must be of this kind."""
        next_kind, content = self._peek()
        if next_kind != kind:
            raise _unknown_record()
        self._consume()
        return content

    def read_section(self, kind: str) -> Iterator[Any]:
        """Return the contents of the next records, as long as they are of this kind."""
        while self._peek()[0] == kind:
            content = self._peek()[1]
            self._consume()
            yield content

    def expect_end(self) -> None:
        """Refuse a dump that does not end here or in which records are missing."""
        counts = dict(self._counts)
        if self.read_record(_END) != counts or self._vault.read(1):
            raise BrokenDump("The dump is not complete: records are missing, or too many.")

    def _peek(self) -> tuple[str, Any]:
        if self._read_chunk is None:
            length = self._vault.read(_RECORD_LENGTH.size)
            if len(length) < _RECORD_LENGTH.size:
                raise BrokenDump("The dump is not complete: records are missing, or too many.")
            try:
                kind, content = decode(self._vault.read(_RECORD_LENGTH.unpack(length)[0]))
            except (TypeError, ValueError):
                raise _unknown_record() from None
            self._read_chunk = kind, content
        return self._read_chunk

    def _consume(self) -> None:
        self._counts[self._peek()[0]] += 1
        self._read_chunk = None


def _unknown_record() -> BrokenDump:
    return BrokenDump("The dump has a record that Ladderboard does not write.")
