"""Debian's Chromium, driven by Playwright; nothing is downloaded."""

from __future__ import annotations

import contextlib
import os
import shutil

from playwright.sync_api import sync_playwright

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
_FLAGS = (
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@contextlib.contextmanager
def open_browser():
    """Give a browser; each new context starts without cookies."""
    # The shell needs half the time of the whole browser.
    path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    assert path, "The tests need Chromium; script/chromium installs it."
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path,
            args=list(_FLAGS),
            chromium_sandbox=os.geteuid() != 0,  # unavailable to root
        )
        try:
            yield browser
        finally:
            browser.close()
