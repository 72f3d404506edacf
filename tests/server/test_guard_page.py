"""docs/reference/guard-http.md names every route of a served guard, and every refusal."""

import re
from pathlib import Path

import ladderboard as lb
from ladderboard.server import GuardApp
from ladderboard.server._guard import _app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/guard-http.md").read_text()


def test_the_page_lists_exactly_the_routes(tmp_path):
    guard = lb.Holdout.create(tmp_path / "guard.db", labels=[0, 1] * 50, questions=10)
    gate = lb.Gate.create(tmp_path / "gate.db", labels=[0, 1] * 50, looks=10)
    apps = (GuardApp(guard, hosts=None, grade=True), _app.GateApp(gate, hosts=None))
    routes = [route for app in apps for route in app._app.routes]
    served = {(method, route.path) for route in routes for method in route.methods - {"HEAD"}}
    guard.close()
    gate.close()
    assert set(re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (/[^`?]*)", PAGE)) == served


def test_the_page_lists_exactly_the_codes():
    documented = set(re.findall(r"^\| [\d, ]+ \| `(\w+)` \|", PAGE, re.MULTILINE))
    kinds = {kind.code for _, kind in _app._KINDS}
    assert kinds <= documented
    server = ROOT / "src/ladderboard/server"
    sources = [
        *sorted((server / "_guard").glob("*.py")),
        server / "_uploads/_body.py",
        server / "_problems.py",
    ]
    source = "".join(path.read_text() for path in sources)
    raised = set(re.findall(r"(?:Refused|problem)\(\s*[\w.]+,\s*\"(\w+)\"", source))
    assert raised <= documented, "a refusal that the page does not mention"
    assert {code for code in documented if f'"{code}"' not in source} == set()
