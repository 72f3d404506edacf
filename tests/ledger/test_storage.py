"""Both storages keep the contract."""

import secrets

import pytest

from ladderboard.ledger import PostgresStorage, SqliteStorage
from support.storage_contract import check_storage


def test_sqlite_keeps_the_contract(tmp_path):
    SqliteStorage(tmp_path / "guard.db", create=True).close()
    check_storage(lambda: SqliteStorage(tmp_path / "guard.db"))


@pytest.mark.parametrize("way", ["url", "socket_url"])
def test_postgres_keeps_the_contract(postgres, way):
    schema = f"contract_{secrets.token_hex(4)}"
    url = getattr(postgres, way)()
    PostgresStorage(url, create=True, schema=schema).close()
    check_storage(lambda: PostgresStorage(url, schema=schema))
