"""A closed board as a static site: its files, and that every link works."""

import hashlib
import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ladderboard
from ladderboard.board import Caller, Role, View
from ladderboard.errors import NotOpen
from ladderboard.server import write_site
from ladderboard.server._pages._static import wheel_file
from support.server.live_server import make_folder, make_predictions
from support.site_crawler import crawl_site

ORGANISER = Caller(Role.ORGANISER)
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
NAMES = (
    "Ada", "O'Hara & Sons <leaves>", "עַמּוּד ראשון", "فريق الواحة", "x" * 64, "=1+1", "1. @home",
    "<!--", "Μ" * 64,
)  # fmt: skip
DESCRIPTION = (
    '"Look [elsewhere](https://example.org/a?b=c#d), [here](/boards/first/submit), '
    '[there](data.zip), [up](../up), [a part](#nowhere), <b>not bold</b>"'
)
PAGES = {  # of the archive and of the server, with the sections that they share
    "index.html": ("", ("best", "meaning", "standings")),
    "leaderboard.html": ("/leaderboard", ("finals",)),
    "standings.html": ("/leaderboard?view=public", ("standings",)),
    "rules.html": ("/rules", ("rules", "meaning")),
    "verify.html": ("/verify", ("commitments",)),
}


def sections_of(page):
    """Return the named sections of a page, without link targets and relative times."""
    sections = dict(re.findall(r'<section class="card" aria-labelledby="(\w+)">(.*?)</section>',
                            page, re.DOTALL))  # fmt: skip
    return {
        name: re.sub(r' href="[^"]*"|<time [^>]*>[^<]*', "", text)
        for name, text in sections.items()
    }


@pytest.fixture(scope="module")
def full_board(shared_server, tmp_path_factory):
    """A board with phases, baselines, ties, odd names, an amendment and a disqualified team."""
    live_server, tmp_path = shared_server, tmp_path_factory.mktemp("rich")
    live_server.reset()
    folder = make_folder(
        live_server.slug, title=json.dumps(f"Title {EVIL}"), description=DESCRIPTION, teams=150,
        questions=400, window="{questions: 5, hours: 24}", finals="{selections: 2}",
        phases="[{name: first, end: 2027-02-01T00:00:00Z}, "
        "{name: second, start: 2027-02-01T00:00:00Z, end: 2027-03-01 AoE}]",
        baselines="[{name: Half, file: half.csv}, {name: Elsewhere, value: 0.25, source: a book}]",
    )  # fmt: skip
    folder.baselines["Half"] = tmp_path / "half.csv"
    folder.baselines["Half"].write_bytes(make_predictions(150, 50))
    board = live_server.boards.create(folder)
    teams = [live_server.join(name) for name in NAMES]
    for index, (_, token) in enumerate(teams):
        live_server.clock.now += 3600
        response = live_server.submit(
            token, make_predictions(140 - 10 * (index // 2), 20 + index), query="?message=note"
        )
        assert response.status_code == 201, response.text
    live_server.amend(questions=420, title=f"Title {EVIL} again")
    board.teams.disqualify(ORGANISER, teams[0][0])
    for index in range(110):  # so that the standings have a second page
        board.teams.create(ORGANISER, f"Guest {index}")
    live_server.clock.now += 86400
    board.closer.close(ORGANISER)
    return board


def test_every_link_works_and_reaches_every_file(full_board, tmp_path):
    site = write_site(full_board, tmp_path / "out")
    files = {path.relative_to(site.folder).as_posix()
             for path in site.folder.rglob("*") if path.is_file()}  # fmt: skip
    reached, outward = crawl_site(site.folder)
    assert reached == files
    assert site.files == len(files)
    assert outward == {"https://example.org/a?b=c#d"}
    assert files == {
        "index.html", "leaderboard.html", "rules.html", "verify.html", "standings.html",
        *(f"standings-{number}.html" for number in range(2, 6)),
        "standings.csv", "standings.json", "records.json",
        "finals.json", "finals.csv", "board.json", "ledger.jsonl", f"{full_board.slug}.bundle",
        "sha256sums.txt", "static/style.css", "static/icon.svg", wheel_file()[0],
    }  # fmt: skip
    modes = {path.stat().st_mode & 0o777 for path in site.folder.rglob("*") if path.is_file()}
    assert modes == {0o666 & ~current_umask()}  # any web server may read them


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_the_page_has_the_same_sections_as_the_servers(full_board, empty_server, tmp_path):
    folder = write_site(full_board, tmp_path / "out").folder
    url = f"/boards/{full_board.slug}"
    for file, (path, names) in PAGES.items():
        live = empty_server.client.get(f"{url}{path}").text
        archived, served = (sections_of(text) for text in ((folder / file).read_text(), live))
        for name in names:
            assert archived[name].replace("<a>CSV</a>, ", "") == served[name].replace(
                "<a>CSV</a>, ", ""
            ), name
    live = empty_server.client.get(f"{url}/leaderboard?view=public").text
    next_page = re.search(r'href="(\?cursor=[^"#]+)">Next page', live)[1]
    live = sections_of(empty_server.client.get(f"{url}/leaderboard{html.unescape(next_page)}").text)
    assert sections_of((folder / "standings-2.html").read_text())["standings"] == live["standings"]
    page = (folder / "standings.html").read_text()
    for team_name in NAMES[1:]:
        assert escaped(team_name) in page
    assert "Ada" not in page
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def escaped(text):
    return html.escape(text).replace("&#x27;", "&#39;")


def test_downloads_are_the_same_as_the_servers(full_board, empty_server, tmp_path):
    folder = write_site(full_board, tmp_path / "out").folder
    get, slug = empty_server.client.get, full_board.slug
    for name in ("standings.csv", "standings.json", "ledger.jsonl"):
        assert (folder / name).read_bytes() == get(f"/boards/{slug}/{name}").content, name
    for name, path in (
        ("records.json", "/records"),
        ("finals.json", "/finals"),
        ("board.json", ""),
    ):
        assert (
            json.loads((folder / name).read_bytes()) == get(f"/api/v1/boards/{slug}{path}").json()
        )
    finals = json.loads((folder / "finals.json").read_bytes())["rows"]
    lines = (folder / "finals.csv").read_text().splitlines()
    header = "rank,team,name,baseline,score,shown,low,high,public_rank,move,loss"
    assert lines[0] == f"{header},best_rank,worst_rank,band"
    assert len(lines) == 1 + len(finals)
    assert any(",'=1+1," in line for line in lines)  # escaped, so that it is not a formula


def test_the_archive_page_states_closing_and_verification(full_board, tmp_path):
    site = write_site(full_board, tmp_path / "out")
    pages = [(site.folder / name).read_text() for name in PAGES]
    text = " ".join(re.sub("<[^>]*>", "", "".join(pages)).split())
    # 8 teams are shown, but all 10 questions count: a disqualified team's stay.
    assert (
        "This is an archive. The board was closed at 2027-01-16 17:00 UTC, after 10 submissions."
        in text
    )
    assert f"ladderboard verify {full_board.slug}.bundle --head {site.head}" in text
    assert full_board.book.opening["commitment"] in text
    finals = json.loads((site.folder / "finals.json").read_bytes())
    assert finals["closed"] == "2027-01-16T17:00:00Z"  # not the time of the last question
    assert " ago" not in text
    assert "When the board was closed, the final ranking was made on " in text
    assert "There were at most " in text
    assert not re.search("organiser closes the board|needs an invitation|can register", text)
    for page in pages:
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)[1]
        assert "default-src &#39;none&#39;" in policy
        assert "script-src" not in policy


def test_sums_are_checked_by_sha256sum(full_board, tmp_path):
    folder = write_site(full_board, tmp_path / "out").folder
    check = ["sha256sum", "-c", "--strict", "sha256sums.txt"]
    result = subprocess.run(check, cwd=folder, capture_output=True, text=True, check=True)
    assert result.stdout.count(": OK\n") == len(list(folder.rglob("*.*"))) - 1
    (folder / "standings.csv").write_bytes(b"rank,team\r\n")
    result = subprocess.run(check, cwd=folder, capture_output=True, text=True, check=False)
    assert (result.returncode, "standings.csv: FAILED" in result.stdout) == (1, True)


def test_the_site_can_be_verified_with_its_files_only(live_server, tmp_path):
    _, token = live_server.join("Ada")
    submission = live_server.submit(token, make_predictions(60)).json()
    (tmp_path / "receipt").write_text(json.dumps(submission))
    live_server.boards.open(live_server.slug).closer.close(ORGANISER)
    site = write_site(live_server.boards.open(live_server.slug), tmp_path / "out")
    (tmp_path / "elsewhere").mkdir()
    source = Path(ladderboard.__file__).parents[1]
    code = (
        f"import sys; sys.path.insert(0, {str(source)!r}); from ladderboard.cli import main; main()"
    )

    def verify(*arguments):
        return subprocess.run(
            [sys.executable, "-I", "-c", code, "verify", *map(str, arguments)],
            cwd=tmp_path / "elsewhere", env={}, capture_output=True, text=True, check=False,
        )  # fmt: skip

    bundle, ledger = site.folder / site.bundle, site.folder / "ledger.jsonl"
    result = verify(bundle, "--head", site.head, "--receipt", tmp_path / "receipt")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("verified: 1 release\n")
    assert "The receipt matches entry 3" in result.stdout
    result = verify("--ledger", ledger, "--receipt", tmp_path / "receipt", "--head", site.head)
    assert (result.returncode, "The receipt matches entry 3" in result.stdout) == (0, True), (
        result.stderr
    )
    assert verify(bundle, "--head", hashlib.sha256(b"another").hexdigest()).returncode == 4


def test_the_site_of_a_board_without_submissions(empty_server, tmp_path):
    board = empty_server.create_board(title="Quiet")
    board.closer.close(ORGANISER)
    site = write_site(board, tmp_path / "out")
    crawl_site(site.folder)
    page = (site.folder / "index.html").read_text()
    assert ", before the first submission." in page
    assert "No team has a final score." in (site.folder / "leaderboard.html").read_text()
    for path in site.folder.glob("*.html"):
        assert "<tr><td" not in path.read_text()


@pytest.mark.parametrize("target", ["nothing", "an empty folder", "a link to one"])
def test_a_site_is_written_to_a_new_or_empty_folder(live_server, tmp_path, target):
    board, folder = live_server.boards.open(live_server.slug), tmp_path / "out"
    board.closer.close(ORGANISER)
    if target != "nothing":
        (tmp_path / "real").mkdir(mode=0o750)
        folder = tmp_path / "real"
    if target == "a link to one":
        folder = tmp_path / "out"
        folder.symlink_to("real")
    write_site(board, folder)
    assert (folder / "index.html").is_file()
    assert folder.is_symlink() == (target == "a link to one")
    if target != "nothing":
        assert (tmp_path / "real").stat().st_mode & 0o777 == 0o750
    names = {path.name for path in tmp_path.iterdir()}
    assert not [name for name in names if name.startswith(".")]


def test_a_change_while_writing_is_refused(live_server, tmp_path, monkeypatch):
    board = live_server.boards.open(live_server.slug)
    board.closer.close(ORGANISER)
    finals = View.finals

    def amended(view):
        board.amendments.amend(ORGANISER, {"visibility": "anonymous"})
        return finals(view)

    monkeypatch.setattr(View, "finals", amended)
    with pytest.raises(NotOpen, match="was changed while its site was written"):
        write_site(board, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
