"""``ladderboard settings``, and the commands that read a settings file."""

import json
import os

import pytest

from ladderboard.server import SETTINGS, VARIABLES
from support.credentials import random_secret

SECRET = random_secret()


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    for name in list(os.environ):
        if name.startswith("LADDERBOARD_"):
            monkeypatch.delenv(name)


@pytest.fixture
def config(tmp_path):
    """A settings file with a database and a key in the same folder."""
    folder = tmp_path / "etc"
    folder.mkdir()
    path = folder / "ladderboard.toml"
    path.write_text('database = "boards.db"\nkey_file = "key"\n[serve]\nport = 8123\n')
    return path


@pytest.fixture
def served(run_cli, monkeypatch):
    """Run serve with a stand-in for the server; return the result and the config it got."""
    calls = []

    def stand_in(config, *, boards, announce, command):
        calls.append(config)
        announce(f"http://{config.host}:{config.port}", boards.create_first_token())

    monkeypatch.setattr("ladderboard.server.serve", stand_in)
    monkeypatch.setattr("ladderboard.server.check_port_free", lambda *_: None)

    def run(*arguments):
        calls.clear()
        return run_cli("serve", *arguments), (calls or [None])[0]

    return run


def test_every_setting_is_listed_as_json(run_cli, config, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_SERVE_THREADS", "7")
    monkeypatch.setenv("LADDERBOARD_SERVE_PROT", "7")
    report = run_cli("settings", "--config", config, "--json").json
    assert report["file"] == str(config)
    assert [setting["name"] for setting in report["settings"]] == list(SETTINGS)
    assert [variable["name"] for variable in report["variables"]] == [
        variable.name for variable in VARIABLES
    ]
    values = {
        setting["name"]: (setting["value"], setting["from"]) for setting in report["settings"]
    }
    assert values["database"] == (str(config.parent / "boards.db"), "file")
    assert values["serve.threads"] == (7, "environment")
    assert values["serve.failures"] == ([30, 10.0], "default")
    assert report["unknown"] == [
        "LADDERBOARD_SERVE_PROT is not a known variable. Did you mean LADDERBOARD_SERVE_PORT?"
    ]
    for listed in report["settings"]:
        setting = SETTINGS[listed["name"]]
        assert (listed["variable"], listed["option"]) == (setting.variable, setting.option)
        assert listed["meaning"] == setting.meaning


def test_every_setting_is_listed_as_text(run_cli, config, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_CONFIG", str(config))
    result = run_cli("settings")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"Settings file: {config}\n")
    rows = [line.split() for line in result.out.splitlines()]
    assert ["serve.port", "8123", "file"] in [row[:3] for row in rows]
    assert {*SETTINGS, *(variable.name for variable in VARIABLES)} <= {
        row[0] for row in rows if row
    }
    monkeypatch.delenv("LADDERBOARD_CONFIG")
    assert run_cli("settings").out.startswith("Settings file: none; --config FILE or")


def test_options_of_serve_go_before_the_file(run_cli, config):
    rows = run_cli("settings", "--config", config, "--database", "other.db", "--json").json
    values = {row["name"]: (row["value"], row["from"]) for row in rows["settings"]}
    assert values["database"] == ("other.db", "command line")
    assert values["key_file"][1] == "file"


def test_no_secret_is_shown(run_cli, config, monkeypatch):
    config.write_text(f"[serve]\nmetrics_token = '{SECRET}'\n")
    config.chmod(0o600)
    monkeypatch.setenv("LADDERBOARD_DATABASE", f"postgresql://me:{SECRET}@there/boards")
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:{SECRET}@there")
    monkeypatch.setenv("LADDERBOARD_URL", f"http://me:{SECRET}@there")
    for name in ("LADDERBOARD_TOKEN", "LADDERBOARD_PASSPHRASE", "PGPASSWORD"):
        monkeypatch.setenv(name, SECRET)
    for arguments in ([], ["--json"]):
        result = run_cli("settings", "--config", config, *arguments)
        assert result.code == 0
        assert SECRET not in result.out + result.err
    settings = {setting["name"]: setting for setting in json.loads(result.out)["settings"]}
    assert settings["database"]["value"] == "postgresql://me:***@there/boards"
    assert settings["database"]["hidden"] is True
    assert (
        settings["serve.metrics_token"]["value"],
        settings["serve.metrics_token"]["hidden"],
    ) == (
        None,
        True,
    )


def test_an_invalid_settings_file_is_one_line(run_cli, config):
    config.write_text("[serve]\nprot = 80\n")
    result = run_cli("settings", "--config", config)
    assert (result.code, result.out) == (2, "")
    (line,) = result.err.splitlines()
    assert line.endswith("is not a setting. Did you mean serve.port?")
    result = run_cli("settings", "--config", config, "--json")
    assert (result.code, result.json["error"]["code"]) == (2, "invalid_setting")


def test_options_override_environment_and_file(served, config, monkeypatch):
    result, settings = served("--config", config)
    assert result.code == 0, result.err
    assert (settings.port, settings.threads) == (8123, 32)
    assert (config.parent / "boards.db").exists()
    assert settings.key_file == config.parent / "key"
    monkeypatch.setenv("LADDERBOARD_CONFIG", str(config))
    monkeypatch.setenv("LADDERBOARD_SERVE_PORT", "8124")
    monkeypatch.setenv("LADDERBOARD_SERVE_THREADS", "3")
    _, settings = served()
    assert (settings.port, settings.threads) == (8124, 3)
    _, settings = served("--port", "8125", "--proxy", "10.0.0.1,10.0.0.2")
    assert (settings.port, settings.proxy) == (8125, ("10.0.0.1", "10.0.0.2"))
    monkeypatch.setenv("LADDERBOARD_DATABASE", "other.db")
    monkeypatch.setenv("LADDERBOARD_KEY_FILE", "other.key")
    _, settings = served()
    assert (settings.database, str(settings.key_file)) == ("other.db", "other.key")
    _, settings = served("--database", "third.db", "--key-file", "third.key")
    assert (settings.database, str(settings.key_file)) == ("third.db", "third.key")


def test_serve_names_an_unknown_environment_variable(served, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_SERVE_PROT", SECRET)
    result, settings = served()
    assert result.code == 0
    assert settings.port == 8000
    line = json.loads(result.err)
    assert line["event"] == "warning"
    assert line["said"] == (
        "LADDERBOARD_SERVE_PROT is not a known variable. Did you mean LADDERBOARD_SERVE_PORT?"
    )


def test_board_and_team_use_the_same_settings(served, run_cli, folder, config, monkeypatch):
    result, _ = served(folder, "--config", config)
    assert result.code == 0, result.err
    assert run_cli("board", "list").code == 2  # no database is configured
    monkeypatch.setenv("LADDERBOARD_CONFIG", str(config))
    assert [board["slug"] for board in run_cli("board", "list", "--json").json["boards"]] == [
        "first"
    ]
    assert run_cli("team", "add", "first", "Team 1").code == 0
    # Options for another database and its key take precedence.
    result = run_cli("board", "list", "--database", "none.db")
    assert "There is no database none.db. If it is in another" in " ".join(result.err.split())
    monkeypatch.delenv("LADDERBOARD_CONFIG")
    monkeypatch.setenv("LADDERBOARD_DATABASE", str(config.parent / "boards.db"))
    result = run_cli("board", "list")
    assert (result.code, "encrypted" in result.err) == (2, True)
    monkeypatch.setenv("LADDERBOARD_KEY_FILE", str(config.parent / "key"))
    assert run_cli("board", "list").code == 0
    # What only concerns a server does not stop them.
    monkeypatch.setenv("LADDERBOARD_SERVE_PORT", "eighty")
    assert run_cli("board", "list").code == 0


def test_printed_commands_use_the_same_database(served, run_cli, folder, config):
    result, _ = served(folder, "--config", config)
    steps = result.out.partition("Next, in another terminal:\n\n")[2].partition("\n\n")[0]
    assert "  export LADDERBOARD_CONFIG=etc/ladderboard.toml\n" in steps
    assert "LADDERBOARD_DATABASE" not in steps
    assert "--key-file" not in steps
    assert "another one: LADDERBOARD_CONFIG=etc/ladderboard.toml " in result.out
    result, _ = served(folder, "--config", config, "--database", "o.db", "--key-file", "o.key")
    steps = result.out.partition("Next, in another terminal:\n\n")[2].partition("\n\n")[0]
    assert "  export LADDERBOARD_DATABASE=o.db\n" in steps
    assert "--key-file o.key)" in steps
    assert "board token --database o.db --key-file o.key\n" in result.out


def test_help_and_completion_do_not_read_a_file(run_cli, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_CONFIG", "none.toml")
    assert run_cli("board", "list", "--help").code == 0
    assert run_cli("serve", "--help").code == 0
    assert "No such file" in run_cli("board", "list").err
