"""The measured roof of this machine: `python roof.py [--threads N]`. A script of its own.

Runs square and tall matrix products in float32 and bfloat16 and takes the best repeat of the best
shape: contention only ever makes a product slower, so the best is nearest to what the device can
do. Prints one line of JSON: `{"float32", "bfloat16"}` in FLOP/s, two per multiply-add.
"""

import argparse
import json
import time

import torch

SHAPES = ((512, 384, 1536), (2048, 384, 1536), (1024, 1024, 1024), (2048, 2048, 2048))
DTYPES = (torch.float32, torch.bfloat16)
AT_LEAST = 5


def best_rate(m, k, n, dtype, seconds, device):
    """Best FLOP/s of [m, k] times [k, n] seen in about `seconds`."""
    a = torch.randn(m, k, dtype=dtype, device=device)
    b = torch.randn(k, n, dtype=dtype, device=device)
    out = a @ b
    best = float("inf")
    repeats = 0
    until = time.perf_counter() + seconds
    while repeats < AT_LEAST or time.perf_counter() < until:
        _wait(device)
        began = time.perf_counter()
        torch.mm(a, b, out=out)
        _wait(device)
        best = min(best, time.perf_counter() - began)
        repeats += 1
    return 2.0 * m * k * n / best


def _wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def measure(seconds, device):
    """{dtype: {shape: FLOP/s}} of every shape."""
    return {
        str(dtype)[6:]: {
            "x".join(map(str, shape)): best_rate(*shape, dtype, seconds, device) for shape in SHAPES
        }
        for dtype in DTYPES
    }


def main():
    """Measure and print one line: the best rate of each dtype, FLOP/s."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, help="as torch chooses if left out")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each shape and dtype")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rates = measure(options.seconds, device)
    print(json.dumps({kind: max(by_shape.values()) for kind, by_shape in rates.items()}))  # noqa: T201


if __name__ == "__main__":
    main()
