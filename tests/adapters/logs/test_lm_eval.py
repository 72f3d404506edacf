"""Samples files of lm-evaluation-harness, as a real run wrote them, and files that are not so."""

import json
import shutil

import pytest

import ladderboard as lb
from ladderboard.adapters.lm_eval import read_samples
from ladderboard.errors import InvalidPredictions, InvalidSetting, NoPerExampleLoss


@pytest.fixture
def folder(data, tmp_path):
    """A copy of what a run wrote."""
    return shutil.copytree(data / "lm_eval", tmp_path / "out")


@pytest.fixture
def sums(folder):
    (path,) = folder.glob("samples_sums_2*.jsonl")
    return path


@pytest.fixture
def written(folder):
    (path,) = folder.glob("samples_sums_written_*.jsonl")
    return path


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def change(path, how, name="alone.jsonl"):
    """Write changed rows to a file that has no results beside it."""
    told = rows(path)
    told = how(told) or told
    changed = path.with_name(name)
    changed.write_text("".join(f"{json.dumps(each)}\n" for each in told))
    return changed


def test_the_scores_of_documents(sums):
    scores = read_samples(sums)
    told = rows(sums)
    assert scores.values.tolist() == [each["acc"] for each in told]
    assert scores.ids == tuple(f"{each['doc_hash']}-{each['target_hash']}" for each in told)
    assert len(set(scores.ids)) == len(scores) == scores.dataset_size == 12
    results = json.loads(next(sums.parent.glob("results_*")).read_text())
    assert scores.mean == results["results"]["sums"]["acc,none"]
    assert (scores.task, scores.metric) == ("sums", "acc")
    assert scores.model == results["model_name"]
    assert read_samples(sums, metric="acc_norm", filter="none").metric == "acc_norm"


def test_a_filter_is_named_where_there_are_several(written):
    with pytest.raises(InvalidSetting, match=r"several filters \('strict', 'loose'\); name one"):
        read_samples(written, metric="exact_match")
    loose = read_samples(written, metric="exact_match", filter="loose")
    strict = read_samples(written, metric="exact_match", filter="strict")
    assert loose.ids == strict.ids
    assert (loose.mean, strict.mean) == (pytest.approx(1 / 3), 0)
    with pytest.raises(InvalidSetting, match=r"no filter 'none' in .*; there is 'strict', 'loose'"):
        read_samples(written, metric="exact_match", filter="none")


def test_the_same_documents_whatever_their_order(sums):
    turned = read_samples(change(sums, lambda told: told[::-1]))
    assert turned.ids[::-1] == read_samples(sums).ids
    assert (turned.task, turned.model, turned.dataset_size) == ("", "", None)


def test_a_metric_that_is_not_there(sums):
    for name in ("exact_match", "doc_id", "doc_hash"):
        with pytest.raises(InvalidSetting, match=rf"no metric '{name}' .*'acc', 'acc_norm'"):
            read_samples(sums, metric=name)


def test_metrics_that_are_no_means_of_scores(written):
    with pytest.raises(NoPerExampleLoss, match=r"'bleu' is not a mean .* such as acc"):
        read_samples(written, metric="bleu", filter="loose")

    def renamed(told):
        for each in told:
            each["metrics"] = ["f1"]
            each["f1"] = [0, 1]  # what its f1 keeps of a document: the answer and what was said

    with pytest.raises(NoPerExampleLoss, match="'f1' is not a mean"):
        read_samples(change(written, renamed), metric="f1", filter="loose")


def test_a_rate_of_errors_is_no_score_whatever_its_values(sums):
    def renamed(told):
        for each in told:
            each["metrics"] = ["wer"]
            each["wer"] = 0.25

    with pytest.raises(NoPerExampleLoss, match="'wer' is not a mean of a score"):
        read_samples(change(sums, renamed), metric="wer")


@pytest.mark.parametrize(
    ("told", "refused"),
    [
        ({"aggregation": "median"}, "'acc' is not a mean .*the task takes their 'median'"),
        ({"higher_is_better": False}, "'acc' is better when lower"),
    ],
)
def test_the_results_beside_tell_what_a_metric_is(sums, told, refused):
    (results,) = sums.parent.glob("results_*")
    content = json.loads(results.read_text())
    content["configs"]["sums"]["metric_list"][0].update(told)
    content["higher_is_better"]["sums"]["acc"] = told.get("higher_is_better", True)
    results.write_text(json.dumps(content))
    with pytest.raises(InvalidSetting, match=refused):
        read_samples(sums)
    assert len(read_samples(sums, metric="acc_norm")) == 12


def test_a_file_that_lost_its_end(sums):
    text = sums.read_text()
    lines = text.splitlines(keepends=True)
    sums.write_text("".join(lines[:-1]))
    with pytest.raises(InvalidPredictions, match=r"evaluated 12 documents .* and the file has 11"):
        read_samples(sums)
    sums.write_text(text[:-20])
    with pytest.raises(InvalidPredictions, match=r"Line 12 of .* is not JSON; the file seems"):
        read_samples(sums)
    sums.write_text("")
    with pytest.raises(InvalidPredictions, match="is empty"):
        read_samples(sums)


def test_a_limit_is_told_and_the_guards_ids_decide(sums, tmp_path):
    (results,) = sums.parent.glob("results_*")
    content = json.loads(results.read_text())
    content["n-samples"]["sums"]["effective"] = 5
    whole = read_samples(sums)
    results.write_text(json.dumps(content))
    sums.write_text("".join(sums.read_text().splitlines(keepends=True)[:5]))
    limited = read_samples(sums)
    assert (len(limited), limited.dataset_size) == (5, 12)
    settings = {"loss": "score", "questions": 5, "mechanism": "exact"}
    guard = lb.Holdout.create(tmp_path / "guard.db", ids=whole.ids, **settings)
    with pytest.raises(InvalidPredictions, match="Missing from the file: 7 ids"):
        limited.ask(guard)
    assert whole.ask(guard).released == 1 - whole.mean


@pytest.mark.parametrize("results", ["", "[]", "[" * 100_000, '{"n-samples": 3, "configs": []}'])
def test_results_that_say_nothing_are_left_alone(sums, results):
    (path,) = sums.parent.glob("results_*")
    path.write_text(results)
    assert len(read_samples(sums)) == 12


def test_documents_that_are_repeated_or_have_no_score_are_named(sums):
    log = change(sums, lambda told: [*told, told[3], told[7]])
    with pytest.raises(InvalidPredictions, match=r"in the file: 2 documents \('3', '7'\)"):
        read_samples(log)

    def spoil(told):
        told[0]["acc"], told[1]["acc"], told[2]["acc"] = float("nan"), 1.5, "1"
        told[3]["metrics"] = ["acc_norm"]
        told[4]["acc"] = None

    with pytest.raises(InvalidPredictions) as refused:
        read_samples(change(sums, spoil))
    found = [(problem.code, problem.ids) for problem in refused.value.problems]
    assert found == [("unscored", ("0", "3", "4")), ("not_a_score", ("1", "2"))]


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "3",
        "{}",
        '{"doc_id": 0, "doc_hash": "a", "target_hash": "b", "metrics": ["acc"], "acc": 1}',
        '{"doc_id": 0, "doc_hash": "a", "target_hash": "b", "filter": "", "metrics": 3, "acc": 1}',
        "[" * 100_000,
        "\x00\xff",
    ],
)
def test_what_is_no_samples_file(tmp_path, line):
    path = tmp_path / "samples.jsonl"
    path.write_bytes(line.encode("latin-1") + b"\n")
    with pytest.raises(InvalidPredictions, match="Line 1 of"):
        read_samples(path)


def test_a_folder_is_not_a_file(folder):
    with pytest.raises(InvalidSetting, match=r"is a folder; give .*It contains 'samples_sums_2"):
        read_samples(folder)
    with pytest.raises(InvalidSetting, match="There is no file"):
        read_samples(folder / "samples_other.jsonl")
