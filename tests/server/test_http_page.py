"""docs/reference/http.md lists exactly the problem codes; its routes are generated."""

import re
from pathlib import Path

from ladderboard.server._problems import PROBLEMS

PAGE = (Path(__file__).parents[2] / "docs/reference/http.md").read_text()


def test_the_page_lists_every_code_with_its_status():
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (\d+) \|", PAGE, re.MULTILINE)
    documented = {code: int(status) for codes, status in rows for code in re.findall(r"\w+", codes)}
    assert documented == {
        code: int(problem.partition(":")[0]) for code, problem in PROBLEMS.items()
    }
