"""Finds which salts, keys and receipts a recorded session disclosed, and to whom."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ladderboard.board import PUBLIC, Caller, Role
from ladderboard.verify import read_receipts, verify_bundle
from support.salts import SecretSearch, iter_bytes


class Disclosure(NamedTuple):
    """The name of a secret, who received it, and whether that is allowed."""

    secret: str
    recipient: Caller
    allowed: bool


def find_disclosures(server):
    """Return every disclosure of a salt or key in a session.

    A team may know the salts of its own submissions; evaluators and organisers see everything that
    teams see. Nobody may know any other before the close, and logs and tables contain none.
    """
    uses = server.salt_uses
    names = {salt: ", ".join(sorted(domains)) for salt, domains in uses.domains.items()}
    names |= server.secrets
    entries = [json.loads(entry) for entry in server.entries]
    questions = [fields for fields in entries if fields["kind"] == "question"]
    owners = {uses.salt_of[q["submission"]]: server.teams[q["asker"]] for q in questions}
    stored = [step["output"] for step in server.steps if not _is_reply(step)]
    texts = {None: {*iter_bytes(stored)}}
    for reply in server.replies:
        texts.setdefault(reply.recipient, set()).update((reply.headers, reply.body))
    search, disclosures = SecretSearch(names), []
    for recipient, received in texts.items():
        for salt in search.find(received):
            is_owner = recipient is not None and (
                recipient.role >= Role.EVALUATOR or recipient.team == owners.get(salt)
            )
            allowed = names[salt] == "submission" and is_owner
            disclosures.append(Disclosure(names[salt], recipient or PUBLIC, allowed))
    return disclosures


def check_disclosures(server):
    """Check that nobody received a foreign secret, and that every role received its own."""
    disclosures = find_disclosures(server)
    assert [disclosure for disclosure in disclosures if not disclosure.allowed] == []
    roles = {disclosure.recipient.role for disclosure in disclosures}
    assert roles == {Role.TEAM, Role.EVALUATOR, Role.ORGANISER}


def _is_reply(step):
    """Return whether a step is a reply, and not what is stored."""
    return step["step"][0].isdigit()


class GivenReceipt(NamedTuple):
    """A receipt: to whom, by which route and in which answer it was given."""

    visibility: str
    route: str
    recipient: Caller
    answer: dict[str, Any]

    @property
    def receipt(self):
        return self.answer.get("receipt", self.answer)


def find_receipts(server):
    """Return every receipt that was given in a session."""
    return [
        GivenReceipt(reply.visibility, _route(reply), reply.recipient, answer)
        for reply in server.replies
        for answer in _answers(reply)
    ]


def check_receipt_routes(server):
    """Check that teams got receipts by every route, redacted where others' activity is hidden."""
    receipts = find_receipts(server)
    redacted = {"public": False, "anonymous": False, "hidden": True, "frozen": True}
    for visibility, is_redacted in redacted.items():
        matching = [receipt for receipt in receipts if receipt.visibility == visibility]
        to_teams = [receipt for receipt in matching if receipt.recipient.role == Role.TEAM]
        assert {receipt.route for receipt in to_teams} == {"answer", "again", "fetched", "page"}
        assert all((item.receipt["entry"] is None) is is_redacted for item in to_teams)
        to_staff = [item.receipt["entry"] for item in matching if item.recipient.role > Role.TEAM]
        assert to_staff
        assert None not in to_staff


def _route(reply):
    if reply.path.startswith("/boards"):
        return "page"
    return {"GET": "fetched", "POST": "again" if reply.status == 200 else "answer"}[reply.method]


def _answers(reply):
    if reply.path.startswith("/boards/first/receipts/") and reply.status == 200:
        return [json.loads(reply.body)]
    if "/submissions" in reply.path and reply.status in {200, 201}:
        answer = json.loads(reply.body)
        return [answer] if "receipt" in answer else []
    return []


def check_receipts(server, folder):
    """Check every receipt against the public ledger; return what the verifier found."""
    ledger, receipts_file = folder / "ledger.jsonl", folder / "receipts.jsonl"
    public = [
        reply
        for reply in server.replies
        if reply.path.endswith("/ledger?limit=1000") and reply.recipient == PUBLIC
    ]
    ledger.write_bytes(public[-1].body)
    answers = [receipt.answer for receipt in find_receipts(server)]
    receipts_file.write_text("\n".join(json.dumps(answer) for answer in answers))
    receipts = read_receipts(receipts_file)
    assert len(receipts) == len(answers)
    return verify_bundle(ledger, receipts=receipts)
