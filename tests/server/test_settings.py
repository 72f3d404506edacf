"""Settings: where each comes from, what is refused, and that no secret is shown."""

import os
import re

import pytest

from ladderboard.board import open_boards
from ladderboard.errors import InvalidSetting
from ladderboard.server import (
    SETTINGS,
    Rate,
    Settings,
    find_settings,
    unknown_variables,
    without_password,
)
from support.credentials import ALL_INTERFACES

HIDDEN_TEXT = "hunter2-hunter2"  # must be in no message


@pytest.fixture
def write_settings(tmp_path):
    """Return a function that writes a settings file and returns its path."""

    def write(text, mode=0o600):
        path = tmp_path / "ladderboard.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        return path

    return write


def refused_message(path, **variables):
    with pytest.raises(InvalidSetting) as error:
        find_settings(path, environment=variables)
    message = str(error.value)
    assert HIDDEN_TEXT not in message
    assert "\n" not in message
    return message


def test_the_table_has_every_field_of_a_server_and_its_default():
    fields = {name: getattr(Settings(), name) for name in Settings.model_fields}
    for name in ("log", "timer"):  # values only Python can pass
        del fields[name]
    assert {setting.field: setting.default for setting in SETTINGS.values()} == fields


def test_in_python_only_the_arguments_count(monkeypatch):
    monkeypatch.setenv("LADDERBOARD_SERVE_PORT", "8123")
    assert Settings().port == 8000
    assert Settings(url="https://a.example.org").known_hosts == {"a.example.org"}
    for wrong in ({"port": "80"}, {"prot": 80}, {"proxy": ["*"]}, {"proxy": ["0.0.0.0/0"]}):
        with pytest.raises(InvalidSetting, match=next(iter(wrong))):
            Settings(**wrong)


def test_precedence_of_command_line_environment_file_and_default(write_settings):
    path = write_settings('database = "a.db"\n[serve]\nport = 1\nhost = "::1"\nworkers = 3\n')
    settings = find_settings(
        path,
        {"serve.port": 3, "serve.url": None},
        environment={"LADDERBOARD_SERVE_PORT": "2", "LADDERBOARD_SERVE_HOST": ALL_INTERFACES},
    )
    values = {name: (setting.value, setting.source) for name, setting in settings.values.items()}
    assert values["serve.port"] == (3, "command line")
    assert values["serve.host"] == (ALL_INTERFACES, "environment")
    assert values["serve.workers"] == (3, "file")
    assert values["serve.parsers"] == (2, "default")
    assert settings.file == path
    assert find_settings(environment={"LADDERBOARD_CONFIG": str(path)})["serve.workers"] == 3
    # An explicit path precedes the one in the environment.
    assert find_settings(path, environment={"LADDERBOARD_CONFIG": "none.toml"})["serve.port"] == 1


def test_an_empty_variable_is_not_set(write_settings):
    path = write_settings("[serve]\nport = 1\n")
    empty = {"LADDERBOARD_SERVE_PORT": "", "LADDERBOARD_KEY_FILE": "", "LADDERBOARD_CONFIG": ""}
    assert find_settings(path, environment=empty)["serve.port"] == 1
    assert find_settings(environment=empty)["key_file"] is None


EVERY = {
    "LADDERBOARD_DATABASE": "x.db",
    "LADDERBOARD_KEY_FILE": "k",
    "LADDERBOARD_SIGN_IN": f'{{"google": {{"client_id": "g", "client_secret": "{HIDDEN_TEXT}"}}}}',
    "LADDERBOARD_SERVE_HOST": "::1",
    "LADDERBOARD_SERVE_PORT": "81",
    "LADDERBOARD_SERVE_WORKERS": "1",
    "LADDERBOARD_SERVE_URL": "https://a.example.org",
    "LADDERBOARD_SERVE_PROXY": "10.0.0.1, 10.0.0.2",
    "LADDERBOARD_SERVE_HOSTS": "B.example.org",
    "LADDERBOARD_SERVE_SECURE": "no",
    "LADDERBOARD_SERVE_PARSERS": "5",
    "LADDERBOARD_SERVE_THREADS": "6",
    "LADDERBOARD_SERVE_SPOOL": "s",
    "LADDERBOARD_SERVE_BODY_SECONDS": "7.5",
    "LADDERBOARD_SERVE_SESSION_SECONDS": "8",
    "LADDERBOARD_SERVE_ADDRESS_CONNECTIONS": "10",
    "LADDERBOARD_SERVE_FAILURES": "1,2.5",
    "LADDERBOARD_SERVE_REGISTRATIONS": "3,4",
    "LADDERBOARD_SERVE_INVALID": "5,6",
    "LADDERBOARD_SERVE_METRICS_TOKEN": HIDDEN_TEXT,
    "LADDERBOARD_SERVE_LOG_CLIENT": "on",
}


def test_every_setting_reaches_the_server():
    # One of every type, at least: all settings are read by the same code.
    settings_by_variable = {setting.variable: setting for setting in SETTINGS.values()}
    types = {setting.type for setting in SETTINGS.values()}
    assert {settings_by_variable[variable].type for variable in EVERY} == types
    resolved = find_settings(environment=EVERY)
    settings = resolved.settings
    assert (settings.database, str(settings.key_file), settings.host, settings.port) == (
        "x.db",
        "k",
        "::1",
        81,
    )
    assert (settings.workers, settings.parsers) == (1, 5)
    assert settings.proxy == ("10.0.0.1", "10.0.0.2")
    assert settings.known_hosts == {"a.example.org", "b.example.org"}
    assert (settings.secure_cookies, settings.threads, settings.log_client) == (False, 6, True)
    assert str(settings.spool) == "s"
    assert (settings.body_seconds, settings.session_seconds) == (7.5, 8)
    assert settings.address_connections == 10
    assert (settings.failures, settings.registrations, settings.invalid) == (
        Rate(1, 2.5),
        Rate(3, 4),
        Rate(5, 6),
    )
    assert settings.metrics_token == HIDDEN_TEXT
    (google,) = settings.sign_in
    assert (google.title, google.read_secret()) == ("Google", HIDDEN_TEXT)
    assert resolved.values["sign_in"].redacted == ["google"]
    assert HIDDEN_TEXT not in repr(settings)
    assert HIDDEN_TEXT not in repr(settings) + repr(resolved)


def test_paths_in_a_file_start_from_its_folder(write_settings, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    text = 'database = "{}"\nkey_file = "key"\n[serve]\nspool = "~/spool"\n'
    settings = find_settings(write_settings(text.format("boards.db")), environment={})
    assert settings["database"] == str(tmp_path / "boards.db")
    assert settings["key_file"] == tmp_path / "key"
    assert settings["serve.spool"] == tmp_path / "home" / "spool"
    for address, expected in (
        ("sqlite:///boards.db", f"sqlite:///{tmp_path}/boards.db"),
        ("../data/boards.db", str(tmp_path.parent / "data" / "boards.db")),
        ("/srv/boards.db", "/srv/boards.db"),
        ("postgresql://me@there/boards", "postgresql://me@there/boards"),
    ):
        assert (
            find_settings(write_settings(text.format(address)), environment={})["database"]
            == expected
        )
    monkeypatch.chdir(tmp_path.parent)
    path = f"{tmp_path.name}/ladderboard.toml"
    assert find_settings(path, environment={})["key_file"] == tmp_path / "key"
    # A path in a variable is relative to the working directory.
    settings = find_settings(path, environment={"LADDERBOARD_KEY_FILE": "other"})
    assert str(settings["key_file"]) == "other"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[serve]\nprot = 80", "serve.prot in .* is not a setting. Did you mean serve.port?"),
        ("port = 80", "port in .* is not a setting. Put port under [serve]"),
        ("[serve]\ndatabase = 'a.db'", "Put database above the first table"),
        ("databse = 'a.db'", "Did you mean database?"),
        ("[server]\nport = 80", "server in .* is not a setting"),
        ("[serve]\nzzz = 80", "ladderboard settings lists all"),
        ("serve = 80", "serve in .* must be a table"),
        ("[serve]\nport = 'eighty'", "serve.port in .* must be a whole number .* got 'eighty'"),
        ("[serve]\nport = 70000", "at most 65535; got 70000"),
        ("[serve]\nport = true", "got True"),
        ("[serve]\nworkers = 0", "serve.workers in .* at least 1"),
        ("[serve]\nsecure = 'yes'", "true or false; got 'yes'"),
        ("[serve]\nfailures = 30", "two numbers"),
        ("[serve]\nfailures = [30, 0]", "serve.failures in .* above 0"),
        ("[serve]\nproxy = [1]", "a list such as"),
        ("[serve]\nurl = 'boards.example.org'", "like https://boards.example.org"),
        ("[serve]\nhost = ''", "text on one line"),
        ("key_file = 3", "must be a path; got 3"),
        (f"database = ['{HIDDEN_TEXT}']", "database in .* must be a path"),
        (f"[serve]\nmetrics_token = '{HIDDEN_TEXT} x'", "serve.metrics_token in .* is hidden"),
        (f"[serve]\nmetrics_token = {HIDDEN_TEXT}", "is not TOML at line 2, column 1"),
        (f"metrics_token = '{HIDDEN_TEXT}'", "Put metrics_token under [serve]"),
        ("[serve\nport = 80", "is not TOML at line 1"),
        (b"\xff\xfe", "is not text in UTF-8"),
        (b"#" * (2**20 + 1), "larger than"),
    ],
)
def test_an_invalid_file_is_refused_with_the_name_of_the_setting(write_settings, text, expected):
    path = write_settings(text)
    message = refused_message(path)
    assert str(path) in message
    pattern = ".*".join(re.escape(part) for part in expected.split(".* "))
    assert re.search(pattern, message), message


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("PORT", "eighty", "LADDERBOARD_SERVE_PORT must be a whole number"),
        ("PORT", "1.5", "got '1.5'"),
        ("LOG_CLIENT", "perhaps", "LADDERBOARD_SERVE_LOG_CLIENT must be true or false"),
        ("INVALID", "30", "LADDERBOARD_SERVE_INVALID must be two numbers"),
        (
            "METRICS_TOKEN",
            f"{HIDDEN_TEXT} {HIDDEN_TEXT}",
            "LADDERBOARD_SERVE_METRICS_TOKEN must be",
        ),
        ("BODY_SECONDS", "nan", "LADDERBOARD_SERVE_BODY_SECONDS must be a number above 0"),
    ],
)
def test_an_invalid_variable_is_refused_with_its_name(name, value, expected):
    assert expected in refused_message(None, **{f"LADDERBOARD_SERVE_{name}": value})
    # Reading only the database setting ignores the other variable.
    database_settings = find_settings(
        only=("database",), environment={f"LADDERBOARD_SERVE_{name}": value}
    )
    assert database_settings["database"] == "ladderboard.db"


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    assert "No such file" in refused_message(tmp_path / "none.toml")
    assert "No such file" in refused_message(None, LADDERBOARD_CONFIG=str(tmp_path / "none.toml"))
    assert "Is a directory" in refused_message(tmp_path)


@pytest.mark.parametrize(
    ("text", "mode", "expected"),
    [
        ("", 0o666, "chmod o-w"),
        ("", 0o602, "chmod o-w"),
        ("", 0o664, None),
        ("database = 'a.db'", 0o644, None),
        (f"database = 'postgresql://me:{HIDDEN_TEXT}@there/b'", 0o644, "chmod o-r"),
        (f"database = 'postgresql://me@there/b?password={HIDDEN_TEXT}'", 0o604, "chmod o-r"),
        (f"database = 'postgresql://me:{HIDDEN_TEXT}@there/b'", 0o640, None),
        (f"[serve]\nmetrics_token = '{HIDDEN_TEXT}'", 0o644, "chmod o-r"),
        (f"[serve]\nmetrics_token = '{HIDDEN_TEXT}'", 0o600, None),
    ],
)
def test_modes_that_let_others_write_the_file_or_read_its_secrets(
    write_settings, text, mode, expected
):
    path = write_settings(text, mode)
    if expected is None:
        find_settings(path, environment={})
    else:
        assert expected in refused_message(path)


def test_the_metrics_token_can_be_in_its_own_file(write_settings, tmp_path):
    (tmp_path / "token").write_text(f"{HIDDEN_TEXT}\r\nwhat else there is\n")
    path = write_settings('[serve]\nmetrics_token_file = "token"\n')
    settings = find_settings(path, environment={}).settings
    assert settings.with_metrics_token().metrics_token == HIDDEN_TEXT
    other_token = {"LADDERBOARD_SERVE_METRICS_TOKEN": "other"}
    other = find_settings(path, environment=other_token).settings
    assert (
        other.with_metrics_token().metrics_token == other_token["LADDERBOARD_SERVE_METRICS_TOKEN"]
    )
    both_tokens = {**other_token, "LADDERBOARD_SERVE_METRICS_TOKEN_FILE": str(tmp_path / "token")}
    assert "remove one" in refused_message(None, **both_tokens)
    (tmp_path / "token").write_text("")
    with pytest.raises(InvalidSetting, match="token"):
        settings.with_metrics_token()
    (tmp_path / "token").unlink()
    with pytest.raises(InvalidSetting, match="No such file"):
        settings.with_metrics_token()


def test_unknown_variables_are_reported():
    known = {setting.variable: "1" for setting in SETTINGS.values()}
    known |= {"LADDERBOARD_URL": "x", "LADDERBOARD_TOKEN": "x", "LADDERBOARD_CONFIG": "x"}
    assert unknown_variables(known) == []
    (warning,) = unknown_variables({**known, "LADDERBOARD_KEYFILE": HIDDEN_TEXT})
    assert (
        warning == "LADDERBOARD_KEYFILE is not a known variable. Did you mean LADDERBOARD_KEY_FILE?"
    )
    (warning,) = unknown_variables({"LADDERBOARD_WHATEVER_ELSE": HIDDEN_TEXT})
    assert warning.endswith("ladderboard settings lists all variables.")


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("boards.db", "boards.db"),
        ("postgresql://me@there:5432/b", "postgresql://me@there:5432/b"),
        (f"postgresql://me:{HIDDEN_TEXT}@there/b", "postgresql://me:***@there/b"),
        (f"postgres://me:{HIDDEN_TEXT}@a,b/b?x=1", "postgres://me:***@a,b/b?x=1"),
        (
            f"postgresql:///b?password={HIDDEN_TEXT}&host=/run",
            "postgresql:///b?password=***&host=/run",
        ),
        (f"postgresql:///b?%70assword={HIDDEN_TEXT}", "postgresql:///b?%70assword=***"),
        (f"postgresql:///b?sslpassword={HIDDEN_TEXT}", "postgresql:///b?sslpassword=***"),
        (f"postgresql://me:p@{HIDDEN_TEXT}@there/b", "postgresql://***"),
        (f"postgresql://me:p/{HIDDEN_TEXT}@there/b", "postgresql://***"),
        (f"postgresql://me:p?{HIDDEN_TEXT}@there/b", "postgresql://***"),
        (f"postgresql://me:p#{HIDDEN_TEXT}@there/b", "postgresql://***"),
    ],
)
def test_an_address_is_shown_without_its_password(address, expected):
    assert without_password(address) == expected


def test_the_process_environment_is_read_by_default(monkeypatch):
    for name in list(os.environ):
        if name.startswith("LADDERBOARD_"):
            monkeypatch.delenv(name)
    assert find_settings()["serve.port"] == 8000
    monkeypatch.setenv("LADDERBOARD_SERVE_PORT", "8123")
    assert find_settings()["serve.port"] == 8123


@pytest.mark.parametrize("address", ["host=db password=hunter2 dbname=b", "PASSWORD = 'hunter2'"])
def test_a_connection_string_is_refused_without_showing_its_password(address):
    with pytest.raises(InvalidSetting, match=r"_DATABASE must be a path.* is hidden") as refused:
        find_settings(environment={"LADDERBOARD_DATABASE": address})
    assert "hunter2" not in str(refused.value)
    with pytest.raises(InvalidSetting, match="database must be a path") as refused:
        open_boards(address, create=True)
    assert "hunter2" not in str(refused.value)
    assert "hunter2" not in without_password(address)
