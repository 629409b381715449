"""The only place that turns seconds, bytes and FLOP into text for a person."""

from collections.abc import Callable

GIB = 1 << 30
MIB = 1 << 20


def format_seconds(seconds: float) -> str:
    """A duration in s with the unit that reads best: `312 ms`, `4.21 s`, `3 min 05 s`."""
    if seconds < 0:
        return f"-{format_seconds(-seconds)}"
    if seconds < 1:
        return f"{seconds * 1e3:.0f} ms"
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def format_bytes(n_bytes: float) -> str:
    """Bytes as MiB or GiB, three digits."""
    if n_bytes < GIB:
        return f"{n_bytes / MIB:.0f} MiB"
    return f"{n_bytes / GIB:.2f} GiB"


def format_frac(frac: float) -> str:
    """A fraction in [0, 1] as a percentage with one decimal."""
    return f"{100 * frac:.1f} %"


def format_ratio(ratio: float) -> str:
    """A speed-up before/after: `1.83x`."""
    return f"{ratio:.2f}x"


def format_added(value: float, form: Callable[[float], str]) -> str:
    """What is added, with its sign: `-12 ms`, `+3 MiB`; `form` is one of the above."""
    return f"{'-' if value < 0 else '+'}{form(abs(value))}"
