"""What newcomers see on the pages: no way in that leads nowhere, advice once, numbers alike."""

import re
import subprocess
import sys
from html import unescape

import pytest

from support.server.live_server import make_predictions

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@pytest.fixture
def browser(empty_server):
    with empty_server.browser() as made:
        yield made


def words(page):
    return " ".join(unescape(re.sub("<[^>]+>", " ", page)).split())


@pytest.mark.parametrize("registration", ["open", "invited"])
def test_a_full_board_offers_no_way_to_join(empty_server, browser, registration):
    live_server = empty_server
    live_server.create_board(teams=2, registration=registration)
    pages = [f"/boards/{live_server.slug}{each}" for each in ("", "/submit", "/join")]
    join = f'href="/boards/{live_server.slug}/join"'
    for full in (False, True):
        first, submit, form = (browser.get(page).text for page in pages)
        assert (join not in first, join not in submit, 'name="name"' not in form) == (full,) * 3
        assert ("2 places on this board are taken" in submit) == full
        assert ("The board is full" in form) == full
        if not full:
            live_server.join("Alpha")
            live_server.join("Beta")


def submitted(live_server, browser, body):
    """Return what the page says to a team that sends a file."""
    _, token = live_server.join("Alpha")
    live_server.sign_in(browser, token)
    path = f"/boards/{live_server.slug}/submit"
    page = browser.get(path).text
    query = re.search(rf'action="{path}\?csrf=([^"]+)"', page)[1]
    said = browser.post(f"{path}?csrf={query}", files={"file": ("a.csv", body, "text/csv")})
    return page, said.text


def test_a_file_in_another_encoding_is_advised_once(empty_server, browser):
    empty_server.create_board()
    _, said = submitted(empty_server, browser, "id,prediction\n0,é\n".encode("latin-1"))
    (notice,) = re.findall(r'<div [^>]*role="alert" id="reply".*?\n</div>\n', said, re.DOTALL)
    assert words(notice).count("Save the file as UTF-8") == 1


def test_an_extra_column_is_not_advised_to_be_ids(empty_server, browser):
    empty_server.create_board()
    rows = "".join(f"{at},1,x\n" for at in range(400))
    _, said = submitted(empty_server, browser, f"id,prediction,note\n{rows}".encode())
    assert "1 unexpected column: 'note'. Remove it." in unescape(said)
    assert "name it id" not in said


def test_counts_are_written_in_one_way(empty_server, browser):
    live_server = empty_server
    live_server.create_board(questions=80_000, teams=2)
    page, said = submitted(live_server, browser, make_predictions(30))
    assert "40,000 questions left" in page
    assert "39,999 questions left" in said
    assert "A table with 400 rows" in page
    for each in (page, said, browser.get(f"/boards/{live_server.slug}").text):
        text = re.sub(r"\b[0-9a-f]{16,}\b|\b2027\b", "", words(each))  # hashes and dates
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


def test_the_lines_for_a_shell_work_as_pasted(empty_server, browser, tmp_path):
    """They do with the wheel that the server offers; only its dependencies are here already."""
    live_server = empty_server
    live_server.create_board()
    page = unescape(browser.get(f"/boards/{live_server.slug}").text)
    lines = re.search(r"<code>(pip install .*\nladderboard submit .*)</code>", page)[1]
    (tmp_path / "predictions.csv").write_bytes(make_predictions(30))
    (tmp_path / "bin").mkdir()
    for name, text in (("pip", PIP), ("ladderboard", PROGRAM)):
        shim = tmp_path / "bin" / name
        shim.write_text(text.format(python=sys.executable, place=tmp_path / "installed"))
        shim.chmod(0o755)
    done = subprocess.run(
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
    assert done.returncode == 0, done.stdout + done.stderr
    assert "accuracy" in done.stdout or "zero_one" in done.stdout
    other = browser.get("/install/ladderboard-9.9-py3-none-any.whl")
    assert other.status_code == 404
