import pytest

from infrarsi.estimate.analytic import decoder_flops_per_token, estimate_memory, estimate_step

MODEL = {"n_layers": 4, "d_model": 384, "n_heads": 6, "vocab": 8192}


def test_step_time_is_flops_over_the_reached_part_of_the_roof():
    estimate = estimate_step(1e6, 2048, 1e12, n_devices=2, efficiency=(0.1, 0.2, 0.5))
    assert estimate.value == pytest.approx(1e6 * 2048 / 2e12 / 0.2)
    assert estimate.low < estimate.value < estimate.high


def test_the_tried_dense_job_lies_in_the_interval():
    flops = decoder_flops_per_token(13_500_000, 4, 384, 256)
    estimate = estimate_step(flops, 2048, 1.2e12)
    assert estimate.low < 1.5 < estimate.high


def test_the_tried_dense_peak_lies_in_the_interval():
    peak = estimate_memory(13_500_000, 2, 256, base_gib=0.213, **MODEL).peak_gib
    assert peak.low < 0.733 < peak.high


def test_more_rows_need_more_and_no_square_matrix_needs_less():
    small = estimate_memory(10**7, 1, 512, **MODEL)
    large = estimate_memory(10**7, 8, 512, **MODEL)
    sdpa = estimate_memory(10**7, 8, 512, square_attention=False, **MODEL)
    assert small.peak_gib.value < sdpa.peak_gib.value < large.peak_gib.value
    assert sum(large.terms_gib.values()) == pytest.approx(large.peak_gib.value)


def test_parameters_take_sixteen_bytes():
    terms = estimate_memory(2**30, 1, 1, **MODEL).terms_gib
    assert terms["parameters_and_state"] == pytest.approx(16)
