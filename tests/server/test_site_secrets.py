"""A site contains no secret that was not opened, in any byte of any file."""

import json
import os
import re
from pathlib import Path

import pytest

from ladderboard.board import Caller, Role
from ladderboard.files import read_holdout
from ladderboard.server import write_site
from ladderboard.server._pages._static import wheel_file
from support.server.live_server import make_folder, make_predictions
from support.site_crawler import crawl_site

ORGANISER = Caller(Role.ORGANISER)
ROWS = range(400)
NOTE = "a note for ourselves only"
# Only labels and submissions contain the ids of this holdout.
ID = "heron-{:04d}"


def predictions_file(wrong):
    rows = (f"{ID.format(index)},{index % 2 ^ (index % wrong == 0)}" for index in ROWS)
    return "\n".join(["id,prediction", *rows, ""]).encode()


@pytest.fixture
def secret_board(empty_server):
    """A board with two teams, one of them disqualified, and the teams with their tokens."""
    live_server = empty_server
    folder = make_folder(live_server.slug)
    rows = (
        f"{ID.format(index)},{index % 2},{'public' if index < 300 else 'private'}" for index in ROWS
    )
    folder.table = read_holdout("\n".join(["id,label,split", *rows, ""]).encode())
    board = live_server.boards.create(folder)
    teams = [live_server.join(name) for name in ("Egrets Anonymous", "Put Out To Sea")]
    for index, (_, token) in enumerate(teams):
        response = live_server.submit(
            token, predictions_file(3 + index), query=f"?message={NOTE}", Idempotency_Key="once"
        )
        assert response.status_code == 201, response.text
    board.teams.invite_team(ORGANISER)
    board.teams.disqualify(ORGANISER, teams[1][0])
    return board, teams


def all_bytes(folder):
    """Return all bytes of a site, with the names of its files; the bundle is not packed."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return b"\0".join([file.name.encode() + b"\0" + file.read_bytes() for file in files])


def secrets_of(board, teams, live_server, request):
    """Return by name the texts that no site may contain."""
    keys = {f"token {index}": token for index, (_, token) in enumerate(teams)}
    texts = {**keys, "organiser": live_server.organiser, "note": NOTE, "retry": "once\0"}
    texts |= {f"{name} (its end)": token[-20:] for name, token in keys.items()}
    texts["folder"] = os.fspath(request.getfixturevalue("tmp_path").parents[1])
    texts |= {"source": os.fspath(request.config.rootpath), "home": f"{Path.home()}/"}
    texts |= {"postgres": "postgresql", "sqlite": "boards-", "loopback": "127.0.0.1"}
    encoded = {name: text.encode() for name, text in texts.items()}
    marking = bytes(board.book.read_encrypted("marking"))
    return {**encoded, "marking": marking, "marking in hex": marking.hex().encode()}


def test_a_site_contains_only_opened_secrets(secret_board, empty_server, request, tmp_path):
    board, teams = secret_board
    secrets = secrets_of(board, teams, empty_server, request)
    salt = bytes(board.book.read_encrypted("salt of the holdout"))
    packed = board.scorer().read(predictions_file(3)).packed
    board.closer.close(ORGANISER)
    opened = {}
    for options in ((), ("labels",), ("submissions",), ("labels", "submissions")):
        site = write_site(
            board, tmp_path / "-".join(("out", *options)), **dict.fromkeys(options, True)
        )
        text = all_bytes(site.folder)
        assert [name for name, secret in secrets.items() if secret in text] == []
        opened[options] = (
            ID.format(7).encode() in text, salt in text or salt.hex().encode() in text,
            packed in text,
        )  # fmt: skip
    # The same search finds what the organiser opened, and only that.
    assert opened == {
        (): (False, False, False),
        ("labels",): (True, True, False),
        ("submissions",): (False, False, True),  # predictions, in the holdout's order
        ("labels", "submissions"): (True, True, True),
    }


def test_a_disqualified_team_is_on_no_page(secret_board, tmp_path):
    board, _ = secret_board
    board.closer.close(ORGANISER)
    folder = write_site(board, tmp_path / "out").folder
    bundle = (folder / f"{board.slug}.bundle").read_bytes()
    assert b"Put Out To Sea" in bundle  # which contains the whole history
    text = all_bytes(folder).replace(bundle, b"")
    assert b"Egrets Anonymous" in text
    assert b"Put Out To Sea" not in text


@pytest.mark.parametrize("visibility", ["hidden", "anonymous"])
def test_the_site_of_a_hidden_or_anonymous_board_shows_no_names(
    secret_board, empty_server, tmp_path, visibility
):
    board, teams = secret_board
    board.amendments.amend(ORGANISER, {"visibility": visibility})
    board.closer.close(ORGANISER)
    folder = write_site(board, tmp_path / "out", bundle=False).folder
    text = all_bytes(folder)
    assert b"Egrets" not in text
    assert (teams[0][0].encode() in text) == (visibility == "anonymous")
    crawl_site(folder)
    page = empty_server.client.get(f"/boards/{board.slug}/ledger.jsonl").content
    assert (folder / "ledger.jsonl").read_bytes() == page
    if visibility == "hidden":
        names = {path.name for path in folder.iterdir()}
        pages = {"index.html", "rules.html", "standings.html", "verify.html"}
        names.remove(wheel_file()[0])
        assert names == pages | {"ledger.jsonl", "board.json", "sha256sums.txt", "static"}
        assert len(page.splitlines()) == 1
        board_json = json.loads((folder / "board.json").read_bytes())
        assert (board_json["used"], board_json["best"]["released"]) == (None, None)
        index_html = (folder / "index.html").read_text()
        assert re.search(r"The board was closed for good\.", index_html)


def test_a_hidden_boards_site_does_not_depend_on_submissions(empty_server, tmp_path):
    """Two boards with different submissions have the same site but for their ids."""
    texts = []
    for wrong in ((), (140, 90, 40)):
        empty_server.reset()
        board = empty_server.create_board(visibility="hidden")
        _, token = empty_server.join("Ada")
        for count in wrong:
            empty_server.clock.now += 60
            empty_server.submit(token, make_predictions(count))
        board.closer.close(ORGANISER)
        folder = write_site(board, tmp_path / board.slug, bundle=False).folder
        (folder / wheel_file()[0]).unlink()  # the program, in which ids may occur by chance
        text = all_bytes(folder)
        identifiers = re.compile(rb"\b([0-9a-f]{32,64}|%b)\b" % board.slug.encode())
        texts.append(identifiers.sub(b"", text))
    assert texts[0] == texts[1]
