"""Boards with several metrics: exact at the close, and any of them decides the final ranking."""

import json

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.board import (
    PUBLIC,
    Boards,
    FolderStore,
    dump_board,
    read_folder,
    read_rules,
    restore_board,
    write_board_bundle,
)
from ladderboard.board._resolution import BaselineScore, describe_board_resolution
from ladderboard.board._standings import MeanRank
from ladderboard.errors import (
    BrokenLedger,
    InvalidPredictions,
    InvalidRules,
    InvalidSetting,
    NotAllowed,
)
from ladderboard.ledger import LedgerEnvironment, SqliteStorage
from ladderboard.verify import verify_bundle
from ladderboard.verify._history import HistoryChecker
from support.verify.second_verifier import run_second_verifier

RULES = "slug: several\nsubmissions: 100\nteams: 4\nfinals: {selections: 2}\n"
ROWS = 600
LABELS = (np.arange(ROWS) % 5 == 0).astype(int)
PRIVATE = np.arange(ROWS) // 5 % 3 == 0

MEAN_RANK = "metric: roc_auc\nmetrics: [{name: log_loss, show: live}]\n"
MEAN_RANK += "leaderboard_metric: mean_rank\naccounts: 1\n"
PASSPHRASE = {"passphrase": "correct horse battery staple"}


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
        ("leaderboard_metric: f1\n", "must be accuracy, the metric that comes first, or mean_rank"),
        ("metrics: [f1_macro]\nleaderboard_metric: mean_rank\n", "give one show: live"),
        (
            "metrics: [{name: mcc, show: live}]\nleaderboard_metric: mean_rank\nladder: board\n",
            "leave out ladder: board",
        ),
        (
            MEAN_RANK.replace("roc_auc", "accuracy") + "mechanism: {name: one_bit, step: 0.1}\n",
            "one_bit shows none before the close",
        ),
    ],
)
def test_rules_that_are_wrong_are_named(text, message):
    with pytest.raises(InvalidRules, match=message):
        read_rules(f"slug: a\nmetric: accuracy\nsubmissions: 100\nteams: 5\n{text}")


def test_metrics_that_need_other_predictions_are_refused(tmp_path):
    path = write_board(tmp_path / "several", "metric: roc_auc\nmetrics: [accuracy]\n")
    with pytest.raises(InvalidRules, match="cannot be computed from the predictions"):
        read_folder(path)


LIVE = "metric: roc_auc\nmetrics: [{name: log_loss, show: live}, {name: brier, title: Brier}]\n"


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
def test_a_live_metric_has_ladders_of_its_own(boards, join, submit, organiser, tmp_path):
    board = boards.create(read_folder(write_board(tmp_path / "several", LIVE)))
    ada, bob = (join(boards, board, name)[0] for name in ("Ada", "Bob"))
    first = submit(board, ada, file_of(ADA)).describe()
    (log,) = first["metrics"]
    assert (log["name"], log["improved"]) == ("log loss", True)
    public = lb.metric("log_loss").value(LABELS[~PRIVATE], ADA[~PRIVATE])
    assert log["released"] == pytest.approx(public, abs=0.1)
    assert "log loss: new best, " in first["reason"]
    second = submit(board, ada, file_of(BOB)).describe()  # worse by AUC, better by log loss
    assert not second["improved"]
    assert second["metrics"][0]["improved"]
    assert second["metrics"][0]["released"] < log["released"]
    again = submit(board, ada, file_of(BOB)).describe()
    assert again["again"]
    assert again["metrics"] == second["metrics"]
    submit(board, bob, file_of(EVE))
    # A submission uses one of the budget, and its changes on all ladders are counted.
    state = board.book.chain_state()
    assert (state.asked, state.ladders, state.changes) == (3, 5, 5)
    rows = board.as_seen_by(bob).leaderboard()["rows"]
    assert rows[0]["metrics"][0]["released"] == second["metrics"][0]["released"]
    submissions = board.as_seen_by(ada).submissions()
    assert [one["metrics"] for one in submissions] == [second["metrics"], first["metrics"]]
    assert board.as_seen_by(ada).team()["metrics"][0]["loss"] == second["metrics"][0]["loss"]
    assert board.book.check() == 6
    board.closer.close(organiser)
    write_board_bundle(board, tmp_path / "bundle", labels=True, submissions=True)
    result = verify_bundle(tmp_path / "bundle")
    assert (result.questions, result.releases, result.risks) == (3, 6, 6)
    assert "3 questions" in run_second_verifier(tmp_path / "bundle")


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (lambda entry: None, "was not answered by all metrics"),
        (lambda entry: {**entry, "metric": 2}, "is not the next of its submission"),
        (lambda entry: {**entry, "asker": "0" * 16}, "is not the next of its submission"),
        (lambda entry: {**entry, "ladder": 1, "question": 3}, "another ladder"),
    ],
)
def test_a_submission_that_not_all_live_metrics_answered_is_found(
    boards, join, submit, tmp_path, forge, message
):
    board = boards.create(read_folder(write_board(tmp_path / "several", LIVE)))
    ada = join(boards, board, "Ada")[0]
    for values in (ADA, BOB):
        submit(board, ada, file_of(values))
    entries = [fields for _, fields in board.book.entries()]
    at = next(i for i, fields in enumerate(entries) if "metric" in fields)
    if forge(entries[at]) is None:
        del entries[at]
    else:
        second = max(i for i, fields in enumerate(entries) if "metric" in fields)
        entries[second] = forge(entries[second])
    history = HistoryChecker(entries[0])

    def check_all():
        for number, fields in enumerate(entries):
            history.check_entry(number, fields)

    with pytest.raises(BrokenLedger, match=message):
        check_all()


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
def test_corrected_labels_are_asked_again_by_every_live_metric(
    boards, join, submit, organiser, tmp_path
):
    path = write_board(tmp_path / "several", LIVE)
    board = boards.create(read_folder(path))
    ada = join(boards, board, "Ada")[0]
    submit(board, ada, file_of(ADA))
    text = (path / "holdout.csv").read_text().replace("r5,1,", "r5,0,")
    (path / "holdout.csv").write_text(text)
    assert board.amendments.correct_labels(organiser, read_folder(path).table) == 1
    assert board.as_seen_by(ada).team()["metrics"][0]["released"] is not None
    submit(board, ada, file_of(BOB))
    board.closer.close(organiser)
    write_board_bundle(board, tmp_path / "bundle", labels=True, submissions=True)
    assert verify_bundle(tmp_path / "bundle").risks == 6
    assert "3 questions" in run_second_verifier(tmp_path / "bundle")


def leaderboard_of(board, caller=PUBLIC, limit=100):
    """Return the names, ranks and mean ranks of all pages."""
    rows, cursor = [], None
    while True:
        page = board.as_seen_by(caller).leaderboard(limit=limit, cursor=cursor)
        rows += page["rows"]
        cursor = page["next"]
        if cursor is None:
            return [(row["team"]["name"], row["rank"], row["mean_rank"]) for row in rows]


def test_the_mean_rank_over_live_metrics_decides_the_leaderboard(
    boards, join, submit, organiser, tmp_path
):
    board = boards.create(read_folder(write_board(tmp_path / "several", MEAN_RANK)))
    callers = {name: join(boards, board, name)[0] for name in ("Zoe", "Eve", "Ada", "Bob")}
    for name, values in {"Eve": 1 - EVE, "Ada": ADA, "Bob": BOB}.items():
        submit(board, callers[name], file_of(values))
    # Ada is first by AUC, Bob by log loss, Eve last in both, Zoe has submitted nothing.
    ranked = [("Ada", 1, 1.5), ("Bob", 1, 1.5), ("Eve", 3, 3.0), ("Zoe", None, None)]
    assert leaderboard_of(board) == ranked
    assert leaderboard_of(board, limit=1) == ranked
    page = board.as_seen_by(PUBLIC).leaderboard()
    assert page["ranked_by"] == "mean_rank"
    assert [row["tied"] for row in page["rows"]] == [True, True, False, False]
    assert page["rows"][-1]["metrics"][0]["released"] is None
    # Ada takes the second metric too; Bob is disqualified and moves nobody down.
    submit(board, callers["Ada"], file_of(probabilities(3, 4)))
    assert leaderboard_of(board)[:2] == [("Ada", 1, 1.0), ("Bob", 2, 2.0)]
    bob = board.as_seen_by(callers["Bob"]).team()["id"]
    board.teams.disqualify(organiser, bob)
    assert leaderboard_of(board) == [("Ada", 1, 1.0), ("Eve", 2, 2.0), ("Zoe", None, None)]
    board.closer.close(organiser)
    write_board_bundle(board, tmp_path / "bundle", labels=True, submissions=True)
    result = verify_bundle(tmp_path / "bundle")
    assert [row["rank"] for row in result.standings] == [None, 2, 1, None]
    assert "4 questions" in run_second_verifier(tmp_path / "bundle")


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
def test_a_mean_rank_that_does_not_follow_from_the_releases_is_found(
    boards, join, submit, organiser, tmp_path, monkeypatch
):
    board = boards.create(read_folder(write_board(tmp_path / "several", MEAN_RANK)))
    for name, values in {"Ada": ADA, "Bob": BOB}.items():
        submit(board, join(boards, board, name)[0], file_of(values))
    monkeypatch.setattr(
        "ladderboard.board._finals.rank_by_mean",
        lambda releases, _: {team: MeanRank(1.0, at) for at, team in enumerate(releases, 1)},
    )
    board.closer.close(organiser)
    write_board_bundle(board, tmp_path / "bundle", labels=True, submissions=True)
    with pytest.raises(BrokenLedger, match="does not follow from the releases"):
        verify_bundle(tmp_path / "bundle")


def test_a_frozen_board_shows_live_metrics_as_they_were_at_the_freeze(
    boards, join, submit, organiser, tmp_path
):
    board = boards.create(read_folder(write_board(tmp_path / "several", MEAN_RANK)))
    callers = {name: join(boards, board, name)[0] for name in ("Ada", "Bob")}
    submit(board, callers["Ada"], file_of(ADA))
    submit(board, callers["Bob"], file_of(EVE))
    before = board.as_seen_by(PUBLIC).leaderboard()
    board.amendments.amend(organiser, {"visibility": "frozen"})
    frozen = board.as_seen_by(PUBLIC).leaderboard()
    assert frozen["rows"] == before["rows"]
    submit(board, callers["Bob"], file_of(probabilities(3, 4)))
    for caller in (PUBLIC, callers["Ada"], callers["Bob"]):
        rows = board.as_seen_by(caller).leaderboard()["rows"]
        assert [{**row, "you": False} for row in rows] == before["rows"]
    # The organiser sees the present, and so does a team of its own numbers.
    assert leaderboard_of(board, organiser)[0][0] == "Bob"
    current = board.as_seen_by(callers["Bob"]).team()["metrics"][0]["released"]
    seen = {row["team"]["name"]: row["metrics"][0]["released"] for row in before["rows"]}
    assert current < seen["Bob"]
    board.amendments.amend(organiser, {"visibility": "hidden"})
    with pytest.raises(NotAllowed):
        board.as_seen_by(callers["Ada"]).leaderboard()
    assert board.as_seen_by(callers["Bob"]).team()["metrics"][0]["released"] == current
    board.amendments.amend(organiser, {"visibility": "public"})
    assert leaderboard_of(board)[0][0] == "Bob"


def test_a_restored_board_keeps_its_live_metrics_and_mean_ranks(
    boards, join, submit, organiser, tmp_path, clock
):
    path = write_board(tmp_path / "several", MEAN_RANK)
    board = boards.create(read_folder(path))
    callers = {name: join(boards, board, name)[0] for name in ("Ada", "Bob")}
    submit(board, callers["Ada"], file_of(ADA))
    submit(board, callers["Bob"], file_of(EVE))
    text = (path / "holdout.csv").read_text().replace("r5,1,", "r5,0,")
    (path / "holdout.csv").write_text(text)
    board.amendments.correct_labels(organiser, read_folder(path).table)
    submit(board, callers["Bob"], file_of(BOB))
    board.amendments.amend(organiser, {"visibility": "frozen"})
    submit(board, callers["Bob"], file_of(probabilities(3, 4)))
    seen = {caller: board.as_seen_by(caller).leaderboard() for caller in (PUBLIC, organiser)}
    assert seen[PUBLIC]["rows"] != seen[organiser]["rows"]
    dump_board(
        boards,
        "several",
        tmp_path / "board.dump",
        **PASSPHRASE,
        move=True,
    )
    with SqliteStorage(tmp_path / "other.db", create=True) as other:
        moved = Boards(
            other, FolderStore(tmp_path / "others"), environment=LedgerEnvironment(clock=clock)
        )
        restore_board(moved, tmp_path / "board.dump", **PASSPHRASE)
        restored = moved.open("several")
        for caller, page in seen.items():
            assert restored.as_seen_by(caller).leaderboard()["rows"] == page["rows"]


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("live", "remedy"), [(1, "or accounts: 1"), (2, r"create the board\.$")])
def test_a_board_whose_live_metrics_share_steps_says_how_it_could_be_frozen(
    boards, organiser, tmp_path, live, remedy
):
    further = ", ".join(f"{{name: {name}, show: live}}" for name in ("log_loss", "brier")[:live])
    text = f"metric: roc_auc\nmetrics: [{further}]\naccounts: 2\n"
    board = boards.create(read_folder(write_board(tmp_path / "several", text)))
    with pytest.raises(InvalidSetting, match=remedy):
        board.amendments.amend(organiser, {"visibility": "frozen"})


def test_live_metrics_count_as_more_ladders_and_accounts():
    text = "slug: a\nmetric: roc_auc\nsubmissions: 100\nteams: 5\n"
    one = read_rules(text)
    two = read_rules(f"{text}metrics: [{{name: brier, show: live}}, log_loss]\n")
    assert (one.ladders, one.attacker_accounts) == (5, 2)
    assert (two.ladders, two.attacker_accounts, two.answers) == (10, 4, 2)
    assert two.mechanism_for(1000) == lb.GrowingLadder.calibrated(
        n=1000, questions=200, teams=10, accounts=4, scale="model"
    )


@pytest.mark.parametrize(("live", "accounts"), [("close", 2), ("live", 2)])
def test_an_attacker_is_described_by_teams_not_by_ladders(tmp_path, live, accounts):
    text = f"metric: roc_auc\nmetrics: [{{name: brier, show: {live}}}]\naccounts: {accounts}\n"
    folder = read_folder(write_board(tmp_path / "several", text))
    rules, score = folder.rules, BaselineScore(0.5, 0.01, zero_one=False)
    lines = describe_board_resolution(rules, rules.mechanism_for(400), 400, score)
    assert any(line.startswith("An attacker with 2 of 4 teams could") for line in lines)


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
def test_certificates_of_several_live_metrics_share_beta(boards, join, submit, tmp_path):
    highs = []
    for name, text in {
        "one": "metric: accuracy\n",
        "two": "metric: accuracy\nmetrics: [{name: f1_macro, show: live}]\n",
    }.items():
        path = write_board(tmp_path / name, text.replace("slug: several", ""))
        rules = (path / "board.yaml").read_text().replace("slug: several", f"slug: {name}")
        mechanism = "mechanism: {name: ladder, step: 0.01}\n"
        (path / "board.yaml").write_text(rules + mechanism)
        board = boards.create(read_folder(path))
        ada = join(boards, board, "Ada")[0]
        submit(board, ada, file_of((BOB > 0.5).astype(int)))
        certificate = board.as_seen_by(ada).certificate()
        assert certificate.beta == 0.05
        highs.append(certificate.nats)
    # Twice the questions, another change, and half of beta: ln 2 and more.
    assert highs[1] - highs[0] > np.log(2)


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
def test_two_worlds_look_alike_to_every_metric(boards, join, submit, tmp_path):
    """Worlds that differ in labels, not in what the ladders release, answer the same."""
    answers = []
    for name, flipped in {"first": 0, "second": 1}.items():
        path = write_board(
            tmp_path / name,
            LIVE.replace("roc_auc", "brier").replace(", {name: brier, title: Brier}", ""),
        )
        rules = (path / "board.yaml").read_text().replace("slug: several", f"slug: {name}")
        (path / "board.yaml").write_text(
            rules + "mechanism: {name: ladder, step: 0.2, grid: 0.2}\n"
        )
        lines = (path / "holdout.csv").read_text()
        if flipped:  # one label, which moves no risk across the grid
            lines = lines.replace("r6,0,public", "r6,1,public")
            assert "r6,1,public" in lines
        (path / "holdout.csv").write_text(lines)
        board = boards.create(read_folder(path))
        ada = join(boards, board, "Ada")[0]
        outputs = []
        for values in (ADA, BOB, EVE, ADA * 0.5):
            answer = submit(board, ada, file_of(values)).describe()
            outputs.append(
                {key: answer[key] for key in ("released", "improved", "reason", "metrics")}
            )
        public = board.as_seen_by(ada).leaderboard()["rows"][0]
        outputs.append((public["released"], public["metrics"]))
        answers.append(outputs)
    assert answers[0] == answers[1]


def weighted_auc(labels, predictions):
    """Return the area under the ROC curve, twice as heavy below a recall of 0.4 (as in alaska2)."""
    order = np.argsort(-predictions, kind="stable")
    recall = np.concatenate([[0], np.cumsum(labels[order]) / labels.sum()])
    fall_out = np.concatenate([[0], np.cumsum(1 - labels[order]) / (1 - labels).sum()])
    areas = [
        np.trapezoid(np.clip(recall, *ends) - ends[0], fall_out) for ends in [(0, 0.4), (0.4, 1)]
    ]
    return (2 * areas[0] + areas[1]) / (2 * 0.4 + 0.6)


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
def test_any_function_of_all_examples_may_decide_at_the_close(
    boards, join, submit, organiser, tmp_path
):
    function = f"{__name__}:weighted_auc"
    text = f"metric: roc_auc\nmetrics: [{{name: '{function}', whole: true, title: wAUC}}]\n"
    path = write_board(tmp_path / "several", f"{text}final_metric: wAUC\n")
    files = {"Ada": [ADA], "Bob": [BOB], "Eve": [EVE]}
    board, ranking = final_rows(boards, join, submit, organiser, path, files)
    for row, values in zip(ranking["rows"], (ADA, BOB, EVE), strict=True):
        assert row["score"] == pytest.approx(weighted_auc(LABELS[PRIVATE], values[PRIVATE]))
        assert (row["low"], row["high"], row["ranks"]) == (0, 1, None)
    write_board_bundle(board, tmp_path / "bundle", labels=True, submissions=True)
    assert verify_bundle(tmp_path / "bundle").finals is not None
    with pytest.raises(InvalidRules, match="for the close only"):
        read_rules(text.replace("whole: true", "whole: true, show: live") + RULES)
    with pytest.raises(InvalidRules, match="for the close only"):
        read_rules(f"metric: {{name: '{function}', whole: true}}\n{RULES}")
    with pytest.raises(InvalidSetting, match="boards use one at the close"):
        lb.Holdout.create(
            tmp_path / "a.db", LABELS, questions=5, metric=lb.metric(function, whole=True)
        )


SUM = "metric: {sum: {accuracy: 0.7, brier: 0.3}}\n"


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
def test_a_weighted_sum_decides_the_leaderboard_and_is_verified(
    boards, join, submit, organiser, tmp_path
):
    text = f"{SUM}metrics: [roc_auc, {{sum: {{log_loss: 1, brier: 3}}, title: Costs}}]\n"
    path = write_board(tmp_path / "sum", text)
    board, ranking = final_rows(
        boards, join, submit, organiser, path, {"Ada": [ADA], "Bob": [BOB], "Eve": [EVE]}
    )
    title = "0.7 (1 - accuracy) + 0.3 brier"
    assert ranking["metric"] == title
    assert ranking["display"]["direction"] == "lower"
    for row in ranking["rows"]:
        values = {"Ada": ADA, "Bob": BOB, "Eve": EVE}[row["team"]["name"]]
        wrong = np.mean((values > 0.5)[PRIVATE] != LABELS[PRIVATE])
        brier = np.mean((values - LABELS)[PRIVATE] ** 2)
        assert row["score"] == pytest.approx(0.7 * wrong + 0.3 * brier, abs=1e-6)
        costs = value("log_loss", values) / 4 + 0.75 * brier
        assert row["metrics"][1]["score"] == pytest.approx(costs, abs=1e-3)  # it has a clip
    scores = [row["score"] for row in ranking["rows"]]
    assert scores == sorted(scores)
    write_board_bundle(board, tmp_path / "bundle", labels=True, submissions=True)
    result = verify_bundle(tmp_path / "bundle")
    assert result.releases == 3
    assert result.finals is not None
    assert "3 questions" in run_second_verifier(tmp_path / "bundle")
    assert board.book.opening["loss"]["parts"][1] == {
        "name": "brier", "weight": 0.3, "classes": [0, 1]
    }  # fmt: skip


def test_a_weighted_sum_survives_its_description():
    rules = read_rules(RULES + SUM + "display: {direction: higher, name: Both}\n")
    assert type(rules).from_description(rules.describe()) == rules
    # 0.7 accuracy + 0.3 (1 - Brier)
    assert rules.display.metric_value(0.25) == 0.75


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metric: {sum: {accuracy: 1, roc_auc: 1}}\n", "metric: roc_auc cannot be part of"),
        (
            "metric: {sum: {accuracy: 1, mae: 1}}\n",
            r"try metric: {name: mae, range: \[0, 100\]}",
        ),
        ("metric: {sum: {acuracy: 1, brier: 1}}\n", "did you mean 'accuracy'"),
        ("metric: {sum: 1}\n", "is metrics with weights"),
        ("metric: brier\nmetrics: [{sum: {brier: 1}}]\n", r"metrics\[0\]: A weighted sum needs"),
    ],
)
def test_a_wrong_weighted_sum_is_refused(text, message):
    with pytest.raises(InvalidRules, match=message):
        read_rules(RULES + text)
