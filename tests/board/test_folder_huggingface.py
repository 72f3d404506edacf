"""A Hugging Face competition's folder becomes a board's."""

import json

import pytest

from ladderboard.board import check_board, import_huggingface, read_folder
from ladderboard.errors import InvalidInput, InvalidRules

CONF = {
    "COMPETITION_ID": "org/my_digits",
    "EVAL_METRIC": "accuracy_score",
    "EVAL_HIGHER_IS_BETTER": 1,
    "SUBMISSION_LIMIT": 5,
    "SELECTION_LIMIT": 2,
    "END_DATE": "2099-05-25",
    "SUBMISSION_ID_COLUMN": "id",
    "SUBMISSION_COLUMNS": "id,pred",
}


@pytest.fixture
def source(tmp_path):
    """The private repository of a Hugging Face competition."""
    path = tmp_path / "old"
    path.mkdir()
    (path / "conf.json").write_text(json.dumps(CONF))
    rows = [
        f"{index},{index % 3 % 2},{'private' if index % 4 else 'public'}" for index in range(800)
    ]
    (path / "solution.csv").write_text("\ufeff" + "\r\n".join(["id,pred,split", *rows]) + "\r\n")
    (path / "COMPETITION_DESC.md").write_text("# Digits: *which*?\n\n- {not: yaml}\n")
    return path


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "board"
    path.mkdir()
    return path


def test_labels_metric_limits_and_text_are_imported(source, target):
    import_huggingface(source, target)
    folder = read_folder(target)
    rules = folder.rules
    assert (rules.title, rules.loss.name) == ("My digits", "zero_one")
    assert rules.description == "# Digits: *which*?\n\n- {not: yaml}\n"
    assert (rules.window.questions, rules.window.seconds) == (5, 86400)
    assert rules.finals.selections == 2
    assert rules.deadline is not None
    assert folder.public.sum() == 200
    assert folder.table.labels.tolist() == [index % 3 % 2 for index in range(800)]
    assert check_board(target).ok


def test_another_column_of_ids_and_several_of_answers(source, target):
    config = {**CONF, "SUBMISSION_ID_COLUMN": "name", "SUBMISSION_COLUMNS": "name, a,b"}
    config |= {"EVAL_METRIC": "hamming_loss", "COMPETITION_ID": ""}
    (source / "conf.json").write_text(json.dumps(config))
    rows = [f"n{index},0,1,{'private' if index % 2 else 'public'}" for index in range(20)]
    (source / "solution.csv").write_text("\n".join(["name,a,b,split", *rows]))
    import_huggingface(source, target)
    assert (target / "holdout.csv").read_text().startswith("name,a,b,split\nn0,0,1,public\n")
    columns = read_folder(target).rules.columns
    assert columns.describe() == {"id": ["name"], "prediction": ["a", "b"]}


def test_an_unsupported_metric_is_refused_with_a_suggestion(source, target):
    (source / "conf.json").write_text(json.dumps({**CONF, "EVAL_METRIC": "max_error"}))
    import_huggingface(source, target)
    with pytest.raises(InvalidRules, match="mae"):
        read_folder(target)


@pytest.mark.parametrize(
    "text",
    [
        "    code\nquestions: 5\n",
        "  \n      deep\n  less\n",
        "\tcode\n...\n---\n%YAML 1.1\nteams: 2\n",
        "\ufeffText\n",
    ],
)
def test_imported_text_cannot_change_the_rules(source, target, text):
    (source / "COMPETITION_DESC.md").write_text(text, encoding="utf-8")
    config = {**CONF, "COMPETITION_ID": "org/rocket-\N{ROCKET}"}
    (source / "conf.json").write_text(json.dumps(config))
    import_huggingface(source, target)
    rules = read_folder(target).rules
    assert (rules.questions, rules.teams, rules.title) == (1000, 20, "Rocket \N{ROCKET}")
    assert rules.description == text.removeprefix("\ufeff")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("conf.json", None, "conf.json cannot be read"),
        ("conf.json", "{", "is not JSON"),
        ("conf.json", "[]", "must be a JSON object"),
        ("conf.json", "[" * 100_000, "is not JSON"),
        ("conf.json", '{"EVAL_METRIC": "os:abort"}', "EVAL_METRIC must be the name"),
        ("conf.json", '{"EVAL_METRIC": ["accuracy"]}', "EVAL_METRIC must be the name"),
        ("conf.json", '{"SUBMISSION_COLUMNS": 3}', "must name the columns"),
        ("conf.json", '{"SUBMISSION_COLUMNS": "id"}', "no column of answers"),
        ("solution.csv", None, "cannot be read"),
        ("solution.csv", "id,pred\n1,1\n", "no column 'split'"),
        ("solution.csv", b"id,pred,split\n\xff,1,public\n", "not a CSV file"),
    ],
    ids=range(11),
)
def test_an_invalid_competition_is_refused(source, target, name, content, message):
    if content is None:
        (source / name).unlink()
    else:
        (source / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InvalidInput, match=message):
        import_huggingface(source, target)
    assert not list(target.iterdir())
