"""Keys of vaults as text."""

import stat

import pytest

from ladderboard.errors import InvalidSetting, InvalidState
from ladderboard.ledger import (
    SecretKey,
    make_secret_key,
    read_public_key,
    read_secret_key,
    write_public_key,
)

KEY = SecretKey(bytes(range(32)))
TEXT = write_public_key(KEY.public)


def test_a_public_key_is_read_from_its_text_or_a_file(tmp_path):
    assert TEXT.startswith("ladderboard-public-8f40c5adb68f25624ae5b214ea767a6ec94d829d3d7b5e1a")
    assert read_public_key(f" {TEXT}\n") == KEY.public
    (tmp_path / "key.pub").write_text(f"# of the new server\n{TEXT}\n")
    assert read_public_key(tmp_path / "key.pub") == KEY.public


def test_a_secret_key_has_a_file_of_its_owners(tmp_path):
    path = tmp_path / "key"
    key = make_secret_key(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_secret_key(path) == key
    assert write_public_key(key.public) in path.read_text()
    assert make_secret_key(tmp_path / "other") != key


def test_no_key_is_ever_replaced(tmp_path):
    make_secret_key(tmp_path / "key")
    with pytest.raises(InvalidState, match="already"):
        make_secret_key(tmp_path / "key")


@pytest.mark.parametrize("at", range(len("ladderboard-public-"), len(TEXT)))
def test_every_changed_digit_is_found(at):
    changed = "0" if TEXT[at] != "0" else "1"
    with pytest.raises(InvalidSetting, match="not a complete key"):
        read_public_key(TEXT[:at] + changed + TEXT[at + 1 :])


@pytest.mark.parametrize("text", [TEXT[:-1], TEXT + "00", TEXT + " 00", "ladderboard-public-"])
def test_a_key_that_is_too_short_or_long_is_found(text):
    with pytest.raises(InvalidSetting, match="not a complete key"):
        read_public_key(text)


def test_a_secret_key_in_the_place_of_a_public_one_is_not_repeated(tmp_path):
    make_secret_key(tmp_path / "key")
    text = (tmp_path / "key").read_text().splitlines()[-1]
    with pytest.raises(InvalidSetting, match="This is a secret key") as refused:
        read_public_key(text)
    assert text[-20:] not in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"ladderboard-public-00\n", bytes(9000)])
def test_a_file_without_a_key_is_refused(tmp_path, content):
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(InvalidSetting, match="has no key that begins with ladderboard-secret-"):
        read_secret_key(tmp_path / "key")


def test_a_file_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(InvalidSetting, match="cannot be read: No such file"):
        read_public_key(tmp_path / "none")
