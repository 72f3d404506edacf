"""The command that takes pictures of all pages, in short."""

from pathlib import Path

import pytest
from PIL import Image

from support.browser.page_states import PAGE_STATES
from support.processes import run_module

ROOT = Path(__file__).parents[2]


def run(*words):
    return run_module("support.browser.screenshots", *words)


@pytest.mark.slow
def test_pictures_of_some_pages(tmp_path):
    done = run(tmp_path / "all", "--quick", "--only", "login", "--only", "refusal")
    assert done.returncode == 0, done.stderr
    names = [
        f"{page}-{look}" for page in ("login", "refusal") for look in ("light", "dark", "phone")
    ]
    assert done.stdout.split() == [f"{name}.png" for name in names]
    sheet = (tmp_path / "all/index.html").read_text()
    for name in names:
        assert f'src="{name}.png"' in sheet
        with Image.open(tmp_path / f"all/{name}.png") as picture:
            assert picture.width == (390 if name.endswith("phone") else 1280)
            shades = picture.convert("L").getextrema()
            corner = picture.convert("L").getpixel((2, 2))
        assert shades[1] - shades[0] > 150  # something to read
        assert (corner < 60) == name.endswith("dark")


def test_a_page_that_is_not_there(tmp_path):
    done = run(tmp_path, "--only", "nowhere")
    assert done.returncode == 2
    assert "no such page; there is: boards, board," in done.stderr


def test_every_page_has_a_name_of_its_own():
    names = [state.name for state in PAGE_STATES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", ["board", "play"])
def test_what_readme_shows_is_there_and_small(name):
    place = f"docs/figures/pages/{name}.png"
    assert (ROOT / place).stat().st_size < 300_000
    assert f"({place})" in (ROOT / "README.md").read_text()
