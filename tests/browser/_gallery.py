"""What is taken pictures of: every page, as whoever it is made for, in the states it can be in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from _visitor import Visitor
    from _world import World

__all__ = ["GALLERY", "Picture"]


@dataclass(frozen=True)
class Picture:
    """A page: its name, its path, who looks, and what they do before the picture is taken."""

    name: str
    path: str
    who: str = "public"
    do: Callable[[Visitor, World], None] = lambda visitor, world: None
    statuses: tuple[int, ...] = ()
    """Refusals that come on the way."""
    slow: bool = False
    """Whether it takes long; what is tested of it is in a file of its own."""

    def token(self, world: World) -> str | None:
        """Return the token of whoever looks."""
        if self.who == "public":
            return None
        if self.who == "organiser":
            return world.live_server.organiser
        return world[self.path.split("/")[2]].teams[0].token


def _send(visitor: Visitor, body: bytes) -> None:
    file = {"name": "predictions.csv", "mimeType": "text/csv", "buffer": body}
    visitor.page.set_input_files("input[type=file]", file)
    visitor.page.click("form[enctype] button")
    visitor.page.wait_for_selector("[role=status], [role=alert]")


def _good(visitor: Visitor, world: World) -> None:
    _send(visitor, world["leaves"].predict(0.1))


def _bad(visitor: Visitor, world: World) -> None:
    lines = world["leaves"].predict(0.1).decode().splitlines()
    lines = [*lines[:40], *lines[300:], lines[500], lines[501], "leaf-9999,oak"]
    _send(visitor, "\n".join([*lines[:-9], "leaf-0041,hornbeam", *lines[-9:]]).encode())


def _join(visitor: Visitor, world: World) -> None:
    at = len(world["leaves"].board.as_seen_by(world["leaves"].caller).teams())
    visitor.page.fill("#name", f"Newcomers {at}")
    visitor.page.click("main form button")
    visitor.page.wait_for_selector(".token")


def _rotate(visitor: Visitor, world: World) -> None:
    visitor.page.click("summary:has-text('Replace it')")
    visitor.page.click("button:has-text('Make a new token')")
    token = visitor.page.wait_for_selector(".token").inner_text().strip()
    teams = world["birdsong"].teams
    teams[0] = teams[0]._replace(token=token)


def _invite(visitor: Visitor, world: World) -> None:
    visitor.page.click("button:has-text('Make an invitation')")
    visitor.page.wait_for_selector("#made")


def _unfold(visitor: Visitor, world: World) -> None:
    for each in visitor.page.locator("summary").all():
        each.click()


def _amend_badly(visitor: Visitor, world: World) -> None:
    visitor.page.click("summary:has-text('Deadline and phases')")
    visitor.page.fill("#in-phase_0_end", "next friday")
    visitor.page.click("button:has-text('Amend the times')")
    visitor.page.wait_for_selector("[role=alert]")


def _team(visitor: Visitor, world: World) -> None:
    visitor.page.click("a:has-text('Evergreen')")
    visitor.page.wait_for_selector("#affairs")


def _watch_games(visitor: Visitor, world: World) -> None:
    visitor.page.click("button:has-text('Play')")
    visitor.page.wait_for_selector("progress")
    visitor.page.click("button:has-text('Cancel')")
    visitor.page.wait_for_selector(".notice")


def _play_games(visitor: Visitor, world: World) -> None:
    if visitor.page.locator("#found").count() == 0:
        visitor.page.click("button:has-text('Play')")
        visitor.page.wait_for_selector("#found", timeout=300_000)


GALLERY = (
    Picture("boards", "/"),
    Picture("board", "/boards/leaves"),
    Picture("board-team", "/boards/leaves", "team", _unfold),
    Picture("board-organiser", "/boards/mushrooms", "organiser"),
    Picture("board-hidden", "/boards/mushrooms", slow=True),
    Picture("board-frozen", "/boards/birdsong", slow=True),
    Picture("board-closed", "/boards/beetles-2026"),
    Picture("board-empty", "/boards/seedlings", slow=True),
    Picture("board-digits", "/boards/digits", slow=True),
    Picture("play", "/boards/digits/play"),
    Picture(
        "play-other", "/boards/digits/play?n=1000&questions=1000&noise=none", do=_unfold, slow=True
    ),
    Picture("play-problem", "/boards/digits/play?n=7", slow=True),
    Picture("login", "/login"),
    Picture("refusal", "/boards/nowhere", statuses=(404,)),
    Picture("submit-public", "/boards/leaves/submit", slow=True),
    Picture("submit", "/boards/leaves/submit", "team"),
    Picture("submit-reply", "/boards/leaves/submit", "team", _good),
    Picture("submit-refused", "/boards/leaves/submit", "team", _bad, (422,)),
    Picture("submit-organiser", "/boards/leaves/submit", "organiser", slow=True),
    Picture("submit-closed", "/boards/beetles-2026/submit", "team", slow=True),
    Picture("submit-token", "/boards/birdsong/submit", "team", _rotate, slow=True),
    Picture("join", "/boards/seedlings/join"),
    Picture("join-token", "/boards/leaves/join", do=_join, slow=True),
    Picture("organise", "/boards/leaves/organise", "organiser"),
    Picture("organise-all", "/boards/digits/organise", "organiser", _unfold),
    Picture("organise-token", "/boards/seedlings/organise", "organiser", _invite, slow=True),
    Picture(
        "organise-refused", "/boards/leaves/organise", "organiser", _amend_badly, (422,), slow=True
    ),
    Picture("organise-closed", "/boards/beetles-2026/organise", "organiser", slow=True),
    Picture("organise-team", "/boards/leaves/organise", "organiser", _team, slow=True),
    Picture("attack-cancelled", "/boards/digits/attack", "organiser", _watch_games, slow=True),
    Picture("attack", "/boards/digits/attack", "organiser", _play_games, slow=True),
)
