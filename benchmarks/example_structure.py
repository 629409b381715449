"""What attention and its mask are worth to the examples: end losses with each taken out.

The texts must need looking back, and only back, or a gate on the loss would prove nothing. Runs
each example as it is with two seeds, then without attention (values pass straight through) and
without the mask. Same steps everywhere; the end loss is the mean of the last ten.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from measures import write_measures

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
N_END = 10
LOSS = re.compile(r"loss (\d+\.\d+)")
Change = tuple[str, str, str]
VARIANTS: Mapping[str, Mapping[str, Change]] = {
    "dense_gpt": {
        "other_seed": ("train.py", "SEED = 1337", "SEED = 7331"),
        "no_attention": ("train.py", "y = att @ v", "y = v"),
        "no_mask": ("train.py", 'att = att.masked_fill(mask == 0, float("-inf"))', "pass"),
    },
    "moe_gpt": {
        "other_seed": ("train.py", "default=1337", "default=7331"),
        "no_attention": ("model.py", "y = torch.matmul(weights, v)", "y = v"),
        "no_mask": ("model.py", 'scores = scores.masked_fill(future, float("-inf"))', "pass"),
    },
}


def changed_copy(example: str, change: Change | None, folder: Path) -> Path:
    """A copy of the example with one line changed; fails where the line is no longer there."""
    shutil.copytree(EXAMPLES / example, folder)
    if change is not None:
        name, before, after = change
        text = (folder / name).read_text("utf-8")
        if text.count(before) != 1:
            raise ValueError(f"{example}/{name} should hold `{before}` once. Update VARIANTS.")
        (folder / name).write_text(text.replace(before, after), "utf-8")
    return folder / "train.py"


def end_loss(script: Path, steps: int) -> float:
    """Mean loss of the last steps of a run with one thread."""
    command = [sys.executable, str(script), "--steps", str(steps)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    losses = [float(found) for found in LOSS.findall(done.stdout)]
    return statistics.fmean(losses[-N_END:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    measures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        for example, changes in VARIANTS.items():
            kind = example.removesuffix("_gpt")
            for variant, change in {"as_it_is": None, **changes}.items():
                script = changed_copy(example, change, Path(name, f"{kind}_{variant}"))
                key = f"{kind}_end_loss_{variant}"
                measures[key] = end_loss(script, options.steps)
                print(f"{key}: {measures[key]:.4f}", flush=True)
            for variant in ("no_attention", "no_mask"):
                ratio = (
                    measures[f"{kind}_end_loss_{variant}"] / measures[f"{kind}_end_loss_as_it_is"]
                )
                measures[f"{kind}_{variant}_worse_pct"] = 100 * (ratio - 1)
    print(write_measures("example_structure", measures))


if __name__ == "__main__":
    main()
