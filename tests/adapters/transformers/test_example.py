"""A real training with the Trainer of Transformers, over a judge."""

import torch
from transformers import BertForSequenceClassification

import ladderboard as lb


def test_the_example_stops_and_keeps_the_winner(example):
    torch.manual_seed(0)
    module_globals, folder, printed = example("trainer_stopping")
    judge, trainer = module_globals["judge"], module_globals["trainer"]
    head, *rows = printed[printed.rindex("epoch ") :].splitlines()
    assert head.split() == ["epoch", "valid", "loss", "released", "improved"]
    assert len(rows) == len(judge.judgements) > 2
    [winner] = [row for row in rows if row.endswith("the winner")]
    assert int(winner.split()[0]) == judge.winner.name
    assert judge.checks_without_improvement == 3 or trainer.state.epoch == 12
    losses = {
        entry["epoch"]: entry["eval_loss"]
        for entry in trainer.state.log_history
        if "eval_loss" in entry
    }
    records = [
        epoch
        for epoch in losses
        if losses[epoch] == min(v for e, v in losses.items() if e <= epoch)
    ]
    assert [judgement.name for judgement in judge.judgements] == records
    # What was saved is the model that the guard knows as the winner.
    trainer.model = BertForSequenceClassification.from_pretrained(folder / "winner")
    predictions = trainer.predict(module_globals["x_holdout"]).predictions.argmax(axis=1)
    reply = lb.Holdout.open(folder / "guard.db").ask(predictions)
    assert reply.again
    assert reply.question == judge.winner.question
