"""The files that a server is deployed with say nothing that the program does not know."""

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
from ladderboard.server._config import SETTINGS
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
    """See that a command line is one of ours."""
    assert words[0] == "serve"
    named = [each for each in words if each.startswith("-")]
    assert named
    assert set(named) <= options_of_serve()


def check_environment(names):
    """See that the program, or the database's own library, reads what is set."""
    source = "".join(each.read_text() for each in (HOME / "src").rglob("*.py"))
    known = {"PATH", "PGPASSFILE", *(each.variable for each in SETTINGS.values())}
    for name in names:
        assert name in known or f'"{name}"' in source, name


def unit(name):
    read = configparser.ConfigParser(interpolation=None, strict=False)
    read.optionxform = str
    read.read_string((DEPLOY / name).read_text())
    return read


def seconds(text):
    return int(re.fullmatch(r"(\d+)s?", str(text))[1])


def test_the_service_starts_stops_and_reloads_the_program():
    service = unit("ladderboard.service")["Service"]
    program, *words = shlex.split(service["ExecStart"])
    assert program == "/opt/ladderboard/bin/ladderboard"
    check_command(words)
    check_environment([service["Environment"].partition("=")[0]])
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"
    # Who is told to stop by systemd as well as by the parent would end at once.
    assert service["KillMode"] == "mixed"
    assert seconds(service["TimeoutStopSec"]) > GRACE + INHERITED_GRACE
    # A parser that may not lock itself in does its work all the same: nobody would notice.
    assert {"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"} <= set(
        service["SystemCallFilter"].split()
    )
    socket = unit("ladderboard.socket")["Socket"]
    assert re.fullmatch(r"127\.0\.0\.1:\d+", socket["ListenStream"])


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd-analyze")
def test_systemd_finds_nothing_wrong(tmp_path):
    for name in ("ladderboard.service", "ladderboard.socket"):
        text = (DEPLOY / name).read_text()
        (tmp_path / name).write_text(text.replace("/opt/ladderboard/bin/ladderboard", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "ladderboard.service", "ladderboard.socket"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
        env={"SYSTEMD_UNIT_PATH": f"{tmp_path}:", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    ours = [each for each in done.stderr.splitlines() if "ladderboard" in each]
    assert (done.returncode, ours) == (0, [])


def steps():
    """Return the instructions of the container file."""
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    lines = [each for each in text.splitlines() if each and not each.startswith("#")]
    return [tuple(each.split(maxsplit=1)) for each in lines]


def test_the_container_file_is_made_of_what_is_here():
    found = steps()
    assert {word for word, _ in found} <= INSTRUCTIONS
    taken = {each[1:] for each in (HOME / ".dockerignore").read_text().split() if each[0] == "!"}
    for word, rest in found:
        if word == "COPY" and not rest.startswith("--from"):
            *sources, _ = rest.split()
            assert all((HOME / each).exists() for each in sources), rest
            assert set(sources) <= taken
    images = [rest.split()[0] for word, rest in found if word == "FROM"]
    assert all(re.fullmatch(r"python:3\.\d+-slim", each) for each in images)  # and from nowhere


def test_the_container_runs_the_program_as_nobody_special():
    last = dict(steps())
    assert json.loads(last["ENTRYPOINT"]) == ["ladderboard"]  # no shell that would keep signals
    check_command(json.loads(last["CMD"]))
    assert last["USER"] == "10001"
    assert last["STOPSIGNAL"] == "SIGTERM"
    check_environment(re.findall(r"(\w+)=", last["ENV"]))
    probe = json.loads(last["HEALTHCHECK"].partition("CMD ")[2])
    assert probe[:2] == ["python", "-c"]
    compile(probe[2], "probe", "exec")
    assert "/healthz" in probe[2]


def test_the_compose_file_names_only_what_it_has():
    told = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = told["services"]
    assert set(services) == {"ladderboard", "database"}
    ours = services["ladderboard"]
    check_command(ours["command"])
    check_environment(ours["environment"])
    build = ours["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).samefile(DEPLOY / "Containerfile")
    used, volumes = set(), set()
    for each in services.values():
        used |= set(each["secrets"])
        volumes |= {volume.partition(":")[0] for volume in each.get("volumes", ())}
        assert set(each.get("depends_on", ())) <= set(services)
        assert seconds(each["stop_grace_period"]) > GRACE + INHERITED_GRACE
        assert each["restart"] == "unless-stopped"
        # A secret is named by its file, never told.
        assert not [name for name in each["environment"] if name.endswith("PASSWORD")]
    assert used == set(told["secrets"])
    assert volumes == set(told["volumes"])
    spool = ours["environment"]["LADDERBOARD_SERVE_SPOOL"]  # /tmp is memory
    assert f"spool:{spool}" in ours["volumes"]
    assert f" {spool}\n" in (DEPLOY / "Containerfile").read_text()  # where it gets its owner
    files = [each["file"] for each in told["secrets"].values()]
    assert all(Path(each).parent == Path("secrets") for each in files)
    assert "deploy/secrets/" in (HOME / ".gitignore").read_text().split()
    assert all(each.startswith("127.0.0.1:") for each in ours["ports"])


def has_compose():
    if not shutil.which("docker"):
        return False
    done = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.skipif(not has_compose(), reason="there is no docker compose")
def test_compose_finds_nothing_wrong():
    subprocess.run(["docker", "compose", "config", "--quiet"], cwd=DEPLOY, check=True)
