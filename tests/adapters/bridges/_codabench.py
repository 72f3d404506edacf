"""A compute worker without containers: a submission's way through Codabench, folder by folder.

As there: bundles are zips; a submission without a command becomes the prediction step's output,
beside a file ``metadata``; the scoring program's ``metadata.yaml`` says the command, which runs in
``/app/program`` with nothing in its environment; without ``scores.json`` a submission has failed,
whatever the exit code says.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import yaml

import ladderboard

ROOT = Path(__file__).parents[3]
BUNDLE = ROOT / "examples/codabench"


class Ran(NamedTuple):
    """What Codabench would know afterwards."""

    status: str
    scores: dict[str, Any] | None
    stdout: str
    stderr: str
    code: int
    output: list[str]


def pack(files: dict[str, bytes]) -> bytes:
    """Return a zip, as participants upload it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as made:
        for name, data in files.items():
            made.writestr(name, data)
    return packed.getvalue()


def _unpack(packed: bytes, to: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(packed)) as made:
        made.extractall(to)


# Without a network, and with a folder that cannot be written to.
ALONE = ("unshare", "--map-root-user", "--mount", "--net", "sh", "-c")
LOCKED = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


def can_be_alone() -> bool:
    """Tell whether this machine lets a test take away what a container does not have."""
    try:
        return subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


class Worker:
    """Runs submissions of one task; each gets folders of its own.

    With ``data``, the folder that a worker shares with its containers, they cannot write to it, and
    have no network.
    """

    def __init__(self, folder: Path, settings: Any, data: Path | None = None):
        self._folder, self._data, self._runs = folder, data, 0
        self._reference = pack({"ladderboard.json": json.dumps(settings).encode()})

    def score(self, submission: bytes, spoil: Any = None) -> Ran:
        """Run both steps; ``spoil`` may change what the scoring program finds."""
        self._runs += 1
        app = self._folder / f"run{self._runs}"
        predicted = self._predict(submission, app / "prediction")
        for name in ("input/ref", "input/res", "output", "shared"):
            (app / name).mkdir(parents=True)
        shutil.copytree(BUNDLE / "scoring_program", app / "program")
        _unpack(self._reference, app / "input/ref")
        _unpack(predicted, app / "input/res")
        if spoil is not None:
            spoil(app)
        command = yaml.safe_load((app / "program/metadata.yaml").read_text())["command"]
        words = command.replace("/app/", f"{app}/").split()
        assert words[0] == "python3"
        alone = () if self._data is None else (*ALONE, LOCKED, str(self._data))
        ran = subprocess.run(
            [*alone, sys.executable, *words[1:]],
            cwd=app / "program",
            # The last two stand for what the image has installed.
            env={"PYTHONUNBUFFERED": "1", "PATH": os.environ["PATH"], "PYTHONPATH": _SOURCE},
            capture_output=True,
            text=True,
            check=False,
        )
        scores = app / "output/scores.json"
        found = json.loads(scores.read_text()) if scores.exists() else None
        status = "Failed" if found is None else "Finished"
        names = sorted(each.name for each in (app / "output").iterdir())
        return Ran(status, found, ran.stdout, ran.stderr, ran.returncode, names)

    def _predict(self, submission: bytes, place: Path) -> bytes:
        place.mkdir(parents=True)
        _unpack(submission, place)
        (place / "metadata").write_text("exitCode: null\nelapsedTime: null\n")
        made = shutil.make_archive(str(place), "zip", place)
        return Path(made).read_bytes()


_SOURCE = str(Path(ladderboard.__file__).parents[1])
