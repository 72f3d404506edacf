"""Every released format is read, and the page of formats agrees with the code."""

import json
import re
import runpy
import shutil
from pathlib import Path

import pytest

import ladderboard as lb
from ladderboard.arena._runner._sweep import ResultsFile
from ladderboard.board import BOARD_SCHEMA
from ladderboard.board._backup import _backup, _dump
from ladderboard.client import parse_address, read_config
from ladderboard.client._receipts import ReceiptStore
from ladderboard.errors import InvalidState
from ladderboard.ledger import _chain, _commitments, _encoding, _high_water
from ladderboard.ledger._storage import _schema
from ladderboard.mechanisms import _session
from ladderboard.verify import _source, read_receipts, verify_bundle
from support.verify.second_verifier import run_second_verifier

ROOT = Path(__file__).parents[1]
FORMATS = Path(__file__).parent / "formats"
MAKE = runpy.run_path(str(FORMATS / "make.py"))


def number_in(words):
    """Return the number that a file begins with."""
    text = words if isinstance(words, str) else words.decode()
    return int(re.search(r"\d+", text)[0])


NUMBERS = {
    "ledger database": _schema.latest_format(),
    "tables of boards": len(BOARD_SCHEMA.migrations),
    "ledger entry": number_in(_encoding.PREFIX),
    "encrypted secret side": _commitments._CLOSED[0],
    "key file": None,
    "mark": number_in(_high_water._HEADER),
    "large submissions": None,
    "vault": None,
    "dump": _dump.FORMAT,
    "backup": _backup.FORMAT,
    "secret key of dumps": None,
    "bundle": number_in(_source.START),
    "receipt": _chain._FORMAT,
    "file of receipts": None,
    "tokens": None,
    "saved session": _session._FORMAT,
    "results of experiments": None,
}


def rows():
    page = (ROOT / "docs/reference/formats.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_page_has_the_numbers_of_the_program():
    numbers = {name: None if number == "none" else int(number) for name, number, *_ in rows()}
    assert numbers == NUMBERS


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_a_file_of_every_format_is_kept(row):
    files = re.findall(r"`([^`]+)`", row[-1])
    assert files
    assert all((ROOT / file).exists() for file in files)


def test_a_stored_session_is_resumed():
    data = json.loads((FORMATS / "session-1.json").read_text())
    going = MAKE["MECHANISM"].resume(data["state"], lb.Tape(key=MAKE["KEY"]))
    assert [going.ask(risk=risk).value for risk in MAKE["RISKS"]] == data["next"]
    with pytest.raises(InvalidState, match="format 2; this version reads format 1"):
        MAKE["MECHANISM"].resume({**data["state"], "format": 2}, lb.Tape(key=MAKE["KEY"]))


def test_receipts_are_read_by_the_client_and_by_verify(tmp_path):
    receipts = ReceiptStore(tmp_path, parse_address("http://127.0.0.1:8000"))
    file = receipts.file("digits")
    file.parent.mkdir(parents=True)
    shutil.copy(FORMATS / "receipts-1.jsonl", file)
    first, second = receipts.read("digits")
    assert (first.state, first.key, first.answer) == ("answered", "first", MAKE["ANSWER"])
    assert (second.state, second.key, second.team) == ("pending", "second", "0" * 16)
    (receipt,) = read_receipts(file)
    assert (receipt.entry, receipt.hash) == (3, b"h".hex() * 32)


def test_tokens_are_read(isolated_home, tmp_path):
    folder = tmp_path / "config" / "ladderboard"
    folder.mkdir(parents=True)
    shutil.copy(FORMATS / "config-1.toml", folder / "config.toml").chmod(0o600)
    config = read_config()
    assert config.default == "http://127.0.0.1:8000"
    assert config.tokens == {config.default: {"digits": "lb_team_not-a-token"}}


@pytest.mark.parametrize("number", [1, 2])
def test_bundles_of_closed_boards_verify(number):
    path = FORMATS / f"board-bundle-{number}.ladderboard"
    result = verify_bundle(path)
    assert (result.risks, result.questions) == (7, 7)
    assert [row.team for row in result.ranking] == ["Blue", "Red", "Coin"]
    assert (result.names is None) == (number == 1)
    teams = [row["team"]["name"] for row in result.finals["rows"]]
    assert teams == (["Blue", "Red", "Coin"] if number == 1 else [None, None, "Coin"])
    assert run_second_verifier(path).endswith("7 questions: the chain and the tape hold")


def test_an_encrypted_guard_opens_with_its_key_file(tmp_path):
    for path in FORMATS.glob("guard-1.*"):
        shutil.copy(path, tmp_path / path.name)
    guard = lb.Holdout.open(tmp_path / "guard-1.db", key_file=tmp_path / "guard-1.key")
    assert guard.ask(MAKE["guesses"](8)).again
    assert guard.ask(MAKE["guesses"](2)).question == 2
    assert guard.check() == 2
    guard.close()


def test_results_are_found_by_their_keys(tmp_path):
    shutil.copy(FORMATS / "results-1.jsonl", tmp_path / "results.jsonl")
    with ResultsFile(tmp_path / "results.jsonl") as store:
        assert list(store.results.values()) == [{"error": 0.1}]
