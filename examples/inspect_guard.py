"""Inspect tries agents on practice tasks; a guard judges the log of each that sets a record."""

import tempfile
from random import Random

import inspect_ai
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match

import ladderboard as lb
from ladderboard.adapters import Scores
from ladderboard.adapters.inspect import read_log

SUMS = [Sample(id=f"sum-{n}", input=f"{n} + 17 =", target=str(n + 17)) for n in range(160)]


def run(skill: float, sums: list[Sample], folder: str) -> Scores:  # of one so often right
    def answer(messages: list[ChatMessage], *_: object) -> ModelOutput:
        right = Random(f"{skill} {messages[-1].text}").random() < skill  # noqa: S311
        output = ModelOutput.from_content("", str(int(messages[-1].text.split()[0]) + 17 * right))
        return output.model_copy(update={"usage": ModelUsage()})

    model = get_model("mockllm/agent", custom_outputs=answer)
    task = inspect_ai.Task(dataset=sums, scorer=match(), model=model)
    return read_log(inspect_ai.eval(task, log_dir=folder, display="none")[0].location)


with tempfile.TemporaryDirectory() as folder:
    table = {"id": [sample.id for sample in SUMS[40:]]}
    guard = lb.Holdout.create(f"{folder}/guard.db", table, loss="score", questions=20)
    judge = lb.Judge(guard)
    for skill in (0.3, 0.5, 0.4, 0.8, 0.75):
        wrong = 1 - run(skill, SUMS[:40], folder).mean
        judge.consider(wrong, lambda: run(skill, SUMS[40:], folder).table, name=skill)  # noqa: B023
print("skill   practice error   released   improved")
for row in judge.judgements:
    improved = "yes, the winner" if row is judge.winner else "yes" if row.improved else "no"
    print(f"{row.name:>5}{row.score:>17.3f}{row.reply.released:>11.3f}   {improved}")
