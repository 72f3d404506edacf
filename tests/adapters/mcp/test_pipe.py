"""Every byte on the pipe: only the protocol, and no secret of the owner."""

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


def read_messages(output):
    """Return the messages, one a line, after a check that all are JSON-RPC."""
    messages = [json.loads(line) for line in output.splitlines()]
    assert all(message["jsonrpc"] == "2.0" for message in messages)
    return messages


def try_hostile_calls(pipe, folder):
    """Try files, values and tools that an agent must not use."""
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
    for arguments in [
        {"path": 7},
        {"path": ["a"]},
        {"token": 1},
        {"predictions": [1], "path": "a"},
    ]:
        assert pipe.call("ask", **arguments)["isError"], arguments
    for tool in ("read", "labels", "", "__init__", "call", "close", "tools"):
        assert pipe.call(tool)["isError"], tool


def test_no_secret_goes_over_the_pipe_or_into_the_log(open_pipe, serve, tmp_path):
    """No answer or log contains labels, risks, key, token or the path of the file."""
    for name in ("owner", "agent"):
        (tmp_path / name).mkdir()
    animals = np.array(["quokka", "wombat"])
    labels = animals[np.random.default_rng(1).integers(2, size=50)]
    key_file = tmp_path / "owner/kept.key"
    guard = lb.Holdout.create(
        tmp_path / "owner/hidden-away.db", labels, questions=9, mechanism=lb.Ladder(step=0.1),
        key_file=key_file, classes="any",  # otherwise the labels' words are published
    )  # fmt: skip
    (tmp_path / "owner/labels.csv").write_text("label\n" + "\n".join(labels))
    served = serve(guard, token=TOKEN)
    agent = open_pipe(served.url, "--folder", tmp_path / "agent", LADDERBOARD_TOKEN=TOKEN)
    agent.open()
    agent.request("tools/list", {})
    agent.answer()
    try_hostile_calls(agent, tmp_path / "agent")
    for count in (50, 7, 9):  # no label is one of these words
        predictions = ["numbat"] * count + ["bilby"] * (50 - count)
        assert not agent.call("ask", predictions=predictions, name=f"{count} numbats")["isError"]
    agent.call("standing")
    agent.call("budget")
    code, output, logged = agent.end()
    assert code == 0
    read_messages(output)
    key = key_file.read_bytes().strip()
    secrets = [b"quokka", b"wombat", b"hidden-away", b"kept.key", b"root:", TOKEN.encode()]
    for secret in [*secrets, key, key.hex().encode(), base64.b64encode(key)]:
        assert secret not in output, secret
        assert secret not in logged, secret


def test_equal_releases_give_equal_bytes_whatever_the_labels(open_pipe, serve, tmp_path):
    """Labels and risks differ, but no byte on the pipe depends on them."""
    outputs = []
    for index, right in enumerate((61, 59)):  # losses of 0.39 and 0.41, both 0.4 on the grid
        labels = np.r_[np.ones(right, int), np.zeros(100 - right, int)]
        path = tmp_path / f"{index}.db"
        mechanism = lb.Ladder(step=0.1)
        served = serve(lb.Holdout.create(path, labels, questions=9, mechanism=mechanism))
        agent = open_pipe(served.url)
        agent.open()
        for ones in (100, 99, 97, 60):
            agent.call("ask", predictions=[1] * ones + [0] * (100 - ones), name=str(ones))
            agent.call("standing")
        agent.call("budget")
        outputs.append(agent.end()[1].replace(served.url.encode(), b""))
    assert outputs[0] == outputs[1]
    assert b"0.39" not in outputs[0]


def test_printed_text_and_errors_go_to_stderr_and_not_to_the_agent(open_pipe, served):
    code = (
        "import sys, subprocess\n"
        "from ladderboard.adapters.mcp import _guard\n"
        "real = _guard.GuardToolset.budget\n"
        "def loud(self, given):\n"
        "    print('noise'); subprocess.run(['echo', 'din']); sys.stdout.flush()\n"
        "    return real(self, given)\n"
        "def broken(self, given):\n"
        "    raise RuntimeError('the text of an error')\n"
        "_guard.GuardToolset.budget, _guard.GuardToolset.standing = loud, broken\n"
        f"sys.argv = ['ladderboard', 'mcp', {served.url!r}]\n"
        "from ladderboard.cli import main\n"
        "main()\n"
    )
    agent = open_pipe(program=[sys.executable, "-c", code])
    agent.open()
    result = agent.call("standing")
    assert result["isError"]
    assert "Internal error" in result["content"][0]["text"]
    assert not agent.call("budget")["isError"]
    code, output, logged = agent.end()
    assert code == 0
    assert len(read_messages(output)) == 3
    assert b"text of an error" not in output
    for text in (b"text of an error", b"noise", b"din"):
        assert text in logged


def test_invalid_lines_are_ignored_or_refused(open_pipe, served):
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


def test_it_exits_when_stdin_ends(open_pipe, served):
    for initialized in (False, True):
        agent = open_pipe(served.url)
        if initialized:
            agent.open()
        code, _, logged = agent.end()
        assert (code, logged) == (0, b"")


def test_it_exits_when_stdin_ends_while_a_guard_is_silent(open_pipe, tmp_path):
    """The pending question would wait for fifty seconds; the process exits before."""
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "silent.sock"))
        silent.listen()
        agent = open_pipe(f"unix:{tmp_path / 'silent.sock'}")
        agent.open()
        agent.request("tools/call", {"name": "budget", "arguments": {}})
        line, _ = silent.accept()  # so the question is pending
        with line:
            agent.process.stdin.close()
            assert agent.process.wait(timeout=30) == 0


def test_a_client_that_stops_reading_causes_no_traceback(open_pipe, served):
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
    ("args", "sentence"),
    [
        (["guard.db"], "Give the address of a served guard, not its file"),
        (["/etc/passwd"], "As another user, run ladderboard guard serve FILE"),
        (["ftp://x"], "Give the address of a served guard"),
        (["http://127.0.0.1:1/somewhere"], "A guard's address is like"),
        (["unix:/x", "--folder", "nowhere"], "There is no folder 'nowhere'."),
        (["unix:/x", "--ladder", "a\nb"], "ladder"),
    ],
)
def test_an_invalid_target_is_one_line_and_exit_code_2(args, sentence, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "ladderboard", "mcp", *args],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert sentence in line


def test_a_closed_stdin_is_refused():
    program = f"{sys.executable} -m ladderboard mcp unix:/x <&-"
    done = subprocess.run(  # noqa: S602 - a shell closes it
        program, shell=True, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "stdin is closed" in done.stderr


def test_a_wrong_token_is_reported_and_not_shown(open_pipe, serve, labels, tmp_path):
    guard = lb.Holdout.create(
        tmp_path / "guard.db", labels, questions=9, mechanism=lb.Ladder(step=0.1)
    )
    agent = open_pipe(serve(guard, token=TOKEN).url, LADDERBOARD_TOKEN=random_secret())
    agent.open()
    result = agent.call("budget")
    assert result["isError"]
    assert "trying again does not help" in result["content"][0]["text"]
    assert "wait a little" not in result["content"][0]["text"]
    _, output, logged = agent.end()
    assert b"another-word" not in output + logged
    assert TOKEN.encode() not in output + logged
