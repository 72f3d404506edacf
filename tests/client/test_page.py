"""The examples of the page about the client work; its names are generated."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.server.live_server import make_predictions

PAGE = (Path(__file__).parents[2] / "docs/reference/client.md").read_text()


@pytest.mark.parametrize("index", range(3))
def test_examples_on_the_reference_page_work(
    live_server, token, tmp_path, monkeypatch, capsys, index
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LADDERBOARD_TOKEN", token)
    (tmp_path / "predictions.csv").write_bytes(make_predictions(60))
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 3
    code = blocks[index].replace("https://boards.example.org", live_server.url)
    exec(code.replace('"digits"', f'"{live_server.slug}"'), {})  # noqa: S102
    output = capsys.readouterr().out
    expected_ends = ["1 Ada 0.2\n", "[1]\n", "a 24\n"]
    assert output.endswith(expected_ends[index])
