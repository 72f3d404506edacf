"""The boards' page and the board's: what is said, to whom, and what is not."""

import csv
import gzip
import io
import re

import pytest

from ladderboard.board import PUBLIC
from ladderboard.server._context import Kept, Made


@pytest.fixture
def browser(hall):
    with hall.browser() as made:
        yield made


def page_of(hall, browser=None, path="", token=None):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return (browser or hall.client).get(f"/boards/{hall.slug}{path}", headers=headers)


def rows_of(text, heading="standings"):
    """Return the cells of a section's table, tags off."""
    section = re.search(rf'<section[^>]*aria-labelledby="{heading}".*?</section>', text, re.DOTALL)
    rows = re.split(r"<tr[^>]*>", section.group(0).partition("</table>")[0])[1:]
    cells = [re.split(r"<td[^>]*>", row)[1:] for row in rows]
    return [[re.sub("<[^>]*>", "", cell).strip() for cell in row] for row in cells if row]


def test_ties_are_ties_and_baselines_stand_where_they_belong(empty_hall, predict):
    hall = empty_hall
    hall.board(baselines="[{name: Coin, value: 0.15, source: a throw}]")
    for name, wrong in (("Ada", 30), ("Bob", 60), ("Cy", 30)):
        hall.submit(hall.join(name)[1], predict(wrong))
    _, none = hall.join("Dee")
    hall.client.cookies.clear()
    text = page_of(hall).text
    rows = [(rank, team, value) for rank, team, value, *_ in rows_of(text)]
    assert rows == [
        ("1=", "Ada", "0.1000"),
        ("1=", "Cy", "0.1000"),
        ("", "Coin (a throw) baseline", "0.1500"),
        ("3", "Bob", "0.2000"),
        ("", "Dee", "no record"),
    ]
    assert "Ranks with = are shared" in text
    own = page_of(hall, token=none).text
    assert ["", "Dee you", "no record", "", "0"] in rows_of(own)
    assert "Dee</strong> (you): no record yet, no questions asked" in own


def test_the_page_says_everything(hall, browser, predict):
    token = hall.join("Ada")[1]
    hall.submit(token, predict(30))
    said = page_of(hall, browser)
    text = re.sub(r"\s+", " ", said.text)
    summary = hall.call("GET", "/boards/first").json()
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
        f"{hall.url}/api/v1/boards/{hall.slug}/submissions",
        f'href="/boards/{hall.slug}/standings.csv"',
        f'href="/boards/{hall.slug}/ledger.jsonl"',
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
def test_what_may_not_be_seen_is_not_on_the_page(hall, browser, predict, visibility):
    token = hall.join("Ada Lovelace")[1]
    hall.submit(token, predict(30))
    hall.amend(visibility=visibility)
    before = page_of(hall, browser).text
    hall.submit(token, predict(9))
    hall.clock.now += 3600
    after = page_of(hall, browser)
    assert ("Ada" in after.text) == (visibility == "frozen")
    assert ("0.0300" in after.text) == (visibility == "anonymous")
    if visibility == "hidden":
        assert "keeps the standings of this board hidden" in after.text
        assert "The best over time" not in after.text
        assert "0.1000" not in after.text
        assert "1 of 100 used" not in after.text
        assert {page_of(hall, path=f"/{each}").status_code for each in FILES[:2]} == {403}
    if visibility == "frozen":
        assert "froze the standings" in after.text
    if visibility != "anonymous":
        assert after.text == before  # an hour moves no word here
    organiser = page_of(hall, token=hall.organiser).text
    assert "0.0300" in organiser
    assert f"This board is {visibility}." in organiser


FILES = ("standings.csv", "standings.json", "ledger.jsonl")


def test_a_page_is_kept_only_while_nothing_changes(hall, predict):
    """Everything that changes what is seen makes another page, at once."""
    seen = [page_of(hall).text]

    def look():
        hall.client.cookies.clear()
        seen.append(page_of(hall).text)
        assert seen[-1] != seen[-2]
        assert page_of(hall).text == seen[-1]

    team, token = hall.join("Ada")
    look()
    hall.submit(token, predict(30))
    look()
    hall.amend(title="Another")
    look()
    hall.call("PUT", f"/boards/first/teams/{team}/disqualification", hall.organiser)
    look()
    hall.call("DELETE", f"/boards/first/teams/{team}/disqualification", hall.organiser)
    look()
    hall.call("POST", "/boards/first/pause", hall.organiser)
    look()
    hall.call("POST", "/boards/first/resume", hall.organiser)
    hall.amend(end="2027-01-15T09:00:30Z")
    look()
    hall.clock.now = 1_800_003_629  # a second before the end
    look()
    assert ">open<" in seen[-1]
    hall.clock.now += 1
    look()
    assert "deadline passed" in seen[-1]
    hall.call("POST", "/boards/first/close", hall.organiser)
    look()
    assert "Final ranking" in seen[-1]
    assert token not in "".join(seen)


def test_a_session_gets_a_page_of_its_own(hall, browser, predict):
    _, token = hall.join("Ada")
    hall.submit(token, predict(30))
    assert "(you)" not in page_of(hall, browser).text
    hall.sign_in(browser, token)
    assert "(you)" in page_of(hall, browser).text
    hall.client.cookies.clear()
    public = page_of(hall).text
    assert "(you)" not in public
    assert "csrf" not in public


def test_only_what_everybody_gets_is_packed(hall, browser):
    said = page_of(hall, browser)
    assert said.headers["content-encoding"] == "gzip"
    assert "Accept-Encoding" in said.headers["vary"]
    assert "set-cookie" not in said.headers
    plain = browser.get(f"/boards/{hall.slug}", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.text == said.text
    assert "content-encoding" not in browser.get("/login").headers
    hall.sign_in(browser, hall.join("Ada")[1])
    assert "content-encoding" not in page_of(hall, browser).headers
    assert "content-encoding" not in page_of(hall, token=hall.organiser).headers


def test_the_first_page_is_small(empty_hall, predict):
    """All that a first visit loads, on a board with a page full of teams."""
    hall = empty_hall
    hall.board(teams=130, questions=1000)
    for at in range(110):
        hall.submit(hall.join(f"A team of many {at}")[1], predict(220 - at))
    hall.client.cookies.clear()
    plain = hall.client.get(f"/boards/{hall.slug}", headers={"Accept-Encoding": "identity"}).content
    assert len(rows_of(plain.decode())) == 100
    assert len(plain) < 40_000
    places = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', plain.decode()))
    assert places
    whole = [plain, *(hall.client.get(each).content for each in places)]
    assert sum(len(gzip.compress(each)) for each in whole) < 60_000


def test_pages_of_standings_lead_on(empty_hall):
    hall = empty_hall
    hall.board(teams=130, questions=1000)
    for at in range(130):
        hall.join(f"Team {at:03}")
    first = page_of(hall).text
    assert "First page" not in first
    cursor = re.search(r'href="\?cursor=([^"#]+)#standings">Next page', first).group(1)
    second = page_of(hall, path=f"?cursor={cursor}").text
    assert [row[1] for row in rows_of(second)] == [f"Team {at:03}" for at in range(100, 130)]
    assert "Next page" not in second
    assert "First page" in second
    assert page_of(hall, path="?cursor=x").status_code == 422


def test_the_final_ranking_says_who_moved(hall, predict):
    for name, public, private in (("Ada", 10, 30), ("Bob", 20, 5)):
        hall.submit(hall.join(name)[1], predict(public, private))
    hall.call("POST", "/boards/first/close", hall.organiser)
    hall.client.cookies.clear()
    text = page_of(hall).text
    assert "with confidence 90%, these and the bounds shown before the close hold together" in text
    (bob, ada) = rows_of(text, "finals")
    assert bob[:5] == ["1", "Bob", "0.0500", "2", "up 1"]
    assert ada[:5] == ["2", "Ada", "0.3000", "1", "down 1"]
    low, high = map(float, bob[5].split(" and "))
    final = hall.call("GET", "/boards/first/finals").json()["rows"][0]
    assert low <= final["low"] < 0.05 < final["high"] <= high
    assert "--data-binary" not in text


def test_all_standings_in_one_file(empty_hall, predict):
    hall = empty_hall
    hall.board(teams=30, questions=300)
    for at in range(24):
        hall.submit(hall.join(f"=Team {at}")[1], predict(3 * (at % 7)))
    said = page_of(hall, path="/standings.csv")
    assert said.headers["content-disposition"] == (
        f'attachment; filename="{hall.slug}-standings.csv"'
    )
    found = list(csv.DictReader(io.StringIO(said.text)))
    whole = hall.call("GET", "/boards/first/leaderboard").json()
    assert [each["team"] for each in found] == [each["team"]["id"] for each in whole["rows"]]
    assert found[0]["name"].startswith("'=Team")
    told = page_of(hall, path="/standings.json").json()
    assert told == {key: value for key, value in whole.items() if key != "next"}


def test_many_pages_become_one_file(empty_hall, monkeypatch):
    hall = empty_hall
    monkeypatch.setattr("ladderboard.board._view._MOST", 7)
    hall.board(teams=30, questions=300)
    for at in range(24):
        hall.join(f"Team {at:02}")
    lines = page_of(hall, path="/standings.csv").text.splitlines()
    assert [line.split(",")[2] for line in lines] == [
        "name",
        *(f"Team {at:02}" for at in range(24)),
    ]
    told = page_of(hall, path="/standings.json").json()["rows"]
    assert [each["team"]["name"] for each in told] == [f"Team {at:02}" for at in range(24)]


def test_the_whole_ledger_in_one_file(hall, predict, monkeypatch):
    monkeypatch.setattr("ladderboard.server._pages._downloads._MOST", 3)
    token = hall.join("Ada")[1]
    for wrong in range(10):
        hall.submit(token, predict(60 - wrong))
    said = page_of(hall, path="/ledger.jsonl")
    assert said.headers["content-type"] == "application/x-ndjson"
    lines = said.content.splitlines()
    assert lines == hall.boards.open(hall.slug).as_seen_by(PUBLIC).ledger(limit=1000)
    assert len(lines) == int(said.headers["ledger-entries"]) > 10
    assert said.headers["ledger-head"] == hall.call("GET", "/boards/first").json()["head"]["hash"]


def test_a_ledger_that_is_hidden_meanwhile_is_not_taken_for_whole(hall, predict, monkeypatch):
    monkeypatch.setattr("ladderboard.server._pages._downloads._MOST", 3)
    token = hall.join("Ada")[1]
    for wrong in range(6):
        hall.submit(token, predict(60 - wrong))
    ledger, calls = type(hall.boards.open(hall.slug).as_seen_by(PUBLIC)).ledger, []

    def hiding(view, **how):
        calls.append(how)
        return ledger(view, **how) if len(calls) < 3 else []

    monkeypatch.setattr("ladderboard.board._view.View.ledger", hiding)
    with pytest.raises(Exception, match=r"peer closed|incomplete"):
        page_of(hall, path="/ledger.jsonl")


def test_boards_are_cards(empty_hall, predict):
    hall = empty_hall
    hall.board(end="2027-01-18T08:00:00Z", title="Near")  # three days from now
    hall.submit(hall.join("Ada")[1], predict(30))
    hall.client.cookies.clear()
    text = hall.client.get("/").text
    card = re.search(r'<li class="card">(?:(?!</li>).)*>Near<.*?</li>', text, re.DOTALL).group(0)
    for each in ("Best zero_one", "0.1000", "in 3 days", ">open<"):
        assert each in card
    assert re.search(r"<dt>Teams</dt><dd>1</dd>", card)


def test_without_boards_one_is_told_how_to_make_one(make_hall):
    text = make_hall().client.get("/").text
    assert "There are no boards yet" in text
    assert "ladderboard board create my-board" in text


def test_as_many_pages_are_kept_as_there_is_room_for():
    kept, made = Kept(), []

    def make(at):
        made.append(at)
        return Made(b"%d" % at, b"")

    for at in (*range(64), 0, 64, 0, 1):
        assert kept.get(at, lambda at=at: make(at)).content == b"%d" % at
    assert made == [*range(65), 1]  # the one that was asked for longest ago was let go
