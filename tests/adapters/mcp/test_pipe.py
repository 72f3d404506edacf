"""Every byte that goes over the pipe: nothing but the protocol, and nothing of the owner's."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

import ladderboard as lb
from support.credentials import random_secret

TOKEN = random_secret()


def lines_of(said):
    """Return what was said line by line, all of it JSON-RPC."""
    read = [json.loads(line) for line in said.splitlines()]
    assert all(each["jsonrpc"] == "2.0" for each in read)
    return read


def hostile(pipe, folder):
    """Do everything that an agent might try, and then some."""
    os.mkfifo(folder / "pipe.csv")
    (folder / "zero.csv").symlink_to("/dev/zero")
    (folder / "passwd.csv").symlink_to("/etc/passwd")
    (folder / "up").symlink_to("..")
    (folder / "binary.npy").write_bytes(b"\x93NUMPY\x01\x00" + b"\xff" * 100)
    paths = ["pipe.csv", "zero.csv", "passwd.csv", "/dev/zero", "../owner/labels.csv"]
    paths += [f"{folder.parent}/owner/labels.csv", f"{folder}/../owner/labels.csv", "up/labels.csv"]
    paths += ["binary.npy", "", ".", "x\0y", "\U0001f600", "\x1b[2J", "a" * 5000, "nothing.csv"]
    paths += ["/proc/self/environ", "file:///etc/passwd"]
    for path in paths:
        assert pipe.call("ask", path=path)["isError"], path
    for values in [None, "", "x", [], {}, [[]], [None], [1e308] * 50, {"id": []}, True]:
        assert pipe.call("ask", predictions=values)["isError"], values
    for given in [{"path": 7}, {"path": ["a"]}, {"token": 1}, {"predictions": [1], "path": "a"}]:
        assert pipe.call("ask", **given)["isError"], given
    for tool in ("read", "labels", "", "__init__", "call", "close", "tools"):
        assert pipe.call(tool)["isError"], tool


def test_nothing_of_the_owners_goes_over_the_pipe(open_pipe, serve, tmp_path):
    """Labels, risks, key, token and the file's path: in no answer, in no log."""
    for each in ("owner", "agent"):
        (tmp_path / each).mkdir()
    words = np.array(["quokka", "wombat"])
    labels = words[np.random.default_rng(1).integers(2, size=50)]
    key_file = tmp_path / "owner/kept.key"
    guard = lb.Holdout.create(
        tmp_path / "owner/hidden-away.db", labels, questions=9, mechanism=lb.Ladder(step=0.1),
        key_file=key_file, classes="any",  # else the labels' words are published
    )  # fmt: skip
    (tmp_path / "owner/labels.csv").write_text("label\n" + "\n".join(labels))
    served = serve(guard, token=TOKEN)
    agent = open_pipe(served.url, "--folder", tmp_path / "agent", LADDERBOARD_TOKEN=TOKEN)
    agent.open()
    agent.request("tools/list", {})
    agent.answer()
    hostile(agent, tmp_path / "agent")
    for at in (50, 7, 9):  # words that are nobody's label
        given = ["numbat"] * at + ["bilby"] * (50 - at)
        assert not agent.call("ask", predictions=given, name=f"{at} numbats")["isError"]
    agent.call("standing")
    agent.call("budget")
    code, said, logged = agent.end()
    assert code == 0
    lines_of(said)
    key = key_file.read_bytes().strip()
    secrets = [b"quokka", b"wombat", b"hidden-away", b"kept.key", b"root:", TOKEN.encode()]
    for secret in [*secrets, key, key.hex().encode(), base64.b64encode(key)]:
        assert secret not in said, secret
        assert secret not in logged, secret


def test_two_worlds_with_the_same_releases_say_the_same_bytes(open_pipe, serve, tmp_path):
    """What is not released, such as a risk, is in no byte: labels differ, the pipe does not."""
    said = []
    for world, right in enumerate((61, 59)):  # losses of 0.39 and 0.41, both 0.4 on the grid
        labels = np.r_[np.ones(right, int), np.zeros(100 - right, int)]
        place = tmp_path / f"{world}.db"
        mechanism = lb.Ladder(step=0.1)
        served = serve(lb.Holdout.create(place, labels, questions=9, mechanism=mechanism))
        agent = open_pipe(served.url)
        agent.open()
        for ones in (100, 99, 97, 60):
            agent.call("ask", predictions=[1] * ones + [0] * (100 - ones), name=str(ones))
            agent.call("standing")
        agent.call("budget")
        said.append(agent.end()[1].replace(served.url.encode(), b""))
    assert said[0] == said[1]
    assert b"0.39" not in said[0]


def test_noise_and_faults_go_to_the_log_and_not_to_the_agent(open_pipe, served):
    code = (
        "import sys, subprocess\n"
        "from ladderboard.adapters.mcp import _guard\n"
        "real = _guard.GuardToolset.budget\n"
        "def loud(self, given):\n"
        "    print('noise'); subprocess.run(['echo', 'din']); sys.stdout.flush()\n"
        "    return real(self, given)\n"
        "def broken(self, given):\n"
        "    raise RuntimeError('the words of a fault')\n"
        "_guard.GuardToolset.budget, _guard.GuardToolset.standing = loud, broken\n"
        f"sys.argv = ['ladderboard', 'mcp', {served.url!r}]\n"
        "from ladderboard.cli import main\n"
        "main()\n"
    )
    agent = open_pipe(program=[sys.executable, "-c", code])
    agent.open()
    told = agent.call("standing")
    assert told["isError"]
    assert "should not happen" in told["content"][0]["text"]
    assert not agent.call("budget")["isError"]
    code, said, logged = agent.end()
    assert code == 0
    assert len(lines_of(said)) == 3
    assert b"words of a fault" not in said
    for each in (b"words of a fault", b"noise", b"din"):
        assert each in logged


def test_lines_that_are_no_protocol_are_passed_over(open_pipe, served):
    agent = open_pipe(served.url)
    agent.open()
    for line in [b"", b"{", b"\xff\xfe\x00", b"[]", b"[" * 100_000, b'{"jsonrpc": "2.0"}', b"null"]:
        agent.send(line)
    agent.send(b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": 7}}')
    assert "error" in agent.answer()
    agent.send(
        b'{"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": {"name": "ask", '
        b'"arguments": {"predictions": [NaN, Infinity, -Infinity, 1e999]}}}'
    )
    assert agent.answer()["result"]["isError"]
    agent.request("resources/read", {"uri": "file:///etc/passwd"})
    assert agent.answer()["error"]["message"] == "Method not found"
    assert agent.call("budget")["structuredContent"]["used"] == 0
    assert agent.end()[0] == 0


def test_it_ends_with_its_host(open_pipe, served):
    for shaken in (False, True):
        agent = open_pipe(served.url)
        if shaken:
            agent.open()
        code, _, logged = agent.end()
        assert (code, logged) == (0, b"")


def test_it_ends_with_its_host_while_a_guard_is_silent(open_pipe, tmp_path):
    """The question under way would wait for fifty seconds; the host need not."""
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "silent.sock"))
        silent.listen()
        agent = open_pipe(f"unix:{tmp_path / 'silent.sock'}")
        agent.open()
        agent.request("tools/call", {"name": "budget", "arguments": {}})
        line, _ = silent.accept()  # so the question is under way
        with line:
            agent.process.stdin.close()
            assert agent.process.wait(timeout=30) == 0


def test_a_host_that_reads_no_more_is_no_fault(open_pipe, served):
    agent = open_pipe(served.url)
    agent.open()
    agent.process.stdout.close()
    agent.request("tools/call", {"name": "budget", "arguments": {}})
    agent.process.stdin.close()
    assert agent.process.wait(timeout=30) == 0
    logged = agent.process.stderr.read()
    assert b"Traceback" not in logged


def test_ctrl_c_ends_it_at_once(open_pipe, served):
    agent = open_pipe(served.url)
    agent.open()
    agent.process.send_signal(signal.SIGINT)
    assert agent.process.wait(timeout=30) == -signal.SIGINT


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["guard.db"], "An agent gets an address and never a guard's file"),
        (["/etc/passwd"], "Let another user serve it, with ladderboard guard serve FILE"),
        (["ftp://x"], "An agent gets an address"),
        (["http://127.0.0.1:1/somewhere"], "A guard's address is like"),
        (["unix:/x", "--folder", "nowhere"], "There is no folder 'nowhere'."),
        (["unix:/x", "--ladder", "a\nb"], "ladder"),
    ],
)
def test_what_cannot_be_served_is_one_line_and_exit_code_2(words, sentence, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "ladderboard", "mcp", *words],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert sentence in line


def test_without_stdin_there_is_nobody_to_speak_with():
    program = f"{sys.executable} -m ladderboard mcp unix:/x <&-"
    done = subprocess.run(  # noqa: S602 - a shell closes it
        program, shell=True, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "stdin is closed" in done.stderr


def test_a_wrong_token_is_told_and_not_shown(open_pipe, serve, labels, tmp_path):
    guard = lb.Holdout.create(
        tmp_path / "guard.db", labels, questions=9, mechanism=lb.Ladder(step=0.1)
    )
    agent = open_pipe(serve(guard, token=TOKEN).url, LADDERBOARD_TOKEN=random_secret())
    agent.open()
    told = agent.call("budget")
    assert told["isError"]
    assert "trying again does not help" in told["content"][0]["text"]
    assert "wait a little" not in told["content"][0]["text"]
    _, said, logged = agent.end()
    assert b"another-word" not in said + logged
    assert TOKEN.encode() not in said + logged
