"""Receipts: written before anything is sent; pending ones are retried after a crash."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from ladderboard.client import Client
from ladderboard.client._config import Address, parse_address
from ladderboard.errors import InvalidPredictions, ServerUnreachable
from support.faulty_proxy import FaultyProxy
from support.server.live_server import make_predictions

CRASHED = """
import sys
from ladderboard.client import Client
Client(sys.argv[1], sys.argv[2]).submit(sys.argv[3], open(sys.argv[4], "rb"))
"""


@pytest.mark.parametrize("call", ["sync", "async"], indirect=True)
def test_a_submission_saves_a_private_receipt(live_server, token, call, home):
    reply = call(live_server.url, token, "submit", live_server.slug, make_predictions(30))
    (file,) = home.rglob("*.jsonl")
    assert (
        file
        == home
        / f"state/ladderboard/receipts/http_127.0.0.1_{live_server.port}/{live_server.slug}.jsonl"
    )
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    with Client(live_server.url, token) as client:
        (receipt,) = client.receipts(live_server.slug)
        assert client.receipts("another") == ()
        assert client.receipts_file(live_server.slug) == file
    assert receipt.state == "answered"
    assert receipt.sha256 == hashlib.sha256(make_predictions(30)).hexdigest()
    assert receipt.answer == reply.raw
    assert receipt.answer["receipt"] == reply.receipt
    pending, answered = map(json.loads, file.read_text().split("\n")[1:])
    assert pending["state"] == "pending"
    assert pending["key"] == answered["key"] == receipt.key


def test_every_server_has_a_folder_of_its_own(tmp_path):
    urls = [
        "http://a",
        "https://a",
        "https://a:8000",
        "https://a_8000",
        "https://a:80",
        "http://a.",
    ]
    urls += ["http://[::1]", "http://__1", "https://\xe4", "https://\xf6", "https://_"]
    addresses = [*map(parse_address, urls), Address("http", "..", 80), Address("http", "a/b", 80)]
    places = {address.folder_name for address in addresses}
    assert len(places) == len(addresses)
    assert {(tmp_path / name).resolve().parent for name in places} == {tmp_path.resolve()}
    assert not [name for name in places if name.startswith(".")]


def test_receipts_can_be_disabled_or_saved_elsewhere(live_server, token, home, tmp_path):
    with Client(live_server.url, token, receipts=None) as client:
        client.submit(live_server.slug, make_predictions(30))
        assert client.receipts(live_server.slug) == ()
        assert client.receipts_file(live_server.slug) is None
    assert not list(home.rglob("*.jsonl"))
    with Client(live_server.url, token, receipts=tmp_path / "kept") as client:
        client.submit(live_server.slug, make_predictions(30))
        assert len(client.receipts(live_server.slug)) == 1


def test_a_pending_submission_is_retried_with_its_key_after_a_crash(live_server, token, tmp_path):
    """Killed between the server's answer and its receipt: the submission counts once."""
    file = tmp_path / "predictions.csv"
    file.write_bytes(make_predictions(30))
    with FaultyProxy(live_server.port, "hang") as proxy:
        command = [sys.executable, "-c", CRASHED, proxy.url, token, live_server.slug, str(file)]
        with subprocess.Popen(command, env=os.environ) as process:
            while not proxy.requests:
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
        with Client(proxy.url, token) as client:
            (pending,) = client.receipts(live_server.slug)
            assert (pending.state, pending.answer) == ("pending", None)
            client.submit(live_server.slug, make_predictions(31))
            client.submit(live_server.slug, file)
            states = {receipt.key: receipt.state for receipt in client.receipts(live_server.slug)}
        first, second, third = proxy.keys
    assert first == third == pending.key != second
    assert list(states.values()) == ["answered", "answered"]


def test_unanswered_submissions_stay_pending_and_refused_ones_do_not(
    live_server, token, no_retry_delay
):
    with FaultyProxy(live_server.port, *["swallow"] * 2) as proxy:
        with Client(proxy.url, token, retries=1) as client:
            with pytest.raises(ServerUnreachable):
                client.submit(live_server.slug, make_predictions(30))
            assert [receipt.state for receipt in client.receipts(live_server.slug)] == ["pending"]
            reply = client.submit(live_server.slug, make_predictions(30))
            with pytest.raises(InvalidPredictions):
                client.submit(live_server.slug, b"nothing")
            assert [receipt.state for receipt in client.receipts(live_server.slug)] == [
                "answered",
                "refused",
            ]
        assert len(set(proxy.keys[:3])) == 1
    assert reply.again
    assert reply.question == 1


def test_a_truncated_line_does_not_damage_later_lines(live_server, token, home):
    with Client(live_server.url, token) as client:
        client.submit(live_server.slug, make_predictions(30))
        (file,) = home.rglob("*.jsonl")
        file.write_bytes(file.read_bytes()[:-30])
        client.submit(live_server.slug, make_predictions(40))
        states = [receipt.state for receipt in client.receipts(live_server.slug)]
    assert states == ["pending", "answered"]


def test_submit_does_not_read_a_long_history(live_server, token, home, monkeypatch):
    monkeypatch.setattr("ladderboard.client._receipts._RECENT_BYTES", 5000)
    with Client(live_server.url, token) as client:
        client.submit(live_server.slug, make_predictions(30))
        (file,) = home.rglob("*.jsonl")
        line = json.dumps({"state": "pending", "time": 1, "sha256": "0", "team": None, "key": "k"})
        digest = hashlib.sha256(make_predictions(40)).hexdigest()
        for key, sha256 in (("early", digest), *((f"k{index}", "0") for index in range(100))):
            old = json.loads(line) | {"key": key, "sha256": sha256}
            file.write_bytes(file.read_bytes() + b"\n" + json.dumps(old).encode())
        client.submit(live_server.slug, make_predictions(40))
        states = {receipt.key: receipt.state for receipt in client.receipts(live_server.slug)}
    assert states["early"] == "pending"  # too long ago to be taken up
    assert sorted(states.values()) == ["answered"] * 2 + ["pending"] * 101
