"""A board that takes scores, on the command line."""

import pytest


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "tasks"
    path.mkdir()
    (path / "board.yaml").write_text("loss: score\nquestions: 100\nteams: 5\n")
    (path / "holdout.csv").write_text("id\n" + "".join(f"task-{index}\n" for index in range(300)))
    return path


def test_a_score_board_is_checked_and_created_and_has_no_labels_to_correct(run_cli, folder):
    result = run_cli("board", "check", folder)
    assert result.code == 0
    assert "There are no labels" in result.out
    result = run_cli("board", "create", folder)
    assert result.code == 0
    assert "Ids, noise key and rules are committed to:" in result.out
    assert run_cli("board", "show", "tasks", "--json").json["board"]["takes"] == "scores"
    result = run_cli("board", "amend", "tasks", "--labels", folder / "holdout.csv")
    assert result.code == 2
    assert "no labels to correct" in result.err
    assert run_cli("board", "amend", "tasks", "--set", "questions=200").code == 0
