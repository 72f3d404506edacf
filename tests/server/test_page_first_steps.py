"""What newcomers see: links that work, advice on wrong files, and commands to paste."""

import re
import subprocess
import sys
from html import unescape

import pytest

from support.server.live_server import make_predictions

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@pytest.fixture
def browser(empty_server):
    with empty_server.browser() as client:
        yield client


def page_text(page):
    return " ".join(unescape(re.sub("<[^>]+>", " ", page)).split())


@pytest.mark.parametrize("registration", ["open", "invited"])
def test_a_full_board_offers_no_way_to_join(empty_server, browser, registration):
    live_server = empty_server
    live_server.create_board(teams=2, registration=registration)
    pages = [f"/boards/{live_server.slug}{path}" for path in ("", "/submit", "/join")]
    join = f'href="/boards/{live_server.slug}/join"'
    for is_full in (False, True):
        first, submit, form = (browser.get(page).text for page in pages)
        assert (join not in first, join not in submit, 'name="name"' not in form) == (is_full,) * 3
        assert ("2 places on this board are taken" in submit) == is_full
        assert ("The board is full" in form) == is_full
        assert ("2 places are taken. Is one yours?" in first) == is_full
        if not is_full:
            live_server.join("Alpha")
            live_server.join("Beta")


def submit_file(live_server, browser, body):
    """Submit a file as a new team; return the page before and the reply."""
    _, token = live_server.join("Alpha")
    live_server.sign_in(browser, token)
    path = f"/boards/{live_server.slug}/submit"
    page = browser.get(path).text
    query = re.search(rf'action="{path}\?csrf=([^"]+)"', page)[1]
    response = browser.post(f"{path}?csrf={query}", files={"file": ("a.csv", body, "text/csv")})
    return page, response.text


def test_a_wrong_encoding_gets_one_piece_of_advice(empty_server, browser):
    empty_server.create_board()
    _, reply = submit_file(empty_server, browser, "id,prediction\n0,é\n".encode("latin-1"))
    (notice,) = re.findall(r'<div [^>]*role="alert" id="reply".*?\n</div>\n', reply, re.DOTALL)
    assert page_text(notice).count("Save the file as UTF-8") == 1


def test_an_extra_column_is_not_mistaken_for_ids(empty_server, browser):
    empty_server.create_board()
    rows = "".join(f"{number},1,x\n" for number in range(400))
    _, reply = submit_file(empty_server, browser, f"id,prediction,note\n{rows}".encode())
    assert "1 unexpected column: 'note'. Remove it." in unescape(reply)
    assert "name it id" not in reply


def test_counts_have_thousands_separators_everywhere(empty_server, browser):
    live_server = empty_server
    live_server.create_board(questions=80_000, teams=2)
    page, reply = submit_file(live_server, browser, make_predictions(30))
    assert "40,000 submissions left" in page
    assert "39,999 submissions left" in reply
    assert "A table with 400 rows" in page
    for html in (page, reply, browser.get(f"/boards/{live_server.slug}").text):
        text = re.sub(r"\b[0-9a-f]{16,}\b|\b2027\b", "", page_text(html))  # hashes and dates
        assert "\u202f" not in text
        assert re.findall(r"(?<![\d.,:])\d{4,}(?![\d:])", text) == []


PIP = """#!/bin/sh
exec {python} -m pip "$@" --quiet --no-index --no-deps --disable-pip-version-check --target {place}
"""
PROGRAM = """#!/bin/sh
export PYTHONPATH={place}
{python} -c 'import ladderboard, sys; sys.exit(not ladderboard.__file__.startswith("{place}"))' &&
exec {python} -m ladderboard "$@"
"""


def test_the_shell_commands_on_the_page_work(empty_server, browser, tmp_path):
    """They install the wheel that the server offers; its dependencies are already installed."""
    live_server = empty_server
    live_server.create_board()
    page = unescape(browser.get(f"/boards/{live_server.slug}/submit").text)
    lines = re.search(r"<code>(pip install .*\nladderboard submit .*)</code>", page)[1]
    (tmp_path / "predictions.csv").write_bytes(make_predictions(30))
    (tmp_path / "bin").mkdir()
    for name, text in (("pip", PIP), ("ladderboard", PROGRAM)):
        shim = tmp_path / "bin" / name
        shim.write_text(text.format(python=sys.executable, place=tmp_path / "installed"))
        shim.chmod(0o755)
    completed = subprocess.run(
        ["bash", "-euc", lines],
        cwd=tmp_path,
        env={
            "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
            "HOME": str(tmp_path),
            "LADDERBOARD_TOKEN": live_server.join("Alpha")[1],
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert "accuracy" in completed.stdout or "zero-one loss" in completed.stdout
    other = browser.get("/install/ladderboard-9.9-py3-none-any.whl")
    assert other.status_code == 404
