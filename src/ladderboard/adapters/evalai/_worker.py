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
_MOST_BYTES = 2**28
# EvalAI's words for what needs nobody any more.
_FINAL_STATUSES = {"finished", "failed", "cancelled", "archived"}
_OTHER_PHASE = "another phase's"
_UNREACHABLE = (GuardUnreachable, ServerUnreachable)


class QueuedSubmission(NamedTuple):
    """One submission, by EvalAI's numbers; ``team`` is the participant team's."""

    submission: int
    challenge: int
    phase: int
    team: int


AskFunction = Callable[[QueuedSubmission, Path], "Reply"]
"""What answers a submission and its file. Asked about the same twice it must answer once."""


class _LadderGuard(Protocol):
    @property
    def takes(self) -> str: ...

    @property
    def ladders(self) -> int: ...

    def ask(self, predictions: Any, /, *, ladder: str) -> Reply: ...


def on_ladders(guard: _LadderGuard, teams: int = 2) -> AskFunction:
    """Ask a guard, each participant team on a ladder of its own, ``evalai-team-5``.

    What EvalAI's leaderboard then shows of a team is that team's own best. The budget is one over
    all teams. ``teams`` is how many there may be: a guard with fewer ladders is refused at once. A
    guard of scores is refused too: teams would score themselves.
    """
    check_ladders(guard.ladders, _settings.integer("teams", teams, at_least=1))

    def ask(handed: QueuedSubmission, file: Path) -> Reply:
        check_takes_predictions(guard.takes)
        return guard.ask(file, ladder=f"evalai-team-{handed.team}")

    return ask


def on_board(client: Client, board: str, teams: Mapping[int, str]) -> AskFunction:
    """Ask a board with an evaluator's token, in the name of its teams.

    ``teams`` tells which team of the board, by its id, a participant team is. The board's own
    limits hold. A board with one ladder for all, and one that is hidden or frozen, is refused:
    their releases are not for a leaderboard with a row for each team that everybody sees. So is one
    of scores: teams would score themselves.
    """

    def ask(handed: QueuedSubmission, file: Path) -> Reply:
        team = teams.get(handed.team)
        if team is None:
            raise NotOpen(
                f"Participant team {handed.team} is no team of the board yet. Its organiser adds "
                "it, and runs this submission again."
            )
        check_bridge_board(client.board(board))
        # No key of ours: the same predictions are answered once, and anew after a correction.
        return client.submit(board, file, team=team, message=f"EvalAI {handed.submission}")

    return ask


@dataclass(frozen=True)
class Phase:
    """A challenge phase: the codename of its dataset split, and what answers its submissions."""

    split: str
    ask: AskFunction


@dataclass(frozen=True)
class SubmissionOutcome:
    """What became of one message.

    ``status`` is ``"finished"`` or ``"failed"``, as EvalAI now has it; ``"skipped"`` for what was
    over before; or ``"left"``, for another worker or for the organiser: it was not dealt with, and
    comes again. ``message`` is what participants were told, or why it was left.
    """

    submission: int | None
    team: int | None
    status: Literal["finished", "failed", "skipped", "left"]
    message: str
    release: PublishedRelease | None = None

    def describe(self) -> dict[str, Any]:
        """Return a row for a table."""
        numbers = {} if self.release is None else self.release.numbers()
        told = {name: numbers.get(name) for name in RELEASE_FIELDS}
        return {"submission": self.submission, "team": self.team, "status": self.status, **told}


class Worker:
    """Takes submissions off a challenge's queue, one at a time.

    After a crash, and where EvalAI or the guard cannot be reached, a message comes again, and
    asking again is free. Of a file that cannot be scored EvalAI is told that it failed, with what
    is wrong item by item.

    Parameters
    ----------
    phases
        By the phase's number on EvalAI. Messages of other phases are left to others.
    challenge, queue
        The challenge's number and its queue's name, from its Manage tab.
    token
        A challenge host's, from the profile. It is sent to ``server`` only.
    server
        The address of EvalAI.
    name
        This worker's, in small letters. A second worker on the same queue needs another; one that
        crashed goes on with its own.
    labels
        Which numbers are sent, and under which label of EvalAI's leaderboard.
    most_bytes
        How large a file may be.
    """

    def __init__(
        self,
        phases: Mapping[int, Phase],
        *,
        challenge: int,
        queue: str,
        token: str,
        server: str = "https://eval.ai",
        name: str = "ladderboard",
        labels: Mapping[str, str] | None = None,
        most_bytes: int = _MOST_BYTES,
    ) -> None:
        self.challenge = _settings.integer("challenge", challenge, at_least=1)
        self.phases = dict(phases)
        if not self.phases:
            raise InvalidSetting("A worker needs a phase: phases={7: Phase(split, ask)}.")
        self.labels = (
            {release_field: release_field for release_field in RELEASE_FIELDS}
            if labels is None
            else dict(labels)
        )
        for label in self.labels:
            _settings.choice("labels", label, RELEASE_FIELDS)
        if not isinstance(name, str) or not name or name != name.lower():
            raise InvalidSetting(
                f"A worker's name is a word in small letters; got {_settings.safe_repr(name)}."
            )
        self.name = name
        self.most_bytes = _settings.integer("most_bytes", most_bytes, at_least=1)
        self._api = EvalAiApi(server, token, self.challenge, queue)

    def __repr__(self) -> str:
        return f"Worker({self._api.server!r}, challenge={self.challenge}, name={self.name!r})"

    def run(self, *, every: float = 60.0, stop: Event | None = None) -> None:
        """Work until ``stop`` is set, looking at an empty queue ``every`` so many seconds."""
        every = _settings.number("every", every, above=0)
        stop = Event() if stop is None else stop
        while not stop.is_set():
            try:
                self.drain(stop)
            except ServerUnreachable as error:
                _LOG.warning("%s", error)
            stop.wait(every)

    def drain(self, stop: Event | None = None) -> list[SubmissionOutcome]:
        """Work until the queue is empty, or what it needs does not answer; say what was done.

        What is left or skipped is passed over once: when such a message comes again, all have come.
        """
        done: list[SubmissionOutcome] = []
        passed: list[dict[str, Any]] = []
        while stop is None or not stop.is_set():
            found = self._api.receive()
            if found is None or found[0] in passed:
                break
            one, away = self._deal(*found)
            done.append(one)
            if away:
                break
            if one.status in {"left", "skipped"}:
                passed.append(found[0])
        return done

    def step(self) -> SubmissionOutcome | None:
        """Deal with the next message; return None if there is none."""
        found = self._api.receive()
        return None if found is None else self._deal(*found)[0]

    def _deal(self, body: dict[str, Any], handle: str) -> tuple[SubmissionOutcome, bool]:
        """Deal with a message; say also whether what it needs is away, and others need not try."""
        number, team, away = None, None, False
        try:
            number = int(body["submission_pk"])
            phase = int(body["phase_pk"])
            if int(body["challenge_pk"]) != self.challenge or phase not in self.phases:
                done = SubmissionOutcome(number, None, "left", _OTHER_PHASE)
            else:
                about = self._api.submission(number)
                team = int(about["participant_team"])
                done = self._take(
                    QueuedSubmission(number, self.challenge, phase, team), about, handle
                )
        except LadderboardError as error:
            away = isinstance(error, _UNREACHABLE) and not isinstance(error, RequestFailed)
            done = SubmissionOutcome(number, team, "left", f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001 - one bad message must not keep out all others
            done = SubmissionOutcome(number, team, "left", type(error).__name__)
        # Never what was released, nor what a file holds: a log has other readers.
        _LOG.log(
            logging.WARNING
            if done.status == "left" and done.message != _OTHER_PHASE
            else logging.INFO,
            "submission %s of team %s: %s%s",
            done.submission,
            done.team,
            done.status,
            f" ({done.message})" if done.status in {"left", "skipped"} else "",
        )
        return done, away

    def _take(
        self, handed: QueuedSubmission, about: dict[str, Any], handle: str
    ) -> SubmissionOutcome:
        status = str(about["status"]).lower()
        if status in _FINAL_STATUSES:
            self._api.delete(handle)
            return SubmissionOutcome(handed.submission, handed.team, "skipped", f"it was {status}")
        if status != "running":
            self._api.running(handed.submission, self.name)
        elif (about.get("job_name") or [self.name])[-1] != self.name:
            return SubmissionOutcome(handed.submission, handed.team, "left", "another worker's")
        done = self._answer(handed, about)
        self._api.delete(handle)
        return done

    def _answer(self, handed: QueuedSubmission, about: dict[str, Any]) -> SubmissionOutcome:
        line, phase = self._api, self.phases[handed.phase]
        try:
            with TemporaryDirectory(prefix="ladderboard-") as folder:
                file = line.download(about.get("input_file"), Path(folder), self.most_bytes)
                reply = phase.ask(handed, file)
        except LadderboardError as error:
            said = participant_message(error)
            if said is None:
                raise
            line.failed(handed.phase, handed.submission, said)
            return SubmissionOutcome(handed.submission, handed.team, "failed", said)
        told = PublishedRelease.from_reply(reply)
        line.finished(handed.phase, handed.submission, self._result(phase, told), str(told))
        return SubmissionOutcome(handed.submission, handed.team, "finished", str(told), told)

    def _result(self, phase: Phase, told: PublishedRelease) -> list[dict[str, Any]]:
        """Return what EvalAI's leaderboard gets: nothing, while the value is not told yet."""
        if told.released is None:
            return []
        numbers = told.numbers()
        shown = {label: numbers[name] for name, label in self.labels.items()}
        return [{"split": phase.split, "show_to_participant": True, "accuracies": shown}]
