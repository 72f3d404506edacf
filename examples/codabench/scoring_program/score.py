"""Codabench's scoring program: asks the guard or board named in ladderboard.json."""

import sys

from ladderboard.adapters.codabench import score

sys.exit(score(sys.argv[1], sys.argv[2]))
