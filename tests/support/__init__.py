"""Helpers for tests: servers, browsers, bundles and other things that several tests share."""
