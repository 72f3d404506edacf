"""A real training with the Trainer of Transformers, over a judge."""

import torch
from transformers import BertForSequenceClassification

import ladderboard as lb


def test_the_example_stops_and_keeps_the_winner(example):
    torch.manual_seed(0)
    made, folder, printed = example("trainer_stopping")
    judge, trainer = made["judge"], made["trainer"]
    head, *rows = printed[printed.rindex("epoch ") :].splitlines()
    assert head.split() == ["epoch", "valid", "loss", "released", "improved"]
    assert len(rows) == len(judge.verdicts) > 2
    [winner] = [row for row in rows if row.endswith("the winner")]
    assert int(winner.split()[0]) == judge.winner.name
    assert judge.stale == 3 or trainer.state.epoch == 12
    losses = {
        each["epoch"]: each["eval_loss"]
        for each in trainer.state.log_history
        if "eval_loss" in each
    }
    records = [
        epoch
        for epoch in losses
        if losses[epoch] == min(v for e, v in losses.items() if e <= epoch)
    ]
    assert [verdict.name for verdict in judge.verdicts] == records
    # What was saved is the model that the guard knows as the winner.
    trainer.model = BertForSequenceClassification.from_pretrained(folder / "winner")
    predictions = trainer.predict(made["x_holdout"]).predictions.argmax(axis=1)
    asked = lb.Holdout.open(folder / "guard.db").ask(predictions)
    assert asked.again
    assert asked.question == judge.winner.question
