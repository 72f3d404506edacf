"""The search for salts finds them in every encoding; the two-worlds tests rely on it."""

import base64
import json
from urllib.parse import quote

import pytest

from support.salts import SaltSource, SecretSearch, iter_bytes

WAYS = {
    "hex": lambda salt: salt.hex(),
    "upper case": lambda salt: salt.hex().upper(),
    "half of it": lambda salt: salt[16:].hex(),
    "a part, after an odd digit": lambda salt: "f" + salt[5:14].hex(),
    "base64": lambda salt: base64.b64encode(salt).decode(),
    "base64 for addresses": lambda salt: base64.urlsafe_b64encode(salt).decode(),
    "within base64": lambda salt: base64.b64encode(b"as " + salt + b" is").decode(),
    "a part in base64": lambda salt: base64.urlsafe_b64encode(b"." + salt[:12]).decode(),
    "JSON": lambda salt: json.dumps(salt.decode("latin-1")),
    "a list": lambda salt: json.dumps([*salt]),
    "Python": repr,
    "percent": quote,
    "a number": lambda salt: str(int.from_bytes(salt, "big")),
    "text": lambda salt: salt.decode("latin-1"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_salt_is_found_in_every_encoding(way):
    salts = [make() for make in [SaltSource()] for _ in range(20)]
    search = SecretSearch(salts)
    texts = [f"salt={SaltSource(b'other')().hex()};", "a-word-that-is-long " * 9, "0" * 64]
    assert search.find(iter_bytes(texts)) == set()
    values = [*texts, {"a": ("b", f'x="{WAYS[way](salts[7])}"')}]
    assert search.find(iter_bytes(values)) == {salts[7]}
    assert search.find([b"\0" + salts[3] + b"\0"]) == {salts[3]}
