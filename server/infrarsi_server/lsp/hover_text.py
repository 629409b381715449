"""What a hover says of a knob, as Markdown. Pure; looks up and never fits.

The numbers come from the newest prediction table the runner published, before the first from
Doctor's calibration. Without either it says that nothing was measured yet.
"""

import re
from collections.abc import Callable

from infrarsi.contract import Fact, Lock
from infrarsi.frozen import Scalar
from infrarsi.knobs import Binding, Knob
from infrarsi.units import format_added, format_bytes, format_frac, format_seconds
from infrarsi.wire.results import Calibration, Interval, KnobPrediction, Price
from infrarsi_server.session import Numbers

_RULE = "|---|---|---|---|---|---|"
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~])")
_WORDS = {
    "micro_batch": "the micro-batch",
    "num_workers": "the number of workers",
    "threads": "the number of threads",
}
_GROUPED = frozenset({"micro_batch", "accumulation"})


def knob_text(knob: Knob, binding: Binding, lock: Lock, numbers: Numbers) -> str:
    """The whole hover of a knob where `binding` sets it."""
    return "\n\n".join([_title(knob, binding), _numbers(knob, lock, numbers), _clause(knob, lock)])


def fact_text(fact: Fact, lock: Lock) -> str:
    """The hover of a fact that is no knob: what the contract holds, and what is read now."""
    agreed = lock.contract.fact(fact.name)
    now = f"**{_plain(fact.name)}**, read as {_value(_shown(fact))}"
    held = "" if agreed is None else f"\n\nThe contract holds {_value(_shown(agreed))}."
    return f"{now}{held}\n\n{_locked(lock)}"


def _shown(fact: Fact) -> Scalar:
    return "unknown" if fact.value is None else fact.value


def _title(knob: Knob, binding: Binding) -> str:
    name, now = _plain(binding.name), _value(knob.default)
    words = _WORDS.get(knob.name, _plain(knob.name))
    if binding.quotient_of is not None:
        return f"**{name}** follows {words}, now {now}: {binding.quotient_of} divided by it"
    return f"**{name}** sets {words}: {now}"


def _numbers(knob: Knob, lock: Lock, numbers: Numbers) -> str:
    table = numbers.table.rows if numbers.table is not None else ()
    rows = [row for row in table if row.knob == knob.name]
    untried = ""
    if not rows:
        if numbers.calibration is None:
            return "No run has been measured yet: **InfraRSI: Doctor** measures the baseline."
        rows = [_measured(knob, lock, numbers.calibration)]
        untried = "\n\n**InfraRSI: Run** tries the other values."
    head = f"| {_plain(knob.name)} | step time | MFU | peak memory | fits | known |"
    table_text = "\n".join(
        [head, _RULE, *(_row(row, is_now=row.value == knob.default) for row in rows)]
    )
    return table_text + untried + _prices(knob, numbers)


def _measured(knob: Knob, lock: Lock, calibration: Calibration) -> KnobPrediction:
    """The baseline as Doctor measured it: the value that is locked."""
    locked = lock.contract.fact(knob.role)
    peak = float(max(calibration.peak_mem_bytes, default=0))
    return KnobPrediction(
        knob=knob.name,
        value=knob.default if locked is None or locked.value is None else locked.value,
        step_time_s=calibration.step_time_s,
        peak_mem_bytes=Interval(value=peak, low=peak, high=peak),
        mfu_frac=calibration.mfu_frac,
        p_fit=1.0,
        known="measured",
    )


def _row(row: KnobPrediction, *, is_now: bool) -> str:
    value = f"**{_value(row.value)}**" if is_now else _value(row.value)
    step = _interval(row.step_time_s, format_seconds)
    memory = _interval(row.peak_mem_bytes, format_bytes)
    cells = (value, step, format_frac(row.mfu_frac), memory, _chance(row.p_fit), _known(row))
    return f"| {' | '.join(cells)} |"


def _prices(knob: Knob, numbers: Numbers) -> str:
    """What each tried value adds to a step of the locked job."""
    told = numbers.table.prices if numbers.table is not None else ()
    lines = [
        f"- {_value(price.value)} adds {' and '.join(added)} ({_tried(price.n_trials)})"
        for price in told
        if price.knob == knob.name and price.n_trials and (added := _added(price))
    ]
    return "\n\nThe rest being equal:\n\n" + "\n".join(lines) if lines else ""


def _added(price: Price) -> list[str]:
    parts = ((price.step_time_s, format_seconds), (price.peak_mem_bytes, format_bytes))
    return [
        _interval(interval, lambda value, form=form: format_added(value, form))
        for interval, form in parts
        if interval is not None
    ]


def _tried(n_trials: int) -> str:
    return f"{n_trials} trial{'' if n_trials == 1 else 's'}"


def _known(row: KnobPrediction) -> str:
    if row.n_trials == 0:
        return row.known
    return f"{row.known}, {_tried(row.n_trials)}"


def _interval(interval: Interval, form: Callable[[float], str]) -> str:
    value, low, high = form(interval.value), form(interval.low), form(interval.high)
    return value if low == high else f"{value} ({low} to {high})"


def _chance(p_fit: float) -> str:
    if p_fit > 0.99:
        return "> 99 %"
    return "< 1 %" if p_fit < 0.01 else f"{100 * p_fit:.0f} %"


def _clause(knob: Knob, lock: Lock) -> str:
    work = lock.contract.workload
    rows = None if work.global_batch_rows is None else f"{work.global_batch_rows} rows"
    tokens = None if work.seq_len_tokens is None else f"{work.seq_len_tokens} tokens each"
    held = " of ".join(part for part in (rows, tokens) if part) or "the workload as it was read"
    processes = f"{work.world_size} process{'' if work.world_size == 1 else 'es'}"
    clause = f"The contract holds {held} in every step on {processes}."
    if knob.role in _GROUPED:
        clause += " Micro-batch times accumulation times processes stays the same."
    return f"{clause}\n\n{_locked(lock)}"


def _locked(lock: Lock) -> str:
    return f"Job {_plain(lock.contract.job)}, locked as {lock.digest[:12]}."


def _value(value: Scalar) -> str:
    return _plain(str(value))


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
