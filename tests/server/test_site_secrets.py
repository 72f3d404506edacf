"""What a site must not hold: whatever was secret and was not opened, in any byte of any file."""

import json
import os
import re
from pathlib import Path

import pytest

from ladderboard.board import Caller, Role
from ladderboard.files import read_holdout
from ladderboard.server import write_site
from support.server.live_server import make_folder, make_predictions
from support.site_crawler import crawl_site

ORGANISER = Caller(Role.ORGANISER)
ROWS = range(400)
NOTE = "a note for ourselves only"
# What labels and submissions alone hold: nobody else knows the ids of this holdout.
ID = "heron-{:04d}"


def file_of(wrong):
    rows = (f"{ID.format(at)},{at % 2 ^ (at % wrong == 0)}" for at in ROWS)
    return "\n".join(["id,prediction", *rows, ""]).encode()


@pytest.fixture
def secret_board(empty_server):
    """A board with two teams, one of them disqualified, and everything that is secret of it."""
    live_server = empty_server
    folder = make_folder(live_server.slug)
    rows = (f"{ID.format(at)},{at % 2},{'public' if at < 300 else 'private'}" for at in ROWS)
    folder.table = read_holdout("\n".join(["id,label,split", *rows, ""]).encode())
    board = live_server.boards.create(folder)
    teams = [live_server.join(name) for name in ("Egrets Anonymous", "Put Out To Sea")]
    for at, (_, token) in enumerate(teams):
        said = live_server.submit(
            token, file_of(3 + at), query=f"?message={NOTE}", Idempotency_Key="once"
        )
        assert said.status_code == 201, said.text
    board.teams.invite(ORGANISER)
    board.teams.disqualify(ORGANISER, teams[1][0])
    return board, teams


def everything(folder):
    """Return all bytes of a site, with the names of its files; the bundle is not packed."""
    files = sorted(each for each in folder.rglob("*") if each.is_file())
    return b"\0".join([each.name.encode() + b"\0" + each.read_bytes() for each in files])


def secrets_of(board, teams, live_server, request):
    """Return what nobody is ever told by a site, by name."""
    keys = {f"token {at}": token for at, (_, token) in enumerate(teams)}
    found = {**keys, "organiser": live_server.organiser, "note": NOTE, "retry": "once\0"}
    found |= {f"{name} (its end)": token[-20:] for name, token in keys.items()}
    found["folder"] = os.fspath(request.getfixturevalue("tmp_path").parents[1])
    found |= {"source": os.fspath(request.config.rootpath), "home": f"{Path.home()}/"}
    found |= {"postgres": "postgresql", "sqlite": "boards-", "loopback": "127.0.0.1"}
    kept = {name: text.encode() for name, text in found.items()}
    marking = bytes(board.book.read_encrypted("marking"))
    return {**kept, "marking": marking, "marking in hex": marking.hex().encode()}


def test_nothing_that_was_kept_is_in_it(secret_board, empty_server, request, tmp_path):
    board, teams = secret_board
    kept = secrets_of(board, teams, empty_server, request)
    salt = bytes(board.book.read_encrypted("salt of the holdout"))
    sent = board.scorer().read(file_of(3)).pack()
    board.closer.close(ORGANISER)
    opened = {}
    for words in ((), ("labels",), ("submissions",), ("labels", "submissions")):
        made = write_site(board, tmp_path / "-".join(("out", *words)), **dict.fromkeys(words, True))
        text = everything(made.folder)
        assert [name for name, secret in kept.items() if secret in text] == []
        opened[words] = (
            ID.format(7).encode() in text, salt in text or salt.hex().encode() in text,
            sent in text,
        )  # fmt: skip
    # The same eyes find what was opened on the organiser's word, and only that.
    assert opened == {
        (): (False, False, False),
        ("labels",): (True, True, False),
        ("submissions",): (False, False, True),  # predictions, in the holdout's order
        ("labels", "submissions"): (True, True, True),
    }


def test_who_was_put_out_is_on_no_page(secret_board, tmp_path):
    board, _ = secret_board
    board.closer.close(ORGANISER)
    folder = write_site(board, tmp_path / "out").folder
    bundle = (folder / f"{board.slug}.bundle").read_bytes()
    assert b"Put Out To Sea" in bundle  # which is the whole history
    text = everything(folder).replace(bundle, b"")
    assert b"Egrets Anonymous" in text
    assert b"Put Out To Sea" not in text


@pytest.mark.parametrize("visibility", ["hidden", "anonymous"])
def test_what_a_board_does_not_show_its_site_does_not(
    secret_board, empty_server, tmp_path, visibility
):
    board, teams = secret_board
    board.amendments.amend(ORGANISER, {"visibility": visibility})
    board.closer.close(ORGANISER)
    folder = write_site(board, tmp_path / "out", bundle=False).folder
    text = everything(folder)
    assert b"Egrets" not in text
    assert (teams[0][0].encode() in text) == (visibility == "anonymous")
    crawl_site(folder)
    page = empty_server.client.get(f"/boards/{board.slug}/ledger.jsonl").content
    assert (folder / "ledger.jsonl").read_bytes() == page
    if visibility == "hidden":
        names = {each.name for each in folder.iterdir()}
        assert names == {"index.html", "ledger.jsonl", "board.json", "sha256sums.txt", "static"}
        assert len(page.splitlines()) == 1
        told = json.loads((folder / "board.json").read_bytes())
        assert (told["used"], told["best"]["released"]) == (None, None)
        said = (folder / "index.html").read_text()
        assert re.search(r"The board was closed for good\.", said)


def test_a_hidden_world_looks_the_same_whoever_asked(empty_server, tmp_path):
    """Two boards that differ in who asked what, and whose sites differ in nothing else."""
    texts = []
    for wrong in ((), (140, 90, 40)):
        empty_server.reset()
        board = empty_server.create_board(visibility="hidden")
        _, token = empty_server.join("Ada")
        for each in wrong:
            empty_server.clock.now += 60
            empty_server.submit(token, make_predictions(each))
        board.closer.close(ORGANISER)
        text = everything(write_site(board, tmp_path / board.slug, bundle=False).folder)
        own = re.compile(rb"\b([0-9a-f]{32,64}|%b)\b" % board.slug.encode())
        texts.append(own.sub(b"", text))
    assert texts[0] == texts[1]
