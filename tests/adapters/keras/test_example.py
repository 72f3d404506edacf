"""A real training with Keras on JAX, over a judge."""

import ladderboard as lb


def test_the_example_stops_and_puts_the_winner_back(example, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    made, folder, printed = example("keras_stopping")
    judge, model = made["judge"], made["model"]
    first, *rows = printed.splitlines()
    assert first == f"The winner is epoch {judge.winner.name}."
    assert len(rows) == len(judge.verdicts) > 3
    losses = model.history.history["val_loss"]
    assert judge.stale == len(losses) - 1 - judge.winner.name
    assert judge.stale == 8 or len(losses) == 60
    assert [losses[each.name] for each in judge.verdicts] == [each.score for each in judge.verdicts]
    # The model has the weights that the guard knows as the winner.
    predictions = (model.predict(made["x_holdout"], verbose=0) > 0.5).astype(int).ravel()
    asked = lb.Holdout.open(folder / "guard.db").ladder("32 units").ask(predictions)
    assert asked.again
    assert asked.question == judge.winner.question
