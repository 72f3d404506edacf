"""Print the tables of docs/figures/gate/table.md: power and prices, or verdicts on model searches.

.venv/bin/python script/_gate_table.py             power beside McNemar's test and the guard; prices
.venv/bin/python script/_gate_table.py searches    verdicts on three searches with scikit-learn
"""

import math
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import ladderboard as lb
from ladderboard.bounds import LookPrices, gate_plan

SIZES = (100, 300, 500, 1_319, 5_000)
SHARES = (0.05, 0.1, 0.2)
LOOKS = (1, 20, 200)


def cell(gain: float | None) -> str:
    """Return a gain in percent of accuracy."""
    return "-" if gain is None else f"{100 * gain:.1f}"


def gains(n: int, looks: int, share: float, test: str) -> list[str]:
    """Return the gains at the first, the middle and the last look."""
    from ladderboard.bounds._gate_plan import _GainSearch  # noqa: PLC0415 - also for McNemar's

    search = _GainSearch(share, 0.05, 0.8, test)
    if test == "sign":
        mcnemar = cell(search.smallest_gain(n, math.log(looks)))
    numbers = sorted({1, max(1, looks // 2), looks})
    cells = [cell(search.smallest_gain(n, LookPrices(looks).nats(look))) for look in numbers]
    return [*([mcnemar] if test == "sign" else []), " / ".join(cells)]


def write_line(line: object = "") -> None:
    """Write a line to stdout."""
    sys.stdout.write(f"{line}\n")


SEARCHES = {  # rows to train on, sizes of the gate
    "breast cancer": (200, (100, 300)),
    "digits": (400, (300, 1_000)),
    "diabetes": (150, (100, 250)),
}
SPLITS, MARGIN = 10, 0.02


def candidates(seed: int, *, regression: bool) -> list[Any]:
    """Return 24 models of a search, from linear ones to forests."""
    from sklearn import ensemble, linear_model, naive_bayes, neighbors, svm, tree  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    kind = "Regressor" if regression else "Classifier"
    models = [getattr(neighbors, f"KNeighbors{kind}")(k) for k in (1, 3, 5, 9, 15, 25)]
    single, forest = getattr(tree, f"DecisionTree{kind}"), getattr(ensemble, f"RandomForest{kind}")
    models += [single(max_depth=depth, random_state=seed) for depth in (2, 4, 6, 9)]
    models += [forest(30, max_depth=depth, random_state=seed) for depth in (3, 6, None)]
    machine = svm.SVR if regression else svm.SVC
    models += [machine(C=c) for c in (0.1, 0.3, 1, 3, 10)]
    if regression:
        models += [linear_model.Ridge(a) for a in (0.1, 1, 10, 100)]
        models += [linear_model.Lasso(a) for a in (0.1, 1)]
    else:
        models += [linear_model.LogisticRegression(C=c) for c in (0.01, 0.03, 0.1, 1, 10)]
        models += [naive_bayes.GaussianNB()]
    return [make_pipeline(StandardScaler(), model) for model in models]


def play_search(gate: lb.Gate, predictions: list[Any], risks: list[float]) -> Counter[str]:
    """Check candidates in turn, promoting those that are better; return how often which verdict.

    "exact" counts those with a smaller empirical risk than the incumbent's, whatever the verdict.
    """
    counts: Counter[str] = Counter()
    gate.promote(predictions[0])
    incumbent = 0
    for number in range(1, len(predictions)):
        verdict = gate.check(predictions[number])
        counts[verdict.outcome] += 1
        counts["exact"] += risks[number] < risks[incumbent]
        if verdict.better:
            gate.promote(predictions[number])
            incumbent = number
    return counts


def print_searches() -> None:
    """Print how often each verdict is given on three searches, over random splits."""
    from sklearn import datasets  # noqa: PLC0415

    write_line("| search | test | n | better | not worse | cannot tell | fewer errors |")
    write_line("|---|---|---|---|---|---|---|")
    for name, (train, sizes) in SEARCHES.items():
        x, y = getattr(datasets, f"load_{name.replace(' ', '_')}")(return_X_y=True)
        regression = name == "diabetes"
        loss = lb.loss("absolute", range=(0, 350)) if regression else lb.loss("zero_one")
        totals: dict[int, Counter[str]] = {n: Counter() for n in sizes}
        for split in range(SPLITS):
            rng = np.random.default_rng(split)
            rows = rng.permutation(len(y))
            models = [
                model.fit(x[rows[:train]], y[rows[:train]])
                for model in candidates(split, regression=regression)
            ]
            order = rng.permutation(len(models))
            for n in sizes:
                test = rows[train : train + n]
                predictions = [np.asarray(models[index].predict(x[test])) for index in order]
                with tempfile.TemporaryDirectory() as folder:
                    gate = lb.Gate.create(
                        Path(folder) / "gate.db",
                        y[test],
                        looks=len(models) - 1,
                        margin=MARGIN,
                        loss=loss,
                    )
                    risks = [float(gate.loss(y[test], values).mean()) for values in predictions]
                    totals[n] += play_search(gate, predictions, risks)
                    test_form = gate.status().test
                    gate.close()
        for n, counts in totals.items():
            looks = SPLITS * (len(models) - 1)
            shares = [
                f"{counts[key] / looks:.0%}"
                for key in ("better", "not_worse", "cannot_tell", "exact")
            ]
            write_line(f"| {name} | {test_form} | {n:,} | {' | '.join(shares)} |")


def main() -> None:
    """Print the tables that the command line asks for."""
    if sys.argv[1:] == ["searches"]:
        print_searches()
    else:
        print_power()


def print_power() -> None:
    """Print the tables of power and prices."""
    write_line(
        "| looks | n | differ | McNemar | two classes | more classes | pass or fail | guard |"
    )
    write_line("|---|---|---|---|---|---|---|---|")
    for looks in LOOKS:
        for n in SIZES:
            guard = lb.GrowingLadder.calibrated(n, looks)
            shown = cell(guard.smallest_visible_gain(n=n, released=0.2, changes=1, power=0.8))
            for share in SHARES:
                row = [f"{looks}", f"{n:,}", f"{share:.0%}"]
                for test in ("sign", "convex", "bets"):
                    row += gains(n, looks, share, test)
                write_line(f"| {' | '.join(row)} | {shown} |")
    write_line()
    write_line("| looks | look | 0 verdicts | 1 | 2 | 5 |")
    write_line("|---|---|---|---|---|---|")
    for looks, look in ((20, 10), (20, 20), (200, 10), (200, 100), (200, 200)):
        prices = [LookPrices(looks).nats(look, [2] * count) for count in (0, 1, 2, 5)]
        write_line(f"| {looks} | {look} | {' | '.join(f'{price:.1f}' for price in prices)} |")
    write_line()
    write_line(gate_plan(300, 50, 0.1, gain=0.02))


if __name__ == "__main__":
    main()
