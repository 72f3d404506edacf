"""The sandbox: parser processes without labels or keys read untrusted uploads."""

from ladderboard.server._sandbox._pool import ParserPool, sandbox
from ladderboard.server._sandbox._process import Spec

__all__ = ["ParserPool", "Spec", "sandbox"]
