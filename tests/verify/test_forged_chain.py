"""Entries that could not have come where they are, and secret sides that do not make them."""

import copy
import hashlib

import numpy as np
import pytest

from ladderboard.holdout import AlignedPredictions
from ladderboard.verify import verify_bundle
from support.verify.board_history import close_and_bundle, small_board, submit_predictions
from support.verify.bundle_forge import BundleForge
from support.verify.bundles import read_records

FEW = AlignedPredictions.from_values(np.ones(3)).packed


def insert(number, kind, of=0):
    """Put a copy of an entry before another, or at the end."""

    def change(forge):
        position, entry = number or len(forge.entries), copy.deepcopy(forge.of(kind)[of])
        entry.fields["time"] = forge.entries[position - 1].fields["time"]
        forge.entries.insert(position, entry)

    return change


def question(index, **changes):
    return lambda forge: forge.of("question")[index].fields.update(changes)


def on_ladder_of(index, other):
    """Let a question be asked on the ladder of another."""

    def change(forge):
        ladder = forge.of("question")[other].fields["ladder"]
        question(index, ladder=ladder, question=2)(forge)

    return change


def charge(charged):
    return lambda forge: forge.add(4, "resumed", charged=charged)


def written(number, old, new):
    return lambda forge: forge.rewrites.update({number: lambda form: form.replace(old, new)})


def ended(change):
    return lambda forge: change(forge.first("closed")["values"])


# Of the plain board: the opening, then for each of Coin, Red, Blue and Green its ladder and its
# first question from entry 2 on (entry 1 is a ladder that nobody is on), then six questions, the
# close.
WALK = {
    "no opening": (lambda forge: forge.add(0, "note"), 0, "it is not an opening"),
    "two openings": (insert(4, "opened"), 4, "it opens a ledger that is already open"),
    "another book": (written(4, b'"book":"', b'"book":"x'), 4, "it belongs to another book"),
    "another number": (written(4, b'"number":4', b'"number":5'), 4, "it is numbered 5"),
    "another predecessor": (written(4, b'"previous":"', b'"previous":"0'), 3,
                            "the next entry holds the hash of a different entry"),
    "another time": (lambda forge: forge.entries[4].fields.update(time=1), 4, "its time is"),
    "another commitment": (written(0, b'"n":', b'"n":1'), 0, "its commitment is not the hash"),
    "a ladder too far": (lambda forge: forge.entries[4].fields.update(ladder=7), 4,
                         "it does not start the next ladder"),
    "a ladder after the close": (insert(None, "ladder"), 17, "it starts a ladder after the close"),
    "a question after the close": (insert(None, "question"), 17, "it is a question after the clo"),
    "a close after the close": (insert(None, "closed"), 17, "it closes a ledger"),
    "a ladder that never ends": (ended(list.pop), 16, "one value for every ladder"),
    "another end": (ended(lambda values: values.__setitem__(2, 0.5)), 16,
                    "its value of ladder 2 is wrong"),
    "a ladder that was not started": (question(1, ladder=9), 5, "its ladder was not started"),
    "nobody": (question(1, asker=None), 5, "it names no team"),
    "another ladder": (on_ladder_of(4, 2), 10, "it was asked on another ladder than the team"),
    "whose ladder": (on_ladder_of(3, 2), 9, "it was asked on another team's ladder"),
    "a charge": (charge(-1), 4, "its charge is not a number of questions"),
    "a charge that is no number": (charge(True), 4, "its charge is not a number of questions"),
    "all is charged": (charge(59), 6, "it is a question past the budget"),
}  # fmt: skip


@pytest.mark.parametrize("name", WALK)
def test_an_entry_that_could_not_come_there(forge, check_refused, name):
    change, entry, message = WALK[name]
    change(forge)
    check_refused(forge, message, entry)


def secret(**changes):
    return lambda forge: forge.of("question")[1].secret["content"].update(changes)


def no_secret(forge):
    forge.of("question")[1].secret = None


def other_draws(forge):
    forge.of("question")[1].secret["content"]["draws"][0] += 1


SECRETS = {
    "none": (no_secret, "its secret side is missing"),
    "draws": (other_draws, "its noise was not drawn from the key"),
    "fewer draws": (secret(draws=[]), "its noise was not drawn from the key"),
    "before": (secret(before=bytes(32)), "its ladder was in another state before it"),
    "after": (secret(after=bytes(32)), "its ladder was in another state after it"),
    "a score": (question(1, score=0.5), "its release does not follow from its risk and noise"),
    "a value": (question(1, value=0.5), "its release does not follow from its risk and noise"),
    "a risk": (secret(risk=0.99), "its release does not follow from its risk and noise"),
    "no risk at all": (secret(risk=7.0), "its risk is not between 0 and 1"),
    "a training loss": (secret(training=0.5), "or has one that the mechanism does not use"),
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_side_that_does_not_make_its_release(forge, check_refused, name):
    change, message = SECRETS[name]
    change(forge)
    for entry in forge.entries:
        entry.files = []
    check_refused(forge, message, 5)


@pytest.mark.parametrize("name", ["submission", "secret"])
def test_a_secret_side_that_opens_another_commitment(forge, check_refused, name):
    forge.rewrites[5] = lambda form: form.replace(
        b'"%s":"' % name.encode(), b'"%s":"0' % name.encode()
    )
    subject = "its submission" if name == "submission" else "its secret side"
    check_refused(forge, f"{subject} is not what was committed to", 5)


def test_noise_is_drawn_again_where_releases_cannot_be(tmp_path, check_refused):
    mechanism = {"name": "bootstrap_ladder", "test": "bayes", "replicates": 20}
    with small_board(tmp_path, mechanism=mechanism) as (board, (red, *_)):
        submit_predictions(board, red, 10)
        path = close_and_bundle(board, tmp_path / "bundle", submissions=False)
    forge = BundleForge(read_records(path))
    forge.of("question")[1].secret["content"]["draws"][0] = bytes(32)
    check_refused(forge, "its noise was not drawn from the key", forge.number("question", 1))


def other_body(body, format_="csv"):
    """Put another file where one was, with its size and hash."""

    def change(forge):
        (_, file_record), *_ = forge.of("question")[1].files
        file_record.update(size=len(body), sha256=hashlib.sha256(body).digest(), format=format_)
        forge.of("question")[1].files = [["file", file_record], ["part", body]]

    return change


def damaged(forge):
    forge.of("question")[1].files[1][1] += b"1,1\n"


def changed_file(**changes):
    return lambda forge: forge.files()[1].update(changes)


def not_in_it(forge):
    forge.head["submissions"] = False


FILES = {
    "nothing": (other_body(b""), 5, "its file cannot be read"),
    "no table": (other_body(b"\0\1"), 5, "its file cannot be read"),
    "no array": (other_body(b"\0\1", "aligned"), 5, "its file cannot be read"),
    "few rows": (other_body(FEW, "aligned"), 5, "its predictions are not for the rows"),
    "a risk": (secret(risk=0.99), 5, "its risk is not that of its file on the labels"),
    "damaged": (damaged, None, "is damaged"),
    "a size": (changed_file(size=3), None, "is damaged"),
    "selected": (changed_file(selected=1), None, "holds a record 'file' that is malformed"),
    "an id": (changed_file(id=7), None, "holds a record 'file' that is malformed"),
    "something more": (changed_file(name="x.csv"), None, "holds a record 'file' that is malformed"),
    "not in it": (not_in_it, None, "holds a record 'file' that is malformed"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_changed_submission_file_is_refused(forge, check_refused, name):
    change, entry, message = FILES[name]
    change(forge)
    check_refused(forge, message, entry)


def of_a_guard(forge):
    forge.head.update(of="guard", format=1, submissions=False)
    for entry in forge.entries:
        entry.files = []


def one_sample_more(forge):
    forge.samples.append({**forge.samples[0], "epoch": 1})


def no_close(forge):
    del forge.entries[-1]


def said_to_be_closed(forge):
    forge.head["labels"] = False


WHOLE = {
    "a guard's": (
        of_a_guard,
        0,
        "the bundle's kind (board or guard) does not match",
    ),
    "not closed": (no_close, None, "was not closed"),
    "more labels": (one_sample_more, None, "labels in the bundle that no entry commits to"),
    "labels that are not to be there": (
        said_to_be_closed,
        None,
        "a record 'holdout' that is malformed",
    ),
    "no labels": (
        lambda forge: forge.samples.clear(),
        None,
        "whether it holds labels",
    ),
    "files of a guard": (
        lambda forge: forge.head.update(of="guard", format=1),
        None,
        "a record 'bundle'",
    ),
    "another length": (
        lambda forge: forge.head.update(entries=9),
        None,
        "another number of entries or another head",
    ),
    "another end": (
        lambda forge: forge.head.update(head=bytes(32)),
        None,
        "another number of entries or another head",
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_bundle_that_holds_something_else_than_it_says(forge, check_refused, name):
    change, entry, message = WHOLE[name]
    change(forge)
    check_refused(forge, message, entry)


def test_labels_of_an_epoch_that_are_missing(forge_corrected, check_refused):
    del forge_corrected.samples[2]
    number = forge_corrected.number("amended", 1)
    check_refused(forge_corrected, "the labels that it commits to are not in the bundle", number)


def test_a_kind_that_is_not_known_yet_is_met_with_respect(forge, write_forged):
    forge.add(4, "sung", song=["la", 0.5])
    assert verify_bundle(write_forged(forge)).releases == 10
