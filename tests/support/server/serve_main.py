"""Serves boards until it is stopped or killed:

python serve_main.py '{"database": ..., "workers": 1, "parsers": 1, "folder": null}'

The first line on standard output ends with the URL; the log goes to standard error. With ``folder``
submissions are stored there instead of in the database.
"""

import json
import sys

from ladderboard.board import FolderStore, open_boards
from ladderboard.server import Settings, serve


def main():
    options = json.loads(sys.argv[1])
    folder = options.pop("folder", None)
    boards = None
    if folder is not None:
        boards = open_boards(options["database"], store=FolderStore(folder))
    serve(Settings(port=0, **options), boards=boards)


if __name__ == "__main__":
    main()
