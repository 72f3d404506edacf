"""Runs of lm-evaluation-harness: some documents are practice, of the others a guard judges.

python examples/lm_eval_guard.py [SAMPLES.jsonl ...]
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import ladderboard as lb
from ladderboard.adapters.lm_eval import read_samples

TASK = """{"task": "sums", "dataset_path": "json", "output_type": "multiple_choice",
"dataset_kwargs": {"data_files": {"test": "sums.jsonl"}}, "test_split": "test",
"doc_to_text": "{{a}} + 17 =", "doc_to_choice": ["{{a + 17}}", "{{a + 16}}"], "doc_to_target": 0}"""
RUN = "-m lm_eval --model dummy --include_path . --tasks sums --log_samples --output_path out"


def evaluate(folder: str) -> list[Path]:
    Path(folder, "sums.yaml").write_text(TASK)  # JSON is YAML, too
    Path(folder, "sums.jsonl").write_text("\n".join(f'{{"a": {a}}}' for a in range(240)))
    for seed in "125":  # makes another model of the dummy
        subprocess.run([sys.executable, *RUN.split(), "--seed", seed], cwd=folder, check=True)
    return sorted(Path(folder).rglob("samples_sums_*.jsonl"), key=lambda path: path.name)


with tempfile.TemporaryDirectory() as folder:
    runs = [read_samples(path) for path in sys.argv[1:] or evaluate(folder)]
    cut = len(runs[0]) // 4  # documents are practice; the scores of the others go to the guard
    guard = lb.Holdout.create(f"{folder}/g.db", ids=runs[0].ids[cut:], loss="score", questions=20)
    judge = lb.Judge(guard)
    for run, its in enumerate(runs, 1):
        table = {"id": its.ids[cut:], "score": its.values[cut:]}
        judge.consider(1 - its.values[:cut].mean(), table, name=run)
print("run   practice error   released   improved")
for row in judge.judgements:
    improved = "yes, the winner" if row is judge.winner else "yes" if row.improved else "no"
    print(f"{row.name:>3}{row.score:>17.3f}{row.reply.released:>11.3f}   {improved}")
