"""``guard ask``: answers, refusals that change nothing, pipes, gates and summaries."""

import stat

import pytest

import ladderboard as lb


def test_an_answer_is_one_sentence(run, made):
    assert run("ask", "guard.db", "half.csv") == (0, "The best is now 0.5; 4 questions left.\n", "")
    done = run("ask", "guard.db", "half.csv")
    assert done.code == 0
    assert "asked before, as question 1" in done.out
    assert "4 questions left" in done.out


def test_an_answer_for_machines_is_the_reply(run, made):
    found = run("ask", "guard.db", "good.csv", "--json").json
    with_python = lb.Holdout.open("guard.db")
    again = with_python.ask(made / "good.csv").describe()
    with_python.close()
    assert (again.pop("again"), found.pop("again")) == (True, False)
    assert again.pop("reason") != found.pop("reason")
    assert found == again
    assert (found["released"], found["improved"], found["remaining"]) == (0.25, True, 4)
    assert found["bound"]["low"] < 0.25 < found["bound"]["high"]


def test_predictions_through_a_pipe(run, made):
    piped = (made / "half.csv").read_bytes()
    assert run("ask", "guard.db", "-", piped=piped).out.startswith("The best is now 0.5;")
    assert "asked before" in run("ask", "guard.db", "half.csv").out
    assert run("ask", "guard.db", "-", piped=b"").code == 2


def test_a_terminal_is_no_pipe(run, made, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    done = run("ask", "guard.db", "-")
    assert done.code == 2
    assert "python predict.py | ladderboard guard ask guard.db -" in done.err


def test_a_gate_fails_where_the_best_stays(run, made):
    words = ("ask", "guard.db", "--fail-unless-improved")
    assert run(*words, "good.csv").code == 0
    assert run(*words, "near.csv").code == 1
    done = run(*words, "near.csv", "--json")
    assert (done.code, done.json["improved"]) == (1, False)
    assert run("ask", "guard.db", "near.csv").code == 0
    # A run that is repeated ends as it did: the answer is the earlier one.
    assert run(*words, "good.csv").code == 0


def test_ladders_share_the_budget(run, made):
    run("ask", "guard.db", "good.csv")
    done = run("ask", "guard.db", "half.csv", "--ladder", "second study", "--json")
    assert (done.json["ladder"], done.json["released"]) == ("second study", 0.5)
    assert (done.json["question"], done.json["remaining"]) == (1, 3)


def test_training_and_format_reach_the_guard(run, made):
    lb.Holdout.create(
        "other.db",
        made / "labels.csv",
        questions=3,
        mechanism=lb.Thresholdout(threshold=0.1, noise=0.01),
    ).close()
    (made / "half.txt").write_bytes((made / "half.csv").read_bytes().replace(b",", b"\t"))
    words = ("ask", "other.db", "half.txt", "--format", "tsv")
    assert "training" in run(*words).err
    assert run(*words, "--training", "0.5").code == 0
    assert run(*words, "--training", "1.5").code == 2


def test_the_budget_ends_with_3(run, made, everything):
    for each in "abcde":
        assert run("ask", "guard.db", "half.csv", "--ladder", each).code == 0
    done = run("ask", "guard.db", "good.csv")
    assert (done.code, done.out) == (3, "")
    assert done.err == "ladderboard: All 5 questions were asked; the budget is spent.\n"
    before = everything()
    for words in (["good.csv"], ["half.csv", "--ladder", "f"]):
        error = run("ask", "guard.db", *words, "--json")
        assert (error.code, error.json["error"]["code"]) == (3, "budget_spent")
    assert everything() == before
    # What was asked before is still answered.
    assert run("ask", "guard.db", "half.csv", "--ladder", "a").code == 0


def test_a_closed_guard_ends_with_3(run, made):
    guard = lb.Holdout.open("guard.db")
    guard.close_for_good()
    guard.close()
    done = run("ask", "guard.db", "good.csv", "--json")
    assert (done.code, done.json["error"]["code"]) == (3, "session_closed")


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


@pytest.mark.parametrize("words", REFUSED.values(), ids=REFUSED)
def test_a_refusal_changes_nothing(run, made, everything, words):
    run("ask", "guard.db", "half.csv", "--ladder", "one")
    before = everything()
    done = run("ask", "guard.db", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err
    assert "\x1b" not in done.err
    for_machines = run("ask", "guard.db", *words, "--json")
    assert for_machines.code == 2
    error = for_machines.json["error"]
    assert set(error) == {"code", "message", "problems"}
    assert error["message"]
    assert everything() == before


def test_every_problem_is_told(run, made):
    done = run("ask", "guard.db", "bad.csv")
    first, *lines = done.err.splitlines()
    assert first == "ladderboard: 2 problems were found:"
    assert "2 ids ('row 0', 'row 1')" in lines[0]
    assert "is not a number: 1 id ('row 2')" in lines[1]
    error = run("ask", "guard.db", "bad.csv", "--json").json["error"]
    assert error["code"] == "invalid_predictions"
    codes = [(each["code"], each["count"], each["ids"]) for each in error["problems"]]
    assert codes == [("missing_id", 2, ["row 0", "row 1"]), ("not_a_number", 1, ["row 2"])]


def test_a_summary_is_appended(run, made):
    summary = made / "summary.md"
    summary.write_text("before\n")
    run("ask", "guard.db", "good.csv", "--summary", summary)
    text = summary.read_text()
    assert text.startswith("before\n### Holdout guard\n\nThe best is now 0.25; 4 questions left.\n")
    rows = dict(
        line.strip("| ").split(" | ")
        for line in text.splitlines()
        if line[:2] == "| " and line != "| | |"
    )
    assert rows.pop("released") == "0.25"
    assert rows.pop("improved") == "yes"
    assert rows.pop("question") == "1"
    assert rows.pop("questions left") == "4"
    ((what, interval),) = rows.items()
    assert what == "best true risk, at 0.95"
    low, high = map(float, interval.strip("[]").split(", "))
    assert low < 0.25 < high


def test_a_refusal_is_in_the_summary_too(run, made):
    run("ask", "guard.db", "bad.csv", "--summary", "summary.md")
    text = (made / "summary.md").read_text()
    assert "**Not answered.** 2 problems were found:" in text
    assert text.count("\n- ") == 2


def test_a_name_cannot_break_the_summary(run, made):
    run("ask", "guard.db", "good.csv", "--ladder", "a|b<b>`c`", "--summary", "summary.md")
    assert r"1 on ladder a\|b\<b\>\`c\`" in (made / "summary.md").read_text()


def test_a_full_disk_does_not_hide_an_answer(run, made):
    done = run("ask", "guard.db", "good.csv", "--summary", "/dev/full", "--fail-unless-improved")
    assert done.code == 0
    assert done.out == "The best is now 0.25; 4 questions left.\n"
    assert "The summary /dev/full was not written" in done.err


def test_an_encrypted_guard_needs_its_key(run, made):
    words = ("--labels", "labels.csv", "--questions", "5", "--key-file", "key")
    assert run("create", "sealed.db", *words).code == 0
    assert stat.S_IMODE((made / "key").stat().st_mode) == 0o600
    secret = (made / "key").read_text().strip()
    assert run("ask", "sealed.db", "half.csv", "--key-file", "key").code == 0
    done = run("ask", "sealed.db", "half.csv")
    assert done.code == 2
    assert "key file" in done.err
    (made / "other").write_text("0" * 64)
    for file in ("other", "half.csv"):
        done = run("ask", "sealed.db", "half.csv", "--key-file", file, "--json")
        assert done.code == 2
        assert secret not in done.out
        assert "0" * 64 not in done.out


def test_nobody_at_a_url_is_4(run, made):
    done = run("ask", f"unix:{made}/nobody.sock", "half.csv", "--json")
    assert (done.code, done.json["error"]["code"]) == (4, "guard_unreachable")
    assert run("status", "http://127.0.0.1:1").code == 4


def test_a_url_is_asked_over_the_line(run, made, monkeypatch):
    """What another room answers is said as what a file answers."""
    asked = []

    class Line:
        def ask(self, predictions, **how):
            asked.append((predictions.read(), how))
            return lb.Reply(0.5, True, 1, 9, "Said elsewhere.")

        def close(self):
            asked.append("closed")

    def connect(url):
        asked.append(url)
        return Line()

    monkeypatch.setattr(lb.Holdout, "connect", staticmethod(connect))
    for url in ("http://127.0.0.1:8765", "unix:/run/guard.sock"):
        asked.clear()
        done = run("ask", url, "-", "--ladder", "x", piped=b"id,prediction\n")
        assert done == (0, "Said elsewhere.\n", "")
        assert asked[0] == url
        how = {"training": None, "format": None, "ladder": "x"}
        assert (b"id,prediction\n", how) in asked
        assert asked[-1] == "closed"
    assert "has its key itself" in run("ask", url, "half.csv", "--key-file", "key").err
