"""Tools people already use, each in a file or folder of its own, none importing another.

Import the one that is wanted, as in ``from ladderboard.adapters.sklearn import judge_search``. It
loads the library that it is for, and says what to install where that is missing.
"""

__all__: list[str] = []
