"""Uses a page with the keyboard alone."""

from __future__ import annotations

# The focused element: roughly its accessible name, and whether it is visible.
_FOCUS = """
() => {
  const focused = document.activeElement;
  if (!focused || focused === document.body) return null;
  const label = focused.getAttribute("aria-label")
    ?? [...(focused.labels ?? [])].map((label) => label.innerText).join(" ");
  const style = getComputedStyle(focused);
  const box = focused.getBoundingClientRect();
  return {
    name: (label || focused.innerText || focused.value || focused.id || focused.tagName)
      .trim().split("\\n")[0],
    outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    shown: box.width > 0 && box.height > 0 && box.right > 0 && box.left < innerWidth
      && box.bottom > 0 && box.top < innerHeight,
  };
}
"""
_MAX_TABS = 120


class KeyboardUser:
    """Moves through a visitor's pages with Tab and activates elements with Enter or Space."""

    def __init__(self, visitor) -> None:
        self._page = visitor.page

    def press(self, *names: str) -> None:
        """Press keys."""
        for name in names:
            self._page.keyboard.press(name)

    def type(self, text: str) -> None:
        """Type text."""
        self._page.keyboard.type(text)

    def focus(self, name: str) -> None:
        """Press Tab until an element has the focus; every focused element must be visible."""
        passed = []
        for _ in range(_MAX_TABS):
            self.press("Tab")
            focused = self._page.evaluate(_FOCUS)
            if focused is None:
                continue  # the address bar
            assert focused["outlined"], f"the focus is invisible on {focused}"
            assert focused["shown"], f"not on screen: {focused}"
            if focused["name"] == name:
                return
            passed.append(focused["name"])
        raise AssertionError(f"{name} cannot be reached; found: {passed}")

    def follow(self, name: str, key: str = "Enter") -> None:
        """Focus an element and press a key that leads to another page."""
        self.focus(name)
        with self._page.expect_navigation():
            self.press(key)
