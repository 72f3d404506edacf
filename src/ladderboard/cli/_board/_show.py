"""``ladderboard board list`` and ``show``."""

import time
from typing import TYPE_CHECKING, Any

from ladderboard._formatting import (
    format_confidence,
    format_decimals,
    format_fixed,
    format_interval,
    format_promise_beside,
    format_rank,
    format_status,
    round_up,
    shared_decimals,
)
from ladderboard.cli._board._close import echo_finals
from ladderboard.cli._database import (
    DEFAULT_DATABASE,
    Database,
    KeyFile,
    Slug,
    open_board,
    open_database,
    organiser,
)
from ladderboard.cli._options import AsJson
from ladderboard.cli._output import echo, echo_json, echo_table, format_minute, wrap_lines
from ladderboard.errors import NotFound

if TYPE_CHECKING:
    from ladderboard.board import DisplayRules
    from ladderboard.bounds import Certificate

_MAX_ROWS = 20


def list_(
    *,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """List all boards of the database."""
    with open_database(database, key_file) as boards:
        summaries = [
            open_board(boards, slug).as_seen_by(organiser()).summary() for slug in boards.list()
        ]
    if as_json:
        echo_json({"boards": summaries})
        return
    if not summaries:
        echo("There are no boards yet. Create one with: ladderboard board create DIR")
        return
    echo_table(
        ("board", "title", "status", "teams", "submissions", "deadline (UTC)"),
        [
            (
                row["slug"],
                row["title"],
                format_status(row, time.time()),
                f"{row['registered']:,} of {row['teams']:,}",
                f"{row['used']:,} of {row['questions']:,}",
                format_minute(row["deadline"]),
            )
            for row in summaries
        ],
        right=("teams", "submissions"),
    )


def show(
    board: Slug,
    *,
    database: Database = DEFAULT_DATABASE,
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Show a board as its organiser sees it."""
    with open_database(database, key_file) as boards:
        opened = open_board(boards, board)
        view, display = opened.as_seen_by(organiser()), opened.rules.display
        summary, standings = view.summary(), view.leaderboard(limit=_MAX_ROWS)
        bound = view.certificate()
        try:
            final = view.finals()
        except NotFound:
            final = None
    if as_json:
        echo_json({"board": summary, "leaderboard": standings, "finals": final})
        return

    paragraphs = [
        *_describe_board(summary, format_status(summary, time.time())),
        _describe_bound(
            bound,
            display,
            summary["best"]["loss"],
            summary["bound"],
        ),
    ]
    echo(
        *(line for paragraph in paragraphs for line in wrap_lines(paragraph, indent="  ", first=""))
    )
    echo(f"commitment {summary['commitment']}", f"head       {summary['head']['hash']}", "")
    _echo_standings(board, standings, display)
    if final is not None:
        echo("")
        echo_finals(final, opened.rules)


def _describe_bound(
    bound: "Certificate", display: "DisplayRules", best: float | None, described: dict[str, Any]
) -> str:
    """Return what the certificate says about the best model, in the metric of the standings.

    ``described`` is the same as the API has it.
    """
    from ladderboard.bounds import AS_PRINTED, NO_THEOREM  # noqa: PLC0415 - keeps --help fast

    if bound.theorem == NO_THEOREM:
        return f"There is no certificate for the best model. {' '.join(bound.assumptions[:1])}"
    if best is None:
        return "There is no certificate yet, because nothing was released."
    low, high = bound.low, bound.high
    if bound.differences:
        low, high = max(best + low, bound.span[0]), min(best + high, bound.span[1])
    sure = f"With confidence {format_confidence(bound.beta)}"
    if bound.theorem == AS_PRINTED:
        sure = f"Except with probability of a constant times {bound.beta:g}"
    lower, upper = sorted((display.metric_value(low), display.metric_value(high)))
    limit = described["overfitting"]
    if display.is_narrow(lower, upper):
        ends = format_interval(lower, upper, display.digits)
        promise = format_promise_beside(
            ends,
            display.text(best),
            limit,
            described["hidden"],
            higher_is_better=display.direction == "higher",
        )
        listed = ", ".join(ends)
        return f"{sure}, the true {display.name} of the best model lies in [{listed}]. {promise}"
    if limit is not None and display.is_narrow(-limit, limit):
        return f"{sure}, the score shown is at most {round_up(limit, 2)} too good."
    return (
        f"There is no useful guarantee for the true {display.name} of the best model: there are "
        "too few examples for this many submissions."
    )


_REGISTRATION = {
    "open": "Anyone can register a team.",
    "invited": "Teams join by invitation.",
    "organiser": "The organiser adds teams.",
    "sign_in": "People sign in to register a team.",
}


def _describe_board(summary: dict[str, Any], status: str) -> list[str]:
    passed = status == "deadline passed"
    status = "past its deadline" if passed else status
    verb = "ended" if passed else "ends"
    end = (
        ""
        if summary["deadline"] is None
        else f"; it {verb} at {format_minute(summary['deadline'])} UTC"
    )
    ladder = "All teams share one" if summary["ladder"] == "board" else "Each team has its own"
    return [
        f"{summary['slug']}: {summary['title']}",
        (
            f"It is {status}{end}. Standings are {summary['visibility']}. "
            f"{_REGISTRATION[summary['registration']]} {ladder} ladder."
        ),
        (
            f"{summary['used']:,} of {summary['questions']:,} submissions used; "
            f"{summary['registered']:,} of {summary['teams']:,} teams, "
            f"{summary['share']:,} submissions each."
        ),
    ]


def _echo_standings(slug: str, standings: dict[str, Any], display: "DisplayRules") -> None:
    by_mean = standings["ranked_by"] == "mean_rank"
    scores = [row["display"] for row in (*standings["rows"], *standings["declared"])]
    decimals = shared_decimals((score for score in scores if score is not None), display.digits)
    rows: list[tuple[object, ...]] = [
        (
            "baseline" if row["baseline"] else format_rank(row["rank"], tied=row["tied"]) or None,
            row["team"]["name"],
            "none yet" if row["display"] is None else format_fixed(row["display"], decimals),
            f"{row['submissions']:,}",
            format_minute(row["since"]),
            *(
                None if one["display"] is None else format_decimals(one["display"], one["digits"])
                for one in row["metrics"]
            ),
            *([row["mean_rank"] and f"{row['mean_rank']:.4g}"] if by_mean else []),
        )
        for row in standings["rows"]
    ]
    names = [metric["name"] for row in standings["rows"][:1] for metric in row["metrics"]]
    names += ["mean rank"] if by_mean else []
    rows += [
        (
            "declared",
            row["name"],
            format_fixed(row["display"], decimals),
            None,
            row["source"] or None,
            *[None] * len(names),
        )
        for row in standings["declared"]
    ]
    if not rows:
        command = f"ladderboard submit {slug} -f FILE"
        echo(f"There are no submissions yet. A team submits with: {command}")
        return
    echo_table(
        ("rank", "team", display.name, "submissions", "since (UTC)", *names),
        rows,
        right=("rank", display.name, "submissions", *names),
    )
    if standings["next"] is not None:
        echo(f"These are the first {_MAX_ROWS}; all are on the board's page.")
