"""Reading values of a plain mapping: numbers that may be text, words, and names told twice.

A value that is empty, NaN or of the wrong kind counts as unknown; a number where only a positive
one makes sense raises `UnreadableJob`.
"""

import math
from collections.abc import Mapping
from typing import Any

from infrarsi.errors import UsageError

ALIASES = {
    "n_gpus": "gpus",
    "n_layers": "layers",
    "n_heads": "heads",
    "n_kv_heads": "kv_heads",
    "d_head": "head_dim",
    "d_ffn": "ffn",
    "vocab_size": "vocab",
    "seq_len": "seq",
    "global_batch_seqs": "global_batch",
    "n_experts": "experts",
    "topk": "top_k",
}
"""Other names of columns, as the search's `job` has them."""

_LARGEST, _LARGEST_COUNT = 1e20, 1e8
"""Beyond these a number is a mistake: 1e20 FLOP/s or parameters, 1e8 layers, devices or rows."""

_TRUE = {"true", "1", "yes", "on"}
_FALSE = {"false", "0", "no", "off"}


class UnreadableJob(UsageError):
    """A job's description that no estimate can be made from."""


class Fields:
    """The mapping, asked for values by their column's name."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        """Keep the mapping."""
        self._told = told

    def number(self, name: str) -> float | None:
        """A finite number, or None where nothing is told.

        Raises:
            UnreadableJob: the value is no number, or is negative.
        """
        value = self._value(name)
        if value is None:
            return None
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise _not_a_number(name, value) from None
        if math.isnan(number):
            return None
        if not 0 <= number <= _LARGEST:
            raise _not_a_number(name, value)
        return number

    def positive(self, name: str) -> float | None:
        """A number above zero, or None.

        Raises:
            UnreadableJob: see `number`; zero too.
        """
        number = self.number(name)
        if number == 0:
            raise _not_a_number(name, 0)
        return number

    def count(self, name: str) -> int | None:
        """A whole number of at least one, or None; what is below one counts as unknown."""
        number = self.number(name)
        if number is not None and number > _LARGEST_COUNT:
            raise _not_a_number(name, number)
        return None if number is None or number < 1 else round(number)

    def word(self, name: str) -> str:
        """Lower-case text, or nothing."""
        value = self._value(name)
        return value.strip().lower() if isinstance(value, str) else ""

    def text(self, name: str) -> str:
        """The text as it is, or nothing."""
        value = self._value(name)
        return value.strip() if isinstance(value, str) else ""

    def truth(self, name: str) -> bool | None:
        """Yes, no or unknown."""
        value = self._value(name)
        if isinstance(value, bool):
            return value
        low = str(value).strip().lower()
        return True if low in _TRUE or low == "1.0" else False if low in _FALSE else None

    def _value(self, name: str) -> Any:
        value = self._told.get(name)
        if value is None or value == "":
            other = ALIASES.get(name)
            value = None if other is None else self._told.get(other)
        return None if value == "" else value


def _not_a_number(name: str, value: object) -> UnreadableJob:
    shown = repr(value)[:40]
    return UnreadableJob(f"{name} is {shown}.", "Give a sound positive number or leave it out.")
