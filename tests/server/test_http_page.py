"""docs/reference/http.md lists exactly the routes and the problem codes."""

import re
from pathlib import Path

from ladderboard.server._problems import PROBLEMS

PAGE = (Path(__file__).parents[2] / "docs/reference/http.md").read_text()


def test_the_page_lists_exactly_the_routes(live_server):
    documented = set(re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (/[^`?]*)", PAGE))
    routes = {
        (method, route.path)
        for route in live_server.app.routes
        for method in route.methods - {"HEAD"}
    }
    assert documented == routes


def test_the_page_lists_every_code_with_its_status():
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (\d+) \|", PAGE, re.MULTILINE)
    documented = {code: int(status) for codes, status in rows for code in re.findall(r"\w+", codes)}
    assert documented == {
        code: int(problem.partition(":")[0]) for code, problem in PROBLEMS.items()
    }
