"""A board's folder: required files and their content."""

import polars as pl
import pytest

import ladderboard as lb
from ladderboard.board import Rules, diff_rules, read_folder, read_rules
from ladderboard.errors import InvalidRules

RULES = "loss: accuracy\nquestions: 100\nteams: 5\n"
ROWS = "id,label,split\na,1,public\nb,0,private\nc,1,ignored\nd,0,public\n"


def refusal(path):
    with pytest.raises(InvalidRules) as error:
        read_folder(path)
    return error.value


def problem_codes(path):
    return [problem.code for problem in refusal(path).problems]


def test_rules_table_and_splits(folder):
    path = folder(**{"holdout.csv": ROWS, "sample_submission.csv": "id,prediction\n"})
    content = read_folder(path)
    assert (content.rules.slug, content.path) == ("digits", path)
    assert content.public.tolist() == [True, False, False, True]
    assert content.private.tolist() == [False, True, False, False]
    assert list(content.part("public").ids) == ["a", "d"]
    assert content.part("public").labels.tolist() == [1, 0]
    assert content.part("private").labels.tolist() == [0]
    assert (content.sample, content.baselines) == (path / "sample_submission.csv", {})
    assert content.effective_n == 2
    assert "BoardFolder" in repr(content)
    assert "label" not in repr(content)


def test_without_a_split_every_row_is_public(folder):
    content = read_folder(str(folder(**{"holdout.csv": "id,label\n1,1\n2,0\n"})))
    assert content.public.tolist() == [True, True]
    assert content.private.tolist() == [False, False]
    assert content.part("public").ids.tolist() == [1, 2]


def test_kaggle_s_usage_in_any_case(folder):
    rows = "id,label,Usage\n1,1,Public\n2,0,PRIVATE\n3,1,Ignored\n"
    content = read_folder(folder(**{"holdout.csv": rows}))
    assert content.table.split.tolist() == ["public", "private", "ignored"]


def test_groups_count_once_and_weights_less(folder):
    rows = "id,label,group,weight\n1,1,p,1\n2,0,p,1\n3,1,q,3\n4,0,r,1\n"
    content = read_folder(folder(**{"holdout.csv": rows}))
    assert content.part("public").grouping.n == 3
    assert content.effective_n == 2  # 25 / 11


def test_other_formats(folder):
    path = folder(**{"holdout.csv": None})
    pl.DataFrame({"id": [1, 2], "label": ["x", "y"]}).write_parquet(path / "holdout.parquet")
    assert read_folder(path).table.kind == "text"


def test_labels_are_read_as_the_classes_are(folder):
    rules = "loss: {name: accuracy, classes: ['1', '2']}\nquestions: 100\nteams: 5\n"
    content = read_folder(folder(**{"board.yaml": rules, "holdout.csv": "id,label\n1,1\n2,2\n"}))
    assert content.table.labels.tolist() == ["1", "2"]


def test_classes_are_taken_from_the_labels_or_the_sample(folder):
    rows = "".join(f"{index},{'yes' if index % 2 else 'no'}\n" for index in range(20))
    path = folder(**{"board.yaml": RULES, "holdout.csv": f"id,label\n{rows}"})
    content = read_folder(path)
    assert (content.derived, content.rules.loss.classes) == (True, ("no", "yes"))
    # A sample without some label decides nothing; one with all labels gives the classes.
    for labels, expected in (
        (["maybe"], ("no", "yes")),
        (["yes", "no", "maybe"], ("maybe", "no", "yes")),
    ):
        lines = "".join(f"{index},{labels[index % len(labels)]}\n" for index in range(20))
        (path / "sample_submission.csv").write_text(f"id,prediction\n{lines}")
        content = read_folder(path)
        assert content.rules.loss.classes == expected
        assert content.rules.describe()["loss"]["classes"] == list(expected)
    for declared, classes in (("any", "any"), ("[no, yes, 'x']", ("no", "yes", "x"))):
        rules = RULES.replace("accuracy", f"{{name: accuracy, classes: {declared}}}")
        (path / "board.yaml").write_text(rules)
        content = read_folder(path)
        assert (content.derived, content.rules.loss.classes) == (False, classes)
        assert Rules.from_description(content.rules.describe()) == content.rules


def test_inferred_classes_do_not_count_as_changed_rules(folder):
    rows = "".join(f"{index},{index % 2}\n" for index in range(20))
    content = read_folder(folder(**{"board.yaml": RULES, "holdout.csv": f"id,label\n{rows}"}))
    typed = read_rules(RULES, slug="digits")
    assert content.rules.loss != typed.loss
    assert diff_rules(content.rules, typed) == {}
    declared = read_rules(
        RULES.replace("accuracy", "{name: accuracy, classes: [0, 2]}"), slug="digits"
    )
    assert "loss" in diff_rules(content.rules, declared)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"board.yaml": None}, ["missing_file"]),
        ({"board.yaml": b"loss: \xff"}, ["encoding"]),
        ({"board.yaml": "loss: accuracy\n"}, ["missing_key"]),
        ({"holdout.csv": None}, ["missing_file"]),
        ({"holdout.tsv": "id\tlabel\n1\t1\n"}, ["several_files"]),
        ({"holdout.csv": "label\n1\n0\n"}, ["missing_column"]),
        ({"holdout.csv": "id,label\n1,\n2,0\n"}, ["missing_value"]),
        ({"holdout.csv": "id,label\n1,1\n1,0\n"}, ["labels"]),
        ({"holdout.csv": "id,label,split\n1,1,public\n2,0,test\n"}, ["unknown_split"]),
        ({"holdout.csv": "id,label,split\n1,1,private\n2,0,ignored\n"}, ["unknown_split"]),
        ({"board.yaml": RULES + "finals: {selections: 1}\n",
          "holdout.csv": "id,label,split\n1,1,public\n2,0,test\n"}, ["unknown_split"]),
        ({"holdout.csv": "id,label,split,group\n1,1,public,a\n2,0,private,a\n3,0,public,b\n"},
         ["torn_group"]),
        ({"board.yaml": RULES + "ladder: board\n", "holdout.csv": "id,label\n1,1\n"},
         ["no_private"]),
        ({"board.yaml": RULES + "finals: {selections: 1}\n", "holdout.csv": "id,label\n1,1\n"},
         ["no_private"]),
        ({"board.yaml": RULES.replace("accuracy", "{name: accuracy, classes: [0, 2]}")},
         ["labels"]),
        ({"board.yaml": RULES + "baselines: [{name: a, file: a.csv}]\n"}, ["missing_file"]),
        ({"board.yaml": RULES + "mechanism: bootstrap_ladder\n",
          "holdout.csv": "id,label,weight\n1,1,1\n2,0,2\n"}, ["bad_value"]),
        # Everything at once.
        ({"board.yaml": "loss: max_error\nquestions: 0\n", "holdout.csv": "label\n1\n"},
         ["bad_value", "bad_value", "missing_column"]),
    ],
)  # fmt: skip
def test_folders_that_are_refused(folder, files, expected):
    assert problem_codes(folder(**files)) == expected


def test_a_refusal_names_the_file(folder):
    duplicate = str(refusal(folder(**{"holdout.csv": "id,label\n1,1\n1,0\n"})))
    assert duplicate.startswith("holdout.csv: Duplicate ids in the holdout")


def test_a_path_that_is_not_a_folder_is_refused(tmp_path):
    assert problem_codes(tmp_path / "nowhere") == ["not_a_folder"]


def test_a_folder_name_that_is_not_a_slug(folder):
    assert "the folder's name 'My board'" in str(refusal(folder(name="My board")))


def test_symbolic_links_must_stay_inside_the_folder(folder, tmp_path):
    rules = RULES + "baselines: [{name: a, file: a.csv}]\n"
    path = folder(**{"board.yaml": rules, "b.csv": "id,prediction\n"})
    (path / "a.csv").symlink_to("b.csv")
    assert read_folder(path).baselines == {"a": path / "a.csv"}
    outside = tmp_path / "outside.csv"
    outside.write_text("id,prediction\n")
    (path / "a.csv").unlink()
    (path / "a.csv").symlink_to(outside)
    (path / "sample_submission.csv").symlink_to(outside)
    assert problem_codes(path) == ["outside", "outside"]
    (path / "a.csv").unlink()
    (path / "a.csv").symlink_to("a.csv")
    assert problem_codes(path)[1] in {"outside", "missing_file"}


def test_the_digest_changes_with_every_file_that_matters(folder):
    rules = RULES + "baselines: [{name: a, file: a.csv}]\n"
    files = {"board.yaml": rules, "holdout.csv": ROWS, "a.csv": "id,prediction\na,1\n"}
    original = read_folder(folder(**files))
    assert len(original.digest()) == 32
    changed = [
        ("board.yaml", rules + "title: x\n"),
        ("holdout.csv", ROWS.replace("a,1", "a,0")),
        ("holdout.csv", ROWS.replace("ignored", "public")),
        ("a.csv", "id,prediction\na,0\n"),
    ]
    digests = {original.digest()}
    for name, text in changed:
        (original.path / name).write_text(text)
        digests.add(read_folder(original.path).digest())
        (original.path / name).write_text(files[name])
    assert len(digests) == len(changed) + 1
    assert read_folder(original.path).digest() == original.digest()
    (original.path / "board.yaml").write_text("# a remark\n" + rules)
    assert read_folder(original.path).digest() == original.digest()


def test_the_mechanism_is_calibrated_for_the_public_split(folder):
    content = read_folder(folder())
    expected = lb.GrowingLadder.calibrated(n=200, questions=100, teams=5).for_board()
    assert content.rules.mechanism_for(content.effective_n) == expected


@pytest.mark.parametrize("metric", ["roc_auc", "average_precision"])
def test_labels_that_are_two_words_get_advice_about_classes(folder, metric):
    labels = ["id,label", *(f"{at},{('no', 'yes')[at % 2]}" for at in range(50))]
    path = folder(
        **{"board.yaml": f"metric: {metric}\nsubmissions: 100\nteams: 5\n",
           "holdout.csv": "\n".join(labels)}
    )  # fmt: skip
    with pytest.raises(InvalidRules) as refused:
        read_folder(path)
    declared = f'metric: {{name: {metric}, classes: ["no", "yes"]}}'
    assert declared in str(refused.value)
    rules = f"{declared}\nsubmissions: 100\nteams: 5\n"
    (path / "board.yaml").write_text(rules)
    assert read_folder(path).rules.loss.classes == ("no", "yes")


def test_columns_are_read_by_name_if_another_rule_is_wrong(folder):
    rules = RULES + "columns: {id: image, label: truth}\nend: tomorrow\n"
    text = "image,truth\n" + "".join(f"{number},{number % 2}\n" for number in range(100))
    with pytest.raises(InvalidRules) as caught:
        read_folder(folder(**{"board.yaml": rules, "holdout.csv": text}))
    assert [problem.column for problem in caught.value.problems] == ["end"]
