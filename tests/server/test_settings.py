"""Settings: where each comes from, what is refused, and that nothing secret is said."""

import dataclasses
import os
import re

import pytest

from ladderboard.board import open_boards
from ladderboard.errors import InvalidSetting
from ladderboard.server import Rate, ServerConfig, Settings, find_settings
from ladderboard.server._config import SETTINGS, unknown_variables, without_password
from ladderboard.server._server_config import make_server_config
from support.credentials import ALL_INTERFACES, random_secret

SECRET = random_secret()


@pytest.fixture
def written(tmp_path):
    """Write a settings file, and return its path."""

    def write(text, mode=0o600):
        path = tmp_path / "ladderboard.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        return path

    return write


def refused(path, **variables):
    with pytest.raises(InvalidSetting) as error:
        find_settings(path, environment=variables)
    said = str(error.value)
    assert SECRET not in said
    assert "\n" not in said
    return said


def test_the_table_has_every_field_of_a_server_and_its_default():
    fields = {
        each.name: each.default
        for kind in (ServerConfig, Settings)
        for each in dataclasses.fields(kind)
        if each.init
    }
    for name in ("settings", "log", "timer"):  # the second half, and what only Python can give
        del fields[name]
    table = {name.rpartition(".")[2]: each.default for name, each in SETTINGS.items()}
    assert table.pop("database") == "ladderboard.db"
    assert fields.pop("database") is dataclasses.MISSING
    assert (table.pop("proxy"), fields.pop("proxies")) == ((), None)
    assert (table.pop("hosts"), fields.pop("hosts")) == ((), frozenset())
    assert table.pop("metrics_token_file") is None
    assert table == fields


def test_who_speaks_first_counts(written):
    path = written('database = "a.db"\n[serve]\nport = 1\nhost = "::1"\nworkers = 3\n')
    found = find_settings(
        path,
        {"serve.port": 3, "serve.url": None},
        environment={"LADDERBOARD_SERVE_PORT": "2", "LADDERBOARD_SERVE_HOST": ALL_INTERFACES},
    )
    told = {name: (each.value, each.source) for name, each in found.values.items()}
    assert told["serve.port"] == (3, "command line")
    assert told["serve.host"] == (ALL_INTERFACES, "environment")
    assert told["serve.workers"] == (3, "file")
    assert told["serve.parsers"] == (2, "default")
    assert found.file == path
    assert find_settings(environment={"LADDERBOARD_CONFIG": str(path)})["serve.workers"] == 3
    # The one that is named counts before the one in the environment.
    assert find_settings(path, environment={"LADDERBOARD_CONFIG": "none.toml"})["serve.port"] == 1


def test_an_empty_variable_is_not_set(written):
    path = written("[serve]\nport = 1\n")
    empty = {"LADDERBOARD_SERVE_PORT": "", "LADDERBOARD_KEY_FILE": "", "LADDERBOARD_CONFIG": ""}
    assert find_settings(path, environment=empty)["serve.port"] == 1
    assert find_settings(environment=empty)["key_file"] is None


EVERY = {
    "LADDERBOARD_DATABASE": "x.db",
    "LADDERBOARD_KEY_FILE": "k",
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
    "LADDERBOARD_SERVE_TRIALS": "t",
    "LADDERBOARD_SERVE_BODY_SECONDS": "7.5",
    "LADDERBOARD_SERVE_SESSION_SECONDS": "8",
    "LADDERBOARD_SERVE_TRIAL_SECONDS": "9",
    "LADDERBOARD_SERVE_ADDRESS_CONNECTIONS": "10",
    "LADDERBOARD_SERVE_FAILURES": "1,2.5",
    "LADDERBOARD_SERVE_REGISTRATIONS": "3,4",
    "LADDERBOARD_SERVE_INVALID": "5,6",
    "LADDERBOARD_SERVE_METRICS_TOKEN": SECRET,
    "LADDERBOARD_SERVE_LOG_CLIENT": "on",
}


def test_every_setting_reaches_the_server():
    assert set(EVERY) == {each.variable for each in SETTINGS.values()} - {
        "LADDERBOARD_SERVE_METRICS_TOKEN_FILE"
    }
    found = find_settings(environment=EVERY)
    by_url = Settings(url="https://a.example.org", hosts={"a.example.org"}, secure=True)
    how = make_server_config(found, by_url)
    assert (how.database, str(how.key_file), how.host, how.port) == ("x.db", "k", "::1", 81)
    assert (how.workers, how.parsers, how.proxies) == (1, 5, "10.0.0.1,10.0.0.2")
    got = how.settings
    assert got.hosts == {"a.example.org", "b.example.org"}
    assert (got.secure, got.threads, got.log_client) == (False, 6, True)
    assert (str(got.spool), str(got.trials)) == ("s", "t")
    assert (got.body_seconds, got.session_seconds, got.trial_seconds) == (7.5, 8, 9.0)
    assert got.address_connections == 10
    assert (got.failures, got.registrations, got.invalid) == (Rate(1, 2.5), Rate(3, 4), Rate(5, 6))
    assert got.metrics_token == SECRET
    assert SECRET not in repr(how) + repr(found)


def test_paths_in_a_file_start_from_its_folder(written, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    text = 'database = "{}"\nkey_file = "key"\n[serve]\nspool = "~/spool"\ntrials = "/t"\n'
    found = find_settings(written(text.format("boards.db")), environment={})
    assert found["database"] == str(tmp_path / "boards.db")
    assert found["key_file"] == tmp_path / "key"
    assert found["serve.spool"] == tmp_path / "home" / "spool"
    assert str(found["serve.trials"]) == "/t"
    for given, expected in (
        ("sqlite:///boards.db", f"sqlite:///{tmp_path}/boards.db"),
        ("/srv/boards.db", "/srv/boards.db"),
        ("postgresql://me@there/boards", "postgresql://me@there/boards"),
    ):
        assert find_settings(written(text.format(given)), environment={})["database"] == expected
    monkeypatch.chdir(tmp_path.parent)
    path = f"{tmp_path.name}/ladderboard.toml"
    assert find_settings(path, environment={})["key_file"] == tmp_path / "key"
    # A variable's path is one of where the program is started.
    found = find_settings(path, environment={"LADDERBOARD_KEY_FILE": "other"})
    assert str(found["key_file"]) == "other"


@pytest.mark.parametrize(
    ("text", "said"),
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
        ("[serve]\nfailures = [30, 0]", "The second of serve.failures in .* above 0"),
        ("[serve]\nproxy = [1]", "a list such as"),
        ("[serve]\nurl = 'boards.example.org'", "like https://boards.example.org"),
        ("[serve]\nhost = ''", "text on one line"),
        ("key_file = 3", "must be a path; got 3"),
        (f"database = ['{SECRET}']", "database in .* must be text"),
        (f"[serve]\nmetrics_token = '{SECRET} x'", "serve.metrics_token in .* not shown"),
        (f"[serve]\nmetrics_token = {SECRET}", "is not TOML at line 2, column 1"),
        (f"metrics_token = '{SECRET}'", "Put metrics_token under [serve]"),
        ("[serve\nport = 80", "is not TOML at line 1"),
        (b"\xff\xfe", "is not text in UTF-8"),
        (b"#" * (2**20 + 1), "larger than"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_its_name(written, text, said):
    path = written(text)
    told = refused(path)
    assert str(path) in told
    pattern = ".*".join(re.escape(each) for each in said.split(".* "))
    assert re.search(pattern, told), told


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("PORT", "eighty", "LADDERBOARD_SERVE_PORT must be a whole number"),
        ("PORT", "1.5", "got 1.5"),
        ("LOG_CLIENT", "perhaps", "LADDERBOARD_SERVE_LOG_CLIENT must be true or false"),
        ("INVALID", "30", "LADDERBOARD_SERVE_INVALID must be two numbers"),
        ("METRICS_TOKEN", f"{SECRET} {SECRET}", "LADDERBOARD_SERVE_METRICS_TOKEN must be"),
        ("BODY_SECONDS", "nan", "LADDERBOARD_SERVE_BODY_SECONDS must be a number above 0"),
    ],
)
def test_a_variable_is_refused_by_its_name(name, value, said):
    assert said in refused(None, **{f"LADDERBOARD_SERVE_{name}": value})
    # Whoever wants the database only is not troubled.
    only = find_settings(only=("database",), environment={f"LADDERBOARD_SERVE_{name}": value})
    assert only["database"] == "ladderboard.db"


def test_a_file_that_is_not_there_or_is_none(tmp_path):
    assert "No such file" in refused(tmp_path / "none.toml")
    assert "No such file" in refused(None, LADDERBOARD_CONFIG=str(tmp_path / "none.toml"))
    assert "Is a directory" in refused(tmp_path)


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("", 0o666, "chmod o-w"),
        ("", 0o602, "chmod o-w"),
        ("", 0o664, None),
        ("database = 'a.db'", 0o644, None),
        (f"database = 'postgresql://me:{SECRET}@there/b'", 0o644, "chmod o-r"),
        (f"database = 'postgresql://me@there/b?password={SECRET}'", 0o604, "chmod o-r"),
        (f"database = 'postgresql://me:{SECRET}@there/b'", 0o640, None),
        (f"[serve]\nmetrics_token = '{SECRET}'", 0o644, "chmod o-r"),
        (f"[serve]\nmetrics_token = '{SECRET}'", 0o600, None),
    ],
)
def test_a_file_that_anybody_may_write_or_with_a_secret_read(written, text, mode, said):
    path = written(text, mode)
    if said is None:
        find_settings(path, environment={})
    else:
        assert said in refused(path)


def test_the_token_comes_from_a_file_of_its_own(written, tmp_path):
    (tmp_path / "token").write_text(f"{SECRET}\r\nwhat else there is\n")
    path = written('[serve]\nmetrics_token_file = "token"\n')
    found = find_settings(path, environment={})
    assert found.metrics_token() == SECRET
    other = {"LADDERBOARD_SERVE_METRICS_TOKEN": "other"}
    assert find_settings(path, environment=other).metrics_token() == "other"
    both = {**other, "LADDERBOARD_SERVE_METRICS_TOKEN_FILE": str(tmp_path / "token")}
    assert "remove one" in refused(None, **both)
    (tmp_path / "token").write_text("")
    with pytest.raises(InvalidSetting, match="token"):
        found.metrics_token()
    (tmp_path / "token").unlink()
    with pytest.raises(InvalidSetting, match="No such file"):
        found.metrics_token()


def test_variables_that_mean_nothing_are_named():
    known = {each.variable: "1" for each in SETTINGS.values()}
    known |= {"LADDERBOARD_URL": "x", "LADDERBOARD_TOKEN": "x", "LADDERBOARD_CONFIG": "x"}
    assert unknown_variables(known) == []
    (said,) = unknown_variables({**known, "LADDERBOARD_KEYFILE": SECRET})
    assert said == "LADDERBOARD_KEYFILE is not a known variable. Did you mean LADDERBOARD_KEY_FILE?"
    (said,) = unknown_variables({"LADDERBOARD_WHATEVER_ELSE": SECRET})
    assert said.endswith("ladderboard settings lists all variables.")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("boards.db", "boards.db"),
        ("postgresql://me@there:5432/b", "postgresql://me@there:5432/b"),
        (f"postgresql://me:{SECRET}@there/b", "postgresql://me:***@there/b"),
        (f"postgres://me:{SECRET}@a,b/b?x=1", "postgres://me:***@a,b/b?x=1"),
        (f"postgresql:///b?password={SECRET}&host=/run", "postgresql:///b?password=***&host=/run"),
        (f"postgresql:///b?%70assword={SECRET}", "postgresql:///b?%70assword=***"),
        (f"postgresql:///b?sslpassword={SECRET}", "postgresql:///b?sslpassword=***"),
        (f"postgresql://me:p@{SECRET}@there/b", "postgresql://***"),
        (f"postgresql://me:p/{SECRET}@there/b", "postgresql://***"),
        (f"postgresql://me:p?{SECRET}@there/b", "postgresql://***"),
        (f"postgresql://me:p#{SECRET}@there/b", "postgresql://***"),
    ],
)
def test_an_address_is_shown_without_its_password(address, shown):
    assert without_password(address) == shown


def test_the_process_s_own_environment_is_looked_at(monkeypatch):
    for name in list(os.environ):
        if name.startswith("LADDERBOARD_"):
            monkeypatch.delenv(name)
    assert find_settings()["serve.port"] == 8000
    monkeypatch.setenv("LADDERBOARD_SERVE_PORT", "8123")
    assert find_settings()["serve.port"] == 8123


@pytest.mark.parametrize("given", ["host=db password=hunter2 dbname=b", "PASSWORD = 'hunter2'"])
def test_words_for_a_database_are_no_file_with_a_password_in_its_name(given):
    with pytest.raises(InvalidSetting, match=r"_DATABASE must be a path.* not shown") as refused:
        find_settings(environment={"LADDERBOARD_DATABASE": given})
    assert "hunter2" not in str(refused.value)
    with pytest.raises(InvalidSetting, match="database must be a path") as refused:
        open_boards(given, create=True)
    assert "hunter2" not in str(refused.value)
    assert "hunter2" not in without_password(given)
