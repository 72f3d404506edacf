"""``guard ask``: answers, refusals that change nothing, pipes, gates and summaries."""

import stat

import pytest

import ladderboard as lb


def test_an_answer_is_one_sentence(run_guard, guard_folder):
    assert run_guard("ask", "guard.db", "half.csv") == (
        0,
        "The best is now loss 0.5. 4 questions left.\n",
        "",
    )
    result = run_guard("ask", "guard.db", "half.csv")
    assert result.code == 0
    assert "Duplicate of question 1" in result.out
    assert "4 questions left" in result.out


def test_an_answer_for_machines_is_the_reply(run_guard, guard_folder):
    report = run_guard("ask", "guard.db", "good.csv", "--json").json
    with_python = lb.Holdout.open("guard.db")
    second = with_python.ask(guard_folder / "good.csv").describe()
    with_python.close()
    assert (second.pop("again"), report.pop("again")) == (True, False)
    assert second.pop("reason") != report.pop("reason")
    assert report == second
    assert (report["released"], report["improved"], report["remaining"]) == (0.25, True, 4)
    assert report["bound"]["low"] < 0.25 < report["bound"]["high"]


def test_predictions_are_read_from_stdin(run_guard, guard_folder):
    piped = (guard_folder / "half.csv").read_bytes()
    assert run_guard("ask", "guard.db", "-", piped=piped).out.startswith(
        "The best is now loss 0.5."
    )
    assert "Duplicate of" in run_guard("ask", "guard.db", "half.csv").out
    assert run_guard("ask", "guard.db", "-", piped=b"").code == 2


def test_predictions_are_not_read_from_a_terminal(run_guard, guard_folder, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    result = run_guard("ask", "guard.db", "-")
    assert result.code == 2
    assert "python predict.py | ladderboard guard ask guard.db -" in result.err


def test_fail_unless_improved_exits_with_one(run_guard, guard_folder):
    arguments = ("ask", "guard.db", "--fail-unless-improved")
    assert run_guard(*arguments, "good.csv").code == 0
    assert run_guard(*arguments, "near.csv").code == 1
    result = run_guard(*arguments, "near.csv", "--json")
    assert (result.code, result.json["improved"]) == (1, False)
    assert run_guard("ask", "guard.db", "near.csv").code == 0
    # A run that is repeated ends as it did: the answer is the earlier one.
    assert run_guard(*arguments, "good.csv").code == 0


def test_ladders_share_the_budget(run_guard, guard_folder):
    run_guard("ask", "guard.db", "good.csv")
    result = run_guard("ask", "guard.db", "half.csv", "--ladder", "second study", "--json")
    assert (result.json["ladder"], result.json["released"]) == ("second study", 0.5)
    assert (result.json["question"], result.json["remaining"]) == (1, 3)


def test_training_and_format_reach_the_guard(run_guard, guard_folder):
    lb.Holdout.create(
        "other.db",
        guard_folder / "labels.csv",
        questions=3,
        mechanism=lb.Thresholdout(threshold=0.1, noise=0.01),
    ).close()
    (guard_folder / "half.txt").write_bytes(
        (guard_folder / "half.csv").read_bytes().replace(b",", b"\t")
    )
    arguments = ("ask", "other.db", "half.txt", "--format", "tsv")
    assert "training" in run_guard(*arguments).err
    assert run_guard(*arguments, "--training", "0.5").code == 0
    assert run_guard(*arguments, "--training", "1.5").code == 2


def test_an_exhausted_budget_exits_with_3(run_guard, guard_folder, guard_contents):
    for ladder in "abcde":
        assert run_guard("ask", "guard.db", "half.csv", "--ladder", ladder).code == 0
    result = run_guard("ask", "guard.db", "good.csv")
    assert (result.code, result.out) == (3, "")
    assert result.err == "ladderboard: All 5 questions were asked; the budget is spent.\n"
    contents_before = guard_contents()
    for arguments in (["good.csv"], ["half.csv", "--ladder", "f"]):
        error = run_guard("ask", "guard.db", *arguments, "--json")
        assert (error.code, error.json["error"]["code"]) == (3, "budget_spent")
    assert guard_contents() == contents_before
    # A repeated question is still answered.
    assert run_guard("ask", "guard.db", "half.csv", "--ladder", "a").code == 0


def test_a_closed_guard_exits_with_3(run_guard, guard_folder):
    guard = lb.Holdout.open("guard.db")
    guard.close_for_good()
    guard.close()
    result = run_guard("ask", "guard.db", "good.csv", "--json")
    assert (result.code, result.json["error"]["code"]) == (3, "session_closed")


REFUSED = {
    "missing file": ["nothing.csv"],
    "bad values": ["bad.csv"],
    "not predictions": ["labels.csv", "--format", "npy"],
    "a format nobody knows": ["half.csv", "--format", "xls"],
    "training": ["half.csv", "--training", "0.5"],
    "a ladder's name": ["half.csv", "--ladder", "a\x1b[2Jb"],
    "a new ladder": ["bad.csv", "--ladder", "two"],
    "a key": ["half.csv", "--key-file", "labels.csv"],
    "no such key": ["half.csv", "--key-file", "nothing"],
    "a summary nowhere": ["half.csv", "--summary", "nowhere/summary.md"],
    "a mistyped option": ["half.csv", "--jsno"],
    "an option without its value": ["half.csv", "--ladder"],
    "an option for a value": ["half.csv", "--ladder", "--fail-unless-improved"],
    "too much": ["half.csv", "good.csv"],
    "too little": [],
}


@pytest.mark.parametrize("arguments", REFUSED.values(), ids=REFUSED)
def test_a_refusal_changes_nothing(run_guard, guard_folder, guard_contents, arguments):
    run_guard("ask", "guard.db", "half.csv", "--ladder", "one")
    contents_before = guard_contents()
    result = run_guard("ask", "guard.db", *arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err
    assert "\x1b" not in result.err
    for_machines = run_guard("ask", "guard.db", *arguments, "--json")
    assert for_machines.code == 2
    error = for_machines.json["error"]
    assert set(error) == {"code", "message", "problems"}
    assert error["message"]
    assert guard_contents() == contents_before


def test_every_problem_is_listed(run_guard, guard_folder):
    result = run_guard("ask", "guard.db", "bad.csv")
    first, *lines = result.err.splitlines()
    assert first == "ladderboard: 2 problems were found:"
    assert "2 missing ids: 'row 0', 'row 1'" in lines[0]
    assert "is not a number, such as 'x'; choose from 0, 1: 1 id ('row 2')" in lines[1]
    error = run_guard("ask", "guard.db", "bad.csv", "--json").json["error"]
    assert error["code"] == "invalid_predictions"
    codes = [(problem["code"], problem["count"], problem["ids"]) for problem in error["problems"]]
    assert codes == [("missing_id", 2, ["row 0", "row 1"]), ("not_a_number", 1, ["row 2"])]


def test_json_is_recognised(run_guard, guard_folder):
    (guard_folder / "p.json").write_text('[{"id": "a", "prediction": 0}]')
    refused = run_guard("ask", "guard.db", "p.json")
    assert (refused.code, "This looks like JSON." in refused.err) == (2, True)


def test_a_summary_is_appended(run_guard, guard_folder):
    summary = guard_folder / "summary.md"
    summary.write_text("before\n")
    run_guard("ask", "guard.db", "good.csv", "--summary", summary)
    text = summary.read_text()
    assert text.startswith(
        "before\n### Holdout guard\n\nThe best is now loss 0.25. 4 questions left.\n"
    )
    rows = dict(
        line.strip("| ").split(" | ")
        for line in text.splitlines()
        if line[:2] == "| " and line != "| | |"
    )
    assert rows.pop("best loss") == "0.25"
    assert rows.pop("improved") == "yes"
    assert rows.pop("question") == "1"
    assert rows.pop("questions left") == "4"
    ((title, interval),) = rows.items()
    assert title == "true loss of the best, with confidence 95%"
    low, high = map(float, interval.strip("[]").split(", "))
    assert low < 0.25 < high
    run_guard("ask", "guard.db", "good.csv", "--summary", summary)
    assert "| best loss at that time | 0.25 |" in summary.read_text()


def test_a_refusal_is_in_the_summary_too(run_guard, guard_folder):
    run_guard("ask", "guard.db", "bad.csv", "--summary", "summary.md")
    text = (guard_folder / "summary.md").read_text()
    assert "**Not answered.** 2 problems were found:" in text
    assert text.count("\n- ") == 2


def test_a_name_cannot_break_the_summary(run_guard, guard_folder):
    run_guard("ask", "guard.db", "good.csv", "--ladder", "a|b<b>`c`", "--summary", "summary.md")
    assert r"1 on ladder a\|b\<b\>\`c\`" in (guard_folder / "summary.md").read_text()


def test_a_full_disk_does_not_hide_an_answer(run_guard, guard_folder):
    result = run_guard(
        "ask", "guard.db", "good.csv", "--summary", "/dev/full", "--fail-unless-improved"
    )
    assert result.code == 0
    assert result.out == "The best is now loss 0.25. 4 questions left.\n"
    assert "The summary /dev/full was not written" in result.err


def test_an_encrypted_guard_needs_its_key(run_guard, guard_folder):
    arguments = ("--labels", "labels.csv", "--questions", "5", "--key-file", "key")
    assert run_guard("create", "sealed.db", *arguments).code == 0
    assert stat.S_IMODE((guard_folder / "key").stat().st_mode) == 0o600
    secret = (guard_folder / "key").read_text().strip()
    assert run_guard("ask", "sealed.db", "half.csv", "--key-file", "key").code == 0
    result = run_guard("ask", "sealed.db", "half.csv")
    assert result.code == 2
    assert "key file" in result.err
    (guard_folder / "other").write_text("0" * 64)
    for file in ("other", "half.csv"):
        result = run_guard("ask", "sealed.db", "half.csv", "--key-file", file, "--json")
        assert result.code == 2
        assert secret not in result.out
        assert "0" * 64 not in result.out


def test_an_unreachable_url_exits_with_4(run_guard, guard_folder):
    result = run_guard("ask", f"unix:{guard_folder}/nobody.sock", "half.csv", "--json")
    assert (result.code, result.json["error"]["code"]) == (4, "guard_unreachable")
    assert run_guard("status", "http://127.0.0.1:1").code == 4


def test_a_file_without_ids_is_noted_if_the_holdout_has_ids_of_text(run_guard, guard_folder):
    rows = "".join(f"case-{index},{index % 2}\n" for index in range(400))
    (guard_folder / "named.csv").write_text(f"id,label\n{rows}")
    run_guard("create", "named.db", "--labels", "named.csv", "--questions", "5")
    (guard_folder / "one.csv").write_text("prediction\n" + "0\n1\n" * 200)
    (guard_folder / "two.csv").write_text(f"id,prediction\n{rows}")
    result = run_guard("ask", "named.db", "one.csv")
    assert result.code == 0
    assert "one.csv has no ids, so its rows were taken in the order of the labels." in result.err
    assert run_guard("ask", "named.db", "two.csv").err == ""
