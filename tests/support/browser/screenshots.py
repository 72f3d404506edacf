"""Takes screenshots of all pages; see script/screenshots."""

from __future__ import annotations

import argparse
import contextlib
import html
import io
import os
import sys
import tempfile
from pathlib import Path

from PIL import Image

from support.browser.browser_server import serve_for_browser
from support.browser.chromium import open_browser
from support.browser.example_boards import make_example_boards
from support.browser.page_states import PAGE_STATES
from support.browser.visitor import Visitor

ROOT = Path(__file__).parents[3]

VARIANTS = {"light": {}, "dark": {"dark": True}, "phone": {"phone": True}}
# Screenshots in the README: the page, and the element at whose end it is cut.
README_PAGES = {
    "board": ("leaderboard", ".standings tbody tr:nth-child(13)"),
    "play": ("play", "#play"),
}
_README_WIDTH = 1080
# Readers see their own system's font; pictures show a good one.
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
<include ignore_missing="yes">/etc/fonts/fonts.conf</include>
{}
</fontconfig>
"""
_ALIAS = (
    '<match target="pattern"><test name="family"><string>{}</string></test>'
    '<edit name="family" mode="prepend" binding="strong"><string>{}</string></edit></match>'
)
_PICTURE_FONTS = {
    "system-ui": "Inter", "sans-serif": "Inter", "sans": "Inter", "DejaVu Sans": "Inter",
    "monospace": "JetBrains Mono", "ui-monospace": "JetBrains Mono",
}  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    """Take all screenshots, or some."""
    parser = argparse.ArgumentParser(prog="script/screenshots", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / ".ladderboard/screenshots")
    parser.add_argument("--only", action="append", help="pages whose names begin so")
    parser.add_argument("--quick", action="store_true", help="with less on the boards")
    parser.add_argument("--docs", nargs="?", type=Path, const=ROOT / "docs/figures/pages")
    options = parser.parse_args(arguments)
    prefixes = tuple(options.only or [""])
    chosen = [state for state in PAGE_STATES if state.name.startswith(prefixes)]
    if not chosen:
        parser.error(f"no such page; there is: {', '.join(state.name for state in PAGE_STATES)}")
    options.folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        _picture_fonts(Path(folder)),
        serve_for_browser(Path(folder)) as live_server,
        open_browser() as browser,
    ):
        boards = make_example_boards(live_server, Path(folder), rounds=1 if options.quick else 4)
        for state in chosen:
            for variant, how in VARIANTS.items():
                name = f"{state.name}-{variant}.png"
                (options.folder / name).write_bytes(capture_page(browser, boards, state, **how))
                sys.stdout.write(f"{name}\n")
                sys.stdout.flush()
        if options.docs is not None:
            options.docs.mkdir(parents=True, exist_ok=True)
            for name, (page, part) in README_PAGES.items():
                state = next(state for state in PAGE_STATES if state.name == page)
                content = capture_for_readme(browser, boards, state, part)
                (options.docs / f"{name}.png").write_bytes(content)
    write_contact_sheet(options.folder, [state.name for state in chosen])


@contextlib.contextmanager
def _picture_fonts(folder: Path):
    """Let browsers that start in this block use the fonts for pictures, where installed."""
    path = folder / "fonts.conf"
    path.write_text(
        _FONTS.format("\n".join(_ALIAS.format(*names) for names in _PICTURE_FONTS.items()))
    )
    before = os.environ.get("FONTCONFIG_FILE")
    os.environ["FONTCONFIG_FILE"] = str(path)
    try:
        yield
    finally:
        if before is None:
            del os.environ["FONTCONFIG_FILE"]
        else:
            os.environ["FONTCONFIG_FILE"] = before


def capture_page(browser, boards, state, **options) -> bytes:
    """Return a screenshot of a whole page."""
    visitor = Visitor(browser, boards.live_server, state.token(boards), **options)
    visitor.open(state.path)
    state.prepare(visitor, boards)
    visitor.page.evaluate("scrollTo(0, 0)")  # the head of a board stays in view
    screenshot = visitor.page.screenshot(full_page=True)
    visitor.close()
    return screenshot


def capture_for_readme(browser, boards, state, part: str) -> bytes:
    """Return a page down to an element, in high resolution with few colours."""
    visitor = Visitor(browser, boards.live_server, state.token(boards), scale=1.5)
    visitor.page.set_viewport_size({"width": _README_WIDTH, "height": 900})
    visitor.open(state.path)
    box = visitor.page.locator(part).first.bounding_box()
    clip = {"x": 0, "y": 0, "width": _README_WIDTH, "height": box["y"] + box["height"]}
    screenshot = Image.open(io.BytesIO(visitor.page.screenshot(clip=clip, full_page=True)))
    visitor.close()
    out = io.BytesIO()
    reduced = screenshot.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    reduced.save(out, "PNG", optimize=True)
    return out.getvalue()


def write_contact_sheet(folder: Path, names: list[str]) -> None:
    """Write a page with all screenshots side by side."""
    rows = []
    for name in map(html.escape, names):
        cells = "".join(
            f'<td><a href="{name}-{variant}.png"><img src="{name}-{variant}.png" '
            f'alt="{name}, {variant}" width="{240 if variant == "phone" else 480}"></a></td>'
            for variant in VARIANTS
        )
        rows.append(f"<tr><th colspan={len(VARIANTS)}>{name}</th></tr><tr>{cells}</tr>")
    style = "th{text-align:left;padding-top:2em}td{vertical-align:top;padding-right:1em}"
    text = f"<!doctype html><meta charset=utf-8><title>Pages</title><style>{style}</style>"
    (folder / "index.html").write_text(f"{text}<table>{''.join(rows)}</table>\n")


if __name__ == "__main__":
    main()
