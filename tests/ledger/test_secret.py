"""The secret side of an entry."""

import pytest

from ladderboard.errors import BrokenLedger
from ladderboard.ledger import SecretSide, digest

SECRET = SecretSide(
    risk=0.25,
    training=None,
    broken=False,
    draws=(3, -4, 2**70),
    before=b"b" * 32,
    after=b"a" * 32,
    salt=b"s" * 32,
    submission=b"m" * 32,
    submission_salt=b"t" * 32,
)


def test_it_comes_back():
    assert SecretSide.unpack(SECRET.pack()) == SECRET


def test_its_hash_is_as_documented():
    content = {
        "risk": 0.25,
        "training": None,
        "broken": False,
        "draws": [3, -4, 2**70],
        "before": b"b" * 32,
        "after": b"a" * 32,
    }
    assert SECRET.commitment.hash == digest("secret", {"salt": b"s" * 32, "content": content})
    shown = digest("submission", {"salt": b"t" * 32, "content": b"m" * 32})
    assert SECRET.submission_commitment.hash == shown
    assert SECRET.commit_and_pack() == (shown, SECRET.commitment.hash, SECRET.pack())


@pytest.mark.parametrize("risk", [0.0, 1.0, 1 / 3])
@pytest.mark.parametrize("draws", [(), (0, 0, 0), (10**17, -(10**17), 1), (0.25, 1e-300, -3.0)])
def test_its_size_tells_nothing(risk, draws):
    changed = SECRET._replace(risk=risk, draws=draws, broken=risk == 1.0)
    assert len(changed.pack()) == 512


@pytest.mark.parametrize("at", range(0, 512, 3))
def test_damage_is_found_or_changes_the_hash(at):
    packed = bytearray(SECRET.pack())
    packed[at] ^= 4
    try:
        read = SecretSide.unpack(bytes(packed))
    except BrokenLedger:
        return
    assert (read.commitment.hash, read.submission_commitment.hash) != (
        SECRET.commitment.hash,
        SECRET.submission_commitment.hash,
    )
