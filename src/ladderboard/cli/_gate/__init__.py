"""``ladderboard gate``: paired verdicts about candidates, as often as the budget allows."""

from ladderboard.cli._app import make_group

__all__ = ["app"]

_HELP = """Compare candidates with an incumbent on hidden examples, as often as the budget allows.

Exit codes: 0 done, or as required; 1 what was required was not shown; 2 invalid arguments or
predictions; 3 no looks are left or the gate is closed; 4 its file is damaged, or storage failed; 5
cannot tell what was required. A refusal costs no look and changes nothing.
"""

app = make_group(
    "gate",
    _HELP,
    {
        "create": "_gate._create:create",
        "promote": "_gate._check:promote",
        "check": "_gate._check:check",
        "status": "_gate._status:status",
        "export": "_guard._export:export",
        "restore": "_guard._export:restore",
        "backup": "_guard._export:backup",
        "serve": "_guard._serve:serve",
    },
    {
        "create": "Create a gate's file from labels or ids.",
        "promote": "Make a model the incumbent.",
        "check": "Compare a candidate with the incumbent.",
        "status": "Show looks, incumbent and verdicts.",
        "export": "Write the public side of the ledger.",
        "restore": "Continue with an older copy of the file.",
        "backup": "Copy the file while it is in use.",
        "serve": "Answer over HTTP or a Unix socket.",
    },
)
