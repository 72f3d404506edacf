"""Samples files of a real run of lm-evaluation-harness, and files that were changed."""

import json
import shutil

import pytest

import ladderboard as lb
from ladderboard.adapters.lm_eval import read_samples
from ladderboard.errors import InvalidPredictions, InvalidSetting, NoPerExampleLoss


@pytest.fixture
def folder(data, tmp_path):
    """A copy of a run's files."""
    return shutil.copytree(data / "lm_eval", tmp_path / "out")


@pytest.fixture
def sums(folder):
    (path,) = folder.glob("samples_sums_2*.jsonl")
    return path


@pytest.fixture
def generation_samples(folder):
    (path,) = folder.glob("samples_sums_written_*.jsonl")
    return path


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def change(path, edit, name="alone.jsonl"):
    """Write changed rows to a file without a results file in its folder."""
    documents = rows(path)
    documents = edit(documents) or documents
    changed = path.with_name(name)
    changed.write_text("".join(f"{json.dumps(document)}\n" for document in documents))
    return changed


def test_scores_and_ids_of_documents(sums):
    scores = read_samples(sums)
    documents = rows(sums)
    assert scores.values.tolist() == [document["acc"] for document in documents]
    assert scores.ids == tuple(
        f"{document['doc_hash']}-{document['target_hash']}" for document in documents
    )
    assert len(set(scores.ids)) == len(scores) == scores.dataset_size == 12
    results = json.loads(next(sums.parent.glob("results_*")).read_text())
    assert scores.mean == results["results"]["sums"]["acc,none"]
    assert (scores.task, scores.metric) == ("sums", "acc")
    assert scores.model == results["model_name"]
    assert read_samples(sums, metric="acc_norm", filter="none").metric == "acc_norm"


def test_a_filter_is_required_if_there_are_several(generation_samples):
    with pytest.raises(InvalidSetting, match=r"several filters \('strict', 'loose'\); name one"):
        read_samples(generation_samples, metric="exact_match")
    loose = read_samples(generation_samples, metric="exact_match", filter="loose")
    strict = read_samples(generation_samples, metric="exact_match", filter="strict")
    assert loose.ids == strict.ids
    assert (loose.mean, strict.mean) == (pytest.approx(1 / 3), 0)
    with pytest.raises(
        InvalidSetting, match=r"no filter 'none' in .*; choose from 'strict', 'loose'"
    ):
        read_samples(generation_samples, metric="exact_match", filter="none")


def test_ids_do_not_depend_on_the_order(sums):
    turned = read_samples(change(sums, lambda documents: documents[::-1]))
    assert turned.ids[::-1] == read_samples(sums).ids
    assert (turned.task, turned.model, turned.dataset_size) == ("", "", None)


def test_an_unknown_metric_is_refused(sums):
    for name in ("exact_match", "doc_id", "doc_hash"):
        with pytest.raises(InvalidSetting, match=rf"no metric '{name}' .*'acc', 'acc_norm'"):
            read_samples(sums, metric=name)


def test_metrics_that_are_not_means_are_refused(generation_samples):
    with pytest.raises(NoPerExampleLoss, match=r"'bleu' is not a mean .* such as acc"):
        read_samples(generation_samples, metric="bleu", filter="loose")

    def renamed(documents):
        for document in documents:
            document["metrics"] = ["f1"]
            document["f1"] = [0, 1]  # what its f1 keeps of a document: the answer and what was said

    with pytest.raises(NoPerExampleLoss, match="'f1' is not a mean"):
        read_samples(change(generation_samples, renamed), metric="f1", filter="loose")


def test_an_error_rate_is_refused_even_with_valid_values(sums):
    def renamed(documents):
        for document in documents:
            document["metrics"] = ["wer"]
            document["wer"] = 0.25

    with pytest.raises(NoPerExampleLoss, match="'wer' is not a mean of a score"):
        read_samples(change(sums, renamed), metric="wer")


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"aggregation": "median"}, "'acc' is not a mean .*the task takes their 'median'"),
        ({"higher_is_better": False}, "'acc' is better when lower"),
    ],
)
def test_the_results_file_describes_the_metric(sums, changes, refused):
    (results,) = sums.parent.glob("results_*")
    content = json.loads(results.read_text())
    content["configs"]["sums"]["metric_list"][0].update(changes)
    content["higher_is_better"]["sums"]["acc"] = changes.get("higher_is_better", True)
    results.write_text(json.dumps(content))
    with pytest.raises(InvalidSetting, match=refused):
        read_samples(sums)
    assert len(read_samples(sums, metric="acc_norm")) == 12


def test_a_truncated_file_is_refused(sums):
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


def test_a_limited_run_is_refused_by_the_guard(sums, tmp_path):
    (results,) = sums.parent.glob("results_*")
    content = json.loads(results.read_text())
    content["n-samples"]["sums"]["effective"] = 5
    complete = read_samples(sums)
    results.write_text(json.dumps(content))
    sums.write_text("".join(sums.read_text().splitlines(keepends=True)[:5]))
    limited = read_samples(sums)
    assert (len(limited), limited.dataset_size) == (5, 12)
    settings = {"loss": "score", "questions": 5, "mechanism": "exact"}
    guard = lb.Holdout.create(tmp_path / "guard.db", ids=complete.ids, **settings)
    with pytest.raises(InvalidPredictions, match="7 missing ids"):
        limited.ask(guard)
    assert complete.ask(guard).released == 1 - complete.mean


@pytest.mark.parametrize("results", ["", "[]", "[" * 100_000, '{"n-samples": 3, "configs": []}'])
def test_an_empty_results_file_is_ignored(sums, results):
    (path,) = sums.parent.glob("results_*")
    path.write_text(results)
    assert len(read_samples(sums)) == 12


def test_repeated_and_unscored_documents_are_named(sums):
    log = change(sums, lambda documents: [*documents, documents[3], documents[7]])
    with pytest.raises(InvalidPredictions, match=r"in the file: 2 documents \('3', '7'\)"):
        read_samples(log)

    def spoil(documents):
        documents[0]["acc"], documents[1]["acc"], documents[2]["acc"] = float("nan"), 1.5, "1"
        documents[3]["metrics"] = ["acc_norm"]
        documents[4]["acc"] = None

    with pytest.raises(InvalidPredictions) as refused:
        read_samples(change(sums, spoil))
    problems = [(problem.code, problem.ids) for problem in refused.value.problems]
    assert problems == [("unscored", ("0", "3", "4")), ("not_a_score", ("1", "2"))]


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
def test_other_files_are_refused(tmp_path, line):
    path = tmp_path / "samples.jsonl"
    path.write_bytes(line.encode("latin-1") + b"\n")
    with pytest.raises(InvalidPredictions, match="Line 1 of"):
        read_samples(path)


def test_a_folder_is_refused(folder):
    with pytest.raises(InvalidSetting, match=r"is a folder; give .*It contains 'samples_sums_2"):
        read_samples(folder)
    with pytest.raises(InvalidSetting, match="There is no file"):
        read_samples(folder / "samples_other.jsonl")
