"""Keyed, non-linear hash of rows of integers: one 64-bit sum, independent of grouping.

Each element is mixed with keys of its column, the row's sum is mixed again (so that rows cannot
be cut and pasted), and rows are added modulo 2**64 (so that micro-batches and ranks add up).
The mixing is that of splitmix64 with arithmetic shifts (Steele, Lea, Flood 2014), chosen because
it needs only multiplication, shift and xor on int64, on any device and without a sync.
"""

import hashlib

import torch

MASK = (1 << 64) - 1


def _signed(value):
    value &= MASK
    return value - (1 << 64) if value >> 63 else value


GOLDEN = _signed(0x9E3779B97F4A7C15)
MULTIPLY_1 = _signed(0xBF58476D1CE4E5B9)
MULTIPLY_2 = _signed(0x94D049BB133111EB)


def _mix(x):
    x = (x ^ (x >> 30)) * MULTIPLY_1
    x = (x ^ (x >> 27)) * MULTIPLY_2
    return x ^ (x >> 31)


class RowHash:
    """Hashes under one key. Keeps the columns' keys of every width it has met."""

    def __init__(self, key):
        self._seed = hashlib.sha256(key.encode("utf-8")).digest()
        self._keys = {}

    def _columns(self, width, stream, device):
        found = self._keys.get((width, stream, device))
        if found is None:
            digest = hashlib.sha256(self._seed + stream.encode("utf-8")).digest()
            start = _signed(int.from_bytes(digest[:8], "little"))
            count = torch.arange(2 * width, dtype=torch.int64, device=device)
            keys = _mix(count * GOLDEN + start)
            found = self._keys[(width, stream, device)] = (keys[:width] | 1, keys[width:])
        return found

    def raw(self, rows, stream):
        """Unmixed sums of each row, int64 [rows], of an integer tensor [rows, ...]."""
        rows = rows.detach().reshape(rows.shape[0], -1)
        factor, offset = self._columns(rows.shape[1], stream, rows.device)
        mixed = (rows.to(torch.int64) + offset).mul_(factor)
        return mixed.bitwise_xor_(mixed >> 29).sum(1)

    @staticmethod
    def total(raw):
        """Sum over rows of the mixed raw sums: an int64 scalar tensor, left on its device."""
        return _mix(raw).sum()


def hexadecimal(totals):
    """The sum of int64 totals modulo 2**64, as 16 hexadecimal digits."""
    return format(sum(int(t) for t in totals) & MASK, "016x")
