"""The tools as an agent reads them: what they take, what they say, and what that means."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ladderboard.adapters.mcp._given import MOST_VALUES

if TYPE_CHECKING:
    from ladderboard.adapters.mcp._folder import Folder

__all__ = [
    "BOUND",
    "IMPROVEMENTS",
    "INSTRUCTIONS",
    "LABELS",
    "MEANING",
    "REASON",
    "RELEASED",
    "REMAINING",
    "WINNER",
    "Said",
    "Tool",
    "bound_of",
    "counted",
    "predictions",
    "reply",
    "reported",
    "said",
]

INSTRUCTIONS = """\
This is the judge of your models, not their compass. It holds labels that you cannot see, and answers a limited number \
of questions, each about one model by its predictions. What it tells is the best result so far, not the score of the \
model that you just sent. Search on validation data of your own, and come here with a model that beats all your earlier \
ones there. The model to report is the last one for which improved was true; never the one with the least released \
value, which all later models share, however bad they are."""  # noqa: E501

MEANING = """\
released is the best so far, not the value of the model you sent: a worse model gets the same number again. improved \
says whether this very model was seen to beat all before it; a gain smaller than the step goes unseen, so a small true \
gain may get improved = false. The model to report in the end is the last one that improved. Never compare released \
values to choose between models, and never use them as the objective of a search: choose on data of your own, and ask \
about models that you believe in, one question a model and not one an epoch. The very same predictions again cost \
nothing and say nothing new. What is refused costs nothing, and the refusal lists what to mend."""  # noqa: E501


@dataclass(frozen=True)
class Said:
    """What a tool answers: sentences for whoever reads, and the same as fields."""

    text: str
    content: dict[str, Any]


@dataclass(frozen=True)
class Tool:
    """One tool: its name, what it is for, what it takes and what it gives, as JSON Schema."""

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
    def output_schema(self) -> dict[str, Any]:
        """What it gives, always all of it."""
        return {"type": "object", "properties": self.gives, "required": list(self.gives)}


def said(kind: str, about: str, *, maybe: bool = False) -> dict[str, Any]:
    """Return the schema of one field."""
    return {"type": [kind, "null"] if maybe else kind, "description": about}


REASON = said("string", "The answer as a sentence.")
RELEASED = said(
    "number", "The best so far, as a loss: lower is better. Null where it is not told.", maybe=True
)
REMAINING = said("integer", "How many questions are left.")
BOUND = {
    "type": ["object", "null"],
    "description": "Where the true risk of the best model so far lies, or, with differences, how "
    "far it may be from released.",
    "properties": {
        "low": {"type": ["number", "null"]},
        "high": {"type": ["number", "null"]},
        "confidence": {"type": "number"},
        "differences": {"type": "boolean"},
        "sentence": {"type": "string"},
    },
}
WINNER = {
    "type": ["object", "null"],
    "description": "The model to report as things stand: the last question that improved.",
    "properties": {
        "question": {"type": "integer"},
        "name": said("string", "What you called it; null if that is not known here.", maybe=True),
    },
}
IMPROVEMENTS = {
    "type": "array",
    "description": "The last questions that improved, oldest first: question, released, name.",
    "items": {"type": "object"},
}
LABELS = {
    "unseen": said("number", "Gains below about this may go unseen.", maybe=True),
    "rows": said("integer", "How many predictions are wanted."),
    "kind": said("string", "Whether labels are number or text."),
    "loss": said("object", "The loss, with its settings."),
    "mechanism": said("object", "The rule by which questions are answered."),
}


def reply(**more: Any) -> dict[str, Any]:
    """Return the fields of an answer to a question."""
    return {
        "reason": REASON,
        "improved": said("boolean", "Whether this very model was seen to beat all before it."),
        "released": RELEASED,
        "score": said(
            "number", "What is said about this very model; null if nothing is.", maybe=True
        ),
        "question": said("integer", "The number of the question."),
        "remaining": REMAINING,
        "again": said("boolean", "Whether it was asked before, so that nothing was spent."),
        "bound": BOUND,
        "winner": WINNER,
        **more,
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
        "differences": told["differences"],
        "sentence": str(bound).partition("\n")[0],
    }


def reported(winner: dict[str, Any] | None) -> str:
    """Return which model to report, in words."""
    if winner is None:
        return "None has improved yet."
    named = f", {winner['name']!r}" if winner["name"] else ""
    return f"The model to report is that of question {winner['question']}{named}."


def counted(number: int, word: str) -> str:
    """Return a number with its word.

    >>> counted(1, "question"), counted(1000, "question")
    ('1 question', '1,000 questions')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"
