"""How many rows of a step an earlier step of the same run has had: where the data start over.

Rows are told apart by the keyed hash of `rows`, on this rank alone. Counted only in a redo, where
the baseline's own code runs and nothing is timed.
"""

MOST_ROWS = 1_000_000
"""Rows that are remembered; a step beyond them is not counted."""


class SeenRows:
    """The hashes of all rows of the steps that have ended."""

    def __init__(self):
        self._seen = set()

    def count(self, hashes):
        """Rows of a step that has ended, by int64 tensors; how many came before, None if unknown.

        Waits for the device.
        """
        rows = [row for part in hashes for row in part.tolist()]
        if not rows or len(self._seen) + len(rows) > MOST_ROWS:
            return None
        n = sum(row in self._seen for row in rows)
        self._seen.update(rows)
        return n
