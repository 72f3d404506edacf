"""The page of settings says what the table says, and every variable that is read is on it."""

import ast
import re
from pathlib import Path

import pytest

from ladderboard.cli._doctor import _format_value
from ladderboard.server import find_settings
from ladderboard.server._config import CONFIG, SETTINGS, VARIABLES

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/ladderboard"
PAGE = (ROOT / "docs/reference/settings.md").read_text()
# Set for processes that help, and looked at by nobody here.
GIVEN = {"POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}
GIVEN |= {"MKL_NUM_THREADS", "NUMBA_NUM_THREADS"}
NONE = {
    "AF_UNIX",
    "COMMANDLINE",
    "FIRST_COMPLETED",
    "GET",
    "POST",
}  # other words, in files that look at the environment


def rows(head):
    """Return the rows of the table below a head, without the marks of code."""
    table = PAGE.split(f"\n| {head} |\n", 1)[1].split("\n\n", 1)[0]
    return [
        tuple(each.strip().strip("`") for each in line.strip("|").split("|"))
        for line in table.splitlines()[1:]
    ]


def test_the_page_has_every_setting_as_the_table_has_it():
    found = rows("setting | variable | option | kind | default | meaning")
    expected = [
        (
            each.name,
            each.variable,
            each.option or "",
            each.kind.label,
            _format_value(each.redacted(each.default)),
            each.meaning,
        )
        for each in SETTINGS.values()
    ]
    assert found == expected


def test_the_page_has_every_other_variable():
    found = rows("variable | read by | meaning")
    assert found == [(each.name, each.library or "", each.meaning) for each in VARIABLES]


@pytest.mark.parametrize("each", [*SETTINGS.values(), *VARIABLES], ids=lambda each: each.name)
def test_a_meaning_is_one_sentence(each):
    assert re.fullmatch(r"[A-Z][^|\n]*[^.]\.", each.meaning)
    assert ". " not in each.meaning


def test_the_sample_file_is_read(tmp_path):
    (sample,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    path = tmp_path / "ladderboard.toml"
    path.write_text(sample)
    found = find_settings(path, environment={})
    said = {name for name, each in found.values.items() if each.source == "file"}
    assert len(said) == len(re.findall(r"^\w+ = ", sample, re.MULTILINE)) == 8
    assert found["database"] == str(tmp_path / "boards.db")
    assert found["serve.failures"] == (30, 10.0)


def test_the_command_line_has_an_option_for_each_that_the_table_names():
    from typer.main import get_command

    from ladderboard.cli._app import app

    serve = get_command(app).get_command(None, "serve")
    options = {name for each in serve.params for name in each.opts if name.startswith("--")}
    named = {each.option for each in SETTINGS.values() if each.option}
    assert options - named == {"--config", "--json"}
    assert named <= options


def _words(tree):
    """Return the texts of a module, without what it gives away and what options show."""
    skipped = {
        id(each)
        for node in ast.walk(tree)
        if (isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__")
        or (isinstance(node, ast.keyword) and node.arg == "metavar")
        for each in ast.walk(node)
    }
    return {
        each.value
        for each in ast.walk(tree)
        if isinstance(each, ast.Constant)
        and isinstance(each.value, str)
        and id(each) not in skipped
    }


def variables_read():
    """Return what looks like a variable where the environment is looked at, and all ours."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        if path.name == "_definitions.py":  # which tells them, and reads none
            continue
        tree = ast.parse(path.read_text())
        names = {getattr(each, "attr", getattr(each, "arg", None)) for each in ast.walk(tree)}
        looks = bool({"environ", "environb", "getenv", "envvar"} & names)
        pattern = r"[A-Z][A-Z0-9]+(_[A-Z0-9]+)*" if looks else r"LADDERBOARD_[A-Z_]+"
        found |= {each for each in _words(tree) if re.fullmatch(pattern, each)}
    return found


def test_every_variable_that_is_read_is_known():
    found = variables_read()
    ours = {each.name for each in VARIABLES if each.library is None}
    settings = {each.variable for each in SETTINGS.values()}
    known = settings | {each.name for each in VARIABLES}
    assert found - GIVEN - NONE <= known
    assert {CONFIG} == ours - found  # which is looked up where it is told
    assert found >= GIVEN
    assert {"LADDERBOARD_DATABASE", "XDG_STATE_HOME", "LC_CTYPE"} <= found
