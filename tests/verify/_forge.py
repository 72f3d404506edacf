"""A forger's kit: a bundle in parts, all of it committed to and chained anew.

So could somebody who owns the server. What is changed stays changed, and everything else is right.
"""

import json
from types import SimpleNamespace

from ladderboard.board._finals import rank_finals
from ladderboard.bounds import untouched
from ladderboard.ledger import Commitment, Entry, digest

__all__ = ["Forge"]

_DECIDED = ("n", "loss", "mechanism", "rules", "holdout", "key")


class Forge:
    """Takes the records of a bundle, to be changed; ``records`` are those of the forged one.

    ``entries`` have ``fields``, ``secret`` and ``files``; ``samples`` are the records of labels,
    ``standings`` the rows, ``finals`` the map or the text, or None. ``head`` is what the first
    record says, but for what follows from the entries. ``written`` holds for numbers of entries
    what is done to their bytes.
    """

    def __init__(self, records):
        self.head, self.key = records[0][1], records[1][1]
        del self.head["entries"], self.head["head"]
        self.samples = [content for kind, content in records if kind == "holdout"]
        self.entries, self.written = [], {}
        self.standings = self.finals = self._salt = None
        for kind, content in records:
            if kind == "entry":
                fields, secret = json.loads(content[0]), content[1]
                self.entries.append(SimpleNamespace(fields=fields, secret=secret, files=[]))
            elif kind in {"file", "part"}:
                self.entries[-1].files.append([kind, content])
            elif kind == "standings":
                self.standings, self._salt = content["content"], content["salt"]
            elif kind == "finals":
                self.finals = json.loads(content)

    def of(self, kind):
        """Return all entries of a kind."""
        return [each for each in self.entries if each.fields["kind"] == kind]

    def first(self, kind):
        """Return the fields of the first entry of a kind."""
        return self.of(kind)[0].fields

    def number(self, kind, at=0):
        """Return the number of an entry of a kind."""
        return self.entries.index(self.of(kind)[at])

    @property
    def rules(self):
        """The rules of the first entry."""
        return self.entries[0].fields["rules"]

    def add(self, at, kind, **fields):
        """Put an entry before another."""
        time = self.entries[at - 1].fields["time"]
        fields = {"format": 1, "kind": kind, "time": time, **fields}
        self.entries.insert(at, SimpleNamespace(fields=fields, secret=None, files=[]))

    def amend(self, at, **changes):
        """Put an amendment before an entry."""
        self.add(at, "amended", changes=changes, commitment="")

    def files(self, team=None):
        """Return what is said of each file, or of each of a team."""
        wanted = [each for each in self.of("question") if team in {None, each.fields["asker"]}]
        return [content for each in wanted for kind, content in each.files if kind == "file"]

    def rank(self):
        """Make ranks and intervals of the final ranking anew, from its scores."""
        final, stood = self.finals, {row["team"]: row["rank"] for row in self.standings}
        among = final["selected"] = sum(each["selected"] for each in self.files())
        final["rows"].sort(key=lambda row: row["score"])
        for row in final["rows"]:
            ends = untouched(final["n"], row["score"], among=among or 1, beta=final["beta"])
            row["low"], row["high"] = ends
            row.update(rank=None, public_rank=None, move=None)
            if not row["baseline"]:
                row["public_rank"] = stood[row["team"]["id"]]
        rank_finals(final["rows"])

    def records(self):
        """Return the records of it all, with every commitment and hash that belongs to them."""
        text = self.finals
        if text is not None and not isinstance(text, str):
            text = json.dumps(text)
        after = []
        if self.standings is not None:
            after.append(["standings", {"salt": self._salt, "content": self.standings}])
        if text is not None:
            after.append(["finals", text])
        self._commit(text)
        entries, last = self._chain()
        head = {"entries": len(self.entries), "head": last, **self.head}
        samples = [["holdout", each] for each in self.samples]
        return [["bundle", head], ["key", self.key], *samples, *entries, *after]

    def _commit(self, finals):
        """Commit to labels, standings and the final ranking."""
        holders = [each.fields for each in self.entries if "holdout" in each.fields]
        for fields, held in zip(holders, self.samples, strict=False):
            shown = Commitment("holdout", digest("sample", held["sample"]), held["salt"])
            fields["holdout"] = shown.hash.hex()
        for each in self.of("closed"):
            each.fields.pop("standings", None)
            each.fields.pop("finals", None)
            if self.standings is not None:
                shown = Commitment("standings", self.standings, self._salt)
                each.fields["standings"] = shown.hash.hex()
            if finals is not None:
                each.fields["finals"] = digest("finals", finals).hex()

    def _chain(self):
        """Return the records of entries and files, and the hash of the last entry."""
        previous, found = bytes(32), []
        decided = {each: self.first("opened")[each] for each in _DECIDED}
        for number, entry in enumerate(self.entries):
            fields = entry.fields
            fields.update(number=number, previous=previous.hex(), book=self.head["book"])
            if fields["kind"] == "amended":
                decided = _amended(decided, fields)
            if "commitment" in fields:
                fields["commitment"] = digest("opening", decided).hex()
            if entry.secret is not None:
                fields |= _shown(entry.secret)
            form = json.dumps(fields, separators=(",", ":")).encode()
            form = self.written.get(number, bytes)(form)
            previous = Entry(form).hash
            found += [["entry", [form, entry.secret]], *entry.files]
        return found, previous


def _amended(decided, fields):
    if "holdout" in fields:
        return {**decided, "holdout": fields["holdout"]}
    rules = decided["rules"]
    board = {**rules.get("board", {}), **fields["changes"]}
    rules = {**rules, "questions": board.get("questions"), "board": board}
    return {**decided, "rules": rules}


def _shown(secret):
    submission = Commitment("submission", secret["submission"], secret["submission_salt"])
    own = Commitment("secret", secret["content"], secret["salt"])
    return {"submission": submission.hash.hex(), "secret": own.hash.hex()}
