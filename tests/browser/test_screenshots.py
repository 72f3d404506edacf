"""The screenshots command."""

from pathlib import Path

import pytest
from PIL import Image

from support.processes import run_module

ROOT = Path(__file__).parents[2]


def take_screenshots(*arguments):
    return run_module("support.browser.screenshots", *arguments)


@pytest.mark.slow
def test_screenshots_of_two_pages(tmp_path):
    completed = take_screenshots(tmp_path / "all", "--quick", "--only", "rules", "--only", "data")
    assert completed.returncode == 0, completed.stderr
    names = [
        f"{page}-{variant}" for page in ("rules", "data") for variant in ("light", "dark", "phone")
    ]
    assert completed.stdout.split() == [f"{name}.png" for name in names]
    sheet = (tmp_path / "all/index.html").read_text()
    for name in names:
        assert f'src="{name}.png"' in sheet
        with Image.open(tmp_path / f"all/{name}.png") as picture:
            assert picture.width == (390 if name.endswith("phone") else 1280)
            shades = picture.convert("L").getextrema()
            corner = picture.convert("L").getpixel((2, 2))
        assert shades[1] - shades[0] > 150  # not blank
        assert (corner < 60) == name.endswith("dark")


@pytest.mark.parametrize(
    ("name", "page", "to_docs"),
    [("board", "README.md", "docs/"), ("play", "docs/tutorials/first-attack.md", "../")],
)
def test_screenshots_in_pages_exist_and_are_small(name, page, to_docs):
    path = f"figures/pages/{name}.png"
    assert (ROOT / "docs" / path).stat().st_size < 300_000
    assert f"({to_docs}{path})" in (ROOT / page).read_text()
