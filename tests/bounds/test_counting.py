"""The combinatorics, against every transcript that a real mechanism can make."""

import math
from decimal import Decimal, localcontext
from itertools import pairwise

import pytest

import ladderboard as lb
from ladderboard.bounds import certificate
from ladderboard.bounds._counting import _largest
from ladderboard.mechanisms import Observation, Setup
from ladderboard.mechanisms._transcript import GridValues, log_binomial

BETA = 0.05
LADDERS = [
    (lb.Ladder(step=0.3, grid=0.25), (0, 1)),
    (lb.Ladder(step=0.25), (0, 1)),
    (lb.Ladder(step=0.3, grid=0.2), (0, 1)),
    (lb.Ladder(step=0.05, grid=0.25), (0, 1)),
    (lb.Ladder(step=0.0, grid=0.3), (0, 1)),
    (lb.Ladder(step=0.15, grid=0.1), (0, 0.55)),
    (lb.Ladder(step=0.3, grid=0.2), (-0.5, 1)),
    (lb.ShakyLadder(step=0.3, compare_noise=0, release_noise=0, grid=0.2), (0, 1)),
]


def spots(low, high):
    """Return risks that make everything happen: a fine lattice, and a unit beside it."""
    count = round((high - low) * 200)
    lattice = [low + (high - low) * index / count for index in range(count + 1)]
    beside = [spot + shift for spot in lattice for shift in (-2e-12, 2e-12)]
    return [spot for spot in (*lattice, *beside) if low <= spot <= high]


def next_values(mechanism, setup, state):
    """Return every state, other than this one, that one question can lead to."""
    states = set()
    for risk in spots(setup.low, setup.high):
        step = mechanism.advance(setup, state, Observation(risk, None, None), (0, 0, 0))
        if step.state != state:
            states.add(step.state)
    return states


def sequences(mechanism, setup):
    """Return the number of value sequences by their length."""
    counts = []
    layer = {mechanism.begin(setup, (0, 0, 0)): 1}
    moves = {}
    while layer:
        counts.append(sum(layer.values()))
        following = {}
        for state, ways in layer.items():
            if state not in moves:
                moves[state] = next_values(mechanism, setup, state)
            for after in moves[state]:
                following[after] = following.get(after, 0) + ways
        layer = following
    return counts


@pytest.mark.parametrize(("mechanism", "span"), LADDERS, ids=str)
def test_a_ladder_says_no_more_sequences_than_are_counted(mechanism, span):
    """And as many, but where the last rung is too close to the bottom to be left."""
    setup = Setup(10, *map(float, span))
    values = mechanism.transcript(setup).values
    counts = sequences(mechanism, setup)
    counted = [round(math.exp(values.log_count(b))) for b in range(values.max_changes + 1)]
    assert len(counts) <= len(counted)
    assert all(possible <= paid for possible, paid in zip(counts, counted, strict=False))
    step, grid = mechanism.step_and_grid_units
    if step < values.drop * grid:
        assert counts == counted


@pytest.mark.parametrize("release", [0.0, 0.1])
def test_a_shaky_ladder_says_no_more_than_is_counted(release):
    mechanism = lb.ShakyLadder(step=0.1, compare_noise=0.1, release_noise=release, grid=0.2)
    setup = Setup(10, 0.0, 1.0)
    values = mechanism.transcript(setup).values
    sequences = [0] * 7
    stack = [(mechanism.begin(setup, (0, 0, 0)), 0)]
    while stack:
        state, depth = stack.pop()
        sequences[depth] += 1
        seen = set()
        for risk in (0.0, 0.1, 0.25, 0.3, 0.45, 0.5, 0.65, 0.7, 0.85, 0.9, 1.0):
            for noise in (-0.5, 0.0, 0.5):
                units = round(noise * 1e12) if release else 0
                draws = (-(10**12), units, 0)  # a comparison that always crosses
                step = mechanism.advance(setup, state, Observation(risk, None, None), draws)
                if step.improved and step.state.best not in seen:
                    seen.add(step.state.best)
                    stack.append((step.state, depth + 1))
    assert [
        round(math.exp(values.log_count(b))) for b in range(values.max_changes + 1)
    ] == sequences[:6]
    assert sequences[6] == 0


def prefixes(points, drop, k, start=None):
    """Yield (question, rounds of the changes before it) for every transcript of a ladder."""

    def grow(t, rounds, last):
        yield t, rounds
        if t == k:
            return
        yield from grow(t + 1, rounds, last)
        tops = range(points) if last is None else range(last - drop + 1)
        for value in tops:
            yield from grow(t + 1, (*rounds, t), value)

    return grow(1, (), None)


@pytest.mark.parametrize("form", ["count", "rounds", "anytime", "anytime rounds"])
@pytest.mark.parametrize("mechanism", [lb.Ladder(0.3, 0.25), lb.Ladder(0.25), lb.OneBit(0.3, 0.2)])
def test_the_weights_of_all_transcripts_sum_to_at_most_one(mechanism, form):
    """Kraft's inequality, on what certificates say: the whole proof stands on it."""
    k = 7
    values = mechanism.transcript(Setup(100, 0.0, 1.0)).values
    points, drop = (values.points, values.drop) if isinstance(values, GridValues) else (1, 0)
    total = 0.0
    for t, rounds in prefixes(points, drop, k):
        if len(rounds) > values.max_changes:
            continue
        result = certificate(
            100,
            None if form.startswith("anytime") else k,
            list(rounds) if "rounds" in form else len(rounds),
            mechanism,
            BETA,
            asked=t,
        )
        total += 2 / BETA * math.exp(-result.nats)
    assert 0.02 < total <= 1


@pytest.mark.parametrize("form", ["count", "rounds", "split counts", "split rounds"])
def test_the_weights_of_several_ladders_sum_to_at_most_one(form):
    """Whose turn it is may depend on everything seen, as it would among colluders."""
    k, mechanism = 6, lb.Ladder(0.3, 0.25)
    values = mechanism.transcript(Setup(100, 0.0, 1.0)).values

    def grow(t, seen, last):
        yield t, seen
        if t == k:
            return
        yield from grow(t + 1, seen, last)
        ladder = (t * 7 + sum(at * (value + 1) for at, value, _ in seen)) % 2
        top = values.points if last[ladder] is None else last[ladder] - values.drop + 1
        for value in range(top):
            after = tuple(value if at == ladder else old for at, old in enumerate(last))
            yield from grow(t + 1, (*seen, (t, value, ladder)), after)

    total = 0.0
    for t, seen in grow(1, (), (None, None)):
        by_ladder = [[at for at, _, owner in seen if owner == ladder] for ladder in (0, 1)]
        changes = {
            "count": len(seen),
            "rounds": [at for at, _, _ in seen],
            "split counts": dict(enumerate(map(len, by_ladder))),
            "split rounds": dict(enumerate(by_ladder)),
        }[form]
        result = certificate(100, k, changes, mechanism, BETA, asked=t, ladders=2)
        total += 2 / BETA * math.exp(-result.nats)
    assert 0.02 < total <= 1


SIZES = [(10, 3), (5, 0), (5, 5), (5_000, 2_100), (10**6, 2), (2_002, 1_001), (10**5, 1_001)]


@pytest.mark.parametrize(("whole", "part"), SIZES)
def test_binomial_coefficients(whole, part):
    """Against whole numbers: never too small, but for the last bits of a double."""
    with localcontext(prec=40):
        exact = Decimal(math.comb(whole, part)).ln()
        above = float(Decimal(log_binomial(whole, part)) - exact)
    assert -2e-15 * float(exact) <= above + 1e-18 <= 1e-11 + 2e-15 * float(exact)


def test_prices_are_concave_in_the_number_of_changes():
    """The largest is looked for by thirds; this is why that finds it."""
    for points, drop in ((30, 1), (50, 2), (90, 4)):
        cells = GridValues.from_grid(points, drop)
        logs = [cells.log_count(b) for b in range(cells.max_changes + 1)]
        steps = [after - before for before, after in pairwise(logs)]
        assert all(after <= before + 1e-9 for before, after in pairwise(steps))


def test_the_price_is_the_largest_so_far():
    """C(k, b+1) V(b) falls again: b = 5 costs more than b = 9, and its models are among those."""
    ladder = lb.Ladder(step=0.05, grid=0.1)
    prices = [certificate(100, 10, b, ladder).nats for b in range(10)]
    assert prices == sorted(prices)
    assert prices[9] == max(prices) == certificate(100, 10, None, ladder).nats


def test_the_largest_price_is_found_on_a_plateau():
    """A concave price of 10^16, whose neighbours differ by less than a double can hold."""
    top, scale = 3 * 10**14 + 7, 10**15

    def price(b):
        return 1e16 - (b - top) ** 2 / scale

    assert price(top) == price(top + 1000)
    for limit in (scale, top, top + 10**6):
        assert _largest(price, limit) >= 1e16 - 180 * 2
    for limit in range(30):
        for peak in range(30):
            assert _largest(lambda b, peak=peak: -abs(b - peak), limit) == min(limit - peak, 0)


def test_huge_prices_are_not_underpaid():
    """A thousand numbers of changes, spread over all: none costs more than what is charged."""
    k = 10**15
    for mechanism, ladders in ((lb.Ladder(0, 1e-12), 10**6), (lb.ParameterFreeLadder(), 10**6)):
        values = mechanism.transcript(Setup(k, 0.0, 1.0)).values
        charged = certificate(k, k, None, mechanism, ladders=ladders).nats
        for part in range(1, 1000):
            b = k // 1000 * part
            price = log_binomial(k, b + 1) + values.log_shared(b, ladders)
            assert price + math.log((b + 1) * (b + 2)) + math.log(2 / 0.05) <= charged
