"""Optuna's databases, closed after use."""

import optuna
import pytest


@pytest.fixture
def study_storage(tmp_path):
    """An Optuna storage on SQLite; Python 3.13 warns about connections that are left open."""
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'study.db'}")
    yield storage
    storage.remove_session()
    storage.engine.dispose()
