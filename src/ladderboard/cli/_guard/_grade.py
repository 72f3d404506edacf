"""``ladderboard grade``: a grading server for agents, and the reward of a finished run."""

import json
import os
import stat
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ladderboard._atomic_file import atomic_write
from ladderboard.cli._app import make_group
from ladderboard.cli._guard._files import File, KeyFile, is_url, require_guard_file
from ladderboard.cli._guard._gate import Requirement, meets
from ladderboard.cli._guard._serve import (
    Host,
    ListenAddress,
    OnlyLadder,
    SizeLimit,
    SocketMode,
    SocketPath,
    TokenFile,
    run_server,
)
from ladderboard.cli._options import AsJson, JunitFile, ResultsFile, read_scores
from ladderboard.cli._output import echo, echo_json
from ladderboard.errors import InvalidPredictions, InvalidSetting, storage_error
from ladderboard.files import NamedBytes, refuse

if TYPE_CHECKING:
    from ladderboard.adapters import Scores
    from ladderboard.holdout import Gate, Holdout, RemoteGate, RemoteHoldout, Reply, Verdict

    AnyHoldout = Gate | Holdout | RemoteGate | RemoteHoldout

_HELP = """Grade the submissions of agents, who cannot read the labels.

Exit codes: 0 done, also for an invalid submission; 2 invalid arguments; 3 no looks or questions are
left, or it is closed; 4 the file is damaged, or storage failed.
"""

app = make_group(
    "grade",
    _HELP,
    {"serve": "_guard._grade:serve", "reward": "_guard._grade:reward"},
    {
        "serve": "Answer POST /validate, as mle-bench's grading server does.",
        "reward": "Write reward.json for a submission, as Harbor expects.",
    },
)

_MAX_BYTES = 2**28
_LOGS = Path("/logs/verifier")  # where Harbor looks
_WRONG_INPUT = {
    "scores": "This file takes pass or fail for each case; give it with --junit or --results.",
    "predictions": "This file takes predictions; give a submission instead of results.",
}
_REWARD, _REWARD_TEXT, _DETAILS = "reward.json", "reward.txt", "reward-details.json"


def serve(
    file: File,
    *,
    key_file: KeyFile = None,
    host: Host = None,
    port: Annotated[
        int | None,
        typer.Option(help="The port to listen on, 5000 if left out; 0 for any free one."),
    ] = None,
    socket: SocketPath = None,
    socket_mode: SocketMode = "660",  # type: ignore[assignment] # typer parses it, too
    token_file: TokenFile = None,
    ladder: OnlyLadder = "",
    limit: SizeLimit = 256,
    as_json: AsJson = False,
) -> None:
    """Answer POST /validate with a submission, on loopback or a Unix socket.

    The answer says whether the submission is valid and, if it is, what the guard releases or the
    gate's verdict. Each new submission costs a question or a look; an invalid one costs nothing.

    Only the user who runs this needs access to the file and the key. Ctrl-C stops it.
    """
    address = ListenAddress(host, port, socket, socket_mode, token_file)
    run_server(file, key_file, address, ladder=ladder, limit=limit, as_json=as_json, grade=True)


def reward(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A gate's or a guard's file; or a served one, as http://127.0.0.1:5000.",
        ),
    ],
    submission: Annotated[
        Path | None, typer.Argument(metavar="SUBMISSION", help="The file that the agent left.")
    ] = None,
    *,
    junit: JunitFile = None,
    results: ResultsFile = None,
    logs: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder in which to write reward.json.")
    ] = _LOGS,
    require: Annotated[
        Requirement,
        typer.Option(help="For a gate: what earns the reward, better or not-worse."),
    ] = Requirement.BETTER,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Write reward.json: 1 for a gate's required verdict or a guard's new best, else 0.

    Give the submission, or results that the verifier itself measured: pass or fail of each case.

    A missing or invalid submission has the reward 0. If no looks or questions are left, or the file
    cannot be used, there is no reward, and reward.json is removed: the run was not graded.
    """
    if not logs.is_dir():
        raise InvalidSetting(f"There is no folder {logs}; --logs names where reward.json goes.")
    try:
        # The agent may have planted them, and Harbor reads either of the first two.
        for name in (_REWARD, _REWARD_TEXT, _DETAILS):
            with suppress(FileNotFoundError):
                (logs / name).unlink()
        scores = read_scores(None, None, junit=junit, results=results)
        if (submission is None) is (scores is None):
            raise InvalidSetting("Give a submission, or results with --junit or --results.")
        with closing(_open(file, key_file)) as holdout:
            if (holdout.takes == "scores") is (scores is None):
                raise InvalidSetting(_WRONG_INPUT[holdout.takes])
            numbers, details = _grade(holdout, submission, scores, require)
        for name, content in ((_DETAILS, details), (_REWARD, numbers)):
            atomic_write(logs / name, f"{json.dumps(content)}\n".encode(), private=False)
    except OSError as error:
        raise storage_error(error, f"The reward cannot be written to {logs}") from None
    if as_json:
        echo_json({**numbers, **details, "out": str(logs / _REWARD)})
    else:
        echo(details["result"], f"{logs / _REWARD}: {json.dumps(numbers)}")


def _open(file: str, key_file: Path | None) -> "AnyHoldout":
    from ladderboard.holdout import connect_served, open_file  # noqa: PLC0415 - keeps --help fast

    if not is_url(file):
        require_guard_file(file)
        return open_file(file, key_file=key_file)
    if key_file is not None:
        raise InvalidSetting("The server holds the key; leave out --key-file.")
    return connect_served(file)


def _grade(
    holdout: "AnyHoldout", submission: Path | None, scores: "Scores | None", require: Requirement
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the numbers of reward.json, which are all that Harbor takes, and the details."""
    try:
        predictions = _read_regular_file(submission) if scores is None else scores.table
        numbers, answer = _ask(holdout, predictions, require)
    except InvalidPredictions as error:
        errors = [asdict(problem) for problem in error.problems]
        details: dict[str, Any] = {
            "result": f"Submission invalid! {error}",
            "answer": None,
            "errors": errors,
        }
        return {"reward": 0, "valid": 0}, {**details, "valid": False}
    result = f"Submission is valid. {answer.reason}"
    details = {"result": result, "answer": answer.describe(), "errors": []}
    return {**numbers, "valid": 1}, {**details, "valid": True}


def _ask(
    holdout: "AnyHoldout", predictions: Any, require: Requirement
) -> "tuple[dict[str, float], Reply | Verdict]":
    from ladderboard.holdout import Gate, RemoteGate  # noqa: PLC0415 - keeps --help fast

    if isinstance(holdout, Gate | RemoteGate):
        verdict = holdout.check(predictions)
        numbers: dict[str, float] = {
            "reward": int(meets(verdict, require)),
            "better": int(verdict.better),
            "not_worse": int(verdict.not_worse),
        }
        return numbers, verdict
    reply = holdout.ask(predictions)
    numbers = {"reward": int(reply.improved), "improved": int(reply.improved)}
    if reply.released is not None:
        numbers["released"] = reply.released
    return numbers, reply


def _read_regular_file(path: Path | None) -> NamedBytes:
    """Return the bytes of a file; refuse a link, by which an agent could show a file to us."""
    if path is None:
        raise InvalidSetting("Give a submission.")
    data = None
    with suppress(OSError):
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with os.fdopen(os.open(path, flags), "rb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                data = file.read(_MAX_BYTES + 1)
    if data is None:
        message = f"There is no regular file {path}."
        refuse(InvalidPredictions, "not_a_file", message)
    if len(data) > _MAX_BYTES:
        message = f"A submission may have at most {_MAX_BYTES:,} bytes."
        refuse(InvalidPredictions, "too_many_bytes", message)
    return NamedBytes(path.name, data)
