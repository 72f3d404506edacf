"""The watch itself: what a page must not do is noticed."""

import pytest

from ladderboard.server._middleware import SECURITY
from support.browser.visitor import Visitor

BAD = {
    "<script>document.title = 1</script>": "policy: script-src-elem inline",
    "<p style='color: red'>x</p>": "policy: style-src-attr inline",
    "<img alt='' src='/static/none.svg' onerror='y()'>": "policy: script-src-attr inline",
    "<img alt='' src='http://elsewhere.example/x.png'>": "elsewhere.example",
    "<script type=module src='/static/bad.js'></script>": "error: no such thing",
    "<script type=module src='/static/warn.js'></script>": "console warning: beware",
    "<script type=module src='/static/ask.js'></script>": "policy: connect-src",
}
SCRIPTS = {
    "bad": "throw new Error('no such thing')",
    "warn": "console.warn('beware')",
    "ask": "fetch('http://elsewhere.example/')",
}


@pytest.fixture
def visitor(browser, live_server):
    """Somebody of whom no good is expected."""
    made = Visitor(browser, live_server)
    yield made
    made.close()


def serve(visitor, path, body, kind="text/html"):
    def answer(route, request):
        route.fulfill(body=body, headers=SECURITY, content_type=kind)

    visitor.context.route(f"**{path}", answer)


def test_what_must_not_be_is_noticed(visitor):
    serve(visitor, "/page", f"<!doctype html><title>x</title><h1>x</h1>{''.join(BAD)}")
    for name, script in SCRIPTS.items():
        serve(visitor, f"/static/{name}.js", script, "text/javascript")
    visitor.open("/page")
    visitor.page.wait_for_load_state("networkidle")
    told = "\n".join(visitor.monitor.problems)
    assert [each for each in BAD.values() if each not in told] == [], told
    assert visitor.monitor.statuses == [404]
    with pytest.raises(AssertionError, match="no such thing"):
        visitor.monitor.check()


def test_a_refusal_that_was_to_come_must_come(visitor):
    visitor.monitor.expect_statuses(404)
    assert visitor.open("/") == 200
    with pytest.raises(AssertionError, match=r"expected statuses \{404\}"):
        visitor.monitor.check()
    assert visitor.open("/boards/nowhere") == 404
    visitor.monitor.check()
    visitor.monitor.expect_statuses(403)
    with pytest.raises(AssertionError, match=r"expected statuses \{403\}"):
        visitor.monitor.check()


def test_what_nobody_can_read_is_noticed(visitor):
    wide = "<!doctype html><title>x</title><h1>x</h1><input><pre>" + "wide " * 400
    wide += "</pre><p><font color='#dddddd'>pale</font>"
    serve(visitor, "/page", wide)
    visitor.open("/page")
    assert "label (critical)" in visitor.axe_violations()
    assert list(visitor.axe_violations("color-contrast", "target-size")) == [
        "color-contrast (serious)"
    ]
    assert any(each.startswith("<pre>") for each in visitor.overflowing())
