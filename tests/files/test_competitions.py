"""Submissions as 75 competitions have them are read as they are, with columns declared or guessed.

Each line has the competition, its metric here (None with the reason below), the columns of a
submission, two labels and two predictions. Values are made up.
"""

from pathlib import Path

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.errors import InvalidPredictions
from ladderboard.files import DeclaredColumns, Roster, guess_columns, read_holdout, read_predictions

SETS, MASKS = {"of": "sets"}, {"of": "masks"}
RANGE = {"range": (0, 1000)}
TWO = {"classes": ["a", "b"]}
BINARY = {"classes": [0, 1]}
COMPETITIONS = [
    ("AI4Code", "order_correlation", {}, "id,cell_order", ["x y z", "z y"], ["x z y", "z y"]),
    ("aerial-cactus", "auc", BINARY, "id,has_cactus", [0, 1], [0.25, 0.5]),
    ("alaska2", None, {}, "Id,Label", [0, 1], [1.25, -2.25]),
    ("aptos2019", "qwk", {"classes": [0, 1, 2]}, "id_code,diagnosis", [0, 2], [0, 1]),
    ("billion-word", "levenshtein", {}, 'id,"sentence"', ["a b , c", "d"], ["a b, c", "e d"]),
    ("bms-molecular", "levenshtein", {}, "image_id,InChI", ["InChI=1S/H2", "x"], ["InChI=1", "y"]),
    ("cassava", "accuracy", {}, "image_id,label", [4, 1], [4, 4]),
    ("cdiscount", "accuracy", {}, "_id,category_id", [1000000055, 7], [1000000055, 1000016018]),
    ("chaii", "word_jaccard", {}, "id,PredictionString", ["1", "two words"], ["1", "2 string"]),
    ("champs-scalar-coupling", None, {}, "id,scalar_coupling_constant", [0.5, 1], [0.0, 0.5]),
    ("denoising", "rmse", RANGE, "id,value", [1, 0], [1, 1]),
    ("detecting-insults", "auc", BINARY, "Insult,Date,Comment", [0, 1], [0.25, 0.5]),
    ("dog-breed", "multi-class log loss", TWO, "id,a,b", ["a", "b"], [(0.5, 0.5), (0.25, 0.75)]),
    ("dogs-vs-cats", "log loss", BINARY, "id,label", [0, 1], [0.5, 0.25]),
    ("facebook-iii", "micro-F1", SETS, "Id,Tags", ["c++ php", "php"], ["c++ javaScript", "php"]),
    ("freesound", "lwlrap", {}, "fname,a,b", [(1, 0), (0, 1)], [(0.5, 0.25), (0.25, 0.5)]),
    ("google-quest", "spearman", {}, "qa_id,a,b", [(0.5, 1), (1, 0)], [(0.5, 0.5), (0.25, 0.75)]),
    ("contrails", "global_dice", {}, "record_id,encoded_pixels", ["1 1 5 1", "-"], ["1 2", "-"]),
    ("h-and-m", "map@12", {}, "customer_id,prediction", ["0706016001", "1 2"],
     ["0706016001 0706016002", "0706016001"]),
    ("herbarium-2020", "macro-F1", {"classes": [0, 27]}, "Id,Predicted", [0, 27], [0, 0]),
    ("herbarium-2021", "macro-F1", {"classes": [0, 27]}, "Id,Predicted", [0, 27], [27, 27]),
    ("herbarium-2022", "macro-F1", {"classes": [0, 27]}, "Id,Predicted", [0, 27], [0, 27]),
    ("histopathologic", "auc", BINARY, "id,label", [0, 1], [0, 0]),
    ("hms-harmful", "kl_divergence", {}, "eeg_id,seizure_vote,lpd_vote", [(0.5, 0.5), (1, 0)],
     [(0.5, 0.5), (0.25, 0.75)]),
    ("hotel-id", "MAP@5", {}, "image,hotel_id", ["36363", "1"], ["36363 53586", "36363"]),
    ("hubmap-kidney", "dice", {}, "id,predicted", ["1 1 5 1", ""], ["1 2", ""]),
    ("icecube", "mean angular error", {}, "event_id,azimuth,zenith", [(1, 1), (2, 1)],
     [(1, 1.5), (1, 1)]),
    ("imet-2020", "micro-F1", SETS, "id,attribute_ids", ["0 1 2", "0"], ["0 2", "0"]),
    ("inaturalist-2019", "hit_error", {"k": 1}, "id,predicted", ["71", "729"],
     ["71 108 339", "333 729 838"]),
    ("iwildcam-2019", "macro-F1", {"classes": [1, 5]}, "Id,Category", [1, 5], [1, 1]),
    ("iwildcam-2020", "accuracy", {}, "Id,Category", [1, 5], [1, 5]),
    ("jigsaw-toxic", "AUC, column mean", {}, "id,toxic,severe_toxic,obscene",
     [(0, 1, 0), (1, 0, 1)], [(0.5, 0.5, 0.5), (0.25, 0.5, 0.5)]),
    ("jigsaw-unintended-bias", None, {}, "id,prediction", [0, 1], [0.0, 0.25]),
    ("kuzushiji", "box_f1", {}, "image_id,labels", ["U+003F 0 0 5 5", ""], ["U+003F 1 1", ""]),
    ("leaf", "multi-class log loss", TWO, "id,a,b", ["a", "b"], [(0.5, 0.5), (0.25, 0.75)]),
    ("essay-scoring-2", "QWK", {"classes": [1, 2, 3]}, "essay_id,score", [1, 3], [3, 3]),
    ("lmsys", "log loss", {"classes": ["winner_model_a", "winner_model_b", "winner_tie"]},
     "id,winner_model_a,winner_model_b,winner_tie", ["winner_tie", "winner_model_a"],
     [(0.33, 0.33, 0.34), (0.5, 0.25, 0.25)]),
    ("mlsp-2013-birds", "auc", BINARY, "Id,Probability", [0, 1], [0, 0.5]),
    ("multi-modal-gesture", "wer", {}, "Id,Sequence", ["2 4 5", "1 2"], ["2 5", "1 2"]),
    ("taxi-fare", "rmse", RANGE, "key,fare_amount", [11.5, 12], [11.00, 12.05]),
    ("nfl-contact", "mcc", BINARY, "contact_id,contact", [0, 1], [0, 1]),
    ("nomad2018", "mcrmsle", RANGE, "id,formation_energy_ev_natom,bandgap_energy_ev",
     [(0.1, 1.5), (0.25, 2)], [(0.1, 1.8), (0.1, 1.8)]),
    ("osic-pulmonary-fibrosis", None, {}, "Patient_Week,FVC,Confidence", [2000, 2500],
     [(2000, 100), (2000, 100)]),
    ("pawpularity", "rmse", RANGE, "Id,Pawpularity", [50, 60], [99.24, 61.7]),
    ("plant-2020", "AUC, column mean", {}, "image_id,healthy,rust", [(0, 1), (1, 0)],
     [(0.5, 0.5), (0.25, 0.5)]),
    ("plant-2021", "micro-F1", SETS, "image,labels", ["healthy", "rust"], ["healthy", "rust scab"]),
    ("volcanic", "mae", RANGE, "segment_id,time_to_eruption", [1, 3], [1, 2]),
    ("pizza", "auc", BINARY, "request_id,requester_received_pizza", [0, 1], [0, 0]),
    ("ranzcr", "AUC, column mean", {}, "StudyInstanceUID,ETT - Abnormal,ETT - Normal",
     [(0, 1), (1, 0)], [(0, 0), (1, 0)]),
    ("rsna-2022", "weighted log loss", BINARY, "row_id,fractured", [0, 1], [0, 0.5]),
    ("rsna-breast", "probabilistic F1", {}, "prediction_id,cancer", [0, 1], [0, 0.5]),
    ("rsna-miccai", "auc", BINARY, "BraTS21ID,MGMT_value", [0, 1], [0.5, 0.25]),
    ("seti", "auc", BINARY, "id,target", [0, 1], [0.5, 0.5]),
    ("siim-covid19", None, {}, "Id,PredictionString", ["negative", "none"],
     ["negative 1 0 0 1 1", "none 1 0 0 1 1"]),
    ("siim-isic", "auc", BINARY, "image_name,target", [0, 1], [0.7, 0.9]),
    ("smartphone-decimeter", None, {},
     "tripId,UnixTimeMillis,LatitudeDegrees,LongitudeDegrees",
     [(37.9, -86.4), (37.8, -86.4)], [(37.9, -86.4), (37.9, -86.4)]),
    ("spooky-author", "multi-class log loss", TWO, "id,a,b", ["a", "b"], [(0.5, 0.5), (1, 0)]),
    ("stanford-covid", "mcrmse", RANGE, "id_seqpos,reactivity,deg_Mg_pH10", [(0.5, 1), (1, 2)],
     [(0.1, 0.3), (0.3, 0.2)]),
    ("statoil", "log loss", BINARY, "id,is_iceberg", [0, 1], [0.5, 0.4]),
    ("tps-dec-2021", "accuracy", {}, "Id,Cover_Type", [2, 1], [2, 2]),
    ("tps-may-2022", "auc", BINARY, "id,target", [0, 1], [0.65, 0.97]),
    ("tensorflow-speech", "accuracy", {}, "fname,label", ["silence", "left"], ["silence", "up"]),
    ("tensorflow2-qa", "micro-F1", SETS, "example_id,PredictionString", ["6:18", ""], ["6:18", ""]),
    ("text-normalization-en", "accuracy", {}, "id,after", ["the", "quick"], ["the", "slow"]),
    ("text-normalization-ru", "accuracy", {}, "id,after", ["в", "Азии"], ["в", "Европе"]),
    ("tgs-salt", "iou_thresholds", {}, "id,rle_mask", ["1 1", ""], ["1 1", ""]),
    ("right-whale", "auc", BINARY, "clip,probability", [0, 1], [0, 0]),
    ("tweet-sentiment", "word_jaccard", {}, "textID,selected_text", ["very good", "yes"],
     ["good", "it was, yes"]),
    ("us-patent", "pearson", {}, "id,score", [0, 0.5], [0, 0.25]),
    ("uw-madison", None, MASKS, "id,class,predicted", ["1 1 5 1", ""], ["1 1", ""]),
    ("ventilator", "mae", RANGE, "id,pressure", [20, 22], [20, 23]),
    ("vesuvius", "f0.5", {**MASKS, "average": "micro"}, "Id,Predicted", ["1 1 5 1", "10 5"],
     ["1 1", "10 20"]),
    ("vinbigdata", None, {}, "image_id,PredictionString", ["14", "11"],
     ["14 1 0 0 1 1", "11 0.5 100 100 200 200"]),
    ("whale", "MAP@5", {}, "Image,Id", ["w_1", "new_whale"], ["new_whale w_1", "new_whale"]),
    ("3d-object-detection", None, {}, "Id,PredictionString", ["", "car"], ["", "1.0 2742.15 car"]),
]  # fmt: skip
# Their metric is not built in; a file is read with a metric that takes the same cells.
OTHER_METRICS = {
    "alaska2": ("auc", BINARY, "weighted by regions of the ROC curve"),
    "champs-scalar-coupling": ("mae", RANGE, "a mean over groups of log MAE"),
    "jigsaw-unintended-bias": ("auc", BINARY, "a mean over AUCs of subgroups"),
    "osic-pulmonary-fibrosis": ("mcrmse", {"range": (0, 9000)}, "two predictions for one label"),
    "siim-covid19": ("map_at_k", {}, "boxes are matched across images"),
    "smartphone-decimeter": ("mcrmse", {"range": (-180, 180)}, "percentiles by trip"),
    "uw-madison": ("dice", {}, "a Hausdorff distance needs the images' sizes"),
    "vinbigdata": ("map_at_k", {}, "boxes are matched across images"),
    "3d-object-detection": ("map_at_k", {}, "boxes in space"),
}
NOT_READ = {"osic-pulmonary-fibrosis"}  # its labels have one column, its predictions two
ID_COLUMNS = {
    "detecting-insults": ["Comment"],
    "smartphone-decimeter": ["tripId", "UnixTimeMillis"],
    "uw-madison": ["id", "class"],
}


def metric_of(name, metric, settings):
    if metric is None:
        metric, settings, _ = OTHER_METRICS[name]
    return lb.metric(metric.replace("AUC, column mean", "mean_auc")
                     .replace("weighted log loss", "log loss"), **settings)  # fmt: skip


def quote(value):
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if "," in text else text


def write(header, id_columns, values, predictions):
    """Return a file: the columns of the header with ids or values; others are constant."""
    names = [name.strip('"') for name in header.split(",")]
    ids = {name: [f"{name[0]}1", f"{name[0]}2"] for name in id_columns}
    if len(id_columns) > 1:  # only the pair is unique
        ids[id_columns[0]] = ["7", "7"]
    lines = [header]
    for row, cells in enumerate(values):
        queue = list(cells) if isinstance(cells, tuple) else [cells]
        line = []
        for name in names:
            if name in ids:
                line.append(ids[name][row])
            elif name in predictions:
                line.append(quote(queue.pop(0)))
            else:
                line.append("2012")
        lines.append(",".join(line))
    return "\n".join(lines).encode() + b"\n"


READ = [row for row in COMPETITIONS if row[0] not in NOT_READ]


@pytest.mark.parametrize("competition", READ, ids=lambda row: row[0])
def test_a_submission_is_accepted_as_it_is(competition):
    name, metric, settings, header, labels, predictions = competition
    loss = metric_of(name, metric, settings).loss
    names = [part.strip('"') for part in header.split(",")]
    id_columns = ID_COLUMNS.get(name, names[:1])
    value_columns = [part for part in names if part not in id_columns and part != "Date"]
    submission = write(header, id_columns, predictions, value_columns)
    width = len(value_columns) if len(value_columns) > 1 else None
    expected = loss.columns(kind="text", width=width)
    sample = write(header, id_columns, [predictions[0]] * 2, value_columns)
    guessed, sentence = guess_columns(sample, width=None if expected.form != "one" else 1)
    assert guessed == DeclaredColumns(tuple(id_columns), tuple(value_columns))
    assert all(repr(part) in sentence for part in id_columns)
    label_columns = value_columns if isinstance(labels[0], tuple) else value_columns[:1]
    solution_header = ",".join([*id_columns, *label_columns])
    declared = DeclaredColumns(guessed.id, guessed.prediction, tuple(label_columns))
    kind = loss.label_kind
    table = read_holdout(
        write(solution_header, id_columns, labels, label_columns),
        kind=kind, columns=declared, empty=expected.empty,
    )  # fmt: skip
    roster = Roster.of(table, columns=declared)
    shuffled = b"\n".join([submission.splitlines()[line] for line in (0, 2, 1)]) + b"\n"
    read = read_predictions(submission, roster, loss)
    assert np.array_equal(read, read_predictions(shuffled, roster, loss))
    losses = loss.score(loss.read_labels(table.labels), read)
    assert losses.shape == (2,)
    assert np.isfinite(losses).all()


# These are functions of labels and predictions, so a board computes them at the close.
AT_CLOSE = {"alaska2", "siim-covid19", "uw-madison", "vinbigdata", "3d-object-detection"}


def test_how_many_metrics_are_there_by_name():
    assert len(COMPETITIONS) == 75
    named = [row for row in COMPETITIONS if row[1] is not None]
    assert len(named) >= 66
    assert set(OTHER_METRICS) >= AT_CLOSE
    assert len(named) + len(AT_CLOSE) >= 70
    page = (Path(__file__).parents[2] / "docs/explanation/metrics.md").read_text()
    table = page.partition("## Metrics of competitions that are not there by name")[2]
    for name, (_, _, reason) in OTHER_METRICS.items():
        where = "at the close" if name in AT_CLOSE else "not here"
        assert f"| {name} | {reason} | {where} |" in table
    assert {row[0] for row in COMPETITIONS if row[1] is None} == set(OTHER_METRICS)
    assert len(READ) >= 72


def test_a_composite_id_joins_by_all_its_columns():
    declared = DeclaredColumns.read({"id": ["trip", "time"], "prediction": "x"})
    holdout = b"trip,time,x\na,1,10\na,2,20\nb,1,30\n"
    table = read_holdout(holdout, columns=declared)
    assert table.ids == ["a|1", "a|2", "b|1"]
    roster = Roster.of(table, columns=declared)
    loss = lb.loss("mae", range=(0, 100))
    read = read_predictions(b"time,x,trip\n1,3,b\n2,2,a\n1,1,a\n", roster, loss)
    assert read.tolist() == [1, 2, 3]
    with pytest.raises(InvalidPredictions, match=r"1 missing id: 'b\|1'"):
        read_predictions(b"time,x,trip\n2,2,a\n1,1,a\n", roster, loss)


def test_a_declared_column_that_is_missing_is_named():
    roster = Roster.of(["a", "b"], columns=DeclaredColumns(("image",), ("label",)))
    loss = lb.loss("zero_one", classes=["cat", "dog"])
    with pytest.raises(InvalidPredictions, match="There is no column 'image', which holds the ids"):
        read_predictions(b"id,label\na,cat\nb,dog\n", roster, loss)
    with pytest.raises(InvalidPredictions, match="no column 'label', which holds the predictions"):
        read_predictions(b"image,x\na,cat\nb,dog\n", roster, loss)
    with pytest.raises(InvalidPredictions) as refused:
        read_predictions(b"Bild,Score\na,cat\nb,dog\n", roster, loss)
    assert [problem.message for problem in refused.value.problems] == [
        "There is no column 'image', which holds the ids.",
        "There is no column 'label', which holds the predictions; the columns are 'Bild', 'Score'.",
    ]
    with pytest.raises(InvalidPredictions, match="did you mean 'cat'"):
        read_predictions(b"image,label\na,Cat\nb,dog\n", roster, loss)
    read = read_predictions(b"Label,IMAGE,note\ndog,b,x\ncat,a,y\n", roster, loss)
    assert read.tolist() == ["cat", "dog"]


def test_the_guess_says_what_is_not_used():
    sample = b"Insult,Date,Comment\n0,2012,aa\n0,2012,bb\n"
    declared, sentence = guess_columns(sample)
    assert declared.describe() == {"id": ["Comment"], "prediction": ["Insult"]}
    assert sentence == (
        "Guessed from the sample submission: ids are in 'Comment', predictions in 'Insult'; "
        "'Date' is not used."
    )


@pytest.mark.parametrize(
    "columns", [{"ids": "x"}, {"id": []}, {"id": ["a", "A"]}, {"prediction": 3}, "id"]
)
def test_wrong_declarations_are_refused(columns):
    with pytest.raises(lb.errors.InvalidSetting, match="columns"):
        DeclaredColumns.read(columns)
