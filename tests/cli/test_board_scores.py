"""A board that takes scores, on the command line."""

import pytest


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "tasks"
    made.mkdir()
    (made / "board.yaml").write_text("loss: score\nquestions: 100\nteams: 5\n")
    (made / "holdout.csv").write_text("id\n" + "".join(f"task-{at}\n" for at in range(300)))
    return made


def test_it_is_checked_made_and_has_no_labels_to_correct(program, folder):
    done = program("board", "check", folder)
    assert done.code == 0
    assert "There are no labels" in done.out
    done = program("board", "create", folder)
    assert done.code == 0
    assert "Ids, noise key and rules are committed to:" in done.out
    assert program("board", "show", "tasks", "--json").json["board"]["takes"] == "scores"
    done = program("board", "amend", "tasks", "--labels", folder / "holdout.csv")
    assert done.code == 2
    assert "no labels to correct" in done.err
    assert program("board", "amend", "tasks", "--set", "questions=200").code == 0
