"""Devices and their peaks, from the table in `data/hardware.csv` (sources beside it).

Leaves out measured roofs: a CPU's is measured by doctor, never looked up.
"""

import csv
import difflib
from functools import lru_cache
from importlib.resources import files

from infrarsi.frozen import Frozen


class Device(Frozen):
    """One kind of accelerator. Peaks are dense, FLOP/s; None where the device has no such unit.

    `memory_gib` is what a framework can plan with. `link_bytes_per_s` is one direction between two
    of the `link_domain` devices that share the fast link; `network_bytes_per_s` is one direction
    per device between such domains, as public clusters of that device have it.
    """

    name: str
    vendor: str
    bf16_flops_per_s: float | None = None
    fp16_flops_per_s: float | None = None
    fp32_flops_per_s: float | None = None
    tf32_flops_per_s: float | None = None
    fp8_flops_per_s: float | None = None
    fp4_flops_per_s: float | None = None
    memory_gib: float
    bandwidth_bytes_per_s: float
    link_bytes_per_s: float
    link_domain: int
    network_bytes_per_s: float
    generation: str
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
    return _by_name().get(name.strip().casefold())


@lru_cache(maxsize=1)
def _by_name() -> dict[str, Device]:
    return {n.casefold(): d for d in reversed(devices()) for n in (d.name, *d.device_names)}


def near_names(name: str, at_most: int = 5) -> tuple[str, ...]:
    """Keys of the table that look like the name, nearest first."""
    wanted = name.strip().casefold()
    keys = {device.name.casefold(): device.name for device in devices()}
    named = [key for low, key in keys.items() if wanted and (wanted in low or low in wanted)]
    close = [keys[low] for low in difflib.get_close_matches(wanted, keys, n=at_most, cutoff=0.4)]
    return tuple(dict.fromkeys(named + close))[:at_most]


def _device(row: dict[str, str]) -> Device:
    names = row["device_names"]
    return Device(
        name=row["name"],
        vendor=row["vendor"],
        bf16_flops_per_s=_tera(row["bf16_dense_tflops"]),
        fp16_flops_per_s=_tera(row["fp16_dense_tflops"]),
        fp32_flops_per_s=_tera(row["fp32_dense_tflops"]),
        tf32_flops_per_s=_tera(row["tf32_dense_tflops"]),
        fp8_flops_per_s=_tera(row["fp8_dense_tflops"]),
        fp4_flops_per_s=_tera(row["fp4_dense_tflops"]),
        memory_gib=float(row["memory_gib"]),
        bandwidth_bytes_per_s=float(row["bandwidth_gb_per_s"]) * 1e9,
        link_bytes_per_s=float(row["link_gb_per_s"]) * 1e9,
        link_domain=int(row["link_domain"]),
        network_bytes_per_s=float(row["network_gb_per_s"]) * 1e9,
        generation=row["generation"],
        device_names=tuple(names.split("|")) if names else (),
    )


def _tera(text: str) -> float | None:
    return float(text) * 1e12 if text else None
