"""Check the chain and the tape of a bundle, or the chain of a public ledger, a line an entry.

    python examples/check_bundle.py BUNDLE [--head HASH]

A second verifier, to be read and to be translated: all that it does is said in
docs/reference/ledger.md and docs/reference/tape.md, and it takes nothing but Python's standard
library. It follows the chain, opens the commitments to the labels, the key, every submission and
every secret side, and draws all noise again. Of a growing ladder it checks that every value lies on
the grid that the entries before it decide, of a gate that every verdict follows from its evidence,
and of records whether they are proven better than the one before, for zero-one, absolute, squared
and two-class Brier loss without groups and weights. It does not recompute releases, risks,
standings and finals; `ladderboard verify` does.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import struct
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

STARTS = {b"ladderboard bundle %d\n" % number: number for number in (1, 2)}
UNREADABLE = (ArithmeticError, LookupError, RecursionError, TypeError, ValueError, struct.error)


class Differs(Exception):
    """Something is not as the documents say, or not as it was committed to."""


def need(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Differs(otherwise)


# Canonical form, digests and commitments.


def size(content: Any) -> bytes:
    return struct.pack(">Q", len(content))


def encode(value: Any) -> bytes:
    if value is None or isinstance(value, bool):
        return {None: b"N", True: b"T", False: b"F"}[value]
    if isinstance(value, float):
        need(math.isfinite(value), "a number is not finite")
        return b"D" + struct.pack(">d", value + 0.0)  # -0 + 0 is 0
    if isinstance(value, list):
        return b"L" + size(value) + b"".join(map(encode, value))
    if isinstance(value, dict):  # text sorts by code points, which is the order of its UTF-8
        return b"M" + size(value) + b"".join(encode(k) + encode(value[k]) for k in sorted(value))
    if isinstance(value, str):
        tag, content = b"S", value.encode("utf-8", "surrogatepass")
    else:
        tag, content = (b"B", value) if isinstance(value, bytes) else (b"I", b"%d" % value)
    return tag + size(content) + content


def decode(form: bytes) -> Any:
    value, end = read(form, 0)
    need(end == len(form) and encode(value) == form, "it is not in canonical form")
    return value


def read(form: bytes, position: int) -> tuple[Any, int]:
    """Return the value that begins at a place, and where it ends."""
    tag, position = form[position : position + 1], position + 1
    if tag in {b"N", b"T", b"F"}:
        return {b"N": None, b"T": True, b"F": False}[tag], position
    if tag == b"D":
        return struct.unpack_from(">d", form, position)[0], position + 8
    (length,), position = struct.unpack_from(">Q", form, position), position + 8
    if tag in {b"L", b"M"}:
        items = []
        for _ in range(length * (2 if tag == b"M" else 1)):
            item, position = read(form, position)
            items.append(item)
        return items if tag == b"L" else dict(zip(items[::2], items[1::2], strict=True)), position
    content = form[position : position + length]
    if tag == b"S":
        return content.decode("utf-8", "surrogatepass"), position + length
    return {b"I": int, b"B": bytes}[tag](content), position + length


def digest(domain: str, value: Any) -> bytes:
    return hashlib.sha256(b"ladderboard:1:" + domain.encode() + b"\n" + encode(value)).digest()


def commit(domain: str, content: Any, salt: bytes) -> str:
    return digest(domain, {"salt": salt, "content": content}).hex()


def parts(content: dict[str, Any], *names: str) -> list[Any]:
    need(set(content) == set(names), f"it must be a map of {', '.join(names)}")
    return [content[name] for name in names]


# The tape: the bytes at an address, and the numbers that are made of them.


class Stream:
    def __init__(self, key: bytes, ladder: int, question: int, context: bytes, slot: int) -> None:
        address = struct.pack(">QQ", ladder, question) + hashlib.sha256(context).digest()
        self.key, self.address = key, address + struct.pack(">I", slot)
        self.buffer, self.blocks = b"", 0

    def take(self, count: int) -> bytes:
        while len(self.buffer) < count:
            message = self.address + struct.pack(">I", self.blocks)
            block = hashlib.blake2b(message, key=self.key, person=b"ladderboard.tape").digest()
            self.buffer, self.blocks = self.buffer + block, self.blocks + 1
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def below(self, bound: int) -> int:
        bits = (bound - 1).bit_length()
        while True:
            drawn = int.from_bytes(self.take((bits + 7) // 8), "big") % 2**bits
            if drawn < bound:
                return drawn

    def exp(self, p: int, q: int) -> bool:
        """Return true with probability exp(-p/q)."""
        quotient, rest = divmod(p, q)
        return all(self.exp1(1, 1) for _ in range(quotient)) and self.exp1(rest, q)

    def exp1(self, p: int, q: int) -> bool:
        """As above, for p <= q; nothing is read for p = 0."""
        k = 1
        while p > 0 and self.below(q * k) < p:
            k += 1
        return k % 2 == 1

    def laplace(self, scale: int) -> int:
        while scale:
            low = self.below(scale)
            if not self.exp1(low, scale):
                continue
            high = 0
            while self.exp1(1, 1):
                high += 1
            number, minus = low + scale * high, self.take(1)[0] % 2
            if number or not minus:  # zero has one sign only
                return -number if minus else number
        return 0

    def gaussian(self, sd: int) -> int:
        t = sd + 1
        while sd:
            x = self.laplace(t)
            if self.exp((abs(x) * t - sd**2) ** 2, 2 * sd**2 * t**2):
                return x
        return 0

    def cut_gaussian(self, limit: int) -> int:
        """Return a draw of a million in standard deviation, the first that is within the limit."""
        while True:
            x = self.gaussian(10**6)
            if abs(x) <= limit:
                return x

    def continuous(self, scale: float) -> float:
        return self.laplace(2**53) / 2**53 * scale if scale else 0.0


def units(number: float) -> int:
    return round(number * 10**12)  # the product is a double; halves go to the even number


def mechanism(settings: dict[str, Any], n: int) -> tuple[list[tuple[str, Any]], dict[str, Any]]:
    """Return the law of each slot, and the state before the first question but for its slack."""
    name = settings["mechanism"]
    if name == "growing_ladder":
        # With the scale of a model: the least c with a standard error of at most 2^(c/2) units.
        squared = units(0.5 / n**0.5) ** 2 if settings["scale"] == "model" else 0
        start = {"best": 10**12, "changes": 0, "error_class": max(squared - 1, 0).bit_length()}
        return [("cut_gaussian", round(settings["cut"] * 10**6))] * 2, start
    if name == "shaky_ladder":
        standing = settings["standing_noise"]
        sizes = [settings["compare_noise"], settings["release_noise"]]
        sizes.append(sizes[0] if standing is None else standing)
        need(settings["law"] in {"gaussian", "laplace"}, "its law is unknown")
        laws: list[tuple[str, Any]] = [(settings["law"], units(size)) for size in sizes]
        if printed := settings["law"] == "laplace" and settings["grid"] is None:
            laws = [("continuous", size) for size in sizes]
        return laws, {"best": 1.0 if printed else 10**12, "slack": None}
    if name == "thresholdout":
        start = {"best": None, "slack": None, "used": 0}
        return [("continuous", times * settings["noise"]) for times in (4, 1, 2)], start
    if name == "noisy":
        return [("gaussian", units(settings["sd"]))], {"best": None}
    if name in {"bootstrap_ladder", "parameter_free_ladder"}:
        seeds = [("take", 32), ("take", 32)]
        return seeds if name == "bootstrap_ladder" else [], {"best": 1.0, "losses": None}
    known = {"ladder": 10**12, "one_bit": 10**12, "exact": None, "rounded": None}
    need(name in known, "its mechanism is not known here")
    return [], {"best": known[name]}


class GrowingLadders:
    """The values and changes of all ladders, which decide the grid of the next value."""

    def __init__(self, settings: dict[str, Any], n: int) -> None:
        self.settings, self.n = settings, n
        self.best: list[int] = []  # the value of each ladder, in units
        self.changes: list[int] = []
        self.classes: list[int] = []  # of the standard error, with the scale of a model
        self.nats = 0.0  # the price of all values so far

    def start(self) -> None:
        self.best.append(10**12)
        self.changes.append(0)
        self.classes.append(mechanism(self.settings, self.n)[1]["error_class"])

    def setting(self, name: str) -> int:
        return round(self.settings[name] * 10**6)  # settings are whole millionths

    def standard_error(self, best: int) -> int:
        variance = best * (10**12 - best) if 2 * best < 10**12 else 10**24 // 4
        return math.isqrt(max(variance, 10**24 // self.n) // self.n)

    def growth(self, changes: int) -> int:
        """Return (1 + changes) ** growth in millionths; changes are in millionths, too."""
        quarters = round(4 * self.settings["growth"])
        power = (10**6 + changes) ** quarters * 10 ** (6 * (4 - quarters))
        return math.isqrt(math.isqrt(power))

    def grid(self, ladder: int, standard_error: int) -> tuple[int, int]:
        """Return the distance of two values, and the standard deviation of their noise."""
        changes = self.changes[ladder]
        multiple = self.growth(changes * 10**6)
        others = self.changes[:ladder] + self.changes[ladder + 1 :]
        counted = sum(sorted(others, reverse=True)[: self.settings["accounts"] - 1])
        if counted and self.settings["sharing"]:
            shared = self.growth(changes * 10**6 + counted * self.setting("sharing"))
            multiple = min(shared, multiple * self.setting("sharing_cap") // 10**6)
        if self.settings["cap"] is not None:
            multiple = min(multiple, self.setting("cap"))
        step = self.setting("step") * multiple * standard_error // 10**12
        noise = step * self.setting("release_noise") // 10**6
        wanted = max(step * self.setting("grid") // 10**6, 1)
        power = 10 ** (len(str(wanted)) - 1)
        for factor, product in ((1, 2), (2, 10), (5, 50)):
            if wanted**2 < product * power**2:
                return factor * power, noise
        return 10 * power, noise

    def question(self, entry: dict[str, Any]) -> None:
        ladder, value = entry["ladder"], units(entry["value"])
        need(encode(value / 10**12) == encode(entry["value"]), "its value is not a whole unit")
        if not entry["improved"]:
            need(value == self.best[ladder], "its value changed without an improvement")
            return
        need(0 <= value < self.best[ladder], "its value is not lower than the last")
        error = self.standard_error(self.best[ladder])
        if self.settings["scale"] == "model":  # the model's own, at most 2^(class/2) units
            need(0 <= entry["error_class"] <= 80, "the class of its standard error is impossible")
            error = math.isqrt(1 << entry["error_class"])
        grid, noise = self.grid(ladder, error)
        need(value % grid == 0, "its value is not on the grid of its ladder")
        self.nats += self.price(self.best[ladder], value, grid, noise)
        if self.settings["scale"] == "model":
            jump = abs(entry["error_class"] - self.classes[ladder])
            self.nats += math.log(2 * (jump + 1) * (jump + 2) if jump else 2)
            self.classes[ladder] = entry["error_class"]
        self.best[ladder] = value
        self.changes[ladder] += 1

    def price(self, best: int, value: int, grid: int, noise: int) -> float:
        """Return the nats of a value among all multiples of the grid below the one before."""
        nats, cut = math.log((best - 1) // grid + 1), self.settings["cut"]
        if not noise:
            return nats
        chance = math.erf(min((grid / 2 + 1) / noise, cut) / 2**0.5) / math.erf(cut / 2**0.5)
        if value == 0 or value + grid / 2 >= 10**12:  # all values beyond are rounded to it
            chance = (1 + chance) / 2
        return nats + math.log(min(chance + 1e-6, 1))


# The chain.


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    need(len(dict(pairs)) == len(pairs), "a name comes twice in it")
    return dict(pairs)


NEAR = 1e-6  # nats by which logarithms may differ between machines


def log_pmf(trials: int, k: int, share: float) -> float:
    """Return the logarithm of a binomial probability."""
    return (
        math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1)
        + (k * math.log(share) if k else 0) + ((trials - k) * math.log1p(-share))
    )  # fmt: skip


def log_chance(form: str, differing: int, net: int, share: float) -> float:
    """Return the logarithm of the chance of this many net wins, or its bound, under the null."""
    wins = (differing + net) / 2
    if share < 0 or wins > differing:
        return -math.inf
    lowest = math.floor(differing * share)
    if wins < differing * share + 1 if form == "sign" else wins <= differing * share:
        return 0.0
    if form == "sign":
        lowest = round(wins)
    logs = [log_pmf(differing, k, share) for k in range(lowest, differing + 1)]
    masses = [math.exp(log - logs[0]) for log in logs]
    if form == "sign":
        return logs[0] + math.log(math.fsum(masses))
    best, tail, excess = math.inf, 0.0, 0.0
    for k in range(differing, lowest - 1, -1):  # E(Bin - k)+ is the sum of all tails above k
        if k < wins:
            best = min(best, max(excess, 1e-290) / (wins - k))
        tail += masses[k - lowest]
        excess += tail
    return logs[0] + math.log(best)


class Gate:
    """The looks of a gate: docs/explanation/gate.md says how prices and verdicts are made."""

    def __init__(self, opening: dict[str, Any]) -> None:
        self.n, self.rules = opening["n"], opening["rules"]
        self.gate = self.rules["gate"]
        self.looks, self.charged, self.incumbent, self.options = 0, 0, 0, list[int]()

    def price(self) -> float:
        """Return the price of the next look, if no guard answers from the same labels."""

        def nats(options: list[int]) -> float:
            total, look, seen = self.rules["questions"], self.looks + self.charged + 1, len(options)
            if total == 1:
                return 0.0
            if not seen:
                first = min(10, total)
                return -math.log(0.4 / total + (0.35 / first if look <= first else 0))
            declared = 1 / math.comb(total, seen + 1)
            anytime = 1 / (look * (look + 1) * math.comb(look - 1, seen))
            weight = 0.125 / (seen * (seen + 1)) * (declared + anytime)
            return sum(map(math.log, options)) - math.log(weight)

        return max(nats(self.options + [3] * lost) for lost in range(self.charged + 1))

    def look(self, entry: dict[str, Any]) -> None:
        margin, differing = entry["margin"], entry["differing"]
        look = self.looks + self.charged + 1
        need(encode(entry["look"]) == encode(look), "it is not the next look")
        need(entry["incumbent"] == self.incumbent > 0, "it names another incumbent")
        counts = self.gate["test"] != "bets" and differing is not None
        certain = counts and margin > 0 and self.n * margin > differing  # whatever the labels are
        options = 1 + (margin > 0 and not certain) + self.gate["worse"]
        need(encode(entry["options"]) == encode(options), "its options are wrong")
        if not self.gate["guard"]:
            need(abs(entry["nats"] - self.price()) < NEAR, "its price is not that of this look")
        self.looks += 1
        if differing is not None and self.gate["test"] != "bets":
            for name, allowed in (("needed", 0.0), ("needed_not_worse", margin)):
                self.check_needed(entry, entry[name], allowed)
        if entry["outcome"] != ("not_worse" if certain else "cannot_tell"):
            self.options.append(options)

    def proves(self, entry: dict[str, Any], net: int, margin: float, near: float) -> bool:
        """Tell whether net wins are enough; ``near`` makes it easier or harder."""
        differing = entry["differing"]
        share = 0.5
        if margin:
            lacking = self.n * margin / differing if differing else math.inf
            share = -1 if lacking > 1 else (1 - lacking) / 2
        beta = self.rules["beta"] / (2 if self.gate["worse"] else 1)
        log = log_chance(self.gate["test"], differing, net, share)
        return log <= math.log(beta) - entry["nats"] + near

    def check_needed(self, entry: dict[str, Any], needed: int | None, margin: float) -> None:
        differing, step = entry["differing"], 2 if self.gate["test"] == "sign" else 1
        too_few = differing if needed is None else needed - step
        if too_few >= -differing:
            need(not self.proves(entry, too_few, margin, -NEAR), "fewer net wins would be enough")
        if needed is not None:
            need(self.proves(entry, needed, margin, NEAR), "more net wins would be needed")

    def check_evidence(self, entry: dict[str, Any], content: dict[str, Any]) -> None:
        names = ("differing", "net", "better", "not_worse", "worse")
        differing, net, *logs = parts(content, *names)
        need(encode(differing) == encode(entry["differing"]), "its number of differences is wrong")
        margin, outcome = entry["margin"], entry["outcome"]
        beta = self.rules["beta"] / (2 if self.gate["worse"] else 1)
        price = entry["nats"] - math.log(beta)
        outcomes = set()
        for near in (-NEAR, NEAR):
            if self.gate["test"] == "bets":
                better, not_worse, worse = (log is not None and log >= price - near for log in logs)
            else:
                better = self.proves(entry, net, 0.0, near)
                not_worse = self.proves(entry, net, margin, near)
                worse = self.gate["worse"] and self.proves(entry, -net, 0.0, near)
            neutral = "not_worse" if not_worse and margin else "cannot_tell"
            outcomes.add("better" if better else "worse" if worse else neutral)
        need(outcome in outcomes, "its verdict does not follow from its evidence")


class Records:
    """The records of all ladders, and whether each is proven better than the one before."""

    def __init__(self, opening: dict[str, Any]) -> None:
        rules = opening["rules"]
        self.budget, self.beta = rules["questions"], rules["beta"]
        self.declared = rules.get("ladders", 1)
        self.asked, self.charged, self.drift = 0, 0, 0.0
        self.rounds: list[float] = []  # the price of every round that had a change, with its values
        self.losses: dict[int, list[float] | None] = {}  # those of the last record, by ladder
        self.loss = opening["loss"]
        two = len(self.loss.get("classes") or ()) == 2
        self.binary = two and self.loss["loss"] == "zero_one"
        known = {"zero_one": rules["zero_one"], "absolute": True, "squared": True, "brier": two}
        self.testable = known.get(self.loss["loss"], False) and not rules["weighted"]
        self.pending: tuple[dict[str, Any], float] | None = None
        self.tested = self.untested = 0

    def price(self, values: float, ladders: int) -> float:
        """Return the nats of the next question, and of what was released before it."""
        changes = len(self.rounds)
        t = self.asked + 1
        choose = math.lgamma(t) - math.lgamma(changes + 1) - math.lgamma(t - changes)
        of_all = math.inf
        if t <= self.budget:
            top = math.lgamma(self.budget + 1) - math.lgamma(changes + 2)
            of_all = top - math.lgamma(self.budget - changes)
        uniform = math.log((changes + 1) * (changes + 2)) + mix(
            math.log(t * (t + 1)) + choose, of_all
        )
        known = math.log(self.budget) if t <= self.budget else math.inf
        by_records = mix(math.log(t * (t + 1)), known) + math.log(t) + self.drift
        this = mix(uniform, by_records) + changes * math.log(2) + values
        extra = max(ladders, self.declared) - self.declared
        share = 0.1 / (extra * (extra + 1)) if extra else 0.9
        self.last = this
        return max([*self.rounds, this]) - math.log(share)

    def question(self, entry: dict[str, Any], values: float, ladders: int) -> None:
        """Follow a question; ``values`` is the price of all values before it."""
        self.pending = None
        nats = self.price(values, ladders)
        self.asked += 1
        if entry["improved"]:
            self.pending = (entry, math.inf if self.charged else nats)
            self.rounds.append(self.last)
            self.drift += math.log(self.asked)

    def costs(self, labels: list[Any], predictions: list[Any]) -> list[float]:
        """Return what each prediction costs, in [0, 1]."""
        kind, pairs = self.loss["loss"], zip(labels, predictions, strict=True)
        if kind == "zero_one":
            return [float(label != predicted) for label, predicted in pairs]
        if kind == "brier":  # of the probability of the second class
            second = self.loss["classes"][1]
            return [(p - (label == second)) ** 2 for label, p in pairs]
        low, high = self.loss["range"]
        power = 1 if kind == "absolute" else 2
        return [(abs(y - min(max(p, low), high)) / (high - low)) ** power for y, p in pairs]

    def file(self, costs: list[float] | None) -> None:
        """Test the last question, if it was a record, by the losses of its submission."""
        if self.pending is None:
            return
        entry, nats = self.pending
        self.pending = None
        before, self.losses[entry["ladder"]] = self.losses.get(entry["ladder"]), costs
        if entry["proven"] is None:
            return
        if before is None or costs is None:
            self.untested += 1
            return
        gains = Counter(old - new for old, new in zip(before, costs, strict=True))
        possible = {
            nats + near < math.inf and self.proves(gains, len(costs), nats + near)
            for near in (-1e-6, 1e-6)
        }
        need(entry["proven"] in possible, "its proven does not follow from the two submissions")
        self.tested += 1

    def proves(self, gains: Counter[float], n: int, nats: float) -> bool:
        """Return whether this many gains of each size, in [-1, 1], prove a model better."""
        price = nats - math.log(self.beta)
        if self.binary:
            wins, losses = gains[1.0], gains[-1.0]
            return log_chance("sign", wins + losses, wins - losses, 0.5) <= -price
        shares = [0.8]
        while 2 * price < 0.81 * shares[-1] * n:
            shares.append(shares[-1] / 4)
        common = len(shares[1:3])
        weights = [
            9 * ((len(shares) - common) or 1) / 2 if i in {1, 2} else 1 for i in range(len(shares))
        ]
        bets = [min(math.sqrt(2 * price / (share * n)), 0.9) for share in shares]
        logs = [sum(k * math.log1p(bet * gain) for gain, k in gains.items()) for bet in bets]
        largest = max(logs)
        total = sum(w * math.exp(log - largest) for w, log in zip(weights, logs, strict=True))
        return largest + math.log(total / sum(weights)) >= price


def mix(first: float, second: float) -> float:
    """Return the price under an even mixture of two weights; one price may be infinite."""
    low, high = min(first, second), max(first, second)
    return low + math.log(2) - math.log1p(math.exp(low - high))


def array(written: dict[str, Any]) -> list[Any]:
    """Return the values of an array of one dimension."""
    need(len(written["shape"]) == 1, "an array has several dimensions")
    if written["type"] == "mixed":
        return written["values"]
    if written["type"] == "text":
        text, ends, end = written["values"].decode("utf-8", "surrogatepass"), [0], 0
        for length in array(written["lengths"]):
            end += length
            ends.append(end)
        return [text[start:stop] for start, stop in pairwise(ends)]
    codes = {"i1": "b", "i2": "h", "i4": "i", "i8": "q", "f8": "d"}
    return list(struct.unpack(f">{written['shape'][0]}{codes[written['type']]}", written["values"]))


# Rules that a board has only if they are set; an amendment takes one away with null.
UNSET = {"play", "sign_in", "data", "listing", "terms", "organisers", "prizes"}


class Chain:
    """What is known after some entries; without a key, as in a public ledger, all stays closed."""

    def __init__(self, key: bytes | None, salt: bytes, holdouts: list[str]) -> None:
        self.key, self.salt, self.holdouts = key, salt, holdouts
        self.book, self.head, self.time, self.number = None, bytes(32), 0, 0
        self.questions, self.corrected, self.ended = 0, 0, False
        self.ladders: list[tuple[int, bytes]] = []  # questions asked, and the digest of the state
        self.growing: GrowingLadders | None = None
        self.records: Records | None = None
        self.recorded: set[int] = set()  # the ladders that had a record
        self.samples: list[dict[str, Any]] = []
        self.gate: Gate | None = None
        self.looks = 0

    def add(self, form: bytes, secret: dict[str, Any] | None) -> None:
        try:
            need(form[:1] + form[-1:] == b"{}", "it does not fill its bytes")
            entry = json.loads(form.decode("ascii"), object_pairs_hook=once)
            encode(entry)  # JSON knows no NaN and no infinity, though Python reads them
            self.follow(entry)
            kinds = ("opened", "ladder", "question", "look", "promoted")
            kinds += ("amended", "restored", "resumed", "closed", "accepted")
            if entry["kind"] in kinds:  # others are part of the chain, and move no ladder
                getattr(self, entry["kind"])(entry)
            opened = {"question": self.secret, "look": self.evidence, "promoted": self.evidence}
            check = opened.get(entry["kind"]) if self.key is not None else None
            need((secret is None) == (check is None), "a secret side is missing, or one too many")
            if check is not None:
                check(entry, secret)
        except (Differs, *UNREADABLE) as wrong:
            why = wrong if isinstance(wrong, Differs) else "something in it cannot be read"
            raise Differs(f"entry {self.number}: {why}") from None
        self.head = hashlib.sha256(b"ladderboard:1:entry\n" + size(form) + form).digest()
        self.number += 1

    def follow(self, entry: dict[str, Any]) -> None:
        self.book = entry["book"] if self.book is None else self.book
        need(encode(entry["format"]) == encode(1), "its format is not 1")
        need(entry["book"] == self.book, "it belongs to another book")
        need(encode(entry["number"]) == encode(self.number), "its number is not the next")
        need(entry["previous"] == self.head.hex(), "it does not follow the entry before it")
        need(type(entry["time"]) is int and entry["time"] >= self.time, "its time runs backwards")
        need((entry["kind"] == "opened") == (self.number == 0), "a chain is opened once, and first")
        self.time = entry["time"]

    def opened(self, entry: dict[str, Any]) -> None:
        names = ("n", "loss", "mechanism", "rules", "holdout", "key")
        self.decided = {name: entry[name] for name in names}
        self.decide(entry)
        rules, n = entry["rules"], entry["n"]
        n = int(rules["worth"]) if rules.get("weighted") else n
        if entry["mechanism"]["mechanism"] == "growing_ladder":
            self.growing = GrowingLadders(entry["mechanism"], n)
        if "gate" in entry["rules"]:
            self.gate = Gate(entry)
        if rules.get("proven") and self.growing is not None:
            self.records = Records(entry)
        if self.key is not None:
            commitment = commit("key", hashlib.sha256(self.key).digest(), self.salt)
            need(commitment == entry["key"], "the key in the bundle is not the one committed to")
            self.laws, self.start = mechanism(entry["mechanism"], n)
            need(all(scale >= 0 for _, scale in self.laws), "its noise is below 0")

    def amended(self, entry: dict[str, Any]) -> None:
        if "holdout" in entry or "labels" in entry["changes"]:
            self.corrected += 1
            changes = encode(entry["changes"])
            need(changes == encode({"labels": self.corrected}), "its correction is miscounted")
            self.decided["holdout"] = entry["holdout"]
        else:
            board = {**self.decided["rules"]["board"], **entry["changes"]}
            for name in UNSET & board.keys():
                if board[name] is None:
                    del board[name]
            self.decided["rules"] |= {"questions": board["questions"], "board": board}
        self.decide(entry)

    def accepted(self, entry: dict[str, Any]) -> None:
        text = self.decided["rules"]["board"].get("terms", "")
        text_hash = hashlib.sha256(text.encode()).hexdigest()
        need(bool(text) and text_hash == entry["terms"], "it accepts other terms than the board's")

    def decide(self, entry: dict[str, Any]) -> None:
        commitment = digest("opening", self.decided).hex()
        need(commitment == entry["commitment"], "its commitment is not that of what was decided")
        if self.holdouts and "holdout" in entry:
            holdout = self.holdouts[self.corrected]
            need(holdout == entry["holdout"], "the labels in the bundle are not those committed to")

    def ladder(self, entry: dict[str, Any]) -> None:
        need(not self.ended, "it comes after the close")
        need(encode(entry["ladder"]) == encode(len(self.ladders)), "its ladder is not the next")
        state = b""
        if self.key is not None:
            start = self.start
            if "slack" in start:
                start = {**start, "slack": self.draw(len(self.ladders), 0, b"")[2]}
            state = digest("state", {"question": 0, "closed": False, "state": start})
        self.ladders.append((0, state))
        if self.growing is not None:
            self.growing.start()

    def draw(self, ladder: int, question: int, context: bytes) -> list[Any]:
        return [
            getattr(Stream(self.key, ladder, question, context, slot), law)(scale)
            for slot, (law, scale) in enumerate(self.laws)
        ]

    def question(self, entry: dict[str, Any]) -> None:
        need(not self.ended, "it comes after the close")
        ladder = entry["ladder"]
        started = type(ladder) is int and 0 <= ladder < len(self.ladders)
        need(started, "its ladder was never started")
        asked, state = self.ladders[ladder]
        need(encode(entry["question"]) == encode(asked + 1), "its question is not the next")
        self.ladders[ladder] = (asked + 1, state)
        used = sum(count > 0 for count, _ in self.ladders)
        declared = self.decided["rules"].get("ladders", used)  # by guards only
        need(used <= declared, "it is asked on a ladder more than were declared")
        self.questions += "metric" not in entry  # a further metric of the question before it
        tests = self.decided["rules"].get("proven", False)
        need(("proven" in entry) == tests, "it lacks the field proven, or has it without the rule")
        if tests:
            tested = entry["improved"] and ladder in self.recorded
            kind = bool if tested else type(None)
            need(type(entry["proven"]) is kind, "its proven is not true or false, or not null")
        if entry["improved"]:
            self.recorded.add(ladder)
        if self.records is not None:
            self.records.question(entry, self.growing.nats, len(self.ladders))
        if self.growing is not None:
            self.growing.question(entry)

    def secret(self, entry: dict[str, Any], opened: dict[str, Any]) -> None:
        names = ("content", "salt", "submission", "submission_salt")
        content, salt, submission, other = parts(opened, *names)
        names = ("risk", "training", "broken", "draws", "before", "after")
        with_error = self.growing is not None and self.growing.settings["scale"] == "model"
        parts(content, *names, *["standard_error"] * with_error)
        commitment = commit("submission", submission, other)
        need(commitment == entry["submission"], "its submission is not the one committed to")
        self.submitted = submission, content["training"]
        commitment = commit("secret", content, salt)
        need(commitment == entry["secret"], "its secret side is not the one committed to")
        question, state = self.ladders[entry["ladder"]]
        drawn = self.draw(entry["ladder"], question, submission)
        need(encode(content["draws"]) == encode(drawn), "its noise is not what the key gives")
        need(content["before"] == state, "the state before it is not the one after the last")
        self.ladders[entry["ladder"]] = (question, content["after"])

    def promoted(self, entry: dict[str, Any]) -> None:
        need(self.gate is not None and not self.ended, "it promotes where there is no gate")
        self.gate.incumbent += 1
        incumbent = encode(entry["incumbent"])
        need(incumbent == encode(self.gate.incumbent), "its incumbent is not the next")

    def look(self, entry: dict[str, Any]) -> None:
        need(self.gate is not None and not self.ended, "it looks where there is no gate")
        self.gate.look(entry)
        self.looks += 1

    def restored(self, entry: dict[str, Any]) -> None:
        if self.gate is not None:
            self.gate.charged += entry["charged"]
        if self.records is not None:
            self.records.charged += entry["charged"]

    resumed = restored

    def file(self, body: bytes | None) -> None:
        """Test the last question with the file of its submission, if there is one."""
        if self.records is None:
            return
        costs = None
        if self.records.testable and body is not None and self.samples:
            sample = self.samples[self.corrected]
            if sample["group"] is None and sample["weight"] is None:
                written = decode(body)["predictions"]
                submission, training = self.submitted
                actual = digest("predictions", {"predictions": written, "training": training})
                need(actual == submission, f"entry {self.number - 1}: its file was not submitted")
                costs = self.records.costs(array(sample["labels"]), array(written))
                if sample["split"] is not None:
                    splits = array(sample["split"])
                    costs = [c for c, s in zip(costs, splits, strict=True) if s == "public"]
        try:
            self.records.file(costs)
        except Differs as differs:
            raise Differs(f"entry {self.number - 1}: {differs}") from None

    def evidence(self, entry: dict[str, Any], opened: dict[str, Any]) -> None:
        names = ("content", "salt", "submission", "submission_salt")
        content, salt, submission, other = parts(opened, *names)
        commitment = commit("submission", submission, other)
        need(commitment == entry["submission"], "its submission is not the one committed to")
        need(commit("look", content, salt) == entry["secret"], "its evidence was changed")
        if entry["kind"] == "look":
            self.gate.check_evidence(entry, content)

    def closed(self, entry: dict[str, Any]) -> None:
        need(not self.ended, "it was closed before")
        need(len(entry["values"]) == len(self.ladders), "it lacks a value for each ladder")
        self.ended = True


# Files. The order of records; of those with a 2 or a 3 there may be several.
ORDER = {"bundle": 0, "key": 1, "holdout": 2, "entry": 3, "file": 3, "part": 3}
ORDER |= {"standings": 4, "finals": 5, "teams": 6, "end": 7}


def read_records(file: BinaryIO, length: int, start: bytes) -> Iterator[tuple[str, Any]]:
    """Give each record; see that they come in order, that all are there, and that all is whole."""
    bundle_hash, last, counts, content = hashlib.sha256(start), -1, Counter[str](), None
    before = ""
    while last != ORDER["end"]:
        try:
            head = file.read(8)
            (count,) = struct.unpack(">Q", head)
            need(count <= length - file.tell(), "it is longer than the file")
            form = file.read(count)
            kind, content = decode(form)
            position = ORDER[kind]
            several = position == last and position in {2, 3}
            need(position > last or several, "it is not in its place")
            after = {"file": ("entry",), "part": ("file", "part")}.get(kind, (before,))
            need(before in after, f"a {kind} does not follow what it belongs to")
        except (Differs, *UNREADABLE) as wrong:
            why = wrong if isinstance(wrong, Differs) else "it cannot be read"
            raise Differs(f"record {counts.total()}: {why}") from None
        bundle_hash.update(head + form)
        last, before = position, kind
        if kind != "end":
            counts[kind] += 1
            yield kind, content
    need(encode(content) == encode(dict(counts)), "records are missing, or there are too many")
    need(counts["teams"] == (STARTS[start] == 2), "names of teams are for format 2, and only there")
    need(file.read() == bundle_hash.digest(), "the hash at the end is not that of the file")


def read_bundle(file: BinaryIO, length: int, start: bytes) -> Iterator[Chain]:
    """Give the chain after each entry."""
    records = read_records(file, length, start)
    names = ("format", "of", "book", "entries", "head", "labels", "submissions")
    header = parts(next(records)[1], *names)
    chain, asked = Chain(*parts(next(records)[1], "key", "salt"), holdouts=[]), False
    aligned = False
    file_parts: list[bytes] | None = None
    for kind, content in records:
        if kind == "part":
            file_parts = [*(file_parts or []), content]
        elif kind != "file":
            chain.file(b"".join(file_parts) if aligned and file_parts else None)
            file_parts = None
        if kind == "holdout":
            epoch, salt, sample = parts(content, "epoch", "salt", "sample")
            need(encode(epoch) == encode(len(chain.holdouts)), "labels are not in their order")
            chain.holdouts.append(commit("holdout", digest("sample", sample), salt))
            chain.samples.append(sample)
        elif kind == "entry":
            chain.add(*content)
            asked = content[1] is not None
            yield chain
        elif kind == "file":
            need(header[-1] is True, "it says that submissions are not in it")
            need(asked, "it holds a file that belongs to no question")
            aligned = content.get("format") == "aligned"
    chain.file(None)
    need(chain.ended, "it was opened, and never closed")
    need(len(chain.holdouts) in {0, chain.corrected + 1}, "it holds labels nobody committed to")
    of = "board" if "board" in chain.decided["rules"] else "guard"
    expected = [STARTS[start], of, chain.book, chain.number, chain.head]
    expected += [bool(chain.holdouts), bool(header[-1])]
    need(encode(header) == encode(expected), "its first record does not tell what is in it")


def read_ledger(file: BinaryIO) -> Iterator[Chain]:
    """As above, for a ledger with an entry a line."""
    chain = Chain(None, b"", [])
    for line in file:
        need(line.endswith(b"\n"), f"entry {chain.number}: its line does not end")
        chain.add(line[:-1], None)
        yield chain


def main() -> None:
    parser = argparse.ArgumentParser(description="Check the chain and the tape of a bundle.")
    parser.add_argument("bundle", type=Path, help="a bundle, or a ledger with an entry a line")
    parser.add_argument("--head", help="the hash of any entry, kept from before")
    arguments = parser.parse_args()
    chain, head_found = None, arguments.head is None
    need(arguments.bundle.is_file(), "there is no such file")
    with arguments.bundle.open("rb") as file:
        start = file.readline(max(map(len, STARTS)))
        bundle = start in STARTS
        file.seek(len(start) if bundle else 0)
        length = arguments.bundle.stat().st_size
        for chain in read_bundle(file, length, start) if bundle else read_ledger(file):
            head_found = head_found or chain.head.hex() == arguments.head
    need(chain is not None, "there is no entry in it")
    need(head_found, "no entry has the hash that was kept: this is another history")
    what = "the chain and the tape hold" if bundle else "the chain holds; nothing is opened yet"
    looks = f", {chain.looks} looks" if chain.gate is not None else ""
    print(f"{chain.number} entries, {chain.questions} questions{looks}: {what}")
    print("Not checked here: releases, risks, standings, finals, submissions, names of teams.")
    if chain.records is not None:
        print(f"Proven marks: {chain.records.tested} tested again, {chain.records.untested} not.")
    if arguments.head is None:
        print("Without --head nobody can tell whether the whole history was made anew.")


if __name__ == "__main__":
    try:
        main()
    except Differs as differs:
        sys.exit(str(differs))
    except (MemoryError, OSError, *UNREADABLE):
        sys.exit("this is neither a bundle nor a ledger, or cannot be read")
