"""``guard status``: its content and its width."""

import json
import re
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

import ladderboard as lb
from ladderboard._formatting import round_up
from ladderboard.cli._guard._status import draw_history, draw_meter


def test_status_shows_what_is_public(run_guard, guard_folder):
    for name in ("half", "good", "near"):
        run_guard("ask", "guard.db", f"{name}.csv")
    output = run_guard("status", "guard.db").out
    assert output.startswith("guard.db: zero_one (classes 0, 1) on 400 examples\n")
    assert "answered by ladder (step 0.1; grid 0.05)" in output
    assert "3 of 5 questions used, 2 left" in output
    assert "█" * 36 + "░" * 24 in output
    assert "The best is loss 0.25; 2 of 3 questions improved" in output
    assert "Improvements smaller than about 0.1 may not be detected." in output
    guard = lb.Holdout.open("guard.db")
    assert f"\nhead       {guard.head}\n" in output
    text = " ".join(output.split())
    assert "It assumes that rows are independent" in text
    bound = run_guard("status", "guard.db", "--json").json["bound"]
    assert bound["assumptions"] == list(guard.certificate.assumptions)
    assert "With confidence 95%, the true loss of the best model lies in" in text
    guard.close()


def test_status_says_in_a_metric_how_far_off_the_score_may_be(run_guard, guard_folder):
    """Of accuracy the same as of the loss that it is one minus; of a root, in its own unit."""
    ends = []
    for option in ("--loss=zero_one", "--metric=accuracy"):
        ladder = '{"mechanism": "ladder", "step": 0.1}'
        options = ("--labels", "labels.csv", "--questions", "5", "--mechanism", ladder)
        run_guard("create", "new.db", *options, option)
        run_guard("ask", "new.db", "good.csv")
        status = " ".join(run_guard("status", "new.db").out.split())
        ends.append(re.search(r"The score shown is at most .* up to 0\.\d+ better", status)[0])
        for path in guard_folder.glob("new.db*"):
            path.unlink()
    assert ends[0] == ends[1]
    values = np.random.default_rng(0).random(400) * 100
    guard = lb.Holdout.create(
        guard_folder / "root.db",
        labels=values,
        questions=5,
        metric=lb.metric("rmse", range=(0, 100)),
        mechanism=lb.Ladder(step=0.01),
    )
    guard.ask(100 - values)
    bound, released = guard.certificate, guard.released
    guard.close()
    worst = round_up(100 * ((released + bound.overfitting) ** 0.5 - released**0.5), 2)
    best = round_up(100 * (released**0.5 - (released - bound.hidden) ** 0.5), 2)
    status = " ".join(run_guard("status", "root.db").out.split())
    assert f"at most {worst} too good. The best model so far may be up to {best} better" in status


def test_status_as_json(run_guard, guard_folder):
    run_guard("ask", "guard.db", "half.csv")
    guard = lb.Holdout.open("guard.db")
    report = run_guard("status", "guard.db", "--json").json
    assert report == json.loads(json.dumps(guard.status().describe()))
    assert run_guard("status", "guard.db", "--json", "--check").json == {**report, "checked": 1}
    guard.close()


def test_status_before_the_first_question(run_guard, guard_folder):
    output = run_guard("status", "guard.db").out
    assert "No questions were asked yet." in output
    assert "0 of 5 questions used, 5 left" in output
    assert "confidence" not in output


def test_ladders_are_listed(run_guard, guard_folder):
    run_guard("ask", "guard.db", "half.csv")
    run_guard("ask", "guard.db", "good.csv", "--ladder", "second study")
    output = run_guard("status", "guard.db").out
    assert "The best is loss 0.25 on ladder second study;" in output
    assert "2 of 5 ladders in use" in output
    rows = [line.split() for line in output.splitlines() if line.endswith("1         1")]
    assert rows == [["second", "study", "0.25", "1", "1"], ["(no", "name)", "0.5", "1", "1"]]


def test_a_withheld_value_stays_withheld(run_guard, guard_folder):
    lb.Holdout.create(
        "bit.db", guard_folder / "labels.csv", questions=3, mechanism=lb.OneBit(step=0.1)
    ).close()
    run_guard("ask", "bit.db", "half.csv")
    output = run_guard("status", "bit.db").out
    assert "Releases are published at the close; 1 of 1 questions improved" in output
    assert "0.5" not in output


def test_control_characters_are_escaped(run_guard, guard_folder, monkeypatch):
    """A file from an untrusted source may contain anything."""
    evil = "abc\x1b]0;owned\x07"
    status = lb.Holdout.open("guard.db").status()
    for changed in ({"commitment": evil}, {"head": evil}):
        monkeypatch.setattr(
            lb.Holdout, "status", lambda _, changed=changed: replace(status, **changed)
        )
        output = run_guard("status", "guard.db").out
        assert "\x1b" not in output
        assert "abc\\x1b]0;owned\\x07" in output
    monkeypatch.setattr("ladderboard.holdout._guard.format_reply", lambda *_, **__: evil)
    assert run_guard("ask", "guard.db", "half.csv").out == "abc\\x1b]0;owned\\x07\n"


def test_status_of_a_closed_guard(run_guard, guard_folder):
    guard = lb.Holdout.open("guard.db")
    guard.close_for_good()
    guard.close()
    result = run_guard("status", "guard.db")
    assert result.code == 0
    assert "It is closed and answers no more questions." in result.out


def test_a_check_finds_what_was_changed(run_guard, guard_folder):
    run_guard("ask", "guard.db", "half.csv")
    assert (
        "Checked: all 1 releases were recomputed" in run_guard("status", "guard.db", "--check").out
    )
    database = sqlite3.connect(guard_folder / "guard.db")
    changed = database.execute("UPDATE secret SET packed = zeroblob(length(packed))")
    assert changed.rowcount == 1
    database.commit()
    database.close()
    result = run_guard("status", "guard.db", "--check", "--json")
    assert (result.code, result.json["error"]["code"]) == (4, "broken_ledger")


@pytest.mark.parametrize("width", [24, 40, 80, 200])
def test_status_fits_the_terminal(run_guard, guard_folder, monkeypatch, width):
    for name in ("half", "good"):
        run_guard(
            "ask", "guard.db", f"{name}.csv", "--ladder", "a study with a name that is rather long"
        )
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run_guard("status", "guard.db").out.splitlines()
    hashes = [line for line in lines if line.startswith(("commitment ", "head "))]
    assert len(hashes) == 2
    # Nothing that has no spaces is broken; the table of ladders needs 42 columns.
    longest = max(len(line) for line in lines if line not in hashes)
    assert longest <= max(width, 42)
    assert any("⡇" in line or "⣇" in line or "⢸" in line for line in lines)


def test_status_in_an_ascii_terminal(run_guard, guard_folder, monkeypatch):
    for name in ("half", "good"):
        run_guard("ask", "guard.db", f"{name}.csv", "--ladder", "größe")
    monkeypatch.setattr("ladderboard.cli._guard._status.can_draw_blocks", lambda: False)
    output = run_guard("status", "guard.db").out
    assert "########" in output
    assert output.replace("größe", "").isascii()


def test_a_meter_shows_every_question():
    widths = [draw_meter(used, 1000, 50, plain=True).count("#") for used in range(1001)]
    assert widths[0] == 0
    assert widths[1] == 1
    assert widths[999] == 49
    assert widths[1000] == 50
    assert widths == sorted(widths)


@pytest.mark.parametrize("count", [1, 2, 5, 57, 5000])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_plot_starts_high_and_ends_low(count, ascii_only):
    values = np.sort(np.random.default_rng(1).random(count))[::-1].tolist()
    lines = draw_history(values, 50, 6, plain=ascii_only)
    assert max(map(len, lines)) <= 50
    assert lines[0].startswith(f"{values[0]:.4g}".rjust(len(f"{values[-1]:.4g}")))
    assert len(lines) == (7 if count > 1 else 2)
    if count > 1:
        # One line without a gap: every column has a dot, the last is the lowest.
        body = [line.ljust(50) for line in lines[:-1]]
        start = max(len(f"{value:.4g}") for value in (values[0], values[-1])) + 1
        columns = ["".join(row[index] for row in body).strip() for index in range(start, 50)]
        assert all(columns)
        assert body[0][start] != " "
        assert body[-1][49] != " "
        assert lines[-1].split() == ["1", f"{count:,}"]
