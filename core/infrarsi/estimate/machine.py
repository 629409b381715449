"""The devices of a described job: peaks, memory and links, from the table or as told."""

from dataclasses import dataclass

from infrarsi.estimate.fields import Fields, UnreadableJob
from infrarsi.hardware import Device, find_device, near_names


@dataclass(frozen=True, slots=True)
class Machine:
    """One device and its links. FLOP/s dense, bytes/s one direction, memory in GiB.

    `domain` devices share the fast link; `generation` is empty for a device not in the table.
    """

    name: str
    generation: str
    peak_16bit: float
    peak_fp32: float
    peak_tf32: float
    peak_fp8: float
    peak_fp4: float
    capacity_gib: float
    hbm: float
    link: float
    network: float
    domain: int


def read_machine(told: Fields) -> Machine:
    """The device told by name, told numbers winning over the table's.

    Raises:
        UnreadableJob: the device is unknown and the numbers do not make up for it.
    """
    name = told.text("hardware")
    device = find_device(name) if name else None
    peak = told.positive("peak_bf16")
    if device is None:
        if peak is None:
            raise _unknown(name)
        return _described(told, name, peak)
    peak_16 = peak or device.roof_flops_per_s or device.fp32_flops_per_s or 1e12
    scale = peak_16 / (device.roof_flops_per_s or peak_16)
    fp32 = device.fp32_flops_per_s or peak_16 / 8
    return Machine(
        name=device.name,
        generation=device.generation,
        peak_16bit=peak_16,
        peak_fp32=fp32 * scale,
        peak_tf32=(device.tf32_flops_per_s or fp32) * scale,
        peak_fp8=told.positive("peak_fp8") or (device.fp8_flops_per_s or 0) * scale or peak_16,
        peak_fp4=(device.fp4_flops_per_s or device.fp8_flops_per_s or 0) * scale or peak_16,
        capacity_gib=told.positive("capacity_gib") or device.memory_gib,
        hbm=told.positive("hbm") or device.bandwidth_bytes_per_s,
        link=told.positive("nvlink") or device.link_bytes_per_s,
        network=told.positive("ib") or device.network_bytes_per_s,
        domain=told.count("gpus_per_node") or _domain(told, device),
    )


def _described(told: Fields, name: str, peak: float) -> Machine:
    """A device that only its numbers tell; what is missing is in proportion to an H100's."""
    fp8 = told.positive("peak_fp8") or 2 * peak
    return Machine(
        name=name or "described device",
        generation="",
        peak_16bit=peak,
        peak_fp32=peak / 15,
        peak_tf32=peak / 2,
        peak_fp8=fp8,
        peak_fp4=fp8,
        capacity_gib=told.positive("capacity_gib") or 79.14,
        hbm=told.positive("hbm") or peak / 300,
        link=told.positive("nvlink") or peak / 2200,
        network=told.positive("ib") or peak / 20000,
        domain=told.count("gpus_per_node") or 8,
    )


def _domain(told: Fields, device: Device) -> int:
    gpus, nodes = told.count("n_gpus"), told.count("n_nodes")
    if gpus and nodes and nodes > 1 and device.link_domain <= 8 and gpus % nodes == 0:
        return min(device.link_domain, gpus // nodes)
    return device.link_domain


def _unknown(name: str) -> UnreadableJob:
    if not name:
        return UnreadableJob(
            "The hardware is not told.", "Give hardware, or peak_bf16, hbm and capacity_gib."
        )
    near = ", ".join(near_names(name))
    return UnreadableJob(
        f"Unknown device {name!r}.", f"Near names: {near}." if near else "No name is near it."
    )
