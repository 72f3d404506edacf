"""The secret side, encrypted."""

import pytest

from ladderboard.errors import InvalidState
from ladderboard.ledger import Cipher, NoEncryption

KEY = bytes(range(32))


def test_what_was_closed_is_opened():
    seal = Cipher(KEY, "book")
    encrypted = seal.encrypt("secret 1", b"risk")
    assert seal.decrypt("secret 1", encrypted) == b"risk"
    assert b"risk" not in encrypted
    assert seal.encrypt("secret 1", b"risk") != encrypted  # a nonce of its own


@pytest.mark.parametrize(
    ("seal", "context"),
    [
        (Cipher(KEY, "book"), "secret 2"),
        (Cipher(KEY, "another"), "secret 1"),
        (Cipher(bytes(32), "book"), "secret 1"),
    ],
)
def test_neither_another_key_nor_book_nor_place_opens_it(seal, context):
    encrypted = Cipher(KEY, "book").encrypt("secret 1", b"risk")
    with pytest.raises(InvalidState, match="cannot be decrypted"):
        seal.decrypt(context, encrypted)


def test_every_changed_byte_is_found():
    seal = Cipher(KEY, "book")
    encrypted = seal.encrypt("state 0", b"state")
    for index in range(1, len(encrypted)):
        with pytest.raises(InvalidState, match="cannot be decrypted"):
            seal.decrypt(
                "state 0",
                encrypted[:index] + bytes([encrypted[index] ^ 1]) + encrypted[index + 1 :],
            )
    with pytest.raises(InvalidState, match="cannot be decrypted"):
        seal.decrypt("state 0", encrypted[:5])


def test_plain_and_encrypted_values_are_distinguished():
    with pytest.raises(InvalidState, match="give the key file"):
        NoEncryption().decrypt("x", Cipher(KEY, "book").encrypt("x", b"y"))
    with pytest.raises(InvalidState, match="leave the key file out"):
        Cipher(KEY, "book").decrypt("x", NoEncryption().encrypt("x", b"y"))


def test_the_key_is_never_shown():
    assert KEY.hex() not in repr(Cipher(KEY, "book"))
    assert "hidden" in repr(Cipher(KEY, "book"))
