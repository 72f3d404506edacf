"""Computing certificates: an interval for the best true risk so far, computed from what is public.

Proofs: docs/explanation/certificates.md.

*More questions allowed never shrink a certificate*, all else being given: C(k, b+1), ln k and the
noise quantiles grow with k, and so do the ranges over which maxima are taken.

*More examples never widen it.* Where prices do not depend on n, nats/n falls. For `Exact`, (t-1)
ln(n+1)/n falls. For the parameter-free Ladder let G(b) = A(b) + b ln(n+1) - ln b! with A(b) = ln
C(k, b+1) + ln((b+1)(b+2)) + ln(2/β). (G/n)' ≤ 0 if b n/(n+1) ≤ G(b). Let b ≥ 1 be where G is
largest among 0, …, B. As G is concave, exp(G(j) - G(j-1)) = ρ_j ≥ 1 for j ≤ b, where ρ_j =
(k-j)/(j+1) · (n+1)/j · (j+2)/j. Then ρ_j ≥ ρ_j/ρ_b ≥ b/j, so G(b) = G(0) + Σ ln ρ_j ≥ G(0) + b ln
b - ln b! ≥ G(0) + b - ½ ln(2πb) - 1/(12b) > b, as G(0) > ln(4k) and k > b. The other cases go the
same way: with several ladders m(n+1) takes the place of n+1, and b ln(n+1)/n falls; given rounds,
b ≤ n, both prices that are mixed are at least b (Stirling again, and Σ ln s_j ≥ ln b!), and both
grow as fast, by b/(n+1), so their mixture over n falls. The sample part, 1/√n, falls too. ∎

Tests check it on random boards, all mechanisms, all forms.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ladderboard import _settings
from ladderboard._formatting import format_confidence
from ladderboard.bounds._certificate import AS_PRINTED, NO_THEOREM, Certificate
from ladderboard.bounds._counting import ChangeHistory, TranscriptWeights
from ladderboard.bounds._kl import (
    binomial_lower,
    binomial_upper,
    kl_lower,
    noisy_binomial_upper,
    variance_upper,
)
from ladderboard.bounds._paper import paper
from ladderboard.errors import InvalidSetting, InvalidState
from ladderboard.mechanisms import (
    MAX_MAGNITUDE,
    UNITS,
    Mechanism,
    Setup,
    declared_transcript,
    why_uncounted,
)

if TYPE_CHECKING:
    from ladderboard.bounds._paper import PaperBound
    from ladderboard.mechanisms import (
        ReleaseDeviation,
        ReplayedChanges,
        Transcript,
        VisibleChange,
    )

PAPER = (
    "This is the paper's bound with the constants of its proof, taken as printed: its failure "
    "probability is beta only up to a constant, and the privacy lemma it rests on does not follow "
    "with the stated noise (the documentation's errata, 5)."
)
_WHEN = (
    "With confidence {} over the holdout and the tape, this holds at every time at "
    "once, for certificates of this form on this board."
)
_SAMPLE = (
    "The labels are an independent sample, and models see the holdout only through what the "
    "mechanism says: no other output, and nothing that the owner does in public, depends on the "
    "labels."
)
_INPUTS = (
    "If the test inputs are public, R_D is the input-conditional risk, the mean over the holdout's "
    "inputs of the expected loss, with labels independent given inputs; if labels are a function "
    "of the inputs this says nothing about new data."
)
CORRECTED = (
    "Labels were corrected: each new label depends on its own example, its old label and what is "
    "public, and on no other label."
)


@lru_cache(maxsize=256)
def assumption_sentences(
    beta: float | None, *, ladders: int, private: bool, noisy: bool, closed: bool, rounds: bool
) -> tuple[str, ...]:
    """Return the assumptions of a certificate; beta is None if it holds only up to a constant."""
    sentences = [] if beta is None else [_WHEN.format(format_confidence(beta))]
    sentences += [_SAMPLE, _INPUTS]
    if rounds:
        sentences.append(
            "It was decided beforehand to use the rounds of changes, not only their count."
        )
    if noisy:
        sentences.append(
            "Noise is drawn from one tape, independent of the data, and never redrawn."
        )
    if private:
        sentences.append(
            f"No team sees anything of the releases of another, the board's best included; the "
            f"failure probability is shared among {ladders} teams, and this is about one of them."
        )
    elif ladders > 1:
        sentences.append(
            f"All visible changes on all {ladders} ladders count together, and questions are "
            "numbered over all ladders: teams may see each other's releases, and may collude."
        )
    if closed:
        sentences.append(
            "The exact risk on the holdout was used. It depends on the labels, so this may be "
            "published only when no question will follow."
        )
    return tuple(sentences)


_LARGEST = 10**15
_LEAST_BETA = 1e-100
_LAST_BITS = 2.0**-50  # a few last bits of a double
_CELL_TOLERANCE = 1e-6  # how far, in cells, a value may be from the one that is meant


def certificate(  # noqa: PLR0917 - the public contract
    n: int,
    questions: int | None,
    changes: Any,
    mechanism: Mechanism,
    beta: float = 0.05,
    released: float | None = None,
    *,
    asked: int | None = None,
    ladders: int | None = 1,
    opened: int | None = None,
    amendable: bool = False,
    private: bool = False,
    risk: float | None = None,
    risk_range: tuple[float, float] = (0, 1),
    zero_one: bool = True,
    proven: bool = False,
) -> Certificate:
    """Return an interval for the best true risk so far, from what is public.

    Parameters
    ----------
    n
        Examples in the holdout.
    questions
        How many questions are allowed; None if not known beforehand (then give ``asked``).
    changes
        How often the board visibly changed; or the numbers of the questions at which it did; or
        None, for the worst case before the data. With several ladders also a mapping from each
        ladder to either, with questions numbered over all ladders. Or a list of ``VisibleChange``,
        with the released values: best for a ``GrowingLadder``, and needed with ``scale="model"``.
    mechanism
        The mechanism that answered.
    beta
        The probability with which the certificate may be false.
    released
        The current released value; gives the tighter forms, and an interval of risks.
    asked
        How many questions were asked so far; all of them if left out.
    ladders
        How many ladders (teams) there are; None if not known beforehand (then give ``opened``).
    opened
        How many ladders were started so far. If ``ladders`` is given too, any above it stand for
        answers that were lost when an old copy was restored.
    amendable
        Whether ``questions`` may be changed later: half of the weight then goes to any number of
        questions, and ``asked`` may be more than ``questions``, which is the number at the start.
    private
        Whether teams see nothing of each other's releases. All other arguments are then about one
        team.
    risk
        The exact least risk on the holdout. It depends on the labels: only at close.
    risk_range
        The interval in which losses and risks lie.
    zero_one
        Whether every loss is 0 or 1 and every example counts the same, without weights and groups.
        Then risks have binomial tails; otherwise the kl form is used, which is a little wider, and
        ``Exact`` and ``ParameterFreeLadder`` promise nothing.
    proven
        Whether every change comes with one bit more: whether it was proven to be an improvement.

    Examples
    --------
    >>> import ladderboard as lb
    >>> ladder = lb.Ladder(step=0.01, grid=0.005)
    >>> found = certificate(n=10_000, questions=1_000, changes=5, mechanism=ladder)
    >>> round(found.half_width, 4)
    0.0606
    >>> found = certificate(10_000, 1_000, [1, 3, 10, 30, 100], ladder, released=0.05)
    >>> print(f"[{found.low:.3f}, {found.high:.3f}]")
    [0.024, 0.074]
    """
    setup = Setup(
        read_count("n", n), *_settings.interval("risk_range", risk_range, within=MAX_MAGNITUDE)
    )
    beta = read_beta(beta)
    amendable = _read_bool("amendable", amendable)
    questions, asked = _read_asked(questions, asked, amendable=amendable)
    ladders, weight = _read_ladders(ladders, opened, private=private)
    private = _read_bool("private", private)
    if not isinstance(mechanism, Mechanism):
        raise InvalidSetting(
            "mechanism must be a Mechanism, such as lb.Ladder(step=0.01); "
            f"got {_settings.safe_repr(mechanism)}."
        )
    mechanism.check(setup)
    history = ChangeHistory.read(changes, asked)
    # A release may lie outside the range of risks: half a cell on a grid, further with noise.
    if released is not None:
        released = _settings.number("released", released)
    if risk is not None:
        risk = _settings.number("risk", risk, at_least=setup.low, at_most=setup.high)
    return _certify(
        _Arguments(setup, questions, history, mechanism, beta, ladders, weight, zero_one, proven),
        released,
        risk,
        amendable=amendable,
        private=private,
    )


def certificate_of_record(
    n: int,
    questions: int,
    changes: int | tuple[VisibleChange, ...],
    mechanism: Mechanism,
    beta: float,
    *,
    released: float | None,
    asked: int,
    ladders: int | None,
    opened: int,
    zero_one: bool,
    proven: bool = False,
    effective_n: int | None = None,
) -> Certificate:
    """Return a certificate from the record of a ledger, whose budget may be amended.

    The numbers were checked when they were recorded, so they are not read again. ``proven`` says
    that every change comes with a bit: whether it was proven to be an improvement. ``effective_n``
    is given for a statistic that is not a mean: as many examples a deviation of it is worth, in
    Hoeffding's form; ``released`` must be None then.
    """
    history = (
        ChangeHistory(asked, changes)
        if isinstance(changes, int)
        else ChangeHistory.from_changes(changes, asked)
    )
    counted, weight = _count_ladders(ladders, opened)
    arguments = _Arguments(
        Setup(n, 0, 1),
        questions,
        history,
        mechanism,
        beta,
        counted,
        weight,
        zero_one,
        proven,
        effective_n,
    )
    return _certify(arguments, released, None, amendable=True, private=False)


class _Arguments(NamedTuple):
    """What a certificate is computed from; ``weight`` is the share of beta for the ladders."""

    setup: Setup
    questions: int | None
    history: ChangeHistory
    mechanism: Mechanism
    beta: float
    ladders: int
    weight: float
    zero_one: bool
    proven: bool = False
    effective_n: int | None = None


def _certify(
    arguments: _Arguments,
    released: float | None,
    risk: float | None,
    *,
    amendable: bool,
    private: bool,
) -> Certificate:
    setup, questions, history, mechanism, beta, ladders, weight, zero_one, proven, worth = arguments
    asked = history.asked
    transcript = declared_transcript(mechanism, setup, zero_one=zero_one)
    if transcript is None and worth is not None:
        return vacuous_certificate(
            f"{mechanism.name} releases values that cannot be counted.", beta
        )
    if transcript is None:
        return uncounted_certificate(
            mechanism,
            setup,
            None if questions is None or asked > questions else questions,
            beta * weight,
            ladders=ladders,
            released=released,
            risk=risk,
        )
    shared_ladders = 1 if private else ladders
    _check_ladders(history, shared_ladders, private=private)
    _check_history(transcript, history, setup, shared_ladders, released)
    total = min(
        asked if history.count is None else history.count, _max_changes(transcript, shared_ladders)
    )
    largest_count = max(history.counts) if history.counts else total
    deviation = transcript.deviation_after(released, largest_count, total)
    _check_close(transcript, deviation, setup, released, risk)
    # Private teams have a certificate each, and share beta.
    share = beta * weight / (ladders if private else 1)
    noisy, noise_share = deviation.noisy, 0.0
    if noisy:
        share /= 2  # half to the noise, half to the counting
        # How many draws there are depends on the number of ladders only if noise stands on each.
        noise_share = share if private or deviation.standing else beta / 2
    weights = TranscriptWeights(questions, share, shared_ladders, amendable, proven)
    replayed, shown = _replay(transcript, history, shared_ladders), None
    variance, noise = math.inf, None
    if replayed is None:
        sample = deviation.interval(
            asked if questions is None else questions,
            noise_share,
            ladders=shared_ladders,
            anytime=questions is None,
            asked=asked if amendable else None,
        )
    else:
        shown = _changes_shown(history, released)
        if not shown and released not in {None, setup.high}:
            raise InvalidSetting("released must be the value of one of the changes.")
        sample = (
            -max((replayed.above[j] for j in shown), default=0.0),
            replayed.reach if released is None else released - replayed.floor,
        )
        variance = max((replayed.variances[j] for j in shown), default=math.inf)
        if len(shown) == 1 and risk is None:
            noise = replayed.noises[shown[0]], replayed.cut
    nats = weights.nats(transcript, history, replayed, shown)
    differences = released is None and risk is None
    known = transcript.difference_range(setup) if differences else (setup.low, setup.high)
    # The least risk at the close may be that of any model; the value shown is the last changer's.
    above, variance = (nats.every, math.inf) if risk is not None else (nats.changer, variance)
    bound = _MeanBound(
        setup if worth is None else setup._replace(n=worth),
        zero_one and (setup.low, setup.high) == (0, 1),
    )
    low, high, parts = bound.interval(
        (nats.every, above), sample, released, risk, variance=variance, noise=noise
    )
    if (history.count == 0 or shown == []) and risk is None and not transcript.every_question:
        high = setup.high - (setup.high if differences else 0.0)  # R_0 is the worst risk there is
    return Certificate(
        low=max(low, known[0]),
        high=min(high, known[1]),
        generalisation=parts,
        sample=sample,
        beta=beta,
        nats=nats.every,
        differences=differences,
        span=(setup.low, setup.high),
        known=known,
        theorem=_theorem(
            transcript,
            history,
            anytime=questions is None or amendable,
            form="Hoeffding" if differences else bound.form(variance),
        ),
        assumptions=(
            *assumption_sentences(
                beta,
                ladders=ladders,
                private=private,
                noisy=noisy,
                closed=risk is not None,
                rounds=history.rounds is not None and not transcript.every_question,
            ),
            *transcript.assumptions,
        ),
        changer_nats=None if risk is not None else nats.changer,
        released=released,
    )


def read_count(name: str, value: Any) -> int:
    """Return a number of examples, questions or ladders."""
    return _settings.integer(name, value, at_least=1, at_most=_LARGEST)


def read_beta(value: Any) -> float:
    """Return a failure probability."""
    return _settings.number("beta", value, at_least=_LEAST_BETA, below=1)


def _read_bool(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise InvalidSetting(f"{name} must be True or False; got {_settings.safe_repr(value)}.")
    return bool(value)


def _read_asked(questions: Any, asked: Any, *, amendable: bool) -> tuple[int | None, int]:
    if questions is None:
        if amendable:
            raise InvalidSetting("amendable=True needs a number of questions; got None.")
        if asked is None:
            raise InvalidSetting(
                "Without questions, asked must be the number of questions so far; try asked=100."
            )
        return None, read_count("asked", asked)
    questions = read_count("questions", questions)
    if asked is None:
        return questions, questions
    if amendable:
        return questions, read_count("asked", asked)
    return questions, _settings.integer("asked", asked, at_least=1, at_most=questions)


def _read_ladders(ladders: Any, opened: Any, *, private: bool) -> tuple[int, float]:
    """Return the number of ladders to count, and the share of beta for that number."""
    if ladders is not None:
        ladders = read_count("ladders", ladders)
        if opened is None:
            return ladders, 1.0
    if private:
        raise InvalidSetting("With private=True ladders must be known beforehand.")
    if opened is None:
        raise InvalidSetting(
            "Without ladders, opened must be the number of ladders started; try opened=2."
        )
    return _count_ladders(ladders, read_count("opened", opened))


def _count_ladders(ladders: int | None, opened: int) -> tuple[int, float]:
    """Return the number of ladders to count, and the share of beta for that number."""
    known = 1 if ladders is None else ladders
    counted = max(known, opened)
    return counted, _share_for_extra_ladders(counted - known)


def _share_for_extra_ladders(extra: int) -> float:
    """Return the share of beta for this many ladders beyond those known beforehand."""
    return 0.9 if extra == 0 else 0.1 / (extra * (extra + 1))


def _check_ladders(history: ChangeHistory, ladders: int, *, private: bool) -> None:
    """Raise if changes name more ladders than there are."""
    named = 0 if history.counts is None else len(history.counts)
    if named > 1 and private:
        raise InvalidSetting(
            "With private=True changes is about one team: give its own number of changes, or its "
            f"rounds; got a mapping of {named} teams."
        )
    if named > ladders:
        raise InvalidSetting(
            f"changes names {named} ladders and there are {ladders}; give ladders={named}."
        )


def _max_changes(transcript: Transcript, ladders: int) -> int:
    """Return how often all ladders together can change."""
    return ladders * transcript.values.max_changes


def _check_close(
    transcript: Transcript,
    deviation: ReleaseDeviation,
    setup: Setup,
    released: float | None,
    risk: float | None,
) -> None:
    """Raise if the risk and the release contradict each other; with noise they cannot."""
    if released is None or risk is None or deviation.noisy:
        return
    low, high = deviation.interval(1, 0.5)  # without noise the same for all
    spare = _CELL_TOLERANCE * transcript.cell + 1 / UNITS * (setup.high - setup.low)
    if not low - spare <= released - risk <= high + spare:
        raise InvalidSetting(
            f"released - risk must lie in [{low:.4g}, {high:.4g}] for this mechanism; got "
            f"released={_settings.safe_repr(released)} and a risk that does not fit it."
        )


def _check_history(
    transcript: Transcript,
    history: ChangeHistory,
    setup: Setup,
    ladders: int,
    released: float | None,
) -> None:
    """Raise if this mechanism cannot have produced the changes or the released value."""
    if transcript.every_question:
        changes = None
    else:
        changes = history.count
        max_changes = transcript.values.max_changes
        parts = history.counts or ((history.count or 0,) if ladders == 1 else ())
        if any(part > max_changes for part in parts) or (history.count or 0) > _max_changes(
            transcript, ladders
        ):
            raise InvalidSetting(
                f"This mechanism can change at most {max_changes} times on a ladder; "
                f"got {history.count} changes on {ladders}."
            )
    # With several ladders, the number of changes on the lowest one is not known.
    known_changes = changes if ladders == 1 or not changes else min(changes, 1)
    if released is not None and not transcript.can_release(released, setup.high, known_changes):
        raise InvalidSetting(
            "released must be a value that this mechanism can release after these changes: "
            f"a multiple of {transcript.cell:g}"
            + ("" if transcript.every_question else f", or {setup.high:g} before the first change")
            + f"; got {_settings.safe_repr(released)}."
        )


def _replay(transcript: Transcript, history: ChangeHistory, ladders: int) -> ReplayedChanges | None:
    """Return what follows from the values of the changes, if they are given and matter."""
    if history.changes is None:
        return None
    try:
        return transcript.replay(history.changes, ladders)
    except InvalidState as error:
        raise InvalidSetting(f"changes are impossible for this mechanism: {error}.") from None


def _changes_shown(history: ChangeHistory, released: float | None) -> list[int]:
    """Return which changes may have released the value: all if it is not known."""
    changes = history.changes or ()
    return [j for j, change in enumerate(changes) if released in {None, change.value}]


class _MeanBound(NamedTuple):
    """Limits for a true risk from the risk on the holdout, at a price in nats.

    Means of zeros and ones have binomial tails; other losses in a range have the kl form.
    """

    setup: Setup
    zero_one: bool

    def form(self, variance: float) -> str:
        if self.zero_one:
            return "binomial"
        return "variance" if math.isfinite(variance) else "kl"

    def upper(self, q: float, nats: float, variance: float) -> float:
        n = self.setup.n
        if self.zero_one:
            return binomial_upper(n, q, nats)
        return variance_upper(q, variance, nats / n)

    def lower(self, q: float, nats: float) -> float:
        n = self.setup.n
        return binomial_lower(n, q, nats) if self.zero_one else kl_lower(q, nats / n)

    def interval(
        self,
        nats: tuple[float, float],
        sample: tuple[float, float],
        released: float | None,
        risk: float | None,
        *,
        variance: float,
        noise: tuple[float, float] | None,
    ) -> tuple[float, float, tuple[float, float]]:
        """Return the interval and its generalisation part, in the form that the arguments allow.

        ``nats`` are the prices for the lower and for the upper end, ``variance`` limits that of
        the losses that the upper end is about, and ``noise`` are the standard deviation of the
        noise in its released value and where it is cut.
        """
        setup = self.setup
        width = setup.high - setup.low
        if risk is not None:
            span = (risk, risk)
        elif released is not None:
            span = (released - sample[1], released - sample[0])
        else:  # Hoeffding, by Pinsker from the kl form
            below, above = (width * math.sqrt(price / setup.n / 2) for price in nats)
            return -sample[1] - below, -sample[0] + above, (below, above)
        # Scaling to [0, 1] and back rounds, so ends are moved outwards; [0, 1] is not scaled.
        spare = (
            0.0
            if (setup.low, width) == (0, 1)
            else _LAST_BITS * max(abs(setup.low), abs(setup.high))
        )
        lowest, highest = (
            min(max((end - setup.low) / width, 0.0), 1.0)
            for end in (span[0] - spare, span[1] + spare)
        )
        low, high = self.lower(lowest, nats[0]), self.upper(highest, nats[1], variance / width**2)
        if self.zero_one and noise is not None and noise[0]:
            without = max(highest - noise[0] * noise[1], 0.0)
            high = min(high, noisy_binomial_upper(setup.n, without, *noise, nats[1]))
        parts = (width * (lowest - low), width * max(high - highest, 0.0))
        return setup.low + width * low - spare, setup.low + width * high + spare, parts


def _theorem(transcript: Transcript, history: ChangeHistory, *, anytime: bool, form: str) -> str:
    if transcript.every_question:
        prior = "every score counted"
    elif history.count is None:
        prior = "worst case over all numbers of changes"
    elif history.rounds is not None:
        prior = "uniform and record weights, mixed"
    else:
        prior = "uniform weights"
    time = ", any number of questions" if anytime else ""
    return f"counting transcripts ({prior}{time}; {form} form)"


def uncounted_certificate(
    mechanism: Mechanism,
    setup: Setup,
    questions: int | None,
    beta: float,
    *,
    ladders: int,
    released: float | None,
    risk: float | None,
) -> Certificate:
    """Return a certificate without counting: the paper's for ``from_paper``, else a vacuous one."""
    differences = released is None and risk is None
    span = (setup.low, setup.high)
    width = setup.high - setup.low
    bound, why = _paper_bound(mechanism, setup, questions, beta, ladders)
    if bound is None:
        return vacuous_certificate(why, beta, span, differences=differences)
    reach = bound.transfer
    sample_part = 0.0 if risk is not None else bound.bound - reach
    centre = risk if risk is not None else released if released is not None else 0.0
    low, high = centre - reach - sample_part, centre + reach + sample_part
    if not differences:
        low, high = (min(max(end, setup.low), setup.high) for end in (low, high))
    return Certificate(
        low,
        high,
        generalisation=(reach, reach),
        sample=(-sample_part, sample_part),
        beta=beta,
        nats=None,
        differences=differences,
        span=span,
        # Holds for a value within the range of risks; a release may lie outside.
        known=(-width, width) if differences else span,
        theorem=AS_PRINTED,
        assumptions=(
            PAPER,
            *assumption_sentences(
                None,
                ladders=1,
                private=False,
                noisy=True,
                closed=risk is not None,
                rounds=False,
            ),
        ),
    )


def vacuous_certificate(
    why: str, beta: float, span: tuple[float, float] = (0.0, 1.0), *, differences: bool = True
) -> Certificate:
    """Return a certificate that promises nothing; ``why`` is its only assumption."""
    width = span[1] - span[0]
    # A release may be any number, so nothing at all is known about its difference from a risk.
    anything = (-math.inf, math.inf)
    interval = anything if differences else span
    return Certificate(
        *interval,
        generalisation=(width, width),
        sample=anything,
        beta=beta,
        nats=None,
        differences=differences,
        span=span,
        known=interval,
        theorem=NO_THEOREM,
        assumptions=(why,),
    )


def _paper_bound(
    mechanism: Mechanism, setup: Setup, questions: int | None, beta: float, ladders: int
) -> tuple[PaperBound | None, str]:
    """Return the paper's bound if the mechanism is Fig. 1 at Eq. (2) for this n, or why not."""
    origin = mechanism.paper_origin
    if origin is None:
        return None, why_uncounted(mechanism)
    bound = paper(origin.n, origin.questions, origin.beta)
    question_count = "an unknown number of" if questions is None else f"{questions}"
    fails = [
        sentence
        for fits, sentence in (
            (origin.n == setup.n, f"n is {setup.n} and not {origin.n}"),
            (
                questions is not None and questions <= origin.questions,
                f"{question_count} questions are more than {origin.questions}",
            ),
            (beta >= origin.beta, f"beta is {beta:g}, below {origin.beta:g}"),
            (ladders == 1, f"it covers one ladder, not {ladders}"),
            ((setup.low, setup.high) == (0, 1), "risks do not lie in [0, 1]"),
            *((False, sentence) for sentence in bound.conditions),
        )
        if not fits
    ]
    if fails:
        return None, (
            "The paper's theorem does not apply, and without a grid transcripts cannot be "
            f"counted: {'; '.join(fails)}."
        )
    return bound, ""
