"""A closed board as a folder of files: what is in it, and that all of it leads somewhere."""

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
from ladderboard.errors import InvalidSetting, NotOpen, StorageFailed
from ladderboard.server import write_site
from ladderboard.server._pages import _site
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
SECTIONS = ("finals", "standings", "best", "rules", "meaning")


def sections_of(page):
    """Return the parts of a board's page that have a name, without where links lead."""
    found = dict(re.findall(r'<section class="card" aria-labelledby="(\w+)">(.*?)</section>',
                            page, re.DOTALL))  # fmt: skip
    return {name: re.sub(r' href="[^"]*"', "", text) for name, text in found.items()}


@pytest.fixture(scope="module")
def full_board(shared_server, tmp_path_factory):
    """A board with everything: phases, baselines, ties, odd names, amended, somebody put out."""
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
    for at, (_, token) in enumerate(teams):
        live_server.clock.now += 3600
        said = live_server.submit(
            token, make_predictions(140 - 10 * (at // 2), 20 + at), query="?message=note"
        )
        assert said.status_code == 201, said.text
    live_server.amend(questions=420, title=f"Title {EVIL} again")
    board.teams.disqualify(ORGANISER, teams[0][0])
    for at in range(110):  # so that the standings have a second page
        board.teams.create(ORGANISER, f"Guest {at}")
    live_server.clock.now += 86400
    board.closer.close(ORGANISER)
    return board


def test_every_link_leads_somewhere(full_board, tmp_path):
    made = write_site(full_board, tmp_path / "out")
    files = {each.relative_to(made.folder).as_posix()
             for each in made.folder.rglob("*") if each.is_file()}  # fmt: skip
    reached, outward = crawl_site(made.folder)
    assert reached == files
    assert made.files == len(files)
    assert outward == {"https://example.org/a?b=c#d"}
    assert files == {
        "index.html", "standings-2.html", "standings.csv", "standings.json", "records.json",
        "finals.json", "finals.csv", "board.json", "ledger.jsonl", f"{full_board.slug}.bundle",
        "sha256sums.txt", "static/style.css", "static/icon.svg",
    }  # fmt: skip
    modes = {each.stat().st_mode & 0o777 for each in made.folder.rglob("*") if each.is_file()}
    assert modes == {0o666 & ~umask()}  # any web server may read them


def umask():
    now = os.umask(0)
    os.umask(now)
    return now


def test_the_page_is_the_one_that_the_server_shows(full_board, empty_server, tmp_path):
    folder = write_site(full_board, tmp_path / "out").folder
    live = empty_server.client.get(f"/boards/{full_board.slug}").text
    mine, its = (sections_of(text) for text in ((folder / "index.html").read_text(), live))
    assert set(its) - set(mine) == {"submit"}
    for name in SECTIONS:
        assert mine[name] == its[name], name
    following = re.search(r'href="(\?cursor=[^"#]+)#standings">Next page', live)[1]
    live = sections_of(empty_server.client.get(f"/boards/{full_board.slug}{following}").text)
    assert sections_of((folder / "standings-2.html").read_text())["standings"] == live["standings"]
    page = (folder / "index.html").read_text()
    for odd in NAMES[1:]:
        assert written(odd) in page
    assert "Ada" not in page
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def written(text):
    return html.escape(text).replace("&#x27;", "&#39;")


def test_downloads_are_those_of_the_server(full_board, empty_server, tmp_path):
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
    assert lines[0] == "rank,team,name,baseline,score,shown,low,high,public_rank,move,loss"
    assert len(lines) == 1 + len(finals)
    assert any(",'=1+1," in line for line in lines)  # no formula for a spreadsheet


def test_what_it_says_of_itself(full_board, tmp_path):
    made = write_site(full_board, tmp_path / "out")
    page = (made.folder / "index.html").read_text()
    said = " ".join(re.sub("<[^>]*>", "", page).split())
    # 8 teams are shown, and all 10 asked: nothing is taken back from who is put out.
    assert (
        "This is an archive. The board was closed at 2027-01-16 17:00 UTC, after 10 questions."
        in said
    )
    assert f"ladderboard verify {full_board.slug}.bundle --head {made.head}" in said
    assert full_board.book.opening["commitment"] in said
    finals = json.loads((made.folder / "finals.json").read_bytes())
    assert finals["closed"] == "2027-01-16T17:00:00Z"  # not when the last question was
    assert " ago" not in said
    assert "When the board was closed, the final ranking was made on " in said
    assert "There were at most " in said
    assert not re.search("organiser closes the board|needs an invitation|can register", said)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)[1]
    assert "default-src &#39;none&#39;" in policy
    assert "script-src" not in policy


def test_sums_are_checked_by_sha256sum(full_board, tmp_path):
    folder = write_site(full_board, tmp_path / "out").folder
    check = ["sha256sum", "-c", "--strict", "sha256sums.txt"]
    done = subprocess.run(check, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.count(": OK\n") == len(list(folder.rglob("*.*"))) - 1
    (folder / "standings.csv").write_bytes(b"rank,team\r\n")
    done = subprocess.run(check, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, "standings.csv: FAILED" in done.stdout) == (1, True)


def test_it_is_verified_elsewhere_with_nothing_but_the_folder(live_server, tmp_path):
    _, token = live_server.join("Ada")
    kept = live_server.submit(token, make_predictions(60)).json()
    (tmp_path / "receipt").write_text(json.dumps(kept))
    live_server.boards.open(live_server.slug).closer.close(ORGANISER)
    made = write_site(live_server.boards.open(live_server.slug), tmp_path / "out")
    (tmp_path / "elsewhere").mkdir()
    source = Path(ladderboard.__file__).parents[1]
    code = (
        f"import sys; sys.path.insert(0, {str(source)!r}); from ladderboard.cli import main; main()"
    )

    def verify(*words):
        return subprocess.run(
            [sys.executable, "-I", "-c", code, "verify", *map(str, words)],
            cwd=tmp_path / "elsewhere", env={}, capture_output=True, text=True, check=False,
        )  # fmt: skip

    bundle, ledger = made.folder / made.bundle, made.folder / "ledger.jsonl"
    done = verify(bundle, "--head", made.head, "--receipt", tmp_path / "receipt")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("verified: 1 release\n")
    assert "The receipt opens entry 3" in done.stdout
    done = verify("--ledger", ledger, "--receipt", tmp_path / "receipt", "--head", made.head)
    assert (done.returncode, "The receipt opens entry 3" in done.stdout) == (0, True), done.stderr
    assert verify(bundle, "--head", hashlib.sha256(b"another").hexdigest()).returncode == 4


def test_a_board_that_nobody_asked(empty_server, tmp_path):
    board = empty_server.create_board(title="Quiet")
    board.closer.close(ORGANISER)
    made = write_site(board, tmp_path / "out")
    crawl_site(made.folder)
    page = (made.folder / "index.html").read_text()
    assert ", before anybody had asked." in page
    assert "lies between its two ends.</p>\n<p>Nobody is in it.</p>" in page
    assert page.count("<table") == 0


@pytest.mark.parametrize("there", ["nothing", "an empty folder", "a link to one"])
def test_where_it_may_be(live_server, tmp_path, there):
    board, place = live_server.boards.open(live_server.slug), tmp_path / "out"
    board.closer.close(ORGANISER)
    if there != "nothing":
        (tmp_path / "real").mkdir(mode=0o750)
        place = tmp_path / "real"
    if there == "a link to one":
        place = tmp_path / "out"
        place.symlink_to("real")
    write_site(board, place)
    assert (place / "index.html").is_file()
    assert place.is_symlink() == (there == "a link to one")
    if there != "nothing":
        assert (tmp_path / "real").stat().st_mode & 0o777 == 0o750
    left = {each.name for each in tmp_path.iterdir()}
    assert not [name for name in left if name.startswith(".")]


def break_down(*_):
    raise OSError(28, "No space left on device")


def test_half_of_it_is_never_seen(live_server, tmp_path, monkeypatch):
    board, place = live_server.boards.open(live_server.slug), tmp_path / "out"
    with pytest.raises(NotOpen, match="is not closed"):
        write_site(board, place)
    board.closer.close(ORGANISER)
    monkeypatch.setattr(_site, "archive_pages", break_down)
    with pytest.raises(StorageFailed, match="out cannot be made: No space left on device"):
        write_site(board, place)
    assert list(tmp_path.iterdir()) == []


def test_one_moment_is_in_it(live_server, tmp_path, monkeypatch):
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


@pytest.mark.parametrize("there", ["a file", "a full folder", "no parent", "here"])
def test_where_it_may_not_be(live_server, tmp_path, monkeypatch, there):
    board, place = live_server.boards.open(live_server.slug), tmp_path / "out"
    board.closer.close(ORGANISER)
    if there == "a file":
        place.write_text("mine")
    elif there == "a full folder":
        place.mkdir()
        (place / "mine").write_text("mine")
    elif there == "no parent":
        place = tmp_path / "nowhere" / "out"
    else:
        place.mkdir()
        monkeypatch.chdir(place)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidSetting):
        write_site(board, place)
    assert sorted(tmp_path.rglob("*")) == before
