"""Looks for traces of erased people: in tables, files of databases, dumps and bundles."""

import pyrage

from ladderboard.ledger import SqliteStorage

_SQLITE_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table'"
_POSTGRES_TABLES = "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = ?"


def as_bytes(words):
    """Return words as they may lie in a file: as written, and as names are compared."""
    folded = ["".join(word.casefold().split()) for word in words]
    return {word.encode() for word in [*words, *folded]}


def traces_in_tables(board, words):
    """Return the tables of the whole database in which any of the words is found."""
    storage, tables = board.book.storage, set()
    with board.reading() as view:
        if isinstance(storage, SqliteStorage):
            names = view.query(_SQLITE_TABLES)
        else:
            names = view.query(_POSTGRES_TABLES, (storage._schema,))
        assert len(names) > 10
        for (name,) in names:
            for row in view.query(f"SELECT * FROM main.{name}"):
                values = [v if isinstance(v, bytes) else str(v).encode() for v in row]
                if any(word in value for word in as_bytes(words) for value in values):
                    tables.add(name)
    return tables


def traces_in_files(folder, words):
    """Return the files in a folder, at any depth, in which any of the words is found."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {
        path.relative_to(folder).as_posix()
        for path in files
        if any(word in path.read_bytes() for word in as_bytes(words))
    }


def open_dump(path, key):
    """Return the content of a dump that is encrypted for a public key."""
    return pyrage.decrypt(path.read_bytes(), [pyrage.x25519.Identity.from_str(key.text)])
