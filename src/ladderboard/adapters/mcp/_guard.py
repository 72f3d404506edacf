"""The tools of a served guard, and of a served gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ladderboard._formatting import format_count
from ladderboard.adapters._release import check_takes_predictions
from ladderboard.adapters.mcp._arguments import predictions_argument, text_argument
from ladderboard.adapters.mcp._tools import (
    GATE_INSTRUCTIONS,
    REPLY_FIELDS,
    REPLY_MEANING,
    Tool,
    ToolResult,
    Toolset,
    field_schema,
    predictions_schema,
    reply_result,
    standing_result,
    summarize_bound,
)
from ladderboard.holdout import OUTCOMES, format_risk

if TYPE_CHECKING:
    from ladderboard.adapters.mcp._arguments import Folder
    from ladderboard.holdout import RemoteGate, RemoteHoldout

_STANDING = Tool(
    name="standing",
    title="Where things stand",
    description="Costs no question. The best so far, which question improved last (the model to "
    "report), its confidence bound, and what predictions must look like: how many rows, of which "
    "kind, for which loss.",
)

_BUDGET = Tool(
    name="budget",
    title="How many questions are left",
    description="Costs no question. How many questions of this guard are allowed, used and left, "
    "by all its users together.",
)


_GATE_STANDING = Tool(
    name="standing",
    title="Where things stand",
    description="Costs no look. Which of your models is the last that was proven better (the "
    "model to report), how often each verdict was given, and how many predictions are needed for "
    "which loss.",
)

_GATE_BUDGET = Tool(
    name="budget",
    title="How many looks are left",
    description="Costs no look. How many looks at this gate are allowed, used and left, by all "
    "its users together.",
)

_VERDICT_FIELDS: dict[str, Any] = {
    "reason": field_schema("string", "The verdict as sentences."),
    "outcome": field_schema(
        "string", "better, not_worse (by more than margin), cannot_tell or worse."
    ),
    "look": field_schema("integer", "The number of the look; 0 if none was used."),
    "remaining": field_schema("integer", "How many looks are left."),
    "differing": field_schema(
        "integer", "On how many examples the model and the incumbent differ.", nullable=True
    ),
    "needed": field_schema(
        "integer",
        "The wins minus losses that better needed; null if no number is enough, or none is known.",
        nullable=True,
    ),
    "margin": field_schema("number", "The margin of not_worse, in units of the loss."),
    "incumbent": field_schema("integer", "The number of the incumbent."),
    "again": field_schema("boolean", "Whether it was checked before, so that nothing was spent."),
}


class GuardToolset(Toolset):
    """The tools ``ask``, ``standing`` and ``budget`` on a guard. Thread-safe.

    Parameters
    ----------
    guard
        The guard, which is served elsewhere.
    ladder
        The ladder to ask on; the agent cannot choose another.
    folder
        The folder from which files of predictions may be read; None allows no files.
    """

    def __init__(
        self, guard: RemoteHoldout, *, ladder: str = "", folder: Folder | None = None
    ) -> None:
        self._guard = guard.ladder(ladder) if ladder else guard
        self._folder = folder
        self._names: dict[int, str] = {}
        self.tools = (_ask_tool(folder), _STANDING, _BUDGET)

    def ask(self, arguments: dict[str, Any]) -> ToolResult:
        """Ask about one model; refuse a guard of scores, as an agent would score itself."""
        check_takes_predictions(self._guard.takes)
        name = text_argument(arguments, "name")
        predictions = predictions_argument(arguments, self._folder)
        reply = self._guard.ask(predictions, training=arguments.get("training"))
        if reply.improved and name:  # a repeated question keeps its first name
            self._names.setdefault(reply.question, name)
        return reply_result(reply)

    def standing(self, _: dict[str, Any]) -> ToolResult:
        """Return the ladder's best so far, the winner and the format of predictions."""
        status, brief = self._guard.status(), self._guard.summary()
        questions = sum(
            ladder.questions for ladder in status.ladders if ladder.name == brief.ladder
        )
        opening, rows = status.opening, status.opening["rules"]["rows"]
        return standing_result(
            f"A question needs {rows:,} predictions",
            [
                {
                    "question": release.question,
                    "released": release.value,
                    "name": self._names.get(release.question),
                }
                for release in status.history
                if release.ladder == brief.ladder and release.improved
            ],
            reason=_standing_sentence(questions, brief.released, opening["rules"].get("metric")),
            released=brief.released,
            asked=questions,
            bound=summarize_bound(brief.bound),
            unseen=status.smallest_visible_gain(brief.ladder) or None,
            rows=rows,
            kind=opening["rules"]["kind"],
            loss=opening["loss"],
            mechanism=opening["mechanism"],
        )

    def budget(self, _: dict[str, Any]) -> ToolResult:
        """Return how many questions are left."""
        brief = self._guard.summary()
        used = brief.asked + brief.charged
        return _budget_result("questions", brief.questions, used, brief)

    def close(self) -> None:
        """Close the connection."""
        self._guard.close()


def _budget_result(unit: str, allowed: int, used: int, state: Any) -> ToolResult:
    """Return the result of ``budget``, from a state with ``remaining`` and ``closed``."""
    reason = f"{used:,} of {allowed:,} {unit} used; {state.remaining:,} left."
    if state.closed:
        reason = f"It was closed for good. {reason}"
    content = {
        "reason": reason,
        unit: allowed,
        "used": used,
        "remaining": state.remaining,
        "open": state.remaining > 0 and not state.closed,
    }
    return ToolResult(reason, content)


def _standing_sentence(questions: int, released: float | None, shown: dict[str, Any] | None) -> str:
    if not questions:
        return "Nothing was asked here yet."
    best = "withheld" if released is None else format_risk(released, shown)
    return f"After {format_count(questions, 'question')} here the best is {best}."


def _ask_tool(folder: Folder | None) -> Tool:
    return Tool(
        name="ask",
        title="Ask the guard about a model",
        description="Ask about one model by its predictions for the hidden examples. Costs one "
        f"question of a fixed budget, if it is answered. {REPLY_MEANING}",
        input_fields={
            **predictions_schema(folder),
            "name": field_schema("string", "Your own name for the model, to find the winner by."),
            "training": field_schema(
                "number", "The model's mean loss on its training data, if the guard needs it."
            ),
        },
        output_fields=REPLY_FIELDS,
        spends_question=True,
    )


class GateToolset(Toolset):
    """The tools ``check``, ``standing`` and ``budget`` on a gate. Thread-safe.

    Parameters
    ----------
    gate
        The gate, which is served elsewhere. The agent cannot promote.
    folder
        The folder from which files of predictions may be read; None allows no files.
    """

    instructions = GATE_INSTRUCTIONS

    def __init__(self, gate: RemoteGate, *, folder: Folder | None = None) -> None:
        self._gate, self._folder = gate, folder
        self._names: dict[int, str] = {}
        self.tools = (_check_tool(folder), _GATE_STANDING, _GATE_BUDGET)

    def check(self, arguments: dict[str, Any]) -> ToolResult:
        """Compare one model with the incumbent; refuse a gate of scores."""
        check_takes_predictions(self._gate.takes)
        name = text_argument(arguments, "name")
        verdict = self._gate.check(predictions_argument(arguments, self._folder))
        if verdict.better and name:
            self._names.setdefault(verdict.look, name)
        return ToolResult(
            verdict.reason, {field: getattr(verdict, field) for field in _VERDICT_FIELDS}
        )

    def standing(self, _: dict[str, Any]) -> ToolResult:
        """Return the last model that was better, the counts of verdicts and the format."""
        status = self._gate.status()
        better = [record.look for record in status.history if record.outcome == "better"]
        winner, report = None, "None was proven better yet."
        if better:
            winner = {"look": better[-1], "name": self._names.get(better[-1])}
            quoted_name = f", {winner['name']!r}" if winner["name"] else ""
            report = f"The model to report is that of look {winner['look']}{quoted_name}."
        looks = len(status.history)
        reason = f"After {format_count(looks, 'look')}: {report}" if looks else "No looks yet."
        text = f"{reason}\nA look needs {status.n:,} predictions."
        content = {
            "reason": reason,
            "winner": winner,
            "verdicts": {outcome: status.count(outcome) for outcome in OUTCOMES},
            "incumbent": status.incumbent,
            "margin": status.margin,
            "rows": status.n,
            "loss": status.loss,
        }
        return ToolResult(text, content)

    def budget(self, _: dict[str, Any]) -> ToolResult:
        """Return how many looks are left."""
        status = self._gate.status()
        return _budget_result("looks", status.looks, status.looks - status.remaining, status)

    def close(self) -> None:
        """Close the connection."""
        self._gate.close()


def _check_tool(folder: Folder | None) -> Tool:
    return Tool(
        name="check",
        title="Compare a model with the incumbent",
        description="Compare one model with the incumbent by its predictions for the hidden "
        "examples. Costs one look of a fixed budget, if it is answered. better is proven; "
        "cannot_tell means that the evidence is too small, and says nothing against the model. The "
        "same predictions again cost nothing. A refusal costs nothing and lists what to fix.",
        input_fields={
            **predictions_schema(folder),
            "name": field_schema("string", "Your own name for the model, to find the winner by."),
        },
        output_fields=_VERDICT_FIELDS,
        spends_question=True,
    )
