"""A study: where an experiment writes, and who does its work."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladderboard import _settings
from ladderboard.arena._crew import cores, crew_of
from ladderboard.arena._sweep import sweep
from ladderboard.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ladderboard.arena._task import Task

__all__ = ["RESULTS", "Study"]

RESULTS = "results.jsonl"


@dataclass
class Study:
    """What all experiments share; ``written`` lists the files that were made."""

    out: Path | str
    quick: bool = False
    repetitions: int | None = None
    seed: int = 0
    workers: int | None = None
    cluster: str | None = None
    progress: bool = False
    written: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.out = Path(self.out)
        if self.out.exists() and not self.out.is_dir():
            raise InvalidSetting(f"out must be a directory; {self.out} is a file.")
        self.seed = _settings.whole("seed", self.seed, at_least=0)
        if self.repetitions is not None:
            self.repetitions = _settings.whole("repetitions", self.repetitions, at_least=1)

    def do(self, tasks: Sequence[Task], label: str) -> list[dict[str, Any]]:
        """Do the tasks that are not done yet."""
        crew = crew_of(cores() if self.workers is None else self.workers, self.cluster)
        kept_in = Path(self.out) / RESULTS
        return sweep(tasks, crew, label=label, kept_in=kept_in, progress=self.progress)

    def write(self, name: str, content: bytes | str) -> None:
        """Write a file whole or not at all."""
        path = Path(self.out) / name
        unfinished = path.with_name(f".{path.name}.unfinished")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(content.encode() if isinstance(content, str) else content)
            os.replace(unfinished, path)  # noqa: PTH105 - the same, and it says what it does
        except OSError as error:
            raise InvalidSetting(f"{path} cannot be written: {error.strerror}.") from None
        self.written.append(path)

    def write_csv(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows with the columns of the first; numbers come back bit for bit."""
        text = io.StringIO()
        table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
        self.write(name, text.getvalue())
