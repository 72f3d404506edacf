"""The version of the package; results are stored under it."""

__version__ = "0.1.0"
