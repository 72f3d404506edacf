"""Arrays, lists, JSON Lines and .npy files are read without polars and pandas."""

import subprocess
import sys

CODE = """
import io, sys
sys.modules["polars"] = sys.modules["pandas"] = None
import numpy as np
import ladderboard as lb
from ladderboard.files import Roster, read_holdout, read_predictions
loss = lb.loss("zero_one")
number, text = Roster.of(["a", "b"], kind="number"), Roster.of(["a", "b"], kind="text")
assert read_predictions([1, 2], number, loss).tolist() == [1, 2]
assert read_predictions(["x", "y"], text, loss).tolist() == ["x", "y"]
assert read_predictions(np.array(["x", "y"]), text, loss).tolist() == ["x", "y"]
assert read_predictions({"id": ["b", "a"], "y": [2, 1]}, number, loss).tolist() == [1, 2]
out = io.BytesIO()
np.save(out, np.array([1, 2]))
assert read_predictions(out.getvalue(), number, loss).tolist() == [1, 2]
lines = b'{"id": "b", "y": 2}\\n{"id": "a", "y": 1}'
assert read_predictions(lines, number, loss, format="jsonl").tolist() == [1, 2]
assert read_holdout({"id": ["a", "b"], "label": [1, 0]}).grouping.n == 2
try:
    read_predictions(b"id,y", number, loss)
except lb.errors.MissingDependency as error:
    print(error)
"""


def test_without_polars():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == (
        "Reading files needs polars: pip install 'ladderboard[files]'. "
        "Arrays, lists and .npy files are read without it.\n"
    )


def test_polars_is_loaded_by_files_only():
    code = "import ladderboard.files, sys; print('polars' in sys.modules, 'pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
