"""Offsets, places and positions in the client's units agree, whatever stands before them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types
from pygls.workspace import PositionCodec

from infrarsi.place import Place
from infrarsi_server.lsp.positions import Ruler

UTF16 = PositionCodec(types.PositionEncodingKind.Utf16)
UTF8 = PositionCodec(types.PositionEncodingKind.Utf8)
TEXTS = st.text(alphabet="aß→😀\n\r\x0c\u2028 =", max_size=40)


def at(line: int, character: int) -> types.Position:
    return types.Position(line=line, character=character)


@pytest.mark.parametrize(("codec", "column"), [(UTF16, 7), (UTF8, 9), (PositionCodec("utf-32"), 6)])
def test_a_column_counts_the_units_the_client_asked_for(codec: PositionCodec, column: int) -> None:
    text = 'x="😀"; BATCH = 4\n'
    assert Ruler(text, codec).position(text.index(" BATCH")) == at(0, column)


def test_a_form_feed_is_no_new_line() -> None:
    text = "a\x0cb\nBATCH = 4\n"
    assert Ruler(text, UTF16).position(text.index("BATCH")) == at(1, 0)


def test_a_place_is_measured_in_the_clients_units() -> None:
    text = 's = "😀😀"; N = 4\n'
    place = Place(file="a.py", line=1, column=15, end_line=1, end_column=16)
    assert text[14] == "4"
    assert Ruler(text, UTF16).range_of(place) == types.Range(start=at(0, 16), end=at(0, 17))


def test_an_empty_place_is_widened_to_be_seen() -> None:
    place = Place(file="a.py", line=1, column=2, end_line=1, end_column=2)
    assert Ruler("abc\n", UTF16).range_of(place) == types.Range(start=at(0, 1), end=at(0, 2))


def test_a_position_past_the_end_of_its_line_is_the_end_of_the_line() -> None:
    assert Ruler("ab\r\ncd", UTF16).offset(at(0, 99)) == 2
    assert Ruler("ab\r\ncd", UTF16).offset(at(9, 0)) == 6


def test_a_position_inside_a_surrogate_pair_does_not_split_the_character() -> None:
    assert Ruler("😀b", UTF16).offset(at(0, 1)) == 1


@given(text=TEXTS, codec=st.sampled_from([UTF16, UTF8]))
def test_every_offset_survives_the_way_to_the_client_and_back(
    text: str, codec: PositionCodec
) -> None:
    ruler = Ruler(text, codec)
    for offset in range(len(text) + 1):
        inside_line_end = text[offset - 1 : offset + 1] == "\r\n"
        assert inside_line_end or ruler.offset(ruler.position(offset)) == offset
