"""Runs lm-evaluation-harness offline, with its ``dummy`` model on small tasks.

``PYTHONPATH=tests python -m support.adapters.lm_eval_runs`` writes the files in
``tests/adapters/data/lm_eval``.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SUMS = [(a, b) for a in range(3, 6) for b in range(2, 6)]

CHOICE_TASK = """
task: sums
dataset_path: json
dataset_kwargs: {data_files: {test: sums.jsonl}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{question}}"
doc_to_choice: choices
doc_to_target: answer
metric_list:
  - {metric: acc, aggregation: mean, higher_is_better: true}
  - {metric: acc_norm, aggregation: mean, higher_is_better: true}
"""

GENERATION_TASK = """
task: sums_written
dataset_path: json
dataset_kwargs: {data_files: {test: sums.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{text}}"
generation_kwargs: {until: ["."]}
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true}
  - {metric: bleu, aggregation: bleu, higher_is_better: true}
filter_list:
  - name: strict
    filter: [{function: regex, regex_pattern: "^([0-9]+)$"}, {function: take_first}]
  - name: loose
    filter: [{function: regex, regex_pattern: "([a-z]+)"}, {function: take_first}]
"""


def write_tasks(folder):
    rows = [
        {
            "question": f"{a} + {b} =",
            "choices": [str(a + b), str(a + b + 1)],
            "answer": 0,
            # The dummy model answers "lol", which is correct for some.
            "text": "lol" if a == 3 else str(a + b),
        }
        for a, b in SUMS
    ]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "sums.jsonl").write_text(lines)
    (folder / "sums.yaml").write_text(CHOICE_TASK)
    (folder / "sums_written.yaml").write_text(GENERATION_TASK)


def run(folder, *options):
    """Run both tasks in a folder; return the samples files by the name of the task."""
    write_tasks(folder)
    out = folder / "out"
    command = [sys.executable, "-m", "lm_eval", "--model", "dummy", "--include_path", "."]
    command += ["--tasks", "sums,sums_written", "--log_samples", "--output_path", str(out)]
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "hf")}
    completed = subprocess.run(
        [*command, *options],
        cwd=folder,
        env={**os.environ, **offline},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr[-2000:]
    paths = sorted(out.rglob("samples_*.jsonl"), key=lambda path: path.name)
    return {"sums_written" if "written" in path.name else "sums": path for path in paths}


def write_all(folder):
    """Write a run's files, without information about the machine."""
    with tempfile.TemporaryDirectory() as temporary:
        for path in run(Path(temporary)).values():
            shutil.copy(path, folder)
            (results,) = path.parent.glob("results_*.json")
        content = json.loads(results.read_bytes())
        content.pop("pretty_env_info", None)
        text = f"{json.dumps(content, indent=1)}\n"
        (folder / results.name).write_text(text)


if __name__ == "__main__":
    default = Path(__file__).parents[2] / "adapters/data/lm_eval"
    write_all(Path(sys.argv[1]) if len(sys.argv) > 1 else default)
