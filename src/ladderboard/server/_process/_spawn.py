"""Starting workers and helper processes, and restarting this program."""

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

_VARIABLE = "_LADDERBOARD_WORKER"
_INHERITED_FD = 3  # the descriptor of the first socket that systemd passes
# Of the environment, helper processes get only these: it may hold secrets.
_PASSED_VARIABLES = ("LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "TZ")
_THREAD_LIMITS = (
    "POLARS_MAX_THREADS",
    "RAYON_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
)
_BOOTSTRAP = "import runpy, sys; file = sys.argv.pop(1); sys.path[:] = sys.argv[2:]; "
_BOOTSTRAP += "runpy.run_path(file, run_name='__main__')"


class WorkerSpec(NamedTuple):
    """What a worker needs: its parent, the listening socket, and a socket to report readiness."""

    parent: int
    socket: int
    ready_socket: int
    socket_inherited: bool
    shared_folder: str


def is_worker() -> bool:
    """Tell whether this process was started as a worker and is not serving yet."""
    return _VARIABLE in os.environ


def restart_command() -> list[str]:
    """Return the command that starts this program again, in the version installed then.

    A script is started as a script: if its path then leads to another environment, that
    environment's interpreter is used.
    """
    script = sys.argv[0]
    if sys.orig_argv[1:2] == [script] and os.access(script, os.X_OK):
        return [os.path.normpath(Path(script).absolute()), *sys.argv[1:]]  # a link stays one
    return [sys.executable, *sys.orig_argv[1:]]


def start_worker(
    command: Sequence[str], listening: socket.socket, *, socket_inherited: bool, shared_folder: Path
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a worker; return its process, and the socket on which it reports readiness.

    Nothing else is shared between parent and worker, so that they may be of different versions.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        fds = (listening.fileno(), theirs.fileno())
        spec = WorkerSpec(os.getpid(), *fds, socket_inherited, str(shared_folder))
        try:
            process = subprocess.Popen(  # noqa: S603 - our own program
                command,
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr.fileno(),  # the parent has printed the address
                env={**os.environ, _VARIABLE: json.dumps(spec._asdict())},
                pass_fds=fds,
                start_new_session=True,  # terminal signals are for the parent
            )
        except BaseException:
            ours.close()
            raise
    ours.setblocking(False)
    return process, ours


def worker_spec_from_env() -> WorkerSpec | None:
    """Return the worker specification of this process, once; None if it is not a worker."""
    text = os.environ.pop(_VARIABLE, None)
    if text is None:
        return None
    try:
        spec = WorkerSpec(**json.loads(text))
        for descriptor in (spec.socket, spec.ready_socket):
            os.set_inheritable(descriptor, False)
    except (OSError, TypeError, ValueError):
        raise InvalidSetting(
            f"{_VARIABLE} is set by a server for its worker processes only; type: unset {_VARIABLE}"
        ) from None
    return spec


def reexec(command: Sequence[str], listening: socket.socket) -> NoReturn:
    """Replace this process by the program as installed now; the socket queues new connections."""
    signal.pthread_sigmask(
        signal.SIG_BLOCK, {signal.SIGHUP}
    )  # a second SIGHUP would end the new program
    variables = {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
    if listening.fileno() == _INHERITED_FD:
        os.set_inheritable(_INHERITED_FD, True)
    else:
        os.dup2(listening.fileno(), _INHERITED_FD)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvpe(command[0], list(command), {**os.environ, **variables})  # noqa: S606 - our own program


def subprocess_command(file: str, argument: str) -> list[str]:
    """Return the command that runs one of our files by its path, with our ``sys.path``."""
    path = [os.path.normpath(Path(folder).absolute()) for folder in sys.path]  # "" is where we are
    return [sys.executable, "-I", "-B", "-c", _BOOTSTRAP, file, argument, *path]


def subprocess_env() -> dict[str, str]:
    """Return the environment of a helper process: no secrets, and one thread per library."""
    variables = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
    return variables | dict.fromkeys(_THREAD_LIMITS, "1")
