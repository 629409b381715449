"""Devices and their peaks, from the table in `data/hardware.csv` (sources beside it).

Leaves out measured roofs: a CPU's is measured by doctor, never looked up.
"""

import csv
from functools import lru_cache
from importlib.resources import files

from infrarsi.frozen import Frozen


class Device(Frozen):
    """One kind of accelerator. Peaks are dense, FLOP/s; None where the device has no such unit."""

    name: str
    vendor: str
    bf16_flops_per_s: float | None = None
    fp16_flops_per_s: float | None = None
    fp32_flops_per_s: float | None = None
    memory_gib: float
    bandwidth_bytes_per_s: float
    device_names: tuple[str, ...] = ()

    @property
    def roof_flops_per_s(self) -> float | None:
        """The fixed roof of MFU: the dense 16-bit peak."""
        return self.bf16_flops_per_s or self.fp16_flops_per_s


@lru_cache(maxsize=1)
def devices() -> tuple[Device, ...]:
    """The whole table, read once."""
    text = files("infrarsi").joinpath("data", "hardware.csv").read_text(encoding="utf-8")
    return tuple(_device(row) for row in csv.DictReader(text.splitlines()))


def find_device(name: str) -> Device | None:
    """The device of that table key or of that name as torch reports it; case does not matter."""
    wanted = name.strip().casefold()
    for device in devices():
        if wanted in {n.casefold() for n in (device.name, *device.device_names)}:
            return device
    return None


def _device(row: dict[str, str]) -> Device:
    names = row["device_names"]
    return Device(
        name=row["name"],
        vendor=row["vendor"],
        bf16_flops_per_s=_tera(row["bf16_dense_tflops"]),
        fp16_flops_per_s=_tera(row["fp16_dense_tflops"]),
        fp32_flops_per_s=_tera(row["fp32_dense_tflops"]),
        memory_gib=float(row["memory_gib"]),
        bandwidth_bytes_per_s=float(row["bandwidth_gb_per_s"]) * 1e9,
        device_names=tuple(names.split("|")) if names else (),
    )


def _tera(text: str) -> float | None:
    return float(text) * 1e12 if text else None
