"""The parts of cryptography that a vault is made of, or what to install."""

from ladderboard.errors import MissingDependency

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

__all__ = [
    "HKDF",
    "SHA256",
    "ChaCha20Poly1305",
    "InvalidTag",
    "Scrypt",
    "X25519PrivateKey",
    "X25519PublicKey",
]
