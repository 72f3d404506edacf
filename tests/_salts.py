"""Salts that are known again wherever they turn up, what each was used for, and a search for them.

Two worlds with the same salts say the same even where they tell a salt. But whoever knows the salt
of a commitment can try what it may be to: so nobody may be told one that is not their own.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import re
from itertools import count
from urllib.parse import quote

from ladderboard.ledger import Commitment, digest

PART = 8  # bytes of a secret that are no chance, and would be too many to tell
_HEX = re.compile(rb"[0-9a-fA-F]{%d,}" % (2 * PART))
_BASE64 = re.compile(rb"[\w+/-]{11,}")
_HASH = Commitment.hash  # before anybody replaces it
_SAFE = bytes.maketrans(b"-_", b"+/")


class Salts:
    """Gives salts, the same ones for the same seed."""

    def __init__(self, seed=b""):
        self._seed, self._count = seed, count()

    def __call__(self):
        return hashlib.sha256(b"salt %d %b" % (next(self._count), self._seed)).digest()


class Used:
    """What salts were used for: the domains of each, and the salt behind each hash."""

    def __init__(self):
        self.domains, self.behind, self._contents = {}, {}, {}

    def add(self, commitment, hashed, *, once):
        """Write down a commitment; ``once``, refuse a salt that was used for another."""
        salt, domain = commitment.salt, commitment.domain
        content = (domain, repr(commitment.content))
        assert self._contents.setdefault(salt, content) == content or not once, "a salt, twice"
        self.domains.setdefault(salt, set()).add(domain)
        self.behind[hashed.hex()] = salt


def watch(monkeypatch, *, hide):
    """Watch what salts are used for from now on.

    With ``hide`` commitments are hashes of their salts alone, which hide perfectly what they bind,
    and no salt is used for two contents.
    """
    used = Used()

    def hashed(self):
        made = digest(self.domain, self.salt) if hide else _HASH.fget(self)
        used.add(self, made, once=hide)
        return made

    monkeypatch.setattr(Commitment, "hash", property(hashed))
    return used


class Search:
    """Looks for secrets, in every way in which bytes are written down.

    In hex and base64 a part of one is found as well, wherever it begins.
    """

    def __init__(self, secrets):
        ways = {each: set(_written(each)) for each in secrets}
        self._whole = [(form, each) for each, forms in ways.items() for form in forms]
        self._parts = {
            each[at:][:PART]: each for each in ways for at in range(len(each) - PART + 1)
        }

    def find(self, texts):
        """Return the secrets that are in any of the texts."""
        texts = set(texts)
        every = b"\n".join(sorted(texts))
        found = {each for form, each in self._whole if form in every}
        for data in _decoded(every):
            windows = (data[at : at + PART] for at in range(len(data) - PART + 1))
            found |= {self._parts[each] for each in windows if each in self._parts}
        return found


def _written(secret):
    """Yield the ways to write bytes that are read as they are."""
    text = secret.decode("latin-1")
    yield from (secret, text.encode(), repr(secret)[2:-1].encode(), quote(secret).encode())
    yield json.dumps(text)[1:-1].encode()
    yield from (between.join(map(str, secret)).encode() for between in (",", ", ", " "))
    yield str(int.from_bytes(secret, "big")).encode()


def _decoded(text):
    """Yield what may be meant by hex and base64, wherever it begins."""
    for run in set(_HEX.findall(text)):
        for start in (0, 1):
            yield bytes.fromhex(run[start : start + (len(run) - start) // 2 * 2].decode())
    for run in set(_BASE64.findall(text)):
        plain = run.translate(_SAFE)
        for start in range(4):
            yield binascii.a2b_base64(plain[start : start + (len(plain) - start) // 4 * 4])


def pieces(value):
    """Yield everything in nested lists and maps, as bytes."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, (list, tuple, set)):
        for each in value:
            yield from pieces(each)
    elif isinstance(value, bytes):
        yield value
    else:
        yield (value if isinstance(value, str) else repr(value)).encode("utf-8", "surrogatepass")
