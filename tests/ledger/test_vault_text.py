"""Keys of vaults as text: those of age."""

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

# The example of age's specification, with its public key.
KEY = SecretKey("AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX")
TEXT = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"


def test_a_public_key_is_read_from_its_text_or_a_file(tmp_path):
    assert write_public_key(KEY.public) == TEXT
    assert read_public_key(f" {TEXT}\n") == KEY.public
    (tmp_path / "key.pub").write_text(f"# of the new server\n{TEXT}\n")
    assert read_public_key(tmp_path / "key.pub") == KEY.public


def test_a_secret_key_has_a_file_of_its_owners(tmp_path):
    path = tmp_path / "key"
    key = make_secret_key(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_secret_key(path) == key
    assert f"# public key: {write_public_key(key.public)}\n" in path.read_text()
    assert make_secret_key(tmp_path / "other") != key


def test_no_key_is_ever_replaced(tmp_path):
    make_secret_key(tmp_path / "key")
    with pytest.raises(InvalidState, match="already"):
        make_secret_key(tmp_path / "key")


@pytest.mark.parametrize("at", range(len("age1"), len(TEXT)))
def test_every_changed_letter_is_found(at):
    changed = "q" if TEXT[at] != "q" else "p"
    with pytest.raises(InvalidSetting, match="not a complete key"):
        read_public_key(TEXT[:at] + changed + TEXT[at + 1 :])


@pytest.mark.parametrize("text", [TEXT[:-1], TEXT + "00", TEXT + " 00", "age1"])
def test_a_key_that_is_too_short_or_long_is_found(text):
    with pytest.raises(InvalidSetting, match="not a complete key"):
        read_public_key(text)


def test_a_secret_key_in_the_place_of_a_public_one_is_not_repeated(tmp_path):
    make_secret_key(tmp_path / "key")
    text = (tmp_path / "key").read_text().splitlines()[-1]
    with pytest.raises(InvalidSetting, match="This is a secret key") as refused:
        read_public_key(text)
    assert text[-20:] not in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"age1xx\n", bytes(9000)])
def test_a_file_without_a_key_is_refused(tmp_path, content):
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(InvalidSetting, match="has no key that begins with AGE-SECRET-KEY-1"):
        read_secret_key(tmp_path / "key")


def test_a_damaged_secret_key_is_refused(tmp_path):
    (tmp_path / "key").write_text(KEY.text[:-1] + "Q")
    with pytest.raises(InvalidSetting, match="not a complete key") as refused:
        read_secret_key(tmp_path / "key")
    assert KEY.text[:30] not in str(refused.value)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(InvalidSetting, match="cannot be read: No such file"):
        read_public_key(tmp_path / "none")
