"""Somebody who has a keyboard and nothing else."""

from __future__ import annotations

__all__ = ["Keys"]

# What has the focus: its name as a screen reader says it (nearly), and whether it can be seen.
_FOCUS = """
() => {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  const label = at.getAttribute("aria-label")
    ?? [...(at.labels ?? [])].map((each) => each.innerText).join(" ");
  const style = getComputedStyle(at);
  const box = at.getBoundingClientRect();
  return {
    name: (label || at.innerText || at.value || at.id || at.tagName).trim().split("\\n")[0],
    outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    shown: box.width > 0 && box.height > 0 && box.right > 0 && box.left < innerWidth
      && box.bottom > 0 && box.top < innerHeight,
  };
}
"""
_MANY = 120


class Keys:
    """Goes through pages with Tab, and does things with Enter and Space."""

    def __init__(self, visitor) -> None:
        self._page = visitor.page

    def press(self, *names: str) -> None:
        """Press keys."""
        for name in names:
            self._page.keyboard.press(name)

    def type(self, text: str) -> None:
        """Type text."""
        self._page.keyboard.type(text)

    def find(self, name: str) -> None:
        """Press Tab until something has the focus; on the way all that has it can be seen."""
        passed = []
        for _ in range(_MANY):
            self.press("Tab")
            at = self._page.evaluate(_FOCUS)
            if at is None:
                continue  # the address bar
            assert at["outlined"], f"no focus is seen on {at}"
            assert at["shown"], f"out of sight: {at}"
            if at["name"] == name:
                return
            passed.append(at["name"])
        raise AssertionError(f"{name} cannot be reached; there is: {passed}")

    def follow(self, name: str, key: str = "Enter") -> None:
        """Find something that leads to another page, and go."""
        self.find(name)
        with self._page.expect_navigation():
            self.press(key)
