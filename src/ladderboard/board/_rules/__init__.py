"""The rules of a board: the model, reading ``board.yaml``, and amendments."""

from ladderboard.board._rules._model import (
    SECRET_VISIBILITIES,
    Rules,
    format_further,
    past_deadline,
    read_declared_columns,
    read_rules,
    serialize_releases,
    serialize_values,
    warn_of_amendment,
)
from ladderboard.board._rules._parse import MAX_TERMS, RuleProblems
from ladderboard.board._rules._parts import (
    Baseline,
    DisplayRules,
    FileRules,
    FinalsRules,
    PhaseRules,
    PrizeRules,
    RateLimitRules,
    SignInRules,
    TermsRules,
    describe_release,
    round_for_display,
    round_release,
    serialize_bound,
    to_metric,
)
from ladderboard.board._rules._text import read_long_text
from ladderboard.board._rules._yaml import read_yaml

__all__ = [
    "MAX_TERMS",
    "SECRET_VISIBILITIES",
    "Baseline",
    "DisplayRules",
    "FileRules",
    "FinalsRules",
    "PhaseRules",
    "PrizeRules",
    "RateLimitRules",
    "RuleProblems",
    "Rules",
    "SignInRules",
    "TermsRules",
    "describe_release",
    "format_further",
    "past_deadline",
    "read_declared_columns",
    "read_long_text",
    "read_rules",
    "read_yaml",
    "round_for_display",
    "round_release",
    "serialize_bound",
    "serialize_releases",
    "serialize_values",
    "to_metric",
    "warn_of_amendment",
]
