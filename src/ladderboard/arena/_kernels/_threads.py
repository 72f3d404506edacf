"""Runs the majority attack on several threads."""

from __future__ import annotations

import hashlib
import math
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.arena._kernels import _majority as kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CHUNK = 2**17  # words in a chunk, about a tenth of a millisecond
_STEP = 64
_PIECE = 2**28  # words at most between checks for Ctrl-C, part of a second
_FEW = 512  # rows that a piece should have at least
_ALONE = 2**18  # words at most for which one thread is fastest


class MajorityAttackRun:
    """One setting of the attack. Rows are drawn in chunks, each with its own random stream.

    A chunk depends only on the setting, the repetition and its number, and votes are integers, so
    their sum does not depend on the order in which threads finish.
    """

    def __init__(self, n: int, k: int, sigma: float, seed: int) -> None:
        self.words = 16 * -(-n // 1024)
        self.levels = 4 + (-(-k // 16)).bit_length()
        # Chunks of about equal size, in steps of the 64 rows that the kernel does together.
        rows = _STEP * -(-k // (_STEP * max(1, k * self.words // _CHUNK)))
        self.chunks = -(-k // rows)
        name = f"ladderboard majority_attack {seed} {n} {k}"
        digest = hashlib.blake2b(name.encode(), digest_size=24).digest()
        key = np.frombuffer(digest, "<u8").astype(np.uint64)
        self.setting = kernel.KernelSetting(key, n, k, rows, *_thresholds(n, sigma))

    def errors(self, first: int, repetitions: int, workers: int) -> NDArray[np.float64]:
        """Return the errors of some repetitions, splitting their chunks over threads."""
        job = _SharedRun(self, first, np.empty(repetitions))
        work = repetitions * self.setting.k * self.words
        pieces = -(-work // _PIECE)
        if work <= _ALONE:
            workers = 1
        if workers > 1:
            # A few for each thread, so that a slow core does not delay the others; but not so
            # small that fetching and adding counters dominates.
            pieces = max(pieces, min(4 * workers, repetitions * self.setting.k // _FEW), workers)
        total = repetitions * self.chunks
        pieces = min(pieces, total)
        cuts = [total * piece // pieces for piece in range(pieces + 1)]
        if workers == 1:
            for start, stop in pairwise(cuts):
                job.run_chunks(start, stop)
            return job.errors
        pool = ThreadPoolExecutor(min(workers, pieces), thread_name_prefix="majority_attack")
        try:
            tasks = [pool.submit(job.run_chunks, start, stop) for start, stop in pairwise(cuts)]
            for task in wait(tasks, return_when=FIRST_EXCEPTION).done:
                task.result()
        finally:  # on Ctrl-C too: drop what has not started
            pool.shutdown(cancel_futures=True)
        return job.errors

    def new_planes(self) -> NDArray[np.uint64]:
        """Return zero votes: one plane of packed bits for each binary digit."""
        return np.zeros((self.levels, self.words), np.uint64)


@dataclass
class _SharedRun:
    """Some repetitions of a run, and the votes of those that several pieces share."""

    run: MajorityAttackRun
    first: int
    errors: NDArray[np.float64]
    votes: dict[int, tuple[NDArray[np.uint64], int]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def run_chunks(self, start: int, stop: int) -> None:
        """Run the chunks from ``start`` to ``stop``, counted over all repetitions."""
        run = self.run
        while start < stop:
            repetition, chunk = divmod(start, run.chunks)
            complete = (stop - start) // run.chunks
            if chunk == 0 and complete:
                errors = self.errors[repetition : repetition + complete]
                kernel.run_repetitions(
                    run.setting, self.first + repetition, (0, run.chunks), run.new_planes(), errors
                )
                start += complete * run.chunks
            else:
                last = min(run.chunks, chunk + stop - start)
                self._run_part(repetition, chunk, last)
                start += last - chunk

    def _run_part(self, repetition: int, chunk: int, last: int) -> None:
        """Run some chunks of one repetition; the thread that completes it computes the error."""
        run = self.run
        number, votes = self.first + repetition, run.new_planes()
        kernel.run_repetitions(run.setting, number, (chunk, last), votes, np.empty(1))
        with self.lock:
            others, missing = self.votes.pop(repetition, (None, run.chunks))
            if others is not None:
                kernel.add_counts(votes, others)
            missing -= last - chunk
            if missing:
                self.votes[repetition] = votes, missing
                return
        self.errors[repetition] = kernel.vote_error(run.setting, number, votes)


@lru_cache(maxsize=16)
def _thresholds(n: int, sigma: float) -> tuple[int, NDArray[np.uint64]]:
    """Return (low, table): a row of c agreements stays if 53 random bits are below its entry.

    That is the comparison (2c - n)/n + sigma z > 0 with z made by inversion. The table spans ten
    standard deviations of c and is clamped there; a row beyond comes once in 10^22.
    """
    reach = int(5.0 * math.sqrt(n)) + 1
    low, high = max(0, n // 2 - reach), min(n, n // 2 + reach)
    excess = 2 * np.arange(low, high + 1) - n
    if sigma == 0.0:
        probability: Any = excess > 0
    else:
        # Divided one by one: n sigma may underflow to 0/0.
        with np.errstate(over="ignore"):
            scaled = excess / (n * math.sqrt(2.0)) / sigma
        probability = [0.5 * math.erfc(-x) for x in scaled]  # erfc(-x) is 2 Phi(x sqrt 2)
    return low, np.ldexp(np.asarray(probability, float), 53).astype(np.uint64)
