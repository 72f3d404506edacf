"""A server of an older version that still runs while a newer one has brought the database along."""

import pickle
import subprocess
import sys

NEWER = """
import pickle, sys
from ladderboard.ledger._storage import _schema
_schema.STEPS = (_schema.Step(1, ("ALTER TABLE main.book ADD COLUMN colour TEXT",)),)
pickle.load(sys.stdin.buffer).close()
"""


def test_it_writes_nothing_more_and_says_that_it_cannot(make_hall, predict):
    hall = make_hall()
    hall.board()
    _, token = hall.join("Ada")
    assert hall.submit(token, predict(20)).status_code == 201
    storage = hall.boards.storage  # which travels as its address
    subprocess.run([sys.executable, "-c", NEWER], input=pickle.dumps(storage), check=True)
    refused = hall.submit(token, predict(10))
    assert (refused.status_code, refused.json()["code"]) == (503, "storage")
    assert "format" not in refused.text  # that is for the log
