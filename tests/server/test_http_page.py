"""docs/reference/http.md names every route, every code, and nothing else."""

import re
from pathlib import Path

from ladderboard.server._problems import PROBLEMS

PAGE = (Path(__file__).parents[2] / "docs/reference/http.md").read_text()


def test_the_page_names_every_route(live_server):
    named = set(re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (/[^`?]*)", PAGE))
    routes = {
        (method, route.path)
        for route in live_server.app.routes
        for method in route.methods - {"HEAD"}
    }
    assert named == routes


def test_the_page_names_every_code_with_its_status():
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (\d+) \|", PAGE, re.MULTILINE)
    told = {code: int(status) for codes, status in rows for code in re.findall(r"\w+", codes)}
    assert told == {code: int(said.partition(":")[0]) for code, said in PROBLEMS.items()}
