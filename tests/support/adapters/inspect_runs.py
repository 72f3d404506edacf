"""Runs Inspect offline, with its ``mockllm`` model on small tasks.

``PYTHONPATH=tests python -m support.adapters.inspect_runs`` writes the logs in
``tests/adapters/data/inspect``.
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


def make_model(answer):
    """Return a model that answers with a function of the question."""

    def respond(messages, tools, choice, config):
        output = ModelOutput.from_content("mockllm/model", answer(messages[-1].text))
        # Otherwise a tokenizer is downloaded to count tokens.
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    return get_model("mockllm/model", custom_outputs=respond)


def correct_answer(question):
    """Return the correct answer."""
    return str(int(question.split()[0]) + 2)


def correct_below_limit(limit):
    """Return a function that is correct where the first number is below a limit."""
    return lambda question: (
        correct_answer(question) if int(question.split()[0]) < limit else "who knows"
    )


def failing_answer(number):
    """Return a function that is correct but fails for one first number."""

    def answer(question):
        if question.startswith(str(number)):
            raise RuntimeError("the model has gone")
        return correct_answer(question)

    return answer


@scorer(metrics=[accuracy(), stderr()])
def gives(values):
    """Score each sample with one of the values, by its first number and the epoch."""

    async def score(state, target):
        index = int(state.input_text.split()[0]) + state.epoch - 1
        return Score(value=values[index % len(values)])

    return score


@scorer(metrics={"*": [mean()]})
def graded():
    """Score each sample with several values."""

    async def score(state, target):
        first = int(state.input_text.split()[0])
        return Score(value={"short": 1.0, "kind": first / 10})

    return score


def run(
    folder,
    answer=correct_answer,
    *,
    form="eval",
    scorers=None,
    samples=SUMS,
    epochs=None,
    **settings,
):
    """Run an evaluation; return the path of its log."""
    task = Task(dataset=list(samples), scorer=scorers or [match()], epochs=epochs, name="sums")
    settings = {"log_dir": str(folder), "log_format": form, "display": "none", **settings}
    (log,) = evaluate(task, model=make_model(answer), **settings)
    return Path(log.location)


def two_reducers(n=2):
    return Epochs(n, ["mean", "max"])


RUNS = {
    "passed": {"answer": correct_below_limit(4)},
    "limited": {"limit": 3},
    "grades": {"scorers": [gives(["C", "I", "P", "N", True, 0.25])]},
    "unscored": {"scorers": [gives([1.0, float("nan")])]},
    "letters": {"scorers": [gives(["A", "B", 1.5])]},
    "two_scorers": {"answer": correct_below_limit(2), "scorers": [match(), includes()]},
    "several_values": {"scorers": [graded()]},
    "epochs": {"epochs": two_reducers(), "scorers": [gives(["C", "I"])]},
    "one_error": {"answer": failing_answer(3), "fail_on_error": False},
    "failed": {"answer": failing_answer(3), "fail_on_error": True},
    "numbered": {"samples": [Sample(input=f"{a} + 2 =", target=str(a + 2)) for a in range(3)]},
}


def shorten_log(path):
    """Return a log without what the tests do not read, and without paths of the machine."""
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
    """Write the logs of all runs."""
    with tempfile.TemporaryDirectory() as temporary:
        for name, settings in RUNS.items():
            log = run(temporary, form="json", **settings)
            write_eval_log(shorten_log(log), str(Path(folder) / f"{name}.json"), format="json")


if __name__ == "__main__":
    write_all(
        sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2] / "adapters/data/inspect"
    )
