"""Encrypted files for dumps: their keys, the encrypted stream, the records in it.

A vault is a head, then pieces of one size. A piece is ChaCha20-Poly1305 (RFC 8439) with the whole
head as associated data; its nonce is its number and whether it is the last. So no piece can be
changed, put elsewhere, left out or added, and each of these is told apart. The bytes are in
docs/reference/dump.md.

The head says how its key is made. Of 64 bytes from HKDF-SHA256 the first half is the
key; the second half stands at the end of the head, so that a wrong key is told from damage, and no
vault can be made that opens with two keys.
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
    said = "A dump needs cryptography: pip install 'ladderboard[guard]'."
    raise MissingDependency(said) from None


CHECK = 32  # bytes at the end of a head
_DOMAIN = b"ladderboard:1:vault\n"
_SALT = 32
_SHORTEST = 8
_MOST_WORK = 2**23  # N * r * p of a vault that we open: 1 GiB, and some seconds
_PUBLIC, _SECRET = "ladderboard-public-", "ladderboard-secret-"
_KEY_BYTES, _CHECKSUM_BYTES = 32, 4
_MAX_KEY_FILE = 4096  # bytes of a key's file
_NAME = b"ladderboard vault "
_START = _NAME + b"1\n"
_LENGTH = struct.Struct(">I")
_PIECE = 64 * 1024  # bytes of a piece before it is encrypted
_ROOM = _PIECE - _LENGTH.size
_CLOSED = _PIECE + 16
_RECORD_LENGTH = struct.Struct(">Q")
_END = "end"


class EncryptionKey(ABC):
    """Something that a vault can be closed with."""

    @abstractmethod
    def close(self, start: bytes) -> tuple[bytes, bytes]:
        """Return the head of a new vault, which begins with ``start``, and its key."""


class DecryptionKey(ABC):
    """Something that a vault can be opened with."""

    kind: bytes
    """The byte that says so in the head."""
    size: int
    """How many bytes follow it, without the check."""

    @abstractmethod
    def open(self, head: bytes) -> bytes:
        """Return the key of a vault with this head, or refuse."""


class ScryptCost(NamedTuple):
    """What scrypt has to do for a guess: N = 2**``doublings``, r = ``blocks``, p = ``lanes``."""

    doublings: int
    blocks: int
    lanes: int


_COST = ScryptCost(17, 8, 1)  # 128 MiB, and about a third of a second


@dataclass(frozen=True, repr=False)
class Passphrase(EncryptionKey, DecryptionKey):
    """Words that a person knows; scrypt makes each guess at them cost 128 MiB.

    Parameters
    ----------
    words
        At least eight characters, in Unicode's form NFC whatever a keyboard sent.
    cost
        Of a new vault; one that is opened says its own.
    """

    words: str
    cost: ScryptCost = _COST
    kind = b"p"
    size = len(ScryptCost._fields) + _SALT

    def close(self, start: bytes) -> tuple[bytes, bytes]:
        """Return a head with a salt of its own, and the key; refuse words that are soon guessed."""
        if len(self.words.strip()) < _SHORTEST:
            raise InvalidSetting(
                f"A passphrase must have at least {_SHORTEST} characters; take four words that "
                "nobody would guess."
            )
        head = start + self.kind + bytes(self.cost) + secrets.token_bytes(_SALT)
        return _with_check(head, self._stretch(head))

    def open(self, head: bytes) -> bytes:
        """Return the key that these words and the head make."""
        return _checked(
            head,
            self._stretch(head[:-CHECK]),
            "The passphrase is another one, or the beginning of the file was damaged.",
        )

    def _stretch(self, head: bytes) -> bytes:
        doublings, blocks, lanes = head[-_SALT - len(ScryptCost._fields) : -_SALT]
        size = 2**doublings
        sound = lanes and 0 < doublings < 16 * blocks  # RFC 7914, section 2
        if not sound or size * blocks * lanes > _MOST_WORK:
            raise InvalidState(
                "The file asks for more memory or work than a passphrase takes; it was damaged, or "
                "made to keep you busy."
            )
        words = unicodedata.normalize("NFC", self.words).encode("utf-8", "surrogatepass")
        scrypt = Scrypt(salt=head[-_SALT:], length=32, n=size, r=blocks, p=lanes)
        try:
            made = scrypt.derive(words)
        except MemoryError:
            needed = size * blocks * 128 // 2**20
            raise StorageFailed(f"A passphrase needs {needed} MiB of memory here.") from None
        return _expand(made, head)


@dataclass(frozen=True)
class PublicKey(EncryptionKey):
    """Whoever has it may close a vault, and only the owner of the secret key opens it.

    It says who may read, not who wrote.
    """

    key: bytes

    def close(self, start: bytes) -> tuple[bytes, bytes]:
        """Return a head with a key that is used this once, and the key that both make."""
        once = X25519PrivateKey.generate()
        head = start + SecretKey.kind + once.public_key().public_bytes_raw()
        try:
            shared = once.exchange(X25519PublicKey.from_public_bytes(self.key))
        except ValueError:  # a point of low order, with which everybody shares the same
            raise InvalidSetting("This public key protects nothing; take another one.") from None
        return _with_check(head, _expand(shared, head + self.key))


@dataclass(frozen=True, repr=False)
class SecretKey(DecryptionKey):
    """The other half of a public key: 32 bytes that nobody else has."""

    key: bytes
    kind = b"k"
    size = 32

    @classmethod
    def make(cls) -> SecretKey:
        """Return a new one."""
        return cls(X25519PrivateKey.generate().private_bytes_raw())

    @property
    def public(self) -> PublicKey:
        """The half that others may have."""
        own = X25519PrivateKey.from_private_bytes(self.key)
        return PublicKey(own.public_key().public_bytes_raw())

    def open(self, head: bytes) -> bytes:
        """Return the key that this one and the head make."""
        once = head[-CHECK - self.size : -CHECK]
        try:
            own = X25519PrivateKey.from_private_bytes(self.key)
            shared = own.exchange(X25519PublicKey.from_public_bytes(once))
        except ValueError:
            shared = b""
        return _checked(
            head,
            _expand(shared, head[:-CHECK] + self.public.key),
            "The file was closed for another key, or its beginning was damaged.",
        )


def _expand(shared: bytes, context: bytes) -> bytes:
    return HKDF(SHA256(), length=32 + CHECK, salt=None, info=_DOMAIN + context).derive(shared)


def _with_check(head: bytes, made: bytes) -> tuple[bytes, bytes]:
    return head + made[32:], made[:32]


def _checked(head: bytes, made: bytes, wrong: str) -> bytes:
    if not hmac.compare_digest(head[-CHECK:], made[32:]):
        raise WrongKey(wrong)
    return made[:32]


def write_public_key(key: PublicKey) -> str:
    """Return a public key as text.

    >>> write_public_key(PublicKey(bytes(32)))[-12:]
    '000069bb0a7b'
    """
    return _write_key(_PUBLIC, key.key)


def read_public_key(given: str | os.PathLike[str]) -> PublicKey:
    """Return a public key from its text, or from a file that holds it."""
    text = os.fspath(given).strip()
    if text.startswith(_SECRET):
        raise InvalidSetting(
            "This is a secret key, which nobody else should have; give the public one, which "
            f"begins with {_PUBLIC}."
        )
    if not text.startswith(_PUBLIC):
        text = _find_key(Path(text), _PUBLIC)
    return PublicKey(_read_key(_PUBLIC, text))


def make_secret_key(path: Path | str) -> SecretKey:
    """Make a file with a new secret key, readable by its owner only; never in place of another."""
    key = SecretKey.make()
    text = (
        "# Opens what was closed for the public key below. Nobody else should have this file.\n"
        f"# {write_public_key(key.public)}\n{_write_key(_SECRET, key.key)}\n"
    )
    with atomic_create(Path(path)) as draft:
        draft.write_text(text, encoding="ascii")
    return key


def read_secret_key(path: str | os.PathLike[str]) -> SecretKey:
    """Return the secret key in a file. What the file holds is never shown."""
    return SecretKey(_read_key(_SECRET, _find_key(Path(path), _SECRET)))


def _write_key(word: str, key: bytes) -> str:
    return f"{word}{key.hex()}{_checksum(word, key).hex()}"


def _checksum(word: str, key: bytes) -> bytes:
    return hashlib.sha256(word.encode() + key).digest()[:_CHECKSUM_BYTES]


def _read_key(word: str, text: str) -> bytes:
    try:
        held = bytes.fromhex(text.removeprefix(word))
    except ValueError:
        held = b""
    key = held[:_KEY_BYTES]
    if len(held) != _KEY_BYTES + _CHECKSUM_BYTES or not hmac.compare_digest(
        held[_KEY_BYTES:], _checksum(word, key)
    ):
        raise InvalidSetting(
            f"This is not a whole key: {word} and {2 * (_KEY_BYTES + _CHECKSUM_BYTES)} hex digits, "
            "of which the last ones check the others."
        )
    return key


def _find_key(path: Path, word: str) -> str:
    """Return the line of a file that holds such a key."""
    try:
        with path.open("rb") as file:
            lines = file.read(_MAX_KEY_FILE).decode("ascii", "replace").splitlines()
    except OSError as error:
        raise InvalidSetting(f"The key file {path} cannot be read: {error.strerror}.") from None
    for line in lines:
        if line.strip().startswith(word):
            return line.strip()
    raise InvalidSetting(f"{path} holds no key that begins with {word}.")


_OTHER = {
    Passphrase.kind: "The file was closed with a passphrase, not for a key.",
    SecretKey.kind: "The file was closed for a key, not with a passphrase.",
}


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(11) + bytes([last])


class VaultWriter:
    """Closes what is written to it; the file is of use only after ``end``."""

    def __init__(self, file: BinaryIO, key: EncryptionKey) -> None:
        self._file = file
        self._head, own = key.close(_START)
        self._cipher = ChaCha20Poly1305(own)
        self._held = bytearray()
        self._number = 0
        file.write(self._head)

    def write(self, content: bytes) -> None:
        """Add bytes."""
        self._held += content
        done = 0
        while len(self._held) - done > _ROOM:  # what may be the last piece waits
            self._close(bytes(self._held[done : done + _ROOM]), last=False)
            done += _ROOM
        if done:
            del self._held[:done]

    def finish(self) -> None:
        """Write the last piece."""
        self._close(bytes(self._held), last=True)
        self._held.clear()

    def _close(self, content: bytes, *, last: bool) -> None:
        # The last one is filled with zeros: the size tells little, and a torn one is known by it.
        piece = _LENGTH.pack(len(content)) + content.ljust(_ROOM, b"\0")
        nonce = _nonce(self._number, last=last)
        self._file.write(self._cipher.encrypt(nonce, piece, self._head))
        self._number += 1


class VaultReader:
    """Opens what a ``VaultWriter`` wrote; gives nothing that was not checked."""

    def __init__(self, file: BinaryIO, key: DecryptionKey) -> None:
        self._file = file
        self._head = _read_head(file, key)
        self._cipher = ChaCha20Poly1305(key.open(self._head))
        self._number = 0
        self._last = False
        self._held = memoryview(b"")

    def read(self, count: int) -> bytes:
        """Return so many bytes, or fewer where the content ends."""
        parts = []
        while count:
            if not self._held:
                if self._last:
                    break
                self._next()
                continue
            part = self._held[:count]
            self._held = self._held[count:]
            count -= len(part)
            parts.append(part)
        return b"".join(parts)

    def _next(self) -> None:
        closed = self._file.read(_CLOSED)
        if len(closed) < _CLOSED:
            raise BrokenDump("The file is cut off: its end is missing.")
        piece = self._open(closed)
        length = _LENGTH.unpack_from(piece)[0]
        # Only who has the key could have written these otherwise.
        if length > _ROOM or (length < _ROOM and not self._last) or any(piece[4 + length :]):
            raise BrokenDump(f"Piece {self._number} of the file is not as we write it.")
        self._held = memoryview(piece)[4 : 4 + length]
        self._number += 1
        if self._last and self._file.read(1):
            raise BrokenDump("Something was added after the end of the file.")

    def _open(self, closed: bytes) -> bytes:
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
    """Return the head of a vault of this key's kind, or refuse."""
    start = file.read(len(_START))
    if start != _START:
        if start.startswith(_NAME):
            raise InvalidState("The file was written by a newer Ladderboard; install that one.")
        raise InvalidState("This is not a dump of Ladderboard.")
    kind = file.read(1)
    if kind not in _OTHER:
        raise BrokenDump("The beginning of the file is damaged.")
    if kind != key.kind:
        raise WrongKey(_OTHER[kind])
    rest = file.read(key.size + CHECK)
    if len(rest) < key.size + CHECK:
        raise BrokenDump("The file is cut off: its end is missing.")
    return start + kind + rest


@contextmanager
def write_vault(path: Path, key: EncryptionKey) -> Iterator[VaultWriter]:
    """Make a file, readable by its owner only, that appears when it is whole."""
    with atomic_create(path) as draft, draft.open("r+b") as file:
        writer = VaultWriter(file, key)
        yield writer
        writer.finish()


@contextmanager
def read_vault(path: Path, key: DecryptionKey) -> Iterator[VaultReader]:
    """Open a file; where it is no vault, or another key's, that is said at once."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise StorageFailed(f"{path} cannot be read: {error.strerror}.") from None
    with file:
        yield VaultReader(file, key)


class RecordWriter:
    """Writes records: a length of 8 bytes and the canonical form of ``[kind, content]``."""

    def __init__(self, vault: VaultWriter) -> None:
        self._vault = vault
        self._counts: Counter[str] = Counter()

    def write_record(self, kind: str, content: Any) -> None:
        """Write a record."""
        form = encode([kind, content])
        self._vault.write(_RECORD_LENGTH.pack(len(form)) + form)
        self._counts[kind] += 1

    def finish(self) -> None:
        """Write the last record, which tells how many there are of each kind."""
        self.write_record(_END, dict(self._counts))


class RecordReader:
    """Reads what a ``RecordWriter`` wrote, kind by kind in the order in which they came."""

    def __init__(self, vault: VaultReader) -> None:
        self._vault = vault
        self._counts: Counter[str] = Counter()
        self._next: tuple[str, Any] | None = None

    def read_record(self, kind: str) -> Any:
        """Return the content of the next record, which is of this kind."""
        found, content = self._look()
        if found != kind:
            raise _strange()
        self._take()
        return content

    def read_section(self, kind: str) -> Iterator[Any]:
        """Return the contents of all records of this kind that come next."""
        while self._look()[0] == kind:
            content = self._look()[1]
            self._take()
            yield content

    def expect_end(self) -> None:
        """Refuse a dump that does not end here, or lacks records."""
        counts = dict(self._counts)
        if self.read_record(_END) != counts or self._vault.read(1):
            raise BrokenDump("The dump is not whole: records are missing, or too many.")

    def _look(self) -> tuple[str, Any]:
        if self._next is None:
            length = self._vault.read(_RECORD_LENGTH.size)
            if len(length) < _RECORD_LENGTH.size:
                raise BrokenDump("The dump is not whole: records are missing, or too many.")
            try:
                kind, content = decode(self._vault.read(_RECORD_LENGTH.unpack(length)[0]))
            except (TypeError, ValueError):
                raise _strange() from None
            self._next = kind, content
        return self._next

    def _take(self) -> None:
        self._counts[self._look()[0]] += 1
        self._next = None


def _strange() -> BrokenDump:
    return BrokenDump("The dump holds something that we do not write.")
