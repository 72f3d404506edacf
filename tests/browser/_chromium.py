"""Debian's Chromium, driven by Playwright; nothing is fetched from anywhere."""

from __future__ import annotations

import contextlib
import os
import shutil

from playwright.sync_api import sync_playwright

__all__ = ["DESK", "PHONE", "open_browser"]

DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
_QUIET = (
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@contextlib.contextmanager
def open_browser():
    """Give a browser; a context of it is a visitor without a past."""
    found = shutil.which("chromium")
    assert found, "The tests need Chromium; script/chromium installs it."
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found,
            args=list(_QUIET),
            chromium_sandbox=os.geteuid() != 0,  # root cannot have one
        )
        try:
            yield browser
        finally:
            browser.close()
