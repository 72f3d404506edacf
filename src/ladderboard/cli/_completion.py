"""What a shell may complete beyond verbs and options: the boards of a database."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

__all__ = ["boards_here"]

_ALL = "SELECT slug FROM board ORDER BY book"


def boards_here(ctx: Any, incomplete: str) -> list[str]:
    """Return the boards in the database that was named, if it is a file; it is only looked at."""
    database = str(ctx.params.get("database") or "").removeprefix("sqlite:///")
    if "://" in database or not Path(database).is_file():
        return []
    # Nothing is made or brought to a newer format while somebody types: who looks at a file that
    # nobody has open would leave a log beside it, which might be another's then.
    beside = all(Path(database + each).exists() for each in ("-wal", "-shm"))
    how = "mode=ro" if beside else "mode=ro&immutable=1"
    address = f"file:{quote(str(Path(database).absolute()))}?{how}"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=0.1)) as opened:
            found = [each for (each,) in opened.execute(_ALL)]
    except sqlite3.Error:
        return []
    return [each for each in found if each.startswith(incomplete)]
