"""The tools of an agent, and the choice of the guard or board that answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from ladderboard import _settings
from ladderboard._formatting import format_undetected_gains
from ladderboard.adapters.mcp._arguments import MAX_VALUES, Folder
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from pathlib import Path

INSTRUCTIONS = (
    "This server evaluates your models on labels that you cannot see. It answers a limited "
    "number of questions, each about one model by its predictions. An answer is the best "
    "result so far, not the score of the model that you just sent. Tune on your own "
    "validation data, and ask only about a model that beats all your earlier ones there. The "
    "model to report is the last one for which improved was true, and standing tells which; "
    "never the one with the lowest released value, which all later models share, however bad "
    "they are."
)

REPLY_MEANING = (
    "released is the best so far, not the value of the model you sent: a worse model gets the "
    "same number again. improved says whether this model measurably beat all earlier ones; "
    "smaller gains are not detected, so a small true gain may get improved = false. "
    "The model to report in the end is the last one that improved. Never compare released "
    "values to choose between models, and never use them as the objective of a search: choose "
    "on your own validation data, and ask about promising models, one question for each model "
    "and not for each epoch. The same predictions again cost nothing and give the same "
    "answer. A refusal costs nothing and lists what to fix."
)

GATE_INSTRUCTIONS = (
    "This server compares your models with an incumbent on labels that you cannot see. It answers "
    "a limited number of looks, each about one model by its predictions. A verdict says whether "
    "your model is proven better, or not worse by more than a margin; it shows no score. Cannot "
    "tell does not mean that the model is worse: the evidence is too small. Tune on your own "
    "validation data, and check only a model that beats all your earlier ones there: each verdict "
    "makes the next one dearer. The model to report is the last one that was better; standing "
    "tells which."
)

_LISTED_IMPROVEMENTS = 20
_SCHEMES = ("http://", "https://", "unix:")
_TIMEOUT = 50.0  # seconds; the hosts of agents wait for a minute, and asking again costs nothing


@dataclass(frozen=True)
class ToolResult:
    """A tool's answer, as text and as fields."""

    text: str
    content: dict[str, Any]


@dataclass(frozen=True)
class Tool:
    """One tool: its name, its purpose, and the JSON Schemas of its input and output fields."""

    name: str
    title: str
    description: str
    input_fields: dict[str, Any] = field(default_factory=dict)
    output_fields: dict[str, Any] = field(default_factory=dict)
    spends_question: bool = False

    @property
    def input_schema(self) -> dict[str, Any]:
        """The schema of the arguments; others are refused."""
        return {"type": "object", "properties": self.input_fields, "additionalProperties": False}

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The schema of the result, with every field required; None if not declared."""
        if not self.output_fields:
            return None
        return {
            "type": "object",
            "properties": self.output_fields,
            "required": list(self.output_fields),
        }


def field_schema(json_type: str, description: str, *, nullable: bool = False) -> dict[str, Any]:
    """Return the schema of one field."""
    return {"type": [json_type, "null"] if nullable else json_type, "description": description}


REPLY_FIELDS: dict[str, Any] = {
    "reason": field_schema("string", "The answer as a sentence."),
    "improved": field_schema(
        "boolean", "Whether this model was measured to be better than all before it."
    ),
    "released": field_schema(
        "number",
        "The best so far, as a loss: lower is better; null if it is withheld.",
        nullable=True,
    ),
    "score": field_schema(
        "number", "The score of this model; null if it is withheld.", nullable=True
    ),
    "question": field_schema("integer", "The number of the question."),
    "remaining": field_schema("integer", "How many questions are left."),
    "again": field_schema("boolean", "Whether it was asked before, so that nothing was spent."),
    "bound": field_schema(
        "object",
        "Where the true risk of the best model so far lies, or, with differences, how far it may "
        "be from released: low, high, confidence, differences, sentence.",
        nullable=True,
    ),
}


def predictions_schema(folder: Folder | None) -> dict[str, Any]:
    """Return the schema of a question's predictions: values, or a file if there is a folder."""
    value = {"type": ["number", "string", "boolean", "null"]}
    row = {"type": "array", "items": value}
    schema: dict[str, Any] = {
        "predictions": {
            "anyOf": [
                {"type": "array", "items": {"anyOf": [value, row]}},
                {"type": "object", "additionalProperties": row},
            ],
            "description": "A value for each example in the holdout's order, or a row of values "
            "if the loss needs several; or an object of columns, such as "
            f'{{"id": [...], "prediction": [...]}}. At most {MAX_VALUES:,} values.',
        }
    }
    if folder is not None:
        schema["path"] = field_schema(
            "string",
            "Instead of predictions: a file of them (CSV with id,prediction; Parquet; .npy; "
            f"JSON Lines) in the folder {folder.root}. No links.",
        )
    return schema


def summarize_bound(bound: Any) -> dict[str, Any] | None:
    """Return a certificate in short; low and high are None if it promises nothing."""
    if bound is None:
        return None
    description = bound.describe()
    return {
        "low": description["low"],
        "high": description["high"],
        "confidence": 1 - description["beta"],
        "differences": description.get("differences", False),  # a board's bound has no such field
        "sentence": str(bound).partition("\n")[0],
    }


def reply_result(reply: Any, **fields: Any) -> ToolResult:
    """Return the tool's result for a reply, with further fields."""
    content = {name: getattr(reply, name) for name in REPLY_FIELDS}
    return ToolResult(reply.reason, {**content, "bound": summarize_bound(reply.bound), **fields})


def standing_result(
    expected_format: str, improvements: list[dict[str, Any]], **content: Any
) -> ToolResult:
    """Return the result of ``standing``; the winner is the last of the improvements."""
    winner, report = None, "None has improved yet."
    if improvements:
        winner = {name: value for name, value in improvements[-1].items() if name != "released"}
        # A correction of labels restarts a board's numbering of questions, not of submissions.
        numbered = "number" in winner
        model = f"submission {winner['number']}" if numbered else f"question {winner['question']}"
        quoted_name = f", {winner['name']!r}" if winner["name"] else ""
        report = f"The model to report is that of {model}{quoted_name}."
    lines = [f"{content['reason']} {report}"]
    if content.get("bound"):
        lines.append(f"{content['bound']['sentence']}.")
    if content["unseen"] is not None:
        lines.append(format_undetected_gains(f"{content['unseen']:.2g}"))
    labels = {"number": "numbers"}.get(content["kind"], content["kind"])
    lines.append(f"{expected_format}; labels are {labels}.")
    shown = improvements[-_LISTED_IMPROVEMENTS:]
    return ToolResult("\n".join(lines), {**content, "winner": winner, "improvements": shown})


class Toolset(Protocol):
    """Tools, with a method of the same name for each."""

    tools: tuple[Tool, ...]

    def call(self, tool: str, arguments: dict[str, Any]) -> ToolResult:
        """Call the method of the tool's name; refuse unknown arguments."""
        definition = next(definition for definition in self.tools if definition.name == tool)
        known = tuple(definition.input_fields)
        for name in arguments:
            # Agents try a path even without a folder; predictions_argument says what to do.
            if name not in known and not (name == "path" and "predictions" in known):
                raise InvalidSetting(
                    f"{tool} has no argument {_settings.safe_repr(name)}; "
                    f"it takes {', '.join(known) or 'none'}."
                )
        result: ToolResult = getattr(self, tool)(arguments)
        return result

    def close(self) -> None:
        """Close the connection."""


def open_toolset(
    target: str,
    *,
    folder: str | Path | None = None,
    ladder: str = "",
    token: str | None = None,
    gate: bool = False,
) -> Toolset:
    """Return the toolset of a guard, a gate or a board by its address. Nothing is sent yet.

    Parameters
    ----------
    target
        The address of a served guard, such as ``unix:/run/guard/guard.sock``, or of a board's page,
        such as ``https://boards.example.org/boards/digits``. A guard's file is refused.
    folder
        The folder from which the agent's files of predictions may be read; None allows no files.
    ladder
        On a guard, the ladder to ask on.
    token
        By default from the environment variable LADDERBOARD_TOKEN, or for a board from
        ``ladderboard login``.
    gate
        Whether a gate is served at the address.
    """
    if not isinstance(target, str) or not target.startswith(_SCHEMES):
        raise InvalidSetting(
            "Give the address of a served guard, not its file: an agent that can open the file "
            f"can read the labels. Got {_settings.safe_repr(target)}. As another user, run "
            "ladderboard guard serve FILE, and give the address that it prints."
        )
    readable_folder = None if folder is None else Folder(folder)
    if not target.startswith("unix:") and "/boards/" in urlsplit(target).path:
        if ladder or gate:
            raise InvalidSetting("A board has its teams' ladders; leave out --ladder and --gate.")
        from ladderboard.adapters.mcp._board import open_board_toolset  # noqa: PLC0415 - loads the client

        return open_board_toolset(target, token=token, timeout=_TIMEOUT, folder=readable_folder)
    from ladderboard.adapters.mcp._guard import (  # noqa: PLC0415 - loads HTTP
        GateToolset,
        GuardToolset,
    )
    from ladderboard.holdout import RemoteGate, RemoteHoldout  # noqa: PLC0415 - same

    if gate:
        if ladder:
            raise InvalidSetting("A gate has no ladders; leave --ladder out.")
        served_gate = RemoteGate(target, token=token, timeout=_TIMEOUT)
        return GateToolset(served_gate, folder=readable_folder)
    guard = RemoteHoldout(target, token=token, timeout=_TIMEOUT)
    return GuardToolset(guard, ladder=ladder, folder=readable_folder)
