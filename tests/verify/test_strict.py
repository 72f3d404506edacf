"""What is documented, of its own type, and nothing beside it: both verifiers say so."""

import pytest

from ladderboard.errors import BrokenLedger, InvalidState
from ladderboard.verify import verify_bundle
from support.verify.bundles import write_records

HOLDS = "the chain and the tape hold"
BOTH_KNOW = "it is not the next question on its ladder", "its question is not the next"
UNREADABLE = "it cannot be read"


def question(**changes):
    return lambda forge: forge.first("question").update(changes)


def third(**changes):
    return lambda forge: forge.entries[3].fields.update(changes)


def head(**changes):
    return lambda forge: forge.head.update(changes)


def head_book_none(forge):
    records = forge.records()
    records[0][1]["book"] = None
    forge.records = lambda: records


def unsubmitted(forge):
    forge.head["submissions"] = "x"
    for entry in forge.entries:
        entry.files = []


def standing(**changes):
    """Change the row of the baseline, in the standings and in the final ranking."""

    def change(forge):
        row = next(row for row in forge.standings if row["baseline"])
        row.update(changes)
        final = next(row for row in forge.finals["rows"] if row["baseline"])
        final["baseline"] = bool(row["baseline"])
        final["team"]["name"] = row["name"]

    return change


def silent(**changes):
    """Add a team that never asked."""
    row = {"team": "silent", "name": "Silent", "baseline": False, "disqualified": False}
    row |= {"rank": None, "released": None, "since": None, **changes}
    return lambda forge: forge.standings.append(row)


def final_team(forge):
    forge.standings = None
    forge.finals["rows"][0]["team"]["name"] = 7


def sample(**changes):
    return lambda forge: forge.samples[0].update(changes)


def noted(number):
    def change(forge):
        forge.add(4, "note", more="@")
        forge.rewrites[4] = lambda form: form.replace(b'"@"', number)

    return change


def no_time(forge):
    forge.add(4, "note")
    del forge.entries[4].fields["time"]


def around(before, after):
    return lambda forge: forge.rewrites.update({2: lambda form: before + form + after})


def twice(forge):
    forge.rewrites[2] = lambda form: form.replace(b"{", b'{"number":2,', 1)


def ranks(forge):
    for row in forge.standings:
        row["rank"] = None if row["rank"] is None else float(row["rank"])


def secret(**changes):
    return lambda forge: forge.of("question")[0].secret["content"].update(changes)


def mechanism(**changes):
    return lambda forge: forge.entries[0].fields["mechanism"].update(changes)


def magic(forge):
    forge.entries[0].fields["mechanism"] = {"mechanism": "magic"}


def labels(shape):
    return lambda forge: forge.samples[0]["sample"]["labels"].update(shape=shape)


# What is changed; the entry and the words of the one verifier, and those of the other: None where
# it is not its business.
CASES = {
    "question 1.0": (question(question=1.0), 3, *BOTH_KNOW),
    "question true": (question(question=True), 3, *BOTH_KNOW),
    "ladder false": (
        lambda forge: forge.first("ladder").update(ladder=False),
        1, "it does not start the next ladder", "its ladder is not the next",
    ),
    "format true": (third(format=True), 3, "its format is True", "its format is not 1"),
    "format 1.0": (third(format=1.0), 3, "its format is 1.0", "its format is not 1"),
    "time true": (third(time=True), 3, "its time is invalid or before", "its time runs"),
    "another kind's field": (third(charged=0), 3, UNREADABLE, None),
    "of a ladder": (lambda forge: forge.first("ladder").update(charged=0), 1, UNREADABLE, None),
    "of an unknown kind": (no_time, 4, UNREADABLE, "entry 4: "),
    "no ladder": (lambda forge: forge.entries[3].fields.pop("ladder"), 3, UNREADABLE, "entry 3: "),
    "head format true": (head(format=True), None, "a record 'bundle' that", "first record"),
    "head entries float": (head(entries=16.0), None, "a record 'bundle' that", "first record"),
    "head book none": (head_book_none, None, "a record 'bundle' that", "first record"),
    "head submissions 1": (head(submissions=1), None, "a record 'bundle' that", "submissions"),
    "head submissions x": (unsubmitted, None, "a record 'bundle' that", "first record"),
    "head extra": (head(sponsor="x"), None, "a record 'bundle' that", "a map of"),
    "head labels 1": (head(labels=1), None, "whether it holds labels", "first record"),
    "key extra": (lambda forge: forge.key.update(more=1), None, "a record 'key' that", "a map of"),
    "labels extra": (sample(more=1), None, "a record 'holdout' that is malformed", "a map of"),
    "epoch false": (sample(epoch=False), None, "not in the order of their epochs", "their order"),
    "infinity": (noted(b"1e999"), 4, UNREADABLE, "a number is not finite"),
    "NaN": (noted(b"NaN"), 4, UNREADABLE, "a number is not finite"),
    "a name twice": (twice, 2, UNREADABLE, "a name comes twice in it"),
    "a blank before": (around(b" ", b""), 2, UNREADABLE, "it does not fill its bytes"),
    "a blank after": (around(b"", b"\r"), 2, UNREADABLE, "it does not fill its bytes"),
    "a secret side's extra": (secret(more=1), 3, "its secret side is malformed", "a map of"),
    "a secret risk that is whole": (secret(risk=1), 3, "its secret side is malformed", None),
    "a mechanism's setting": (mechanism(note="x"), 0, "its board rules contradict", None),
    "an unknown mechanism": (magic, 0, "its board rules contradict", "is not known here"),
    "baseline 1": (standing(baseline=1), None, "have a malformed row", None),
    "team 7": (silent(team=7), None, "have a malformed row", None),
    "name 7": (silent(name=7), None, "have a malformed row", None),
    "a final's name 7": (final_team, None, "The final ranking is malformed", None),
    "a final's closed without an offset": (
        lambda forge: forge.finals.update(closed=forge.finals["closed"].removesuffix("Z")),
        None, "The records after the entries", None,
    ),
    "rank 1.0": (ranks, None, "does not follow from the releases", None),
    "a standing's extra": (
        lambda forge: forge.standings[0].update(prize="x"),
        None, "have a malformed row", None,
    ),
    "labels of shape -1": (labels([-1]), None, "abels in the bundle cannot be read", None),
    "a sample's extra": (
        lambda forge: forge.samples[0]["sample"].update(more=1),
        None, "abels in the bundle are malformed", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_both_refuse(forge, check_refused, write_forged, second_verifier, name):
    change, entry, message, others = CASES[name]
    change(forge)
    check_refused(forge, message, entry)
    output = second_verifier(write_forged(forge))
    assert output.endswith(HOLDS) if others is None else others in output


def test_both_hold(forge, forge_corrected, write_forged, second_verifier):
    for forged in (forge, forge_corrected):
        path = write_forged(forged)
        verify_bundle(path)
        assert second_verifier(path).endswith(HOLDS)


@pytest.mark.parametrize("labels", [True, 1.0, None])
@pytest.mark.parametrize("opened", [True, False])
def test_a_correction_is_counted_in_whole_numbers(
    forge_corrected, check_refused, write_forged, second_verifier, labels, opened
):
    forge = forge_corrected
    forge.first("amended")["changes"]["labels"] = labels
    if not opened:
        forge.samples, forge.head["labels"] = [], False
    at = forge.number("amended")
    check_refused(forge, "it is not the next correction of labels", at)
    assert second_verifier(write_forged(forge)) == f"entry {at}: its correction is miscounted"


def test_an_amendment_of_no_labels(forge, check_refused, write_forged, second_verifier):
    forge.amend(4, labels=None)
    check_refused(forge, "it corrects labels without committing to them", 4)
    assert second_verifier(write_forged(forge)) == "entry 4: its correction is miscounted"


@pytest.mark.parametrize("at", [0, 1, 2, -2, -1, None])
@pytest.mark.parametrize("record", [["part", b"x"], ["key", {}], ["more", 1]])
def test_a_record_where_none_belongs(forge, tmp_path, second_verifier, record, at):
    records = forge.records()
    at = len(records) if at is None else at
    path = write_records(tmp_path / "forged", [*records[:at], record, *records[at:]])
    with pytest.raises(BrokenLedger, match=f"a record '{record[0]}' that is malformed") as caught:
        verify_bundle(path)
    assert caught.value.entry is None
    assert not second_verifier(path).endswith(HOLDS)


def test_a_file_after_an_entry_that_is_not_a_question(
    forge, check_refused, write_forged, second_verifier
):
    forge.entries[1].files = forge.of("question")[0].files
    check_refused(forge, "it has a secret side or a file, which only questions have", 1)
    assert second_verifier(write_forged(forge)) == "it holds a file that belongs to no question"


@pytest.mark.parametrize("change", [{"format": 1}, {"format": 3}, {"of": "league"}])
def test_a_newer_format_is_named(forge, write_forged, change):
    forge.head.update(change)
    with pytest.raises(InvalidState, match="written by a newer Ladderboard"):
        verify_bundle(write_forged(forge))
