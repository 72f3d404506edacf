"""Score the waiting submissions of an EvalAI challenge through a guard, and print a table.

    python examples/evalai_worker.py GUARD PHASE SPLIT

GUARD is a guard's file or the address of a served one, PHASE the phase's number on EvalAI, SPLIT
its dataset split's codename. AUTH_TOKEN, QUEUE_NAME, CHALLENGE_PK and API_SERVER are read from the
environment, as EvalAI's own worker does. ``worker.run()`` instead of ``worker.drain()`` never ends.
"""

import os
import sys

import ladderboard as lb
from ladderboard.adapters.evalai import ChallengePhase, Worker, ask_guard


def main(address: str, phase: str, split: str) -> None:
    """Work until the queue is empty."""
    served = address.startswith(("http://", "https://", "unix:"))
    guard = lb.Holdout.connect(address) if served else lb.Holdout.open(address)
    worker = Worker(
        {int(phase): ChallengePhase(split, ask_guard(guard))},
        challenge=int(os.environ["CHALLENGE_PK"]),
        queue=os.environ["QUEUE_NAME"],
        token=os.environ["AUTH_TOKEN"],
        server=os.environ.get("API_SERVER", "https://eval.ai"),
    )
    print(f"{'submission':>10} {'team':>6} {'status':>9} {'released':>9} {'improved':>9}")
    for done in worker.drain():
        row = {key: "" if value is None else value for key, value in done.describe().items()}
        print("{submission:>10} {team:>6} {status:>9} {released:>9} {improved:>9}".format(**row))
    guard.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
