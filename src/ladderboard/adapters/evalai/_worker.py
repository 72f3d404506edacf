"""A worker that takes submissions from EvalAI's queue and asks a guard or a board about them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from ladderboard import _settings
from ladderboard.adapters._release import (
    RELEASE_FIELDS,
    PublishedRelease,
    check_bridge_board,
    check_ladders,
    check_takes_predictions,
    participant_message,
)
from ladderboard.adapters.evalai._api import EvalAiApi, RequestFailed
from ladderboard.errors import (
    GuardUnreachable,
    InvalidSetting,
    LadderboardError,
    NotOpen,
    ServerUnreachable,
)

if TYPE_CHECKING:
    from ladderboard.client import Client
    from ladderboard.holdout import Reply

_LOG = logging.getLogger("ladderboard.evalai")
_MAX_BYTES = 2**28
# EvalAI's names of final states.
_FINAL_STATUSES = {"finished", "failed", "cancelled", "archived"}
_OTHER_PHASE = "another phase's"
_UNREACHABLE = (GuardUnreachable, ServerUnreachable)


class QueuedSubmission(NamedTuple):
    """A submission by EvalAI's ids; ``team`` is the participant team's."""

    submission: int
    challenge: int
    phase: int
    team: int


AskFunction = Callable[[QueuedSubmission, Path], "Reply"]
"""Answers a submission and its file; the same submission again must spend nothing."""


class _LadderGuard(Protocol):
    @property
    def takes(self) -> str: ...

    @property
    def ladders(self) -> int: ...

    def ask(self, predictions: Any, /, *, ladder: str) -> Reply: ...


def ask_guard(guard: _LadderGuard, teams: int = 2) -> AskFunction:
    """Ask a guard, with a ladder for each participant team, such as ``evalai-team-5``.

    EvalAI's leaderboard then shows each team's own best. All teams share one budget. ``teams`` is
    the largest number of teams: a guard with fewer ladders is refused at once. A guard of scores is
    refused too: teams would score themselves.
    """
    check_ladders(guard.ladders, _settings.integer("teams", teams, at_least=1))

    def ask(submission: QueuedSubmission, file: Path) -> Reply:
        check_takes_predictions(guard.takes)
        return guard.ask(file, ladder=f"evalai-team-{submission.team}")

    return ask


def submit_to_board(client: Client, board: str, teams: Mapping[int, str]) -> AskFunction:
    """Submit to a board for its teams, with an evaluator's token.

    ``teams`` maps a participant team's number to a team id of the board. The board's own limits
    hold. A board with one ladder for all, or one that is hidden or frozen, is refused: its releases
    must not appear team by team on a public leaderboard. A board of scores is refused too: teams
    would score themselves.
    """

    def ask(submission: QueuedSubmission, file: Path) -> Reply:
        team = teams.get(submission.team)
        if team is None:
            raise NotOpen(
                f"Participant team {submission.team} is not a team of the board yet. Its "
                "organiser must add it and run this submission again."
            )
        check_bridge_board(client.board(board))
        # No fixed idempotency key: the board recognises equal predictions by itself, and answers
        # anew after a correction of labels.
        return client.submit(board, file, team=team, message=f"EvalAI {submission.submission}")

    return ask


@dataclass(frozen=True)
class ChallengePhase:
    """A challenge phase: its dataset split's codename, and the function that answers."""

    split: str
    ask: AskFunction


@dataclass(frozen=True)
class SubmissionOutcome:
    """The outcome of one message.

    ``status`` is ``"finished"`` or ``"failed"``, as reported to EvalAI; ``"skipped"`` if the
    submission was final before; or ``"left"`` for another worker or the organiser: the message
    stays in the queue and comes again. ``message`` is the participants' message, or the reason.
    """

    submission: int | None
    team: int | None
    status: Literal["finished", "failed", "skipped", "left"]
    message: str
    release: PublishedRelease | None = None

    def describe(self) -> dict[str, Any]:
        """Return a row for a table."""
        numbers = {} if self.release is None else self.release.numbers()
        release = {name: numbers.get(name) for name in RELEASE_FIELDS}
        return {"submission": self.submission, "team": self.team, "status": self.status, **release}


class Worker:
    """Scores submissions from a challenge's queue, one at a time.

    After a crash, or if EvalAI or the guard is unreachable, the message comes again, and asking
    again costs nothing. A file that cannot be scored is reported as failed, with a list of its
    problems.

    Parameters
    ----------
    phases
        By the phase's number on EvalAI. Messages of other phases stay in the queue.
    challenge, queue
        The challenge's number and its queue's name, from its Manage tab.
    token
        A challenge host's token, from the profile page. It is sent to ``server`` only.
    server
        The address of EvalAI.
    name
        This worker's name, in lower case. A second worker on the same queue needs another name; a
        restarted worker keeps its own.
    labels
        From a number's name to its label on EvalAI's leaderboard; only these are sent.
    max_bytes
        The largest file that is accepted.
    """

    def __init__(
        self,
        phases: Mapping[int, ChallengePhase],
        *,
        challenge: int,
        queue: str,
        token: str,
        server: str = "https://eval.ai",
        name: str = "ladderboard",
        labels: Mapping[str, str] | None = None,
        max_bytes: int = _MAX_BYTES,
    ) -> None:
        self.challenge = _settings.integer("challenge", challenge, at_least=1)
        self.phases = dict(phases)
        if not self.phases:
            raise InvalidSetting("A worker needs a phase: phases={7: ChallengePhase(split, ask)}.")
        self.labels = (
            {release_field: release_field for release_field in RELEASE_FIELDS}
            if labels is None
            else dict(labels)
        )
        for label in self.labels:
            _settings.choice("labels", label, RELEASE_FIELDS)
        if not isinstance(name, str) or not name or name != name.lower():
            raise InvalidSetting(
                f"A worker's name must be in lower case; got {_settings.safe_repr(name)}."
            )
        self.name = name
        self.max_bytes = _settings.integer("max_bytes", max_bytes, at_least=1)
        self._api = EvalAiApi(server, token, self.challenge, queue)

    def __repr__(self) -> str:
        return f"Worker({self._api.server!r}, challenge={self.challenge}, name={self.name!r})"

    def run(self, *, every: float = 60.0, stop: Event | None = None) -> None:
        """Work until ``stop`` is set; poll an empty queue every ``every`` seconds."""
        every = _settings.number("every", every, above=0)
        stop = Event() if stop is None else stop
        while not stop.is_set():
            try:
                self.drain(stop)
            except ServerUnreachable as error:
                _LOG.warning("%s", error)
            stop.wait(every)

    def drain(self, stop: Event | None = None) -> list[SubmissionOutcome]:
        """Work until the queue is empty or a server is unreachable; return the outcomes.

        Messages that are left or skipped stay in the queue: when one comes again, all have come.
        """
        outcomes: list[SubmissionOutcome] = []
        passed: list[dict[str, Any]] = []
        while stop is None or not stop.is_set():
            message = self._api.receive()
            if message is None or message[0] in passed:
                break
            outcome, unreachable = self._process(*message)
            outcomes.append(outcome)
            if unreachable:
                break
            if outcome.status in {"left", "skipped"}:
                passed.append(message[0])
        return outcomes

    def step(self) -> SubmissionOutcome | None:
        """Process the next message; return None if the queue is empty."""
        message = self._api.receive()
        return None if message is None else self._process(*message)[0]

    def _process(self, body: dict[str, Any], handle: str) -> tuple[SubmissionOutcome, bool]:
        """Process a message; return also whether a server is unreachable for all messages."""
        number, team, unreachable = None, None, False
        try:
            number = int(body["submission_pk"])
            phase = int(body["phase_pk"])
            if int(body["challenge_pk"]) != self.challenge or phase not in self.phases:
                outcome = SubmissionOutcome(number, None, "left", _OTHER_PHASE)
            else:
                info = self._api.submission(number)
                team = int(info["participant_team"])
                outcome = self._evaluate_once(
                    QueuedSubmission(number, self.challenge, phase, team), info, handle
                )
        except LadderboardError as error:
            unreachable = isinstance(error, _UNREACHABLE) and not isinstance(error, RequestFailed)
            outcome = SubmissionOutcome(number, team, "left", f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001 - one bad message must not block the others
            outcome = SubmissionOutcome(number, team, "left", type(error).__name__)
        # Neither releases nor file contents: logs have other readers.
        _LOG.log(
            logging.WARNING
            if outcome.status == "left" and outcome.message != _OTHER_PHASE
            else logging.INFO,
            "submission %s of team %s: %s%s",
            outcome.submission,
            outcome.team,
            outcome.status,
            f" ({outcome.message})" if outcome.status in {"left", "skipped"} else "",
        )
        return outcome, unreachable

    def _evaluate_once(
        self, submission: QueuedSubmission, info: dict[str, Any], handle: str
    ) -> SubmissionOutcome:
        status = str(info["status"]).lower()
        if status in _FINAL_STATUSES:
            self._api.delete(handle)
            return SubmissionOutcome(
                submission.submission, submission.team, "skipped", f"it was {status}"
            )
        if status != "running":
            self._api.report_running(submission.submission, self.name)
        elif (info.get("job_name") or [self.name])[-1] != self.name:
            return SubmissionOutcome(
                submission.submission, submission.team, "left", "another worker's"
            )
        outcome = self._evaluate(submission, info)
        self._api.delete(handle)
        return outcome

    def _evaluate(self, submission: QueuedSubmission, info: dict[str, Any]) -> SubmissionOutcome:
        api, phase = self._api, self.phases[submission.phase]
        try:
            with TemporaryDirectory(prefix="ladderboard-") as folder:
                file = api.download(info.get("input_file"), Path(folder), self.max_bytes)
                reply = phase.ask(submission, file)
        except LadderboardError as error:
            message = participant_message(error)
            if message is None:
                raise
            api.report_failed(submission.phase, submission.submission, message)
            return SubmissionOutcome(submission.submission, submission.team, "failed", message)
        release = PublishedRelease.from_reply(reply)
        api.report_finished(
            submission.phase, submission.submission, self._result(phase, release), str(release)
        )
        return SubmissionOutcome(
            submission.submission, submission.team, "finished", str(release), release
        )

    def _result(self, phase: ChallengePhase, release: PublishedRelease) -> list[dict[str, Any]]:
        """Return the leaderboard's row; none while the mechanism withholds the value."""
        if release.released is None:
            return []
        numbers = release.numbers()
        shown = {label: numbers[name] for name, label in self.labels.items()}
        return [{"split": phase.split, "show_to_participant": True, "accuracies": shown}]
