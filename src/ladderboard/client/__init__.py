"""The same verbs from Python, over HTTP.

A :class:`Client` submits to the boards of a server and reads them; an
:class:`AsyncClient` does the same where it is awaited. What is said is typed, what is
refused is raised as the exception that the server raised itself, what breaks on the way is sent
again under the same key, and every answer leaves a receipt.
"""

from ladderboard.client._async import AsyncClient
from ladderboard.client._guard import BoardGuard
from ladderboard.client._receipts import Receipt
from ladderboard.client._replies import (
    Best,
    Board,
    Declared,
    Display,
    Files,
    Finalist,
    Finals,
    Head,
    Limit,
    NewTeam,
    Phase,
    Record,
    Standing,
    Submission,
    Team,
    TeamName,
    Window,
)
from ladderboard.client._submitted import Submitted
from ladderboard.client._sync import Client

__all__ = [
    "AsyncClient",
    "Best",
    "Board",
    "BoardGuard",
    "Client",
    "Declared",
    "Display",
    "Files",
    "Finalist",
    "Finals",
    "Head",
    "Limit",
    "NewTeam",
    "Phase",
    "Receipt",
    "Record",
    "Standing",
    "Submission",
    "Submitted",
    "Team",
    "TeamName",
    "Window",
]
