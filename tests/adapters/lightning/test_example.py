"""The example trains, asks and stops."""

import torch

import ladderboard as lb


def test_the_example_ends_with_a_table_and_keeps_the_winner(example):
    module_globals, folder, printed = example("lightning_stopping")
    stopping = module_globals["stopping"]
    head, *rows = printed.splitlines()
    assert head.split() == ["step", "valid", "loss", "released", "improved"]
    assert len(rows) == len(stopping.judge.judgements) > 3
    [winner] = [row for row in rows if row.endswith("the winner")]
    assert int(winner.split()[0]) == stopping.winner.name
    assert module_globals["trainer"].current_epoch < 60
    # The checkpoint is the model that the guard knows as the winner.
    [file] = folder.glob("*.ckpt")
    module_globals["net"].load_state_dict(torch.load(file)["state_dict"])
    guard = lb.Holdout.open(folder / "guard.db").ladder("32 units")
    reply = guard.ask(module_globals["net"](module_globals["x_holdout"]).argmax(dim=1).numpy())
    assert reply.again
    assert reply.question == stopping.winner.question
