"""Serve boards as a program of its own: python _serve.py DATABASE [WORKERS]."""

import sys
from pathlib import Path

from ladderboard.board import open_boards
from ladderboard.errors import Taken
from ladderboard.server import Serving, serve


def say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":  # a worker loads this file, too
    sys.path.insert(0, str(Path(__file__).parent))
    from _hall import make_folder

    boards = open_boards(sys.argv[1], create=True)
    try:
        boards.create(make_folder())
    except Taken:
        say("there")
    how = Serving(database=sys.argv[1], port=0, workers=int(sys.argv[2]), parsers=1)

    def told(url, token):
        say(f"{url} {token or ''}")

    serve(how, boards=boards, told=told)
    say("ended")
