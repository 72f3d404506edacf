"""What webhooks say, on boards of every visibility, and the addresses that they go to."""

from __future__ import annotations

import base64
import json
from functools import partial

import pytest

from ladderboard.board import Caller, Role, VerifiedIdentity, announce_deadlines, open_boards
from ladderboard.board._webhooks import queue_event
from ladderboard.server import _webhook_sender
from support.nginx import make_certificates
from support.server.live_server import assert_problem, make_folder, make_predictions
from support.server.webhooks import add, due, listed, pause, wait_for_result

ORGANISER = Caller(Role.ORGANISER)
ADA = VerifiedIdentity("example", "https://example.edu", "1", "Ada", "ada@example.edu")
PRIVATE = (
    "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0.0.0.1", "10.1.2.3", "172.16.0.1",
    "192.168.1.1", "169.254.169.254", "100.64.0.1", "224.0.0.1", "255.255.255.255",
    "[::1]", "[::]", "[fe80::1]", "[fec0::1]", "[fd00::1]", "[ff02::1]", "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]",
)  # fmt: skip


@pytest.fixture
def server(webhook_server):
    return webhook_server


def test_private_addresses_are_refused_at_once(live_server):
    for host in PRIVATE:
        wanted = {"url": f"http://{host}:9/hook"}
        path = "/boards/first/webhooks"
        reply = live_server.call("POST", path, live_server.organiser, json=wanted)
        assert_problem(reply, 422, "invalid_setting", "not public")
    assert listed(live_server) == []


@pytest.mark.parametrize(
    "answers", [["127.0.0.1"], ["93.184.215.14", "10.0.0.1"], ["::ffff:a00:1"]]
)
def test_every_address_of_a_name_is_checked(answers):
    with pytest.raises(_webhook_sender.AddressRefused):
        _webhook_sender.choose_address(answers, private=False)
    assert _webhook_sender.choose_address(answers, private=True) == answers[0]
    public = ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::ffff:8.8.8.8"]
    assert _webhook_sender.choose_address(public, private=False) == public[0]


def test_a_name_that_resolves_to_loopback_is_not_called(make_server, receiver):
    """With the machine's own resolver: localhost."""
    server = make_server()
    server.create_board()
    add(server, receiver.url.replace("127.0.0.1", "localhost"))
    pause(server)
    webhook = wait_for_result(server, delivered=False, waiting=0)
    assert webhook["result"] == "not sent: its address is not public"
    assert receiver.requests == []


def test_the_connection_goes_to_the_address_that_was_checked(server, receiver, monkeypatch):
    """The name resolves once: a second answer would be another address."""
    port, calls = receiver.url.split(":")[2].split("/")[0], []
    real = _webhook_sender.socket.getaddrinfo

    def resolve(host, *rest, **options):
        if host != "once.example":
            return real(host, *rest, **options)
        calls.append(host)
        return [(2, 1, 6, "", ("127.0.0.1" if len(calls) == 1 else "127.0.0.2", int(port)))]

    monkeypatch.setattr(_webhook_sender.socket, "getaddrinfo", resolve)
    server.boards.open("first").webhooks.add(ORGANISER, f"http://once.example:{port}/hook")
    pause(server)
    ((_, headers, _),) = receiver.wait_for(1)
    assert headers["Host"] == f"once.example:{port}"
    assert len(calls) == 1


def resolve_to_loopback(monkeypatch, *names):
    real = _webhook_sender.socket.getaddrinfo

    def resolve(host, port, *rest, **options):
        if host in names:
            return [(2, 1, 6, "", ("127.0.0.1", port))]
        return real(host, port, *rest, **options)

    monkeypatch.setattr(_webhook_sender.socket, "getaddrinfo", resolve)


def test_the_certificate_is_checked_for_the_name(server, start_receiver, monkeypatch, tmp_path):
    """The certificate is also right for 127.0.0.1, which the connection goes to."""
    make_certificates(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    receiver = start_receiver(tmp_path)
    port = receiver.url.split(":")[2].split("/")[0]
    resolve_to_loopback(monkeypatch, "boards.example.org", "other.example.org")
    for host in ("boards.example.org", "other.example.org"):
        add(server, f"https://{host}:{port}/hook")
    pause(server)
    wait_for_result(server, 1, result="answered 204", delivered=True)
    wait_for_result(server, 2, result="not sent: the connection failed", delivered=False)
    ((_, headers, _),) = receiver.requests
    assert headers["Host"] == f"boards.example.org:{port}"


def test_slack_and_discord_get_what_they_accept(server, receiver):
    server.amend(title="A <!channel> & @everyone *board*")
    for kind in ("slack", "discord"):
        add(server, f"{receiver.url}/{kind}", format=kind)
    pause(server)
    bodies = {path: json.loads(body) for path, _, body in receiver.wait_for(2)}
    link = "https://boards.example.org/boards/first"
    assert bodies["/hook/slack"] == {
        "text": f"A &lt;!channel&gt; &amp; @everyone *board*: The board is paused.\n{link}",
        "mrkdwn": False,
    }
    assert bodies["/hook/discord"] == {
        "content": f"A \\<!channel\\> & \\@everyone \\*board\\*\\: The board is paused.\n{link}",
        "allowed_mentions": {"parse": []},
    }


@pytest.mark.parametrize("visibility", ["public", "anonymous", "hidden", "frozen", "members"])
def test_a_delivery_says_nothing_that_is_not_public(server, receiver, visibility):
    server.reset()
    board = server.create_board(title="A fine title", registration="organiser")
    team, token = server.join("Analytical Engine")
    server.submit(token, make_predictions(30, private=20))
    add(server, receiver.url)
    if visibility == "members":
        server.amend(listing="members")
    elif visibility != "public":
        server.amend(visibility=visibility)
    board.queue.run(lambda job: queue_event(board, job, "registration_approved", team=team))
    server.call("POST", "/boards/first/close", server.organiser)
    contents = [json.loads(body) for _, _, body in receiver.wait_for(3)]
    by_event = {content["event"]: content for content in contents}
    assert set(by_event) == {"registration_approved", "closed", "results"}
    approved, results = by_event["registration_approved"], by_event["results"]
    text = json.dumps(contents)
    if visibility == "members":
        assert [content["board"] for content in contents] == [None] * 3
        assert approved["text"] == "A board for its members only: A registration was approved."
        for secret in ("fine", f"/{server.slug}", f'"{server.slug}"', team, "Analytical", "0.2"):
            assert secret not in text
        return
    assert approved["board"]["slug"] == server.slug
    # The close shows what was frozen.
    name = "Analytical Engine"
    shown = {"public": [name], "anonymous": [team], "frozen": [name], "hidden": []}
    assert [row["team"] for row in results["results"]] == shown[visibility]
    names = {"public": "Analytical Engine", "anonymous": None}
    if visibility in names:
        assert approved["team"] == {"id": team, "name": names[visibility]}
    if visibility == "hidden":
        assert approved["team"] is None
        assert team not in text
    assert ("Analytical" in text) == (visibility in {"public", "frozen"})
    assert ("0.2" in text) == (visibility != "hidden")


def test_people_who_wait_and_are_approved_are_events(server, receiver):
    server.reset()
    board = server.create_board(registration="sign_in", sign_in="{approval: true}")
    add(server, receiver.url)
    hashed = board.identities.sign_in(ADA, seconds=10**6)
    caller = server.boards.caller_by_token_hash(hashed, board.slug)
    for name in ("Engine", "Analytical Engine"):  # waiting is one event
        board.identities.register(caller, name)
    content = json.loads(receiver.wait_for(1)[0][2])
    assert content["event"] == "registration_waiting"
    for private in ("Ada", "ada@", "Engine"):
        assert private not in json.dumps(content)
    board.identities.approve(ORGANISER, caller.identity)
    content = json.loads(receiver.wait_for(2)[1][2])
    assert (content["event"], content["team"]["name"]) == (
        "registration_approved",
        "Analytical Engine",
    )


def test_a_deadline_is_near_once_a_day_before_and_again_after_an_amendment(server, receiver):
    server.reset()
    board = server.create_board(end="2027-01-20T00:00:00Z")
    add(server, receiver.url, events=["deadline_near"])
    announce = partial(announce_deadlines, server.boards.storage, server.boards.open)
    deadline = 1_800_403_200
    server.clock.now = deadline - 86_401
    announce()
    assert due(server, 10**6) == []
    server.clock.now += 1
    for _ in range(3):
        announce()
    content = json.loads(receiver.wait_for(1)[0][2])
    assert (content["event"], content["deadline"]) == ("deadline_near", "2027-01-20T00:00:00Z")
    wait_for_result(server, delivered=True, waiting=0)
    announce()
    board.amendments.amend(ORGANISER, {"end": "2027-01-20T06:00:00Z"})
    announce()
    server.clock.now = deadline
    announce()
    receiver.wait_for(2)
    wait_for_result(server, waiting=0)
    assert len(receiver.requests) == 2


def test_webhooks_are_listed_tested_and_removed(server, receiver):
    number, _ = add(server, receiver.url, events=["closed"])
    path = f"/boards/first/webhooks/{number}"
    assert listed(server)[0]["events"] == ["closed"]
    pause(server)  # not subscribed to
    assert server.call("POST", f"{path}/test", server.organiser).status_code == 204
    content = json.loads(receiver.wait_for(1)[0][2])
    assert (content["event"], content["text"].split("\n")[0]) == ("test", "First: This is a test.")
    assert server.call("DELETE", path, server.organiser).status_code == 204
    assert_problem(server.call("DELETE", path, server.organiser), 404, "not_found")
    assert_problem(server.call("POST", f"{path}/test", server.organiser), 404, "not_found")
    assert listed(server) == []
    with server.boards.storage.read_tables() as view:
        assert view.query("SELECT * FROM main.delivery") == []


@pytest.mark.parametrize(
    "body",
    [
        {"url": "ftp://example.org/"}, {"url": "https://user:word@example.org/"},
        {"url": "https://example.org/#part"}, {"url": "https:///hook"}, {"url": "http://0a["},
        {"url": "https://example.org/", "events": ["unknown"]},
        {"url": "https://example.org/", "events": []},
        {"url": "https://example.org/", "format": "teams"},
        {"url": "https://example.org:99999/"}, {"url": "https://example.org/" + "a" * 2000},
    ],
)  # fmt: skip
def test_what_is_no_webhook_is_refused(live_server, body):
    reply = live_server.call("POST", "/boards/first/webhooks", live_server.organiser, json=body)
    assert reply.status_code == 422, reply.text
    assert listed(live_server) == []


def test_secrets_are_encrypted_with_the_key_file(tmp_path):
    boards = open_boards(tmp_path / "boards.db", create=True, key_file=tmp_path / "key")
    board = boards.create(make_folder())
    secret = board.webhooks.add(ORGANISER, "https://example.org/").secret
    boards.close()
    raw = base64.b64decode(secret.removeprefix("whsec_"))
    content = b"".join(path.read_bytes() for path in tmp_path.glob("boards.db*") if path.is_file())
    assert raw not in content
    assert secret.encode() not in content
