"""Boards: teams, phases, limits, finals and standings, without HTTP.

A board is described by a folder: :func:`read_folder` reads it, :class:`Rules` holds its settings,
:func:`check_board` checks it before it opens. :class:`Boards` stores boards in a database. A
:class:`Board` answers submissions; a :class:`View` returns what one caller may see of it.
"""

from typing import TYPE_CHECKING

from ladderboard._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ladderboard.board._access import (
        PUBLIC,
        Caller,
        Quota,
        QuotaLimit,
        Role,
        check_permission,
        check_text,
        hash_token,
    )
    from ladderboard.board._access import comparable_name as comparable_name
    from ladderboard.board._amendments import compare_with_folder as compare_with_folder
    from ladderboard.board._amendments import count_changed_labels as count_changed_labels
    from ladderboard.board._amendments import diff_rules as diff_rules
    from ladderboard.board._amendments import differing_parts as differing_parts
    from ladderboard.board._amendments import read_corrected_labels as read_corrected_labels
    from ladderboard.board._backup import BackedUpBoard as BackedUpBoard
    from ladderboard.board._backup import Backup as Backup
    from ladderboard.board._backup import BackupCheck as BackupCheck
    from ladderboard.board._backup import BackupGap as BackupGap
    from ladderboard.board._backup import back_up as back_up
    from ladderboard.board._backup import check_backup as check_backup
    from ladderboard.board._backup import check_backup_folder as check_backup_folder
    from ladderboard.board._backup import compare_with_database as compare_with_database
    from ladderboard.board._backup import dump_board, restore_board
    from ladderboard.board._backup import find_backup as find_backup
    from ladderboard.board._backup import prune_backups as prune_backups
    from ladderboard.board._backup import restore_backup as restore_backup
    from ladderboard.board._boards import SERVER as SERVER
    from ladderboard.board._boards import Board, Boards, CachedSummary, is_shared, open_boards
    from ladderboard.board._boards import open_storage as open_storage
    from ladderboard.board._boards import submit_baselines as submit_baselines
    from ladderboard.board._check import Report, check_board
    from ladderboard.board._finals import has_useful_intervals, write_board_bundle
    from ladderboard.board._folder import BoardFolder, read_folder
    from ladderboard.board._folder import import_codabench as import_codabench
    from ladderboard.board._folder import import_huggingface as import_huggingface
    from ladderboard.board._folder import import_kaggle as import_kaggle
    from ladderboard.board._folder import read_data_files as read_data_files
    from ladderboard.board._folder import write_example_board as write_example_board
    from ladderboard.board._model import BestRelease as BestRelease
    from ladderboard.board._model import BoardInfo as BoardInfo
    from ladderboard.board._model import BoardPhase as BoardPhase
    from ladderboard.board._model import BoardRecord as BoardRecord
    from ladderboard.board._model import BoardStatus as BoardStatus
    from ladderboard.board._model import BoardTerms as BoardTerms
    from ladderboard.board._model import DataFileRow as DataFileRow
    from ladderboard.board._model import DataList as DataList
    from ladderboard.board._model import FileLimits as FileLimits
    from ladderboard.board._model import FinalRanking as FinalRanking
    from ladderboard.board._model import FinalRankingRow as FinalRankingRow
    from ladderboard.board._model import Id as Id
    from ladderboard.board._model import Leaderboard as Leaderboard
    from ladderboard.board._model import LeaderboardRow as LeaderboardRow
    from ladderboard.board._model import LedgerHead as LedgerHead
    from ladderboard.board._model import LimitStatus as LimitStatus
    from ladderboard.board._model import ListedTeam as ListedTeam
    from ladderboard.board._model import ListedToken as ListedToken
    from ladderboard.board._model import ListedWebhook as ListedWebhook
    from ladderboard.board._model import MetricBound as MetricBound
    from ladderboard.board._model import MetricDisplay as MetricDisplay
    from ladderboard.board._model import MetricRelease as MetricRelease
    from ladderboard.board._model import Person as Person
    from ladderboard.board._model import RateLimit as RateLimit
    from ladderboard.board._model import ReceiptFields as ReceiptFields
    from ladderboard.board._model import ReplyDisplay as ReplyDisplay
    from ladderboard.board._model import SubmissionInfo as SubmissionInfo
    from ladderboard.board._model import SubmissionReply as SubmissionReply
    from ladderboard.board._model import TeamCredentials as TeamCredentials
    from ladderboard.board._model import TeamInvitation as TeamInvitation
    from ladderboard.board._model import TeamMember as TeamMember
    from ladderboard.board._model import TeamMembers as TeamMembers
    from ladderboard.board._model import TeamRef as TeamRef
    from ladderboard.board._model import TeamStatus as TeamStatus
    from ladderboard.board._model import WebhookEvent as WebhookEvent
    from ladderboard.board._model import WebhookFormat as WebhookFormat
    from ladderboard.board._people import Erased as Erased
    from ladderboard.board._people import TeamWithToken
    from ladderboard.board._people import VerifiedIdentity as VerifiedIdentity
    from ladderboard.board._repository import BOARD_SCHEMA as BOARD_SCHEMA
    from ladderboard.board._repository import DueDelivery as DueDelivery
    from ladderboard.board._repository import count_boards as count_boards
    from ladderboard.board._repository import list_books as list_books
    from ladderboard.board._repository import list_due_deliveries as list_due_deliveries
    from ladderboard.board._repository import read_signing_key as read_signing_key
    from ladderboard.board._repository import sample_key as sample_key
    from ladderboard.board._repository import waiting_slugs as waiting_slugs
    from ladderboard.board._resolution import describe_sizes as describe_sizes
    from ladderboard.board._rules import (
        Baseline,
        DisplayRules,
        FileRules,
        FinalsRules,
        PhaseRules,
        RateLimitRules,
        Rules,
        read_rules,
    )
    from ladderboard.board._rules import past_deadline as past_deadline
    from ladderboard.board._rules import read_yaml as read_yaml
    from ladderboard.board._store import (
        DatabaseStore,
        FolderStore,
        MixedStore,
        PreparedFile,
        SubmissionStore,
    )
    from ladderboard.board._submissions import (
        AuthorizedUpload,
        IncomingSubmission,
        ParseSubmission,
        SubmissionAnswer,
        SubmissionRequest,
    )
    from ladderboard.board._view import View
    from ladderboard.board._webhooks import Delivery as Delivery
    from ladderboard.board._webhooks import DeliveryResult as DeliveryResult
    from ladderboard.board._webhooks import WebhookWithSecret as WebhookWithSecret
    from ladderboard.board._webhooks import announce_deadlines as announce_deadlines
    from ladderboard.board._webhooks import claim_and_sign_deliveries as claim_and_sign_deliveries
    from ladderboard.board._webhooks import delete_old_deliveries as delete_old_deliveries
    from ladderboard.board._webhooks import record_delivery_results as record_delivery_results

__all__ = [
    "PUBLIC",
    "AuthorizedUpload",
    "Baseline",
    "Board",
    "BoardFolder",
    "Boards",
    "CachedSummary",
    "Caller",
    "DatabaseStore",
    "DisplayRules",
    "FileRules",
    "FinalsRules",
    "FolderStore",
    "IncomingSubmission",
    "MixedStore",
    "ParseSubmission",
    "PhaseRules",
    "PreparedFile",
    "Quota",
    "QuotaLimit",
    "RateLimitRules",
    "Report",
    "Role",
    "Rules",
    "SubmissionAnswer",
    "SubmissionRequest",
    "SubmissionStore",
    "TeamWithToken",
    "View",
    "check_board",
    "check_permission",
    "check_text",
    "dump_board",
    "has_useful_intervals",
    "hash_token",
    "is_shared",
    "open_boards",
    "read_folder",
    "read_rules",
    "restore_board",
    "write_board_bundle",
]

# Imported on first use: a client needs the documents of the API only, and a server no backups.
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "_access": (
            "Caller",
            "PUBLIC",
            "Quota",
            "QuotaLimit",
            "Role",
            "check_permission",
            "check_text",
            "comparable_name",
            "hash_token",
        ),
        "_amendments": (
            "compare_with_folder",
            "count_changed_labels",
            "diff_rules",
            "differing_parts",
            "read_corrected_labels",
        ),
        "_backup": (
            "BackedUpBoard",
            "Backup",
            "BackupCheck",
            "BackupGap",
            "back_up",
            "check_backup",
            "check_backup_folder",
            "compare_with_database",
            "dump_board",
            "find_backup",
            "prune_backups",
            "restore_backup",
            "restore_board",
        ),
        "_boards": (
            "Board",
            "Boards",
            "CachedSummary",
            "SERVER",
            "is_shared",
            "open_boards",
            "open_storage",
            "submit_baselines",
        ),
        "_check": ("Report", "check_board"),
        "_finals": ("has_useful_intervals", "write_board_bundle"),
        "_folder": (
            "BoardFolder",
            "import_codabench",
            "import_huggingface",
            "import_kaggle",
            "read_data_files",
            "read_folder",
            "write_example_board",
        ),
        "_model": (
            "BestRelease",
            "BoardInfo",
            "BoardPhase",
            "BoardRecord",
            "BoardStatus",
            "BoardTerms",
            "DataFileRow",
            "DataList",
            "FileLimits",
            "FinalRanking",
            "FinalRankingRow",
            "Id",
            "Leaderboard",
            "LeaderboardRow",
            "LedgerHead",
            "LimitStatus",
            "ListedTeam",
            "ListedToken",
            "ListedWebhook",
            "MetricBound",
            "MetricDisplay",
            "MetricRelease",
            "Person",
            "RateLimit",
            "ReceiptFields",
            "ReplyDisplay",
            "SubmissionInfo",
            "SubmissionReply",
            "TeamCredentials",
            "TeamInvitation",
            "TeamMember",
            "TeamMembers",
            "TeamRef",
            "TeamStatus",
            "WebhookEvent",
            "WebhookFormat",
        ),
        "_people": ("Erased", "TeamWithToken", "VerifiedIdentity"),
        "_repository": (
            "BOARD_SCHEMA",
            "DueDelivery",
            "count_boards",
            "list_books",
            "list_due_deliveries",
            "read_signing_key",
            "sample_key",
            "waiting_slugs",
        ),
        "_resolution": ("describe_sizes",),
        "_rules": (
            "Baseline",
            "DisplayRules",
            "FileRules",
            "FinalsRules",
            "PhaseRules",
            "RateLimitRules",
            "Rules",
            "past_deadline",
            "read_rules",
            "read_yaml",
        ),
        "_store": ("DatabaseStore", "FolderStore", "MixedStore", "PreparedFile", "SubmissionStore"),
        "_submissions": (
            "AuthorizedUpload",
            "IncomingSubmission",
            "ParseSubmission",
            "SubmissionAnswer",
            "SubmissionRequest",
        ),
        "_view": ("View",),
        "_webhooks": (
            "Delivery",
            "DeliveryResult",
            "WebhookWithSecret",
            "announce_deadlines",
            "claim_and_sign_deliveries",
            "delete_old_deliveries",
            "record_delivery_results",
        ),
    },
)
