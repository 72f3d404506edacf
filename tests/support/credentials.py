"""Secrets and addresses for tests: the secrets open nothing, and differ in every run."""

import secrets

ALL_INTERFACES = "0.0.0.0"  # noqa: S104 - a setting under test; nothing listens there


def random_secret() -> str:
    """Return a token, password or passphrase that was never used: letters and digits.

    Not for parameters of a test: their names must be the same in every process of a run.
    """
    return secrets.token_hex(16)
