"""script/trace-submission counts what one submission calls, in the server and in its parser."""

import importlib.util
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "script/_trace.py"


@pytest.fixture(scope="module")
def traced():
    result = subprocess.run(
        [sys.executable, SCRIPT, "--json", "--calls"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("_trace", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_numbers_fit_each_other(traced):
    assert 0 <= traced["upward_crossings"] <= traced["layer_crossings"]
    assert 0 < traced["layer_crossings"] < traced["module_switches"] < traced["calls"]
    assert 20 < traced["modules"] < traced["functions"] < traced["calls"]
    assert sum(layer["calls"] for layer in traced["layers"].values()) == traced["calls"]
    assert sum(layer["modules"] for layer in traced["layers"].values()) == traced["modules"]
    assert sum(traced["processes"].values()) == traced["calls"]
    assert sum(traced["upward"].values()) == traced["upward_crossings"]


def test_the_layers_are_those_of_the_import_contract_from_top_to_bottom(traced):
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (rows,) = (
        contract["layers"] for contract in contracts["contracts"] if contract["type"] == "layers"
    )
    ranks = {name: rank for rank, row in enumerate(rows) for name in row.split(" | ")}
    assert {"server", "board", "ledger", "mechanisms", "files"} <= set(traced["layers"])
    layer_ranks = [ranks[layer] for layer in traced["layers"]]
    assert layer_ranks == sorted(layer_ranks)


def test_the_parser_reads_the_file_and_nothing_else_does(traced):
    (parser,) = set(traced["processes"]) - {"server"}
    readers = {call["process"] for call in traced["tree"] if call["function"] == "read_predictions"}
    assert readers == {parser}
    deciders = {call["process"] for call in traced["tree"] if call["module"].startswith("board.")}
    assert deciders == {"server"}


def test_every_traced_module_is_a_file_of_the_package(traced):
    for module in {call["module"] for call in traced["tree"]}:
        path = ROOT / "src/ladderboard" / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__init__.py").exists(), module


def test_a_call_from_a_lower_layer_goes_upwards(script):
    def call(module, caller, *, resumed=False):
        return script.Call(0, "server", "MainThread", 0, resumed, module, "run", caller)

    numbers = script.summary(
        [
            call("server._a", None),
            call("server._b", "server._a"),
            call("ledger._a", "server._b"),
            call("files._a", "ledger._a"),  # beside it
            call("board._a", "files._a"),
            call("board._a", "ledger._a", resumed=True),
        ]
    )
    assert numbers["calls"] == numbers["functions"] == numbers["modules"] == 5
    assert (numbers["module_switches"], numbers["layer_crossings"]) == (4, 3)
    assert numbers["upward"] == {"files._a -> board._a:run": 1}


def test_the_text_output_has_the_same_numbers(script, traced):
    calls = [script.Call(**node) for node in traced["tree"]]
    numbers = script.summary(calls)
    assert numbers == {name: value for name, value in traced.items() if name != "tree"}
    assert f"module switches{numbers['module_switches']:9}\n" in script.report(numbers)
    tree = script.call_tree(calls).splitlines()
    assert len([line for line in tree if line.startswith("  ")]) == len(calls)
    assert len([line for line in tree if line.startswith("[")]) >= 3
