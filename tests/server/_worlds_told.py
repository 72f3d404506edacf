"""What a session told to whom: salts, keys and receipts."""

from __future__ import annotations

import html
import json
import re
from typing import Any, NamedTuple

from ladderboard.board import PUBLIC, Caller, Role
from ladderboard.verify import check, read_receipts
from support.salts import SecretSearch, iter_bytes

_ON_PAGE = re.compile(rb"<code>(\{[^<]*\})</code>")


class Told(NamedTuple):
    """A secret, who was told it, and whether they may know."""

    what: str
    by: Caller
    allowed: bool


def told_secrets(theatre):
    """Return every salt and key that came out, and whose ears it came to.

    A team may know the salts of its own submissions; evaluators and organisers see all that teams
    see. Nobody may know any other before the close, and logs and tables hold none.
    """
    used = theatre.used
    names = {salt: ", ".join(sorted(each)) for salt, each in used.domains.items()} | theatre.kept
    asked = [fields for fields in map(json.loads, theatre.chain) if fields["kind"] == "question"]
    owners = {used.salt_of[each["submission"]]: theatre.teams[each["asker"]] for each in asked}
    texts = {None: {*iter_bytes([each["said"] for each in theatre.seen if _is_kept(each)])}}
    for each in theatre.heard:
        texts.setdefault(each.by, set()).update((each.headers, each.body))
    search, found = SecretSearch(names), []
    for by, said in texts.items():
        for salt in search.find(said):
            mine = by is not None and (by.role >= Role.EVALUATOR or by.team == owners.get(salt))
            found.append(Told(names[salt], by or PUBLIC, names[salt] == "submission" and mine))
    return found


def refuse_told_secrets(theatre):
    """See that nobody was told what is not theirs, and that who may know was told."""
    found = told_secrets(theatre)
    told = [each for each in found if not each.allowed]
    assert told == []
    assert {each.by.role for each in found} == {Role.TEAM, Role.EVALUATOR, Role.ORGANISER}


def _is_kept(step):
    """Tell whether a step is what is written down, and no answer."""
    return not step["step"][0].isdigit()


class Given(NamedTuple):
    """A receipt as it was given: to whom, on which way, and within what."""

    visibility: str
    way: str
    by: Caller
    answer: dict[str, Any]

    @property
    def receipt(self):
        return self.answer.get("receipt", self.answer)


def receipts_of(theatre):
    """Return every receipt that was given."""
    return [Given(each.visibility, _way(each), each.by, answer)
            for each in theatre.heard for answer in _answers(each)]  # fmt: skip


def expect_receipts(theatre):
    """See that teams were given receipts on every way, and veiled where others must not show."""
    given = receipts_of(theatre)
    veiled = {"public": False, "anonymous": False, "hidden": True, "frozen": True}
    for visibility, veil in veiled.items():
        here = [each for each in given if each.visibility == visibility]
        own = [each for each in here if each.by.role == Role.TEAM]
        assert {each.way for each in own} == {"answer", "again", "fetched", "page"}
        assert all((each.receipt["entry"] is None) is veil for each in own)
        others = [each.receipt["entry"] for each in here if each.by.role > Role.TEAM]
        assert others
        assert None not in others


def _way(heard):
    if heard.path.startswith("/boards"):
        return "page"
    return {"GET": "fetched", "POST": "again" if heard.status == 200 else "answer"}[heard.method]


def _answers(heard):
    if heard.path.startswith("/boards/first/submit"):
        return [json.loads(html.unescape(each.decode())) for each in _ON_PAGE.findall(heard.body)]
    if "/submissions" in heard.path and heard.status in {200, 201}:
        return [each for each in [json.loads(heard.body)] if "receipt" in each]
    return []


def check_receipts(theatre, folder):
    """Check every receipt against the ledger that everybody can see, and return what holds."""
    ledger, kept = folder / "ledger.jsonl", folder / "receipts.jsonl"
    public = [
        each
        for each in theatre.heard
        if each.path.endswith("/ledger?limit=1000") and each.by == PUBLIC
    ]
    ledger.write_bytes(public[-1].body)
    told = [each.answer for each in receipts_of(theatre)]
    kept.write_text("\n".join(json.dumps(each) for each in told))
    receipts = read_receipts(kept)
    assert len(receipts) == len(told)
    return check(ledger, receipts=receipts)
