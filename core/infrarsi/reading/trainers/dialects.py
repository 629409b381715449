"""How libraries spell number formats: `bf16-mixed`, `16-true`, `no`, flags of their own."""

from dataclasses import dataclass

from infrarsi.reading.trainers.settings import Settings
from infrarsi.reading.values import Known, Symbol, Unknown, Value

_LIGHTNING: dict[str, tuple[str, str]] = {
    "16": ("fp16", "fp32"),
    "16-mixed": ("fp16", "fp32"),
    "16-true": ("fp16", "fp16"),
    "bf16": ("bf16", "fp32"),
    "bf16-mixed": ("bf16", "fp32"),
    "bf16-true": ("bf16", "bf16"),
    "32": ("fp32", "fp32"),
    "32-true": ("fp32", "fp32"),
    "64": ("fp64", "fp64"),
    "64-true": ("fp64", "fp64"),
    "transformer-engine": ("fp8", "bf16"),
    "transformer-engine-float16": ("fp8", "fp16"),
    "None": ("fp32", "fp32"),
}
"""Compute and parameters; Lightning's and Fabric's `precision`."""

_TORCH = {
    "torch.bfloat16": "bf16",
    "torch.float16": "fp16",
    "torch.half": "fp16",
    "torch.float32": "fp32",
    "torch.float": "fp32",
    "torch.float64": "fp64",
    "bfloat16": "bf16",
    "float16": "fp16",
    "float32": "fp32",
    "float64": "fp64",
}


@dataclass(frozen=True)
class Formats:
    """The formats of compute and of the parameters; None where the library leaves it."""

    precision: Value | None
    parameters: Value | None


def lightning_formats(value: Value | None) -> Formats:
    """What Lightning's `precision` means; not given it is 32 bits."""
    if value is None:
        return Formats(Known("fp32"), None)
    if not isinstance(value, Known):
        unclear = value if isinstance(value, Unknown) else Unknown("its precision is not known")
        return Formats(unclear, unclear)
    found = _LIGHTNING.get(str(value.value))
    if found is None:
        unclear = Unknown(f"the precision {value.value!r} is not one that is understood")
        return Formats(unclear, unclear)
    compute, parameters = found
    held = None if parameters == "fp32" else Known(parameters, value.origins, value.place)
    return Formats(Known(compute, value.origins, value.place), held)


def flag_formats(settings: Settings, bf16: str, fp16: str) -> Value | None:
    """The format two switches choose; None where both are off."""
    for name, form in ((bf16, "bf16"), (fp16, "fp16")):
        on = settings.is_on(name)
        if on is None:
            value = settings.get(name)
            reason = value.reason if isinstance(value, Unknown) else f"`{name}` is not known"
            return Unknown(reason)
        if on:
            value = settings.get(name)
            place = value.place if isinstance(value, Known) else None
            return Known(form, value.origins if isinstance(value, Known) else (), place)
    return None


def torch_format(value: Value | None) -> str | None:
    """The short name of `torch.bfloat16` or "bfloat16"; None for anything else."""
    name = (
        value.name if isinstance(value, Symbol) else value.value if isinstance(value, Known) else ""
    )
    return _TORCH.get(str(name))
