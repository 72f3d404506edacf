"""Bundles and boards for tests of verification, and a tool that forges bundles."""
