"""The tools as an agent reads them: what they take, what they say, and what that means."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ladderboard.adapters.mcp._given import MOST_VALUES

if TYPE_CHECKING:
    from ladderboard.adapters.mcp._folder import Folder

__all__ = [
    "INSTRUCTIONS",
    "MEANING",
    "REPLY",
    "Said",
    "Tool",
    "answered",
    "bound_of",
    "predictions",
    "said",
    "stood",
]

INSTRUCTIONS = """\
This is the judge of your models, not their compass. It holds labels that you cannot see, and answers a limited number \
of questions, each about one model by its predictions. What it tells is the best result so far, not the score of the \
model that you just sent. Search on validation data of your own, and come here with a model that beats all your earlier \
ones there. The model to report is the last one for which improved was true, and standing tells which; never the one \
with the least released value, which all later models share, however bad they are."""  # noqa: E501

MEANING = """\
released is the best so far, not the value of the model you sent: a worse model gets the same number again. improved \
says whether this very model was seen to beat all before it; a gain smaller than the step goes unseen, so a small true \
gain may get improved = false. The model to report in the end is the last one that improved. Never compare released \
values to choose between models, and never use them as the objective of a search: choose on data of your own, and ask \
about models that you believe in, one question a model and not one an epoch. The very same predictions again cost \
nothing and say nothing new. What is refused costs nothing, and the refusal lists what to mend."""  # noqa: E501

_LAST = 20  # improvements that are listed


@dataclass(frozen=True)
class Said:
    """What a tool answers: sentences for whoever reads, and the same as fields."""

    text: str
    content: dict[str, Any]


@dataclass(frozen=True)
class Tool:
    """One tool: its name, what it is for, what it takes and gives as JSON Schema, if it says."""

    name: str
    title: str
    description: str
    takes: dict[str, Any] = field(default_factory=dict)
    gives: dict[str, Any] = field(default_factory=dict)
    asks: bool = False

    @property
    def input_schema(self) -> dict[str, Any]:
        """What it takes; nothing else is let in."""
        return {"type": "object", "properties": self.takes, "additionalProperties": False}

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """What it gives, always all of it; None if it does not say."""
        if not self.gives:
            return None
        return {"type": "object", "properties": self.gives, "required": list(self.gives)}


def said(kind: str, about: str, *, maybe: bool = False) -> dict[str, Any]:
    """Return the schema of one field."""
    return {"type": [kind, "null"] if maybe else kind, "description": about}


REPLY: dict[str, Any] = {
    "reason": said("string", "The answer as a sentence."),
    "improved": said("boolean", "Whether this very model was seen to beat all before it."),
    "released": said(
        "number", "The best so far, as a loss: lower is better; null if it is not told.", maybe=True
    ),
    "score": said("number", "What is said about this very model; null if nothing is.", maybe=True),
    "question": said("integer", "The number of the question."),
    "remaining": said("integer", "How many questions are left."),
    "again": said("boolean", "Whether it was asked before, so that nothing was spent."),
    "bound": said(
        "object",
        "Where the true risk of the best model so far lies, or, with differences, how far it may "
        "be from released: low, high, confidence, differences, sentence.",
        maybe=True,
    ),
}


def predictions(folder: Folder | None) -> dict[str, Any]:
    """Return what a question takes: values, or a file where there is a folder for them."""
    value = {"type": ["number", "string", "boolean", "null"]}
    row = {"type": "array", "items": value}
    taken: dict[str, Any] = {
        "predictions": {
            "anyOf": [
                {"type": "array", "items": {"anyOf": [value, row]}},
                {"type": "object", "additionalProperties": row},
            ],
            "description": "A value for each example in the holdout's order, or a row of values "
            "where the loss wants several; or an object of columns, such as "
            f'{{"id": [...], "prediction": [...]}}. At most {MOST_VALUES:,} values.',
        }
    }
    if folder is not None:
        taken["path"] = said(
            "string",
            "In place of predictions: a file of them (CSV with id,prediction; Parquet; .npy; "
            f"JSON Lines) in the folder {folder.root}. No links.",
        )
    return taken


def bound_of(bound: Any) -> dict[str, Any] | None:
    """Return a certificate in short; its ends are None where nothing is promised."""
    if bound is None:
        return None
    told = bound.describe()
    return {
        "low": told["low"],
        "high": told["high"],
        "confidence": 1 - told["beta"],
        "differences": told.get("differences", False),  # a board tells where the value itself lies
        "sentence": str(bound).partition("\n")[0],
    }


def answered(reply: Any, **more: Any) -> Said:
    """Return what was said about a model."""
    content = {name: getattr(reply, name) for name in REPLY}
    return Said(reply.reason, {**content, "bound": bound_of(reply.bound), **more})


def stood(wanted: str, improvements: list[dict[str, Any]], **content: Any) -> Said:
    """Return where things stand, with the winner: the last of the improvements, oldest first."""
    winner, which = None, "None has improved yet."
    if improvements:
        winner = {name: each for name, each in improvements[-1].items() if name != "released"}
        # After labels were corrected, the questions of a board may count anew; submissions do not.
        numbered = "number" in winner
        model = f"submission {winner['number']}" if numbered else f"question {winner['question']}"
        named = f", {winner['name']!r}" if winner["name"] else ""
        which = f"The model to report is that of {model}{named}."
    lines = [f"{content['reason']} {which}"]
    if content.get("bound"):
        lines.append(f"{content['bound']['sentence']}.")
    if content["unseen"] is not None:
        lines.append(f"Gains below about {content['unseen']:.2g} may go unseen.")
    labels = {"number": "numbers"}.get(content["kind"], content["kind"])
    lines.append(f"{wanted}; labels are {labels}.")
    return Said(
        "\n".join(lines), {**content, "winner": winner, "improvements": improvements[-_LAST:]}
    )
