"""A served guard, as an agent asks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ladderboard.adapters.mcp._given import check_known, predictions_of, text_of
from ladderboard.adapters.mcp._tools import (
    BOUND,
    IMPROVEMENTS,
    LABELS,
    MEANING,
    REASON,
    RELEASED,
    REMAINING,
    WINNER,
    Said,
    Tool,
    bound_of,
    counted,
    predictions,
    reply,
    reported,
    said,
)
from ladderboard.holdout import Verdict, last_improved
from ladderboard.holdout._meter import unseen

if TYPE_CHECKING:
    from ladderboard.adapters.mcp._folder import Folder
    from ladderboard.holdout import RemoteHoldout

__all__ = ["GuardDesk"]

_LAST = 20  # improvements that are listed


class GuardDesk:
    """The tools ``ask``, ``standing`` and ``budget`` on a guard. Safe with threads.

    Parameters
    ----------
    guard
        The guard, which is served elsewhere.
    ladder
        The ladder to ask on; the agent cannot choose another.
    folder
        Where files of predictions may be read; none are if None.
    """

    def __init__(
        self, guard: RemoteHoldout, *, ladder: str = "", folder: Folder | None = None
    ) -> None:
        self._guard = guard.ladder(ladder) if ladder else guard
        self._ladder = ladder
        self._improved: dict[int, Verdict] = {}
        self._folder = folder
        self.tools: tuple[Tool, ...] = (_ask(folder), _STANDING, _BUDGET)

    def call(self, tool: str, arguments: dict[str, Any]) -> Said:
        """Answer; whatever cannot be done is raised."""
        known = {each.name: tuple(each.takes) for each in self.tools}
        check_known(tool, arguments, known[tool])
        found: Said = getattr(self, tool)(arguments)
        return found

    def ask(self, arguments: dict[str, Any]) -> Said:
        """Ask about one model."""
        name = text_of(arguments, "name") or None
        given = predictions_of(arguments, self._folder)
        told = self._guard.ask(given, training=arguments.get("training"))
        if told.improved:  # asked again, it keeps the name that it had
            self._improved.setdefault(told.question, Verdict(name, None, told))
        winner = self._winner()
        content = {
            "reason": told.reason,
            "improved": told.improved,
            "released": told.released,
            "score": told.score,
            "question": told.question,
            "remaining": told.remaining,
            "again": told.again,
            "bound": bound_of(told.bound),
            "winner": winner,
        }
        return Said(f"{told.reason} {reported(winner)}", content)

    def standing(self, _: dict[str, Any]) -> Said:
        """Say where things stand on the ladder."""
        status = self._guard.status()
        own = [each for each in status.ladders if each.name == self._ladder]
        history = [each for each in status.history if each.ladder == self._ladder and each.improved]
        improved = [
            {"question": each.question, "released": each.value, "name": self._name(each.question)}
            for each in history
        ]
        winner = None
        if improved:
            winner = {name: improved[-1][name] for name in ("question", "name")}
        brief = self._guard.brief()
        gain = unseen(status.meter.mechanism)
        asked = own[0].questions if own else 0
        opening = status.opening
        rows, kind = opening["rules"]["rows"], opening["rules"]["kind"]
        reason = _stands(asked, brief.released)
        content: dict[str, Any] = {
            "reason": reason,
            "released": brief.released,
            "asked": asked,
            "winner": winner,
            "improvements": improved[-_LAST:],
            "bound": bound_of(brief.bound),
            "unseen": gain,
            "rows": rows,
            "kind": kind,
            "loss": opening["loss"],
            "mechanism": opening["mechanism"],
        }
        lines = [f"{reason} {reported(winner)}", f"{content['bound']['sentence']}."]
        if gain is not None:
            lines.append(f"Gains below about {gain:.2g} may go unseen.")
        lines.append(f"A question wants {rows:,} predictions; labels are {kind}.")
        return Said("\n".join(lines), content)

    def budget(self, _: dict[str, Any]) -> Said:
        """Say how many questions are left."""
        brief = self._guard.brief()
        used = brief.asked + brief.charged
        reason = f"{used:,} of {brief.questions:,} questions used; {brief.remaining:,} left."
        if brief.closed:
            reason = f"The guard was closed for good. {reason}"
        content = {
            "reason": reason,
            "questions": brief.questions,
            "used": used,
            "remaining": brief.remaining,
            "open": brief.remaining > 0 and not brief.closed,
        }
        return Said(reason, content)

    def close(self) -> None:
        """Hang up."""
        self._guard.close()

    def _winner(self) -> dict[str, Any] | None:
        """Return the last that improved of all that were asked from here."""
        verdict = last_improved(list(self._improved.values()))
        return None if verdict is None else {"question": verdict.question, "name": verdict.name}

    def _name(self, question: int) -> str | None:
        verdict = self._improved.get(question)
        return None if verdict is None else verdict.name


def _stands(asked: int, released: float | None) -> str:
    if not asked:
        return "Nothing was asked here yet."
    best = "its value is not told" if released is None else f"the best is {released:.6g}"
    return f"After {counted(asked, 'question')} here {best}."


def _ask(folder: Folder | None) -> Tool:
    return Tool(
        name="ask",
        title="Ask the guard about a model",
        description="Ask about one model by its predictions for the hidden examples. Costs one "
        f"question of a fixed budget, if it is answered. {MEANING}",
        takes={
            **predictions(folder),
            "name": said("string", "Your own name for the model, to find the winner by."),
            "training": said(
                "number", "The model's mean loss on its training data, if the guard wants it."
            ),
        },
        gives=reply(),
        asks=True,
    )


_STANDING = Tool(
    name="standing",
    title="Where things stand",
    description="Costs no question. The best so far, which question improved last (the model to "
    "report), what can be promised about it, and what predictions must look like: how many rows, "
    "of which kind, for which loss.",
    gives={
        "reason": REASON,
        "released": RELEASED,
        "asked": said("integer", "How many questions were asked on this ladder."),
        "winner": WINNER,
        "improvements": IMPROVEMENTS,
        "bound": BOUND,
        **LABELS,
    },
)

_BUDGET = Tool(
    name="budget",
    title="How many questions are left",
    description="Costs no question. How many questions are allowed, were used and are left, over "
    "all who ask this guard.",
    gives={
        "reason": REASON,
        "questions": said("integer", "How many questions are allowed."),
        "used": said("integer", "How many were used, by everybody who asks here."),
        "remaining": REMAINING,
        "open": said("boolean", "Whether a question is answered now."),
    },
)
