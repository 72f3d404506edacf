"""A guard, a gate or a board as tools for an agent, over the Model Context Protocol.

``ladderboard mcp`` runs ``serve``, which speaks the protocol on stdin and stdout until stdin ends.
``make_server`` returns the server of the official SDK, for other transports. The agent gets three
tools: ``ask`` (a guard), ``check`` (a gate) or ``submit`` (a board), ``standing`` and ``budget``.
Labels, risks and keys stay on the server; this process never has them.
"""

from ladderboard.adapters.mcp._server import make_server, serve
from ladderboard.adapters.mcp._tools import open_toolset

__all__ = ["make_server", "open_toolset", "serve"]
