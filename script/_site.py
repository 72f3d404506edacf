"""Make the documentation a site: gather its pages, then let Zensical build them strictly.

Pages are written to be read as they are, in the repository. What the site needs besides is done
here: the navigation is what ``docs/index.md`` lists, in its order; files outside ``docs/`` that a
page links to become pages too; doctests are coloured as such; and indices, written ``R_D`` or
``f_{t,v}``, are set as indices.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]*)(#[^)\s]*)?\)")
TARGET = re.compile(r"(?<=\]\()([^)#\s]*)(#[^)\s]*)?(?=\))")
BLOCK = re.compile(r"(^ *```.*?^ *```)", flags=re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(^ *```.*?^ *```|`[^`]+`|\]\([^)]*\))", flags=re.MULTILINE | re.DOTALL)
BELOW = re.compile(r"(?<=[\w)])_(?:\{([^{}]*)\}|([^\W_])(?!\w))")
ABOVE = re.compile(r"(?<=[\w)\]])\^(?:\{([^{}]*)\}|(-?\w+|\*))")
HEAD = (
    "---\ntitle: A leaderboard that stays honest\n---\n\n"  # what the front page is called in a tab
)
LANGUAGES = {".py": "python", ".yaml": "yaml", ".json": "json", ".toml": "toml", ".sh": "bash"}


def between(code: re.Pattern[str], text: str, change: Callable[[str], str]) -> str:
    """Change what is not code."""
    parts = code.split(text)
    parts[::2] = [change(part) for part in parts[::2]]
    return "".join(parts)


def indices(text: str) -> str:
    """Set ``R_D``, ``f_{t,v}`` and ``e^{-x}`` as mathematics is set."""
    text = BELOW.sub(lambda found: f"<sub>{found[1] or found[2]}</sub>", text)
    return ABOVE.sub(lambda found: f"<sup>{found[1] or found[2]}</sup>", text)


def coloured(text: str) -> str:
    """Call a block that begins with a prompt what it is, so that prompts are not code."""
    return re.sub(r"^( *)```python\n(?=\1>>>)", r"\1```pycon\n", text, flags=re.MULTILINE)


def widened(lines: list[str]) -> list[str]:
    """Indent what belongs to a list's item by four; less is enough elsewhere, but not here."""
    made, waiting = [], deque(lines)
    while waiting:
        line = waiting.popleft()
        made.append(line)
        if line.startswith("```"):
            while waiting and made[-1] != "```":
                made.append(waiting.popleft())
        elif item := re.match(r"(?:-|\d+\.) +", line):
            own, inside = " " * len(item[0]), []
            while waiting and (not waiting[0] or waiting[0].startswith(own)):
                inside.append(waiting.popleft().removeprefix(own))
            made += [each and f"    {each}" for each in widened(inside)]
    return made


def place(source: str) -> str:
    """Where a file of the repository is on the site."""
    path = ROOT / source
    if source.startswith("docs/"):
        return source.removeprefix("docs/")
    if path.is_dir():
        return f"project/{source}/index.md"
    return f"project/{source}" if path.suffix == ".md" else f"project/{source}.md"


def page(source: str) -> str:
    """What a file is as a page: itself, or its text, or what is in the folder."""
    path = ROOT / source
    if path.suffix == ".md":
        return path.read_text()
    if path.is_dir():
        lines = [f"# {source}", ""]
        for each in sorted(path.iterdir()):
            if each.is_dir() or each.suffix in LANGUAGES:
                lines.append(f"- [{each.name}]({each.name})")
            elif each.name != "README.md":
                lines.append(f"- {each.name}")
        sign = path / "README.md"
        return "\n".join([sign.read_text() if sign.exists() else "", *lines, ""])
    return f"# {source}\n\n```{LANGUAGES.get(path.suffix, 'text')}\n{path.read_text()}```\n"


def gather(to: Path) -> None:
    """Copy every page, and every file that one of them shows or links to."""
    waiting = sorted(
        f"docs/{path.relative_to(ROOT / 'docs')}" for path in ROOT.glob("docs/**/*.md")
    )
    seen = set(waiting)

    def follow(source: str, text: str) -> str:
        def change(found: re.Match[str]) -> str:
            target, anchor = found[1], found[2] or ""
            if not target or "://" in target:
                return found[0]
            here = ROOT / source if (ROOT / source).is_dir() else (ROOT / source).parent
            there = os.path.relpath((here / target).resolve(), ROOT)
            if not (ROOT / there).exists():
                sys.exit(f"{source}: the link {target} leads nowhere.")
            if there not in seen:
                seen.add(there)
                waiting.append(there)
            return os.path.relpath(place(there), Path(place(source)).parent) + anchor

        return between(BLOCK, text, lambda part: TARGET.sub(change, part))

    for source in waiting:  # grows while pages are followed
        file = to / place(source)
        file.parent.mkdir(parents=True, exist_ok=True)
        if source.startswith("docs/") and not source.endswith(".md"):
            shutil.copy(ROOT / source, file)
            continue
        text = "\n".join(widened(follow(source, page(source)).splitlines())) + "\n"
        text = coloured(between(CODE, text, indices))
        file.write_text(f"{HEAD}{text}" if source == "docs/index.md" else text)


def shelves() -> Iterator[tuple[str, list[tuple[str, list[tuple[str, str]]]]]]:
    """Read ``docs/index.md``: its shelves, and in each its items with their links."""
    text = (ROOT / "docs/index.md").read_text()
    for shelf in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        name, _, rest = shelf.partition("\n")
        items = []
        for item in re.split(r"^- ", rest, flags=re.MULTILINE)[1:]:
            links = [(" ".join(found[1].split()), found[2]) for found in LINK.finditer(item)]
            before = item.partition("[")[0].strip(" :\n")
            items.append((before, links))
        yield name.strip(), items


def navigation() -> str:
    """Say the shelves as Zensical reads them, in a line of TOML."""

    def entry(title: str, target: str) -> str:
        title = (title[0].upper() + title[1:]).replace("`", "")  # code begins as it is written
        return f"{{ {json.dumps(title, ensure_ascii=False)} = {target} }}"

    def where(target: str) -> str:
        return json.dumps(place(os.path.relpath(ROOT / "docs" / target, ROOT)))

    whole = [entry("Home", '"index.md"')]
    for name, items in shelves():
        pages: list[str] = []
        for before, links in items:
            entries = [entry(title, where(target)) for title, target in links]
            pages += [entry(before, f"[{', '.join(entries)}]")] if before else entries
        whole.append(entry(name, f"[{', '.join(pages)}]"))
    return f"nav = [{', '.join(whole)}]"


def build(to: Path) -> None:
    """Build the site into a folder, strictly: a link that leads nowhere is an error."""
    with tempfile.TemporaryDirectory() as made:
        work = Path(made)
        gather(work / "docs")
        shutil.copy(ROOT / "script/site.css", work / "docs/site.css")
        settings = (ROOT / "zensical.toml").read_text()
        head, table, rest = settings.partition("[project]\n")
        (work / "zensical.toml").write_text(f"{head}{table}{navigation()}\n{rest}")
        command = [sys.executable, "-m", "zensical", "build", "--strict"]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        if done.returncode:
            said = done.stdout + done.stderr.partition("Traceback")[0]
            sys.exit(re.sub(r"\x1b\[[\d;]*m", "", said))  # it colours every letter of a line
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(work / "site", to)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
