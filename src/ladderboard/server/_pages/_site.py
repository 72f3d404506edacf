"""Export of a closed board as a static site, a folder that any web server can host."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ladderboard._atomic_file import sync_path
from ladderboard._formatting import format_time
from ladderboard.board import PUBLIC, write_board_bundle
from ladderboard.errors import InvalidSetting, NotOpen, StorageFailed
from ladderboard.server._api import finals_csv
from ladderboard.server._pages._board import TabPlace, public_tab_variables
from ladderboard.server._pages._downloads import all_standings_csv, all_standings_json
from ladderboard.server._pages._rendering import none_if_hidden, render_public_page
from ladderboard.server._pages._static import static_content, wheel_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ladderboard.board import Board, View

LEDGER = "ledger.jsonl"
_STATIC_FILES = ("icon.svg", "style.css")
_FILE_NAMES = {
    "csv": "standings.csv",
    "json": "standings.json",
    "records": "records.json",
    "finals": "finals.json",
    "finals_csv": "finals.csv",
    "ledger": LEDGER,
    "json_board": "board.json",
    "board": "index.html",
    "leaderboard": "leaderboard.html",
    "public": "standings.html",
    "first": "standings.html",
    "rules": "rules.html",
    "verify": "verify.html",
}
# Like the server's, but without scripts, forms and requests; file: is for local copies.
_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self' file:; img-src 'self' file:; form-action 'none'; "
    "base-uri 'none'"
)
CHECKSUMS = "sha256sums.txt"
_ENTRIES_PER_READ = 1000  # ledger entries
_CLOSED_ENTRY = b'"kind":"closed"'


class Archive(NamedTuple):
    """What the pages of an archive say about it: when the board closed, and its bundle."""

    closed: str | None
    bundle: str | None
    labels: bool = False
    submissions: bool = False


def archive_static_files() -> Iterator[tuple[str, bytes]]:
    """Yield the static files that the pages need, and the wheel that checks the bundle."""
    yield from ((f"static/{name}", static_content(name)) for name in _STATIC_FILES)
    yield wheel_file()


def archive_pages(board: Board, archive: Archive) -> Iterator[tuple[str, bytes]]:
    """Yield the pages that only read: the overview, all pages of both rankings, and the rest."""
    now = int(board.book.environment.clock())
    writer = _ArchiveWriter(board, archive, now)
    for tab, name in (("overview", "board"), ("rules", "rules"), ("verify", "verify")):
        yield _FILE_NAMES[name], writer.render(tab, TabPlace())
    if writer.has_finals:
        for number in range(1, writer.finals_pages + 1):
            yield (
                _page_name("leaderboard", number),
                writer.render("leaderboard", TabPlace(page=number)),
            )
    number, cursor = 1, None
    while number == 1 or cursor is not None:
        place = TabPlace(cursor, number, view="public")
        following = _page_name("standings", number + 1)
        variables = public_tab_variables(board, "leaderboard", place, now)
        standings = variables["standings"]
        yield _page_name("standings", number), writer.write("leaderboard", variables, following)
        number, cursor = number + 1, None if standings is None else standings["next"]


def _page_name(kind: str, number: int) -> str:
    return f"{kind}.html" if number == 1 else f"{kind}-{number}.html"


class _ArchiveWriter:
    """Renders the pages of an archive, whose links are relative."""

    def __init__(self, board: Board, archive: Archive, now: int) -> None:
        self._board, self._archive, self._now = board, archive, now
        first = public_tab_variables(board, "leaderboard", TabPlace(), now)
        self.has_finals: bool = first["has_finals"]
        self.finals_pages: int = first["finals"]["pages"] if self.has_finals else 0

    def render(self, tab: str, place: TabPlace) -> bytes:
        """Return a page."""
        return self.write(tab, public_tab_variables(self._board, tab, place, self._now))

    def write(self, tab: str, variables: dict[str, Any], following: str = "") -> bytes:
        """Return a page with these template variables."""
        files = {**_FILE_NAMES, "next": following}
        if not self.has_finals:
            files["leaderboard"] = files["public"]
        pages = [_page_name("leaderboard", number + 1) for number in range(self.finals_pages)]
        overrides = {
            "archive": {
                **self._archive._asdict(),
                "files": files,
                "finals_pages": pages,
                "policy": _CONTENT_SECURITY_POLICY,
                "wheel": wheel_file()[0],
            },
            "root": "",
            "static": lambda name: f"static/{name}",
        }
        return render_public_page(f"{tab}.html", **{**variables, **overrides}).encode()


class Site(NamedTuple):
    """A site that was written."""

    folder: Path
    files: int
    head: str
    bundle: str | None

    def describe(self) -> dict[str, Any]:
        """Return the site as JSON-compatible values."""
        return {**self._asdict(), "folder": str(self.folder)}


def check_site(board: Board, to: Path, *, bundle: bool = True) -> None:
    """Refuse a folder that cannot be used, and a bundle that reveals more than the pages."""
    folder = Path(os.path.realpath(to))
    if folder == Path.cwd():
        raise InvalidSetting(f"{to} is the current folder; name another one. Nothing was changed.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidSetting(
            f"{to} exists and is not an empty folder; name a new or an empty one. Nothing was "
            "changed."
        )
    if not folder.parent.is_dir():
        raise InvalidSetting(f"There is no directory {to.parent} for {to.name}.")
    if board.rules.listing == "members":
        raise InvalidSetting(
            f"{board.slug} is for its members only. Let others see it first: ladderboard board "
            f"amend {board.slug} --set listing=unlisted"
        )
    visibility = board.row().visibility
    if bundle and visibility in {"hidden", "anonymous"}:
        raise InvalidSetting(
            f"{board.slug} is {visibility}, and its bundle would reveal what the page hides: "
            "team names and all answers. Give --no-bundle for a site that shows what the "
            "page shows, or let everybody see it first: ladderboard board amend "
            f"{board.slug} --set visibility=public"
        )


def write_site(
    board: Board,
    to: Path | str,
    *,
    bundle: bool = True,
    labels: bool = False,
    submissions: bool = False,
) -> Site:
    """Write everything that is public about a closed board into a new folder.

    The folder holds the board's public page, all downloads, and the bundle. Links are relative,
    and pages need no script and load nothing from other servers. The folder appears when it is
    complete.

    Parameters
    ----------
    bundle
        Include the bundle. It reveals what hidden and anonymous boards do not show, so it is
        refused for those.
    labels, submissions
        Include these in the bundle.
    """
    to = Path(to)
    if board.row().status != "closed":
        raise NotOpen(f"{board.slug} is not closed; its site can be written when it is.")
    check_site(board, to, bundle=bundle)
    folder = Path(os.path.realpath(to))
    draft_folder = folder.with_name(f".ladderboard-{secrets.token_hex(8)}")
    try:
        draft_folder.mkdir()
        before = board.cache_key()
        files = _write_files(
            board, draft_folder, bundle=bundle, labels=labels, submissions=submissions
        )
        if board.cache_key() != before:
            raise NotOpen(f"{board.slug} was changed while its site was written; write it again.")
        if folder.exists():
            shutil.copymode(folder, draft_folder)
            folder.rmdir()
        draft_folder.rename(folder)
        sync_path(folder.parent)
    except OSError as error:
        raise StorageFailed(f"{to} cannot be made: {error.strerror}.") from None
    finally:
        shutil.rmtree(draft_folder, ignore_errors=True)
    _, head = board.as_seen_by(PUBLIC).head()
    return Site(to, files, head, _bundle_name(board) if bundle else None)


def _bundle_name(board: Board) -> str:
    return f"{board.slug}.bundle"


def _write_files(
    board: Board, folder: Path, *, bundle: bool, labels: bool, submissions: bool
) -> int:
    """Write all files; return how many there are."""
    view, name = board.as_seen_by(PUBLIC), _bundle_name(board)
    closed = _write_ledger(view, folder / LEDGER)
    if bundle:
        write_board_bundle(board, folder / name, labels=labels, submissions=submissions)
        shutil.copymode(folder / LEDGER, folder / name)  # readable by everybody
    archive = Archive(closed, name if bundle else None, labels, submissions)
    for files in (archive_static_files(), archive_pages(board, archive), _downloads(view)):
        for path, content in files:
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_bytes(content)
    return _write_checksums(folder)


def _write_ledger(view: View, path: Path) -> str | None:
    """Write all visible entries; return when the board was closed, if that is visible."""
    closed, written = None, 0
    entries, _ = view.head()
    with path.open("xb") as file:
        while (
            batch := view.ledger(first=written, limit=_ENTRIES_PER_READ)
            if written < entries
            else []
        ):
            for entry in batch:
                if _CLOSED_ENTRY in entry and json.loads(entry)["kind"] == "closed":
                    closed = format_time(json.loads(entry)["time"])
                file.write(entry + b"\n")
            written += len(batch)
    return closed


def _downloads(view: View) -> Iterator[tuple[str, bytes]]:
    """Yield the files that the page links to."""
    yield "board.json", _json(view.summary())
    records, finals = none_if_hidden(view.records), none_if_hidden(view.finals)
    if records is not None:  # else the standings are hidden
        yield "records.json", _json({"records": records})
        yield "standings.csv", all_standings_csv(view.standings())
        yield "standings.json", all_standings_json(view.standings())
    if finals is not None:
        yield "finals.json", _json(finals)
        yield "finals.csv", finals_csv(finals)


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, allow_nan=False).encode("ascii")


def _write_checksums(folder: Path) -> int:
    """Write the checksums of all files for sha256sum, and flush everything to the disk."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = []
    for path in files:
        with path.open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  ")
        lines.append(f"{path.relative_to(folder).as_posix()}\n")
    (folder / CHECKSUMS).write_text("".join(lines), encoding="ascii", newline="\n")
    for path in (*folder.rglob("*"), folder):
        sync_path(path)
    return len(files) + 1
