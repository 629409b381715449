"""Edits: what `diff_texts` computes, `apply_edits` turns back into the text, or refuses whole."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infrarsi.edits import Edit, apply_edits, diff_texts
from infrarsi.errors import EditConflict

# Few characters, all line ends there are, so that lines repeat, split and join.
TEXTS = st.text(alphabet="ab\n\r\x0c\u2028é", max_size=40)
LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n", "a\r\n", "b"]), max_size=12).map("".join)


@settings(deadline=None)
@given(TEXTS | LINES, TEXTS | LINES)
def test_applying_a_diff_gives_the_other_text(before: str, after: str):
    edits = diff_texts("train.py", before, after)
    assert apply_edits(before, edits) == after
    assert all(edit.old != edit.new and edit.file == "train.py" for edit in edits)


@settings(deadline=None)
@given(LINES)
def test_equal_texts_have_no_edits(text: str):
    assert diff_texts("train.py", text, text) == ()


@settings(deadline=None)
@given(LINES, LINES)
def test_edits_can_be_turned_around(before: str, after: str):
    forward = diff_texts("train.py", before, after)
    moved = 0
    backward: list[Edit] = []
    for edit in forward:
        start = edit.start + moved
        backward.append(Edit(file=edit.file, start=start, old=edit.new, new=edit.old))
        moved += len(edit.new) - len(edit.old)
    assert apply_edits(after, backward) == before


@settings(deadline=None)
@given(LINES, LINES, st.randoms(use_true_random=False))
def test_the_order_edits_come_in_does_not_matter(before: str, after: str, random):
    edits = list(diff_texts("train.py", before, after))
    random.shuffle(edits)
    assert apply_edits(before, edits) == after


@settings(deadline=None)
@given(LINES, LINES, LINES)
def test_edits_of_another_text_are_refused_or_their_lines_are_the_same(a: str, b: str, c: str):
    edits = diff_texts("train.py", a, b)
    try:
        apply_edits(c, edits)
    except EditConflict:
        assert any(c[e.start : e.end] != e.old or e.start > len(c) for e in edits)
    else:
        assert all(c[e.start : e.end] == e.old for e in edits)


def test_only_changed_lines_are_in_a_diff():
    (edit,) = diff_texts("train.py", "a = 1\nb = 2\nc = 3\n", "a = 1\nb = 4\nc = 3\n")
    assert edit == Edit(file="train.py", start=6, old="b = 2\n", new="b = 4\n")
    assert edit.end == 12


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = 1\r\nb = 2\r\n", "a = 1\r\nb = 3\r\n"),
        ("a = 1\nb = 2", "a = 3\nb = 2"),
        ("a = 1\nb = 2", "a = 1\nb = 3"),
        ("a = 1", "a = 1\n"),
        ("", "a = 1"),
    ],
)
def test_line_ends_and_a_missing_last_one_are_kept(before: str, after: str):
    assert apply_edits(before, diff_texts("train.py", before, after)) == after


@pytest.mark.parametrize(
    ("edits", "word"),
    [
        ([(0, "ab", "x"), (1, "bc", "y")], "overlap"),
        ([(0, "abc", "x"), (1, "b", "")], "overlap"),
        ([(0, "b", "x")], "has changed"),
        ([(2, "cd", "x")], "has changed"),
        ([(4, "", "x")], "has changed"),
        ([(-1, "c", "x")], "has changed"),
    ],
)
def test_a_conflict_raises_and_says_what_to_do(edits: list[tuple[int, str, str]], word: str):
    made = [Edit(file="train.py", start=s, old=old, new=new) for s, old, new in edits]
    with pytest.raises(EditConflict, match=word) as raised:
        apply_edits("abc", made)
    assert raised.value.do


def test_neighbouring_edits_do_not_conflict():
    edits = [
        Edit(file="t", start=0, old="a", new="x"),
        Edit(file="t", start=1, old="", new="-"),
        Edit(file="t", start=1, old="b", new="y"),
        Edit(file="t", start=3, old="", new="!"),
    ]
    assert apply_edits("abc", edits) == "x-yc!"
