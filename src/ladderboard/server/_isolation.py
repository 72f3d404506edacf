"""Processes that end with their parent, and processes that can open nothing.

A parser loads this file by its path: importing the package would load the whole server.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys

_DEATH_SIGNAL, _NO_NEW_PRIVILEGES = 1, 38  # for prctl

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
_VERSION = 1  # flag: return the version instead of a ruleset
_PATH_BENEATH = 1  # the type of rule
_READ_RIGHTS = 0b1101  # execute a file, read a file, list a folder
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # number of file rights by version
_LATEST_FILE_RIGHTS = 16
_NET_RIGHTS, _SCOPES = 0b11, 0b11  # bind and connect; abstract sockets and signals


def die_with_parent(parent: int, death_signal: signal.Signals = signal.SIGKILL) -> None:
    """Get a signal when the parent process ends, however it ends; exit if it has ended already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, death_signal, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit


def forbid_new_privileges() -> None:
    """Make sure that this process never gains more privileges than it has."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)


def apply_landlock() -> bool:
    """Let this process read programs and libraries, and open nothing else; return whether it works.

    Linux can take these rights away permanently. On other systems a parser that a malicious body
    takes over can open whatever its user can.
    """
    if sys.platform != "linux":
        return False
    call = ctypes.CDLL(None, use_errno=True).syscall
    version = call(_CREATE_RULESET, None, 0, _VERSION)
    if version < 1:
        return False
    files = (1 << _FILE_RIGHTS.get(version, _LATEST_FILE_RIGHTS)) - 1
    settings = struct.pack("=Q", files)
    if version >= 4:
        settings += struct.pack("=Q", _NET_RIGHTS)
    if version >= 6:
        settings += struct.pack("=Q", _SCOPES)
    rules = call(_CREATE_RULESET, settings, len(settings), 0)
    if rules < 0:
        return False
    try:
        for path in {*sys.path, sys.prefix, sys.base_prefix}:
            _allow(call, rules, path)
        return bool(call(_RESTRICT_SELF, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow(call: ctypes._NamedFuncPointer, rules: int, path: str) -> None:
    """Allow reading everything below a folder."""
    try:
        folder = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        call(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", _READ_RIGHTS, folder), 0)
    finally:
        os.close(folder)
