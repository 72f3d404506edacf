"""Every example: short enough to be read at once, and run by a test."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
# What these are for takes more: attacks, a verifier, a board's data, a tutorial and its figure.
LONG = {"attack_over_http", "check_bundle", "make_digits", "overfitting", "overfitting_figure"}
TESTS = "\n".join(
    path.read_text() for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)
)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_compiles_and_is_named_in_a_test(path):
    text = path.read_text()
    compile(text, path.name, "exec")  # also where its library is not installed
    assert (len(text.splitlines()) < 40) != (path.stem in LONG)
    assert f"{path.stem}.py" in TESTS or f'"{path.stem}"' in TESTS


def test_the_long_ones_are_there():
    assert {path.stem for path in EXAMPLES} >= LONG
