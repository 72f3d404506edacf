"""Any change of a bundle is found: bit by bit, entry by entry, and a rewrite of everything."""

import hashlib
import json

import numpy as np
import pytest

from ladderboard.errors import BrokenLedger, InvalidSetting, InvalidState, LadderboardError
from ladderboard.ledger import Commitment, Entry, encode
from ladderboard.verify import read_receipts, verify_bundle
from support.verify.bundles import BOOK, make_bundle, read_records, write_records


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """Give a bundle with three ladders, labels and a restored copy in its history."""
    return make_bundle(tmp_path_factory.mktemp("bundle"), questions=5, ladders=2, restored=True)


def finds(path, content):
    """Tell whether a bundle is refused, and as one: anything else would be a fault of ours."""
    path.write_bytes(content)
    try:
        verify_bundle(path)
    except (BrokenLedger, InvalidState):
        return True
    return False


def sealed(content):
    """Return a bundle whose last bytes are the hash of the rest, as a forger would write it."""
    return content[:-32] + hashlib.sha256(content[:-32]).digest()


def flips(content, bits):
    for bit in bits:
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        yield bit, bytes(changed)


def some_bits(content, bits_per_byte):
    """Return some bits of every ninth byte, as good as chance and always the same."""
    chance, positions = np.random.default_rng(7), range(0, len(content), 9)
    return [
        8 * position + int(bit)
        for position in positions
        for bit in chance.permutation(8)[:bits_per_byte]
    ]


def test_it_is_sound(bundle):
    assert verify_bundle(bundle).releases == 5


def test_any_bit_that_flips_is_found(bundle, tmp_path):
    content = bundle.read_bytes()
    for bit, changed in flips(content, some_bits(content, 1)):
        assert finds(tmp_path / "changed", changed), bit


def test_flipped_bits_are_found_even_with_a_new_file_hash(bundle, tmp_path):
    content = bundle.read_bytes()
    for bit, changed in flips(content, some_bits(content[:-32], 1)):
        assert finds(tmp_path / "changed", sealed(changed)), bit


@pytest.mark.slow
def test_every_bit(bundle, tmp_path):
    content = bundle.read_bytes()
    for bit, changed in flips(content, range(8 * len(content))):
        assert finds(tmp_path / "changed", changed), bit
        if bit < 8 * (len(content) - 32):
            assert finds(tmp_path / "changed", sealed(changed)), bit


def leaves(value, path=()):
    """Return where every number, text and run of bytes is in a record."""
    if isinstance(value, dict):
        return [leaf for key in value for leaf in leaves(value[key], (*path, key))]
    if isinstance(value, list):
        return [leaf for index, item in enumerate(value) for leaf in leaves(item, (*path, index))]
    return [path]


def other(value):
    """Return something else of the same kind."""
    if value is None:
        return 0.5
    if isinstance(value, bool):
        return not value
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:] if value else b"x"
    return f"{value}x" if isinstance(value, str) else value + 1


def changed_at(record, path):
    kind, content = record
    if not path:
        return [kind, other(content)]
    copy = json_copy(content)
    inner = copy
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = other(inner[path[-1]])
    return [kind, copy]


def json_copy(value):
    if isinstance(value, dict):
        return {key: json_copy(item) for key, item in value.items()}
    return [json_copy(item) for item in value] if isinstance(value, list) else value


def test_every_field_counts(bundle, tmp_path):
    records = read_records(bundle)
    tried = 0
    for index, record in enumerate(records):
        for path in leaves(record[1]):
            changed = [*records[:index], changed_at(record, path), *records[index + 1 :]]
            out = write_records(tmp_path / f"{index} {tried}", changed)
            with pytest.raises(LadderboardError):
                verify_bundle(out)
            out.unlink()
            tried += 1
    assert tried > 80


def numbered(bundle):
    """Return the records before the entries, the entries, and those after them."""
    records = read_records(bundle)
    first = next(index for index, (kind, _) in enumerate(records) if kind == "entry")
    last = max(index for index, (kind, _) in enumerate(records) if kind == "entry") + 1
    return records[:first], records[first:last], records[last:]


def chained(entries):
    """Return entries with numbers and hashes made anew, as somebody would who owns the file."""
    previous, chain = bytes(32), []
    for number, (kind, (form, secret)) in enumerate(entries):
        fields = {**json.loads(form), "number": number, "previous": previous.hex()}
        entry = Entry(json.dumps(fields, separators=(",", ":")).encode())
        previous = entry.hash
        chain.append([kind, [entry.encoded, secret]])
    return chain, previous


def dropped(entries):
    del entries[3]


def reordered(entries):
    entries[3], entries[4] = entries[4], entries[3]


def duplicated(entries):
    entries.insert(4, entries[3])


def cut(entries):
    del entries[-1]


@pytest.mark.parametrize("change", [dropped, reordered, duplicated, cut])
def test_entries_that_are_not_where_they_were(bundle, tmp_path, change):
    before, entries, after = numbered(bundle)
    change(entries)
    out = write_records(tmp_path / "changed", [*before, *entries, *after])
    with pytest.raises(BrokenLedger):
        verify_bundle(out)


@pytest.mark.parametrize("change", [dropped, reordered, duplicated])
def test_a_rebuilt_chain_of_the_same_entries_is_refused(bundle, tmp_path, change):
    before, entries, after = numbered(bundle)
    change(entries)
    entries, head = chained(entries)
    before[0][1].update(entries=len(entries), head=head)
    out = write_records(tmp_path / "changed", [*before, *entries, *after])
    with pytest.raises(BrokenLedger) as caught:
        verify_bundle(out)
    assert caught.value.entry in {3, 4, 5}


def receipt_of(path, number):
    """Return the receipt of an entry, as a server would have given it."""
    entries = [content for kind, content in read_records(path) if kind == "entry"]
    form, secret = entries[number]
    return {
        "format": 1,
        "book": BOOK,
        "entry": number,
        "hash": Entry(form).hash.hex(),
        "submission": secret["submission"].hex(),
        "salt": secret["submission_salt"].hex(),
    }


@pytest.fixture
def rewritten(tmp_path):
    """Give a history that its owner wrote anew, with other questions and everything right."""
    (tmp_path / "anew").mkdir()
    return make_bundle(tmp_path / "anew", questions=5, ladders=2, seed=1)


def test_without_saved_evidence_a_rewritten_history_verifies(rewritten):
    result = verify_bundle(rewritten)
    assert result.unchanged is None
    assert result.unchecked[0].startswith("A complete rewrite")


def test_a_saved_head_detects_a_rewritten_history(bundle, rewritten):
    head = verify_bundle(bundle).head
    with pytest.raises(BrokenLedger, match=f"hash {head[:16]}"):
        verify_bundle(rewritten, heads=[head])


def test_a_saved_receipt_detects_a_rewritten_history(bundle, rewritten, tmp_path):
    saved_receipt = tmp_path / "kept.json"
    saved_receipt.write_text(json.dumps(receipt_of(bundle, 4)))
    assert verify_bundle(bundle, receipts=read_receipts(saved_receipt)).unchanged == 4
    with pytest.raises(BrokenLedger, match="Entry 4 has another hash than the receipt") as caught:
        verify_bundle(rewritten, receipts=read_receipts(saved_receipt))
    assert caught.value.entry == 4


@pytest.mark.parametrize("kind", ["head", "receipt"])
def test_saved_evidence_detects_a_dropped_question(bundle, tmp_path, kind):
    """A shorter history that holds in itself: the last question was never asked."""
    (tmp_path / "shorter").mkdir()
    shorter = make_bundle(tmp_path / "shorter", questions=4, ladders=2, restored=True)
    assert verify_bundle(shorter).releases == 4
    last = receipt_of(bundle, 8)
    (tmp_path / "receipt.json").write_text(json.dumps(last))
    evidence = {"head": {"heads": [last["hash"]]},
             "receipt": {"receipts": read_receipts(tmp_path / "receipt.json")}}  # fmt: skip
    assert verify_bundle(bundle, **evidence[kind]).unchanged == 8
    with pytest.raises(BrokenLedger):
        verify_bundle(shorter, **evidence[kind])


def test_a_head_from_the_middle_is_found_and_says_how_far_it_goes(bundle):
    head = receipt_of(bundle, 4)["hash"]
    result = verify_bundle(bundle, heads=[head.upper() + "\n"])
    assert result.unchanged == 4
    assert f"Entries 5 to {result.entries - 1}" in result.unchecked[0]


@pytest.mark.parametrize("head", ["", "abc", "g" * 64, "a" * 63])
def test_an_invalid_head_is_refused(bundle, head):
    with pytest.raises(InvalidSetting, match="64 hex digits"):
        verify_bundle(bundle, heads=[head])


def test_one_label_less_is_named(bundle, tmp_path):
    records = read_records(bundle)
    sample = records[2][1]["sample"]
    values = bytearray(sample["labels"]["values"])
    values[0] ^= 1
    sample["labels"]["values"] = bytes(values)
    with pytest.raises(BrokenLedger, match="labels in the bundle are not those") as caught:
        verify_bundle(write_records(tmp_path / "changed", records))
    assert caught.value.entry == 0


def test_another_key_is_named_even_with_a_commitment_of_its_own(bundle, tmp_path):
    before, entries, after = numbered(bundle)
    key, salt = bytes(32), before[1][1]["salt"]
    before[1][1]["key"] = key
    changed = write_records(tmp_path / "changed", [*before, *entries, *after])
    with pytest.raises(BrokenLedger, match="noise key in the bundle is not the one"):
        verify_bundle(changed)
    # Who commits to another key has drawn other noise.
    fields = json.loads(entries[0][1][0])
    fields["key"] = Commitment("key", hashlib.sha256(key).digest(), salt).hash.hex()
    committed = {
        field: fields[field] for field in ("n", "loss", "mechanism", "rules", "holdout", "key")
    }
    fields["commitment"] = hashlib.sha256(
        b"ladderboard:1:opening\n" + encode(committed)
    ).hexdigest()
    entries[0][1][0] = json.dumps(fields, separators=(",", ":")).encode()
    entries, head = chained(entries)
    before[0][1]["head"] = head
    changed.unlink()
    with pytest.raises(BrokenLedger, match="its ladder was in another state") as caught:
        verify_bundle(write_records(changed, [*before, *entries, *after]))
    assert caught.value.entry == 2
