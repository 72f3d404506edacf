"""The transport to a served guard: broken connections, wrong servers, addresses and tokens."""

import json
import pickle
import socket
import threading

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import GuardUnreachable, InvalidSetting
from ladderboard.holdout import RemoteHoldout
from ladderboard.server import GuardApp
from support.credentials import random_secret

MODEL = np.zeros(10)


def fake_server(answers):
    """Listen, and send one of the answers on each connection; return the URL and the count."""
    listener = socket.create_server(("127.0.0.1", 0))
    seen = []

    def run():
        for answer in answers:
            line, _ = listener.accept()
            with line:
                seen.append(line.recv(100_000))
                line.sendall(answer)
        listener.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}", seen, thread


def test_a_broken_connection_is_retried_once():
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n"
    for first in (b"", b"HTTP/1.1 200", head + b"{}"):
        url, seen, thread = fake_server([first, head + b'{"remaining": 7}'])
        assert RemoteHoldout(url).remaining == 7
        thread.join()
        assert len(seen) == 2
    url, seen, thread = fake_server([b"", b"", b""])
    with pytest.raises(GuardUnreachable, match="guard serve FILE"):
        _ = RemoteHoldout(url).remaining
    assert len(seen) == 2
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))):
        pass  # lets the listener end
    thread.join()


@pytest.mark.parametrize(
    "body",
    [
        *(b"hello", b"[]", b"{}", b'{"remaining": "many"}', b'{"remaining": null}', b"[" * 100_000),
        *(b'{"remaining": %b}' % number for number in (b"1e999", b"Infinity", b"NaN", b"9" * 400)),
    ],
    ids=lambda body: body[:30].decode(),
)
def test_other_servers_are_not_taken_for_a_guard(body):
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    url, _, thread = fake_server([head + body])
    with pytest.raises(GuardUnreachable, match="is not a guard"):
        _ = RemoteHoldout(url).remaining
    thread.join()


def answer_with(content):
    body = json.dumps(content).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


@pytest.mark.parametrize(
    "bad", ["\x1b]0;owned\x07", "ab" * 31, "AB" * 32, "ab" * 32 + "\n", 7, None]
)
def test_a_head_that_is_not_a_hash_is_refused(bad):
    url, _, thread = fake_server([answer_with({"head": bad})])
    with pytest.raises(GuardUnreachable, match="is not a guard"):
        _ = RemoteHoldout(url).head
    thread.join()
    url, _, thread = fake_server([answer_with({"head": "ab" * 32})])
    assert RemoteHoldout(url).head == "ab" * 32
    thread.join()


@pytest.mark.parametrize(
    ("field", "bad"), [("commitment", "abc\x1b[2J"), ("head", "abcd"), (None, None)]
)
def test_status_hashes_that_are_invalid_are_refused(tmp_path, field, bad):
    guard = lb.Holdout.create(tmp_path / "g.db", MODEL, questions=2, mechanism=lb.Exact())
    status = GuardApp(guard, hosts=None)._describe()
    url, _, thread = fake_server([answer_with({**status, **({field: bad} if field else {})})])
    if field is None:
        assert RemoteHoldout(url).status().head == guard.head
    else:
        with pytest.raises(GuardUnreachable, match="is not a guard"):
            RemoteHoldout(url).status()
    thread.join()


@pytest.mark.parametrize("suffix", ["\x1b[2J", "\n", ""])
def test_a_reason_with_control_characters_is_refused(tmp_path, suffix):
    guard = lb.Holdout.create(tmp_path / "g.db", MODEL, questions=2, mechanism=lb.Exact())
    reply = guard.ask(MODEL).describe()
    url, _, thread = fake_server([answer_with({**reply, "reason": reply["reason"] + suffix})])
    if suffix:
        with pytest.raises(GuardUnreachable, match="is not a guard"):
            RemoteHoldout(url).ask(MODEL)
    else:
        assert str(RemoteHoldout(url).ask(MODEL)) == reply["reason"]
    thread.join()


def test_a_silent_guard_times_out():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        remote = RemoteHoldout(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.05)
        with pytest.raises(GuardUnreachable, match="not counted twice"):
            remote.ask(MODEL)


def test_an_unreachable_guard_is_reported(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for url in (f"http://127.0.0.1:{port}", f"unix:{tmp_path}/nobody", "http://.."):
        with pytest.raises(GuardUnreachable, match="cannot be reached") as refused:
            lb.Holdout.connect(url).ask(MODEL)
        assert url in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "guard.db",
            "",
            None,
            8765,
            "http://",
            "ftp://x",
            "unix:",
            "http://[::1",
            "127.0.0.1:8765",
        ),
        *("http://u:p@127.0.0.1", "http://127.0.0.1/api", "http://127.0.0.1:99999"),
    ],
)
def test_invalid_addresses_are_refused(url):
    with pytest.raises(InvalidSetting, match="like http://127"):
        lb.Holdout.connect(url)


def test_a_token_is_not_sent_in_the_clear(monkeypatch):
    for url in ("http://example.org", "http://192.168.0.1:8765", "http://localhost.evil.example"):
        with pytest.raises(InvalidSetting, match="unencrypted"):
            lb.Holdout.connect(url, token="x" * 20)
    monkeypatch.setenv("LADDERBOARD_TOKEN", "y" * 20)
    with pytest.raises(InvalidSetting, match="unencrypted"):
        lb.Holdout.connect("http://example.org")
    for url in ("http://127.0.0.1:1", "http://localhost:1", "https://example.org", "unix:/x"):
        assert "yyy" not in repr(lb.Holdout.connect(url))
    assert b"yyy" not in pickle.dumps(lb.Holdout.connect("unix:/x"))  # it is in the environment
    with pytest.raises(InvalidSetting, match="one word"):
        lb.Holdout.connect("unix:/x", token="\r\n".join("ab"))


def heard_token(**options):
    url, seen, thread = fake_server([answer_with({"remaining": 7})])
    assert RemoteHoldout(url, **options).remaining == 7
    thread.join()
    return b"Authorization: Bearer " in seen[0]


def test_a_token_for_another_address_is_not_sent(monkeypatch):
    monkeypatch.delenv("LADDERBOARD_URL", raising=False)
    monkeypatch.setenv("LADDERBOARD_TOKEN", "y" * 20)
    assert heard_token()
    for elsewhere in ("https://boards.example.org", "http://127.0.0.1:1", "nonsense"):
        monkeypatch.setenv("LADDERBOARD_URL", elsewhere)
        assert not heard_token()
        assert heard_token(token=random_secret())
    monkeypatch.setenv("LADDERBOARD_URL", "HTTPS://Guard.example.org:443/")
    assert lb.Holdout.connect("https://guard.example.org")._transport._token == "y" * 20


@pytest.mark.parametrize("role", ["team", "evaluator", "organiser"])
def test_a_board_token_is_not_sent_to_a_guard(monkeypatch, role):
    monkeypatch.delenv("LADDERBOARD_URL", raising=False)
    monkeypatch.setenv("LADDERBOARD_TOKEN", f"lb_{role}_secret")
    assert not heard_token()
    with pytest.raises(InvalidSetting, match="token of a board") as refused:
        lb.Holdout.connect("unix:/x", token=f"lb_{role}_secret")
    assert "secret" not in str(refused.value)
