"""The secret side, encrypted."""

import pytest

from ladderboard.errors import InvalidState
from ladderboard.ledger import Cipher, NoEncryption

KEY = bytes(range(32))


def test_what_was_closed_is_opened():
    seal = Cipher(KEY, "book")
    kept = seal.encrypt("secret 1", b"risk")
    assert seal.decrypt("secret 1", kept) == b"risk"
    assert b"risk" not in kept
    assert seal.encrypt("secret 1", b"risk") != kept  # a nonce of its own


@pytest.mark.parametrize(
    ("seal", "place"),
    [
        (Cipher(KEY, "book"), "secret 2"),
        (Cipher(KEY, "another"), "secret 1"),
        (Cipher(bytes(32), "book"), "secret 1"),
    ],
)
def test_neither_another_key_nor_book_nor_place_opens_it(seal, place):
    kept = Cipher(KEY, "book").encrypt("secret 1", b"risk")
    with pytest.raises(InvalidState, match="cannot be decrypted"):
        seal.decrypt(place, kept)


def test_every_changed_byte_is_found():
    seal = Cipher(KEY, "book")
    kept = seal.encrypt("state 0", b"state")
    for at in range(1, len(kept)):
        with pytest.raises(InvalidState, match="cannot be decrypted"):
            seal.decrypt("state 0", kept[:at] + bytes([kept[at] ^ 1]) + kept[at + 1 :])
    with pytest.raises(InvalidState, match="cannot be decrypted"):
        seal.decrypt("state 0", kept[:5])


def test_open_and_encrypted_are_told_apart():
    with pytest.raises(InvalidState, match="give the key file"):
        NoEncryption().decrypt("x", Cipher(KEY, "book").encrypt("x", b"y"))
    with pytest.raises(InvalidState, match="leave the key file out"):
        Cipher(KEY, "book").decrypt("x", NoEncryption().encrypt("x", b"y"))


def test_the_key_is_never_shown():
    assert KEY.hex() not in repr(Cipher(KEY, "book"))
    assert "hidden" in repr(Cipher(KEY, "book"))
