"""Creates the board "first" if it is missing and serves it, as a process of its own:

python serve_first_board.py DATABASE WORKERS

Prints "exists" if the board exists, then the URL and the token, and "stopped" at the end.
"""

import sys
from pathlib import Path

from ladderboard.board import open_boards
from ladderboard.errors import Conflict
from ladderboard.server import Settings, serve


def write_line(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":  # worker processes import this file, too
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from support.server.live_server import make_folder

    database, workers = sys.argv[1], int(sys.argv[2])
    boards = open_boards(database, create=True)
    try:
        boards.create(make_folder())
    except Conflict:
        write_line("exists")

    def on_start(url, token):
        write_line(f"{url} {token or ''}")

    serving = Settings(database=database, port=0, workers=workers, parsers=1)
    serve(serving, boards=boards, announce=on_start)
    write_line("stopped")
