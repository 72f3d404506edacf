"""The majority attack on packed words.

A *word* is 64 columns of one row, a *tile* is 16 words wide and 16 rows high, stored row by row in
256 words. All inner loops run over the 16 words of a tile at constant distances, which is what
lets LLVM turn them into vector instructions without checks for overlap. A *chunk* is a run of rows
with its own random streams; a *block* is 16 rows of it.

``arena/_majority.py`` shows that the distribution is that of the paper's procedure.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ladderboard.arena._kernels._compiled import compiled, inlined, popcount

Words = NDArray[np.uint64]

_WIDE = 16  # words in a row of a tile; also the rows of a tile and the lanes of the generator
_TILE = 256
_BASE = 64  # counters below 16: four planes of 16 words
_WARM = 18  # rounds that mix a fresh state
_NARROW = 128  # tiles in a row that is stored: 16 rows are then 256 kB, which most L2 caches hold
_DEEP = 4  # blocks of wide rows that are processed together
_COINS = 1 << 56  # a chunk number that no rows have, for the coins that break ties
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


class KernelSetting(NamedTuple):
    """What all repetitions of a run have in common."""

    key: Words  # three words made from the seed
    n: int
    k: int
    rows: int  # rows in a chunk, a multiple of 64; the last chunk ends at row k
    low: int  # a row of ``low + i`` agreements stays if 53 random bits are below ``table[i]``
    table: Words


@inlined
def _splitmix64(word: Any) -> Any:
    """The finaliser of SplitMix64: a bijection that spreads every bit."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@inlined
def _seed_lanes(key: Words, repetition: int, chunk: int, state: Words) -> None:
    """Start 16 lanes of SFC64, each at a different state.

    For one key the map from (repetition, chunk, lane) to (b, c) is injective, and the step of SFC64
    is a bijection that advances a counter which all lanes start at 1. So no two streams ever
    overlap: at equal counters their states differ because they differed at the start.
    """
    for lane in range(_WIDE):
        state[lane] = key[0]
        state[_WIDE + lane] = _splitmix64(np.uint64(repetition)) ^ key[1]
        state[2 * _WIDE + lane] = _splitmix64(np.uint64(chunk * _WIDE + lane)) ^ key[2]
        state[3 * _WIDE + lane] = _ONE
    idle = np.empty(_WIDE, np.uint64)
    for _ in range(_WARM):
        _draw(state, idle)


@inlined
def _draw(state: Words, out: Words) -> None:
    """Draw one word from each lane."""
    for j in range(_WIDE):
        a, b, c, count = state[j], state[16 + j], state[32 + j], state[48 + j]
        word = a + b + count
        state[j] = b ^ (b >> np.uint64(11))
        state[16 + j] = c + (c << np.uint64(3))
        state[32 + j] = ((c << np.uint64(24)) | (c >> np.uint64(40))) + word
        state[48 + j] = count + _ONE
        out[j] = word


@inlined
def _draw_tile(state: Words, tile: Words) -> None:
    """Draw 16 words from each lane; the state stays in registers meanwhile."""
    for j in range(_WIDE):
        a, b, c, count = state[j], state[16 + j], state[32 + j], state[48 + j]
        for r in range(16):
            word = a + b + count
            count += _ONE
            a = b ^ (b >> np.uint64(11))
            b = c + (c << np.uint64(3))
            c = ((c << np.uint64(24)) | (c >> np.uint64(40))) + word
            tile[r * 16 + j] = word
        state[j], state[16 + j], state[32 + j], state[48 + j] = a, b, c, count


@inlined
def _count_rows(tile: Words, agreements: Words) -> None:
    """Add the set bits of each row of a tile to its count."""
    for r in range(16):
        total = _ZERO
        for j in range(16):
            total += popcount(tile[r * 16 + j])
        agreements[r] += total


@inlined
def _full_adder(a: Any, b: Any, c: Any) -> Any:
    """A full adder for 64 columns at once: the sum and the carry of three bits."""
    either = a ^ b
    return either ^ c, (a & b) | (either & c)


@inlined
def _add_rows(tile: Words, flips: Words, counters: Words, carry: Words) -> None:
    """Add 16 rows, flipped as decided, to the counters below 16; carry the sixteens.

    The order of additions is that of Harley and Seal: 15 full adders for 16 rows.
    """
    f0, f1, f2, f3, f4, f5, f6, f7 = flips[:8]
    f8, f9, f10, f11, f12, f13, f14, f15 = flips[8:16]
    for j in range(16):
        one, two, four, eight = counters[j], counters[16 + j], counters[32 + j], counters[48 + j]
        one, two_a = _full_adder(one, tile[j] ^ f0, tile[16 + j] ^ f1)
        one, two_b = _full_adder(one, tile[32 + j] ^ f2, tile[48 + j] ^ f3)
        two, four_a = _full_adder(two, two_a, two_b)
        one, two_a = _full_adder(one, tile[64 + j] ^ f4, tile[80 + j] ^ f5)
        one, two_b = _full_adder(one, tile[96 + j] ^ f6, tile[112 + j] ^ f7)
        two, four_b = _full_adder(two, two_a, two_b)
        four, eight_a = _full_adder(four, four_a, four_b)
        one, two_a = _full_adder(one, tile[128 + j] ^ f8, tile[144 + j] ^ f9)
        one, two_b = _full_adder(one, tile[160 + j] ^ f10, tile[176 + j] ^ f11)
        two, four_a = _full_adder(two, two_a, two_b)
        one, two_a = _full_adder(one, tile[192 + j] ^ f12, tile[208 + j] ^ f13)
        one, two_b = _full_adder(one, tile[224 + j] ^ f14, tile[240 + j] ^ f15)
        two, four_b = _full_adder(two, two_a, two_b)
        four, eight_b = _full_adder(four, four_a, four_b)
        eight, carry[j] = _full_adder(eight, eight_a, eight_b)
        counters[j], counters[16 + j], counters[32 + j], counters[48 + j] = one, two, four, eight


@inlined
def _carry_up(carry: Words, counters: Words, block: int) -> None:
    """Add a block's sixteens to the planes above.

    Plane l waits for two carries and adds both in one full adder, so that all planes together cost
    as much as one more. A set bit of the block's number means that a carry is waiting, as in an
    odometer.
    """
    start = _BASE
    while block & 1:
        pair = counters[start : start + 32]
        for j in range(16):
            pair[j], carry[j] = _full_adder(pair[j], pair[16 + j], carry[j])
        block >>= 1
        start += 32
    waiting = counters[start + 16 : start + 32]
    for j in range(16):
        waiting[j] = carry[j]


@inlined
def _add_counters(counters: Words, blocks: int, first: int, planes: Words) -> None:
    """Add the counters of a tile, then the carries that still wait, to the planes."""
    carry, late_carry = np.zeros(16, np.uint64), np.zeros(16, np.uint64)
    for level in range(planes.shape[0]):
        start = 16 * level if level < 4 else _BASE + 32 * (level - 4)
        # Whether a carry waits here, as in _carry_up; below 16 none ever does.
        late = _ALL if level >= 4 and (blocks >> (level - 4)) & 1 else _ZERO
        digits = counters[start : start + 32]
        plane = planes[level, first : first + 16]
        for j in range(16):
            plane[j], carry[j] = _full_adder(plane[j], digits[j], carry[j])
            plane[j], late_carry[j] = _full_adder(plane[j], digits[16 + j] & late, late_carry[j])


@compiled
def add_counts(planes: Words, other_planes: Words) -> None:
    """Add counts to counts, in place."""
    carry = np.zeros(planes.shape[1], np.uint64)
    for level in range(planes.shape[0]):
        into, other = planes[level], other_planes[level]
        for j in range(into.size):
            into[j], carry[j] = _full_adder(into[j], other[j], carry[j])


@inlined
def _column_mask(n: int, tile: int) -> Any:
    """Return a mask of the bits in a tile's row that are columns."""
    mask = np.zeros(_WIDE, np.uint64)
    for j in range(_WIDE):
        left = n - 64 * (tile * _WIDE + j)
        if left >= 64:
            mask[j] = _ALL
        elif left > 0:
            mask[j] = (_ONE << np.uint64(left)) - _ONE
    return mask


@inlined
def _count_agreements(
    state: Words, mask: Words, tiles: int, buffer: Words, agreements: Words
) -> None:
    """Draw rows, one for each count, and count the agreements of each."""
    for r in range(agreements.size):
        agreements[r] = _ZERO
    keep = buffer.size > _TILE
    for t in range(tiles):
        tile = buffer[t * _TILE : (t + 1) * _TILE] if keep else buffer
        for b in range(agreements.size // 16):
            _draw_tile(state, tile)
            if t == tiles - 1:
                for r in range(16):
                    for j in range(16):
                        tile[r * 16 + j] &= mask[j]
            _count_rows(tile, agreements[16 * b : 16 * b + 16])


@inlined
def _clear_rows(tile: Words, flips: Words, left: int) -> None:
    """Clear the votes of rows past the last one."""
    for r in range(left, 16):
        flips[r] = _ZERO
    for index in range(16 * left, _TILE):
        tile[index] = _ZERO


@inlined
def _decide_flips(setting: KernelSetting, luck: Words, agreements: Words, flips: Words) -> None:
    """Decide from the noisy answers which rows to flip: all bits of ``flips`` are set for those."""
    for r in range(luck.size):
        index = int(agreements[r]) - setting.low
        index = min(max(index, 0), setting.table.size - 1)
        flips[r] = _ZERO if (luck[r] >> np.uint64(11)) < setting.table[index] else _ALL


@inlined
def _count_votes(setting: KernelSetting, repetition: int, chunks: Any, planes: Words) -> None:
    """Draw the rows of the chunks [first, last), flip them as answered, add their votes.

    A row must be counted before it can be flipped. Narrow rows are stored meanwhile, one block at a
    time. Wide ones, which do not fit the caches, are drawn a second time from the same state, four
    blocks at a time so that their counters are fetched once for 64 rows.
    """
    tiles = planes.shape[1] // _WIDE
    stride = _BASE + 32 * (planes.shape[0] - 4)
    wide = tiles > _NARROW
    deep = _DEEP if wide else 1
    buffer = np.empty(_TILE if wide else tiles * _TILE, np.uint64)
    counters = np.zeros(tiles * stride, np.uint64)
    state, again, carry = np.empty(64, np.uint64), np.empty(64, np.uint64), np.empty(16, np.uint64)
    luck, flips = np.empty(16 * deep, np.uint64), np.empty(16 * deep, np.uint64)
    agreements = np.empty(16 * deep, np.uint64)
    mask = _column_mask(setting.n, tiles - 1)
    done = 0
    for chunk in range(chunks[0], chunks[1]):
        _seed_lanes(setting.key, repetition, chunk, state)
        end = min(setting.k, (chunk + 1) * setting.rows)
        for row in range(chunk * setting.rows, end, 16 * deep):
            blocks = min(deep, (end - row + 15) // 16)
            for b in range(blocks):
                _draw(state, luck[16 * b : 16 * b + 16])
            for j in range(64):
                again[j] = state[j]
            _count_agreements(state, mask, tiles, buffer, agreements[: 16 * blocks])
            _decide_flips(setting, luck, agreements, flips)
            for t in range(tiles):
                tile_counters = counters[t * stride : (t + 1) * stride]
                for b in range(blocks):
                    tile = buffer if wide else buffer[t * _TILE : (t + 1) * _TILE]
                    if wide:
                        _draw_tile(again, tile)
                    if row + 16 * b + 16 > end:
                        _clear_rows(tile, flips[16 * b : 16 * b + 16], end - row - 16 * b)
                    _add_rows(tile, flips[16 * b : 16 * b + 16], tile_counters, carry)
                    _carry_up(carry, tile_counters, done + b)
            done += blocks
    for t in range(tiles):
        _add_counters(counters[t * stride : (t + 1) * stride], done, t * _WIDE, planes)


@compiled
def vote_error(setting: KernelSetting, repetition: int, planes: Words) -> float:
    """Return the share of columns that the vote gets wrong; a tie is a fair coin."""
    state, coins = np.empty(4 * _WIDE, np.uint64), np.empty(_WIDE, np.uint64)
    _seed_lanes(setting.key, repetition, _COINS, state)
    half = (setting.k + 1) // 2  # wrong below it; for even k a coin at it
    wrong = _ZERO
    for tile in range(planes.shape[1] // _WIDE):
        _draw(state, coins)
        mask = _column_mask(setting.n, tile)
        for j in range(_WIDE):
            below, level_with = _ZERO, _ALL
            for level in range(planes.shape[0] - 1, -1, -1):
                plane = planes[level, tile * _WIDE + j]
                if (half >> level) & 1:
                    below |= level_with & ~plane
                    level_with &= plane
                else:
                    level_with &= ~plane
            if setting.k % 2 == 0:
                below |= level_with & coins[j]
            wrong += popcount(below & mask[j])
    return np.float64(wrong) / setting.n


@compiled
def run_repetitions(
    setting: KernelSetting, first: int, chunks: Any, planes: Words, errors: NDArray[np.float64]
) -> None:
    """Run repetitions from number ``first`` on, one for each element of ``errors``.

    ``chunks`` is (0, number of chunks), or a part of that for a single repetition. In that case the
    votes stay in ``planes``, to be added to others, and the error is meaningless.
    """
    for index in range(errors.size):
        planes.fill(_ZERO)
        _count_votes(setting, first + index, chunks, planes)
        errors[index] = vote_error(setting, first + index, planes)
