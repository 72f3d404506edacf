"""Receipts on a disk that is full: the answer is told all the same."""

import json
import sys

import pytest

from ladderboard.cli import main
from ladderboard.client import Client
from ladderboard.errors import DiskFull, InvalidSetting, ReadOnly
from support.server.live_server import make_predictions


@pytest.fixture
def kept(live_server, token, disk, home, monkeypatch):
    """Keep receipts on the small disk; give the file, in which there is room for one line more."""
    monkeypatch.setenv("XDG_STATE_HOME", str(disk.path))
    with Client(live_server.url, token) as client:
        file = client.receipts_file(live_server.slug)
    file.parent.mkdir(mode=0o700, parents=True)
    file.write_bytes(b"\n" * (4096 - 400))
    disk.fill()
    return file


def test_an_answer_is_told_though_its_receipt_cannot_be_kept(
    kept, live_server, token, disk, home, monkeypatch, capsys
):
    (home / "p.csv").write_bytes(make_predictions(30))
    monkeypatch.setenv("LADDERBOARD_TOKEN", token)
    words = ["submit", f"{live_server.url}/boards/{live_server.slug}", "-f", str(home / "p.csv")]
    monkeypatch.setattr(sys, "argv", ["ladderboard", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert not ended.value.code
    assert said.out.startswith("A new best: ")
    assert f"The receipt in {kept} could not be written: No space left on device." in said.err
    assert "Warning" not in said.err
    with Client(live_server.url, token) as client:
        (pending,) = client.receipts(live_server.slug)
        assert (pending.state, pending.answer) == ("pending", None)  # of the rest nothing is read
        disk.free()
        again = client.submit(live_server.slug, home / "p.csv")
        assert (again.again, again.number) == (True, 1)
        (receipt,) = client.receipts(live_server.slug)
    assert (receipt.state, receipt.key) == ("answered", pending.key)


def test_without_room_for_a_receipt_nothing_is_sent(kept, live_server, token):
    with kept.open("ab", buffering=0) as file:
        file.write(b"\n" * 400)
    with Client(live_server.url, token) as client:
        with pytest.raises(InvalidSetting, match=r"No space left on device\. Nothing was sent"):
            client.submit(live_server.slug, make_predictions(30))
        assert client.team(live_server.slug).submissions == 0


@pytest.mark.parametrize(
    ("status", "code", "kind"), [(507, "disk_full", DiskFull), (503, "read_only", ReadOnly)]
)
def test_what_a_server_s_disk_did_is_known_for_certain(status, code, kind):
    from ladderboard.client._errors import error_from_problem

    told = json.loads('{"detail": "Nothing was recorded.", "errors": []}')
    error = error_from_problem(status, {**told, "code": code}, None)
    assert type(error) is kind
    assert not error.uncertain
