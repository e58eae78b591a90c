"""The text of queries: what is written is read again, and mistakes are named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gibbsian.answers import Query
from gibbsian.answers.query_text import GROUPS, Term
from gibbsian.errors import ArgumentError

words = st.text(st.characters(max_codepoint=0x2FF), min_size=1, max_size=8) | st.text(
    "ab ,;|=()'\"\\\n", min_size=1, max_size=6
)
names = st.builds(Term, words)
fixed = st.builds(Term, words, words)


@st.composite
def queries(draw):
    kind = draw(st.sampled_from("PHI"))
    asked = st.one_of(names, fixed) if kind == "P" else names
    groups = tuple(tuple(draw(st.lists(asked, min_size=1, max_size=3))) for _ in range(GROUPS[kind]))
    return Query(kind, groups, tuple(draw(st.lists(st.one_of(names, fixed), max_size=3))))


@given(queries())
def test_what_is_written_is_read_again(query):
    assert Query.parse(str(query)) == query


@given(st.text(max_size=20) | st.text("PHI(ab,;|=)'\"\\ ", max_size=12).map(lambda body: f"P({body})"))
def test_any_text_is_a_query_or_a_named_mistake(text):
    query = error = None
    try:
        query = Query.parse(text)
    except ArgumentError as caught:
        error = caught
    assert Query.parse(str(query)) == query if error is None else (error.argument == "query" and error.remedy)


def test_names_and_values():
    query = Query.parse(' P( a=1 , two words, \'it\\\'s\', "x,y" = "(" | c = -1 )')
    expected = (Term("a", "1"), Term("two words"), Term("it's"), Term("x,y", "("))
    assert query == Query("P", (expected,), (Term("c", "-1"),))
    assert str(query) == """P(a=1, two words, "it's", "x,y"=( | c=-1)"""
    assert Query.parse("I(a, b; c | d)").groups == ((Term("a"), Term("b")), (Term("c"),))
    assert Query.parse("H()") == Query("H", ((),))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a=1", "is no query"),
        (7, "is no query"),
        ("Q(a)", "is no query"),
        ("P()", "names no column"),
        ("P(a |)", "names no column"),
        ("I(a;)", "names no column"),
        ("P(a | b | c)", "two bars"),
        ("P(a; b)", "has 2, but P takes one group"),
        ("I(a, b)", "has 1, but I takes two groups"),
        ("P(a=)", "holds 'a =' where a column must stand"),
        ("P(a, , b)", "where a column must stand"),
        ("P('a)", 'has an open quote at "\'a"'),
        ("H(a=1)", "asks for H of the value a=1"),
    ],
)
def test_mistakes_are_named(text, reason):
    with pytest.raises(ArgumentError) as caught:
        Query.parse(text)
    assert reason in str(caught.value)
