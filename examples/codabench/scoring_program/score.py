"""Codabench's scoring program: asks whom the reference data's ladderboard.json names."""

import sys

from ladderboard.adapters.codabench import score

sys.exit(score(sys.argv[1], sys.argv[2]))
