"""The guard and the gate: labels, loss and ledger in one file, with a budget.

A :class:`Holdout` is the guard. Its :class:`Scorer` turns predictions into a secret risk, the
mechanism releases an answer that is recorded in the ledger, and a :class:`Reply` returns it. A
:class:`Judge` asks about the candidates of a search, and selects the winner. A :class:`Gate`
compares a candidate with the incumbent, and returns a :class:`Verdict`.
"""

from typing import TYPE_CHECKING

from ladderboard._lazy_exports import lazy_exports

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
    from ladderboard.holdout._reply import RESERVED_USED_UP as RESERVED_USED_UP
    from ladderboard.holdout._reply import UNDECLARED_CLASSES, Reply, format_remaining, format_reply
    from ladderboard.holdout._reply import BoardAnswer as BoardAnswer
    from ladderboard.holdout._reply import ReplyTexts as ReplyTexts
    from ladderboard.holdout._reply import describe_board_answer as describe_board_answer
    from ladderboard.holdout._reply import describe_bound as describe_bound
    from ladderboard.holdout._reply import format_risk as format_risk
    from ladderboard.holdout._reply import format_risk_gain as format_risk_gain
    from ladderboard.holdout._reply import is_too_wide as is_too_wide
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
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "_export": (
            "export_entries",
            "iter_decrypted_entries",
            "write_bundle_opening",
            "write_guard_bundle",
        ),
        "_file": ("make_key_file", "read_key_file", "refuse_foreign_wal"),
        "_guard": ("Holdout",),
        "_judge": ("Guard", "Judge", "Judgement", "last_improved"),
        "_open_file": ("OpenFile",),
        "_payload": ("Payload", "encode_predictions"),
        "_reply": (
            "BoardAnswer",
            "Reply",
            "ReplyTexts",
            "UNDECLARED_CLASSES",
            "RESERVED_USED_UP",
            "describe_board_answer",
            "describe_bound",
            "format_remaining",
            "format_reply",
            "format_risk",
            "format_risk_gain",
            "is_too_wide",
            "is_unchanged",
            "metric_value",
        ),
        "_sample": (
            "decode_sample",
            "describe_sample",
            "encode_sample",
            "sample_digest",
            "sample_from_description",
        ),
        "_scorer": (
            "ALIGNED_FORMAT",
            "AlignedPredictions",
            "RecordProver",
            "Scorer",
            "ScoringResult",
            "describe_further",
            "is_zero_one",
        ),
        "_status": ("LadderStatus", "Meter", "QuestionRecord", "Status"),
        "_verdict": ("GateStatus", "LookRecord", "OUTCOMES", "Verdict", "format_looks"),
        "_gate": ("Gate", "GateReplay", "open_file", "restore_file"),
        "_remote": ("RemoteGate", "RemoteHoldout", "connect_served"),
    },
)
