"""Verifying a bundle of 1e5 questions: how fast, in time linear in its length, with flat memory.

Yardstick, in the same process on one core: the bare hash chain, SHA-256 over the bytes of every
entry as it is documented, and the tape's own draws for every question. Nothing that checks both can
do with less. The bundle is of a calibrated Shaky Ladder, without labels and submissions.

Verification is timed on one core, like the yardstick, and on all: a second process then checks
draws, so that ratio compares two cores with the yardstick's one.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import ladderboard as lb
from _timing import min_seconds, report_ratio
from ladderboard.ledger import BundleWriter, Entry, Opening, SecretSide, digest
from ladderboard.verify import verify_bundle

N, SHORT, LONG, ROUNDS = 10_000, 10_000, 100_000, 4
KEY, SALT = bytes(range(32)), bytes(32)
PEAK = """
import sys
from pathlib import Path
from ladderboard.verify import verify_bundle
verify_bundle(Path(sys.argv[1]))
status = Path("/proc/self/status").read_text().splitlines()
print(next(int(line.split()[1]) for line in status if line.startswith("VmHWM")))
"""


@dataclass
class BundleFile:
    """A bundle, and what the baseline needs from it."""

    path: Path
    entries: list[bytes]
    contexts: list[bytes]


def state_of(session: lb.Session) -> bytes:
    """Return the digest of a session's state, as a secret side has it."""
    return digest("state", session.mutable_state)


def play(mechanism: lb.Mechanism, questions: int) -> list[tuple[Entry, SecretSide | None]]:
    """Return the entries of a book in which this many questions were asked, without storage."""
    opening = Opening(
        n=N,
        loss=lb.loss("zero_one").describe(),
        mechanism=mechanism.describe(),
        rules={
            "questions": questions,
            "beta": 0.05,
            "rows": N,
            "kind": "number",
            "worth": float(N),
            "weighted": False,
        },
        holdout=SALT,
    )
    entries: list[tuple[Entry, SecretSide | None]] = []

    def add(kind: str, fields: dict[str, object], secret: SecretSide | None = None) -> None:
        previous = entries[-1][0].hash if entries else bytes(32)
        time = 1_700_000_000 + len(entries)
        entry = Entry.make(
            book="bench", number=len(entries), kind=kind, time=time, previous=previous, **fields
        )
        entries.append((entry, secret))

    add("opened", opening.first_entry_fields(opening.make_commitments(KEY, (SALT, SALT))))
    add("ladder", {"ladder": 0})
    session = mechanism.start(n=N, tape=lb.Tape(key=KEY))
    risks = 0.3 + 0.2 * np.random.default_rng(0).random(questions)
    after = state_of(session)
    for number, risk in enumerate(risks.tolist()):
        submission = hashlib.sha256(b"%d" % number).digest()
        release = session.ask(risk=risk, context=submission)
        before, after = after, state_of(session)
        secret = SecretSide(
            risk=risk,
            training=None,
            broken=False,
            draws=session.draws,
            before=before,
            after=after,
            salt=SALT,
            submission=submission,
            submission_salt=SALT,
        )
        fields = {
            "ladder": 0,
            "question": release.question,
            "asker": None,
            "submission": secret.submission_commitment.hash.hex(),
            "value": release.value,
            "score": release.score,
            "improved": release.improved,
            "secret": secret.commitment.hash.hex(),
        }
        add("question", fields, secret)
    add("closed", {"values": [session.close()]})
    return entries


def write(path: Path, mechanism: lb.Mechanism, questions: int) -> BundleFile:
    """Write a bundle of this many questions."""
    entries = play(mechanism, questions)
    document = {
        "format": 1,
        "of": "guard",
        "book": "bench",
        "entries": len(entries),
        "head": entries[-1][0].hash,
        "labels": False,
        "submissions": False,
    }
    with path.open("xb") as file:
        bundle = BundleWriter(file)
        bundle.write_record("bundle", document)
        bundle.write_record("key", {"key": KEY, "salt": SALT})
        for entry, secret in entries:
            bundle.write_entry(entry.encoded, secret)
        bundle.finish()
    contexts = [secret.submission for _, secret in entries if secret is not None]
    return BundleFile(path, [entry.encoded for entry, _ in entries], contexts)


def hash_and_draw(bundle: BundleFile, mechanism: lb.Mechanism) -> None:
    """Hash the chain and draw the noise, and nothing else."""
    for form in bundle.entries:
        hashlib.sha256(b"ladderboard:1:entry\n" + len(form).to_bytes(8, "big") + form).digest()
    tape, laws = lb.Tape(key=KEY), mechanism.laws
    for question, context in enumerate(bundle.contexts, 1):
        tape.draw(laws, ladder=0, question=question, context=context)


def peak_memory(path: Path) -> float:
    """Return the most memory that checking took in a process of its own, in MB."""
    command = [sys.executable, "-c", PEAK, str(path)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) / 1024


def verify_on_one_core(path: Path) -> None:
    """Verify as where there is one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        verify_bundle(path)
    finally:
        os.sched_setaffinity(0, cores)


def main() -> None:
    """Print rates, growth and memory."""
    mechanism = lb.ShakyLadder.calibrated(n=N, questions=LONG)
    with tempfile.TemporaryDirectory() as folder:
        short = write(Path(folder) / "short.ladderboard", mechanism, SHORT)
        long = write(Path(folder) / "long.ladderboard", mechanism, LONG)
        ours, yardstick, fewer, parallel = min_seconds(
            lambda: verify_on_one_core(long.path),
            lambda: hash_and_draw(long, mechanism),
            lambda: verify_on_one_core(short.path),
            lambda: verify_bundle(long.path),
            rounds=ROUNDS,
        )
        cores = min(len(os.sched_getaffinity(0)), 2)
        for seconds, used in ((ours, "one core"), (parallel, f"{cores} cores / one")):
            report_ratio(
                f"verify, {LONG:.0e} questions / bare chain and draws",
                yardstick / seconds,
                "at least 0.7",
                detail=f"{LONG / seconds:.0f} a second / {LONG / yardstick:.0f}, on {used}",
            )
        report_ratio(
            f"time of {LONG:.0e} questions / time of {SHORT:.0e}",
            ours / fewer,
            "about 10",
            detail=f"{ours:.2f} s / {fewer:.2f} s",
        )
        long_peak, short_peak = peak_memory(long.path), peak_memory(short.path)
        report_ratio(
            f"memory for {LONG:.0e} questions / for {SHORT:.0e}",
            long_peak / short_peak,
            "about 1",
            detail=f"{long_peak:.0f} MB / {short_peak:.0f} MB",
        )


if __name__ == "__main__":
    main()
