"""A stand-in for Codabench's compute worker, without containers.

As in Codabench, bundles are zips; a submission without a command becomes the prediction step's
output, beside a file ``metadata``; the scoring program's ``metadata.yaml`` has the command, which
runs in ``/app/program`` with an empty environment; without ``scores.json`` a submission has failed,
whatever the exit code.
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
_SOURCE = str(Path(ladderboard.__file__).parents[1])


class CodabenchResult(NamedTuple):
    """What Codabench knows about a scored submission."""

    status: str
    scores: dict[str, Any] | None
    stdout: str
    stderr: str
    code: int
    output: list[str]


def pack_zip(files: dict[str, bytes]) -> bytes:
    """Return a zip, as participants upload it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def _unpack(packed: bytes, folder: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        archive.extractall(folder)


# Runs a command without a network; _READ_ONLY also makes a folder read-only.
_ISOLATED = ("unshare", "--map-root-user", "--mount", "--net", "sh", "-c")
_READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


def can_isolate() -> bool:
    """Return whether this machine permits to isolate a command as a container does."""
    try:
        return (
            subprocess.run([*_ISOLATED, "true"], capture_output=True, check=False).returncode == 0
        )
    except OSError:
        return False


class CodabenchWorker:
    """Scores submissions of one task, each in its own folders.

    ``data`` is the folder that a worker shares with its containers; with it, the program cannot
    write there and has no network.
    """

    def __init__(self, folder: Path, settings: Any, data: Path | None = None):
        self._folder, self._data, self._runs = folder, data, 0
        self._reference = pack_zip({"ladderboard.json": json.dumps(settings).encode()})

    def score(self, submission: bytes, tamper: Any = None) -> CodabenchResult:
        """Run both steps; ``tamper`` may change the folders of the scoring program."""
        self._runs += 1
        app = self._folder / f"run{self._runs}"
        predicted = self._predict(submission, app / "prediction")
        for name in ("input/ref", "input/res", "output", "shared"):
            (app / name).mkdir(parents=True)
        shutil.copytree(BUNDLE / "scoring_program", app / "program")
        _unpack(self._reference, app / "input/ref")
        _unpack(predicted, app / "input/res")
        if tamper is not None:
            tamper(app)
        command = yaml.safe_load((app / "program/metadata.yaml").read_text())["command"]
        arguments = command.replace("/app/", f"{app}/").split()
        assert arguments[0] == "python3"
        isolation = () if self._data is None else (*_ISOLATED, _READ_ONLY, str(self._data))
        completed = subprocess.run(
            [*isolation, sys.executable, *arguments[1:]],
            cwd=app / "program",
            # The last two stand for the packages of the image.
            env={"PYTHONUNBUFFERED": "1", "PATH": os.environ["PATH"], "PYTHONPATH": _SOURCE},
            capture_output=True,
            text=True,
            check=False,
        )
        scores = app / "output/scores.json"
        content = json.loads(scores.read_text()) if scores.exists() else None
        return CodabenchResult(
            "Failed" if content is None else "Finished",
            content,
            completed.stdout,
            completed.stderr,
            completed.returncode,
            sorted(file.name for file in (app / "output").iterdir()),
        )

    def _predict(self, submission: bytes, folder: Path) -> bytes:
        folder.mkdir(parents=True)
        _unpack(submission, folder)
        (folder / "metadata").write_text("exitCode: null\nelapsedTime: null\n")
        archive = shutil.make_archive(str(folder), "zip", folder)
        return Path(archive).read_bytes()
