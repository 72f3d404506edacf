"""Padding: what is kept secret has a size that tells nothing about it."""

from __future__ import annotations

__all__ = ["pad", "unpad"]

_LENGTH = 8


def pad(content: bytes, block: int) -> bytes:
    """Return the content after its length, filled with zeros to a multiple of the block.

    >>> len(pad(b"abc", 256)), len(pad(b"", 256))
    (256, 256)
    """
    size = _LENGTH + len(content)
    return len(content).to_bytes(_LENGTH, "big") + content + bytes(-size % block)


def unpad(padded: bytes) -> bytes:
    """Return the content, or raise ``ValueError``.

    >>> unpad(pad(b"abc", 256))
    b'abc'
    """
    end = _LENGTH + int.from_bytes(padded[:_LENGTH], "big")
    if len(padded) < end or padded.count(0, end) != len(padded) - end:
        raise ValueError("This was not padded so.")
    return padded[_LENGTH:end]
