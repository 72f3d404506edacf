"""The version, at the bottom of the house: results are kept under it."""

__version__ = "0.1.0.dev0"
