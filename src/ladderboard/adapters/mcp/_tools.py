"""The tools of an agent, and which guard or board answers them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from ladderboard import _settings
from ladderboard.adapters.mcp._arguments import MAX_VALUES, Folder
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from pathlib import Path

INSTRUCTIONS = (
    "This is the judge of your models, not their compass. It holds labels that you cannot see, "
    "and answers a limited number of questions, each about one model by its predictions. What it "
    "tells is the best result so far, not the score of the model that you just sent. Search on "
    "validation data of your own, and come here with a model that beats all your earlier ones "
    "there. The model to report is the last one for which improved was true, and standing tells "
    "which; never the one with the least released value, which all later models share, however "
    "bad they are."
)

REPLY_MEANING = (
    "released is the best so far, not the value of the model you sent: a worse model gets the "
    "same number again. improved says whether this very model was seen to beat all before it; a "
    "gain smaller than the step goes unseen, so a small true gain may get improved = false. The "
    "model to report in the end is the last one that improved. Never compare released values to "
    "choose between models, and never use them as the objective of a search: choose on data of "
    "your own, and ask about models that you believe in, one question a model and not one an "
    "epoch. The very same predictions again cost nothing and say nothing new. What is refused "
    "costs nothing, and the refusal lists what to mend."
)

_LAST = 20  # improvements that are listed
_SCHEMES = ("http://", "https://", "unix:")
_TIMEOUT = 50.0  # seconds; the hosts of agents wait for a minute, and asking again costs nothing


@dataclass(frozen=True)
class ToolResult:
    """What a tool answers: sentences for whoever reads, and the same as fields."""

    text: str
    content: dict[str, Any]


@dataclass(frozen=True)
class Tool:
    """One tool: its name, what it is for, what it takes and gives as JSON Schema, if it says."""

    name: str
    title: str
    description: str
    input_fields: dict[str, Any] = field(default_factory=dict)
    output_fields: dict[str, Any] = field(default_factory=dict)
    spends_question: bool = False

    @property
    def input_schema(self) -> dict[str, Any]:
        """What it takes; nothing else is let in."""
        return {"type": "object", "properties": self.input_fields, "additionalProperties": False}

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """What it gives, always all of it; None if it does not say."""
        if not self.output_fields:
            return None
        return {
            "type": "object",
            "properties": self.output_fields,
            "required": list(self.output_fields),
        }


def field_schema(kind: str, about: str, *, maybe: bool = False) -> dict[str, Any]:
    """Return the schema of one field."""
    return {"type": [kind, "null"] if maybe else kind, "description": about}


REPLY_FIELDS: dict[str, Any] = {
    "reason": field_schema("string", "The answer as a sentence."),
    "improved": field_schema("boolean", "Whether this very model was seen to beat all before it."),
    "released": field_schema(
        "number", "The best so far, as a loss: lower is better; null if it is not told.", maybe=True
    ),
    "score": field_schema(
        "number", "What is said about this very model; null if nothing is.", maybe=True
    ),
    "question": field_schema("integer", "The number of the question."),
    "remaining": field_schema("integer", "How many questions are left."),
    "again": field_schema("boolean", "Whether it was asked before, so that nothing was spent."),
    "bound": field_schema(
        "object",
        "Where the true risk of the best model so far lies, or, with differences, how far it may "
        "be from released: low, high, confidence, differences, sentence.",
        maybe=True,
    ),
}


def predictions_schema(folder: Folder | None) -> dict[str, Any]:
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
            f'{{"id": [...], "prediction": [...]}}. At most {MAX_VALUES:,} values.',
        }
    }
    if folder is not None:
        taken["path"] = field_schema(
            "string",
            "In place of predictions: a file of them (CSV with id,prediction; Parquet; .npy; "
            f"JSON Lines) in the folder {folder.root}. No links.",
        )
    return taken


def summarize_bound(bound: Any) -> dict[str, Any] | None:
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


def reply_result(reply: Any, **more: Any) -> ToolResult:
    """Return what was said about a model."""
    content = {name: getattr(reply, name) for name in REPLY_FIELDS}
    return ToolResult(reply.reason, {**content, "bound": summarize_bound(reply.bound), **more})


def standing_result(wanted: str, improvements: list[dict[str, Any]], **content: Any) -> ToolResult:
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
    return ToolResult(
        "\n".join(lines), {**content, "winner": winner, "improvements": improvements[-_LAST:]}
    )


class Toolset(Protocol):
    """Tools, and what answers a call of one of them."""

    tools: tuple[Tool, ...]

    def call(self, tool: str, arguments: dict[str, Any]) -> ToolResult:
        """Answer, by the method of the tool's name; whatever cannot be done is raised."""
        known = next(tuple(each.input_fields) for each in self.tools if each.name == tool)
        for name in arguments:  # what is not known would else be left out silently
            # Agents try a path whether there is a folder or not; what to do is said further on.
            if name not in known and not (name == "path" and "predictions" in known):
                raise InvalidSetting(
                    f"{tool} has no argument {_settings.safe_repr(name)}; "
                    f"there is {', '.join(known) or 'none'}."
                )
        found: ToolResult = getattr(self, tool)(arguments)
        return found

    def close(self) -> None:
        """Hang up."""


def open_toolset(
    target: str,
    *,
    folder: str | Path | None = None,
    ladder: str = "",
    token: str | None = None,
) -> Toolset:
    """Return the toolset of a guard or a board by its address. Nothing is sent yet.

    Parameters
    ----------
    target
        Where a guard is served, such as ``unix:/run/guard/guard.sock``, or a board's page, such as
        ``https://boards.example.org/boards/digits``. A guard's file is refused.
    folder
        Where files of predictions may be read for the agent; none are if None.
    ladder
        On a guard, the ladder to ask on.
    token
        From the environment's LADDERBOARD_TOKEN if not given; for a board, else from what
        ``ladderboard login`` kept.
    """
    if not isinstance(target, str) or not target.startswith(_SCHEMES):
        raise InvalidSetting(
            "An agent gets an address and never a guard's file, for whoever runs this could read "
            f"the labels in it; got {_settings.safe_repr(target)}. Let another user serve it, with "
            "ladderboard guard serve FILE, and give the address that this prints."
        )
    place = None if folder is None else Folder(folder)
    if not target.startswith("unix:") and "/boards/" in urlsplit(target).path:
        if ladder:
            raise InvalidSetting("A board has its teams' ladders; leave --ladder out.")
        from ladderboard.adapters.mcp._board import open_board_toolset  # noqa: PLC0415 - loads the client

        return open_board_toolset(target, token=token, timeout=_TIMEOUT, folder=place)
    from ladderboard.adapters.mcp._guard import GuardToolset  # noqa: PLC0415 - loads HTTP
    from ladderboard.holdout import RemoteHoldout  # noqa: PLC0415 - same

    guard = RemoteHoldout(target, token=token, timeout=_TIMEOUT)
    return GuardToolset(guard, ladder=ladder, folder=place)
