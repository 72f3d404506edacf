"""How a page looks: in every light, on a desk and on phones."""

from __future__ import annotations

from _chromium import DESK, PHONE

__all__ = ["check_looks"]

# Text in a box that is too small for it, where nothing lets one scroll to the rest; two that lie
# upon each other.
_HIDDEN = """
() => {
  const found = [];
  for (const each of document.querySelectorAll("main *, header *, footer *")) {
    const style = getComputedStyle(each);
    if (each.closest(".visually-hidden, .skip, svg, [hidden]") || !each.offsetParent) continue;
    if (/hidden|clip/.test(style.overflowX) && each.scrollWidth > each.clientWidth + 1)
      found.push(`cut off: ${each.outerHTML.slice(0, 120)}`);
  }
  const boxes = (parent) => [...parent.querySelectorAll("text")]
    .filter((each) => each.textContent.trim() && each.getClientRects().length)
    .map((each) => [each, each.getBoundingClientRect()]);
  for (const picture of document.querySelectorAll("main svg")) {
    const frame = picture.getBoundingClientRect();
    if (!frame.width) continue;
    if (frame.height < 40 && picture.matches("figure svg")) found.push("a picture without height");
    const texts = boxes(picture);
    texts.forEach(([one, a], at) => {
      if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.top < frame.top - 1
          || a.bottom > frame.bottom + 1) found.push(`outside its picture: ${one.textContent}`);
      for (const [other, b] of texts.slice(at + 1)) {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        const both = `${one.textContent} ${other.textContent}`;
        if (wide > 1 && high > 3) found.push(`on each other: ${both}`);
      }
    });
  }
  return found;
}
"""
_HEADINGS = "() => [...document.querySelectorAll('h1')].map((each) => each.innerText)"
_LINKS = """
() => [...document.querySelectorAll("a[href^='#']")].map((each) => each.hash.slice(1))
  .filter((each) => each && !document.getElementById(each))
"""
_SMALL = {"width": 320, "height": 640}


def check_looks(visitor) -> None:
    """Fail if axe-core minds anything, or something is cut off, too wide or on something else."""
    page = visitor.page
    assert len(page.evaluate(_HEADINGS)) == 1
    assert page.evaluate(_LINKS) == []  # those that lead nowhere
    for size in (DESK, PHONE, _SMALL):
        page.set_viewport_size(size)
        assert visitor.wider() == [], size
        assert page.evaluate(_HIDDEN) == [], size
    page.set_viewport_size(PHONE)
    assert visitor.axe() == {}
    # Of all that, colours and sizes alone depend on the light and on the screen.
    page.set_viewport_size(DESK)
    for light in ("light", "dark"):
        page.emulate_media(color_scheme=light)
        assert visitor.axe("color-contrast", "link-in-text-block", "target-size") == {}, light
    page.emulate_media(color_scheme="light")
