"""Encrypts with a passphrase as age does, with so little work for scrypt that it takes no time.

The format is that of https://age-encryption.org/v1; age's own library opens the result.
"""

from __future__ import annotations

import base64
import hmac
import os

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

_WORK = 10  # the logarithm of scrypt's cost; the library takes about 18
_FIRST, _LAST = bytes(12), bytes(11) + b"\1"  # nonces of the file's key, and of its only chunk
_CHUNK_BYTES = 64 * 1024


def encrypt_quickly(content: bytes, passphrase: str) -> bytes:
    """Return a small file of age that the passphrase opens."""
    assert len(content) <= _CHUNK_BYTES
    file_key, salt, nonce = (os.urandom(16) for _ in range(3))
    label = b"age-encryption.org/v1/scrypt"
    scrypt = Scrypt(salt=label + salt, length=32, n=2**_WORK, r=8, p=1)
    wrapped = ChaCha20Poly1305(scrypt.derive(passphrase.encode())).encrypt(_FIRST, file_key, None)
    header = b"age-encryption.org/v1\n-> scrypt %b %d\n%b\n---" % (
        _base64(salt),
        _WORK,
        _base64(wrapped),
    )
    code = hmac.digest(_derive(file_key, b"", b"header"), header, "sha256")
    stream = ChaCha20Poly1305(_derive(file_key, nonce, b"payload"))
    return header + b" %b\n" % _base64(code) + nonce + stream.encrypt(_LAST, content, None)


def _base64(value: bytes) -> bytes:
    return base64.b64encode(value).rstrip(b"=")


def _derive(key: bytes, salt: bytes, purpose: bytes) -> bytes:
    return HKDF(SHA256(), length=32, salt=salt, info=purpose).derive(key)
