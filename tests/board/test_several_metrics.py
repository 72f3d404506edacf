"""Boards with several metrics: exact at the close, and any of them decides the final ranking."""

import json

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.board import read_folder, read_rules, write_board_bundle
from ladderboard.errors import BrokenLedger, InvalidPredictions, InvalidRules
from ladderboard.verify import verify_bundle
from support.verify.second_verifier import run_second_verifier

RULES = "slug: several\nsubmissions: 100\nteams: 4\nfinals: {selections: 2}\n"
ROWS = 600
LABELS = (np.arange(ROWS) % 5 == 0).astype(int)
PRIVATE = np.arange(ROWS) // 5 % 3 == 0


def write_board(folder, text):
    folder.mkdir()
    (folder / "board.yaml").write_text(RULES + text)
    split = np.where(PRIVATE, "private", "public")
    lines = [f"r{i},{LABELS[i]},{split[i]}" for i in range(ROWS)]
    (folder / "holdout.csv").write_text("\n".join(["id,label,split", *lines]) + "\n")
    return folder


def file_of(values):
    lines = [f"r{i},{value:.6f}" for i, value in enumerate(values)]
    return "\n".join(["id,prediction", *lines]).encode()


def probabilities(signal, seed):
    noise = np.random.default_rng(seed).normal(size=ROWS)
    return 1 / (1 + np.exp(-signal * (2 * LABELS - 1) - noise + 1))


def final_rows(boards, join, submit, organiser, path, files):
    board = boards.create(read_folder(path))
    for name, values in files.items():
        caller = join(boards, board, name)[0]
        for one in values:
            submit(board, caller, file_of(one))
    board.closer.close(organiser)
    return board, board.as_seen_by(organiser).finals()


# Ada ranks well but is badly calibrated; Bob is the opposite.
ADA = 0.45 + 0.1 * probabilities(2, 1)
BOB, EVE = probabilities(1.4, 2), probabilities(0.8, 3)


def value(name, predictions, **settings):
    return lb.metric(name, **settings).value(LABELS[PRIVATE], predictions[PRIVATE])


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("final", "order"), [("", ["Ada", "Bob", "Eve"]), ("final_metric: log_loss\n", None)]
)
def test_every_metric_is_exact_on_the_private_rows_and_any_of_them_decides(
    boards, join, submit, organiser, tmp_path, final, order
):
    text = f"metric: roc_auc\nmetrics: [log_loss, {{name: brier, title: Brier}}]\n{final}"
    files = {"Ada": [ADA], "Bob": [BOB], "Eve": [EVE]}
    path = write_board(tmp_path / "several", text)
    board, ranking = final_rows(boards, join, submit, organiser, path, files)
    models = {"Ada": ADA, "Bob": BOB, "Eve": EVE}
    auc, log = (
        {name: value(metric, values) for name, values in models.items()}
        for metric in ("roc_auc", "log_loss")
    )
    order = order or sorted(log, key=log.get)
    assert [row["team"]["name"] for row in ranking["rows"]] == order
    assert ranking["metric"] == ("log loss" if final else "AUC")
    assert ranking["display"]["direction"] == ("lower" if final else "higher")
    for row in ranking["rows"]:
        name = row["team"]["name"]
        others = {metric["name"]: metric["score"] for metric in row["metrics"]}
        assert list(others) == ["AUC" if final else "log loss", "Brier"]
        decides, other = (log, auc) if final else (auc, log)
        assert row["score"] == pytest.approx(decides[name], abs=2e-3)  # log loss has a clip
        assert others["AUC" if final else "log loss"] == pytest.approx(other[name], abs=2e-3)
        exact = np.mean((models[name][PRIVATE] - LABELS[PRIVATE]) ** 2)
        assert others["Brier"] == pytest.approx(exact, abs=1e-5)
    write_board_bundle(board, tmp_path / "bundle", labels=True, submissions=True)
    result = verify_bundle(tmp_path / "bundle")
    assert result.finals is not None
    assert "final" in " ".join(result.checked)
    assert "3 questions" in run_second_verifier(tmp_path / "bundle")


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
def test_the_mean_of_the_ranks_decides(boards, join, submit, organiser, tmp_path):
    text = "metric: roc_auc\nmetrics: [log_loss]\nfinal_metric: mean_rank\n"
    files = {"Ada": [EVE, ADA], "Bob": [BOB], "Eve": [EVE]}
    path = write_board(tmp_path / "several", text)
    board, ranking = final_rows(boards, join, submit, organiser, path, files)
    rows = {row["team"]["name"]: row for row in ranking["rows"]}
    # AUC: Ada, Bob, Eve. Log loss: Ada's other file is Eve's, so she is counted with the better.
    by_rank = [row["mean_rank"] for row in ranking["rows"]]
    assert by_rank == sorted(by_rank)
    assert rows["Bob"]["mean_rank"] <= 2
    assert all(row["ranks"] is None for row in rows.values())
    write_board_bundle(board, tmp_path / "bundle", labels=True, submissions=True)
    assert verify_bundle(tmp_path / "bundle").finals is not None


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[0]["metrics"][1].update(score=0.01, display=0.01), "final score"),
        (lambda rows: rows[0]["metrics"][1].update(display=0.5), "displayed number"),
        (lambda rows: rows[0]["metrics"][0].update(name="other"), "names other metrics"),
        (lambda rows: rows[0].pop("metrics"), "malformed"),
        (lambda rows: rows[0].update(mean_rank=0.5), "final rank"),
    ],
)
def test_a_forged_metric_is_found(
    boards, join, submit, organiser, tmp_path, monkeypatch, change, message
):
    from ladderboard.board import _finals

    ranked = _finals.rank_finals

    def forge(rows, **options):
        ranked(rows, **options)
        change(rows)

    monkeypatch.setattr(_finals, "rank_finals", forge)
    text = "metric: roc_auc\nmetrics: [brier]\nfinal_metric: mean_rank\n"
    path = write_board(tmp_path / "several", text)
    board = boards.create(read_folder(path))
    for name, values in {"Ada": ADA, "Bob": BOB}.items():
        submit(board, join(boards, board, name)[0], file_of(values))
    board.closer.close(organiser)
    write_board_bundle(board, tmp_path / "bundle", labels=True, submissions=True)
    with pytest.raises(BrokenLedger, match=message):
        verify_bundle(tmp_path / "bundle")


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
def test_predictions_that_a_further_metric_refuses_are_refused_before_they_count(
    boards, join, submit, tmp_path
):
    path = write_board(tmp_path / "several", "metric: roc_auc\nmetrics: [log_loss]\n")
    board = boards.create(read_folder(path))
    caller = join(boards, board, "Ada")[0]
    with pytest.raises(InvalidPredictions, match="probabilit"):
        submit(board, caller, file_of(ADA * 7))
    assert board.book.chain_state().asked == 0


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
def test_probabilities_give_the_likeliest_class(boards, join, submit, organiser, tmp_path):
    path = write_board(tmp_path / "several", "metric: log_loss\nmetrics: [accuracy, roc_auc]\n")
    _, ranking = final_rows(boards, join, submit, organiser, path, {"Ada": [BOB]})
    others = {metric["name"]: metric["score"] for metric in ranking["rows"][0]["metrics"]}
    right = (BOB[PRIVATE] > 0.5) == LABELS[PRIVATE]
    assert others["accuracy"] == pytest.approx(right.mean())
    assert others["AUC"] == pytest.approx(value("roc_auc", BOB))


def test_rules_with_several_metrics_are_described_and_read_again():
    text = "slug: a\nmetric: accuracy\nsubmissions: 100\nteams: 5\n"
    text += "metrics: [{name: f1_macro, digits: 2}, {name: fbeta, beta: 2, title: F2}]\n"
    rules = read_rules(text + "final_metric: f2\n")
    assert [metric.display.name for metric in rules.metrics] == ["macro-F1", "F2"]
    assert (rules.final_metric, rules.final_metric_number) == ("F2", 2)
    assert type(rules).from_description(json.loads(json.dumps(rules.describe()))) == rules
    with pytest.raises(InvalidRules, match="Metrics cannot change"):
        rules.amended({"metrics": []})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metrics: log_loss\n", "must be a list"),
        ("metrics: [acuracy]\n", "did you mean 'accuracy'"),
        ("metrics: [accuracy]\n", "which another metric has"),
        ("metrics: [{name: f1_macro, title: accuracy}]\n", "which another metric has"),
        ("final_metric: f1\n", "must be one of accuracy"),
        ("final_metric: mean_rank\n", "must be one of accuracy"),
        ("metrics: [f1_macro]\nfinal_metric: mcc\n", "accuracy, macro-F1, mean_rank"),
    ],
)
def test_rules_that_are_wrong_are_named(text, message):
    with pytest.raises(InvalidRules, match=message):
        read_rules(f"slug: a\nmetric: accuracy\nsubmissions: 100\nteams: 5\n{text}")


def test_metrics_that_need_other_predictions_are_refused(tmp_path):
    path = write_board(tmp_path / "several", "metric: roc_auc\nmetrics: [accuracy]\n")
    with pytest.raises(InvalidRules, match="cannot be computed from the predictions"):
        read_folder(path)
