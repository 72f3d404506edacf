"""CSV in many dialects: accepted if its meaning is clear, refused otherwise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ladderboard as lb
from ladderboard.errors import InvalidPredictions
from ladderboard.files import Limits, Roster, read_predictions
from ladderboard.files._formats._csv import CsvTable

ROSTER = Roster.of(["a", "b", "c"], kind="number")
TEXT = Roster.of(["a", "b", "c"], kind="text")
WHOLE = Roster.of([7, 8, 9], kind="number")
LOSS = lb.loss("zero_one")
REAL = lb.loss("absolute", range=(0, 10))
PLAIN = "id,prediction\nc,3\na,1\nb,2\n"

CLEAR = [
    PLAIN,
    PLAIN.replace("\n", "\r\n"),
    PLAIN.replace("\n", "\r"),
    PLAIN.replace(",", ";"),
    PLAIN.replace(",", "\t"),
    PLAIN.replace(",", "|"),
    PLAIN.replace(",", ", "),
    PLAIN.replace(",", " , "),
    PLAIN.rstrip("\n"),
    PLAIN + "\n\n",
    "\n\n" + PLAIN,
    PLAIN.replace("\n", "\n\n"),
    "\ufeff" + PLAIN,
    "sep=;\n" + PLAIN.replace(",", ";"),
    "ID , Prediction\nc,3\na,1\nb,2\n",
    '"id","prediction"\n"c","3"\n"a","1"\n"b","2"\n',
    '"id";"prediction"\r\n"c";3\r\n"a";1\r\n"b";2\r\n',
    'id,prediction\n"c", "3"\na,1\nb,"2"\n',
    "prediction,id\n3,c\n1,a\n2,b\n",
    ",id,prediction\n0,c,3\n1,a,1\n2,b,2\n",
    "Unnamed: 0,id,prediction\n0,c,3\n1,a,1\n2,b,2\n",
    "c,3\na,1\nb,2\n",
    "c;3\na;1\nb;2",
    "1\n2\n3\n",
    "prediction\n1\n2\n3\n",
    "anything\n1\n2\n3\n",
    "y\n1\n2\n3",
    "id,prediction\nc,3.0\na,1.\nb,+2\n",
    "id,prediction\nc,3e0\na,01\nb,.2e1\n",
    "id;prediction\nc;3,0\na;1,0\nb;2\n",
    "id,something else\nc,3\na,1\nb,2\n",
    "id,prediction\nc,3\na,true\nb,2\n",
]


@pytest.mark.parametrize("text", CLEAR)
def test_valid_csv_dialects(text):
    assert read_predictions(text.encode(), ROSTER, LOSS).tolist() == [1, 2, 3]


@pytest.mark.parametrize("codec", ["utf-16", "utf-8-sig"])
def test_encodings(codec):
    data = "id,prediction\na,é\nb,ü\nc,中\n".encode(codec)
    assert read_predictions(data, TEXT, LOSS).tolist() == ["é", "ü", "中"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id,label\na,007\nb,1.0\nc,NA\n", ["007", "1.0", "NA"]),
        (
            'id,label\na,"x, y"\nb,"say ""hi"""\nc,"two\nlines"\n',
            ["x, y", 'say "hi"', "two\nlines"],
        ),
        ("cat\ndog\ncat\n", ["cat", "dog", "cat"]),
        ("animal\ncat\ndog\ncat\n", ["cat", "dog", "cat"]),
        ("a,cat\nc,dog\nb,cat\n", ["cat", "cat", "dog"]),
        ("id,label\na,x;y\nb,z\nc,z\n", ["x;y", "z", "z"]),
        ("id\tlabel\na\tx,y\nb\tz\nc\tz\n", ["x,y", "z", "z"]),
    ],
)
def test_text_keeps_its_spelling(text, expected):
    assert read_predictions(text.encode(), TEXT, LOSS).tolist() == expected


def test_integer_ids_match_in_any_notation():
    for text in ("7,1\n8,2\n9,3", "id,y\n9.0,3\n7.0,1\n8,2\n", "id,y\n 9,3\n007,1\n+8,2\n"):
        assert read_predictions(text.encode(), WHOLE, LOSS).tolist() == [1, 2, 3]
    zeros = Roster.of(["007", "008"], kind="number")
    assert read_predictions(b"id,y\n008,2\n007,1\n", zeros, LOSS).tolist() == [1, 2]
    with pytest.raises(
        InvalidPredictions, match=r"ids are text, such as '007', '008'; .* '7', '8'"
    ):
        read_predictions(b"id,y\n7,2\n8,1\n", zeros, LOSS)


def test_a_holdout_without_ids_numbers_its_rows_from_zero():
    rows = Roster.of(3, kind="number")
    for text in ("id,y\n2,3\n0,1\n1,2\n", "2,3\n0,1\n1,2\n", "y\n1\n2\n3\n", "1\n2\n3"):
        assert read_predictions(text.encode(), rows, LOSS).tolist() == [1, 2, 3]
    with pytest.raises(InvalidPredictions) as caught:
        read_predictions(b"id,y\n1,1\n2,2\n3,3\n", rows, LOSS)
    assert [problem.code for problem in caught.value.problems] == ["unknown_id", "missing_id"]


def codes(data, roster=ROSTER, loss=LOSS, **options):
    with pytest.raises(InvalidPredictions) as caught:
        read_predictions(data, roster, loss, **options)
    return [problem.code for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", ["empty"]),
        (b"\n\n \n", ["empty"]),
        (b"\xef\xbb\xbf", ["empty"]),
        (b"id,prediction\n", ["missing_id"]),
        (b"id,prediction", ["missing_id"]),
        (b"prediction\n", ["wrong_count"]),
        (b"id,prediction\na,1\nb\nc,3\n", ["ragged"]),
        (b"id,prediction\na,1\nb,2,2\nc,3\n", ["ragged"]),
        (b"id,prediction\na,1\nb,2,\nc\n", ["ragged"]),
        (b'id,prediction\na,"1\nb,2\nc,3\n', ["quotes"]),
        (b'id,prediction\na,"1"x\nb,2\nc,3\n', ["quotes"]),
        (b'"id,prediction\na,1\nb,2\nc,3\n', ["quotes"]),
        (b"id,prediction\na,1\nb,\xe9\nc,3\n", ["encoding"]),
        (b"\xff\xfea", ["encoding"]),
        ("id,prediction\na,1".encode("utf-16-le"), ["encoding"]),
        (b"a,1,2\nb,1,3\nc,1,4\n", ["missing_column"]),
        (b"1,2\n2,3\n", ["header"]),
        (b"id,a,b\na,1,2\nb,1,2\nc,1,2\n", ["missing_column"]),
        (b"id,prediction,confidence\na,1,2\nb,1,2\nc,1,2\n", ["extra_column"]),
        (b"image,prediction\nx,1\ny,1\nz,1\n", ["extra_column"]),
        (b"id,label,y_pred\na,1,2\nb,1,2\nc,1,2\n", ["unclear_column"]),
        (b"id,prediction,Prediction\na,1,2\nb,1,2\nc,1,2\n", ["duplicate_column"]),
        (b"id,id,prediction\na,1,2\nb,1,2\nc,1,2\n", ["duplicate_column"]),
        (b"id\na\nb\nc\n", ["missing_column"]),
        (b"id,prediction\na,1\nb,2\nc,3\nd,4\n", ["unknown_id"]),
        (b"id,prediction\na,1\nb,2\n", ["missing_id"]),
        (b"id,prediction\na,1\nb,2\nc,3\nc,4\n", ["duplicate_id"]),
        (b"id,prediction\na,1\nb,2\n,3\n", ["empty_id", "missing_id"]),
        (b"id,prediction\na,1\nb,\nc,3\n", ["missing_value"]),
        (b"id,prediction\na,1\nb,NaN\nc,null\n", ["missing_value"]),
        (b"id,prediction\na,1\nb,inf\nc,1e999\n", ["not_finite"]),
        (b"id,prediction\na,1\nb,two\nc,0x3\n", ["not_a_number"]),
        (b"id,prediction\na,1\nb,1 000\nc,1_0\n", ["not_a_number"]),
        (b"id;prediction\na;1\nb;1.000,5\nc;2\n", ["not_a_number"]),
        (
            b"id,prediction\na,x\na,1\nq,\n,inf\n",
            [
                *("empty_id", "unknown_id", "duplicate_id", "missing_id"),
                *("missing_value", "not_finite", "not_a_number"),
            ],
        ),
    ],
)
def test_ambiguous_or_invalid_csv_is_refused(data, expected):
    assert codes(data) == expected


def test_refusals_name_the_broken_lines():
    with pytest.raises(InvalidPredictions) as caught:
        read_predictions(b"id,prediction\na,1\nb\nc,3,4\n\nd\n", ROSTER, LOSS)
    assert str(caught.value) == (
        "Every row must have 2 fields, like the first line; 3 rows have more or fewer "
        "(lines 3, 4, 6)."
    )
    (problem,) = caught.value.problems
    assert (problem.count, problem.ids) == (3, ("line 3", "line 4", "line 6"))
    with pytest.raises(InvalidPredictions, match="byte 20 is not"):
        read_predictions(b"id,prediction\na,1\nb,\xe9\n", ROSTER, LOSS)
    with pytest.raises(InvalidPredictions, match="byte 33554443 is not"):
        read_predictions(b"prediction\n" + b"\xc3\xa9" * 2**24 + b"\xe9\n", ROSTER, LOSS)


def test_limits():
    assert codes(PLAIN.encode(), limits=Limits(bytes=10)) == ["too_many_bytes"]
    assert codes(PLAIN.encode(), limits=Limits(rows=2)) == ["too_many_rows"]
    assert codes(PLAIN.encode(), limits=Limits(columns=1)) == ["too_many_columns"]
    assert codes(PLAIN.encode() + b"x,1\n" * 1010) == ["too_many_rows"]
    assert codes(b"x" * (2**22 + 1)) == ["line_too_long"]
    assert codes(b"id,prediction\na," + b"1" * (2**22 + 1) + b"\nb\n") == ["line_too_long"]
    assert codes(b",".join([b"p"] * 10**5)) == ["too_many_columns"]
    # A long field in a valid file is not a number.
    assert codes(b"id,prediction\nb,1\nc,1\na," + b"1" * 10**6 + b"\n") == ["not_finite"]


def test_text_with_a_zlib_prefix_is_read_as_text():
    for start in ("x\x01", "xڀ", "x^"):
        roster = Roster.of([start, "b"], kind="number")
        data = f"{start},1\nb,2\n".encode()
        assert read_predictions(data, roster, LOSS).tolist() == [1, 2]


field = st.text(
    st.sampled_from(["0", "1", "7", ".", "-", "+", "e", " ", "n", "a", "x"]), max_size=5
)


@given(st.lists(field, min_size=1, max_size=4), st.sampled_from([LOSS, REAL]))
def test_all_csv_methods_give_the_same_result(fields, loss):
    """Fast and slow methods give the same values and the same refusals."""
    roster = Roster.of(len(fields), kind="number")
    text = "id,y\n" + "".join(f"{row},{value}\n" for row, value in enumerate(fields))
    outcomes = []
    for disabled in ((), ("_read_as_numbers",), ("_read_as_numbers", "_read_as_text")):
        with pytest.MonkeyPatch.context() as patch:
            for value in disabled:
                patch.setattr(CsvTable, value, lambda *_, **__: None)
            try:
                predictions = read_predictions(text.encode(), roster, loss)
                outcomes.append((predictions.dtype, predictions.tolist()))
            except InvalidPredictions as error:
                outcomes.append((str(error), error.problems))
    assert outcomes[0] == outcomes[1] == outcomes[2]
