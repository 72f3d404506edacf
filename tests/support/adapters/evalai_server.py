"""A stand-in for EvalAI's API of remote evaluation, on loopback.

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

from support.credentials import random_secret

TOKEN = random_secret()
SIGNED = "X-Amz-Signature=9b1f"
CHALLENGE, PHASE, QUEUE, SPLIT = 12, 34, "flowers-12-production-abc", "test_split"
FINAL_STATUSES = {"finished", "failed", "cancelled", "partially_evaluated"}


class Crash(BaseException):
    """Simulates the end of a worker's process."""


@dataclass
class EvalAiState:
    """EvalAI's submissions, files, queue and leaderboard; ``faults`` maps requests to failures."""

    labels: tuple[str, ...] = ("released", "improved", "remaining")
    submissions: dict[int, dict[str, Any]] = field(default_factory=dict)
    files: dict[int, bytes] = field(default_factory=dict)
    waiting: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    hidden: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    leaderboard: list[dict[str, Any]] = field(default_factory=list)
    requests: list[tuple[str, str, str | None, dict[str, str]]] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)
    url: str = ""

    def submit(self, team: int, data: bytes, suffix: str = ".csv", **fields: Any) -> int:
        """Add a submission as EvalAI's page does, with its message on the queue; return its id."""
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
            **fields,
        }
        body = {"challenge_pk": CHALLENGE, "phase_pk": PHASE, "submission_pk": number}
        self.waiting.append((f"handle-{number}", body))
        return number

    def redeliver(self) -> None:
        """Put received messages that were not deleted back on the queue."""
        self.waiting, self.hidden = self.hidden + self.waiting, []

    def receive(self) -> dict[str, Any]:
        """Return the next message of the queue, and hide it."""
        if not self.waiting:
            return {"body": None, "receipt_handle": None}
        message = self.waiting.pop(0)
        self.hidden.append(message)
        return {"body": message[1], "receipt_handle": message[0]}

    def delete(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Delete a received message."""
        self.hidden = [item for item in self.hidden if item[0] != form["receipt_handle"]]
        return 200, {"success": f"Message deleted successfully from the queue: {QUEUE}"}

    def update(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """PUT: the result of an evaluation."""
        submission = self.submissions[int(form["submission"])]
        status = form["submission_status"].lower()
        if status not in FINAL_STATUSES:
            return 400, {"error": "Sorry, submission status is invalid"}
        rows = []
        if status == "finished":
            try:
                results = json.loads(form.get("result", ""))
            except ValueError:
                return 400, {"error": "`result` key contains invalid data"}
            for result in results:
                if int(form["challenge_phase"]) != PHASE or result["split"] != SPLIT:
                    return 400, {"error": "Challenge Phase Split does not exist"}
                if not set(result["accuracies"]) <= set(self.labels):
                    return 400, {"error": "Following metrics are missing in the leaderboard data"}
                if not all(isinstance(v, int | float) for v in result["accuracies"].values()):
                    return 400, {"error": "Values for following metrics are not of float/int"}
                rows.append({"submission": submission["id"], **result})
        self.leaderboard += rows
        submission |= {"status": status, "stdout": form["stdout"], "stderr": form["stderr"]}
        return 200, {"success": "Submission result has been successfully updated"}

    def start(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """PATCH: the start of an evaluation."""
        submission = self.submissions[int(form["submission"])]
        if form["submission_status"].lower() != "running":
            return 400, {"error": "Sorry, submission status is invalid"}
        submission["status"] = "running"
        submission["job_name"] = [*submission["job_name"], form["job_name"].lower()]
        return 200, submission


class _LogHandler(BaseHTTPRequestHandler):
    state: EvalAiState
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def handle_request(self) -> None:
        """Answer a request, or fail as the next fault demands."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        path = urlsplit(self.path).path
        token = self.headers.get("Authorization")
        fields = parse_qs(body, keep_blank_values=True)
        form = {name: values[0] for name, values in fields.items()}
        state = self.state
        state.requests.append((self.command, self.path, token, form))
        kinds = ("media", "queue", "update_submission", "submission")
        kind = next((name for name in kinds if name in path), "")
        fault = state.faults.pop(f"{self.command} {kind}", None)
        if fault == "dropped":  # the request was lost
            self.close_connection = True
            return
        if fault == "deep":  # too deep for any parser
            self.reply(200, b"[" * 100_000)
            return
        if fault == "moved":
            self.reply(302, b"{}", Location=f"{state.url}/elsewhere")
            return
        if path.startswith("/media/"):
            data = state.files[int(path.split("/")[3])]
            if fault == "cut":
                self.reply(200, data[: len(data) // 2], Content_Length=str(len(data)))
                self.close_connection = True
            else:
                self.reply(404 if fault == "gone" else 200, data)
            return
        status, content = self.api(path, token, form)
        if fault == "lost":  # the reply was lost
            self.close_connection = True
            return
        self.reply(status, json.dumps(content).encode())

    do_GET = do_POST = do_PUT = do_PATCH = handle_request  # noqa: N815 - http.server's names

    def api(self, path: str, token: str | None, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Return status and content of an API call."""
        state = self.state
        if token != f"Bearer {TOKEN}":
            return 401, {"detail": "Invalid token"}
        route = path.removeprefix("/api/jobs/")
        if route.startswith("submission/"):
            return 200, state.submissions[int(route.removeprefix("submission/"))]
        update = f"challenge/{CHALLENGE}/update_submission/"
        handlers = {
            ("GET", f"challenge/queues/{QUEUE}/"): lambda: (200, state.receive()),
            ("POST", f"queues/{QUEUE}/"): lambda: state.delete(form),
            ("PUT", update): lambda: state.update(form),
            ("PATCH", update): lambda: state.start(form),
        }
        return handlers.get((self.command, route), lambda: (404, {"error": "Not found"}))()

    def reply(self, status: int, data: bytes, **headers: str) -> None:
        self.send_response(status)
        fields = {"Content_Length": str(len(data)), "Content_Type": "application/json"} | headers
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)


class EvalAiServer(EvalAiState):
    """EvalAI's API, served while the context is open."""

    def __enter__(self) -> Self:
        handler = type("Handler", (_LogHandler,), {"state": self})
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
