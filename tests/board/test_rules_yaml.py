"""YAML without surprises, and no text that breaks the reader."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ladderboard.board import Rules, read_rules
from ladderboard.board._rules._yaml import MAX_BYTES, MAX_VALUES, read_yaml
from ladderboard.errors import InvalidRules

LEAST = "slug: digits\nloss: accuracy\nquestions: 1000\n"


def read_value(text):
    noted = []
    value, _ = read_yaml(text, lambda *note: noted.append(note))
    assert not noted
    return value


def problem_codes(text):
    with pytest.raises(InvalidRules) as caught:
        read_rules(text)
    return [problem.code for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((word, word) for word in ("yes", "no", "on", "off", "Yes", "NO", "y", "n")),
        ("1:30", "1:30"),
        ("190:20:30", "190:20:30"),
        ("2027-01-31", "2027-01-31"),
        ("2027-01-31T10:00:00Z", "2027-01-31T10:00:00Z"),
        ("010", "010"),
        ("0x10", "0x10"),
        ("0b1", "0b1"),
        (".inf", ".inf"),
        ("1e999", "1e999"),
        ("<<", "<<"),
        ("=", "="),
        ("9" * 5000, "9" * 5000),
        ("1_000", 1000),
        ("-3", -3),
        ("1e4", 10_000.0),
        ("0.05", 0.05),
        (".5", 0.5),
        ("true", True),
        ("False", False),
        ("~", None),
        ("null", None),
        ('"7"', "7"),
        ("'true'", "true"),
        ("! 7", "7"),
        ("|\n 7\n", "7\n"),
    ],
)
def test_scalars_are_read_as_expected(text, value):
    value_read = read_value(text)
    assert (type(value_read), value_read) == (type(value), value)


def test_keys_and_lists_with_their_lines():
    text = "a:\n  - x\n  - y: 1\n    no: [on]\n1: z\n"
    value, lines = read_yaml(text, None)
    assert value == {"a": ["x", {"y": 1, "no": ["on"]}], "1": "z"}
    assert lines == {
        ("a",): 1, ("a", 0): 2, ("a", 1): 3, ("a", 1, "y"): 3, ("a", 1, "no"): 4,
        ("a", 1, "no", 0): 4, ("1",): 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("title: &x a\n", "anchor", 4),
        ("title: *x\n", "anchor", 4),
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "anchor", 4),
        ("title: !!python/object:os.system x\n", "tag", 4),
        ("title: !!binary aGk=\n", "tag", 4),
        ("title: !mine x\n", "tag", 4),
        ("---\ntitle: x\n", "documents", 4),
        ("title: x\nslug: digits\n", "duplicate_key", 5),
        ("window: {questions: 1, hours: 2, questions: 3}\n", "duplicate_key", 4),
        ("title: " + "[" * 1000, "yaml", 4),
        ("[a]: b\n", "yaml", 4),
        ("{a: b}: c\n", "yaml", 4),
        ("title: [\n", "yaml", 5),
        ("title: a\n  b: c\n", "yaml", 5),
        ("\ttitle: a\n", "yaml", 4),
        ("title: a\x07\n", "yaml", 4),
    ],
)
def test_refused_with_the_line(text, code, line):
    with pytest.raises(InvalidRules) as caught:
        read_rules(LEAST + text)
    assert (caught.value.problems[0].code, caught.value.problems[0].ids) == (code, (str(line),))
    assert str(caught.value).startswith(f"board.yaml, line {line}: ")


def test_invalid_escapes_are_refused():
    assert problem_codes(LEAST + 'title: "\\UFFFFFFFF"\n') == ["yaml"]
    assert problem_codes(LEAST + 'title: "\\uD800"\n') == ["bad_value"]
    assert problem_codes(LEAST + 'title: "\\0"\n') == ["bad_value"]


def test_limits_of_size():
    room = MAX_BYTES - len(LEAST) - 1
    assert read_rules(LEAST + "#" + "x" * room).questions == 1000
    assert problem_codes(LEAST + "#" + "x" * (room + 1)) == ["too_many_bytes"]
    with pytest.raises(InvalidRules, match="must hold at most 50,000 keys and values"):
        read_rules("- a\n" * (MAX_VALUES + 1))
    assert problem_codes("[" * MAX_BYTES) == ["yaml"]
    assert problem_codes("- " * (MAX_BYTES // 2)) == ["yaml"]


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n...\n", "null"])
def test_an_empty_file_lacks_everything(text):
    assert problem_codes(text) == ["missing_key"] * 3


@pytest.mark.parametrize("text", ["7", "words", "[a, b]", '""'])
def test_a_file_without_keys_is_refused(text):
    assert problem_codes(text) == ["yaml"]


KEYS = st.sampled_from(
    """
    slug title description loss display mechanism beta questions teams per_team window start end
    phases ladder registration visibility baselines finals files name file value source digits
    direction as hours days seconds selections bytes rows quota classes range k clip step
    grid compare_noise release_noise origin law
    """.split()  # noqa: SIM905 - shorter so
)
_SINGLE = """
    accuracy brier log mae rmse auc top_k hamming pinball zero_one custom a:b ..:x :: calibrated
    ladder exact rounded noisy thresholdout bootstrap_ladder one_bit shaky_ladder team board open
    invited public frozen higher lower loss root 0 1 -1 2 1e9 1e400 0.5 .nan ~ true 20MB AoE
    2027-01-31 2027-01-31T10:00Z digits ../x /x x.csv '' 99999999999999999999
"""
_SEVERAL = (
    "2027-01-31 AoE",
    "[0, 1]",
    "[a, b]",
    "{name: brier, classes: [no, yes]}",
    "[{}]",
    "[[]]",
)
WORDS = st.sampled_from([*_SINGLE.split(), *_SEVERAL])
VALUES = st.recursive(
    WORDS | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(KEYS, inner, max_size=4).map(
            lambda mapping: (
                "{" + ", ".join(f"{key}: {value}" for key, value in mapping.items()) + "}"
            )
        )
    ),
    max_leaves=6,
)


@settings(max_examples=400)
@given(st.dictionaries(KEYS, VALUES, max_size=8), st.booleans())
@example({"loss": "{name: mae, range: [0, 1e300]}"}, True)
@example({"loss": "{name: top_k, k: 99999999999999999999}"}, True)
@example({"mechanism": "{name: ladder, step: 0.01, grid: {}}"}, True)
def test_any_yaml_is_read_or_refused(keys, complete):
    lines = [f"{key}: {value}\n" for key, value in keys.items()]
    lines += [
        line
        for line in LEAST.splitlines(keepends=True)
        if complete and line.split(":")[0] not in keys
    ]
    check_read_or_refused("".join(lines))


@settings(max_examples=300)
@given(
    st.text(alphabet=st.sampled_from("ab01 \n\t:-[]{},#&*!|>'\"%@`?~.<=\\\x00\ufeff\u2028é\ud800"))
)
def test_any_text_is_read_or_refused(text):
    check_read_or_refused(text)
    check_read_or_refused(LEAST + text)


def check_read_or_refused(text):
    refused = None
    try:
        rules = read_rules(text)
    except InvalidRules as error:
        refused = error
    if refused is not None:
        assert refused.problems
        assert all(line.isprintable() for line in str(refused).splitlines())
        return
    assert Rules.from_description(rules.describe()) == rules
    assert rules.share >= 1
    assert rules.pool >= 0
