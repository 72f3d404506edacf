"""Boards of metrics that are not means, with columns as people have them."""

import json
from dataclasses import replace

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.board import read_folder, write_board_bundle
from ladderboard.errors import InvalidPredictions, InvalidRules
from ladderboard.verify import verify_bundle
from support.salts import SaltSource
from support.verify.second_verifier import run_second_verifier

RULES = """\
slug: {slug}
metric: {metric}
questions: 200
teams: 5
columns: {{id: image_id, prediction: target}}
"""


def write_board(folder, metric="roc_auc", rows=2_000, extra=""):
    folder.mkdir()
    (folder / "board.yaml").write_text(RULES.format(slug=folder.name, metric=metric) + extra)
    labels = (np.arange(rows) % 10 == 0).astype(int)
    split = np.where(np.arange(rows) // 10 % 4 < 3, "Public", "Private")
    lines = [f"img{i},{labels[i]},{split[i]}" for i in range(rows)]
    (folder / "holdout.csv").write_text("\n".join(["image_id,target,Usage", *lines]) + "\n")
    return labels


def submission(scores):
    lines = [f"img{i},{score:.6f}" for i, score in reversed(list(enumerate(scores)))]
    return "\n".join(["image_id,target", *lines]).encode() + b"\n"


def test_a_folder_with_a_metric_and_columns(tmp_path):
    write_board(tmp_path / "auc")
    folder = read_folder(tmp_path / "auc")
    assert folder.rules.loss.name == "roc_auc"
    assert folder.rules.loss.classes == (0, 1)
    assert (folder.rules.display.name, folder.rules.display.direction) == ("AUC", "higher")
    assert folder.rules.columns.describe() == {"id": ["image_id"], "prediction": ["target"]}
    described = folder.rules.describe()
    assert type(folder.rules).from_description(described) == folder.rules
    json.dumps(described)


def test_metric_and_loss_are_one_key(tmp_path):
    write_board(tmp_path / "two", extra="loss: accuracy\n")
    with pytest.raises(InvalidRules, match="two names for one key"):
        read_folder(tmp_path / "two")


def test_groups_and_weights_are_refused_for_a_statistic(tmp_path):
    write_board(tmp_path / "weighted")
    path = tmp_path / "weighted" / "holdout.csv"
    header, *lines = path.read_text().splitlines()
    weighted = [f"{line},{1 + number % 2}" for number, line in enumerate(lines)]
    path.write_text("\n".join([f"{header},weight", *weighted]) + "\n")
    with pytest.raises(InvalidRules, match="Leave out those columns, or take a mean"):
        read_folder(tmp_path / "weighted")


def test_a_split_without_positives_is_refused(tmp_path):
    write_board(tmp_path / "split")
    path = tmp_path / "split" / "holdout.csv"
    path.write_text(path.read_text().replace(",1,Private", ",0,Private"))
    with pytest.raises(InvalidRules, match="the private rows: roc_auc needs labels of both"):
        read_folder(tmp_path / "split")


def test_columns_that_are_wrong_are_named(tmp_path):
    write_board(tmp_path / "wrong")
    path = tmp_path / "wrong" / "board.yaml"
    path.write_text(path.read_text().replace("image_id", "picture"))
    with pytest.raises(InvalidRules, match="There is no column 'picture', which holds the ids"):
        read_folder(tmp_path / "wrong")
    path.write_text(path.read_text().replace("id: picture", "ids: picture"))
    with pytest.raises(InvalidRules, match="columns has no key 'ids'"):
        read_folder(tmp_path / "wrong")


def scores_with_auc(labels, auc, seed):
    """Return scores whose area under the ROC curve is about as wanted on the public rows."""
    noise = np.random.default_rng(seed).normal(size=len(labels))
    public = np.arange(len(labels)) // 10 % 4 < 3
    shifts = np.linspace(0, 3, 151)
    areas = [
        lb.metric("roc_auc").value(labels[public], (noise + shift * labels)[public])
        for shift in shifts
    ]
    return noise + shifts[np.abs(np.array(areas) - auc).argmin()] * labels


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
def test_a_board_with_auc_is_played_closed_and_verified(boards, join, submit, organiser, tmp_path):
    """Default protection, 5,010 public rows, 10% positives."""
    boards.environment = replace(boards.environment, salt=SaltSource(b"auc"))
    labels = write_board(tmp_path / "auc", rows=6_680, extra="finals: {selections: 1}\n")
    board = boards.create(read_folder(tmp_path / "auc"))
    ada, bob = (join(boards, board, name)[0] for name in ("Ada", "Bob"))
    for seed, auc in enumerate((0.70, 0.80, 0.85, 0.90)):
        answer = submit(board, ada, submission(scores_with_auc(labels, auc, seed))).describe()
        assert answer["improved"]
        assert answer["released"] == pytest.approx(auc, abs=0.015)
    submit(board, bob, submission(scores_with_auc(labels, 0.75, 9)))
    with pytest.raises(InvalidPredictions, match="There is no column 'image_id'"):
        submit(board, bob, b"id,target\nimg0,1\n")
    rows = board.as_seen_by(organiser).leaderboard()["rows"]
    assert [row["team"]["name"] for row in rows] == ["Ada", "Bob"]
    assert rows[0]["released"] > rows[1]["released"]
    assert board.as_seen_by(ada).history()["points"]
    certificate = board.as_seen_by(ada).certificate()
    assert not certificate.vacuous
    assert "a mean of 486 examples does (n_eff)" in certificate.assumptions[-1]
    board.closer.close(organiser)
    write_board_bundle(board, tmp_path / "bundle", labels=True, submissions=True)
    assert verify_bundle(tmp_path / "bundle").releases == 5
    assert "5 questions" in run_second_verifier(tmp_path / "bundle")
