"""``guard status``: what is shown, to whom, and how wide."""

import json
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.cli._guard._status import draw_history, draw_meter


def test_what_is_public_is_shown(run, made):
    for name in ("half", "good", "near"):
        run("ask", "guard.db", f"{name}.csv")
    said = run("status", "guard.db").out
    assert said.startswith("guard.db: zero_one (classes 0, 1) on 400 examples\n")
    assert "answered by ladder (step 0.1; grid 0.05)" in said
    assert "3 of 5 questions used, 2 left" in said
    assert "█" * 36 + "░" * 24 in said
    assert "The best release is 0.25; 2 of 3 questions improved" in said
    assert "Gains below about 0.1 may go unseen." in said
    guard = lb.Holdout.open("guard.db")
    assert f"\nhead       {guard.head}\n" in said
    words = " ".join(said.split())
    for sentence in guard.certificate.assumptions:
        assert sentence in words
    assert "With probability at least 0.95, the true risk of the best model lies in" in words
    guard.close()


def test_for_machines_it_is_the_status(run, made):
    run("ask", "guard.db", "half.csv")
    guard = lb.Holdout.open("guard.db")
    found = run("status", "guard.db", "--json").json
    assert found == json.loads(json.dumps(guard.status().describe()))
    assert run("status", "guard.db", "--json", "--check").json == {**found, "checked": 1}
    guard.close()


def test_nothing_was_asked_yet(run, made):
    said = run("status", "guard.db").out
    assert "No questions were asked yet." in said
    assert "0 of 5 questions used, 5 left" in said


def test_ladders_are_listed(run, made):
    run("ask", "guard.db", "half.csv")
    run("ask", "guard.db", "good.csv", "--ladder", "second study")
    said = run("status", "guard.db").out
    assert "The best release is 0.25 on ladder second study;" in said
    assert "2 of 5 ladders in use" in said
    rows = [line.split() for line in said.splitlines() if line.endswith("1         1")]
    assert rows == [["second", "study", "0.25", "1", "1"], ["(no", "name)", "0.5", "1", "1"]]


def test_a_value_that_is_kept_back_stays_so(run, made):
    lb.Holdout.create(
        "bit.db", made / "labels.csv", questions=3, mechanism=lb.OneBit(step=0.1)
    ).close()
    run("ask", "bit.db", "half.csv")
    said = run("status", "bit.db").out
    assert "Releases are published at the close; 1 of 1 questions improved" in said
    assert "0.5" not in said


def test_what_a_terminal_might_obey_is_escaped(run, made, monkeypatch):
    """A file from somebody else may say anything."""
    evil = "abc\x1b]0;owned\x07"
    found = lb.Holdout.open("guard.db").status()
    for changed in ({"commitment": evil}, {"head": evil}):
        monkeypatch.setattr(
            lb.Holdout, "status", lambda _, changed=changed: replace(found, **changed)
        )
        said = run("status", "guard.db").out
        assert "\x1b" not in said
        assert "abc\\x1b]0;owned\\x07" in said
    monkeypatch.setattr("ladderboard.holdout._guard.format_reply", lambda *_, **__: evil)
    assert run("ask", "guard.db", "half.csv").out == "abc\\x1b]0;owned\\x07\n"


def test_a_closed_guard_says_so(run, made):
    guard = lb.Holdout.open("guard.db")
    guard.close_for_good()
    guard.close()
    done = run("status", "guard.db")
    assert done.code == 0
    assert "It is closed and answers no more questions." in done.out


def test_a_check_finds_what_was_changed(run, made):
    run("ask", "guard.db", "half.csv")
    assert "Checked: all 1 releases were recomputed" in run("status", "guard.db", "--check").out
    database = sqlite3.connect(made / "guard.db")
    changed = database.execute("UPDATE secret SET packed = zeroblob(length(packed))")
    assert changed.rowcount == 1
    database.commit()
    database.close()
    done = run("status", "guard.db", "--check", "--json")
    assert (done.code, done.json["error"]["code"]) == (4, "broken_ledger")


@pytest.mark.parametrize("width", [24, 40, 80, 200])
def test_it_fits_the_terminal(run, made, monkeypatch, width):
    for name in ("half", "good"):
        run("ask", "guard.db", f"{name}.csv", "--ladder", "a study with a name that is rather long")
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run("status", "guard.db").out.splitlines()
    hashes = [line for line in lines if line.startswith(("commitment ", "head "))]
    assert len(hashes) == 2
    # Nothing that has no spaces is broken; the table of ladders needs 42 columns.
    most = max(len(line) for line in lines if line not in hashes)
    assert most <= max(width, 42)
    assert any("⡇" in line or "⣇" in line or "⢸" in line for line in lines)


def test_letters_that_cannot_be_shown_are_not(run, made, monkeypatch):
    for name in ("half", "good"):
        run("ask", "guard.db", f"{name}.csv", "--ladder", "größe")
    monkeypatch.setattr("ladderboard.cli._guard._status.can_draw_blocks", lambda: False)
    said = run("status", "guard.db").out
    assert "########" in said
    assert said.replace("größe", "").isascii()


def test_names_from_a_file_cannot_speak_to_the_terminal(run, made):
    """Whoever can write the file can name a ladder anything."""
    run("ask", "guard.db", "half.csv", "--ladder", "harmless")
    database = sqlite3.connect(made / "guard.db")
    wild = "\x1b]0;mine\x07\u202e"
    changed = database.execute("UPDATE ladder SET name = ? WHERE name = 'harmless'", (wild,))
    assert changed.rowcount == 1
    database.commit()
    database.close()
    said = run("status", "guard.db").out
    assert "\\x1b]0;mine\\x07\\u202e" in said
    assert not set(said) & set(wild[:1] + wild[-2:])


def test_a_meter_shows_every_question():
    widths = [draw_meter(used, 1000, 50, plain=True).count("#") for used in range(1001)]
    assert widths[0] == 0
    assert widths[1] == 1
    assert widths[999] == 49
    assert widths[1000] == 50
    assert widths == sorted(widths)


@pytest.mark.parametrize("count", [1, 2, 5, 57, 5000])
@pytest.mark.parametrize("plain", [True, False])
def test_a_plot_begins_high_and_ends_low(count, plain):
    values = np.sort(np.random.default_rng(1).random(count))[::-1].tolist()
    lines = draw_history(values, 50, 6, plain=plain)
    assert max(map(len, lines)) <= 50
    assert lines[0].startswith(f"{values[0]:.4g}".rjust(len(f"{values[-1]:.4g}")))
    assert len(lines) == (7 if count > 1 else 2)
    if count > 1:
        # One line without a gap: every column has a dot, the last is the lowest.
        body = [line.ljust(50) for line in lines[:-1]]
        start = max(len(f"{each:.4g}") for each in (values[0], values[-1])) + 1
        columns = ["".join(row[at] for row in body).strip() for at in range(start, 50)]
        assert all(columns)
        assert body[0][start] != " "
        assert body[-1][49] != " "
        assert lines[-1].split() == ["1", f"{count:,}"]
