"""Deterministic salts, a record of what each was used for, and a search for leaked ones.

Two worlds with the same salts give the same output even if a salt leaks. But whoever knows the salt
of a commitment can guess its content, so a salt may only be shown to its owner.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import re
from itertools import count
from urllib.parse import quote

from ladderboard.ledger import Commitment, digest

PART = 8  # bytes of a secret: a match is no coincidence, and leaking that many is too much
_HEX = re.compile(rb"[0-9a-fA-F]{%d,}" % (2 * PART))
_BASE64 = re.compile(rb"[\w+/-]{11,}")
_HASH = Commitment.hash  # before a test replaces it
_URL_SAFE = bytes.maketrans(b"-_", b"+/")


class SaltSource:
    """Returns a new salt on each call; the same sequence for the same seed."""

    def __init__(self, seed=b""):
        self._seed, self._count = seed, count()

    def __call__(self):
        return hashlib.sha256(b"salt %d %b" % (next(self._count), self._seed)).digest()


class SaltUses:
    """What salts were used for: the domains of each salt, and the salt of each hash."""

    def __init__(self):
        self.domains, self.salt_of, self._contents = {}, {}, {}

    def add(self, commitment, hashed, *, once):
        """Record a commitment; with ``once``, fail if its salt was used for another one."""
        salt, domain = commitment.salt, commitment.domain
        content = (domain, repr(commitment.content))
        assert self._contents.setdefault(salt, content) == content or not once, (
            "a salt was used twice"
        )
        self.domains.setdefault(salt, set()).add(domain)
        self.salt_of[hashed.hex()] = salt


def record_salt_uses(monkeypatch, *, hide):
    """Return a record of what salts are used for from now on.

    With ``hide``, commitments are hashes of their salts alone, which hides their content perfectly,
    and using a salt for two contents fails.
    """
    uses = SaltUses()

    def hashed(self):
        value = digest(self.domain, self.salt) if hide else _HASH.fget(self)
        uses.add(self, value, once=hide)
        return value

    monkeypatch.setattr(Commitment, "hash", property(hashed))
    return uses


class SecretSearch:
    """Finds secrets in texts, in every common encoding of bytes.

    In hex and base64 a part of a secret is found as well, at any offset.
    """

    def __init__(self, secrets):
        encodings = {secret: set(_encodings(secret)) for secret in secrets}
        self._whole = [(form, secret) for secret, forms in encodings.items() for form in forms]
        self._parts = {
            secret[start:][:PART]: secret
            for secret in encodings
            for start in range(len(secret) - PART + 1)
        }

    def find(self, texts):
        """Return the secrets that occur in any of the texts."""
        joined = b"\n".join(sorted(set(texts)))
        leaked = {secret for form, secret in self._whole if form in joined}
        for data in _decoded(joined):
            windows = (data[start : start + PART] for start in range(len(data) - PART + 1))
            leaked |= {self._parts[window] for window in windows if window in self._parts}
        return leaked


def _encodings(secret):
    """Yield the encodings of a secret that are searched for literally."""
    text = secret.decode("latin-1")
    yield from (secret, text.encode(), repr(secret)[2:-1].encode(), quote(secret).encode())
    yield json.dumps(text)[1:-1].encode()
    yield from (separator.join(map(str, secret)).encode() for separator in (",", ", ", " "))
    yield str(int.from_bytes(secret, "big")).encode()


def _decoded(text):
    """Yield the bytes that hex and base64 runs may encode, at every alignment."""
    for run in set(_HEX.findall(text)):
        for start in (0, 1):
            yield bytes.fromhex(run[start : start + (len(run) - start) // 2 * 2].decode())
    for run in set(_BASE64.findall(text)):
        plain = run.translate(_URL_SAFE)
        for start in range(4):
            yield binascii.a2b_base64(plain[start : start + (len(plain) - start) // 4 * 4])


def iter_bytes(value):
    """Yield every leaf of nested lists and maps, as bytes."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, (list, tuple, set)):
        for item in value:
            yield from iter_bytes(item)
    elif isinstance(value, bytes):
        yield value
    else:
        yield (value if isinstance(value, str) else repr(value)).encode("utf-8", "surrogatepass")
