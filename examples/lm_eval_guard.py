"""Runs of lm-evaluation-harness, here of its dummy model, and what a guard says of each.

python examples/lm_eval_guard.py [SAMPLES.jsonl ...]
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import ladderboard as lb
from ladderboard.adapters.lm_eval import read_samples

TASK = """task: sums
dataset_path: json
dataset_kwargs: {data_files: {test: sums.jsonl}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{a}} + 17 ="
doc_to_choice: ["{{a + 17}}", "{{a + 16}}"]
doc_to_target: 0"""
RUN = "-m lm_eval --model dummy --include_path . --tasks sums --log_samples --output_path out"


def evaluate(folder: str) -> list[Path]:
    """Run the harness with three seeds, on a task of our own; return its samples files."""
    Path(folder, "sums.yaml").write_text(TASK)
    Path(folder, "sums.jsonl").write_text("\n".join(json.dumps({"a": a}) for a in range(200)))
    for seed in "123":
        subprocess.run([sys.executable, *RUN.split(), "--seed", seed], cwd=folder, check=True)
    return sorted(Path(folder).rglob("samples_sums_*.jsonl"))


with tempfile.TemporaryDirectory() as folder:
    runs = [read_samples(each) for each in sys.argv[1:] or evaluate(folder)]
    guard = lb.Holdout.create(Path(folder, "guard.db"), ids=runs[0].ids, loss="score", questions=20)
    for number, scores in enumerate(runs, 1):
        print(f"run {number} of {scores.task}: {scores.ask(guard)}")
