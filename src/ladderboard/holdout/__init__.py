"""The guard and the gate: labels, loss and ledger in one file, with a budget.

A :class:`Holdout` is the guard. Its :class:`Scorer` turns predictions into a secret risk, the
mechanism releases an answer that is recorded in the ledger, and a :class:`Reply` returns it. A
:class:`Judge` asks about the candidates of a search, and selects the winner. A :class:`Gate`
compares a candidate with the incumbent, and returns a :class:`Verdict`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ladderboard.holdout._export import (
        export_entries,
        iter_decrypted_entries,
        write_bundle_opening,
        write_guard_bundle,
    )
    from ladderboard.holdout._file import make_key_file, read_key_file
    from ladderboard.holdout._file import refuse_foreign_wal as refuse_foreign_wal
    from ladderboard.holdout._gate import Gate, GateReplay
    from ladderboard.holdout._gate import open_file as open_file
    from ladderboard.holdout._gate import restore_file as restore_file
    from ladderboard.holdout._guard import Holdout
    from ladderboard.holdout._judge import Guard, Judge, Judgement, last_improved
    from ladderboard.holdout._open_file import OpenFile
    from ladderboard.holdout._payload import Payload, encode_predictions
    from ladderboard.holdout._remote import RemoteGate, RemoteHoldout
    from ladderboard.holdout._remote import connect_served as connect_served
    from ladderboard.holdout._reply import UNDECLARED_CLASSES, Reply, format_remaining, format_reply
    from ladderboard.holdout._reply import BoardAnswer as BoardAnswer
    from ladderboard.holdout._reply import ReplyTexts as ReplyTexts
    from ladderboard.holdout._reply import describe_board_answer as describe_board_answer
    from ladderboard.holdout._reply import format_risk as format_risk
    from ladderboard.holdout._reply import format_risk_gain as format_risk_gain
    from ladderboard.holdout._reply import is_unchanged as is_unchanged
    from ladderboard.holdout._reply import metric_value as metric_value
    from ladderboard.holdout._sample import (
        decode_sample,
        describe_sample,
        encode_sample,
        sample_digest,
        sample_from_description,
    )
    from ladderboard.holdout._scorer import (
        ALIGNED_FORMAT,
        AlignedPredictions,
        Scorer,
        ScoringResult,
        is_zero_one,
    )
    from ladderboard.holdout._scorer import RecordProver as RecordProver
    from ladderboard.holdout._scorer import describe_further as describe_further
    from ladderboard.holdout._status import (
        LadderStatus,
        Meter,
        QuestionRecord,
        Status,
    )
    from ladderboard.holdout._verdict import OUTCOMES as OUTCOMES
    from ladderboard.holdout._verdict import GateStatus, LookRecord, Verdict
    from ladderboard.holdout._verdict import format_looks as format_looks

__all__ = [
    "ALIGNED_FORMAT",
    "UNDECLARED_CLASSES",
    "AlignedPredictions",
    "Gate",
    "GateReplay",
    "GateStatus",
    "Guard",
    "Holdout",
    "Judge",
    "Judgement",
    "LadderStatus",
    "LookRecord",
    "Meter",
    "OpenFile",
    "Payload",
    "QuestionRecord",
    "RemoteGate",
    "RemoteHoldout",
    "Reply",
    "Scorer",
    "ScoringResult",
    "Status",
    "Verdict",
    "decode_sample",
    "describe_sample",
    "encode_predictions",
    "encode_sample",
    "export_entries",
    "format_remaining",
    "format_reply",
    "is_zero_one",
    "iter_decrypted_entries",
    "last_improved",
    "make_key_file",
    "read_key_file",
    "sample_digest",
    "sample_from_description",
    "write_bundle_opening",
    "write_guard_bundle",
]


# Imported on first use: a guard in a file needs neither bounds nor HTTP, and a client of a board
# only what replies are made of.
_LAZY = {
    **dict.fromkeys(
        ("export_entries", "iter_decrypted_entries", "write_bundle_opening", "write_guard_bundle"),
        "_export",
    ),
    **dict.fromkeys(("make_key_file", "read_key_file", "refuse_foreign_wal"), "_file"),
    **dict.fromkeys(("Holdout",), "_guard"),
    **dict.fromkeys(("Guard", "Judge", "Judgement", "last_improved"), "_judge"),
    **dict.fromkeys(("OpenFile",), "_open_file"),
    **dict.fromkeys(("Payload", "encode_predictions"), "_payload"),
    **dict.fromkeys(
        (
            "UNDECLARED_CLASSES",
            "Reply",
            "format_remaining",
            "format_reply",
            "BoardAnswer",
            "ReplyTexts",
            "describe_board_answer",
            "format_risk",
            "format_risk_gain",
            "is_unchanged",
            "metric_value",
        ),
        "_reply",
    ),
    **dict.fromkeys(
        (
            "decode_sample",
            "describe_sample",
            "encode_sample",
            "sample_digest",
            "sample_from_description",
        ),
        "_sample",
    ),
    **dict.fromkeys(
        (
            "ALIGNED_FORMAT",
            "AlignedPredictions",
            "Scorer",
            "ScoringResult",
            "is_zero_one",
            "RecordProver",
            "describe_further",
        ),
        "_scorer",
    ),
    **dict.fromkeys(("LadderStatus", "Meter", "QuestionRecord", "Status"), "_status"),
    **dict.fromkeys(
        ("OUTCOMES", "GateStatus", "LookRecord", "Verdict", "format_looks"), "_verdict"
    ),
    **dict.fromkeys(("Gate", "GateReplay", "open_file", "restore_file"), "_gate"),
    **dict.fromkeys(("RemoteGate", "RemoteHoldout", "connect_served"), "_remote"),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
