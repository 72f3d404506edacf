"""Every page in its possible states, for tests and screenshots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from unittest.mock import patch

from ladderboard.errors import StorageFailed
from ladderboard.server._pages._organise._texts import SECTION_TITLES

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.browser.example_boards import ExampleBoards
    from support.browser.visitor import Visitor


@dataclass(frozen=True)
class PageState:
    """A page as a role sees it, after some actions."""

    name: str
    path: str
    role: str = "public"
    prepare: Callable[[Visitor, ExampleBoards], None] = lambda visitor, boards: None
    """Actions before the page is in this state."""
    statuses: tuple[int, ...] = ()
    """Error statuses that the actions provoke."""
    slow: bool = False
    """Whether it takes long; another test covers what it does."""

    def token(self, boards: ExampleBoards) -> str | bytes | None:
        """Return a token of the role, or the hash of a person's session."""
        if self.role == "person":
            return boards[self.path.split("/")[2]].session
        if self.role == "public":
            return None
        if self.role == "organiser":
            return boards.live_server.organiser
        return boards[self.path.split("/")[2]].teams[0].token


def _submit(visitor: Visitor, body: bytes, button: str = "Submit") -> None:
    file = {"name": "predictions.csv", "mimeType": "text/csv", "buffer": body}
    visitor.page.set_input_files("input[type=file]", file)
    visitor.page.click(f"form[enctype] button:has-text('{button}')")
    visitor.page.wait_for_selector("#reply")


def _submit_valid(visitor: Visitor, boards: ExampleBoards) -> None:
    _submit(visitor, boards["leaves"].make_predictions(0.1))


def _check_valid(visitor: Visitor, boards: ExampleBoards) -> None:
    _submit(visitor, boards["leaves"].make_predictions(0.1), "Check only")


def submit_invalid(visitor: Visitor, boards: ExampleBoards) -> None:
    lines = boards["leaves"].make_predictions(0.1).decode().splitlines()
    lines = [*lines[:40], *lines[300:], lines[500], lines[501], "leaf-9999,oak"]
    _submit(visitor, "\n".join([*lines[:-9], "leaf-0041,hornbeam", *lines[-9:]]).encode())


def _sign_in_wrongly(visitor: Visitor, _boards: ExampleBoards) -> None:
    visitor.page.fill("#token", "lb_team_unknown")
    visitor.page.click("main form button")
    visitor.page.wait_for_selector("[role=alert]")


def _join_wrongly(visitor: Visitor, _boards: ExampleBoards) -> None:
    visitor.page.fill("#name", "Newcomers")
    visitor.page.fill("#invitation", "lb_invitation_used")
    visitor.page.click("main form button")
    visitor.page.wait_for_selector("[role=alert]")


def _send_expired_form(visitor: Visitor, _boards: ExampleBoards) -> None:
    visitor.page.evaluate("document.querySelector('main [name=csrf]').value = 'old'")
    visitor.page.fill("#token", "lb_team_unknown")
    visitor.page.click("main form button")
    visitor.page.wait_for_selector(".refusal")


def _lose_database(visitor: Visitor, boards: ExampleBoards) -> None:
    lost = StorageFailed("The connection is lost.")
    with patch.object(boards.live_server.boards, "open", side_effect=lost):
        visitor.open("/boards/leaves/rules")


def _join(visitor: Visitor, boards: ExampleBoards) -> None:
    count = len(boards["leaves"].board.as_seen_by(boards["leaves"].caller).teams())
    visitor.page.fill("#name", f"Newcomers {count}")
    visitor.page.click("main form button")
    visitor.page.wait_for_selector(".token")


def _rotate_token(visitor: Visitor, boards: ExampleBoards) -> None:
    visitor.page.click("summary:has-text('Your token')")
    visitor.page.click("button:has-text('Make a new token')")
    token = visitor.page.wait_for_selector(".token").inner_text().strip()
    teams = boards["birdsong"].teams
    teams[0] = teams[0]._replace(token=token)


def _invite(visitor: Visitor, boards: ExampleBoards) -> None:
    visitor.page.click("button:has-text('Make an invitation')")
    visitor.page.wait_for_selector("#made")


def _open_details(visitor: Visitor, boards: ExampleBoards) -> None:
    for summary in visitor.page.locator("summary").all():
        summary.click()


def _open_next_page(visitor: Visitor, boards: ExampleBoards) -> None:
    visitor.page.click("a:has-text('Next page')")
    visitor.page.wait_for_selector("a:has-text('First page')")


def _amend_invalid(visitor: Visitor, boards: ExampleBoards) -> None:
    visitor.page.fill("#in-phase_0_end", "next friday")
    visitor.page.click("button:has-text('Save')")
    visitor.page.wait_for_selector("[role=alert]")


def _open_team(visitor: Visitor, boards: ExampleBoards) -> None:
    visitor.page.click("a:has-text('Evergreen')")
    visitor.page.wait_for_selector("#rotate")


PAGE_STATES = (
    PageState("boards", "/"),
    PageState("board", "/boards/leaves"),
    PageState("board-team", "/boards/leaves", "team", _open_details),
    PageState("leaderboard", "/boards/leaves/leaderboard"),
    PageState("leaderboard-team", "/boards/leaves/leaderboard", "team"),
    PageState("leaderboard-closed", "/boards/beetles-2026/leaderboard"),
    PageState("leaderboard-public", "/boards/beetles-2026/leaderboard?view=public", slow=True),
    PageState("leaderboard-page", "/boards/leaves/leaderboard", "team", _open_next_page, slow=True),
    PageState("leaderboard-digits", "/boards/digits/leaderboard", slow=True),
    PageState("leaderboard-frozen", "/boards/birdsong/leaderboard", slow=True),
    PageState("leaderboard-empty", "/boards/seedlings/leaderboard", slow=True),
    PageState("rules", "/boards/leaves/rules"),
    PageState("verify", "/boards/leaves/verify"),
    PageState("verify-closed", "/boards/beetles-2026/verify", slow=True),
    PageState("board-organiser", "/boards/mushrooms", "organiser"),
    PageState("board-hidden", "/boards/mushrooms", slow=True),
    PageState("board-frozen", "/boards/birdsong", slow=True),
    PageState("board-closed", "/boards/beetles-2026"),
    PageState("board-empty", "/boards/seedlings", slow=True),
    PageState("board-digits", "/boards/digits", slow=True),
    PageState("play", "/boards/digits/play"),
    PageState(
        "play-other",
        "/boards/digits/play?n=1000&questions=1000&noise=none",
        prepare=_open_details,
        slow=True,
    ),
    PageState("play-problem", "/boards/digits/play?n=7", slow=True),
    PageState("login", "/login"),
    PageState("login-refused", "/login", prepare=_sign_in_wrongly, statuses=(401,), slow=True),
    PageState("refusal", "/boards/nowhere", statuses=(404,)),
    PageState("refusal-role", "/boards/leaves/organise", "team", statuses=(403,), slow=True),
    PageState("refusal-token", "/boards/leaves/organise", statuses=(401,)),
    PageState("refusal-form", "/login", prepare=_send_expired_form, statuses=(403,)),
    PageState("refusal-failed", "/login", prepare=_lose_database, statuses=(503,)),
    PageState("submit-public", "/boards/leaves/submit", slow=True),
    PageState("submit", "/boards/leaves/submit", "team"),
    PageState("submit-checked", "/boards/leaves/submit", "team", _check_valid, slow=True),
    PageState("submit-reply", "/boards/leaves/submit", "team", _submit_valid),
    PageState("submit-refused", "/boards/leaves/submit", "team", submit_invalid, (422,)),
    PageState("submit-organiser", "/boards/leaves/submit", "organiser", slow=True),
    PageState("submit-closed", "/boards/beetles-2026/submit", "team", slow=True),
    PageState("submit-token", "/boards/birdsong/submit", "team", _rotate_token, slow=True),
    PageState("join", "/boards/seedlings/join"),
    PageState(
        "join-refused",
        "/boards/seedlings/join",
        prepare=_join_wrongly,
        statuses=(403,),
        slow=True,
    ),
    PageState("data", "/boards/leaves/data"),
    PageState("files", "/boards/digits/data", slow=True),
    PageState("join-sign-in", "/boards/clouds/join", slow=True),
    PageState("team", "/boards/meadow/team", "person", slow=True),
    PageState("terms", "/boards/meadow/terms", "person", slow=True),
    PageState("submit-terms", "/boards/meadow/submit", "person", slow=True),
    PageState("erase", "/boards/meadow/erase", "person", slow=True),
    PageState("join-token", "/boards/leaves/join", prepare=_join, slow=True),
    PageState("organise", "/boards/leaves/organise", "organiser"),
    PageState("organise-attention", "/boards/clouds/organise", "organiser"),
    PageState("organise-empty", "/boards/seedlings/organise", "organiser", slow=True),
    PageState("organise-teams", "/boards/leaves/organise/teams", "organiser"),
    PageState("organise-people", "/boards/clouds/organise/people", "organiser", _open_details),
    PageState("organise-activity", "/boards/leaves/organise/activity", "organiser"),
    PageState("organise-settings", "/boards/leaves/organise/settings", "organiser"),
    *(
        PageState(
            f"organise-{section}",
            f"/boards/clouds/organise/settings/{section}",
            "organiser",
            slow=True,
        )
        for section in SECTION_TITLES
    ),
    PageState(
        "organise-token", "/boards/seedlings/organise/invitations", "organiser", _invite, slow=True
    ),
    PageState(
        "organise-refused",
        "/boards/leaves/organise/settings/times",
        "organiser",
        _amend_invalid,
        (422,),
        slow=True,
    ),
    PageState("organise-closed", "/boards/beetles-2026/organise", "organiser", slow=True),
    PageState("organise-team", "/boards/leaves/organise/teams", "organiser", _open_team, slow=True),
)
