"""Places in the bases where edits are put, so that cases name them instead of quoting them."""

from red_team.case import Replacement

_IMPORTS = {
    "constants_dense": "from data import get_batch, load\n",
    "constants_moe": "from data import TokenLoader\n",
    "argparse_dense": "from data import make_loader\n",
    "argparse_moe": "from data import ShardReader\n",
    "trainer_dense": "from data import TextWindows, build_text\n",
    "trainer_moe": "from model import MoEConfig, MoETransformer\n",
    "yaml_dense": "from loader import BatchLoader\n",
    "yaml_moe": "from dataset import Windows\n",
}
_LOOPS = {
    "constants_dense": "    for step in range(MAX_STEPS):\n",
    "constants_moe": "for it in range(max_iters):\n",
    "argparse_dense": "    for step in range(args.steps):\n",
    "argparse_moe": "    for step in range(1, args.max_steps + 1):\n",
    "yaml_dense": "    for step in range(cfg.run.steps):\n",
    "yaml_moe": "    for step in range(config.max_steps):\n",
}
BACKWARD = """\
            loss = compute_loss(model, x, y) / GRAD_ACCUM
            loss.backward()
"""
UPDATE = """\
        torch.nn.utils.clip_grad_norm_(model.parameters(), GRAD_CLIP)
        optimizer.step()
"""


def importing(base: str, line: str) -> Replacement:
    """Add an import to the base's train.py."""
    spot = _IMPORTS[base]
    return ("train.py", spot, f"{line}\n{spot}")


def before_the_loop(base: str, text: str) -> Replacement:
    """Add whole lines, already indented, before the training loop of the base's train.py."""
    spot = _LOOPS[base]
    return ("train.py", spot, f"{text}{spot}")


def fewer_micro_steps(count: str) -> tuple[Replacement, ...]:
    """Let constants_dense take `count` micro-batches, an expression of `step`, in each step."""
    return (
        (
            "train.py",
            "        for _ in range(GRAD_ACCUM):\n",
            f"        n_micro = {count}\n        for _ in range(n_micro):\n",
        ),
        (
            "train.py",
            "loss = compute_loss(model, x, y) / GRAD_ACCUM\n",
            "loss = compute_loss(model, x, y) / n_micro\n",
        ),
    )
