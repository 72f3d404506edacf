"""The settings page has a sample file, and every variable that the program reads is listed."""

import ast
import re
from pathlib import Path

import pytest

from ladderboard.server import CONFIG, SETTINGS, VARIABLES, find_settings

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/ladderboard"
PAGE = (ROOT / "docs/reference/settings.md").read_text()
# Set for child processes, not read by our code.
SET_FOR_CHILDREN = {
    "POLARS_MAX_THREADS",
    "RAYON_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
}
SET_FOR_CHILDREN |= {"MKL_NUM_THREADS", "NUMBA_NUM_THREADS"}
OTHER_WORDS = {
    "AF_UNIX",
    "COMMANDLINE",
    "FIRST_COMPLETED",
    "GET",
    "SETTINGS",
    "POST",
}  # words in files that read the environment, besides the names of signals


@pytest.mark.parametrize("entry", [*SETTINGS.values(), *VARIABLES], ids=lambda entry: entry.name)
def test_a_meaning_is_one_sentence(entry):
    assert re.fullmatch(r"[A-Z][^|\n]*[^.]\.", entry.meaning)
    assert ". " not in entry.meaning


def test_the_sample_file_can_be_read(tmp_path):
    (sample,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    path = tmp_path / "ladderboard.toml"
    path.write_text(sample)
    settings = find_settings(path, environment={})
    names = {name for name, setting in settings.values.items() if setting.source == "file"}
    assert len(names) == len(re.findall(r"^\w+ = ", sample, re.MULTILINE)) == 9
    assert settings["sign_in"][0].client_secret_file == str(tmp_path / "github.secret")
    assert settings["database"] == str(tmp_path / "boards.db")
    assert settings["serve.failures"] == (30, 10.0)


def test_the_command_line_has_every_option_of_the_table():
    from typer.main import get_command

    from ladderboard.cli._app import app

    serve = get_command(app).get_command(None, "serve")
    options = {name for param in serve.params for name in param.opts if name.startswith("--")}
    documented = {setting.option for setting in SETTINGS.values() if setting.option}
    assert options - documented == {"--config", "--json"}
    assert documented <= options


def _strings(tree):
    """Return the string constants of a module, except __all__ and metavars."""
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if (isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__")
        or (isinstance(node, ast.keyword) and node.arg == "metavar")
        for inner in ast.walk(node)
    }
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in skipped
    }


def variables_read():
    """Return likely variable names in modules that read the environment, and all of ours."""
    variables = set()
    for path in SOURCE.rglob("*.py"):
        if path.name == "_sources.py":  # defines them, and reads them by their settings
            continue
        tree = ast.parse(path.read_text())
        names = {getattr(node, "attr", getattr(node, "arg", None)) for node in ast.walk(tree)}
        reads_environment = bool({"environ", "environb", "getenv", "envvar"} & names)
        pattern = r"[A-Z][A-Z0-9]+(_[A-Z0-9]+)*" if reads_environment else r"LADDERBOARD_[A-Z_]+"
        variables |= {word for word in _strings(tree) if re.fullmatch(pattern, word)}
    return variables


def test_every_variable_the_program_reads_is_listed():
    variables = variables_read()
    own_variables = {variable.name for variable in VARIABLES if variable.library is None}
    settings = {setting.variable for setting in SETTINGS.values()}
    known = settings | {variable.name for variable in VARIABLES}
    signals = {variable for variable in variables if variable.startswith("SIG")}
    assert variables - SET_FOR_CHILDREN - OTHER_WORDS - signals <= known
    assert {CONFIG} == own_variables - variables  # read through its constant
    assert variables >= SET_FOR_CHILDREN
    assert {"LADDERBOARD_DATABASE", "XDG_STATE_HOME", "LC_CTYPE"} <= variables
