"""EvalAI: a remote-evaluation worker that scores through a guard or a board.

EvalAI runs the challenge, its teams and its page. The worker takes submissions from the challenge's
queue, asks about each, and sends back the release and nothing else.
"""

from ladderboard.adapters.evalai._worker import (
    AskFunction,
    ChallengePhase,
    QueuedSubmission,
    SubmissionOutcome,
    Worker,
    ask_guard,
    submit_to_board,
)

__all__ = [
    "AskFunction",
    "ChallengePhase",
    "QueuedSubmission",
    "SubmissionOutcome",
    "Worker",
    "ask_guard",
    "submit_to_board",
]
