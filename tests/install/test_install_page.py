"""The installation page agrees with pyproject.toml."""

import doctest
import re
import tomllib
from pathlib import Path

import pytest

import ladderboard as lb

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
PAGE = (ROOT / "docs/how-to/install.md").read_text()
ROWS = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE, re.MULTILINE))
TOLD = PROJECT["readme"]["text"]


def within(extra):
    """Return the extras that an extra brings along."""
    extras_lists = re.findall(r"ladderboard\[([\w,]+)\]", " ".join(EXTRAS[extra]))
    return {part for names in extras_lists for part in names.split(",")}


def test_the_table_has_every_extra_and_no_other():
    assert set(ROWS) == set(EXTRAS)


@pytest.mark.parametrize("extra", sorted(set(EXTRAS) - {"all"}))
def test_an_extra_that_has_another_says_so(extra):
    assert within(extra) <= set(re.findall(r"`(\w+)`", ROWS[extra]))


def test_all_says_what_it_leaves_out():
    assert set(re.findall(r"`(\w+)`", ROWS["all"])) == set(EXTRAS) - within("all") - {"all"}


def test_the_package_tells_of_every_extra_without_a_link_to_a_file():
    listed = re.findall(r"^- (.+?):", TOLD, re.MULTILINE)
    assert {match_ for names in listed for match_ in re.findall(r"`(\w+)`", names)} == set(EXTRAS)
    assert "](" not in TOLD
    assert "http" not in TOLD


def test_what_the_package_shows_in_python_is_true(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parsed = doctest.DocTestParser().get_doctest(TOLD, {}, "package", None, 0)
    last_example = parsed.examples[-1]
    last_example.want = "The best is now loss 0.... 999 questions left.\n"  # there is noise on it
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(parsed)
    assert (result.attempted, result.failed) == (4, 0)


def test_the_page_names_the_wheel_of_this_version():
    wheels = set(re.findall(r"ladderboard-[\w.]+-py3-none-any\.whl", PAGE))
    assert wheels == {f"ladderboard-{lb.__version__}-py3-none-any.whl"}


def test_the_classifiers_name_the_pythons_of_the_page():
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert f"needs Python {oldest} or newer" in PAGE
    for classifier in PROJECT["classifiers"]:
        if version_match := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", classifier):
            assert version_match[1] in PAGE
