"""The sandbox: processes that know no label read what strangers send."""

from ladderboard.server._sandbox._pool import ParserPool, sandbox
from ladderboard.server._sandbox._reply import Spec

__all__ = ["ParserPool", "Spec", "sandbox"]
