import pytest
import torch

from infrarsi_probe import memory

MESSAGES = [
    (
        "[enforce fail at alloc_cpu.cpp:121] data. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 8589934592 bytes. Error code 12 (Cannot allocate memory)",
        8589934592,
    ),
    ("CUDA out of memory. Tried to allocate 20.50 MiB. GPU 0 has a total capacity", 21495808),
    ("CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 7 GiB total)", 2147483648),
    ("Unable to allocate 1.5 GiB for an array with shape (1,)", 1610612736),
]


@pytest.mark.parametrize(("message", "size"), MESSAGES)
def test_the_size_that_failed_is_read_from_the_message(message: str, size: int):
    assert memory.requested_bytes(message) == size


def test_an_allocator_that_fails_is_out_of_memory():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert memory.is_out_of_memory(caught.value)
    assert memory.requested_bytes(str(caught.value)) == 1 << 60


@pytest.mark.parametrize(
    "error", [MemoryError(), torch.OutOfMemoryError("x"), OSError(12, "Cannot allocate memory")]
)
def test_these_are_out_of_memory_too(error: Exception):
    assert memory.is_out_of_memory(error)


def test_another_error_is_not():
    assert not memory.is_out_of_memory(RuntimeError("shapes do not match"))
    assert not memory.is_out_of_memory(ValueError("out of memory"))


def test_peak_is_at_least_what_is_resident_now():
    assert memory.status_bytes("VmHWM") >= memory.status_bytes("VmRSS") - (1 << 20) > 0
