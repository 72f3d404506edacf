"""Choosing a Ladder: the bounds that let whole stretches of grids be passed over are right."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ladderboard import bounds
from ladderboard.bounds._best_ladder import (
    CELL_COUNTS,
    LadderRequirements,
    choose_ladder,
    ladder_error,
    ladder_with,
)
from ladderboard.bounds._plan import LARGEST, largest_sufficient, smallest_sufficient

sizes = st.floats(0, 8).map(lambda power: round(10**power))
betas = st.sampled_from([0.01, 0.05, 0.3])
changes = st.sampled_from([None, 0, 3, 5])


@settings(max_examples=40)
@given(sizes, sizes, betas, changes)
@example(1, 1, 0.05, None)
@example(10**8, 3, 0.05, None)
def test_no_grid_is_better_than_the_chosen_one(n, questions, beta, seen):
    job = LadderRequirements(questions, beta, seen)
    width, ladder = choose_ladder(n, job)
    assert width == ladder_error(n, ladder, job)
    tried = [*CELL_COUNTS[:999:7], *CELL_COUNTS[999::97]]
    assert width <= min(ladder_error(n, ladder_with(cells), job) for cells in tried)


@settings(max_examples=60)
@given(sizes, sizes, betas, changes)
def test_widths_are_those_of_certificates(n, questions, beta, seen):
    width, ladder = choose_ladder(n, LadderRequirements(questions, beta))
    result = bounds.certificate(n, questions, None, ladder, beta)
    assert result.half_width <= result.error == width
    few = None if seen is None else min(seen, questions, ladder_cells(ladder))
    result = bounds.certificate(n, questions, few, ladder, beta)
    error = ladder_error(n, ladder, LadderRequirements(questions, beta, seen))
    assert result.half_width <= result.error == error


def ladder_cells(ladder):
    return round(1 / ladder.grid)


@settings(max_examples=40)
@given(sizes, sizes)
def test_it_is_the_best_ladder_up_to_its_grids(n, questions):
    """``best_ladder`` tries other large numbers of cells; neither misses more than this."""
    mine, _ = choose_ladder(n, LadderRequirements(questions, 0.05))
    other = bounds.best_ladder(n, questions)[1].error
    assert mine <= other * (1 + 1e-4)
    assert other <= mine * (1 + 2e-3)


def test_three_digits_are_fine_enough():
    n, job = 10**11, LadderRequirements(10**6, 0.05)
    width, ladder = choose_ladder(n, job)
    best = round(1 / ladder.grid)
    assert best > 1000
    near = range(round(0.98 * best), round(1.02 * best))
    assert width <= min(ladder_error(n, ladder_with(cells), job) for cells in near) * (1 + 1e-5)


@given(sizes, sizes, st.floats(1e-5, 0.5), changes)
@settings(max_examples=60)
def test_asking_whether_it_is_enough_agrees_with_the_least(n, questions, enough, seen):
    job = LadderRequirements(questions, 0.05, seen)
    assert (choose_ladder(n, job, enough)[0] <= enough) == (choose_ladder(n, job)[0] <= enough)


@given(st.integers(1, LARGEST))
def test_searches_find_every_border(border):
    assert smallest_sufficient(lambda x: x >= border) == border
    assert largest_sufficient(lambda x: x <= border) == border


def test_searches_end():
    assert smallest_sufficient(lambda _: False) is None
    assert smallest_sufficient(lambda _: True) == 1
    assert largest_sufficient(lambda _: False) == 0
    assert largest_sufficient(lambda _: True) == LARGEST
    assert largest_sufficient(lambda x: 3 <= x <= 50, first=3) == 50
    assert largest_sufficient(lambda x: x == 3, first=3) == 3
    assert largest_sufficient(lambda x: x == 3, first=4) == 0
