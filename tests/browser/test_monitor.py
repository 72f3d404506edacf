"""The browser monitor reports what a page must not do."""

import pytest

from ladderboard.server._middleware import SECURITY
from support.browser.visitor import Visitor

FORBIDDEN = {
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
    """Give a visitor whose monitor is not checked at the end."""
    untrusted = Visitor(browser, live_server)
    yield untrusted
    untrusted.close()


def serve(visitor, path, body, kind="text/html"):
    def answer(route, request):
        route.fulfill(body=body, headers=SECURITY, content_type=kind)

    visitor.context.route(f"**{path}", answer)


def test_forbidden_content_is_reported(visitor):
    serve(visitor, "/page", f"<!doctype html><title>x</title><h1>x</h1>{''.join(FORBIDDEN)}")
    for name, script in SCRIPTS.items():
        serve(visitor, f"/static/{name}.js", script, "text/javascript")
    visitor.open("/page")
    visitor.page.wait_for_load_state("networkidle")
    problems = "\n".join(visitor.monitor.problems)
    assert [problem for problem in FORBIDDEN.values() if problem not in problems] == [], problems
    assert visitor.monitor.statuses == [404]
    with pytest.raises(AssertionError, match="no such thing"):
        visitor.monitor.check()


def test_expected_statuses_must_occur(visitor):
    visitor.monitor.expect_statuses(404)
    assert visitor.open("/") == 200
    with pytest.raises(AssertionError, match=r"expected statuses \{404\}"):
        visitor.monitor.check()
    assert visitor.open("/boards/nowhere") == 404
    visitor.monitor.check()
    visitor.monitor.expect_statuses(403)
    with pytest.raises(AssertionError, match=r"expected statuses \{403\}"):
        visitor.monitor.check()


def test_unreadable_content_is_reported(visitor):
    html = "<!doctype html><title>x</title><h1>x</h1><input><pre>" + "wide " * 400
    html += "</pre><p><font color='#dddddd'>pale</font>"
    serve(visitor, "/page", html)
    visitor.open("/page")
    assert "label (critical)" in visitor.axe_violations()
    assert list(visitor.axe_violations("color-contrast", "target-size")) == [
        "color-contrast (serious)"
    ]
    assert any(element.startswith("<pre>") for element in visitor.overflowing())
