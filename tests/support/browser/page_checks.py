"""Checks the layout and accessibility of a page in light and dark, on desktop and phones."""

from __future__ import annotations

from support.browser.chromium import DESKTOP, PHONE

# Text that is cut off in a box without scrolling; labels of figures that overlap.
_LAYOUT_PROBLEMS = """
() => {
  const problems = [];
  for (const element of document.querySelectorAll("main *, header *, footer *")) {
    const style = getComputedStyle(element);
    if (element.closest(".visually-hidden, .skip, svg, [hidden]")) continue;
    if (!element.offsetParent) continue;
    if (/hidden|clip/.test(style.overflowX) && element.scrollWidth > element.clientWidth + 1)
      problems.push(`cut off: ${element.outerHTML.slice(0, 120)}`);
  }
  const boxes = (parent) => [...parent.querySelectorAll("text")]
    .filter((text) => text.textContent.trim() && text.getClientRects().length)
    .map((text) => [text, text.getBoundingClientRect()]);
  for (const picture of document.querySelectorAll("main svg")) {
    const frame = picture.getBoundingClientRect();
    if (!frame.width) continue;
    if (frame.height < 40 && picture.matches("figure svg")) problems.push("figure without height");
    const texts = boxes(picture);
    texts.forEach(([one, a], index) => {
      if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.top < frame.top - 1
          || a.bottom > frame.bottom + 1) problems.push(`outside its figure: ${one.textContent}`);
      for (const [other, b] of texts.slice(index + 1)) {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        const both = `${one.textContent} ${other.textContent}`;
        if (wide > 1 && high > 3) problems.push(`overlapping: ${both}`);
      }
    });
  }
  return problems;
}
"""
_HEADINGS = "() => [...document.querySelectorAll('h1')].map((heading) => heading.innerText)"
_BROKEN_FRAGMENTS = """
() => [...document.querySelectorAll("a[href^='#']")].map((link) => link.hash.slice(1))
  .filter((id) => id && !document.getElementById(id))
"""
_SMALL_PHONE = {"width": 320, "height": 640}


def check_page(visitor) -> None:
    """Fail on axe-core violations and on content that is cut off, too wide or overlapping."""
    page = visitor.page
    assert len(page.evaluate(_HEADINGS)) == 1
    assert page.evaluate(_BROKEN_FRAGMENTS) == []
    for size in (DESKTOP, PHONE, _SMALL_PHONE):
        page.set_viewport_size(size)
        assert visitor.overflowing() == [], size
        assert page.evaluate(_LAYOUT_PROBLEMS) == [], size
    page.set_viewport_size(PHONE)
    assert visitor.axe_violations() == {}
    # Only colours and sizes depend on the colour scheme and the screen.
    page.set_viewport_size(DESKTOP)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert (
            visitor.axe_violations("color-contrast", "link-in-text-block", "target-size") == {}
        ), scheme
    page.emulate_media(color_scheme="light")
