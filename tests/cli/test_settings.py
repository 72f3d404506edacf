"""``ladderboard settings``, and the verbs that go by a settings file."""

import json
import os
import sys

import pytest

from ladderboard.server._config import SETTINGS, VARIABLES
from support.credentials import random_secret

SECRET = random_secret()


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    for name in list(os.environ):
        if name.startswith("LADDERBOARD_"):
            monkeypatch.delenv(name)


@pytest.fixture
def config(tmp_path):
    """A settings file in a folder of its own, with a database and a key beside it."""
    folder = tmp_path / "etc"
    folder.mkdir()
    path = folder / "ladderboard.toml"
    path.write_text('database = "boards.db"\nkey_file = "key"\n[serve]\nport = 8123\n')
    return path


@pytest.fixture
def served(program, monkeypatch):
    """Run serve, but instead of a server only what is told when one listens; return how."""
    seen = []

    def stand_in(config, *, boards, announce, command):
        seen.append(config)
        announce(f"http://{config.host}:{config.port}", boards.create_first_token())

    monkeypatch.setattr("ladderboard.server.serve", stand_in)
    monkeypatch.setattr("ladderboard.server._process._listener.check_port_free", lambda *_: None)

    def run(*words):
        seen.clear()
        return program("serve", *words), (seen or [None])[0]

    return run


def test_every_setting_is_listed_for_machines(program, config, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_SERVE_THREADS", "7")
    monkeypatch.setenv("LADDERBOARD_SERVE_PROT", "7")
    found = program("settings", "--config", config, "--json").json
    assert found["file"] == str(config)
    assert [each["name"] for each in found["settings"]] == list(SETTINGS)
    assert [each["name"] for each in found["variables"]] == [
        variable.name for variable in VARIABLES
    ]
    told = {each["name"]: (each["value"], each["from"]) for each in found["settings"]}
    assert told["database"] == (str(config.parent / "boards.db"), "file")
    assert told["serve.threads"] == (7, "environment")
    assert told["serve.failures"] == ([30, 10.0], "default")
    assert found["unknown"] == [
        "LADDERBOARD_SERVE_PROT is not a known variable. Did you mean LADDERBOARD_SERVE_PORT?"
    ]
    for each in found["settings"]:
        setting = SETTINGS[each["name"]]
        assert (each["variable"], each["option"]) == (setting.variable, setting.option)
        assert each["meaning"] == setting.meaning


def test_every_setting_is_listed_for_people(program, config, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_CONFIG", str(config))
    done = program("settings")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Settings file: {config}\n")
    rows = [line.split() for line in done.out.splitlines()]
    assert ["serve.port", "8123", "file"] in [row[:3] for row in rows]
    assert {*SETTINGS, *(variable.name for variable in VARIABLES)} <= {
        row[0] for row in rows if row
    }
    monkeypatch.delenv("LADDERBOARD_CONFIG")
    assert program("settings").out.startswith("Settings file: none; --config FILE or")


def test_no_secret_is_shown(program, config, monkeypatch):
    config.write_text(f"[serve]\nmetrics_token = '{SECRET}'\n")
    config.chmod(0o600)
    monkeypatch.setenv("LADDERBOARD_DATABASE", f"postgresql://me:{SECRET}@there/boards")
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:{SECRET}@there")
    monkeypatch.setenv("LADDERBOARD_URL", f"http://me:{SECRET}@there")
    for name in ("LADDERBOARD_TOKEN", "LADDERBOARD_PASSPHRASE", "PGPASSWORD"):
        monkeypatch.setenv(name, SECRET)
    for words in ([], ["--json"]):
        done = program("settings", "--config", config, *words)
        assert done.code == 0
        assert SECRET not in done.out + done.err
    told = {each["name"]: each for each in json.loads(done.out)["settings"]}
    assert told["database"]["value"] == "postgresql://me:***@there/boards"
    assert told["database"]["hidden"] is True
    assert (told["serve.metrics_token"]["value"], told["serve.metrics_token"]["hidden"]) == (
        None,
        True,
    )


def test_what_cannot_be_understood_is_one_line(program, config):
    config.write_text("[serve]\nprot = 80\n")
    done = program("settings", "--config", config)
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.endswith("is not a setting. Did you mean serve.port?")
    done = program("settings", "--config", config, "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "invalid_setting")


def test_serve_goes_by_the_file_the_environment_and_what_is_typed(served, config, monkeypatch):
    done, how = served("--config", config)
    assert done.code == 0, done.err
    assert (how.port, how.settings.threads) == (8123, 32)
    assert (config.parent / "boards.db").exists()
    assert how.key_file == config.parent / "key"
    monkeypatch.setenv("LADDERBOARD_CONFIG", str(config))
    monkeypatch.setenv("LADDERBOARD_SERVE_PORT", "8124")
    monkeypatch.setenv("LADDERBOARD_SERVE_THREADS", "3")
    _, how = served()
    assert (how.port, how.settings.threads) == (8124, 3)
    _, how = served("--port", "8125", "--proxy", "10.0.0.1,10.0.0.2")
    assert (how.port, how.proxies) == (8125, "10.0.0.1,10.0.0.2")
    monkeypatch.setenv("LADDERBOARD_DATABASE", "other.db")
    monkeypatch.setenv("LADDERBOARD_KEY_FILE", "other.key")
    _, how = served()
    assert (how.database, str(how.key_file)) == ("other.db", "other.key")
    _, how = served("--database", "third.db", "--key-file", "third.key")
    assert (how.database, str(how.key_file)) == ("third.db", "third.key")


def test_serve_names_a_variable_that_means_nothing(served, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_SERVE_PROT", SECRET)
    done, how = served()
    assert done.code == 0
    assert how.port == 8000
    line = json.loads(done.err)
    assert line["event"] == "warning"
    assert line["said"] == (
        "LADDERBOARD_SERVE_PROT is not a known variable. Did you mean LADDERBOARD_SERVE_PORT?"
    )


def test_a_url_in_the_file_counts(served, config):
    config.write_text("[serve]\nurl = 'https://boards.example.org'\nhosts = ['b.example.org']\n")
    done, how = served("--config", config)
    assert "Ladderboard is at https://boards.example.org; Ctrl-C stops it." in done.out
    assert how.settings.hosts == {"boards.example.org", "b.example.org"}
    assert how.settings.secure is True


def test_board_and_team_go_by_the_same_places(served, program, folder, config, monkeypatch):
    done, _ = served(folder, "--config", config)
    assert done.code == 0, done.err
    assert program("board", "list").code == 2  # nobody says where
    monkeypatch.setenv("LADDERBOARD_CONFIG", str(config))
    assert [each["slug"] for each in program("board", "list", "--json").json["boards"]] == ["first"]
    assert program("team", "add", "first", "Team 1").code == 0
    # Who names another database, and its key, is heard.
    done = program("board", "list", "--database", "none.db")
    assert "There is no database none.db" in done.err
    monkeypatch.delenv("LADDERBOARD_CONFIG")
    monkeypatch.setenv("LADDERBOARD_DATABASE", str(config.parent / "boards.db"))
    done = program("board", "list")
    assert (done.code, "encrypted" in done.err) == (2, True)
    monkeypatch.setenv("LADDERBOARD_KEY_FILE", str(config.parent / "key"))
    assert program("board", "list").code == 0
    # What only concerns a server does not stop them.
    monkeypatch.setenv("LADDERBOARD_SERVE_PORT", "eighty")
    assert program("board", "list").code == 0


def test_what_serve_says_to_type_next_leads_to_the_same_database(served, program, folder, config):
    done, _ = served(folder, "--config", config)
    steps = done.out.partition("Next, in another terminal:\n\n")[2]
    assert "  export LADDERBOARD_CONFIG=etc/ladderboard.toml\n" in steps
    assert "LADDERBOARD_DATABASE" not in steps
    assert "--key-file" not in steps
    assert "Another one: LADDERBOARD_CONFIG=etc/ladderboard.toml " in done.out
    done, _ = served(folder, "--config", config, "--database", "o.db", "--key-file", "o.key")
    steps = done.out.partition("Next, in another terminal:\n\n")[2]
    assert "  export LADDERBOARD_DATABASE=o.db\n" in steps
    assert "--key-file o.key)" in steps
    assert "board token --database o.db --key-file o.key\n" in done.out


def test_help_and_completion_do_not_read_a_file(program, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_CONFIG", "none.toml")
    assert program("board", "list", "--help").code == 0
    assert program("serve", "--help").code == 0
    assert "No such file" in program("board", "list").err


def test_settings_need_no_extra_but_the_command_line(program, config, monkeypatch):
    import ladderboard.server

    # It is imported anew, and whoever comes later must find the one that was there.
    monkeypatch.setattr(ladderboard, "server", ladderboard.server)
    for name in ("fastapi", "uvicorn", "starlette", "polars", "yaml", "psycopg", "httpx", "jinja2"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in [module for module in sys.modules if module.startswith("ladderboard.server")]:
        monkeypatch.delitem(sys.modules, name)
    assert program("settings", "--config", config, "--json").json["file"] == str(config)
