"""A Keras callback over a judge: stops the training, and puts the winner's weights back."""

import tempfile

import keras
import numpy as np

import ladderboard as lb


class GuardStopping(keras.callbacks.Callback):
    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        row = judge.consider(logs["val_loss"], self.predictions, name=epoch)
        if row is not None and row is judge.winner:
            self.weights = model.get_weights()
        model.stop_training = judge.budget_spent or judge.checks_without_improvement >= 8

    def on_train_end(self, _logs: dict[str, float]) -> None:
        if judge.winner is not None:
            model.set_weights(self.weights)

    def predictions(self) -> np.ndarray:
        return (model.predict(x_holdout, verbose=0) > 0.5).astype(int).ravel()


x, noise = np.split(np.random.default_rng(1).normal(size=(11_500, 11)), [10], axis=1)
y = (np.sum(x[:, :3] ** 2, axis=1) + noise[:, 0] > 2.4).astype(int)
x_holdout, y_holdout = x[1_500:], y[1_500:]  # the labels go to the guard, and nowhere else
model = keras.Sequential([keras.layers.Dense(32, "relu"), keras.layers.Dense(1, "sigmoid")])
model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy")
with tempfile.TemporaryDirectory() as folder:
    guard = lb.Holdout.create(f"{folder}/guard.db", y_holdout, questions=100)
    judge = lb.Judge(guard.ladder("32 units"), min_delta=0.01)
    valid = x[500:1_500], y[500:1_500]
    model.fit(x[:500], y[:500], 32, 60, 0, [GuardStopping()], validation_data=valid)
print("epoch   valid loss   released   improved")
for row in judge.judgements:
    note = "yes, the winner" if row is judge.winner else "yes" if row.improved else "no"
    print(f"{row.name:>5}{row.score:>13.4f}{row.reply.released:>11.3f}   {note}")
