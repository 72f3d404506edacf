"""A real training with Keras on JAX, over a judge."""

import ladderboard as lb


def test_the_example_stops_and_puts_the_winner_back(example, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    module_globals, folder, printed = example("keras_stopping")
    judge, model = module_globals["judge"], module_globals["model"]
    head, *rows = printed.splitlines()
    assert head.split() == ["epoch", "valid", "loss", "released", "improved"]
    assert len(rows) == len(judge.judgements) > 3
    [winner] = [row for row in rows if row.endswith("the winner")]
    assert int(winner.split()[0]) == judge.winner.name
    losses = model.history.history["val_loss"]
    assert judge.checks_without_improvement == len(losses) - 1 - judge.winner.name
    assert judge.checks_without_improvement == 8 or len(losses) == 60
    assert [losses[judgement.name] for judgement in judge.judgements] == [
        judgement.score for judgement in judge.judgements
    ]
    # The model has the weights that the guard knows as the winner.
    predictions = (model.predict(module_globals["x_holdout"], verbose=0) > 0.5).astype(int).ravel()
    reply = lb.Holdout.open(folder / "guard.db").ladder("32 units").ask(predictions)
    assert reply.again
    assert reply.question == judge.winner.question


def test_without_a_winner_the_model_stays_as_it_is(example, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    module_globals, _, _ = example("keras_stopping")
    model, before = module_globals["model"], module_globals["model"].get_weights()
    callback = module_globals["GuardStopping"]()
    monkeypatch.setitem(callback.on_train_end.__globals__, "judge", lb.Judge(None))  # never asked
    callback.on_train_end({})
    after = model.get_weights()
    assert all((old == new).all() for old, new in zip(before, after, strict=True))
