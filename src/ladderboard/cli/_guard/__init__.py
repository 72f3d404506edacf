"""``ladderboard guard``, ``gate`` and ``grade``: answers about hidden labels, within a budget."""

from collections.abc import Callable

from ladderboard.cli._app import load_command, make_group

__all__ = ["app", "find_simple_command"]

_HELP = """Keep labels behind a budget, in one file, and ask about models.

Exit codes: 0 done or answered; 1 not improved, with ask --fail-unless-improved; 2 invalid
arguments; 3 the budget is spent or the guard is closed; 4 its file is damaged, or storage failed. A
refusal costs no question and changes nothing.
"""


_IMPORT_PATHS = {
    "create": "_guard._create:create",
    "ask": "_guard._ask:ask",
    "status": "_guard._status:status",
    "export": "_guard._export:export",
    "restore": "_guard._export:restore",
    "backup": "_guard._export:backup",
    "serve": "_guard._serve:serve",
}

app = make_group(
    "guard",
    _HELP,
    _IMPORT_PATHS,
    {
        "create": "Create a guard's file from labels.",
        "ask": "Ask about a model by its predictions.",
        "status": "Show budget, best, ladders and certificate.",
        "export": "Write the public side of the ledger.",
        "restore": "Continue with an older copy of the file.",
        "serve": "Answer over HTTP or a Unix socket.",
    },
)


def find_simple_command(words: list[str]) -> Callable[..., None] | None:
    """Return the function of a command that ``parse_simple_arguments`` can parse, or None."""
    if not words or words[0] not in _IMPORT_PATHS or words[0] == "serve":
        return None
    command: Callable[..., None] = load_command(_IMPORT_PATHS[words[0]])
    return command
