"""Data for participants: files, links, and a sample submission."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from ladderboard.board._access import Role, check_permission, refuse_without_terms
from ladderboard.board._model import DATA_FILE, DataFile, DataFileRow, DataList, make_document
from ladderboard.board._people import accepted_version
from ladderboard.board._repository import (
    delete_data_files,
    find_data_file,
    insert,
    list_data_files,
    read_board,
    update_board,
)
from ladderboard.errors import InvalidSetting, NotAllowed, NotFound, StorageFailed
from ladderboard.files import ID_SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ladderboard.board._access import Caller
    from ladderboard.board._board import BoardContext
    from ladderboard.files import Roster
    from ladderboard.ledger import BookTransaction, ReadView
    from ladderboard.losses import Loss

SAMPLE = "sample_submission.csv"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MAX_BYTES = 2**28
_MAX_FILES = 100
_MEMBERS_ONLY = "The data of this board are for its teams. Join it, or sign in."
_NO_EXAMPLE = "..."


class DataFiles:
    """The files of one board that participants download."""

    def __init__(self, board: BoardContext) -> None:
        self._board = board
        self._sample: tuple[tuple[str, int], bytes] | None = None

    def replace(self, caller: Caller, paths: Mapping[str, Path]) -> None:
        """Replace all stored files by these, by name."""
        check_permission(caller, "run")
        check_data_files(paths)
        salt, store = self._board.book.environment.salt, self._board.store
        prepared = []
        try:
            for name, path in sorted(paths.items()):
                file_id = salt()[-16:].hex()
                size, digest = _measure(path)
                prepared.append((name, file_id, size, digest, store.prepare(file_id, path)))
            replaced = self._board.queue.run(lambda transaction: _insert(transaction, prepared))
        except BaseException:
            for *_, file in prepared:
                file.abandon()
            raise
        for location in replaced:
            store.delete(location)

    def summary(self, caller: Caller) -> dict[str, Any]:
        """Return the files to download, and whether the caller may download them."""
        with self._board.reading() as view:
            rules = self._board.rules_of(read_board(view)).data
            stored, refusal = list_data_files(view), None
            try:
                self._check(view, caller)
            except NotAllowed as error:
                refusal = str(error)
        files = [
            make_document(DataFile, file, bytes=file.size, sha256=file.digest, url=None)
            for file in stored
        ]
        # The ledger holds the rules, and so the links; they are not offered to others.
        hidden = {} if refusal is None else {"url": None}
        links = [{**link.describe(), **hidden} for link in rules.links]
        return make_document(
            DataList, rules, files=[*files, *links], allowed=refusal is None, refusal=refusal
        )

    def open(self, caller: Caller, name: str) -> tuple[DataFileRow, BinaryIO]:
        """Return a stored file and its content."""
        with self._board.reading() as view:
            self._check(view, caller)
            file = find_data_file(view, name)
        if file is None:
            raise NotFound("There is no such file.")
        return file, self._board.store.get(file.place)

    def sample(self, caller: Caller) -> bytes:
        """Return a submission that can be scored, in CSV: the organiser's, or a generated one.

        It does not depend on the labels: the ids are sorted, and all predictions are equal.
        """
        with self._board.reading() as view:
            row = read_board(view)
            self._check(view, caller)
            file = find_data_file(view, SAMPLE)
        if file is not None:
            return self._board.read_stored_file(file.place)
        key = (row.rules, row.epoch)
        if self._sample is None or self._sample[0] != key:
            loss, roster = self._board.rules_of(row).loss, self._board.scorer_of(row).roster
            self._sample = (key, make_sample(loss, roster))
        return self._sample[1]

    def _check(self, view: ReadView, caller: Caller) -> None:
        """Refuse data for members to others, and to teams that have not accepted the terms."""
        rules = self._board.rules_of(read_board(view))
        if not rules.data.members or caller.role >= Role.EVALUATOR:
            return
        if caller.role < Role.TEAM:
            raise NotAllowed(_MEMBERS_ONLY)
        refuse_without_terms(rules, accepted_version(view, caller))


def _insert(transaction: BookTransaction, prepared: list[Any]) -> list[str]:
    """Insert the rows of new files; return the locations of the old ones."""
    view = transaction.view
    replaced = [file.place for file in list_data_files(view)]
    delete_data_files(view)
    for name, file_id, size, digest, file in prepared:
        row = DataFileRow(name=name, id=file_id, size=size, digest=digest, place=file.location)
        insert(view, DATA_FILE, row)
        file.commit(view)
    update_board(view, amended=read_board(view).amended + 1)  # pages list them
    return replaced


def check_data_files(paths: Mapping[str, Path]) -> None:
    """Refuse names that are not safe everywhere, and files that are too large."""
    if len(paths) > _MAX_FILES:
        raise InvalidSetting(f"A board has at most {_MAX_FILES} data files; got {len(paths)}.")
    for name, path in paths.items():
        if not _NAME.fullmatch(name):
            raise InvalidSetting(
                "The name of a data file must be up to 100 letters, digits, dots, hyphens and "
                f"underscores, and begin with a letter or digit; got {name!r:.80}."
            )
        if path.stat().st_size > _MAX_BYTES:
            raise InvalidSetting(
                f"{name} is larger than 256 MiB. Host it elsewhere, and name it in data.links."
            )


def _measure(path: Path) -> tuple[int, str]:
    try:
        with path.open("rb") as file:
            return path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StorageFailed(f"{path.name} cannot be read: {error.strerror}.") from None


def make_sample(loss: Loss, roster: Roster) -> bytes:
    r"""Return a CSV with a row for every id and the same predictions everywhere.

    >>> from ladderboard.files import DeclaredColumns, Roster
    >>> from ladderboard.losses import ZeroOne
    >>> make_sample(ZeroOne(classes=("cat", "dog")), Roster.of(["b", "a"]))
    b'id,prediction\na,cat\nb,cat\n'
    >>> declared = DeclaredColumns(id=("image", "part"), prediction=("animal",))
    >>> make_sample(ZeroOne(classes=("cat", "dog")), Roster.of(["b|1", "a|2"], columns=declared))
    b'image,part,animal\na,2,cat\nb,1,cat\n'
    """
    columns, declared = loss.columns(kind=roster.kind, width=roster.width), roster.columns
    id_names: tuple[str, ...] = ("id",)
    names = columns.names
    if declared is not None:
        id_names = declared.id or id_names
        # Without declared ids the columns of classes are found by the names of the classes.
        if declared.id or columns.form != "classes":
            names = declared.submitted or names
    usual = "0" if columns.number else "-"
    examples = dict(enumerate(columns.example))
    values = [examples.get(place, _NO_EXAMPLE) for place in range(len(names))]
    values = [usual if value == _NO_EXAMPLE else value for value in values]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*id_names, *names])
    writer.writerows(
        [*str(id_).split(ID_SEPARATOR, len(id_names) - 1), *values]
        for id_ in sorted(roster.names_of(np.arange(roster.n)))
    )
    return text.getvalue().encode()
