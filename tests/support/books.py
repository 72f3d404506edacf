"""Books for tests of the ledger: fixed openings, environments and questions."""

import hashlib
import itertools

import ladderboard as lb
from ladderboard.ledger import LedgerEnvironment, Opening, ScoredQuestion

KEY = b"k" * 32
MECHANISM = lb.ShakyLadder(step=0.02, compare_noise=0.01, release_noise=0.005, grid=0.01)


def make_opening(mechanism=MECHANISM, questions=20):
    """Return the opening of a book."""
    return Opening(
        n=1000,
        loss={"loss": "zero_one", "classes": None},
        mechanism=mechanism.describe(),
        rules={"questions": questions},
        holdout=b"h" * 32,
    )


def fixed_environment():
    """Return an environment with a clock that ticks at each call and counted salts."""
    numbers, ticks = itertools.count(), itertools.count(1000)
    return LedgerEnvironment(
        clock=lambda: next(ticks), salt=lambda: next(numbers).to_bytes(32, "big")
    )


def submission_digest(number):
    """Return the digest of a submission with a number."""
    return hashlib.sha256(b"%d" % number).digest()


def make_question(number, risk=0.3, **fields):
    """Return the question about a submission with a number."""
    return ScoredQuestion(submission_digest(number), risk, **fields)
