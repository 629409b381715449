"""Methods of plain texts: `name.endswith(".json")`, `dtype.removeprefix("torch.")`."""

from collections.abc import Callable, Sequence
from typing import Any

from infrarsi.reading.operators import computed
from infrarsi.reading.values import Known, Value, merge_origins

_METHODS: dict[str, Callable[..., Any]] = {
    "endswith": str.endswith,
    "startswith": str.startswith,
    "lower": str.lower,
    "upper": str.upper,
    "strip": str.strip,
    "removeprefix": str.removeprefix,
    "removesuffix": str.removesuffix,
    "isdigit": str.isdigit,
}


def text_method(text: Value, name: str, args: Sequence[Value]) -> Value | None:
    """What a method of a known text gives for known arguments; None for any other."""
    method = _METHODS.get(name)
    held = text.value if isinstance(text, Known) else None
    plain = [argument.value for argument in args if isinstance(argument, Known)]
    if method is None or not isinstance(held, str) or len(plain) != len(args):
        return None
    result = computed(lambda: method(held, *plain), text, *args)
    if isinstance(result, Known) and isinstance(text, Known):
        return Known(result.value, merge_origins([text, *args]), text.place)
    return result
