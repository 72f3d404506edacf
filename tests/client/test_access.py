"""The server and the token that a client uses, and where a token is never sent."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
import traceback
from subprocess import PIPE

import pytest

from ladderboard.client import (
    Client,
    Config,
    change_config,
    find_access,
    parse_address,
    read_config,
    split_board,
)
from ladderboard.errors import InvalidSetting, LadderboardError
from support.faulty_proxy import FaultyProxy
from support.server.live_server import make_predictions

HERE, THERE = "https://here.example.org", "https://there.example.org"


def test_arguments_override_environment_and_config_file(monkeypatch):
    with pytest.raises(InvalidSetting, match="ladderboard login URL"):
        find_access(None, None)
    Config().with_token(HERE, "digits", "kept").with_token(THERE, "digits", "other").write()
    access = find_access(None, None)
    assert (access.address.origin, access.token_for("digits")) == (HERE, "kept")
    assert access.token_for("letters") is None
    assert access.token_for(None) is None
    assert find_access(THERE, None).token_for("digits") == "other"
    monkeypatch.setenv("LADDERBOARD_TOKEN", "told")
    assert find_access(None, None).token_for("digits") == "told"
    monkeypatch.setenv("LADDERBOARD_URL", THERE + "/")
    access = find_access(None, None)
    assert (access.address.origin, access.token_for("letters")) == (THERE, "told")
    assert find_access(None, "given").token_for("digits") == "given"


def test_a_token_goes_only_to_its_server(monkeypatch):
    monkeypatch.setenv("LADDERBOARD_URL", THERE)
    monkeypatch.setenv("LADDERBOARD_TOKEN", "told")
    Config().with_token(HERE, "digits", "kept").write()
    assert find_access(HERE, None).token_for("digits") == "kept"
    assert find_access("https://third.example.org", None).token_for("digits") is None
    assert find_access("HTTPS://There.Example.ORG:443", None).token_for("digits") == "told"


@pytest.mark.parametrize("url", ["http://boards.example.org", "http://192.0.2.1:8000"])
def test_a_token_is_not_sent_unencrypted(url):
    client = Client(url, "lb_team_secret")
    with pytest.raises(InvalidSetting, match="not sent unencrypted") as refused:
        client.submit("digits", make_predictions(1))
    assert "secret" not in str(refused.value)
    assert client.receipts("digits") == ()
    assert find_access(url, "token", insecure=True).token_for("digits") == "token"
    assert find_access(url, None).token_for("digits") is None


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://[::1]:1", "http://localhost", HERE])
def test_a_token_is_sent_to_the_loopback_interface(url):
    assert find_access(url, "token").token_for("digits") == "token"


def test_a_redirect_does_not_carry_the_token(live_server, token):
    with FaultyProxy(live_server.port) as elsewhere:
        moved = f"HTTP/1.1 307 Moved\r\nLocation: {elsewhere.url}/api/v1/boards\r\n"
        moved += "Content-Length: 0\r\nConnection: close\r\n\r\n"
        with (
            FaultyProxy(live_server.port, moved.encode()) as proxy,
            Client(proxy.url, token) as client,
            pytest.raises(LadderboardError, match="redirects"),
        ):
            client.team(live_server.slug)
        assert not elsewhere.requests


def test_a_proxy_from_the_environment_gets_no_unencrypted_token(live_server, token, monkeypatch):
    with FaultyProxy(live_server.port) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        with Client(live_server.url, token) as client:
            assert client.team(live_server.slug).name == "Ada"
        assert not proxy.requests


def test_a_token_appears_in_no_text(live_server, token, caplog, home):
    caplog.set_level(logging.DEBUG)
    with Client(live_server.url, token) as client:
        client.submit(live_server.slug, make_predictions(3))
        texts = [repr(client), repr(client._access), str(vars(client))]
        try:
            client.submit(live_server.slug, b"nothing")
        except LadderboardError:
            texts.append(traceback.format_exc())
    texts += [record.getMessage() for record in caplog.records]
    texts += [path.read_text() for path in home.rglob("*.jsonl")]
    assert len(texts) > 5
    assert not any(token in text for text in texts)


@pytest.mark.parametrize("token", ["two words", "ünicode", "a\nb"])
def test_invalid_tokens_are_refused(token):
    with pytest.raises(InvalidSetting, match="must be printable ASCII"):
        Client(HERE, token).team("digits")


@pytest.mark.parametrize(
    "url",
    ["", "boards.example.org", "ftp://a", "https://", "https://a/b?c", "https://u:p@a", "https://a?b",
     "http://[", "http://a:b", 5, "unix:/run/guard.sock", "http://..", "http://a..b", "http://a b",
     "http://a\x1bc", "http://a\x7f", "http://a\ud800", "http://" + "a" * 64],
)  # fmt: skip
def test_invalid_addresses_are_refused(url):
    with pytest.raises(InvalidSetting, match="A server's address is like"):
        parse_address(url)


@pytest.mark.parametrize(
    "path",
    ["//", "/a//b", "/../a", "/a/..", "/.", "/a%2fb", "/a b", "/a;b", "/\\a", "/ä", "/a?b",
     "/boards", "/boards/digits", "/a/boards", "/login", "/a/api/v1", "/static", "/" + "a" * 200],
)  # fmt: skip
def test_addresses_that_cannot_have_a_server_are_refused(path):
    with pytest.raises(InvalidSetting, match="A server's address is like"):
        parse_address(HERE + path)


def test_a_server_below_a_path_is_another_one(monkeypatch):
    below = parse_address(f"{HERE}:443/ladder/")
    assert (below.url, below.origin, below.prefix) == (f"{HERE}/ladder", HERE, "/ladder")
    deep = f"{HERE}/ml/boards-2027_v1.2~a"
    assert split_board(f"{deep}/boards/digits/submit#history") == (deep, "digits")
    places = {parse_address(url).folder_name for url in (HERE, below.url, f"{HERE}/ladder/a", deep)}
    assert len(places) == 4
    assert not any("/" in folder for folder in places)
    Config().with_token(HERE, "digits", "above").with_token(below.url, "digits", "below").write()
    assert find_access(HERE, None).token_for("digits") == "above"
    assert find_access(f"{HERE}/ladder/", None).token_for("digits") == "below"
    assert find_access(f"{HERE}/other", None).token_for("digits") is None
    monkeypatch.setenv("LADDERBOARD_URL", below.url)
    monkeypatch.setenv("LADDERBOARD_TOKEN", "told")
    assert find_access(HERE, None).token_for("letters") is None
    assert Client().url == below.url


@pytest.mark.parametrize(
    "board",
    ["", "A", "a/b", "-a", "https://a/boards/", "https://a/b/c", "https://a/../boards/a", None],
)
def test_invalid_board_names_are_refused(board):
    with pytest.raises(InvalidSetting, match="A board is given by"):
        split_board(board)


def test_a_board_can_be_named_by_its_page_url():
    for end in ("", "/", "/submit", "#submit"):
        assert split_board(f"{HERE}/boards/digits{end}") == (HERE, "digits")


def test_the_config_file_is_private(home):
    path = Config().with_token(HERE, "digits", "lb_team_a").write()
    assert path == home / "config/ladderboard/config.toml"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert list(path.parent.iterdir()) == [path]
    path.chmod(0o640)
    with pytest.raises(InvalidSetting, match=f"chmod 600 {path}"):
        read_config()


def test_the_config_file_saves_several_servers_and_removes_one():
    config = (
        Config()
        .with_token(HERE, "digits", "a")
        .with_token(HERE, "letters", "b")
        .with_token(THERE, "x", "c")
    )
    config.write()
    assert read_config() == config
    assert config.default == HERE
    assert config.without_token(HERE, "digits").tokens[HERE] == {"letters": "b"}
    without = config.without_token(HERE)
    assert (without.default, set(without.tokens)) == (THERE, {THERE})
    assert without.without_token(THERE, "x") == Config()
    assert repr(config) == f"Config(default={HERE!r})"


def test_concurrent_logins_lose_no_token():
    code = (
        "import sys\n"
        "from ladderboard.client import change_config\n"
        "print(flush=True)\n"
        "sys.stdin.readline()\n"  # all of them begin together
        "for at in range(10):\n"
        "    change_config(lambda c: c.with_token(f'https://{sys.argv[1]}', f'b{at}', 'token'))\n"
    )
    begun = [
        subprocess.Popen([sys.executable, "-c", code, f"s{index}"], stdin=PIPE, stdout=PIPE)
        for index in range(4)
    ]
    for process in begun:
        process.stdout.readline()
    for process in begun:
        process.stdin.write(b"\n")
        process.stdin.flush()
    for process in begun:
        process.communicate()
        assert process.returncode == 0
    assert sorted(len(boards) for boards in read_config().tokens.values()) == [10] * 4


def test_an_unchanged_config_file_is_not_written():
    changed, path = change_config(lambda config: config.without_token(HERE))
    assert not changed
    assert not path.exists()
    assert change_config(lambda config: config.with_token(HERE, "digits", "a")) == (True, path)
    assert path.with_suffix(".lock").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("server", ["https://\U00020000.example", "https://\xe4.example"])
def test_the_config_file_keeps_a_server_of_any_letters(server):
    config = Config().with_token(HERE, "digits", "a").with_token(server, "digits", "b")
    config.write()
    assert read_config() == config


DAMAGED = ["token = lb_team_secret", "servers = 5", "default = 1", "[servers.a]\nb = 5"]


@pytest.mark.parametrize("text", [*DAMAGED, '[servers]\na = "lb_team_secret"'])
def test_a_damaged_config_file_is_not_quoted(home, text):
    path = Config().write()
    path.write_text(text)
    with pytest.raises(InvalidSetting, match="is damaged") as refused:
        read_config()
    assert "secret" not in str(refused.value)


def test_settings_are_checked():
    for bad_settings in ({"timeout": 0}, {"retries": -1}, {"retries": 1.5}):
        with pytest.raises(InvalidSetting):
            Client(HERE, **bad_settings)
    assert pickle.loads(pickle.dumps(Client(HERE, "token", retries=7))).retries == 7
