"""The sandbox: processes that know no label read what strangers send."""

from ladderboard.server._sandbox._pool import Parsers, sandbox
from ladderboard.server._sandbox._reply import Spec

__all__ = ["Parsers", "Spec", "sandbox"]
