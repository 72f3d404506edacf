"""How this program is started once more, and how helper processes are."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

_NAME = "_LADDERBOARD_WORKER"
_GIVEN = 3  # where systemd puts the first socket, and so do we
# Nothing of the server's surroundings but where programs and libraries are.
_KEPT = ("LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "TZ")
_SINGLE = ("POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_BEGIN = "import runpy, sys; file = sys.argv.pop(1); sys.path[:] = sys.argv[2:]; "
_BEGIN += "runpy.run_path(file, run_name='__main__')"


class WorkerSpec(NamedTuple):
    """What a worker is told: whose it is, where to answer, a line to say that it does."""

    parent: int
    socket: int
    line: int
    socket_inherited: bool
    trials: str


def is_worker() -> bool:
    """Tell whether this process was started to be a worker, and has not begun yet."""
    return _NAME in os.environ


def restart_command() -> list[str]:
    """Return what starts this program once more, as it is installed then.

    A script is started as a script: where its path leads to another environment by then, the
    interpreter is that one's, too.
    """
    script = sys.argv[0]
    if sys.orig_argv[1:2] == [script] and os.access(script, os.X_OK):
        return [os.path.normpath(Path(script).absolute()), *sys.argv[1:]]  # a link stays one
    return [sys.executable, *sys.orig_argv[1:]]


def start_worker(
    command: Sequence[str], listening: socket.socket, *, socket_inherited: bool, trials: Path
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a worker; return its process, and the line on which it says something when it answers.

    Nothing else goes from one version of this program to another, so that a new one may follow.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        fds = (listening.fileno(), theirs.fileno())
        post = WorkerSpec(os.getpid(), *fds, socket_inherited, str(trials))
        try:
            process = subprocess.Popen(  # noqa: S603 - our own program
                command,
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr.fileno(),  # the parent has said where it is
                env={**os.environ, _NAME: json.dumps(post._asdict())},
                pass_fds=fds,
                start_new_session=True,  # what a terminal says is for the parent
            )
        except BaseException:
            ours.close()
            raise
    ours.setblocking(False)
    return process, ours


def worker_spec_from_env() -> WorkerSpec | None:
    """Return the post of this process, once; None for all but workers."""
    told = os.environ.pop(_NAME, None)
    if told is None:
        return None
    try:
        post = WorkerSpec(**json.loads(told))
        for each in (post.socket, post.line):
            os.set_inheritable(each, False)
    except (OSError, TypeError, ValueError):
        raise InvalidSetting(
            f"{_NAME} is what a server tells the processes that it starts, and nobody else may; "
            f"type: unset {_NAME}"
        ) from None
    return post


def reexec(command: Sequence[str], listening: socket.socket) -> NoReturn:
    """Become the program as it is installed now, with the socket; who asks meanwhile waits."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # or one more would be the end
    told = {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
    if listening.fileno() == _GIVEN:
        os.set_inheritable(_GIVEN, True)
    else:
        os.dup2(listening.fileno(), _GIVEN)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvpe(command[0], list(command), {**os.environ, **told})  # noqa: S606 - our own program


def subprocess_command(file: str, told: str) -> list[str]:
    """Return the command that runs a file of ours by its path; it finds what we find."""
    path = [os.path.normpath(Path(each).absolute()) for each in sys.path]  # "" is where we are
    return [sys.executable, "-I", "-B", "-c", _BEGIN, file, told, *path]


def subprocess_env() -> dict[str, str]:
    """Return the variables: no secret of the server's, and one thread for every library."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | dict.fromkeys(_SINGLE, "1")
