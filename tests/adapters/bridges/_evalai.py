"""An EvalAI on loopback: what its API of remote evaluation takes, checks and says.

The paths, fields, checks and statuses are those of EvalAI's ``jobs`` application; its queue, like
SQS, hides a message that was received until it comes again.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

TOKEN = "host-token-5c1d"  # noqa: S105 - a made-up one
SIGNED = "X-Amz-Signature=9b1f"
CHALLENGE, PHASE, QUEUE, SPLIT = 12, 34, "flowers-12-production-abc", "test_split"
ENDED = {"finished", "failed", "cancelled", "partially_evaluated"}


@dataclass
class State:
    """What EvalAI knows."""

    labels: tuple[str, ...] = ("released", "improved", "remaining")
    submissions: dict[int, dict[str, Any]] = field(default_factory=dict)
    files: dict[int, bytes] = field(default_factory=dict)
    waiting: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    hidden: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    leaderboard: list[dict[str, Any]] = field(default_factory=list)
    requests: list[tuple[str, str, str | None, dict[str, str]]] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)
    url: str = ""

    def submit(self, team: int, data: bytes, suffix: str = ".csv", **more: Any) -> int:
        """Take a submission as EvalAI's page does, and put its message on the queue."""
        number = 100 + len(self.submissions)
        self.files[number] = data
        self.submissions[number] = {
            "id": number,
            "participant_team": team,
            "participant_team_name": f"Team {team}",
            "execution_time": "None",
            "challenge_phase": PHASE,
            "created_by": 7,
            "status": "submitted",
            "input_file": f"{self.url}/media/submission_files/{number}/f00d{suffix}?{SIGNED}",
            "submission_input_file": None,
            "stdout_file": None,
            "stderr_file": None,
            "started_at": None,
            "completed_at": None,
            "submitted_at": "2026-11-16T10:00:00.000000Z",
            "method_name": "",
            "is_public": True,
            "is_flagged": False,
            "submission_result_file": None,
            "is_baseline": False,
            "job_name": [],
            **more,
        }
        body = {"challenge_pk": CHALLENGE, "phase_pk": PHASE, "submission_pk": number}
        self.waiting.append((f"handle-{number}", body))
        return number

    def come_again(self) -> None:
        """Let the queue show again what was received and not deleted."""
        self.waiting, self.hidden = self.hidden + self.waiting, []

    def receive(self) -> dict[str, Any]:
        if not self.waiting:
            return {"body": None, "receipt_handle": None}
        message = self.waiting.pop(0)
        self.hidden.append(message)
        return {"body": message[1], "receipt_handle": message[0]}

    def delete(self, told: dict[str, str]) -> tuple[int, dict[str, Any]]:
        self.hidden = [each for each in self.hidden if each[0] != told["receipt_handle"]]
        return 200, {"success": f"Message deleted successfully from the queue: {QUEUE}"}

    def update(self, told: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """PUT: the end of an evaluation."""
        submission = self.submissions[int(told["submission"])]
        status = told["submission_status"].lower()
        if status not in ENDED:
            return 400, {"error": "Sorry, submission status is invalid"}
        rows = []
        if status == "finished":
            try:
                results = json.loads(told.get("result", ""))
            except ValueError:
                return 400, {"error": "`result` key contains invalid data"}
            for each in results:
                if int(told["challenge_phase"]) != PHASE or each["split"] != SPLIT:
                    return 400, {"error": "Challenge Phase Split does not exist"}
                if not set(each["accuracies"]) <= set(self.labels):
                    return 400, {"error": "Following metrics are missing in the leaderboard data"}
                if not all(isinstance(v, int | float) for v in each["accuracies"].values()):
                    return 400, {"error": "Values for following metrics are not of float/int"}
                rows.append({"submission": submission["id"], **each})
        self.leaderboard += rows
        submission |= {"status": status, "stdout": told["stdout"], "stderr": told["stderr"]}
        return 200, {"success": "Submission result has been successfully updated"}

    def take_up(self, told: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """PATCH: the begin of an evaluation."""
        submission = self.submissions[int(told["submission"])]
        if told["submission_status"].lower() != "running":
            return 400, {"error": "Sorry, submission status is invalid"}
        submission["status"] = "running"
        submission["job_name"] = [*submission["job_name"], told["job_name"].lower()]
        return 200, submission


class _Handler(BaseHTTPRequestHandler):
    state: State
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def handle_one(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        path = urlsplit(self.path).path
        token = self.headers.get("Authorization")
        told = {name: each[0] for name, each in parse_qs(body, keep_blank_values=True).items()}
        state = self.state
        state.requests.append((self.command, self.path, token, told))
        kinds = ("media", "queue", "update_submission", "submission")
        kind = next((each for each in kinds if each in path), "")
        fault = state.faults.pop(f"{self.command} {kind}", None)
        if fault == "dropped":  # it never arrived
            self.close_connection = True
            return
        if fault == "deep":  # it can be parsed by nobody
            self.say(200, b"[" * 100_000)
            return
        if fault == "moved":
            self.say(302, b"{}", Location=f"{state.url}/elsewhere")
            return
        if path.startswith("/media/"):
            data = state.files[int(path.split("/")[3])]
            if fault == "cut":
                self.say(200, data[: len(data) // 2], Content_Length=str(len(data)))
                self.close_connection = True
            else:
                self.say(404 if fault == "gone" else 200, data)
            return
        status, said = self.api(path, token, told)
        if fault == "lost":  # it was done, and nobody heard
            self.close_connection = True
            return
        self.say(status, json.dumps(said).encode())

    do_GET = do_POST = do_PUT = do_PATCH = handle_one  # noqa: N815 - http.server's names

    def api(self, path: str, token: str | None, told: dict[str, str]) -> tuple[int, dict[str, Any]]:
        state = self.state
        if token != f"Bearer {TOKEN}":
            return 401, {"detail": "Invalid token"}
        at = path.removeprefix("/api/jobs/")
        if at.startswith("submission/"):
            return 200, state.submissions[int(at.removeprefix("submission/"))]
        update = f"challenge/{CHALLENGE}/update_submission/"
        doors = {
            ("GET", f"challenge/queues/{QUEUE}/"): lambda: (200, state.receive()),
            ("POST", f"queues/{QUEUE}/"): lambda: state.delete(told),
            ("PUT", update): lambda: state.update(told),
            ("PATCH", update): lambda: state.take_up(told),
        }
        return doors.get((self.command, at), lambda: (404, {"error": "Not found"}))()

    def say(self, status: int, data: bytes, **headers: str) -> None:
        self.send_response(status)
        named = {"Content_Length": str(len(data)), "Content_Type": "application/json"} | headers
        for name, value in named.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)


class EvalAI(State):
    """A running one."""

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"state": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = False
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
