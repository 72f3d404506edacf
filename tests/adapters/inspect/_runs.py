"""Runs of Inspect with its ``mockllm`` model, small and offline.

``python tests/adapters/inspect/_runs.py`` writes the logs in ``tests/adapters/data/inspect``.
"""

import sys
import tempfile
from pathlib import Path

from inspect_ai import Epochs, Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, accuracy, includes, match, mean, scorer, stderr

SUMS = [Sample(input=f"{a} + 2 =", target=str(a + 2), id=f"sum-{a}") for a in range(6)]


def model(answer):
    """A model that answers what a function of the question says."""

    def says(messages, tools, choice, config):
        said = ModelOutput.from_content("mockllm/model", answer(messages[-1].text))
        # Otherwise the tokens are counted by something that is looked for on the network.
        said.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return said

    return get_model("mockllm/model", custom_outputs=says)


def right(question):
    return str(int(question.split()[0]) + 2)


def right_below(limit):
    """Right where the first number is below a limit."""
    return lambda question: right(question) if int(question.split()[0]) < limit else "who knows"


def fails_at(number):
    def answer(question):
        if question.startswith(str(number)):
            raise RuntimeError("the model has gone")
        return right(question)

    return answer


@scorer(metrics=[accuracy(), stderr()])
def gives(values):
    """Give each sample a value of its own, by the first number of the question and the epoch."""

    async def score(state, target):
        at = int(state.input_text.split()[0]) + state.epoch - 1
        return Score(value=values[at % len(values)])

    return score


@scorer(metrics={"*": [mean()]})
def graded():
    async def score(state, target):
        first = int(state.input_text.split()[0])
        return Score(value={"short": 1.0, "kind": first / 10})

    return score


def run(folder, answer=right, *, form="eval", scorers=None, samples=SUMS, epochs=None, **settings):
    """Run an evaluation; return where its log is."""
    task = Task(dataset=list(samples), scorer=scorers or [match()], epochs=epochs, name="sums")
    settings = {"log_dir": str(folder), "log_format": form, "display": "none", **settings}
    (log,) = evaluate(task, model=model(answer), **settings)
    return Path(log.location)


def two_ways(n=2):
    return Epochs(n, ["mean", "max"])


RUNS = {
    "passed": {"answer": right_below(4)},
    "limited": {"limit": 3},
    "grades": {"scorers": [gives(["C", "I", "P", "N", True, 0.25])]},
    "unscored": {"scorers": [gives([1.0, float("nan")])]},
    "letters": {"scorers": [gives(["A", "B", 1.5])]},
    "two_scorers": {"answer": right_below(2), "scorers": [match(), includes()]},
    "several_values": {"scorers": [graded()]},
    "epochs": {"epochs": two_ways(), "scorers": [gives(["C", "I"])]},
    "one_error": {"answer": fails_at(3), "fail_on_error": False},
    "failed": {"answer": fails_at(3), "fail_on_error": True},
    "numbered": {"samples": [Sample(input=f"{a} + 2 =", target=str(a + 2)) for a in range(3)]},
}


def shortened(path):
    """Leave out of a log what nobody reads here, and where it was made."""
    log = read_eval_log(str(path))
    for sample in log.samples or ():
        sample.events, sample.messages, sample.attachments = [], [], {}
        sample.events_data = None
        if sample.error is not None:
            sample.error.traceback = sample.error.traceback_ansi = ""
    if log.error is not None:
        log.error.traceback = log.error.traceback_ansi = ""
    log.eval.task_file = log.eval.task_registry_name = None
    return log


def write_all(folder):
    with tempfile.TemporaryDirectory() as place:
        for name, settings in RUNS.items():
            made = run(place, form="json", **settings)
            write_eval_log(shortened(made), str(Path(folder) / f"{name}.json"), format="json")


if __name__ == "__main__":
    write_all(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "data/inspect")
