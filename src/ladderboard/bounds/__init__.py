"""Bounds: certificates for released values, plans, and the paper's theorem.

A *certificate* is an interval for the best true risk so far, with its confidence and assumptions.
It counts every transcript that a mechanism can produce and prices the observed one in nats. The
proofs are in docs/explanation/certificates.md. The paper's own theorem is included, with its
constants. Paired tests compare two models on the same examples: docs/explanation/gate.md.
"""

from typing import TYPE_CHECKING

from ladderboard._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ladderboard.bounds._alternatives import ALTERNATIVES as ALTERNATIVES
    from ladderboard.bounds._alternatives import FEW_CHANGES as FEW_CHANGES
    from ladderboard.bounds._alternatives import MEASURED as MEASURED
    from ladderboard.bounds._alternatives import WORST_CASE as WORST_CASE
    from ladderboard.bounds._alternatives import Alternative as Alternative
    from ladderboard.bounds._alternatives import ladder_after_changes as ladder_after_changes
    from ladderboard.bounds._alternatives import typical_changes as typical_changes
    from ladderboard.bounds._best_ladder import best_ladder, nonadaptive_error
    from ladderboard.bounds._certificate import AS_PRINTED as AS_PRINTED
    from ladderboard.bounds._certificate import NO_THEOREM as NO_THEOREM
    from ladderboard.bounds._certificate import NOTHING_TO_PLAN_WITH as NOTHING_TO_PLAN_WITH
    from ladderboard.bounds._certificate import Certificate
    from ladderboard.bounds._certify import CORRECTED as CORRECTED
    from ladderboard.bounds._certify import certificate, read_beta, read_count, vacuous_certificate
    from ladderboard.bounds._certify import certificate_of_record as certificate_of_record
    from ladderboard.bounds._gate_plan import GatePlan, GatePlanRow, gate_plan
    from ladderboard.bounds._kl import fresh_sample_interval
    from ladderboard.bounds._kl import kl_lower as kl_lower
    from ladderboard.bounds._kl import kl_upper as kl_upper
    from ladderboard.bounds._paired import LookPrices as LookPrices
    from ladderboard.bounds._paired import Outcome as Outcome
    from ladderboard.bounds._paired import PairedEvidence as PairedEvidence
    from ladderboard.bounds._paired import PairedTest as PairedTest
    from ladderboard.bounds._paired import TestForm as TestForm
    from ladderboard.bounds._paired import log_bets as log_bets
    from ladderboard.bounds._paired import log_convex_tail as log_convex_tail
    from ladderboard.bounds._paired import log_sign_tail as log_sign_tail
    from ladderboard.bounds._paired import price_with_beta as price_with_beta
    from ladderboard.bounds._paired import proven_better, required_net_wins
    from ladderboard.bounds._paper import PaperBound, Privacy, paper
    from ladderboard.bounds._plan import Plan, PlanRow, plan
    from ladderboard.bounds._ranks import MAX_COMPARED_MODELS as MAX_COMPARED_MODELS
    from ladderboard.bounds._ranks import RankComparison as RankComparison
    from ladderboard.bounds._ranks import RankRange, rank_ranges
    from ladderboard.bounds._ranks import compare_teams as compare_teams
    from ladderboard.bounds._ranks import mean_ranks as mean_ranks
    from ladderboard.bounds._resolution import MORE_ROWS as MORE_ROWS
    from ladderboard.bounds._resolution import RECORDS as RECORDS
    from ladderboard.bounds._resolution import TYPICAL_LOSS as TYPICAL_LOSS
    from ladderboard.bounds._resolution import Resolution as Resolution
    from ladderboard.bounds._resolution import describe_gains as describe_gains
    from ladderboard.bounds._resolution import describe_resolution as describe_resolution
    from ladderboard.bounds._resolution import resolution as resolution
    from ladderboard.bounds._resolution import unknown_standard_error as unknown_standard_error
    from ladderboard.mechanisms import VisibleChange

__all__ = [
    "Certificate",
    "GatePlan",
    "GatePlanRow",
    "PaperBound",
    "Plan",
    "PlanRow",
    "Privacy",
    "RankRange",
    "VisibleChange",
    "best_ladder",
    "certificate",
    "fresh_sample_interval",
    "gate_plan",
    "nonadaptive_error",
    "paper",
    "plan",
    "proven_better",
    "rank_ranges",
    "read_beta",
    "read_count",
    "required_net_wins",
    "vacuous_certificate",
]

# Imported on first use: a client of a board only reads certificates.
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "_alternatives": (
            "ALTERNATIVES",
            "Alternative",
            "FEW_CHANGES",
            "MEASURED",
            "WORST_CASE",
            "ladder_after_changes",
            "typical_changes",
        ),
        "_best_ladder": ("best_ladder", "nonadaptive_error"),
        "_certificate": ("AS_PRINTED", "Certificate", "NOTHING_TO_PLAN_WITH", "NO_THEOREM"),
        "_certify": (
            "CORRECTED",
            "certificate",
            "certificate_of_record",
            "read_beta",
            "read_count",
            "vacuous_certificate",
        ),
        "_gate_plan": ("GatePlan", "GatePlanRow", "gate_plan"),
        "_kl": ("fresh_sample_interval", "kl_lower", "kl_upper"),
        "_paired": (
            "LookPrices",
            "Outcome",
            "PairedEvidence",
            "PairedTest",
            "TestForm",
            "log_bets",
            "log_convex_tail",
            "log_sign_tail",
            "price_with_beta",
            "proven_better",
            "required_net_wins",
        ),
        "_paper": ("PaperBound", "Privacy", "paper"),
        "_plan": ("Plan", "PlanRow", "plan"),
        "_ranks": (
            "MAX_COMPARED_MODELS",
            "RankComparison",
            "RankRange",
            "compare_teams",
            "mean_ranks",
            "rank_ranges",
        ),
        "_resolution": (
            "MORE_ROWS",
            "RECORDS",
            "Resolution",
            "TYPICAL_LOSS",
            "describe_gains",
            "describe_resolution",
            "resolution",
            "unknown_standard_error",
        ),
        "ladderboard.mechanisms": ("VisibleChange",),
    },
)
