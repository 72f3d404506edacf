"""Encrypted files: what was written is read, and whatever was done to one is found."""

import errno
import functools
import io
import os
import stat
import tarfile

import pyrage
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ladderboard.errors import (
    BrokenDump,
    InvalidSetting,
    InvalidState,
    LadderboardError,
    StorageFailed,
    WrongKey,
)
from ladderboard.ledger import (
    Passphrase,
    RecordReader,
    RecordWriter,
    SecretKey,
    VaultReader,
    VaultWriter,
    read_vault,
    write_vault,
)

CHUNK = 64 * 1024  # age's
KEY = SecretKey.make()
PASSPHRASE = Passphrase("correct horse")


def encrypt(content, key=KEY.public):
    file = io.BytesIO()
    writer = VaultWriter(file, key)
    writer.write(content)
    writer.finish()
    return file.getvalue()


def decrypt(form, key=KEY):
    reader = VaultReader(io.BytesIO(form), key)
    content = reader.read(2**30)
    assert reader.read(1) == b""
    return content


LONG = os.urandom(2 * CHUNK + 1000)
VAULT = encrypt(LONG)
ENCRYPT = pyrage.passphrase.encrypt  # with scrypt's usual work, unlike in other tests


@pytest.fixture(scope="module", autouse=True)
def _open_once():
    """Derive the key of the same file and passphrase once: scrypt takes a second each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pyrage.passphrase, "decrypt", functools.cache(pyrage.passphrase.decrypt))
        patch.setattr(pyrage.passphrase, "encrypt", ENCRYPT)
        yield


@pytest.fixture(scope="module")
def with_passphrase():
    """A vault with a passphrase, which takes a second to make and as long to open."""
    return encrypt(LONG, PASSPHRASE)


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK])
def test_what_was_written_is_read(size):
    content = os.urandom(size)
    assert decrypt(encrypt(content)) == content


@settings(max_examples=30)
@given(st.lists(st.integers(0, 90_000), max_size=5), st.lists(st.integers(1, 90_000), max_size=5))
def test_it_may_be_written_and_read_in_any_parts(written, read):
    file = io.BytesIO()
    writer = VaultWriter(file, KEY.public)
    content = [bytes([index]) * size for index, size in enumerate(written)]
    for part in content:
        writer.write(part)
    writer.finish()
    reader = VaultReader(io.BytesIO(file.getvalue()), KEY)
    parts = [reader.read(size) for size in read]
    assert b"".join(parts) + reader.read(2**30) == b"".join(content)


def test_age_itself_opens_what_was_encrypted_for_a_key():
    identity = pyrage.x25519.Identity.from_str(KEY.text)
    assert pyrage.decrypt(VAULT, [identity]) == LONG
    recipient = pyrage.x25519.Recipient.from_str(KEY.public.text)
    assert decrypt(pyrage.encrypt(LONG, [recipient])) == LONG


def test_tar_and_age_open_what_was_encrypted_with_a_passphrase(with_passphrase):
    with tarfile.open(fileobj=io.BytesIO(with_passphrase)) as archive:
        assert archive.getnames() == ["key.age", "dump.tar.age"]
        key, content = (archive.extractfile(name).read() for name in archive.getnames())
    text = pyrage.passphrase.decrypt(key, "correct horse").decode().strip()
    assert pyrage.decrypt(content, [pyrage.x25519.Identity.from_str(text)]) == LONG


def test_a_passphrase_opens_what_it_encrypted(with_passphrase):
    assert decrypt(with_passphrase, PASSPHRASE) == LONG
    with pytest.raises(WrongKey, match="The passphrase is wrong"):
        decrypt(with_passphrase, Passphrase("correct Horse"))


@pytest.mark.slow  # scrypt takes seconds
def test_letters_with_accents_are_the_same_however_a_keyboard_sends_them():
    form = encrypt(b"content", Passphrase("ne\u0301cessaire"))
    assert decrypt(form, Passphrase("n\u00e9cessaire")) == b"content"


@pytest.mark.parametrize("message", ["", "1234567", "       x", "        "])
def test_a_weak_passphrase_is_refused(message):
    with pytest.raises(InvalidSetting, match="at least 8 characters"):
        encrypt(b"", Passphrase(message))


def test_another_key_is_refused(with_passphrase):
    with pytest.raises(WrongKey, match="encrypted for another key"):
        decrypt(VAULT, SecretKey.make())
    with pytest.raises(WrongKey, match="encrypted for a key, not with a passphrase"):
        decrypt(VAULT, PASSPHRASE)
    with pytest.raises(WrongKey, match="encrypted with a passphrase, not for a key"):
        decrypt(with_passphrase, KEY)


def test_a_file_that_asks_for_too_much_work_is_refused(with_passphrase):
    start = with_passphrase.index(b"-> scrypt ")
    end = with_passphrase.index(b"\n", start)
    line = with_passphrase[start:end]
    changed = line[: line.rindex(b" ")] + b" 40"
    assert len(changed) == len(line)  # or the archive would not hold together
    with pytest.raises((InvalidState, WrongKey), match=r"more memory or work|is wrong"):
        decrypt(with_passphrase.replace(line, changed), PASSPHRASE)


@settings(max_examples=300)
@given(st.integers(0, len(VAULT) - 1), st.integers(1, 255))
def test_every_changed_byte_is_found(at, change):
    form = VAULT[:at] + bytes([VAULT[at] ^ change]) + VAULT[at + 1 :]
    with pytest.raises((BrokenDump, InvalidState, WrongKey)):
        decrypt(form)


@settings(max_examples=200)
@given(st.integers(0, len(VAULT) - 1))
def test_every_truncation_is_found(size):
    with pytest.raises((BrokenDump, InvalidState, WrongKey)):
        decrypt(VAULT[:size])


@pytest.mark.parametrize("more", [b"\0", bytes(CHUNK), VAULT])
def test_added_bytes_are_found(more, with_passphrase):
    with pytest.raises(BrokenDump, match="damaged"):
        decrypt(VAULT + more)
    with pytest.raises(BrokenDump, match="Something was added"):
        decrypt(with_passphrase + more, PASSPHRASE)


@pytest.mark.parametrize("size", [1, 512, CHUNK])
def test_a_truncated_file_with_a_passphrase_is_found(size, with_passphrase):
    with pytest.raises(BrokenDump, match="cut off"):
        decrypt(with_passphrase[:-size], PASSPHRASE)


@pytest.mark.slow  # scrypt takes seconds
def test_an_archive_of_another_file_is_found(with_passphrase):
    """The key of one file with the content of another, as made by somebody without the key."""
    other = encrypt(LONG, Passphrase("other horse"))
    half = with_passphrase.index(b"dump.tar.age")
    with pytest.raises(WrongKey):
        decrypt(with_passphrase[:half] + other[other.index(b"dump.tar.age") :], PASSPHRASE)


@settings(max_examples=100)
@given(st.binary(max_size=300), st.booleans())
def test_bytes_from_elsewhere_are_refused(content, ours):
    for form in (content, VAULT[:21] + content, VAULT[:200] + content):
        with pytest.raises(LadderboardError):
            decrypt(form, KEY if ours else PASSPHRASE)


def test_a_newer_format_of_age_is_named():
    with pytest.raises(InvalidState, match="newer version of age"):
        decrypt(VAULT.replace(b"org/v1", b"org/v2", 1))


def test_nothing_of_the_content_and_no_key_is_to_be_seen(with_passphrase):
    assert LONG[:50] not in VAULT
    assert LONG[:50] not in with_passphrase
    assert encrypt(b"needle") != encrypt(b"needle")
    assert "horse" not in repr(PASSPHRASE)
    assert KEY.text not in repr(KEY)


def test_the_file_is_private_and_appears_when_complete(tmp_path):
    path = tmp_path / "board.dump"
    old = os.umask(0)
    try:
        with write_vault(path, KEY.public) as vault:
            vault.write(b"content")
            assert not path.exists()
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]
    with read_vault(path, KEY) as vault:
        assert vault.read(100) == b"content"


def test_a_writer_that_fails_leaves_nothing(tmp_path):
    def fail(vault):
        vault.write(LONG)
        raise RuntimeError

    with pytest.raises(RuntimeError), write_vault(tmp_path / "board.dump", KEY.public) as vault:
        fail(vault)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_named_and_ends_the_writing():
    class FullDisk(io.BytesIO):
        def write(self, content):
            if self.tell() > CHUNK:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(content)

    writer = VaultWriter(FullDisk(), KEY.public)

    def write_all():
        for _ in range(100):
            writer.write(LONG)
        writer.finish()

    with pytest.raises(OSError, match="No space left"):
        write_all()


def test_a_reader_that_stops_early_leaves_no_thread(tmp_path):
    with write_vault(tmp_path / "vault", KEY.public) as vault:
        for _ in range(50):
            vault.write(LONG)
    with read_vault(tmp_path / "vault", KEY) as vault:
        assert vault.read(10) == LONG[:10]
    assert not vault._thread.is_alive()


def test_another_file_is_never_replaced(tmp_path):
    path = tmp_path / "board.dump"
    path.write_bytes(b"mine")
    with (
        pytest.raises(InvalidState, match="already"),
        write_vault(path, KEY.public),
    ):
        pass
    assert path.read_bytes() == b"mine"


def test_a_file_that_is_not_there_is_one_sentence(tmp_path):
    with (
        pytest.raises(StorageFailed, match="cannot be read: No such file"),
        read_vault(tmp_path / "none", KEY),
    ):
        pass


def archive(write):
    """Return the archive that a function writes, encrypted."""
    file = io.BytesIO()
    vault = VaultWriter(file, KEY.public)
    records = RecordWriter(vault)
    write(records)
    records.finish()
    vault.finish()
    return file.getvalue()


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=5,
)


@settings(max_examples=50)
@given(st.lists(VALUES, max_size=8))
def test_records_are_read_as_they_were_written(values):
    def write(records):
        for index, value in enumerate(values):
            records.write_record("first" if index < 4 else "second", value)

    reader = RecordReader(VaultReader(io.BytesIO(archive(write)), KEY))
    assert [*reader.read_section("first"), *reader.read_section("second")] == values
    reader.expect_end()


def test_files_and_lines_are_those_of_tar(tmp_path):
    def write(records):
        records.write_record("entry", [b"\xff", None, 1.5])
        records.write_record("entry", {"name": "\u00e9"})
        records.write_file("one", io.BytesIO(LONG))

    (tmp_path / "dump.tar").write_bytes(decrypt(archive(write)))
    with tarfile.open(tmp_path / "dump.tar") as opened:
        assert opened.getnames() == ["000001-entry.jsonl", "files/one", "000002-end.jsonl"]
        lines = opened.extractfile("000001-entry.jsonl").read().decode().splitlines()
        assert lines == ['[{"base64":"/w=="},null,1.5]', '{"name":"\\u00e9"}']
        assert opened.extractfile("files/one").read() == LONG


def test_many_records_are_several_files():
    def write(records):
        for number in range(30):
            records.write_record("entry", [number, "x" * 100_000])

    reader = RecordReader(VaultReader(io.BytesIO(archive(write)), KEY))
    assert [number for number, _ in reader.read_section("entry")] == list(range(30))
    reader.expect_end()
