"""Our own analysts pass the public suite and are found by name."""

import pytest

import ladderboard as lb
from ladderboard.analysts import (
    ANALYSTS,
    AbstainingAttack,
    Breakthroughs,
    HyperparameterSearch,
    LogLossDecoder,
    MajorityAttack,
    MulticlassAttack,
    OneBitAttack,
    Plateau,
    RandomSearch,
    ShiftedMajority,
    SteadyImprovement,
    SybilAttack,
    analyst,
)
from ladderboard.errors import InvalidSetting
from ladderboard.testing import check_analyst

OURS = [
    MajorityAttack(),
    MajorityAttack(keep="better", easy=0.5),
    ShiftedMajority(),
    ShiftedMajority(easy=0),
    AbstainingAttack(),
    AbstainingAttack(rare=0.05),
    AbstainingAttack(rare=None),
    SybilAttack(accounts=7),
    SybilAttack(accounts=200, easy=0.3),
    MulticlassAttack(),
    MulticlassAttack(classes=3, vote="plurality", easy=0.5),
    LogLossDecoder(),
    LogLossDecoder(per_question=4, clip=1e-12),
    LogLossDecoder(designed_for=1e-300),
    OneBitAttack(),
    OneBitAttack(easy=0),
    OneBitAttack(easy=1),
    SteadyImprovement(),
    SteadyImprovement(first=0.3, last=0.3),
    Plateau(),
    Plateau(risk=1),
    RandomSearch(),
    RandomSearch(worst=0, best=0),
    Breakthroughs(),
    Breakthroughs(first=1, last=0.5, records=90),
]


# A false alarm: below 1e-4 for each, see check_analyst.
@pytest.mark.parametrize("subject", OURS, ids=repr)
def test_conformance(subject):
    check_analyst(subject)


def test_the_search_conforms():
    # Fewer and shorter games: each of its questions fits a classifier.
    check_analyst(HyperparameterSearch(), n=40, questions=4, games=8)


def test_every_analyst_is_tested():
    assert {analyst.name for analyst in (*OURS, HyperparameterSearch())} == set(ANALYSTS)


@pytest.mark.parametrize("subject", OURS, ids=repr)
@pytest.mark.parametrize(
    "mechanism",
    [
        lb.ParameterFreeLadder(),
        lb.Thresholdout(),
        lb.BootstrapLadder(replicates=20),
        lb.Noisy(sd=0.02),
        lb.Rounded(digits=2),
        lb.ShakyLadder.from_paper(n=10_000, questions=1_000),
        lb.Ladder(step=0.9),
    ],
    ids=lambda participant: participant.name,
)
def test_every_analyst_meets_every_mechanism(subject, mechanism):
    score = subject.play_against(mechanism, n=50, questions=20, seed=1)
    assert 1 <= score.asked <= 20
    assert -1 <= score.bias <= 1


def test_by_name():
    assert analyst("one_bit", easy=0.25) == OneBitAttack(easy=0.25)
    assert analyst({"analyst": "multiclass", "classes": 5}, vote="plurality").classes == 5
    assert analyst(Plateau()) == Plateau()
    with pytest.raises(InvalidSetting, match="no analyst named 'majorty'; choose from abst"):
        analyst("majorty")
    with pytest.raises(InvalidSetting, match="does not take these settings"):
        analyst("plateau", risks=0.1)
    with pytest.raises(InvalidSetting, match="an instance already"):
        analyst(Plateau(), risk=0.1)


@pytest.mark.parametrize(
    ("analyst_class", "settings"),
    [
        (MulticlassAttack, {"classes": 1}),
        (MulticlassAttack, {"vote": "majority"}),
        (MulticlassAttack, {"easy": 1.5}),
        (AbstainingAttack, {"rare": 0.5}),
        (LogLossDecoder, {"per_question": 0}),
        (LogLossDecoder, {"per_question": 49}),
        (LogLossDecoder, {"clip": 0}),
        (LogLossDecoder, {"designed_for": 1}),
        (OneBitAttack, {"easy": -0.1}),
        (SteadyImprovement, {"first": "high"}),
        (Plateau, {"risk": 2}),
        (RandomSearch, {"best": -0.1}),
        (RandomSearch, {"worst": 1.1}),
        (Breakthroughs, {"first": 0}),
        (Breakthroughs, {"last": 1.1}),
        (Breakthroughs, {"records": 0}),
        (HyperparameterSearch, {"restart": 2}),
        (HyperparameterSearch, {"noise": -1}),
    ],
)
def test_settings_are_read(analyst_class, settings):
    with pytest.raises(InvalidSetting, match=next(iter(settings))):
        analyst_class(**settings)
