"""Encrypted files for dumps: their keys, the encrypted stream, the records in it.

A vault is a tar archive encrypted with age, so ``age`` and ``tar`` open it. The archive holds the
records as JSON lines and submitted files as they are. With a passphrase, the vault is a tar archive
of two age files: ``key.age``, a key that was made for this vault and is encrypted with the
passphrase, and ``dump.tar.age``, which is encrypted to that key: age's library encrypts a stream
only to keys. docs/reference/dump.md describes both.
"""

from __future__ import annotations

import base64
import json
import os
import queue
import re
import tarfile
import threading
import time
import unicodedata
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from ladderboard._atomic_file import atomic_create
from ladderboard.errors import (
    BrokenDump,
    InvalidSetting,
    InvalidState,
    LadderboardError,
    MissingDependency,
    StorageFailed,
    WrongKey,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

try:
    import pyrage
except ImportError:
    message = "A dump needs pyrage: pip install 'ladderboard[server]'."
    raise MissingDependency(message) from None


_MIN_PASSPHRASE = 8
_PUBLIC, _SECRET = "age1", "AGE-SECRET-KEY-1"
_DECRYPTION_ATTEMPTS, _DECRYPTION_PAUSE = 5, 0.2  # the pause in seconds
_MAX_KEY_FILE = 4096  # bytes of a key file
_AGE_START = b"age-encryption.org/v"
_AGE_HEADER = _AGE_START + b"1\n"
_KEY_MEMBER, _DUMP_MEMBER = "key.age", "dump.tar.age"
_PART_BYTES = 64 * 1024  # bytes that one thread gives to another at a time
_MEMBER_BYTES = 2**20  # bytes of JSON lines in one file of the archive, or one record more
_MEMBER_NAME = re.compile(r"\d{6}-([a-z]+)\.jsonl")
_SMALL_FILE = 2**30
_FILES = "files/"
_FILE = "file"
_END = "end"


@dataclass(frozen=True, repr=False)
class Passphrase:
    """A passphrase; with scrypt each guess at it takes about a second.

    Parameters
    ----------
    words
        At least eight characters; normalised to Unicode NFC.
    """

    words: str

    def start(self, file: BinaryIO) -> tuple[Any, Callable[[], None]]:
        """Write the encrypted key of this vault; return age's recipient, and how to end the file.

        A short passphrase is refused.
        """
        if len(self.words.strip()) < _MIN_PASSPHRASE:
            raise InvalidSetting(
                f"A passphrase must have at least {_MIN_PASSPHRASE} characters; use four random "
                "words."
            )
        identity = pyrage.x25519.Identity.generate()
        key = pyrage.passphrase.encrypt(f"{identity}\n".encode(), self._normalised)
        file.write(_tar_header(_KEY_MEMBER, len(key)) + key + _tar_padding(len(key)))
        header_at = file.tell()
        file.write(bytes(tarfile.BLOCKSIZE))

        def end() -> None:
            size = file.tell() - header_at - tarfile.BLOCKSIZE
            file.write(_tar_padding(size) + bytes(2 * tarfile.BLOCKSIZE))
            file.seek(header_at)
            file.write(_tar_header(_DUMP_MEMBER, size))

        return identity.to_public(), end

    def open(self, file: BinaryIO) -> tuple[Any, BinaryIO]:
        """Return age's identity and the file to decrypt, or raise ``WrongKey``."""
        if _is_age_file(file):
            raise WrongKey("The file was encrypted for a key, not with a passphrase.")
        key, content = _open_outer_archive(file)
        try:
            text = self._decrypt(key).decode()
            return pyrage.x25519.Identity.from_str(text.strip()), content
        except (UnicodeDecodeError, pyrage.IdentityError):
            raise BrokenDump("The file is damaged: its key is not one of age.") from None

    def _decrypt(self, key: bytes) -> bytes:
        """Return the decrypted key, or raise.

        The library refuses a file that needs more work than this machine can do in some seconds.
        It measures that for a moment, and a busy machine may look too slow: so it is tried again.
        """
        for _ in range(_DECRYPTION_ATTEMPTS):
            try:
                return pyrage.passphrase.decrypt(key, self._normalised)
            except pyrage.DecryptError as error:
                if "xcessive" not in str(error):
                    raise WrongKey(
                        "The passphrase is wrong, or the beginning of the file was damaged."
                    ) from None
                time.sleep(_DECRYPTION_PAUSE)
        raise InvalidState(
            "The file asks for more memory or work than a passphrase needs: it is damaged or "
            "crafted to exhaust memory, or this machine is very busy."
        )

    @property
    def _normalised(self) -> str:
        words = unicodedata.normalize("NFC", self.words)
        return words.encode("utf-8", "replace").decode()


@dataclass(frozen=True)
class PublicKey:
    """A public key of age: anyone can encrypt with it, and only the secret key decrypts.

    It does not authenticate the writer.
    """

    text: str

    def start(self, file: BinaryIO) -> tuple[Any, Callable[[], None]]:
        """Return the recipient."""
        return pyrage.x25519.Recipient.from_str(self.text), lambda: None


@dataclass(frozen=True, repr=False)
class SecretKey:
    """The secret key of age (X25519) that belongs to a public key; keep it private."""

    text: str

    @classmethod
    def make(cls) -> SecretKey:
        """Return a new random key."""
        return cls(str(pyrage.x25519.Identity.generate()))

    @property
    def public(self) -> PublicKey:
        """The public key, which can be given to others."""
        return PublicKey(str(pyrage.x25519.Identity.from_str(self.text).to_public()))

    def open(self, file: BinaryIO) -> tuple[Any, BinaryIO]:
        """Return the identity and the file."""
        if not _is_age_file(file):
            _open_outer_archive(file)
            raise WrongKey("The file was encrypted with a passphrase, not for a key.")
        return pyrage.x25519.Identity.from_str(self.text), file


def is_encrypted_to_key(path: Path | str) -> bool:
    """Tell whether a vault is encrypted to a public key; False if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return _is_age_file(file)
    except OSError:
        return False


def _is_age_file(file: BinaryIO) -> bool:
    start = file.read(len(_AGE_HEADER))
    file.seek(0)
    if start.startswith(_AGE_START) and start != _AGE_HEADER:
        raise InvalidState("The file was written by a newer version of age.")
    return start == _AGE_HEADER


def _tar_header(name: str, size: int) -> bytes:
    """Return the header of a file in an archive.

    For a small file its numbers are put into a header that ``tarfile`` made: making another one
    would take a third of the time of a dump.
    """
    if size >= _SMALL_FILE:
        info = tarfile.TarInfo(name)
        info.size, info.mode = size, 0o600
        return info.tobuf(tarfile.GNU_FORMAT)
    header = bytearray(_EMPTY_HEADER)
    header[: len(name)] = name.encode("ascii")
    header[124:136] = b"%011o\0" % size
    header[148:156] = b" " * 8  # as which the checksum counts in itself
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


_EMPTY_HEADER = _tar_header("", _SMALL_FILE)


def _tar_padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)


def _open_outer_archive(file: BinaryIO) -> tuple[bytes, BinaryIO]:
    """Return the encrypted key and the encrypted archive of a vault with a passphrase."""
    try:
        archive = tarfile.open(fileobj=file, mode="r:")  # noqa: SIM115 - closed with the file
        members = [archive.next(), archive.next()]
    except (tarfile.TarError, OSError):
        raise InvalidState("This is not a dump of Ladderboard.") from None
    key, content = members
    if key is None or content is None or (key.name, content.name) != (_KEY_MEMBER, _DUMP_MEMBER):
        raise InvalidState("This is not a dump of Ladderboard.")
    end = content.offset_data + content.size
    end += -end % tarfile.BLOCKSIZE + 2 * tarfile.BLOCKSIZE
    size = file.seek(0, os.SEEK_END)
    if size != end:
        raise BrokenDump(
            "The file is cut off: its end is missing."
            if size < end
            else "Something was added after the end of the file."
        )
    return (
        cast("BinaryIO", archive.extractfile(key)).read(),
        cast("BinaryIO", archive.extractfile(content)),
    )


def write_public_key(key: PublicKey) -> str:
    """Return a public key as text."""
    return key.text


def read_public_key(key_or_path: str | os.PathLike[str]) -> PublicKey:
    """Return a public key from its text, or from a file that holds it."""
    text = os.fspath(key_or_path).strip()
    if text.upper().startswith(_SECRET):
        raise InvalidSetting(
            "This is a secret key, which must stay private; give the public one, which begins "
            f"with {_PUBLIC}."
        )
    if not text.startswith(_PUBLIC):
        text = _find_key(Path(text), _PUBLIC)
    try:
        pyrage.x25519.Recipient.from_str(text)
    except pyrage.RecipientError:
        _refuse_incomplete_key(_PUBLIC)
    return PublicKey(text)


def make_secret_key(path: Path | str) -> SecretKey:
    """Create a file with a new secret key, readable by its owner only; never replace one."""
    key = SecretKey.make()
    text = (
        "# Decrypts what was encrypted for the public key below. Keep this file private.\n"
        f"# public key: {key.public.text}\n{key.text}\n"
    )
    with atomic_create(Path(path)) as draft:
        draft.write_text(text, encoding="ascii")
    return key


def read_secret_key(path: str | os.PathLike[str]) -> SecretKey:
    """Return the secret key in a file. Errors never show the file's content."""
    text = _find_key(Path(path), _SECRET)
    try:
        pyrage.x25519.Identity.from_str(text)
    except pyrage.IdentityError:
        _refuse_incomplete_key(_SECRET)
    return SecretKey(text)


def _refuse_incomplete_key(prefix: str) -> NoReturn:
    raise InvalidSetting(
        f"This is not a complete key of age, which begins with {prefix} and ends with a checksum."
    ) from None


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
    if prefix == _PUBLIC and any(line.strip().upper().startswith(_SECRET) for line in lines):
        raise InvalidSetting(
            f"{path} holds a secret key, which must stay private; give its public key, which "
            f"begins with {_PUBLIC}: it is in the comment above the key."
        )
    raise InvalidSetting(f"{path} has no key that begins with {prefix}.")


class _Pipe:
    """Gives bytes to another thread, which waits when it is too fast, and vice versa."""

    def __init__(self) -> None:
        self._queue: queue.Queue[bytes] = queue.Queue(maxsize=8)
        self._buffer = bytearray()
        self._rest = memoryview(b"")
        self._ended = False
        self._abandoned = False

    def write(self, content: bytes | bytearray) -> int:
        """Add bytes; fail if they are not wanted any more."""
        if self._abandoned:
            raise BrokenPipeError
        self._buffer += content
        if len(self._buffer) >= _PART_BYTES:
            self.flush()
        return len(content)

    def flush(self) -> None:
        """Hand over what was written."""
        if self._buffer:
            self._queue.put(bytes(self._buffer))
            self._buffer.clear()

    def end(self) -> None:
        """Tell the reader that there is no more."""
        self.flush()
        self._queue.put(b"")

    def has_more(self) -> bool:
        """Wait until there are bytes, or none any more."""
        if not self._rest and not self._ended:
            part = self._queue.get()
            self._ended = not part
            self._rest = memoryview(part)
        return not self._ended

    def read(self, count: int) -> bytes:
        """Return at most this many bytes; none at the end."""
        if not self.has_more():
            return b""
        content = bytes(self._rest[:count])
        self._rest = self._rest[count:]
        return content

    def abandon(self) -> None:
        """Read to the end, and let the writer fail."""
        self._abandoned = True
        while self.has_more():
            self._rest = memoryview(b"")


class _Watched:
    """A file that remembers its error: age's library reports only its text."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.error: Exception | None = None

    def read(self, count: int) -> bytes:
        """Read from the file."""
        return cast("bytes", self._run(self._file.read, count))

    def write(self, content: bytes) -> int:
        """Write to the file."""
        return cast("int", self._run(self._file.write, content))

    def flush(self) -> None:
        """Do nothing: the file is flushed when it is closed."""

    def _run(self, method: Callable[..., Any], argument: Any) -> Any:
        try:
            return method(argument)
        except Exception as error:
            self.error = error
            raise


class VaultWriter:
    """Encrypts what is written to it, in a thread; the file is complete after ``finish``."""

    def __init__(self, file: BinaryIO, key: Passphrase | PublicKey) -> None:
        recipient, self._end = key.start(file)
        self._file = _Watched(file)
        self._pipe = _Pipe()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._encrypt, args=(recipient,), daemon=True)
        self._thread.start()

    def _encrypt(self, recipient: Any) -> None:
        try:
            pyrage.encrypt_io(self._pipe, self._file, [recipient])
        except Exception as error:  # noqa: BLE001 - raised by ``finish``
            self._error = self._file.error or error
            self._pipe.abandon()

    def write(self, content: bytes | bytearray) -> int:
        """Add bytes."""
        try:
            return self._pipe.write(content)
        except BrokenPipeError:
            self.abort()
            raise self._error or InvalidState("The file is finished.") from None

    def finish(self) -> None:
        """Write the end of the file."""
        self.abort()
        if self._error is not None:
            raise self._error
        self._end()

    def abort(self) -> None:
        """Stop encrypting; the file is not complete."""
        self._pipe.end()
        self._thread.join()


class VaultReader:
    """Decrypts what a ``VaultWriter`` wrote, in a thread; returns only authenticated content."""

    def __init__(self, file: BinaryIO, key: Passphrase | SecretKey) -> None:
        identity, content = key.open(file)
        self._file = _Watched(content)
        self._pipe = _Pipe()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._decrypt, args=(identity,), daemon=True)
        self._thread.start()
        self._refuse_damaged(more=self._pipe.has_more())

    def _decrypt(self, identity: Any) -> None:
        try:
            pyrage.decrypt_io(self._file, self._pipe, [identity])
        except Exception as error:  # noqa: BLE001 - raised by ``read``
            self._error = self._file.error or error
        self._pipe.end()

    def read(self, count: int) -> bytes:
        """Return this many bytes, or fewer at the end of the content."""
        parts = []
        while count:
            part = self._pipe.read(count)
            if not part:
                self._refuse_damaged(more=False)
                break
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _refuse_damaged(self, *, more: bool) -> None:
        """Raise the error of the other thread, after all content that preceded it."""
        error = self._error
        if more or error is None:
            return
        if isinstance(error, OSError) and error.strerror:
            raise StorageFailed(f"The file cannot be read: {error.strerror}.") from None
        if isinstance(error, LadderboardError):
            raise error
        if "No matching keys" in str(error):
            raise WrongKey("The file was encrypted for another key, or its beginning was damaged.")
        raise BrokenDump("The file is damaged: it was changed, or its end is missing.")

    def close(self) -> None:
        """Stop decrypting."""
        self._pipe.abandon()
        self._thread.join()


@contextmanager
def write_vault(path: Path, key: Passphrase | PublicKey) -> Iterator[VaultWriter]:
    """Create a file, readable by its owner only, that appears once it is complete."""
    with atomic_create(path) as draft, draft.open("r+b") as file:
        writer = VaultWriter(file, key)
        try:
            yield writer
        except BaseException:
            writer.abort()
            raise
        writer.finish()


@contextmanager
def read_vault(path: Path, key: Passphrase | SecretKey) -> Iterator[VaultReader]:
    """Open a vault; refuse another file or a wrong key at once."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise StorageFailed(f"{path} cannot be read: {error.strerror}.") from None
    with file:
        reader = VaultReader(file, key)
        try:
            yield reader
        finally:
            reader.close()


class RecordWriter:
    """Writes a tar archive of records and files.

    Records of a kind that follow each other are lines of JSON in ``NUMBER-KIND.jsonl``, or in
    several such files of about 1 MiB. Bytes are written as ``{"base64": "..."}``.
    """

    def __init__(self, vault: VaultWriter) -> None:
        self._vault = vault
        self._counts: Counter[str] = Counter()
        self._kind = ""
        self._lines = bytearray()
        self._members = 0

    def write_record(self, kind: str, content: Any) -> None:
        """Write a record."""
        if kind != self._kind or len(self._lines) > _MEMBER_BYTES:
            self._flush()
            self._kind = kind
        self._lines += _ENCODER.encode(content).encode() + b"\n"
        self._counts[kind] += 1

    def write_file(self, name: str, file: BinaryIO) -> None:
        """Write a file."""
        self._flush()
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        self._vault.write(_tar_header(f"{_FILES}{name}", size))
        while part := file.read(_MEMBER_BYTES):
            self._vault.write(part)
        self._vault.write(_tar_padding(size))
        self._counts[_FILE] += 1

    def finish(self) -> None:
        """Write the last record, with the number of records of each kind, and end the archive."""
        self.write_record(_END, dict(self._counts))
        self._flush()
        self._vault.write(bytes(2 * tarfile.BLOCKSIZE))

    def _flush(self) -> None:
        if self._lines:
            self._members += 1
            size = len(self._lines)
            self._vault.write(_tar_header(f"{self._members:06d}-{self._kind}.jsonl", size))
            self._vault.write(self._lines)
            self._vault.write(_tar_padding(size))
            self._lines.clear()


class RecordReader:
    """Reads what a ``RecordWriter`` wrote, kind by kind, in the order of writing."""

    def __init__(self, vault: VaultReader) -> None:
        self._vault = vault
        self._counts: Counter[str] = Counter()
        self._lines: list[bytes] = []  # of the current file of records, the next one last
        self._next: tuple[str, Any] | None = None
        with _refuse_malformed():
            self._archive = tarfile.open(  # noqa: SIM115 - it has nothing to close
                fileobj=cast("BinaryIO", vault),
                mode="r|",
                bufsize=_PART_BYTES,
            )

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

    def read_files(self) -> Iterator[tuple[str, BinaryIO]]:
        """Return the names and contents of the next files; read each before the next one."""
        return self.read_section(_FILE)

    def expect_end(self) -> None:
        """Refuse a dump that does not end here or in which records are missing."""
        counts = dict(self._counts)
        complete = self.read_record(_END) == counts and not self._lines
        with _refuse_malformed():
            complete = complete and self._archive.next() is None
        while rest := self._vault.read(_PART_BYTES):  # an archive ends with zeros
            complete = complete and not any(rest)
        if not complete:
            raise _incomplete()

    def _peek(self) -> tuple[str, Any]:
        if self._next is None:
            with _refuse_malformed():
                if self._lines:
                    self._next = (self._kind, _DECODER.decode(self._lines.pop().decode()))
                else:
                    self._next = self._open_member()
        return self._next

    def _open_member(self) -> tuple[str, Any]:
        info = self._archive.next()
        self._archive.members = []  # type: ignore[attr-defined]  # else it remembers every file
        if info is None:
            raise _incomplete()
        file = self._archive.extractfile(info) if info.isreg() else None
        if file is None:
            raise _unknown_record()
        if info.name.startswith(_FILES):
            return _FILE, (info.name.removeprefix(_FILES), file)
        name = _MEMBER_NAME.fullmatch(info.name)
        if name is None:
            raise _unknown_record()
        self._kind = name[1]
        self._lines = file.read().splitlines()[::-1]
        return self._kind, _DECODER.decode(self._lines.pop().decode())

    def _consume(self) -> None:
        self._counts[self._peek()[0]] += 1
        self._next = None


def _encode_bytes(content: Any) -> dict[str, str]:
    if not isinstance(content, bytes):
        raise TypeError(type(content))
    return {"base64": base64.b64encode(content).decode()}


def _decode_bytes(content: dict[str, Any]) -> Any:
    if content.keys() == {"base64"}:
        return base64.b64decode(content["base64"], validate=True)
    return content


_ENCODER = json.JSONEncoder(default=_encode_bytes, allow_nan=False, separators=(",", ":"))
_DECODER = json.JSONDecoder(object_hook=_decode_bytes)


@contextmanager
def _refuse_malformed() -> Iterator[None]:
    try:
        yield
    except LadderboardError:
        raise
    except (tarfile.TarError, EOFError, IndexError, RecursionError, TypeError, ValueError):
        raise _unknown_record() from None


def _incomplete() -> BrokenDump:
    return BrokenDump("The dump is not complete: records are missing, or too many.")


def _unknown_record() -> BrokenDump:
    return BrokenDump("The dump has a record that Ladderboard does not write.")
