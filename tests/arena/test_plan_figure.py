"""The figure of a plan: its content, and plans that cannot be drawn."""

import re

import pytest

from ladderboard.arena import _figures, plan_figure
from ladderboard.bounds import plan
from ladderboard.errors import InvalidSetting


@pytest.fixture
def axes(monkeypatch):
    """Collect the axes that are drawn on."""
    axes_seen = []
    draw = _figures._draw_plan

    def record_axis(axis, *args):
        axes_seen.append(axis)
        draw(axis, *args)

    monkeypatch.setattr(_figures, "_draw_plan", record_axis)
    return axes_seen


@pytest.mark.parametrize(
    "settings",
    [
        {"n": 10_000, "questions": 1_000},
        pytest.param({"n": 500, "questions": 20}, marks=pytest.mark.slow),
        {"n": 10_000, "questions": 1},
        pytest.param({"questions": 10**4, "error": 0.01}, marks=pytest.mark.slow),
        pytest.param({"n": 10**9, "error": 0.003}, marks=pytest.mark.slow),
        {"n": 10**12, "error": 0.4},
    ],
)
def test_every_line_has_its_name_and_no_two_names_touch(settings, axes, tmp_path):
    plan_figure(plan(**settings), tmp_path / "plan.png")
    (axis,) = axes
    axis.figure.set_dpi(200)  # as it is saved
    renderer = axis.figure.canvas.get_renderer()
    lines = [line for line in axis.lines if line.get_marker() != "o"]
    names = axis.get_legend().get_texts()
    assert {line.get_color() for line in lines} == {name.get_color() for name in names}
    assert len(lines) == len(names)
    boxes = [name.get_window_extent(renderer) for name in names]
    for index, box in enumerate(boxes):
        assert box.x1 <= axis.figure.bbox.x1
        assert not any(box.overlaps(other) for other in boxes[index + 1 :])


def test_the_plan_lies_on_its_line(axes, tmp_path):
    result = plan(n=10_000, questions=1_000)
    plan_figure(result, tmp_path / "plan.pdf")
    (axis,) = axes
    first, *_, dot = axis.lines
    assert tuple(dot.get_xydata()[0]) == (result.questions, result.error)
    assert (result.questions, result.error) in map(tuple, first.get_xydata())


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_the_same_bytes_every_time(kind, tmp_path):
    result = plan(n=1_000, questions=10)
    first = plan_figure(result, tmp_path / f"one.{kind}").read_bytes()
    assert plan_figure(result, tmp_path / f"other.{kind}").read_bytes() == first


@pytest.mark.parametrize(
    ("settings", "name", "sentence"),
    [
        ({"n": 10, "questions": 10}, "plan.gif", ".png, .svg or .pdf; got 'plan.gif'"),
        ({"questions": 10, "error": 1e-9}, "plan.png", "no n to draw"),
        ({"n": 1, "questions": 10}, "plan.png", "1 examples no error is below 0.5"),
        ({"n": 1000, "questions": 10}, "nowhere/plan.png", "cannot be written: No such file"),
    ],
)
def test_plans_that_cannot_be_drawn_are_refused(settings, name, sentence, tmp_path):
    with pytest.raises(InvalidSetting, match=re.escape(sentence)):
        plan_figure(plan(**settings), tmp_path / name)
    assert not list(tmp_path.iterdir())
