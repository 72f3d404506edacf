"""Starts processes that ask a guard, forked from one that has everything loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


class AskerPool:
    """Runs ``asker_main.py``; starts askers, kills them and waits for them."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("asker_main.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, command, **arguments):
        """Send a command; return the reply."""
        self.process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def start(self, known_guard, writer=0, count=60, *, traced=False, shared=True):
        """Start an asker of a guard; return its process id."""
        arguments = {
            "path": str(known_guard.path),
            "key_file": known_guard.key_file and str(known_guard.key_file),
            "run": known_guard.run,
            "n": known_guard.n,
            "writer": writer,
            "count": count,
            "log": str(known_guard.path.with_suffix(".log")),
            "traced": traced,
            "shared": shared,
        }
        return self.run("start", **arguments)["pid"]

    def wait(self, pid):
        """Wait for an asker to end; return how it did."""
        return self.run("wait", pid=pid)

    def kill_after(self, pid, count):
        """Kill a traced asker after this many stops at system calls; return how many it made."""
        return self.run("kill_after", pid=pid, count=count)["stops"]

    def close(self):
        """End the first process."""
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
