"""Take pictures of the pages: see script/screenshots."""

from __future__ import annotations

import argparse
import html
import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests/server"))

from _chromium import open_browser  # noqa: E402
from _gallery import GALLERY  # noqa: E402
from _live import serve  # noqa: E402
from _visitor import Visitor  # noqa: E402
from _world import make_world  # noqa: E402

LOOKS = {"light": {}, "dark": {"dark": True}, "phone": {"phone": True}}
# What README shows: which page, and down to the end of which part of it.
SHOWN = {"board": ("board-digits", "section:has(figure)"), "play": ("play", "#play")}
_WIDE = 1080


def main(words: list[str] | None = None) -> None:
    """Take all pictures, or some."""
    parser = argparse.ArgumentParser(prog="script/screenshots", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / ".ladderboard/screenshots")
    parser.add_argument("--only", action="append", help="pages whose names begin so")
    parser.add_argument("--quick", action="store_true", help="with less on the boards")
    parser.add_argument("--docs", nargs="?", type=Path, const=ROOT / "docs/figures/pages")
    told = parser.parse_args(words)
    chosen = [each for each in GALLERY if each.name.startswith(tuple(told.only or [""]))]
    if not chosen:
        parser.error(f"no such page; there is: {', '.join(each.name for each in GALLERY)}")
    told.folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(Path(folder)) as live_server,
        open_browser() as browser,
    ):
        world = make_world(live_server, Path(folder), rounds=1 if told.quick else 4)
        for picture in chosen:
            for look, how in LOOKS.items():
                name = f"{picture.name}-{look}.png"
                (told.folder / name).write_bytes(take(browser, world, picture, **how))
                print(name, flush=True)  # noqa: T201
        if told.docs is not None:
            told.docs.mkdir(parents=True, exist_ok=True)
            for name, (page, part) in SHOWN.items():
                picture = next(each for each in GALLERY if each.name == page)
                (told.docs / f"{name}.png").write_bytes(show(browser, world, picture, part))
    sheet(told.folder, [each.name for each in chosen])


def take(browser, world, picture, **how) -> bytes:
    """Return a picture of a whole page."""
    visitor = Visitor(browser, world.live_server, picture.token(world), **how)
    visitor.open(picture.path)
    picture.do(visitor, world)
    taken = visitor.page.screenshot(full_page=True)
    visitor.leave()
    return taken


def show(browser, world, picture, part: str) -> bytes:
    """Return a page down to a part of it, fine enough for any screen, with few colours."""
    visitor = Visitor(browser, world.live_server, picture.token(world), scale=1.5)
    visitor.page.set_viewport_size({"width": _WIDE, "height": 900})
    visitor.open(picture.path)
    box = visitor.page.locator(part).first.bounding_box()
    clip = {"x": 0, "y": 0, "width": _WIDE, "height": box["y"] + box["height"] + 16}
    taken = Image.open(io.BytesIO(visitor.page.screenshot(clip=clip, full_page=True)))
    visitor.leave()
    small = io.BytesIO()
    plain = taken.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    plain.save(small, "PNG", optimize=True)
    return small.getvalue()


def sheet(folder: Path, names: list[str]) -> None:
    """Write all pictures side by side."""
    rows = []
    for name in map(html.escape, names):
        cells = "".join(
            f'<td><a href="{name}-{look}.png"><img src="{name}-{look}.png" '
            f'alt="{name}, {look}" width="{240 if look == "phone" else 480}"></a></td>'
            for look in LOOKS
        )
        rows.append(f"<tr><th colspan={len(LOOKS)}>{name}</th></tr><tr>{cells}</tr>")
    style = "th{text-align:left;padding-top:2em}td{vertical-align:top;padding-right:1em}"
    text = f"<!doctype html><meta charset=utf-8><title>Pages</title><style>{style}</style>"
    (folder / "index.html").write_text(f"{text}<table>{''.join(rows)}</table>\n")


if __name__ == "__main__":
    main()
