"""Forges bundles: changes parts, then recomputes every commitment and hash.

The owner of a server could do the same. What a test changes stays changed; the rest is valid.
"""

import json
from types import SimpleNamespace

from ladderboard.board._finals import rank_finals
from ladderboard.bounds import fresh_sample_interval
from ladderboard.ledger import Commitment, Entry, digest

_COMMITTED_FIELDS = ("n", "loss", "mechanism", "rules", "holdout", "key")


class BundleForge:
    """Takes the records of a bundle apart; ``records()`` returns those of the forged bundle.

    ``entries`` have ``fields``, ``secret`` and ``files``; ``samples`` are the records of labels,
    ``standings`` the rows, ``finals`` the map or the text, ``names`` those of teams, or None.
    ``head`` is the first record without what follows from the entries. ``rewrites`` maps numbers of
    entries to functions that change their bytes.
    """

    def __init__(self, records):
        self.head, self.key = records[0][1], records[1][1]
        del self.head["entries"], self.head["head"]
        self.samples = [content for kind, content in records if kind == "holdout"]
        self.entries, self.rewrites = [], {}
        self.standings = self.finals = self.names = self._salt = None
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
            elif kind == "teams":
                self.names = content

    def of(self, kind):
        """Return all entries of a kind."""
        return [entry for entry in self.entries if entry.fields["kind"] == kind]

    def first(self, kind):
        """Return the fields of the first entry of a kind."""
        return self.of(kind)[0].fields

    def number(self, kind, index=0):
        """Return the number of the entry of a kind at ``index``."""
        return self.entries.index(self.of(kind)[index])

    @property
    def rules(self):
        """The rules of the first entry."""
        return self.entries[0].fields["rules"]

    def add(self, number, kind, **fields):
        """Insert an entry at ``number``."""
        time = self.entries[number - 1].fields["time"]
        fields = {"format": 1, "kind": kind, "time": time, **fields}
        self.entries.insert(number, SimpleNamespace(fields=fields, secret=None, files=[]))

    def amend(self, number, **changes):
        """Insert an amendment at ``number``."""
        self.add(number, "amended", changes=changes, commitment="")

    def files(self, team=None):
        """Return the records of all files, or of those of a team."""
        questions = [q for q in self.of("question") if team in {None, q.fields["asker"]}]
        return [content for q in questions for kind, content in q.files if kind == "file"]

    def rank(self):
        """Recompute ranks and intervals of the final ranking from its scores."""
        final, public_ranks = self.finals, {row["team"]: row["rank"] for row in self.standings}
        selected = final["selected"] = sum(file["selected"] for file in self.files())
        final["rows"].sort(key=lambda row: row["score"])
        for row in final["rows"]:
            n, beta = final["n"], final["beta"]
            interval = fresh_sample_interval(n, row["score"], models=selected or 1, beta=beta)
            row["low"], row["high"] = interval
            row.update(rank=None, public_rank=None, move=None)
            if not row["baseline"]:
                row["public_rank"] = public_ranks[row["team"]["id"]]
        rank_finals(final["rows"])

    def records(self):
        """Return all records, with every commitment and hash recomputed."""
        text = self.finals
        if text is not None and not isinstance(text, str):
            text = json.dumps(text)
        after = []
        if self.standings is not None:
            after.append(["standings", {"salt": self._salt, "content": self.standings}])
        if text is not None:
            after.append(["finals", text])
        if self.names is not None:
            after.append(["teams", self.names])
        self._commit(text)
        entries, last = self._chain()
        head = {"entries": len(self.entries), "head": last, **self.head}
        samples = [["holdout", sample] for sample in self.samples]
        return [["bundle", head], ["key", self.key], *samples, *entries, *after]

    def _commit(self, finals):
        """Commit to labels, standings and the final ranking."""
        committing = [entry.fields for entry in self.entries if "holdout" in entry.fields]
        for fields, sample in zip(committing, self.samples, strict=False):
            commitment = Commitment("holdout", digest("sample", sample["sample"]), sample["salt"])
            fields["holdout"] = commitment.hash.hex()
        for closed in self.of("closed"):
            closed.fields.pop("standings", None)
            closed.fields.pop("finals", None)
            if self.standings is not None:
                commitment = Commitment("standings", self.standings, self._salt)
                closed.fields["standings"] = commitment.hash.hex()
            if finals is not None:
                closed.fields["finals"] = digest("finals", finals).hex()

    def _chain(self):
        """Return the records of entries and files, and the hash of the last entry."""
        previous, records = bytes(32), []
        committed = {name: self.first("opened")[name] for name in _COMMITTED_FIELDS}
        for number, entry in enumerate(self.entries):
            fields = entry.fields
            fields.update(number=number, previous=previous.hex(), book=self.head["book"])
            if fields["kind"] == "amended":
                committed = _amended(committed, fields)
            if "commitment" in fields:
                fields["commitment"] = digest("opening", committed).hex()
            if entry.secret is not None:
                fields |= _commitments(entry.secret)
            form = json.dumps(fields, separators=(",", ":")).encode()
            form = self.rewrites.get(number, bytes)(form)
            previous = Entry(form).hash
            records += [["entry", [form, entry.secret]], *entry.files]
        return records, previous


def _amended(committed, fields):
    if "holdout" in fields:
        return {**committed, "holdout": fields["holdout"]}
    rules = committed["rules"]
    board = {**rules.get("board", {}), **fields["changes"]}
    rules = {**rules, "questions": board.get("questions"), "board": board}
    return {**committed, "rules": rules}


def _commitments(secret):
    submission = Commitment("submission", secret["submission"], secret["submission_salt"])
    secret_side = Commitment("secret", secret["content"], secret["salt"])
    return {"submission": submission.hash.hex(), "secret": secret_side.hash.hex()}
