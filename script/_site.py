"""Make the documentation a site: gather its pages, then let Zensical build them strictly.

Pages are written to be read as they are, in the repository. What the site needs besides is done
here: the API and every ``--help`` become pages of the reference; the navigation is what
``docs/index.md`` lists, in its order; files outside ``docs/`` that a page links to become pages
too; doctests are coloured as such; and indices, written ``R_D`` or ``f_{t,v}``, are set as indices.
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

from _reference import reference_pages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]*)(#[^)\s]*)?\)")
TARGET = re.compile(r"(?<=\]\()([^)#\s]*)(#[^)\s]*)?(?=\))")
BLOCK = re.compile(r"(^ *```.*?^ *```)", flags=re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(^ *```.*?^ *```|`[^`]+`|\]\([^)]*\))", flags=re.MULTILINE | re.DOTALL)
BELOW = re.compile(r"(?<=[\w)])_(?:\{([^{}]*)\}|([^\W_])(?!\w))")
ABOVE = re.compile(r"(?<=[\w)\]])\^(?:\{([^{}]*)\}|(-?\w+|\*))")
HEAD = "---\ntitle: Leaderboards that resist overfitting\n---\n\n"  # the front page's name in a tab
LANGUAGES = {".py": "python", ".yaml": "yaml", ".json": "json", ".toml": "toml", ".sh": "bash"}


def map_prose(code: re.Pattern[str], text: str, change: Callable[[str], str]) -> str:
    """Change the parts of a text that are not code."""
    parts = code.split(text)
    parts[::2] = [change(part) for part in parts[::2]]
    return "".join(parts)


def format_indices(text: str) -> str:
    """Format ``R_D``, ``f_{t,v}`` and ``e^{-x}`` with subscripts and superscripts."""
    text = BELOW.sub(lambda match_: f"<sub>{match_[1] or match_[2]}</sub>", text)
    return ABOVE.sub(lambda match_: f"<sup>{match_[1] or match_[2]}</sup>", text)


def mark_prompts(text: str) -> str:
    """Mark blocks that begin with a prompt as ``pycon``, so that prompts are not copied."""
    return re.sub(r"^( *)```python\n(?=\1>>>)", r"\1```pycon\n", text, flags=re.MULTILINE)


def indent_lists(lines: list[str]) -> list[str]:
    """Indent the contents of list items by four spaces, which the site generator requires."""
    result, waiting = [], deque(lines)
    while waiting:
        line = waiting.popleft()
        result.append(line)
        if line.startswith("```"):
            while waiting and result[-1] != "```":
                result.append(waiting.popleft())
        elif item := re.match(r"(?:-|\d+\.) +", line):
            indent, inside = " " * len(item[0]), []
            while waiting and (not waiting[0] or waiting[0].startswith(indent)):
                inside.append(waiting.popleft().removeprefix(indent))
            result += [inner and f"    {inner}" for inner in indent_lists(inside)]
    return result


def site_path(source: str) -> str:
    """Return the path on the site of a file of the repository."""
    path = ROOT / source
    if source.startswith("docs/"):
        return source.removeprefix("docs/")
    if path.is_dir():
        return f"project/{source}/index.md"
    return f"project/{source}" if path.suffix == ".md" else f"project/{source}.md"


def render_page(source: str, generated: dict[str, str]) -> str:
    """Return a file as a Markdown page: itself, its text as code, or the folder's contents."""
    if source in generated:
        return generated[source]
    path = ROOT / source
    if path.suffix == ".md":
        return path.read_text()
    if path.is_dir():
        lines = [f"# {source}", ""]
        for entry in sorted(path.iterdir()):
            if entry.name == "__pycache__":
                continue
            if entry.is_dir() or entry.suffix in LANGUAGES:
                lines.append(f"- [{entry.name}]({entry.name})")
            elif entry.name != "README.md":
                lines.append(f"- {entry.name}")
        readme = path / "README.md"
        return "\n".join([readme.read_text() if readme.exists() else "", *lines, ""])
    return f"# {source}\n\n```{LANGUAGES.get(path.suffix, 'text')}\n{path.read_text()}```\n"


def copy_pages(to: Path, generated: dict[str, str]) -> None:
    """Write every page, generated ones too, and every file that one of them shows or links to."""
    written = {f"docs/{path.relative_to(ROOT / 'docs')}" for path in ROOT.glob("docs/**/*.md")}
    waiting = sorted(written | set(generated))
    gathered = set(waiting)

    def rewrite_links(source: str, text: str) -> str:
        def rewrite_link(match_: re.Match[str]) -> str:
            target, anchor = match_[1], match_[2] or ""
            if not target or "://" in target:
                return match_[0]
            here = ROOT / source if (ROOT / source).is_dir() else (ROOT / source).parent
            linked = os.path.relpath((here / target).resolve(), ROOT)
            if linked not in generated and not (ROOT / linked).exists():
                sys.exit(f"{source}: the link {target} does not exist.")
            if linked not in gathered:
                gathered.add(linked)
                waiting.append(linked)
            return os.path.relpath(site_path(linked), Path(site_path(source)).parent) + anchor

        return map_prose(BLOCK, text, lambda part: TARGET.sub(rewrite_link, part))

    for source in waiting:  # grows while pages are followed
        file = to / site_path(source)
        file.parent.mkdir(parents=True, exist_ok=True)
        if source.startswith("docs/") and not source.endswith(".md"):
            shutil.copy(ROOT / source, file)
            continue
        text = rewrite_links(source, render_page(source, generated))
        text = "\n".join([*indent_lists(text.splitlines()), ""])
        text = mark_prompts(map_prose(CODE, text, format_indices))
        file.write_text(f"{HEAD}{text}" if source == "docs/index.md" else text)


def read_sections() -> Iterator[tuple[str, list[tuple[str, list[tuple[str, str]]]]]]:
    """Read the sections of ``docs/index.md``, each with its items and their links."""
    text = (ROOT / "docs/index.md").read_text()
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        name, _, rest = section.partition("\n")
        items = []
        for item in re.split(r"^- ", rest, flags=re.MULTILINE)[1:]:
            links = [(" ".join(link[1].split()), link[2]) for link in LINK.finditer(item)]
            before = item.partition("[")[0].strip(" :\n")
            items.append((before, links))
        yield name.strip(), items


def format_navigation() -> str:
    """Return the sections as Zensical's navigation, a line of TOML."""

    def navigation_entry(title: str, target: str) -> str:
        title = (title[0].upper() + title[1:]).replace("`", "")  # the first letter of code stays
        return f"{{ {json.dumps(title, ensure_ascii=False)} = {target} }}"

    def target_path(target: str) -> str:
        return json.dumps(site_path(os.path.relpath(ROOT / "docs" / target, ROOT)))

    lines = [navigation_entry("Home", '"index.md"')]
    for name, items in read_sections():
        pages: list[str] = []
        for before, links in items:
            entries = [navigation_entry(title, target_path(target)) for title, target in links]
            pages += [navigation_entry(before, f"[{', '.join(entries)}]")] if before else entries
        lines.append(navigation_entry(name, f"[{', '.join(pages)}]"))
    return f"nav = [{', '.join(lines)}]"


def build(to: Path, generated: dict[str, str]) -> None:
    """Build the site into a folder, strictly: a broken link is an error.

    ``generated`` are pages that are not in the repository, by the paths they would have there.
    """
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        copy_pages(work / "docs", generated)
        shutil.copy(ROOT / "script/site.css", work / "docs/site.css")
        settings = (ROOT / "zensical.toml").read_text()
        head, table, rest = settings.partition("[project]\n")
        (work / "zensical.toml").write_text(f"{head}{table}{format_navigation()}\n{rest}")
        command = [sys.executable, "-m", "zensical", "build", "--strict"]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        if done.returncode:
            output = done.stdout + done.stderr.partition("Traceback")[0]
            sys.exit(re.sub(r"\x1b\[[\d;]*m", "", output))  # it colours every letter of a line
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(work / "site", to)


if __name__ == "__main__":
    build(Path(sys.argv[1]), reference_pages())
