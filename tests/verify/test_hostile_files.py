"""Files that were made to harm whoever checks them: each ends in a sentence, soon."""

import gzip
import hashlib
import json
import os
import pty
import re
import subprocess
import sys

import numpy as np
import pytest

import ladderboard as lb
from ladderboard.cli import main
from ladderboard.ledger import Commitment, Entry

GIBIBYTE = 2**30
# A process of its own, which gets no more memory than its first word says.
LIMITED = (
    "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv.pop(1)),) * 2); "
    "from ladderboard.cli import main; main()"
)


@pytest.fixture
def verify(monkeypatch, capsys):
    """Give a function that runs ``ladderboard verify``; it returns the code and the one line."""

    def run(*arguments):
        monkeypatch.setattr("gc.freeze", lambda: None)
        monkeypatch.setattr("gc.set_threshold", lambda *_: None)
        monkeypatch.setattr(sys, "argv", ["ladderboard", "verify", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        (line,) = (captured.out + captured.err).splitlines()
        return ended.value.code, line

    return run


@pytest.fixture
def limited():
    """Give a function that does so in a process with little memory."""

    def run(path, memory=3 * GIBIBYTE):
        command = [sys.executable, "-c", LIMITED, str(memory), "verify", "-q", path]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        (line,) = (done.stdout + done.stderr).splitlines()
        return done.returncode, line

    return run


def receipt_of(forge, path, **changes):
    """Write the receipt of the first question, somehow changed."""
    number = forge.number("question")
    form, secret = [content for kind, content in forge.records() if kind == "entry"][number]
    receipt = {"format": 1, "book": forge.head["book"], "entry": number}
    receipt["hash"] = Entry(form).hash.hex()
    receipt |= {"submission": secret["submission"].hex(), "salt": secret["submission_salt"].hex()}
    path.write_text(json.dumps(receipt | changes))
    return path


@pytest.mark.parametrize(
    "changes",
    [{"entry": [1]}, {"entry": {}}, {"entry": True}, {"entry": -1}, {"book": []}, {"salt": 7}],
    ids=str,
)
def test_a_receipt_that_is_none(forge, write_forged, verify, tmp_path, changes):
    receipt = receipt_of(forge, tmp_path / "kept", **changes)
    code, output = verify(write_forged(forge), "--receipt", receipt)
    assert code == 4
    assert "holds no complete receipt" in output


@pytest.mark.parametrize(
    "content", ["[" * 100_000, "9" * 100_000, "\0"], ids=["deep", "long", "nul"]
)
def test_a_file_that_holds_no_receipt(forge, write_forged, verify, tmp_path, content):
    (tmp_path / "kept").write_text(content)
    code, output = verify(write_forged(forge), "--receipt", tmp_path / "kept")
    assert code == 4
    assert "holds no complete receipt" in output


@pytest.mark.parametrize("time", [10**12, 10**18, 10**400], ids=["12", "18", "400"])
def test_a_time_that_no_calendar_knows(forge, write_forged, verify, tmp_path, time):
    for entry in forge.entries:
        entry.fields["time"] = time
    code, output = verify(write_forged(forge), "--receipt", receipt_of(forge, tmp_path / "kept"))
    assert code == 4
    assert "Entry 0 of the ledger was changed: its time" in output


@pytest.mark.parametrize("arguments", [(), ("--json",)])
@pytest.mark.parametrize("value", [b'"abc"', b"[1]", b"1e999"])
def test_a_release_that_is_not_a_number_is_refused(forge, verify, tmp_path, value, arguments):
    number = forge.number("question")
    forge.first("question")["value"] = "@"
    forge.rewrites[number] = lambda form: form.replace(b'"@"', value)
    receipt = receipt_of(forge, tmp_path / "kept")
    forms = [content[0] + b"\n" for kind, content in forge.records() if kind == "entry"]
    (tmp_path / "ledger").write_bytes(b"".join(forms))
    code, output = verify(*arguments, "--ledger", tmp_path / "ledger", "--receipt", receipt)
    assert code == 4
    assert f"Entry {number} of the ledger was changed: its release is no" in output


def many_replicates(forge):
    """Ask for a game of a trillion resamples, in some kilobytes."""
    description = lb.BootstrapLadder(test="bayes", replicates=20).describe() | {
        "replicates": 10**12
    }
    forge.entries[0].fields["mechanism"] = dict(description)
    forge.rules["board"]["mechanism"] = {"name": description.pop("mechanism"), **description}


def bomb(forge, rooms=16):
    """Submit what is a hundred times as long when it is unpacked."""
    body = gzip.compress(b"id,prediction\n" + b"1,1\n" * 2**22, 1) * rooms
    entry = forge.of("question")[0]
    file_record = entry.files[0][1]
    file_record.update(size=len(body), sha256=hashlib.sha256(body).digest(), format="csv")
    parts = [body[index : index + 2**20] for index in range(0, len(body), 2**20)]
    entry.files = [["file", file_record], *(["part", part] for part in parts)]


def bomb_that_rules_allow(forge):
    forge.rules["board"]["files"].update(bytes=10**15, rows=10**15)
    bomb(forge, 80)


def lengths_up_and_down(forge):
    """Name texts of which each begins before the last: slices of them all would be 18 GB."""
    rows = 60_000
    lengths = np.tile([10 * rows, -10 * rows], rows // 2).astype(">i4").tobytes()
    forge.samples[0]["sample"]["labels"] = {
        "type": "text",
        "shape": [rows],
        "lengths": {"type": "i4", "shape": [rows], "values": lengths},
        "values": b"a" * 10 * rows,
    }


def empty_and_endless(forge):
    labels = {"type": "i1", "shape": [2**40, 0], "values": b""}
    forge.samples[0]["sample"].update(labels=labels, ids=None, split=None)


HEAVY = {
    many_replicates: "Entry 0 of the ledger .* cannot be used .*replicates must be",
    bomb: "Entry 3 of the ledger .* its file cannot be read ",
    bomb_that_rules_allow: "There is not enough memory to check this file",
    lengths_up_and_down: "Labels in the bundle cannot be read",
    empty_and_endless: "Labels in the bundle cannot be read",
}


@pytest.mark.parametrize("change", HEAVY)
def test_a_small_file_that_would_take_all_there_is(forge, write_forged, limited, change):
    change(forge)
    code, output = limited(write_forged(forge), 1 * GIBIBYTE)
    assert code == 4
    assert re.search(HEAVY[change], output)


def test_a_header_that_a_terminal_cannot_show(forge, write_forged):
    forge.head["entries"] = "abc"
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "ladderboard", "verify", write_forged(forge)]
    done = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal)
    assert done.wait(60) == 4
    os.close(terminal)
    output = os.read(controller, 2**16).decode()
    os.close(controller)
    assert "The bundle holds a record 'bundle' that is malformed" in " ".join(output.split())


def test_a_file_that_cannot_be_read(verify):
    code, output = verify("/proc/self/mem")
    assert code == 4
    assert "The file cannot be read to its end: " in output


def test_a_pipe_is_not_waited_for(verify, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    code, output = verify("-q", tmp_path / "pipe")
    assert code == 4
    assert "cannot be read: it is not a regular file" in output


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_the_second_verifier_names_a_missing_file(second_verifier, tmp_path, name):
    assert second_verifier(tmp_path / name) == "there is no such file"


def no_examples(forge):
    forge.entries[0].fields["n"], forge.samples = 0, []
    forge.head["labels"] = False


def short_key(forge):
    forge.key["key"] = b"short"
    shown = Commitment("key", hashlib.sha256(b"short").digest(), forge.key["salt"])
    forge.entries[0].fields["key"] = shown.hash.hex()


def labels_that_are_maps(forge):
    sample = forge.samples[0]["sample"]
    rows = sample["labels"]["shape"]
    sample["labels"] = {"type": "mixed", "shape": rows, "values": [{"a": 1}] * rows[0]}


def weights_of_nothing(forge):
    sample = forge.samples[0]["sample"]
    rows = sample["labels"]["shape"]
    sample["weight"] = {"type": "i1", "shape": rows, "values": bytes(*rows)}


def deep(forge):
    forge.add(4, "note", more="@")
    forge.rewrites[4] = lambda form: form.replace(b'"@"', b"[" * 10**5 + b"]" * 10**5)


# What the person who checks has not typed is no fault of theirs: the code is not 2.
ODD = {
    "n": (no_examples, "Entry 0 .* its number of examples n is not a positive integer"),
    "a key": (short_key, "Entry 0 .* cannot be used .key must be 32 bytes"),
    "beta": (
        lambda forge: forge.finals.update(beta=0),
        "The final ranking belongs to another board",
    ),
    "labels": (labels_that_are_maps, "Entry 0 .* cannot be used .*labels must be text, numbers"),
    "weights": (weights_of_nothing, "Entry 0 .* cannot be used .*[Ww]eights must be"),
    "standings": (lambda forge: setattr(forge, "standings", 7), "The records after the entries"),
    "a deep one": (deep, "Entry 4 .* it cannot be read"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_in_a_bundle_is_a_fault_of_the_bundle(forge, write_forged, verify, name):
    change, message = ODD[name]
    change(forge)
    code, output = verify(write_forged(forge))
    assert code == 4
    assert re.search(message, output)
