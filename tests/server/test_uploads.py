"""Uploads: bodies of every kind are received completely, or leave nothing behind."""

import contextlib
import gzip
import hashlib
import os
import socket
import threading
import zlib

import httpx
import pytest

from ladderboard.server._uploads._body import BodyLimits
from support.server.cli_server import wait_until
from support.server.upload_echo import UploadEcho

CSV = b"id,prediction\n" + b"".join(b"%d,%d\n" % (index, index % 2) for index in range(1000))
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


@pytest.fixture
def upload_echo(shared_upload_echo):
    """The server with default limits; afterwards no file or reservation may be left."""
    yield shared_upload_echo
    shared_upload_echo.limits = BodyLimits()
    wait_until(lambda: not shared_upload_echo.spooled)
    assert not list(shared_upload_echo.spool.path.iterdir())


def send(upload_echo, body, kind="text/csv", **headers):
    header_fields = {name.replace("_", "-"): value for name, value in headers.items()}
    response = upload_echo.client.post(
        "/", content=body, headers={"Content-Type": kind, **header_fields}
    )
    return response.status_code, response.json()


def accepted(body, **fields):
    """Return the expected reply to an accepted body."""
    defaults = {"format": "csv", "message": None, "file": len(body) > 2**20}
    hashed = hashlib.sha256(body).hexdigest()
    return 201, {"size": len(body), "hash": hashed, **defaults, **fields}


def chunked(body, step=1000):
    yield from (body[start : start + step] for start in range(0, len(body), step))


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
    for kind, format_ in kinds.items():
        assert send(upload_echo, CSV, kind) == accepted(CSV, format=format_)
    for body in (b"", b"x", b"\x1f", LARGE[: 2**20], LARGE[: 2**20 + 1], LARGE):
        assert send(upload_echo, body) == send(upload_echo, chunked(body, 70_000)) == accepted(body)
    assert upload_echo.spool.path.stat().st_mode & 0o777 == 0o700


def test_gzipped_bodies(upload_echo):
    for body in (CSV, LARGE, b""):
        packed = gzip.compress(body, 1)
        half = len(body) // 2
        two = gzip.compress(body[:half], 1) + gzip.compress(body[half:], 1)
        for variant in (packed, two, packed + gzip.compress(b"")):
            assert send(upload_echo, variant, Content_Encoding="gzip") == accepted(body)
            assert send(upload_echo, variant) == accepted(body)  # recognised by its bytes
    for step in (1, 7):
        body = chunked(gzip.compress(CSV) + gzip.compress(CSV), step)
        assert send(upload_echo, body, Content_Encoding="gzip") == accepted(CSV + CSV)


@pytest.mark.parametrize("body", [CSV, LARGE], ids=["small", "large"])
def test_damaged_gzip_is_refused(upload_echo, body):
    packed = gzip.compress(body, 1)
    packed_twice = gzip.compress(packed)
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
    for name, damaged in wrong.items():
        status, refusal = send(upload_echo, damaged, Content_Encoding="gzip")
        assert (status, refusal["code"]) == (422, "damaged"), name
    for headers in ({}, {"Content_Encoding": "gzip"}):
        assert send(upload_echo, packed_twice, **headers)[1]["code"] == "packed"
    many_members = gzip.compress(b"") * 10_001
    assert send(upload_echo, many_members)[1]["code"] == "damaged"


BOMB = gzip.compress(bytes(2**26), 6)  # a thousandth of what is in it


def test_a_too_large_body_is_refused_early(upload_echo):
    upload_echo.limits = BodyLimits(bytes=3 * 2**20)
    assert send(upload_echo, LARGE) == accepted(LARGE)
    for headers in ({}, {"Content_Encoding": "gzip"}):
        status, refusal = send(upload_echo, BOMB, **headers)
        assert (status, refusal["code"]) == (413, "too_large")
    assert send(upload_echo, LARGE + b"x")[0] == 413
    assert send(upload_echo, chunked(LARGE + b"x", 2**16))[0] == 413
    chunks_sent = []

    def endless():
        while True:
            chunks_sent.append(1)
            yield bytes(2**16)

    with contextlib.suppress(httpx.TransportError):  # the response may come before all was sent
        assert send(upload_echo, endless())[0] == 413
    assert len(chunks_sent) < 1000


def test_data_after_the_form_counts_for_the_limit(upload_echo):
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
    for kind, headers in wrong:
        status, body = send(upload_echo, CSV, kind, **headers)
        assert (status, body["code"]) == (415, "content_type"), (kind, headers)


def test_a_full_spool_or_disk_is_refused(upload_echo, monkeypatch):
    spool = upload_echo.spool
    bytes_left, spool._available = spool._available, 2**21
    assert send(upload_echo, LARGE[: 2**21]) == accepted(LARGE[: 2**21])
    assert send(upload_echo, LARGE)[0] == 503
    assert spool._available == 2**21
    spool._available = bytes_left
    monkeypatch.setattr(spool, "_min_free", 2**60)
    status, refusal = send(upload_echo, LARGE)
    assert (status, refusal["code"]) == (507, "disk_full")
    assert send(upload_echo, CSV) == accepted(CSV)  # needs no disk


class SlowUpload:
    """A connection on which a body is sent little by little."""

    def __init__(self, upload_echo, length):
        self.socket = socket.create_connection(("127.0.0.1", upload_echo.port), timeout=60)
        head = f"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/csv\r\nContent-Length: {length}"
        self.socket.sendall(f"{head}\r\n\r\n".encode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def test_a_too_slow_upload_gets_408_and_leaves_nothing(upload_echo):
    upload_echo.limits = BodyLimits(seconds=0.3)
    ended = threading.Event()
    for first_part in (b"x", LARGE):
        ended.clear()
        with SlowUpload(upload_echo, len(LARGE) + 1000) as upload:

            def drip(upload=upload, first_part=first_part):
                with contextlib.suppress(OSError):
                    upload.socket.sendall(first_part)
                    while not ended.wait(0.02):
                        upload.socket.sendall(b"x")

            thread = threading.Thread(target=drip)
            thread.start()
            assert upload.socket.recv(100).startswith(b"HTTP/1.1 408 ")
            ended.set()
            thread.join()


def test_a_disconnected_upload_leaves_nothing(upload_echo):
    disconnects = upload_echo.disconnects
    with SlowUpload(upload_echo, 2 * len(LARGE)) as upload:
        upload.socket.sendall(LARGE)
        wait_until(lambda: upload_echo.spooled)
    wait_until(lambda: upload_echo.disconnects == disconnects + 1)
    assert not upload_echo.spooled
