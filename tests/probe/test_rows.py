import torch

from infrarsi_probe.rows import RowHash, hexadecimal

ROWS = torch.randint(1000, (12, 33), generator=torch.Generator().manual_seed(3))


def digest(*groups: torch.Tensor, key: str = "k") -> str:
    hasher = RowHash(key)
    return hexadecimal(hasher.total(hasher.raw(g, "ids")) for g in groups)


def test_grouping_into_micro_batches_does_not_change_the_sum():
    assert digest(ROWS) == digest(ROWS[:4], ROWS[4:5], ROWS[5:])


def test_the_order_of_rows_does_not_change_the_sum():
    assert digest(ROWS) == digest(ROWS.flip(0))


def test_a_changed_element_shows():
    other = ROWS.clone()
    other[7, 20] += 1
    assert digest(other) != digest(ROWS)


def test_elements_moved_within_a_row_show():
    other = ROWS.clone()
    other[3] = other[3].roll(1)
    assert digest(other) != digest(ROWS)


def test_halves_of_two_rows_exchanged_show():
    other = ROWS.clone()
    other[0, 16:], other[1, 16:] = ROWS[1, 16:], ROWS[0, 16:]
    assert digest(other) != digest(ROWS)


def test_a_repeated_row_is_not_the_same_as_two_rows():
    assert digest(ROWS[:1], ROWS[:1]) != digest(ROWS[:2])


def test_padding_with_zeros_shows():
    padded = torch.nn.functional.pad(ROWS, (0, 2))
    assert digest(padded) != digest(ROWS)


def test_another_key_gives_another_sum():
    assert digest(ROWS, key="a") != digest(ROWS, key="b")


def test_narrow_integers_hash_as_wide_ones():
    assert digest(ROWS.to(torch.int32)) == digest(ROWS)
