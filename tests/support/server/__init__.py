"""Servers, clients and browsers for tests of the HTTP interfaces.

The constants are scripts that tests run as processes of their own.
"""

from pathlib import Path

GUARD_AGENT = Path(__file__).with_name("guard_agent.py")
HOSTILE_CLIENTS = Path(__file__).with_name("hostile_clients.py")
SERVE_FIRST_BOARD = Path(__file__).with_name("serve_first_board.py")
