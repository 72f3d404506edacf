"""Forms: one file, perhaps a message, and nothing else."""

import asyncio
import gzip
import os

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from starlette.requests import ClientDisconnect, Request

from ladderboard.errors import InvalidPredictions
from ladderboard.server._uploads._body import BodyLimits, RequestRefused, Spool, receive_body
from ladderboard.server._uploads._multipart import InvalidForm

CSV = b"id,prediction\n0,1\n1,0\n"
KIND = "multipart/form-data; boundary=edge"


@pytest.fixture(scope="module")
def spool(tmp_path_factory):
    """A spool folder for large bodies."""
    spool = Spool(tmp_path_factory.mktemp("form") / "spool")
    yield spool
    assert not list(spool.path.iterdir())


def receive_form(spool, body, kind=KIND, step=None, limits=None, disconnect=False, **headers):
    """Receive a body without a server; return content, format and message."""
    step = step or len(body) or 1
    parts = [body[start : start + step] for start in range(0, len(body), step)]
    messages = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in parts]
    messages.append({"type": "http.disconnect"} if disconnect else {"type": "http.request"})
    fields = {"content-type": kind, **headers}
    raw_headers = [(name.encode(), value.encode()) for name, value in fields.items()]
    scope = {"type": "http", "method": "POST", "headers": raw_headers}

    async def next_message():
        return messages.pop(0)

    async def run():
        async with await receive_body(
            Request(scope, next_message), limits or BodyLimits(), spool
        ) as upload:
            data = upload.content
            if not isinstance(data, bytes):
                data.seek(0)
                data = data.read()
            assert len(data) == upload.size
            return data, upload.format, upload.message

    return asyncio.run(run())


def part(name="file", data=CSV, extra="", disposition="form-data"):
    head = f'Content-Disposition: {disposition}; name="{name}"{extra}\r\n\r\n'
    return b"--edge\r\n" + head.encode() + data + b"\r\n"


END = b"--edge--\r\n"


def test_forms_as_clients_send_them(spool):
    for files, expected_format in (
        ({"file": ("p.csv", CSV, "text/csv")}, "csv"),
        ({"file": ("p.csv", CSV, "application/vnd.ms-excel")}, "csv"),
        ({"file": ("P.TSV", CSV)}, "tsv"),
        ({"file": ("p.jsonl.gz", gzip.compress(CSV))}, "jsonl"),
        ({"file": ("p.parquet", CSV)}, None),
        ({"file": ("csv", CSV)}, None),
        ({"file": ('we"ird\r\n.csv', CSV)}, "csv"),
    ):
        request = httpx.Request("POST", "http://x/", data={"message": "größer"}, files=files)
        body, kind = request.read(), request.headers["content-type"]
        for step in (None, 1, 13):
            assert receive_form(spool, body, kind, step) == (CSV, expected_format, "größer")


def test_order_gzip_and_optional_parts(spool):
    message = part("message", "hé\r\n--edg".encode())
    for body in (part() + message + END, message + part() + END):
        for headers in ({}, {"content-encoding": "gzip"}):
            sent_body = gzip.compress(body) if headers else body
            for step in (None, 3):
                assert receive_form(spool, sent_body, step=step, **headers) == (
                    CSV,
                    None,
                    "hé\r\n--edg",
                )
    assert receive_form(spool, part() + END) == (CSV, None, None)
    assert receive_form(spool, part() + part("message", b"") + END)[2] == ""
    assert receive_form(spool, part(data=b"") + END)[0] == b""
    large = os.urandom(2**21)
    assert receive_form(spool, part(data=large) + END, step=2**16)[0] == large
    assert receive_form(spool, part(data=gzip.compress(large)) + END)[0] == large


WRONG = {
    "no boundary": (part() + END, "multipart/form-data"),
    "empty boundary": (part() + END, "multipart/form-data; boundary="),
    "long boundary": (part() + END, f"multipart/form-data; boundary={'x' * 300}"),
    "another boundary": (part() + END, "multipart/form-data; boundary=other"),
    "no file": (part("message", b"x") + END, KIND),
    "nothing": (END, KIND),
    "empty": (b"", KIND),
    "two files": (part() + part() + END, KIND),
    "two messages": (part("message") + part("message") + part() + END, KIND),
    "another part": (part() + part("token", b"x") + END, KIND),
    "no name": (part().replace(b"name=", b"nome=") + END, KIND),
    "no disposition": (b"--edge\r\nX: y\r\n\r\n" + CSV + b"\r\n" + END, KIND),
    "not of a form": (part(disposition="attachment") + END, KIND),
    "base64": (part(extra="\r\nContent-Transfer-Encoding: base64") + END, KIND),
    "a header twice": (part(extra="\r\nX: y\r\nx: z") + END, KIND),
    "many headers": (part(extra="".join(f"\r\nX{index}: y" for index in range(20))) + END, KIND),
    "a long header": (part(extra=f"; x={'y' * 5000}") + END, KIND),
    "a long message": (part() + part("message", b"x" * 20_000) + END, KIND),
    "no text": (part() + part("message", b"\xff") + END, KIND),
    "cut off": (part(), KIND),
    "cut off in the file": (part()[:-10], KIND),
    "not a form": (CSV, KIND),
}


@pytest.mark.parametrize(("body", "kind"), WRONG.values(), ids=WRONG)
def test_other_forms_are_refused(spool, body, kind):
    for step in (None, 11):
        with pytest.raises(RequestRefused) as error:
            receive_form(spool, body, kind, step)
        assert (error.value.status, error.value.code) == (400, "form")


def test_only_the_file_counts_for_the_limit(spool):
    limits = BodyLimits(bytes=len(CSV))
    assert receive_form(spool, part() + part("message", b"x" * 100) + END, limits=limits)[0] == CSV
    for data in (CSV + b"x", gzip.compress(CSV + b"x")):
        with pytest.raises(RequestRefused) as error:
            receive_form(spool, part(data=data) + END, limits=limits)
        assert error.value.status == 413


PIECES = [part(), part("message", b"hi"), END, b"--edge", b"\r\n", b"\r", b"--", CSV, b"\0\xff"]
PIECES += [b"Content-Disposition: form-data; name=file\r\n\r\n", gzip.compress(CSV), b": ;"]


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from(PIECES) | st.binary(max_size=5), max_size=6),
    st.integers(1, 50),
    st.booleans(),
    st.booleans(),
)
@example([part(), END, b"\r\nmore"], 1, False, False)
def test_any_body_is_accepted_or_refused(spool, pieces, step, packed, disconnect):
    body = b"".join(pieces)
    headers = {"content-encoding": "gzip"} if packed else {}
    sent_body = gzip.compress(body) if packed else body
    try:
        data, _, message = receive_form(
            spool, sent_body, step=step, disconnect=disconnect, **headers
        )
    except (InvalidForm, InvalidPredictions, ClientDisconnect):
        pass
    else:
        assert not disconnect
        assert message is None or isinstance(message, str)
        assert data in body or data == CSV
    assert not list(spool.path.iterdir())
