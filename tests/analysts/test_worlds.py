"""Worlds: what they reveal, and their true risk."""

import numpy as np
import pytest

from ladderboard.analysts._hyperparameters import DigitsWorld, FittedClassifier
from ladderboard.analysts._worlds import UniformLabelsWorld


@pytest.mark.parametrize("easy", [0.0, 0.35, 1.0])
def test_labels_of_hard_examples_are_not_known(easy):
    world = UniformLabelsWorld(200, np.random.default_rng(1), classes=10, easy=easy)
    known_count, known_labels = world.known
    assert known_count == int(200 * easy)
    assert not known_labels[known_count:].any()
    assert world.losses(known_labels)[:known_count].sum() == 0
    # Zeros are shown in place of the hard labels, which are not all zero.
    assert known_count == 200 or world.losses(known_labels)[known_count:].any()


def test_what_is_known_cannot_change_the_labels():
    world = UniformLabelsWorld(200, np.random.default_rng(1), classes=10, easy=0.5)
    losses, known_labels = world.losses(np.zeros(200)), world.known.labels.copy()
    world.known.labels[:] = 0
    assert (world.losses(np.zeros(200)) == losses).all()
    assert (world.known.labels == known_labels).all()


class RecordingClassifier:
    """A classifier that remembers the images it was shown."""

    def predict(self, pixels):
        self.shown = {image.tobytes() for image in pixels}
        return np.zeros(len(pixels), dtype=int)


def test_the_truth_about_digits_is_of_the_images_that_examples_are_made_of():
    from sklearn.datasets import load_digits

    images = {image.tobytes() for image in load_digits().data.astype(np.float32)}
    world = DigitsWorld(3_000, np.random.default_rng(1), noise=0)
    model = FittedClassifier(RecordingClassifier(), np.arange(64))
    world.losses(model)
    examples = model.estimator.shown
    world.true_risk(model)
    truth = model.estimator.shown
    training = {image.tobytes() for image in world.known.pixels}
    # Without noise an example is one of 898 images with one of five shifts, and truth has them all.
    assert examples < truth
    assert len(truth) <= 898 * 5
    assert len(truth & images) == 898
    assert not training & truth
    assert not training & examples
