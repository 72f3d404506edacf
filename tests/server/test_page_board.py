"""The boards' page and the board's: what is said, to whom, and what is not."""

import csv
import gzip
import io
import re

import pytest

from ladderboard.board import PUBLIC
from ladderboard.server._context import CachedPage, PageCache
from support.server.live_server import make_predictions


@pytest.fixture
def browser(live_server):
    with live_server.browser() as made:
        yield made


def page_of(live_server, browser=None, path="", token=None):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return (browser or live_server.client).get(f"/boards/{live_server.slug}{path}", headers=headers)


def rows_of(text, heading="standings"):
    """Return the cells of a section's table, tags off."""
    section = re.search(rf'<section[^>]*aria-labelledby="{heading}".*?</section>', text, re.DOTALL)
    rows = re.split(r"<tr[^>]*>", section.group(0).partition("</table>")[0])[1:]
    cells = [re.split(r"<td[^>]*>", row)[1:] for row in rows]
    return [[re.sub("<[^>]*>", "", cell).strip() for cell in row] for row in cells if row]


def test_ties_are_ties_and_baselines_stand_where_they_belong(empty_server):
    live_server = empty_server
    live_server.create_board(baselines="[{name: Coin, value: 0.15, source: a throw}]")
    for name, wrong in (("Ada", 30), ("Bob", 60), ("Cy", 30)):
        live_server.submit(live_server.join(name)[1], make_predictions(wrong))
    _, none = live_server.join("Dee")
    live_server.client.cookies.clear()
    text = page_of(live_server).text
    rows = [(rank, team, value) for rank, team, value, *_ in rows_of(text)]
    assert rows == [
        ("1=", "Ada", "0.1000"),
        ("1=", "Cy", "0.1000"),
        ("", "Coin (a throw) baseline", "0.1500"),
        ("3", "Bob", "0.2000"),
        ("", "Dee", "no record"),
    ]
    assert "Ranks with = are shared" in text
    own = page_of(live_server, token=none).text
    assert ["", "Dee you", "no record", "", "0"] in rows_of(own)
    assert "Dee</strong> (you): no record yet, no questions asked" in own


def test_the_page_says_everything(live_server, browser):
    token = live_server.join("Ada")[1]
    live_server.submit(token, make_predictions(30))
    said = page_of(live_server, browser)
    text = re.sub(r"\s+", " ", said.text)
    summary = live_server.call("GET", "/boards/first").json()
    for each in (
        "The board is open.",
        "Every file that is scored is a question. The board answers 100 questions in all.",
        "25 questions are kept for each of at most 4 teams",
        "Questions are answered at any time",
        "Anyone can register a team.",
        "gains below about 0.01 may go unseen",
        "With confidence 95%, the true zero_one of the best model asked so far lies between",
        "if the examples are independent, and if nothing public but the answers of this board",
        summary["commitment"],
        summary["head"]["hash"],
        f"{live_server.url}/api/v1/boards/{live_server.slug}/submissions",
        f'href="/boards/{live_server.slug}/standings.csv"',
        f'href="/boards/{live_server.slug}/ledger.jsonl"',
    ):
        assert each in text, each
    assert "<svg" in text
    assert text.count("<h1>") == 1
    # The interval is the certificate's, rounded outwards.
    low, high = map(float, re.search(r"lies between ([\d.]+) and ([\d.]+)\.", text).groups())
    bound = summary["bound"]
    assert low <= bound["low"] < low + 2e-4
    assert high - 2e-4 < bound["high"] <= high


@pytest.mark.parametrize("visibility", ["hidden", "frozen", "anonymous"])
def test_what_may_not_be_seen_is_not_on_the_page(live_server, browser, visibility):
    token = live_server.join("Ada Lovelace")[1]
    live_server.submit(token, make_predictions(30))
    live_server.amend(visibility=visibility)
    before = page_of(live_server, browser).text
    live_server.submit(token, make_predictions(9))
    live_server.clock.now += 3600
    after = page_of(live_server, browser)
    assert ("Ada" in after.text) == (visibility == "frozen")
    assert ("0.0300" in after.text) == (visibility == "anonymous")
    if visibility == "hidden":
        assert "keeps the standings of this board hidden" in after.text
        assert "The best over time" not in after.text
        assert "0.1000" not in after.text
        assert "1 of 100 used" not in after.text
        assert {page_of(live_server, path=f"/{file}").status_code for file in FILES[:2]} == {403}
    if visibility == "frozen":
        assert "froze the standings" in after.text
    if visibility != "anonymous":
        assert after.text == before  # an hour moves no word here
    organiser = page_of(live_server, token=live_server.organiser).text
    assert "0.0300" in organiser
    assert f"This board is {visibility}." in organiser


FILES = ("standings.csv", "standings.json", "ledger.jsonl")


def test_a_page_is_kept_only_while_nothing_changes(live_server):
    """Everything that changes what is seen makes another page, at once."""
    seen = [page_of(live_server).text]

    def look():
        live_server.client.cookies.clear()
        seen.append(page_of(live_server).text)
        assert seen[-1] != seen[-2]
        assert page_of(live_server).text == seen[-1]

    team, token = live_server.join("Ada")
    look()
    live_server.submit(token, make_predictions(30))
    look()
    live_server.amend(title="Another")
    look()
    live_server.call("PUT", f"/boards/first/teams/{team}/disqualification", live_server.organiser)
    look()
    live_server.call(
        "DELETE", f"/boards/first/teams/{team}/disqualification", live_server.organiser
    )
    look()
    live_server.call("POST", "/boards/first/pause", live_server.organiser)
    look()
    live_server.call("POST", "/boards/first/resume", live_server.organiser)
    live_server.amend(end="2027-01-15T09:00:30Z")
    look()
    live_server.clock.now = 1_800_003_629  # a second before the end
    look()
    assert ">open<" in seen[-1]
    live_server.clock.now += 1
    look()
    assert "deadline passed" in seen[-1]
    live_server.call("POST", "/boards/first/close", live_server.organiser)
    look()
    assert "Final ranking" in seen[-1]
    assert token not in "".join(seen)


def test_a_session_gets_a_page_of_its_own(live_server, browser):
    _, token = live_server.join("Ada")
    live_server.submit(token, make_predictions(30))
    assert "(you)" not in page_of(live_server, browser).text
    live_server.sign_in(browser, token)
    assert "(you)" in page_of(live_server, browser).text
    live_server.client.cookies.clear()
    public = page_of(live_server).text
    assert "(you)" not in public
    assert "csrf" not in public


def test_only_what_everybody_gets_is_packed(live_server, browser):
    said = page_of(live_server, browser)
    assert said.headers["content-encoding"] == "gzip"
    assert "Accept-Encoding" in said.headers["vary"]
    assert "set-cookie" not in said.headers
    plain = browser.get(f"/boards/{live_server.slug}", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.text == said.text
    assert "content-encoding" not in browser.get("/login").headers
    live_server.sign_in(browser, live_server.join("Ada")[1])
    assert "content-encoding" not in page_of(live_server, browser).headers
    assert "content-encoding" not in page_of(live_server, token=live_server.organiser).headers


def test_the_first_page_is_small(empty_server):
    """All that a first visit loads, on a board with a page full of teams."""
    live_server = empty_server
    live_server.create_board(teams=130, questions=1000)
    for at in range(110):
        live_server.submit(live_server.join(f"A team of many {at}")[1], make_predictions(220 - at))
    live_server.client.cookies.clear()
    plain = live_server.client.get(
        f"/boards/{live_server.slug}", headers={"Accept-Encoding": "identity"}
    ).content
    assert len(rows_of(plain.decode())) == 100
    assert len(plain) < 40_000
    places = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', plain.decode()))
    assert places
    whole = [plain, *(live_server.client.get(place).content for place in places)]
    assert sum(len(gzip.compress(each)) for each in whole) < 60_000


def test_pages_of_standings_lead_on(empty_server):
    live_server = empty_server
    live_server.create_board(teams=130, questions=1000)
    for at in range(130):
        live_server.join(f"Team {at:03}")
    first = page_of(live_server).text
    assert "First page" not in first
    cursor = re.search(r'href="\?cursor=([^"#]+)#standings">Next page', first).group(1)
    second = page_of(live_server, path=f"?cursor={cursor}").text
    assert [row[1] for row in rows_of(second)] == [f"Team {at:03}" for at in range(100, 130)]
    assert "Next page" not in second
    assert "First page" in second
    assert page_of(live_server, path="?cursor=x").status_code == 422


def test_the_final_ranking_says_who_moved(live_server):
    for name, public, private in (("Ada", 10, 30), ("Bob", 20, 5)):
        live_server.submit(live_server.join(name)[1], make_predictions(public, private))
    live_server.call("POST", "/boards/first/close", live_server.organiser)
    live_server.client.cookies.clear()
    text = page_of(live_server).text
    assert "with confidence 90%, these and the bounds shown before the close hold together" in text
    (bob, ada) = rows_of(text, "finals")
    assert bob[:5] == ["1", "Bob", "0.0500", "2", "up 1"]
    assert ada[:5] == ["2", "Ada", "0.3000", "1", "down 1"]
    low, high = map(float, bob[5].split(" and "))
    final = live_server.call("GET", "/boards/first/finals").json()["rows"][0]
    assert low <= final["low"] < 0.05 < final["high"] <= high
    assert "--data-binary" not in text


def test_all_standings_in_one_file(empty_server):
    live_server = empty_server
    live_server.create_board(teams=30, questions=300)
    for at in range(24):
        live_server.submit(live_server.join(f"=Team {at}")[1], make_predictions(3 * (at % 7)))
    said = page_of(live_server, path="/standings.csv")
    assert said.headers["content-disposition"] == (
        f'attachment; filename="{live_server.slug}-standings.csv"'
    )
    found = list(csv.DictReader(io.StringIO(said.text)))
    whole = live_server.call("GET", "/boards/first/leaderboard").json()
    assert [each["team"] for each in found] == [each["team"]["id"] for each in whole["rows"]]
    assert found[0]["name"].startswith("'=Team")
    told = page_of(live_server, path="/standings.json").json()
    assert told == {key: value for key, value in whole.items() if key != "next"}


def test_many_pages_become_one_file(empty_server, monkeypatch):
    live_server = empty_server
    monkeypatch.setattr("ladderboard.board._view._MAX_PAGE_ROWS", 7)
    live_server.create_board(teams=30, questions=300)
    for at in range(24):
        live_server.join(f"Team {at:02}")
    lines = page_of(live_server, path="/standings.csv").text.splitlines()
    assert [line.split(",")[2] for line in lines] == [
        "name",
        *(f"Team {at:02}" for at in range(24)),
    ]
    told = page_of(live_server, path="/standings.json").json()["rows"]
    assert [each["team"]["name"] for each in told] == [f"Team {at:02}" for at in range(24)]


def test_the_whole_ledger_in_one_file(live_server, monkeypatch):
    monkeypatch.setattr("ladderboard.server._pages._downloads._ENTRIES_PER_READ", 3)
    token = live_server.join("Ada")[1]
    for wrong in range(10):
        live_server.submit(token, make_predictions(60 - wrong))
    said = page_of(live_server, path="/ledger.jsonl")
    assert said.headers["content-type"] == "application/x-ndjson"
    lines = said.content.splitlines()
    assert lines == live_server.boards.open(live_server.slug).as_seen_by(PUBLIC).ledger(limit=1000)
    assert len(lines) == int(said.headers["ledger-entries"]) > 10
    assert (
        said.headers["ledger-head"]
        == live_server.call("GET", "/boards/first").json()["head"]["hash"]
    )


def test_a_ledger_that_is_hidden_meanwhile_is_not_taken_for_whole(live_server, monkeypatch):
    monkeypatch.setattr("ladderboard.server._pages._downloads._ENTRIES_PER_READ", 3)
    token = live_server.join("Ada")[1]
    for wrong in range(6):
        live_server.submit(token, make_predictions(60 - wrong))
    ledger, calls = type(live_server.boards.open(live_server.slug).as_seen_by(PUBLIC)).ledger, []

    def hiding(view, **how):
        calls.append(how)
        return ledger(view, **how) if len(calls) < 3 else []

    monkeypatch.setattr("ladderboard.board._view.View.ledger", hiding)
    with pytest.raises(Exception, match=r"peer closed|incomplete"):
        page_of(live_server, path="/ledger.jsonl")


def test_boards_are_cards(empty_server):
    live_server = empty_server
    live_server.create_board(end="2027-01-18T08:00:00Z", title="Near")  # three days from now
    live_server.submit(live_server.join("Ada")[1], make_predictions(30))
    live_server.client.cookies.clear()
    text = live_server.client.get("/").text
    card = re.search(r'<li class="card">(?:(?!</li>).)*>Near<.*?</li>', text, re.DOTALL).group(0)
    for each in ("Best zero_one", "0.1000", "in 3 days", ">open<"):
        assert each in card
    assert re.search(r"<dt>Teams</dt><dd>1</dd>", card)


def test_without_boards_one_is_told_how_to_make_one(make_server):
    text = make_server().client.get("/").text
    assert "There are no boards yet" in text
    assert "ladderboard board create my-board" in text


def test_as_many_pages_are_kept_as_there_is_room_for():
    kept, made = PageCache(), []

    def make(at):
        made.append(at)
        return CachedPage(b"%d" % at, b"")

    for at in (*range(64), 0, 64, 0, 1):
        assert kept.get(at, lambda at=at: make(at)).content == b"%d" % at
    assert made == [*range(65), 1]  # the one that was asked for longest ago was let go
