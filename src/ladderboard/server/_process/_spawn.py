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

_VARIABLE = "_LADDERBOARD_WORKER"
_INHERITED_FD = 3  # where systemd puts the first socket, and so do we
# Nothing of the server's surroundings but where programs and libraries are.
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
    """What a worker is told: whose it is, where to answer, a line to say that it does."""

    parent: int
    socket: int
    line: int
    socket_inherited: bool
    shared_folder: str


def is_worker() -> bool:
    """Tell whether this process was started to be a worker, and has not begun yet."""
    return _VARIABLE in os.environ


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
    command: Sequence[str], listening: socket.socket, *, socket_inherited: bool, shared_folder: Path
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a worker; return its process, and the line on which it says something when it answers.

    Nothing else goes from one version of this program to another, so that a new one may follow.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        fds = (listening.fileno(), theirs.fileno())
        spec = WorkerSpec(os.getpid(), *fds, socket_inherited, str(shared_folder))
        try:
            process = subprocess.Popen(  # noqa: S603 - our own program
                command,
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr.fileno(),  # the parent has said where it is
                env={**os.environ, _VARIABLE: json.dumps(spec._asdict())},
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
    text = os.environ.pop(_VARIABLE, None)
    if text is None:
        return None
    try:
        spec = WorkerSpec(**json.loads(text))
        for descriptor in (spec.socket, spec.line):
            os.set_inheritable(descriptor, False)
    except (OSError, TypeError, ValueError):
        raise InvalidSetting(
            f"{_VARIABLE} is set by a server for its worker processes only; type: unset {_VARIABLE}"
        ) from None
    return spec


def reexec(command: Sequence[str], listening: socket.socket) -> NoReturn:
    """Become the program as it is installed now, with the socket; who asks meanwhile waits."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # or one more would be the end
    variables = {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
    if listening.fileno() == _INHERITED_FD:
        os.set_inheritable(_INHERITED_FD, True)
    else:
        os.dup2(listening.fileno(), _INHERITED_FD)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvpe(command[0], list(command), {**os.environ, **variables})  # noqa: S606 - our own program


def subprocess_command(file: str, argument: str) -> list[str]:
    """Return the command that runs a file of ours by its path; it finds what we find."""
    path = [os.path.normpath(Path(folder).absolute()) for folder in sys.path]  # "" is where we are
    return [sys.executable, "-I", "-B", "-c", _BOOTSTRAP, file, argument, *path]


def subprocess_env() -> dict[str, str]:
    """Return the variables: no secret of the server's, and one thread for every library."""
    variables = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
    return variables | dict.fromkeys(_THREAD_LIMITS, "1")
