"""A vault: an encrypted file that is written and read in one go, in little memory.

A head, then pieces of one size. A piece is ChaCha20-Poly1305 (RFC 8439) with the whole head as
associated data; its nonce is its number and whether it is the last. So no piece can be changed, put
elsewhere, left out or added, and each of these is told apart. The bytes are in
docs/reference/dump.md.
"""

from __future__ import annotations

import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ladderboard.errors import BrokenDump, InvalidState, StorageFailed, WrongKey
from ladderboard.ledger._crypto import ChaCha20Poly1305, InvalidTag
from ladderboard.ledger._fresh import fresh_file
from ladderboard.ledger._vault_key import CHECK, Passphrase, SecretKey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

    from ladderboard.ledger._vault_key import Closer, Opener

__all__ = ["VaultReader", "VaultWriter", "read_vault", "write_vault"]

_NAME = b"ladderboard vault "
_START = _NAME + b"1\n"
_LENGTH = struct.Struct(">I")
_PIECE = 64 * 1024  # bytes of a piece before it is encrypted
_ROOM = _PIECE - _LENGTH.size
_CLOSED = _PIECE + 16
_OTHER = {
    Passphrase.kind: "The file was closed with a passphrase, not for a key.",
    SecretKey.kind: "The file was closed for a key, not with a passphrase.",
}


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(11) + bytes([last])


class VaultWriter:
    """Closes what is written to it; the file is of use only after ``end``."""

    def __init__(self, file: BinaryIO, key: Closer) -> None:
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

    def end(self) -> None:
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

    def __init__(self, file: BinaryIO, key: Opener) -> None:
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


def _read_head(file: BinaryIO, key: Opener) -> bytes:
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
def write_vault(path: Path, key: Closer) -> Iterator[VaultWriter]:
    """Make a file, readable by its owner only, that appears when it is whole."""
    with fresh_file(path) as draft, draft.open("r+b") as file:
        writer = VaultWriter(file, key)
        yield writer
        writer.end()


@contextmanager
def read_vault(path: Path, key: Opener) -> Iterator[VaultReader]:
    """Open a file; where it is no vault, or another key's, that is said at once."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise StorageFailed(f"{path} cannot be read: {error.strerror}.") from None
    with file:
        yield VaultReader(file, key)
