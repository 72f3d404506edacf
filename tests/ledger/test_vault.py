"""Encrypted files: what was written is read, and whatever was done to one is found."""

import io
import os
import stat

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
    PublicKey,
    SecretKey,
    VaultReader,
    VaultWriter,
    read_vault,
    write_vault,
)
from ladderboard.ledger._vault import ScryptCost

ROOM = 64 * 1024 - 4
PIECE = 64 * 1024 + 16
HEAD = 20 + 1 + 32 + 32
CHEAP = ScryptCost(4, 1, 1)  # or every test would take a third of a second for each vault
KEY = SecretKey(bytes(range(32)))


def closed(content, key=KEY.public):
    file = io.BytesIO()
    writer = VaultWriter(file, key)
    writer.write(content)
    writer.finish()
    return file.getvalue()


def opened(form, key=KEY):
    reader = VaultReader(io.BytesIO(form), key)
    content = reader.read(2**30)
    assert reader.read(1) == b""
    return content


def pieces(form):
    return [form[:HEAD], *(form[index : index + PIECE] for index in range(HEAD, len(form), PIECE))]


LONG = os.urandom(2 * ROOM + 1000)
VAULT = closed(LONG)


@pytest.mark.parametrize("size", [0, 1, ROOM - 1, ROOM, ROOM + 1, 2 * ROOM, 2 * ROOM + 1])
def test_what_was_written_is_read(size):
    content = os.urandom(size)
    form = closed(content)
    assert opened(form) == content
    assert len(form) == HEAD + PIECE * max(-(-size // ROOM), 1)


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
    found = [reader.read(size) for size in read]
    assert b"".join(found) + reader.read(2**30) == b"".join(content)


def test_a_passphrase_opens_what_it_closed():
    form = closed(b"content", Passphrase("correct horse"))
    assert form[20:24] == b"p\x11\x08\x01"  # the real cost, once
    assert opened(form, Passphrase("correct horse")) == b"content"
    with pytest.raises(WrongKey, match="The passphrase is wrong"):
        opened(form, Passphrase("correct Horse"))


def test_letters_with_accents_are_the_same_however_a_keyboard_sends_them():
    form = closed(b"content", Passphrase("ne\u0301cessaire", CHEAP))
    assert opened(form, Passphrase("n\u00e9cessaire")) == b"content"


@pytest.mark.parametrize("message", ["", "1234567", "       x", "        "])
def test_a_weak_passphrase_is_refused(message):
    with pytest.raises(InvalidSetting, match="at least 8 characters"):
        closed(b"", Passphrase(message, CHEAP))


@pytest.mark.parametrize(
    ("key", "other", "message"),
    [
        (KEY.public, SecretKey(bytes(32)), "encrypted for another key"),
        (KEY.public, Passphrase("correct horse"), "encrypted for a key, not with a passphrase"),
        (Passphrase("correct horse", CHEAP), KEY, "encrypted with a passphrase, not for a key"),
    ],
)
def test_another_key_is_refused(key, other, message):
    with pytest.raises(WrongKey, match=message):
        opened(closed(b"content", key), other)


@pytest.mark.parametrize(
    "cost", [(24, 8, 1), (17, 8, 255), (255, 255, 255), (0, 1, 1), (4, 0, 1), (20, 1, 1)]
)
def test_a_file_that_asks_for_too_much_work_is_refused(cost):
    form = closed(b"content", Passphrase("correct horse", CHEAP))
    with pytest.raises(InvalidState, match="more memory or work"):
        opened(form[:21] + bytes(cost) + form[24:], Passphrase("correct horse"))


@settings(max_examples=300)
@given(st.integers(0, len(VAULT) - 1), st.integers(1, 255))
def test_every_changed_byte_is_found(at, change):
    form = VAULT[:at] + bytes([VAULT[at] ^ change]) + VAULT[at + 1 :]
    with pytest.raises((BrokenDump, InvalidState)):
        opened(form)


@pytest.mark.parametrize("key", [Passphrase("correct horse", CHEAP), KEY.public])
def test_every_changed_bit_of_the_head_is_found(key):
    opener = KEY if isinstance(key, PublicKey) else key
    form = closed(b"content", key)
    head = len(form) - PIECE
    for bit in range(8 * head):
        at, change = bit // 8, 1 << bit % 8
        with pytest.raises((BrokenDump, InvalidState)):
            opened(form[:at] + bytes([form[at] ^ change]) + form[at + 1 :], opener)


@settings(max_examples=200)
@given(st.integers(0, len(VAULT) - 1))
def test_every_truncation_is_found(size):
    with pytest.raises((BrokenDump, InvalidState), match=r"cut off|not a dump"):
        opened(VAULT[:size])


@pytest.mark.parametrize("size", [HEAD, HEAD + PIECE, HEAD + 2 * PIECE])
def test_a_file_that_ends_between_two_pieces_is_cut_off(size):
    with pytest.raises(BrokenDump, match="cut off"):
        opened(VAULT[:size])


@pytest.mark.parametrize("more", [b"\0", bytes(PIECE), VAULT[-PIECE:], VAULT])
def test_added_bytes_are_found(more):
    with pytest.raises(BrokenDump, match="Something was added"):
        opened(VAULT + more)


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (0, 3, 1, 2), (0, 1, 1, 3), (0, 2, 3), (0, 3)])
def test_pieces_that_are_elsewhere_are_found(order):
    found = pieces(VAULT)
    with pytest.raises(BrokenDump, match="belongs elsewhere"):
        opened(b"".join(found[each] for each in order))


def test_a_piece_of_another_file_is_found():
    ours, other = pieces(VAULT), pieces(closed(LONG))
    with pytest.raises(BrokenDump, match="piece 1 was changed"):
        opened(b"".join([*ours[:2], other[2], ours[3]]))


@settings(max_examples=100)
@given(st.binary(max_size=300), st.booleans())
def test_bytes_from_elsewhere_are_refused(content, ours):
    for form in (content, VAULT[:21] + content, VAULT[:HEAD] + content):
        with pytest.raises(LadderboardError):
            opened(form, KEY if ours else Passphrase("correct horse"))


def test_a_newer_vault_format_is_named():
    with pytest.raises(InvalidState, match="newer Ladderboard"):
        opened(VAULT.replace(b"vault 1", b"vault 2", 1))


def test_a_key_that_everybody_shares_is_refused():
    with pytest.raises(InvalidSetting, match="is insecure"):
        closed(b"content", PublicKey(bytes(32)))


def test_nothing_of_the_content_and_no_key_is_to_be_seen(tmp_path):
    key = Passphrase("correct horse", CHEAP)
    assert b"needle" not in closed(b"needle", key)
    assert closed(b"needle", key) != closed(b"needle", key)
    assert "horse" not in repr(key)
    assert KEY.key.hex() not in repr(KEY)
    assert repr(KEY.key) not in repr(KEY)


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
