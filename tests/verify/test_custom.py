"""A loss or a mechanism of the owner's own: given by who checks, or said to be unchecked."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from ladderboard.errors import InvalidSetting
from ladderboard.losses import ZeroOne
from ladderboard.mechanisms import Exact
from ladderboard.verify import verify_bundle
from support.verify.bundle_forge import BundleForge
from support.verify.bundles import make_bundle, read_records, write_records


@dataclass(frozen=True)
class OwnLoss(ZeroOne):
    name: ClassVar[str] = "own"


@dataclass(frozen=True)
class OwnMechanism(Exact):
    name: ClassVar[str] = "own"


@pytest.fixture
def guarded(tmp_path):
    """Give the bundle of a guard with a mechanism of its owner's."""
    forge = BundleForge(read_records(make_bundle(tmp_path, Exact())))
    forge.entries[0].fields["mechanism"]["mechanism"] = "own"
    return write_records(tmp_path / "own", forge.records())


def test_a_custom_mechanism_is_verified_if_given(guarded):
    assert verify_bundle(guarded, mechanism=OwnMechanism()).releases == 6
    result = verify_bundle(guarded)
    assert str(result) == "verified: 0 of 6 releases"
    assert "Noise and releases were not checked: the mechanism is a custom one." in result.unchecked


def test_unreproducible_draws_must_be_in_canonical_form(guarded, check_refused):
    forge = BundleForge(read_records(guarded))
    first = forge.of("question")[0]
    first.secret["content"]["draws"] = ["text"]
    check_refused(forge, "its draws are malformed", forge.number("question"))


@pytest.fixture
def own_loss(forge, write_forged):
    """Give the bundle of a board with a loss of its owner's."""
    forge.entries[0].fields["loss"]["loss"] = forge.rules["board"]["loss"]["name"] = "own"
    forge.rules["zero_one"] = False
    return write_forged(forge)


def test_a_custom_loss_is_verified_if_given(own_loss):
    result = verify_bundle(own_loss, loss=OwnLoss())
    assert result.risks == result.releases == 10
    result = verify_bundle(own_loss)
    assert (result.risks, result.releases) == (0, 10)
    assert any("--loss" in line for line in result.unchecked)


def test_another_one_than_the_owners(guarded, own_loss):
    with pytest.raises(InvalidSetting, match="made with another loss than the one given"):
        verify_bundle(own_loss, loss=ZeroOne())
    with pytest.raises(InvalidSetting, match="made with another mechanism than the one given"):
        verify_bundle(guarded, mechanism=Exact())


def test_progress_is_reported(guarded):
    heard = []
    result = verify_bundle(guarded, on_progress=lambda *progress: heard.append(progress))
    assert heard == [(0, result.entries)]
