"""The page about the client names everything, and its examples work."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import ladderboard.client
from ladderboard.client import AsyncClient, Client
from support.server.live_server import make_predictions

PAGE = (Path(__file__).parents[2] / "docs/reference/client.md").read_text()


def test_the_reference_page_names_everything():
    for name in ladderboard.client.__all__:
        assert re.search(rf"`{name}\b", PAGE), name
    for kind in (Client, AsyncClient):
        for name, _ in inspect.getmembers(kind, inspect.isfunction):
            assert name.startswith("_") or re.search(rf"`(client\.)?{name}\(", PAGE), name
    for name in inspect.signature(Client).parameters:
        assert f"| `{name}` |" in PAGE


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
    expected_ends = ["1 Ada 0.2\n", "a 24\n", "[1]\n"]
    assert output.endswith(expected_ends[index])
