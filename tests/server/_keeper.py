"""Serves boards until it is stopped or killed:

python _keeper.py '{"database": ..., "workers": 1, "parsers": 1, "folder": null}'

The first line on standard output says where; the log goes to standard error. With ``folder``
submissions are kept there, and not in the database.
"""

import json
import sys

from ladderboard.board import FolderStore, open_boards
from ladderboard.server import Serving, serve


def main():
    told = json.loads(sys.argv[1])
    folder = told.pop("folder", None)
    boards = None
    if folder is not None:
        boards = open_boards(told["database"], store=FolderStore(folder))
    serve(Serving(port=0, **told), boards=boards)


if __name__ == "__main__":
    main()
