"""What can be promised.

A *certificate* is an interval for the best true risk so far, with its confidence and assumptions:
everything that a mechanism could ever be seen to say is counted, and what was seen is paid for in
nats. The proofs are in docs/explanation/certificates.md.
"""

from ladderboard.bounds._certificate import Certificate
from ladderboard.bounds._certify import certificate

__all__ = ["Certificate", "certificate"]
