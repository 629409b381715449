import pytest

from infrarsi.hardware import devices, find_device, near_names


@pytest.mark.parametrize(
    "name", ["H100-SXM-80GB", "NVIDIA H100 80GB HBM3", "nvidia h100 80gb hbm3"]
)
def test_a_device_is_found_by_key_or_by_the_name_torch_reports(name):
    device = find_device(name)
    assert device.roof_flops_per_s == pytest.approx(989.4e12)
    assert device.memory_gib == pytest.approx(79.14)
    assert device.bandwidth_bytes_per_s == pytest.approx(3.35e12)


def test_a_device_without_bf16_has_its_fp16_roof():
    device = find_device("Tesla T4")
    assert device.bf16_flops_per_s is None
    assert device.roof_flops_per_s == pytest.approx(65e12)


def test_an_unknown_device_is_none():
    assert find_device("Intel Xeon") is None


def test_no_two_devices_answer_to_one_name():
    names = [n for d in devices() for n in {x.casefold() for x in (d.name, *d.device_names)}]
    assert len(names) == len(set(names))
    assert len(devices()) > 40


def test_near_names_are_listed_for_an_unknown_one():
    assert "H100-SXM-80GB" in near_names("H100")
    assert "A100-SXM-80GB" in near_names("a100 sxm 80gb")
    assert near_names("") == ()


def test_links_domains_and_low_precision_peaks_are_told():
    device = find_device("H100-SXM-80GB")
    assert device.link_bytes_per_s == pytest.approx(450e9)
    assert (device.link_domain, device.generation) == (8, "hopper")
    assert device.fp8_flops_per_s == pytest.approx(1978.9e12)
    assert find_device("A100-SXM-80GB").fp8_flops_per_s is None
    assert all(d.network_bytes_per_s > 0 and d.link_bytes_per_s > 0 for d in devices())
