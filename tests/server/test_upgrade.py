"""A server of an older version that still runs after a newer one has migrated the database."""

import pickle
import subprocess
import sys

from support.server.live_server import make_predictions

NEWER = """
import pickle, sys
from ladderboard.ledger._storage import _schema
step = _schema.Migration(_schema.latest_format(), ("ALTER TABLE main.book ADD COLUMN colour TEXT",))
_schema.MIGRATIONS = (*_schema.MIGRATIONS, step)
pickle.load(sys.stdin.buffer).close()
"""


def test_an_older_server_refuses_to_write_after_a_migration(make_server):
    live_server = make_server()
    live_server.create_board()
    _, token = live_server.join("Ada")
    assert live_server.submit(token, make_predictions(20)).status_code == 201
    storage = live_server.boards.storage  # pickled as its address
    subprocess.run([sys.executable, "-c", NEWER], input=pickle.dumps(storage), check=True)
    refused = live_server.submit(token, make_predictions(10))
    assert (refused.status_code, refused.json()["code"]) == (503, "storage")
    assert "format" not in refused.text  # that is for the log
