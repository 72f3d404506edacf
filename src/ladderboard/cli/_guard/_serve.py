"""``ladderboard guard serve``: a guard for users who may not read its file."""

import gc
import logging
from contextlib import closing
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from ladderboard.cli._guard._files import File, KeyFile, require_guard_file
from ladderboard.cli._options import AsJson
from ladderboard.cli._output import echo, echo_json
from ladderboard.errors import InvalidSetting, MissingDependency

_MIB = 2**20
_PORT, _GRADE_PORT = 8765, 5000  # mle-bench's grading server listens at 5000


def _parse_mode(text: str) -> int:
    try:
        return int(text, 8)
    except ValueError:
        raise typer.BadParameter("A mode is like 660.") from None


Host = Annotated[
    str | None,
    typer.Option(help="The loopback address to listen at; 127.0.0.1 if left out."),
]
Port = Annotated[
    int | None,
    typer.Option(help="The port to listen on, 8765 if left out; 0 for any free one."),
]
SocketPath = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="A Unix socket to listen on instead of a port."),
]
SocketMode = Annotated[
    int,
    typer.Option(
        parser=_parse_mode, metavar="MODE", help="The permissions of the socket, as for chmod."
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Require the token in this file, which is created if needed.",
    ),
]
OnlyLadder = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Answer on this ladder only; on all of the guard's ladders if left out.",
    ),
]
SizeLimit = Annotated[
    int,
    typer.Option(
        metavar="MIB",
        min=1,
        help="The largest size of predictions, compressed and uncompressed.",
    ),
]


def serve(
    file: File,
    *,
    key_file: KeyFile = None,
    host: Host = None,
    port: Port = None,
    socket: SocketPath = None,
    socket_mode: SocketMode = "660",  # type: ignore[assignment] # typer parses it, too
    token_file: TokenFile = None,
    ladder: OnlyLadder = "",
    promote: Annotated[
        bool, typer.Option("--promote", help="Let clients of a gate promote an incumbent.")
    ] = False,
    limit: SizeLimit = 256,
    as_json: AsJson = False,
) -> None:
    """Answer questions, or looks at a gate, over HTTP, on loopback or a Unix socket.

    Only the user who runs this needs access to the file and the key. Ctrl-C stops it.
    """
    run_server(
        file,
        key_file,
        ListenAddress(host, port, socket, socket_mode, token_file),
        ladder=ladder,
        promote=promote,
        limit=limit,
        as_json=as_json,
    )


class ListenAddress(NamedTuple):
    """Where a server listens, and the file with the token that it requires."""

    host: str | None
    port: int | None
    socket: Path | None
    socket_mode: int
    token_file: Path | None


def run_server(
    file: str,
    key_file: Path | None,
    address: ListenAddress,
    *,
    ladder: str,
    limit: int,
    as_json: bool,
    promote: bool = False,
    grade: bool = False,
) -> None:
    """Serve a guard or a gate until it is stopped; with ``grade``, as a grading server."""
    from ladderboard.holdout import Gate, open_file  # noqa: PLC0415 - keeps --help fast

    try:
        from ladderboard.server import (  # noqa: PLC0415 - an extra
            check_private_files,
            listen_on_loopback,
            listen_on_unix_socket,
            read_or_create_token,
            serve_guard,
        )
    except ImportError as error:
        raise MissingDependency(
            f"guard serve needs {error.name}: pip install 'ladderboard[guard]'."
        ) from None
    host, port, socket, socket_mode, token_file = address
    if socket is not None and (host is not None or port is not None):
        raise InvalidSetting("Give --socket, or --host and --port; not both.")
    require_guard_file(file)
    check_private_files(file, key_file, token_file)
    gc.set_threshold(700, 10, 10)  # undo main()'s setting, which is for short runs
    with closing(open_file(file, key_file=key_file)) as holdout:
        is_gate = isinstance(holdout, Gate)
        if is_gate and ladder:
            raise InvalidSetting("A gate has no ladders; leave out --ladder.")
        if promote and not is_gate:
            raise InvalidSetting("A guard has no incumbent; leave out --promote.")
        if not isinstance(holdout, Gate) and ladder:
            holdout.ladder(ladder).check_ladder()
        if grade and isinstance(holdout, Gate) and not holdout.status().incumbent:
            raise InvalidSetting(
                "This gate has no incumbent that submissions could be compared with. Promote one: "
                f"ladderboard gate promote {file} PREDICTIONS.csv"
            )
        if grade and holdout.takes == "scores":
            raise InvalidSetting(
                "This file takes scores, so an agent that submits them would grade itself. Let the "
                "verifier submit them: ladderboard grade reward FILE --junit RESULTS.xml"
            )
        token = None if token_file is None else read_or_create_token(token_file)
        if socket is not None:
            listener = listen_on_unix_socket(socket, socket_mode)
        else:
            default = _GRADE_PORT if grade else _PORT
            listener = listen_on_loopback(host or "127.0.0.1", default if port is None else port)
        _log_to_stderr()
        budget, remaining = holdout.budget, holdout.remaining
        unit = "looks" if is_gate else "questions"
        if as_json:
            echo_json({"url": listener.url, unit: budget, "remaining": remaining})
        else:
            left = f"{remaining:,} of {budget:,} {unit} left"
            usage = (
                _describe_grading(listener.url)
                if grade
                else _describe_asking(listener.url, gate=is_gate)
            )
            echo(*_format_welcome(file, left, listener.url, token_file, usage, gate=is_gate))
        serve_guard(
            holdout,
            listener,
            token=token,
            max_bytes=limit * _MIB,
            ladder=ladder,
            promote=promote,
            grade=grade,
        )


def _log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = logging.getLogger("ladderboard.guard")
    log.handlers[:] = [handler]
    log.setLevel(logging.INFO)
    log.propagate = False
    # Otherwise any client could fill the log with asyncio's tracebacks.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)


def _describe_asking(url: str, *, gate: bool) -> list[str]:
    name, group, verb = ("Gate", "gate", "check") if gate else ("Holdout", "guard", "ask")
    return [
        "To ask, in Python:",
        "",
        "    import ladderboard as lb",
        f'    {group} = lb.{name}.connect("{url}")',
        f"    print({group}.{verb}(predictions))",
        "",
        f"or in a shell: ladderboard {group} {verb} {url} predictions.csv",
    ]


def _describe_grading(url: str) -> list[str]:
    address = f"{url}/validate"
    if url.startswith("unix:"):
        address = f"--unix-socket {url.removeprefix('unix:')} http://localhost/validate"
    return [
        "To submit:",
        "",
        f"    curl -F file=@submission.csv {address}",
        "",
        'Each new file costs a look or a question; "?format_only=true" checks the format for free.',
    ]


def _format_welcome(
    file: str, left: str, url: str, token_file: Path | None, usage: list[str], *, gate: bool
) -> list[str]:
    lines = [
        f"{'Serving' if gate else 'Guarding'} {file}: {left}.",
        f"Listening at {url}; Ctrl-C stops. {usage[0]}",
        *usage[1:],
    ]
    if token_file is not None:
        lines.append(f"Clients need the token in {token_file}, as LADDERBOARD_TOKEN.")
    elif url.startswith("http"):
        lines.append("Every user of this machine can ask; --token-file or --socket restricts that.")
    lines.append("Run this as a separate user: clients must not be able to read the guard's file.")
    return lines
