"""A board that moved, was amended, corrected and closed: one history, checked from its bundle."""

import hashlib
import json
import subprocess
import sys

import pytest

from ladderboard.errors import BrokenLedger, InvalidState
from ladderboard.verify import verify_bundle
from support.verify.board_history import make_full_bundle
from support.verify.bundles import read_records, write_records


@pytest.fixture(scope="module", params=["board", "team"])
def full_history(request, postgres, tmp_path_factory):
    """Give the bundle of a board that has seen everything, and its head."""
    folder = tmp_path_factory.mktemp("lived")
    return make_full_bundle(folder, postgres.url(), ladder=request.param)


def test_one_history_on_two_databases(full_history):
    path, head = full_history
    result = verify_bundle(path, heads=[head.hash.hex()])
    assert str(result) == f"verified: {result.questions} releases"
    assert result.risks == result.releases == result.questions > 20
    assert (result.of, result.entries, result.head) == ("board", head.entries, head.hash.hex())
    assert result.unchanged == head.entries - 1
    assert [line.split()[0] for line in result.unchecked] == ["Which", "The", "Times"]
    assert "The final ranking was recomputed from submissions and private labels." in result.checked


def test_nothing_but_the_bundle_is_needed(full_history, tmp_path):
    path, head = full_history
    alone = tmp_path / "alone"
    alone.mkdir()
    copy = alone / "copy"
    copy.write_bytes(path.read_bytes())
    program = (
        "import sys\n"
        "from ladderboard.verify import verify_bundle\n"
        "print(verify_bundle('copy', heads=sys.argv[1:]))\n"
        "assert not {'ladderboard.board', 'sqlalchemy', 'psycopg'} & set(sys.modules)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, head.hash.hex()],
        cwd=alone, env={"PATH": ""}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.stderr == ""
    assert ran.stdout.startswith("verified: ")
    assert sorted(file.name for file in alone.iterdir()) == ["copy"]


def test_bits_of_a_board_with_files_that_flip_are_found(full_history, tmp_path):
    """In every part of it; tests/verify/test_changed.py flips all bits of a smaller one."""
    content = full_history[0].read_bytes()
    path = tmp_path / "changed"
    for index in range(0, len(content), len(content) // 60):
        changed = bytearray(content)
        changed[index] ^= 1 << index % 8
        path.write_bytes(changed)
        with pytest.raises((BrokenLedger, InvalidState)):
            verify_bundle(path)


def swapped(records):
    """Swap two labels that differ."""
    sample = next(content for kind, content in records if kind == "holdout")["sample"]
    values = sample["labels"]["values"]
    sample["labels"]["values"] = values[1:2] + values[:1] + values[2:]
    assert sample["labels"]["values"] != values


def another_key(records):
    records[1][1]["key"] = bytes(32)


def first(records, kind):
    return next(content for record_kind, content in records if record_kind == kind)


def standing(name, value):
    def change(records):
        row = next(row for row in first(records, "standings")["content"] if row["released"])
        assert row[name] != value
        row[name] = value

    return change


def final(change):
    def rewritten(records):
        index = next(index for index, (kind, _) in enumerate(records) if kind == "finals")
        finals = json.loads(records[index][1])
        change(finals)
        records[index][1] = json.dumps(finals, separators=(",", ":"), sort_keys=True)

    return rewritten


def another_file(records):
    files = [content for kind, content in records if kind == "part"]
    index = next(index for index, (kind, _) in enumerate(records) if kind == "file")
    records[index + 1][1] = files[-1]
    file_record = records[index][1]
    file_record["sha256"], file_record["size"] = hashlib.sha256(files[-1]).digest(), len(files[-1])


def unselected(records):
    file_record = next(
        content for kind, content in records if kind == "file" and content["selected"]
    )
    file_record["selected"] = False


CHANGES = {
    "a label swapped": (swapped, 0, "the labels in the bundle are not those"),
    "another key": (another_key, 0, "the noise key in the bundle is not the one"),
    "a name in the standings": (
        standing("name", "Réd2"),
        None,
        "standings do not match their commitment",
    ),
    "a released value": (
        standing("released", 0.0),
        None,
        "standings do not match their commitment",
    ),
    "a final score": (
        final(lambda final_ranking: final_ranking["rows"][0].update(score=0.0)),
        None,
        "final ranking",
    ),
    "another file": (another_file, 2, "its file is not what was submitted"),
    "a selection": (unselected, None, "does not match the selected files"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_was_changed_is_named(full_history, tmp_path, name):
    change, entry, message = CHANGES[name]
    records = read_records(full_history[0])
    change(records)
    with pytest.raises(BrokenLedger, match=message) as caught:
        verify_bundle(write_records(tmp_path / "changed", records))
    assert caught.value.entry == entry or (entry is not None and caught.value.entry >= entry)
