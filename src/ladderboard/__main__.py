"""``python -m ladderboard`` is the program ``ladderboard``."""

from ladderboard.cli import main

if __name__ == "__main__":
    main()
