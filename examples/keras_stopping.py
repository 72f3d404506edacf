"""A Keras callback over a judge: stops the training, and puts the winner's weights back."""

import tempfile

import keras
import numpy as np

import ladderboard as lb


def sample(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(seed).normal(size=(n, 11)).astype("float32")
    return x[:, 1:], (np.sum(x[:, 1:4] ** 2, axis=1) + x[:, 0] > 2.4).astype(int)


class GuardStopping(keras.callbacks.Callback):
    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        verdict = judge.consider(logs["val_loss"], self.predictions, name=epoch)
        if verdict is not None and verdict is judge.winner:
            self.weights = model.get_weights()
        model.stop_training = judge.spent or judge.stale >= 8  # the patience

    def on_train_end(self, _logs: dict[str, float]) -> None:
        model.set_weights(self.weights)

    def predictions(self) -> np.ndarray:
        return (model.predict(x_holdout, verbose=0) > 0.5).astype(int).ravel()


x_holdout, y_holdout = sample(10_000, 3)  # the labels go to the guard, and nowhere else
model = keras.Sequential([keras.layers.Dense(32, "relu"), keras.layers.Dense(1, "sigmoid")])
model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy")
with tempfile.TemporaryDirectory() as folder:
    guard = lb.Holdout.create(f"{folder}/guard.db", y_holdout, questions=100)
    judge = lb.Judge(guard.ladder("32 units"), min_delta=0.01)
    model.fit(*sample(500, 1), 32, 60, 0, [GuardStopping()], validation_data=sample(1_000, 2))
print(f"The winner is epoch {judge.winner.name}.")
for each in judge.verdicts:
    print(f"epoch {each.name:>2}   {each.score:.4f}   {each.reply}")
