"""A release built from here and installed elsewhere: nothing of the clone is in sight."""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.built_once import build_once
from support.tutorials import clean_environment

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def release(tmp_path_factory):
    """Build the release of this clone, without a network, and return its folder."""

    def build(folder):
        done = subprocess.run(
            [ROOT / "script/release", folder],
            env={**os.environ, "BUILD_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    return build_once(tmp_path_factory, "release", build)


@pytest.fixture(scope="session")
def wheel(release):
    """Return the wheel of the release."""
    (wheel,) = release.glob("*.whl")
    return wheel


def build(source, target, folder):
    """Build one thing from a source tree, and return it."""
    args = ["-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    done = subprocess.run(
        [sys.executable, *args], cwd=source, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (artifact,) = folder.iterdir()
    return artifact


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory):
    """Install the wheel into an environment of its own, which sees our dependencies and not us."""

    def install(env):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(env)], check=True)
        pip = [sys.executable, "-m", "pip", "--python", str(env / "bin/python"), "install", "-q"]
        subprocess.run([*pip, "--no-deps", "--no-index", "--no-compile", str(wheel)], check=True)
        # What a .pth names is looked into for packages, not for more .pth: our own, by which the
        # clone is found, does not count.
        (packages,) = env.glob("lib/python*/site-packages")
        (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")

    env = build_once(tmp_path_factory, "installed", install)
    return describe_environment(env, tmp_path_factory)


@pytest.fixture(scope="session")
def installed_by_pip(wheel, tmp_path_factory):
    """Install the wheel and the extra server as docs/how-to/install.md does: with pip alone."""
    env = tmp_path_factory.mktemp("by-pip") / "env"
    subprocess.run([sys.executable, "-m", "venv", str(env)], check=True)
    done = subprocess.run(
        [env / "bin/pip", "install", "-q", f"{wheel}[server]"],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    if re.search("NewConnectionError|ConnectTimeout|Name or service not known", done.stderr):
        pytest.skip("pip reaches no package index")
    assert done.returncode == 0, done.stderr
    return describe_environment(env, tmp_path_factory)


def describe_environment(env, tmp_path_factory):
    """Return the places of an environment, and a function that runs its program."""
    (packages,) = env.glob("lib/python*/site-packages")
    path = f"{env / 'bin'}:/usr/bin:/bin"
    clean = clean_environment(path, tmp_path_factory.mktemp("home"))

    def run(*args, cwd, code=0, **options):
        """Run the program, and return its output, which must not mention the clone."""
        done = subprocess.run(
            [env / "bin/ladderboard", *map(str, args)],
            cwd=cwd,
            env=clean,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            **options,
        )
        output = done.stdout + done.stderr
        assert done.returncode == code, output
        check_no_path_of_the_clone(output)
        return output

    return SimpleNamespace(env=env, packages=packages, path=path, clean=clean, run=run)


def check_no_path_of_the_clone(output):
    """See that nothing is named that only a clone has."""
    assert str(ROOT) not in output
    assert not re.search(r"script/|examples/|\.venv|docs/|'\.\[", output), output


@pytest.fixture
def make():
    return SimpleNamespace(build=build, check_no_path_of_the_clone=check_no_path_of_the_clone)
