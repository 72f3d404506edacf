"""Where a passphrase comes from."""

import pytest

from ladderboard.cli._options import PASSPHRASE_VARIABLE, read_passphrase
from ladderboard.errors import InvalidSetting


@pytest.fixture(autouse=True)
def no_passphrase_variable(monkeypatch):
    monkeypatch.delenv(PASSPHRASE_VARIABLE, raising=False)


@pytest.mark.parametrize(
    "content", [b"correct horse\n", b"correct horse\r\nmore\n", b"correct horse"]
)
def test_the_first_line_of_a_file(tmp_path, monkeypatch, content):
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "another one")
    (tmp_path / "words").write_bytes(content)
    assert read_passphrase(tmp_path / "words") == "correct horse"


def test_blanks_are_part_of_it(tmp_path):
    (tmp_path / "words").write_text(" correct horse \n")
    assert read_passphrase(tmp_path / "words") == " correct horse "


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe\n", b"x" * 5000])
def test_a_file_without_one_is_refused(tmp_path, content):
    (tmp_path / "words").write_bytes(content)
    with pytest.raises(InvalidSetting, match="on its first line"):
        read_passphrase(tmp_path / "words")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InvalidSetting, match="No such file"):
        read_passphrase(tmp_path / "none")


def test_the_environment(monkeypatch):
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "correct horse")
    assert read_passphrase(new=True) == "correct horse"


def test_without_a_terminal_a_passphrase_is_required(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InvalidSetting, match="--passphrase-file"):
        read_passphrase()


@pytest.mark.parametrize("new", [True, False])
def test_a_new_passphrase_is_typed_twice(monkeypatch, new):
    prompts = []

    def prompt(text, **kwargs):
        prompts.append(kwargs)
        return "correct horse"

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.prompt", prompt)
    assert read_passphrase(new=new) == "correct horse"
    assert prompts == [{"hide_input": True, "confirmation_prompt": new, "err": True}]
