"""docs/reference/guard-http.md names every route of a served guard, and every refusal."""

import re
from pathlib import Path

import ladderboard as lb
from ladderboard.server import GuardApp
from ladderboard.server._guard import _app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/guard-http.md").read_text()


def test_the_page_names_every_route_and_no_other(tmp_path):
    guard = lb.Holdout.create(tmp_path / "guard.db", labels=[0, 1] * 50, questions=10)
    routes = GuardApp(guard, hosts=None)._app.routes
    there = {(method, each.path) for each in routes for method in each.methods - {"HEAD"}}
    guard.close()
    assert set(re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (/[^`?]*)", PAGE)) == there


def test_the_page_names_every_code_and_no_other():
    named = set(re.findall(r"^\| [\d, ]+ \| `(\w+)` \|", PAGE, re.MULTILINE))
    kinds = {kind.code for _, kind in _app._KINDS}
    assert kinds <= named
    server = ROOT / "src/ladderboard/server"
    sources = [
        *sorted((server / "_guard").glob("*.py")),
        server / "_content_types.py",
        server / "_problems.py",
    ]
    said = "".join(path.read_text() for path in sources)
    raised = set(re.findall(r"(?:Refused|problem)\(\s*[\w.]+,\s*\"(\w+)\"", said))
    assert raised <= named, "a refusal that the page does not tell"
    assert {code for code in named if f'"{code}"' not in said} == set()
