"""Intake: bodies of every kind come in whole, or leave nothing behind."""

import contextlib
import gzip
import hashlib
import os
import socket
import threading
import time
import zlib

import httpx
import pytest

from ladderboard.errors import InvalidSetting
from ladderboard.server._uploads._body import BodyLimits
from ladderboard.server._uploads._spool import Spool
from support.server.upload_echo import UploadEcho

CSV = b"id,prediction\n" + b"".join(b"%d,%d\n" % (at, at % 2) for at in range(1000))
LARGE = os.urandom(3 * 2**20)


@pytest.fixture(scope="module")
def shared_upload_echo(tmp_path_factory):
    """Run one server for all tests here."""
    with (
        UploadEcho(tmp_path_factory.mktemp("intake") / "spool") as upload_echo,
        httpx.Client(base_url=upload_echo.url, timeout=60) as client,
    ):
        upload_echo.client = client
        yield upload_echo
    upload_echo.spool.close()


@pytest.fixture
def upload_echo(shared_upload_echo):
    """Give the server with default limits; check that no file or reservation is left."""
    yield shared_upload_echo
    shared_upload_echo.limits = BodyLimits()
    until(lambda: not shared_upload_echo.spooled)
    assert shared_upload_echo.spool._left == 2**33


def until(so):
    """Wait until something is so."""
    for _ in range(2000):
        if so():
            return
        time.sleep(0.005)
    raise AssertionError


def send(upload_echo, body, kind="text/csv", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = upload_echo.client.post("/", content=body, headers={"Content-Type": kind, **named})
    return answer.status_code, answer.json()


def taken(body, **told):
    """Return what is said of a body that came in."""
    known = {"format": "csv", "message": None, "file": len(body) > 2**20}
    hashed = hashlib.sha256(body).hexdigest()
    return 201, {"size": len(body), "hash": hashed, **known, **told}


def chunked(body, step=1000):
    yield from (body[at : at + step] for at in range(0, len(body), step))


def test_raw_bodies_of_each_kind(upload_echo):
    kinds = {
        "text/csv": "csv",
        "text/csv; charset=utf-8": "csv",
        "text/tab-separated-values": "tsv",
        "application/vnd.apache.parquet": "parquet",
        "application/x-parquet": "parquet",
        "application/vnd.apache.arrow.file": "arrow",
        "application/x-ndjson": "jsonl",
        "application/octet-stream": None,
    }
    for kind, told in kinds.items():
        assert send(upload_echo, CSV, kind) == taken(CSV, format=told)
    for body in (b"", b"x", b"\x1f", LARGE[: 2**20], LARGE[: 2**20 + 1], LARGE):
        assert send(upload_echo, body) == send(upload_echo, chunked(body, 70_000)) == taken(body)
    assert upload_echo.file_modes == {0o600}
    assert upload_echo.spool.path.stat().st_mode & 0o777 == 0o700


def test_packed_bodies(upload_echo):
    for body in (CSV, LARGE, b""):
        packed = gzip.compress(body, 1)
        half = len(body) // 2
        two = gzip.compress(body[:half], 1) + gzip.compress(body[half:], 1)
        for each in (packed, two, packed + gzip.compress(b"")):
            assert send(upload_echo, each, Content_Encoding="gzip") == taken(body)
            assert send(upload_echo, each) == taken(body)  # known by its bytes
    for step in (1, 7):
        body = chunked(gzip.compress(CSV) + gzip.compress(CSV), step)
        assert send(upload_echo, body, Content_Encoding="gzip") == taken(CSV + CSV)


@pytest.mark.parametrize("body", [CSV, LARGE], ids=["small", "large"])
def test_damaged_packing_is_refused(upload_echo, body):
    packed = gzip.compress(body, 1)
    twice = gzip.compress(packed)
    wrong = {
        "cut off": packed[:-1],
        "cut off early": packed[:12],
        "only begun": b"\x1f",
        "followed": packed + b"\0",
        "followed by half a member": packed + b"\x1f",
        "wrong sum": packed[:-8] + b"1234" + packed[-4:],
        "nothing": b"",
        "plain": body,
        "deflate": zlib.compress(body),
    }
    for name, each in wrong.items():
        status, said = send(upload_echo, each, Content_Encoding="gzip")
        assert (status, said["code"]) == (422, "damaged"), name
    for how in ({}, {"Content_Encoding": "gzip"}):
        assert send(upload_echo, twice, **how)[1]["code"] == "packed"
    many = gzip.compress(b"") * 10_001
    assert send(upload_echo, many)[1]["code"] == "damaged"


BOMB = gzip.compress(bytes(2**26), 6)  # a thousandth of what is in it


def test_what_is_too_large_ends_early(upload_echo):
    upload_echo.limits = BodyLimits(bytes=3 * 2**20)
    assert send(upload_echo, LARGE) == taken(LARGE)
    for how in ({}, {"Content_Encoding": "gzip"}):
        status, said = send(upload_echo, BOMB, **how)
        assert (status, said["code"]) == (413, "too_large")
    assert send(upload_echo, LARGE + b"x")[0] == 413
    assert send(upload_echo, chunked(LARGE + b"x", 2**16))[0] == 413
    begun = []

    def endless():
        while True:
            begun.append(1)
            yield bytes(2**16)

    with contextlib.suppress(httpx.TransportError):  # the answer may come before all was sent
        assert send(upload_echo, endless())[0] == 413
    assert len(begun) < 1000


def test_what_a_form_hides_from_the_file_counts_too(upload_echo):
    upload_echo.limits = BodyLimits(bytes=2**20)
    form = b"--x\r\nContent-Disposition: form-data; name=file\r\n\r\nid\r\n--x--\r\n"
    kind = "multipart/form-data; boundary=x"
    assert send(upload_echo, gzip.compress(form), kind, Content_Encoding="gzip")[0] == 201
    hidden = gzip.compress(form) + BOMB
    assert send(upload_echo, hidden, kind, Content_Encoding="gzip")[0] == 413


def test_other_types_are_refused(upload_echo):
    wrong = [
        ("text/html", {}),
        ("application/x-www-form-urlencoded", {}),
        ("text/csv; charset=utf-16", {}),
        ("text/csv", {"Content_Encoding": "br"}),
        ("multipart/mixed; boundary=x", {}),
        ("multipart/form-data; boundary=x", {"Content_Encoding": "zstd"}),
    ]
    for kind, how in wrong:
        status, said = send(upload_echo, CSV, kind, **how)
        assert (status, said["code"]) == (415, "content_type"), (kind, how)


def test_there_must_be_room(upload_echo, monkeypatch):
    spool = upload_echo.spool
    held, spool._left = spool._left, 2**21
    assert send(upload_echo, LARGE[: 2**21]) == taken(LARGE[: 2**21])
    assert send(upload_echo, LARGE)[0] == 503
    assert spool._left == 2**21
    spool._left = held
    monkeypatch.setattr(spool, "_free", 2**60)
    status, said = send(upload_echo, LARGE)
    assert (status, said["code"]) == (507, "disk_full")
    assert send(upload_echo, CSV) == taken(CSV)  # needs no disk


class Line:
    """A connection on which a body is sent little by little."""

    def __init__(self, upload_echo, length):
        self.socket = socket.create_connection(("127.0.0.1", upload_echo.port), timeout=60)
        head = f"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/csv\r\nContent-Length: {length}"
        self.socket.sendall(f"{head}\r\n\r\n".encode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def test_who_is_too_slow_is_told_and_nothing_is_left(upload_echo):
    upload_echo.limits = BodyLimits(seconds=0.3)
    ended = threading.Event()
    for first in (b"x", LARGE):
        ended.clear()
        with Line(upload_echo, len(LARGE) + 1000) as line:

            def drip(line=line, first=first):
                with contextlib.suppress(OSError):
                    line.socket.sendall(first)
                    while not ended.wait(0.02):
                        line.socket.sendall(b"x")

            thread = threading.Thread(target=drip)
            thread.start()
            assert line.socket.recv(100).startswith(b"HTTP/1.1 408 ")
            ended.set()
            thread.join()


def test_who_goes_away_leaves_nothing(upload_echo):
    gone = upload_echo.disconnects
    with Line(upload_echo, 2 * len(LARGE)) as line:
        line.socket.sendall(LARGE)
        until(lambda: upload_echo.spooled)
    until(lambda: upload_echo.disconnects == gone + 1)
    assert not upload_echo.spooled


def test_what_a_crash_left_is_swept(tmp_path):
    spool = Spool(tmp_path / "a" / "spool")
    old, new = (spool.path / f"body-{each}" for each in ("old", "new"))
    other = spool.path / "notes.txt"
    for each in (old, new, other):
        each.write_bytes(b"x")
    past = time.time() - 3700
    os.utime(old, (past, past))
    os.utime(other, (past, past))
    assert spool.remove_stale() == 1
    assert not old.exists()
    assert spool.remove_stale(older=0) == 1
    assert other.exists()
    spool.close()


def test_limits_are_checked():
    with pytest.raises(InvalidSetting, match="seconds must be a number above 0"):
        BodyLimits(seconds=0)
