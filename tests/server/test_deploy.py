"""The deployment files use only commands, options and variables that the program has."""

import configparser
import inspect
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from ladderboard.cli._serve import serve
from ladderboard.server import SETTINGS
from ladderboard.server._process._shutdown import GRACE, INHERITED_GRACE

HOME = Path(__file__).parents[2]
DEPLOY = HOME / "deploy"
INSTRUCTIONS = {
    "FROM", "WORKDIR", "RUN", "COPY", "USER", "ENV", "VOLUME", "EXPOSE", "HEALTHCHECK",
    "STOPSIGNAL", "ENTRYPOINT", "CMD",
}  # fmt: skip


def options_of_serve():
    return {f"--{name.replace('_', '-')}" for name in inspect.signature(serve).parameters}


def check_command(words):
    """Check that a command line has only known options."""
    assert words[0] == "serve"
    options = [word for word in words if word.startswith("-")]
    assert options
    assert set(options) <= options_of_serve()


def check_environment(names):
    """Check that the program or the database library reads each variable."""
    source = "".join(path.read_text() for path in (HOME / "src").rglob("*.py"))
    known = {"PATH", "PGPASSFILE", *(setting.variable for setting in SETTINGS.values())}
    for name in names:
        assert name in known or f'"{name}"' in source, name


def read_unit(name):
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str
    parser.read_string((DEPLOY / name).read_text())
    return parser


def to_seconds(text):
    return int(re.fullmatch(r"(\d+)s?", str(text))[1])


def test_the_service_starts_stops_and_reloads_the_program():
    service = read_unit("ladderboard.service")["Service"]
    program, *words = shlex.split(service["ExecStart"])
    assert program == "/opt/ladderboard/bin/ladderboard"
    check_command(words)
    check_environment([service["Environment"].partition("=")[0]])
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"
    # A worker that gets a second stop signal, from systemd, would end at once.
    assert service["KillMode"] == "mixed"
    assert to_seconds(service["TimeoutStopSec"]) > GRACE + INHERITED_GRACE
    # Without these a parser runs unconfined, and that would go unnoticed.
    assert {"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"} <= set(
        service["SystemCallFilter"].split()
    )
    socket = read_unit("ladderboard.socket")["Socket"]
    assert re.fullmatch(r"127\.0\.0\.1:\d+", socket["ListenStream"])


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is missing")
def test_systemd_accepts_the_units(tmp_path):
    for name in ("ladderboard.service", "ladderboard.socket"):
        text = (DEPLOY / name).read_text()
        (tmp_path / name).write_text(text.replace("/opt/ladderboard/bin/ladderboard", "/bin/true"))
    result = subprocess.run(
        ["systemd-analyze", "verify", "ladderboard.service", "ladderboard.socket"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
        env={"SYSTEMD_UNIT_PATH": f"{tmp_path}:", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    messages = [line for line in result.stderr.splitlines() if "ladderboard" in line]
    assert (result.returncode, messages) == (0, [])


def instructions_of_container():
    """Return the instructions of the container file."""
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def test_the_container_file_copies_only_existing_files():
    instructions = instructions_of_container()
    assert {word for word, _ in instructions} <= INSTRUCTIONS
    included = {part[1:] for part in (HOME / ".dockerignore").read_text().split() if part[0] == "!"}
    for word, rest in instructions:
        if word == "COPY" and not rest.startswith("--from"):
            *sources, _ = rest.split()
            assert all((HOME / source).exists() for source in sources), rest
            assert set(sources) <= included
    images = [rest.split()[0] for word, rest in instructions if word == "FROM"]
    assert all(
        re.fullmatch(r"python:3\.\d+-slim", image) for image in images
    )  # no registry is named


def test_the_container_runs_the_program_as_an_ordinary_user():
    last = dict(instructions_of_container())
    assert json.loads(last["ENTRYPOINT"]) == [
        "ladderboard"
    ]  # no shell, which would swallow signals
    check_command(json.loads(last["CMD"]))
    assert last["USER"] == "10001"
    assert last["STOPSIGNAL"] == "SIGTERM"
    check_environment(re.findall(r"(\w+)=", last["ENV"]))
    probe = json.loads(last["HEALTHCHECK"].partition("CMD ")[2])
    assert probe[:2] == ["python", "-c"]
    compile(probe[2], "probe", "exec")
    assert "/healthz" in probe[2]


def test_the_compose_file_declares_all_it_uses():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    assert set(services) == {"ladderboard", "database"}
    server = services["ladderboard"]
    check_command(server["command"])
    check_environment(server["environment"])
    build = server["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).samefile(DEPLOY / "Containerfile")
    secrets, volumes = set(), set()
    for service in services.values():
        secrets |= set(service["secrets"])
        volumes |= {volume.partition(":")[0] for volume in service.get("volumes", ())}
        assert set(service.get("depends_on", ())) <= set(services)
        assert to_seconds(service["stop_grace_period"]) > GRACE + INHERITED_GRACE
        assert service["restart"] == "unless-stopped"
        # A secret is given by its file, never by value.
        assert not [name for name in service["environment"] if name.endswith("PASSWORD")]
    assert secrets == set(compose["secrets"])
    assert volumes == set(compose["volumes"])
    spool = server["environment"]["LADDERBOARD_SERVE_SPOOL"]  # /tmp is memory
    assert f"spool:{spool}" in server["volumes"]
    assert f" {spool}\n" in (DEPLOY / "Containerfile").read_text()  # which sets its owner
    files = [secret["file"] for secret in compose["secrets"].values()]
    assert all(Path(file).parent == Path("secrets") for file in files)
    assert "deploy/secrets/" in (HOME / ".gitignore").read_text().split()
    assert all(port.startswith("127.0.0.1:") for port in server["ports"])


def has_compose():
    if not shutil.which("docker"):
        return False
    result = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    return result.returncode == 0


@pytest.mark.skipif(not has_compose(), reason="docker compose is missing")
def test_compose_accepts_the_file():
    subprocess.run(["docker", "compose", "config", "--quiet"], cwd=DEPLOY, check=True)
