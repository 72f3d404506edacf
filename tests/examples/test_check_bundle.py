"""The second verifier: it accepts what the package writes, and nothing that was changed."""

import dataclasses
import hashlib
import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from ladderboard.errors import BrokenLedger
from ladderboard.ledger import Commitment, Entry, digest, write_bundle
from ladderboard.verify import verify_bundle
from support.randomness import seeded_random
from support.verify.bundle_forge import BundleForge
from support.verify.bundles import (
    BOOK,
    MECHANISMS,
    copy_records,
    make_bundle,
    read_records,
    write_records,
)
from support.verify.second_verifier import PROGRAM, load_program, run_second_verifier

GOLDEN = Path(__file__).parents[1] / "golden" / "bundle.ladderboard"
DECIDED = ("n", "loss", "mechanism", "rules", "holdout", "key")
FINER = "its value is not on the grid of its ladder"
HOLDS = "the chain and the tape hold"


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Give the records of a bundle: opened, ladder, questions, restored, questions, closed."""
    return read_records(make_bundle(tmp_path_factory.mktemp("book"), ladders=2, restored=True))


@pytest.fixture
def refused(records, tmp_path):
    """Give a function that changes a copy of the records, and returns what is said to them."""

    def run(change, **options):
        changed = copy_records(records)
        change(changed)
        path = write_records(tmp_path / "changed.ladderboard", changed)
        output = run_second_verifier(
            path, *(f"--{name}={value}" for name, value in options.items())
        )
        path.unlink()
        return output

    return run


def test_every_mechanism_holds(tmp_path):
    for name, mechanism in MECHANISMS.items():
        folder = tmp_path / name
        folder.mkdir()
        path = make_bundle(folder, mechanism, ladders=3, restored=True)
        assert run_second_verifier(path) == f"12 entries, 6 questions: {HOLDS}", name


@pytest.mark.parametrize("kind", [{"questions": 0}, {"labels": False}, {"questions": 40}])
def test_other_bundles_hold(tmp_path, kind):
    assert run_second_verifier(make_bundle(tmp_path, **kind)).endswith(HOLDS)


def test_it_needs_only_python(tmp_path):
    path = make_bundle(tmp_path)
    head = Entry(read_records(path)[4][1][0]).hash.hex()

    def run(*args):
        command = [sys.executable, "-I", "-S", PROGRAM, *args]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    result = run(path.name, "--head", head)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        f"9 entries, 6 questions: {HOLDS}",
        "Not checked here: releases, risks, standings, finals, submissions, names of teams.",
    ]
    assert "Without --head" in run(path.name).stdout
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    broken = run(path.name)
    assert (broken.returncode, broken.stdout) == (1, "")
    assert broken.stderr == "the hash at the end is not that of the file\n"
    path.write_bytes(b"\x00\xff")
    assert run(path.name).returncode == 1


def test_the_golden_bundle_is_unchanged_and_verifies():
    digest = hashlib.sha256(GOLDEN.read_bytes()).hexdigest()
    assert digest == "0539d7228406b3354b53329a84b8e12bdb29e3d50f3251d219b99c700fe10452"
    assert run_second_verifier(GOLDEN).endswith(HOLDS)


def test_the_golden_bundle_is_what_we_write(tmp_path):
    assert make_bundle(tmp_path, ladders=2, restored=True).read_bytes() == GOLDEN.read_bytes()


def test_the_golden_draws():
    """Slots, contexts and far ladders; of the scales those that mechanisms have, whole ones."""
    draws = {
        "DiscreteGaussian": lambda stream, scale: stream.gaussian(int(scale)),
        "DiscreteLaplace": lambda stream, scale: stream.laplace(int(scale)),
        "Laplace": lambda stream, scale: stream.continuous(float(scale)).hex(),
        "Seed": lambda stream, _: stream.take(32).hex(),
    }
    rows = json.loads((GOLDEN.parent / "tape.json").read_text())
    for ladder, question, slot, context, law, drawn in rows:
        name, _, scale = law.rstrip(")").partition("(")
        if "/" not in scale:
            stream = load_program().Stream(
                bytes(range(32)), ladder, question, context.encode(), slot
            )
            assert draws[name](stream, scale) == drawn, (ladder, question, slot, context, law)


@pytest.mark.parametrize("name", ["growing", "growing model"])
def test_values_of_a_growing_ladder_lie_on_their_grids(tmp_path, name):
    bundle = make_bundle(tmp_path, MECHANISMS[name], questions=40, ladders=3)
    forge = BundleForge(read_records(bundle))
    assert verify_bundle(bundle).releases == 40
    improved = [entry for entry in forge.of("question") if entry.fields["improved"]]
    assert len(improved) > 10

    def check_changed(entry, **changes):
        fields, entry.fields = entry.fields, {**entry.fields, **changes}
        path = write_records(tmp_path / "changed", forge.records())
        ledger = tmp_path / "ledger.jsonl"  # what everybody can check, before anything is opened
        entries = [content[0] for kind, content in read_records(path) if kind == "entry"]
        ledger.write_bytes(b"".join(encoded + b"\n" for encoded in entries))
        entry.fields = fields
        for file in (path, ledger):
            with pytest.raises(BrokenLedger):
                verify_bundle(file)
        output = run_second_verifier(path)
        assert run_second_verifier(ledger) == output
        path.unlink()
        return output.partition(": ")[2]

    value = improved[8].fields["value"]
    assert check_changed(improved[8], value=value - 1e-4) == FINER
    assert check_changed(improved[8], value=value + 1e-12 / 3) == "its value is not a whole unit"
    assert check_changed(improved[8], value=0.99) == "its value is not lower than the last"
    unchanged = next(entry for entry in forge.of("question") if not entry.fields["improved"])
    assert check_changed(unchanged, value=0.0) == "its value changed without an improvement"
    if name == "growing model":
        assert check_changed(improved[8], error_class=81).startswith("the class of its standard")
        assert check_changed(improved[8], error_class=79) == FINER
        assert check_changed(improved[8], error_class=None) == "something in it cannot be read"
    # With fewer accounts grids are finer.
    (tmp_path / "one").mkdir()
    one = dataclasses.replace(MECHANISMS[name], accounts=1)
    bundle = make_bundle(tmp_path / "one", one, questions=40, ladders=3)
    assert run_second_verifier(bundle).endswith(HOLDS)
    forge = BundleForge(read_records(bundle))
    mechanism = MECHANISMS[name].describe()
    assert check_changed(forge.entries[0], mechanism=mechanism) == FINER


def test_a_public_ledger(records, tmp_path):
    forms = [content[0] for kind, content in records if kind == "entry"]
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b"".join(form + b"\n" for form in forms))
    assert run_second_verifier(path).endswith("6 questions: the chain holds; nothing is opened yet")
    head = Entry(forms[5]).hash.hex()
    assert run_second_verifier(path, "--head", head).endswith("nothing is opened yet")
    assert "another history" in run_second_verifier(path, "--head", "0" * 64)
    path.write_bytes(b"".join(form + b"\n" for form in [*forms[:4], *forms[5:]]))
    assert run_second_verifier(path) == "entry 4: its number is not the next"
    path.write_bytes(b"\n".join(forms))
    assert run_second_verifier(path).endswith("its line does not end")
    path.write_bytes(b"")
    assert run_second_verifier(path) == "there is no entry in it"


def iter_leaves(value, path=()):
    """Give the place of everything in a record that is not made of other things."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from iter_leaves(value[key], (*path, key))
    else:
        yield path


def changed_value(value, rng):
    """Return a value with one bit changed, or another one where it has no bits to speak of."""
    if isinstance(value, bytes):
        index = rng.randrange(len(value))
        return value[:index] + bytes([value[index] ^ 1 << rng.randrange(8)]) + value[index + 1 :]
    if isinstance(value, str):
        return changed_value(value.encode(), rng).decode("latin-1")
    if value is None or isinstance(value, bool):
        return 0 if value is None else not value
    return value + 1 if isinstance(value, int) else value + 2**-50


def set_value(value, path, new):
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new


def value_at(value, path):
    for key in path:
        value = value[key]
    return value


def test_a_change_of_any_field_is_found(records, refused):
    rng = seeded_random(1)
    first = next(i for i, (kind, _) in enumerate(records) if kind == "entry")
    count = 0
    for number, record in enumerate(records):
        for path in iter_leaves(record):
            if path == (1, "submissions"):  # true says nothing where there is none
                continue
            several = 25 if path == (1, 0) else 1  # an entry's bytes hold many fields
            for _ in range(several):
                new = changed_value(value_at(record, path), rng)
                output = refused(partial(set_value, path=(number, *path), new=new))
                assert HOLDS not in output, (number, path, new)
                if record[0] == "entry" and path[0] == 1 and number < len(records) - 1:
                    entries = [f"entry {number - first + offset}: " for offset in (0, 1)]
                    assert output.startswith(tuple(entries)), (path, output)
                count += 1
    assert count > 300


def test_a_flip_of_any_bit_is_found(tmp_path):
    path = make_bundle(tmp_path, questions=2)
    content, rng = path.read_bytes(), seeded_random(2)
    for index in rng.sample(range(len(content)), 400):
        changed = bytearray(content)
        changed[index] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        assert HOLDS not in run_second_verifier(path), index
    for length in rng.sample(range(len(content)), 50):
        path.write_bytes(content[:length])
        assert HOLDS not in run_second_verifier(path), length


def test_dropped_doubled_or_swapped_entries_are_found(records, refused):
    first = next(i for i, (kind, _) in enumerate(records) if kind == "entry")
    for number in range(first, len(records)):
        output = refused(lambda copy, number=number: copy.pop(number))
        last = number == len(records) - 1
        assert output.startswith("it was opened" if last else f"entry {number - first}: "), output
        output = refused(lambda copy, number=number: copy.insert(number, copy[number]))
        assert output.startswith(f"entry {number - first + 1}: "), output
        if not last:
            output = refused(lambda copy, number=number: copy.insert(number, copy.pop(number + 1)))
            assert output.startswith(f"entry {number - first}: "), output


def test_dropped_doubled_or_swapped_records_are_found(refused):
    assert refused(lambda copy: copy.pop(0)).startswith("it must be a map of format")
    assert refused(lambda copy: copy.pop(1)).startswith("it must be a map of key")
    assert refused(lambda copy: copy.pop(2)).startswith("its first record does not tell")
    assert refused(lambda copy: copy.insert(2, copy[1])) == "record 2: it is not in its place"
    assert refused(lambda copy: copy.insert(2, copy[2])) == "labels are not in their order"
    assert refused(lambda copy: copy.insert(9, copy[2])) == "record 9: it is not in its place"
    assert refused(lambda copy: copy.append(["note", None])) == "record 14: it cannot be read"
    fields = {"epoch": 1, "salt": bytes(32), "sample": {}}
    assert "nobody committed" in refused(lambda copy: copy.insert(3, ["holdout", fields]))


def test_a_wrong_count_at_the_end_is_found(records, tmp_path):
    path = tmp_path / "counted.ladderboard"
    with write_bundle(path) as out:
        for kind, content in records:
            out.write_record(kind, content)
        out._counts["entry"] += 1
        out.finish()
    assert run_second_verifier(path) == "records are missing, or there are too many"


def test_a_record_longer_than_the_file_is_found(tmp_path):
    path = tmp_path / "long.ladderboard"
    path.write_bytes(b"ladderboard bundle 1\n" + (2**62).to_bytes(8, "big"))
    assert run_second_verifier(path) == "record 0: it is longer than the file"


def test_submissions_are_skipped(refused):
    def put_file(copy):
        copy.insert(6, ["file", {"id": "1", "selected": True}])
        copy.insert(7, ["part", b"id,prediction"])
        copy.append(["standings", {}])
        copy.append(["finals", ""])

    def say_so(copy):
        put_file(copy)
        copy[0][1]["submissions"] = True

    assert refused(put_file) == "it says that submissions are not in it"
    assert refused(say_so).endswith(HOLDS)


def test_another_key_or_other_labels_are_named(refused):
    output = refused(lambda copy: copy[1][1].update(key=bytes(32)))
    assert output == "entry 0: the key in the bundle is not the one committed to"
    output = refused(lambda copy: copy[2][1]["sample"]["labels"].update(values=bytes(40)))
    assert output == "entry 0: the labels in the bundle are not those committed to"


def rewrite(copy, number, fields=None, content=None):
    """Change an entry and its secret side, with every hash after it made anew."""
    entries = [record[1] for record in copy if record[0] == "entry"]
    previous = bytes(32)
    for index, entry in enumerate(entries):
        document = json.loads(entry[0])
        document["previous"] = previous.hex()
        if index == number:
            if content:
                entry[1]["content"].update(content)
                commitment = Commitment("secret", entry[1]["content"], entry[1]["salt"])
                document["secret"] = commitment.hash.hex()
            document.update(fields or {})
        entry[0] = json.dumps(document).encode()
        previous = Entry(entry[0]).hash
    copy[0][1]["head"] = previous


@pytest.mark.parametrize(
    ("number", "fields", "content", "message"),
    [
        (4, {}, {"draws": [0, 0, 0]}, "entry 4: its noise is not what the key gives"),
        (4, {}, {"draws": []}, "entry 4: its noise is not what the key gives"),
        (2, {}, {"before": bytes(32)}, "entry 2: the state before it is not the one after"),
        (2, {}, {"after": bytes(32)}, "entry 5: the state before it is not the one after"),
        (5, {"question": 3}, None, "entry 5: its question is not the next"),
        (5, {"ladder": 7}, None, "entry 5: its ladder was never started"),
        (5, {"ladder": True}, None, "entry 5: its ladder was never started"),
        (3, {"ladder": 0}, None, "entry 3: its ladder is not the next"),
        (5, {"time": 0}, None, "entry 5: its time runs backwards"),
        (5, {"book": "other"}, None, "entry 5: it belongs to another book"),
        (5, {"format": 2}, None, "entry 5: its format is not 1"),
        (5, {"kind": "opened"}, None, "entry 5: a chain is opened once, and first"),
        (5, {"kind": "unheard of"}, None, "entry 5: a secret side is missing, or one too many"),
        (0, {"n": 41}, None, "entry 0: its commitment is not that of what was decided"),
        (1, {"kind": "closed", "values": []}, None, "entry 2: it comes after the close"),
        (10, {"values": [0.5]}, None, "entry 10: it lacks a value for each ladder"),
        (5, {"score": float("nan")}, None, "entry 5: a number is not finite"),
    ],
)
def test_a_rewritten_history_is_found(refused, number, fields, content, message):
    assert refused(lambda copy: rewrite(copy, number, fields, content)).startswith(message)


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        ("ladder", {"ladder": 2}, "entry 11: it comes after the close"),
        ("closed", {"values": [0.5, 0.5]}, "entry 11: it was closed before"),
        ("disqualified", {"asker": "asker 0"}, f"12 entries, 6 questions: {HOLDS}"),
    ],
)
def test_entries_after_the_close_are_refused(refused, kind, fields, message):
    def append(copy):
        document = copy[0][1]
        entry = Entry.make(
            book=BOOK, number=11, kind=kind, time=2**31, previous=document["head"], **fields
        )
        copy.append(["entry", [entry.encoded, None]])
        document.update(entries=12, head=entry.hash)

    assert refused(append) == message


def test_a_saved_head_finds_a_consistently_rewritten_history(records, refused):
    head = Entry(records[7][1][0]).hash.hex()
    assert HOLDS in refused(lambda copy: rewrite(copy, 2, {"value": 0.125}))
    assert HOLDS in refused(lambda copy: None, head=head)
    output = refused(lambda copy: rewrite(copy, 2, {"value": 0.125}), head=head)
    assert output == "no entry has the hash that was kept: this is another history"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"law": "below"}, "entry 0: its law is unknown"),
        ({"compare_noise": -1.0}, "entry 0: its noise is below 0"),
        ({"compare_noise": 1e300}, "entry 0: something in it cannot be read"),
        ({"mechanism": "own"}, "entry 0: its mechanism is not known here"),
        ({"release_noise": 0.006}, "entry 2: its noise is not what the key gives"),
    ],
)
def test_another_mechanism_is_found(refused, change, message):
    def forge(copy):
        document = json.loads(copy[3][1][0])
        document["mechanism"] |= change
        document["commitment"] = digest("opening", {name: document[name] for name in DECIDED}).hex()
        rewrite(copy, 0, document)

    assert refused(forge) == message


def test_a_repeated_name_is_refused(refused):
    def forge(copy):
        form = copy[4][1][0]
        copy[4][1][0] = form[:-1] + b',"ladder":0}'

    assert refused(forge) == "entry 1: a name comes twice in it"
