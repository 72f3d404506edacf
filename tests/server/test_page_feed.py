"""The Atom feed of a board's records: its form, its visibility, and what caches may keep."""

from xml.etree import ElementTree as ET

import pytest

from support.server.live_server import make_predictions

ATOM = "{http://www.w3.org/2005/Atom}"


def get_feed(server, token=None, **headers):
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    server.client.cookies.clear()
    return server.client.get(f"/boards/{server.slug}/records.atom", headers=headers)


def texts(element, name):
    return [child.text for child in element.iter(f"{ATOM}{name}")]


def check_atom(content):
    """Check what RFC 4287 requires of a feed and its entries; return the feed."""
    feed = ET.fromstring(content)  # noqa: S314 - from our own server
    assert feed.tag == f"{ATOM}feed"
    entries = feed.findall(f"{ATOM}entry")
    for element in (feed, *entries):
        for name in ("id", "title", "updated", "author"):
            assert len(element.findall(f"{ATOM}{name}")) == 1, name
        assert element.find(f"{ATOM}author/{ATOM}name").text
        assert element.find(f"{ATOM}id").text.startswith("urn:uuid:")
        alternate = [link for link in element.findall(f"{ATOM}link") if link.get("rel") != "self"]
        assert [link.get("rel") for link in alternate] == ["alternate"]
    ids = [entry.find(f"{ATOM}id").text for entry in entries]
    assert len(set(ids)) == len(ids)
    return feed


def test_the_feed_has_every_record_the_newest_first(live_server):
    assert check_atom(get_feed(live_server).content).find(f"{ATOM}entry") is None
    token = live_server.join('Ada <b> & "Co"')[1]
    for wrong in (60, 40, 50, 20):
        live_server.submit(token, make_predictions(wrong))
    response = get_feed(live_server)
    assert response.headers["content-type"].startswith("application/atom+xml")
    feed = check_atom(response.content)
    records = live_server.call("GET", "/boards/first/records").json()["records"]
    assert len(records) == 3
    entries = feed.findall(f"{ATOM}entry")
    assert [entry.find(f"{ATOM}updated").text for entry in entries] == [
        record["time"] for record in reversed(records)
    ]
    assert feed.find(f"{ATOM}updated").text == records[-1]["time"]
    expected = f'zero-one loss {records[-1]["display"]:g} by Ada <b> & "Co"'
    assert entries[0].find(f"{ATOM}title").text == expected
    links = {link.get("rel"): link.get("href") for link in feed.findall(f"{ATOM}link")}
    assert links["self"] == f"{live_server.url}/boards/{live_server.slug}/records.atom"
    page = live_server.client.get(f"/boards/{live_server.slug}").text
    link = 'rel="alternate" type="application/atom+xml" title="New bests"'
    assert f'<link {link} href="/boards/{live_server.slug}/records.atom">' in page


@pytest.mark.parametrize("visibility", ["hidden", "frozen", "anonymous"])
def test_the_feed_shows_what_the_page_shows(live_server, visibility):
    token = live_server.join("Ada Lovelace")[1]
    live_server.submit(token, make_predictions(60))
    live_server.amend(visibility=visibility)
    before = get_feed(live_server)
    live_server.submit(token, make_predictions(9))
    live_server.clock.now += 3600
    after = get_feed(live_server)
    if visibility == "hidden":
        assert (before.status_code, after.status_code) == (404, 404)
        assert before.headers.get("etag") == after.headers.get("etag") is None
        assert "records.atom" not in live_server.client.get(f"/boards/{live_server.slug}").text
    if visibility == "frozen":
        assert after.content == before.content
        assert "last-modified" not in after.headers
    if visibility == "anonymous":
        assert "Ada" not in after.text
        assert len(texts(check_atom(after.content), "content")) == 2
    assert get_feed(live_server, live_server.organiser).status_code == 200


def test_a_reader_that_has_the_feed_gets_304(live_server):
    live_server.submit(live_server.join("Ada")[1], make_predictions(60))
    young = get_feed(live_server)
    assert "last-modified" not in young.headers  # this second may bring another record
    live_server.clock.now += 5
    full = get_feed(live_server)
    assert (full.status_code, full.content) == (200, young.content)
    known = {"If-None-Match": full.headers["etag"]}
    assert get_feed(live_server, **known).status_code == 304
    since = {"If-Modified-Since": full.headers["last-modified"]}
    assert get_feed(live_server, **since).status_code == 304
    # An ETag counts more than a time; a time that cannot be read counts nothing.
    assert get_feed(live_server, **since, **{"If-None-Match": '"other"'}).status_code == 200
    assert get_feed(live_server, **{"If-Modified-Since": "yesterday"}).status_code == 200
    live_server.submit(live_server.join("Bob")[1], make_predictions(9))
    live_server.clock.now += 5
    assert get_feed(live_server, **known).status_code == 200
    assert get_feed(live_server, **since).status_code == 200
    # What a token gets is for its owner only.
    private = get_feed(live_server, live_server.organiser)
    assert (private.headers["cache-control"], "etag" in private.headers) == (
        "private, no-store",
        False,
    )
