"""Receipts on a full disk: the answer is still returned."""

import json
import sys

import pytest

from ladderboard.cli import main
from ladderboard.client import Client
from ladderboard.errors import DiskFull, InvalidSetting, ReadOnly
from support.server.live_server import make_predictions


@pytest.fixture
def receipts_file(live_server, token, disk, home, monkeypatch):
    """Return a receipts file on the small disk, which has room for one more line."""
    monkeypatch.setenv("XDG_STATE_HOME", str(disk.path))
    with Client(live_server.url, token) as client:
        file = client.receipts_file(live_server.slug)
    file.parent.mkdir(mode=0o700, parents=True)
    file.write_bytes(b"\n" * (4096 - 400))
    disk.fill()
    return file


def test_an_answer_is_returned_though_its_receipt_cannot_be_saved(
    receipts_file, live_server, token, disk, home, monkeypatch, capsys
):
    (home / "p.csv").write_bytes(make_predictions(30))
    monkeypatch.setenv("LADDERBOARD_TOKEN", token)
    arguments = [
        "submit",
        f"{live_server.url}/boards/{live_server.slug}",
        "-f",
        str(home / "p.csv"),
    ]
    monkeypatch.setattr(sys, "argv", ["ladderboard", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    captured = capsys.readouterr()
    assert not ended.value.code
    assert captured.out.startswith("A new best: ")
    assert (
        f"The receipt in {receipts_file} could not be written: No space left on device."
        in captured.err
    )
    assert "Warning" not in captured.err
    with Client(live_server.url, token) as client:
        (pending,) = client.receipts(live_server.slug)
        assert (pending.state, pending.answer) == ("pending", None)  # of the rest nothing is read
        disk.free()
        second = client.submit(live_server.slug, home / "p.csv")
        assert (second.again, second.number) == (True, 1)
        (receipt,) = client.receipts(live_server.slug)
    assert (receipt.state, receipt.key) == ("answered", pending.key)


def test_without_room_for_a_receipt_nothing_is_sent(receipts_file, live_server, token):
    with receipts_file.open("ab", buffering=0) as file:
        file.write(b"\n" * 400)
    with Client(live_server.url, token) as client:
        with pytest.raises(InvalidSetting, match=r"No space left on device\. Nothing was sent"):
            client.submit(live_server.slug, make_predictions(30))
        assert client.team(live_server.slug).submissions == 0


@pytest.mark.parametrize(
    ("status", "code", "kind"), [(507, "disk_full", DiskFull), (503, "read_only", ReadOnly)]
)
def test_a_full_disk_of_the_server_is_a_definite_answer(status, code, kind):
    from ladderboard.client._transport import error_from_problem

    data = json.loads('{"detail": "Nothing was recorded.", "errors": []}')
    error = error_from_problem(status, {**data, "code": code}, None)
    assert type(error) is kind
    assert not error.uncertain
