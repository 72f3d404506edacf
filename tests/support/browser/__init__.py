"""Chromium, visitors, example boards and page states for tests in a real browser."""
