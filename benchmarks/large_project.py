"""A trainer of about two thousand lines, made of the repository's own examples, and locked.

The mixture-of-experts example, its layers as many modules that all differ a little and are all
reached from the script, and a script that has grown: evaluations, checkpoints, summaries.
The same text each time. Leaves out everything a run would need; it is only read.
"""

import re
import subprocess
import sys
from pathlib import Path

from infrarsi_server.operations.init import propose_init
from infrarsi_server.operations.lock import lock_jobs
from infrarsi_server.operations.project import open_project

EXAMPLE = Path(__file__).resolve().parents[1] / "examples/moe_gpt"
N_LAYER_FILES = 17
N_EVALUATIONS = 14

EVALUATION = '''@torch.no_grad()
def evaluate_{n}(model, data, args, n_batches={batches}):
    """Mean loss over held-out lines, family {n}."""
    was_training = model.training
    model.eval()
    total, count = 0.0, 0
    for _ in range(n_batches):
        x, y = data.next_batch(args.micro_batch)
        logits = model(x)
        loss = F.cross_entropy(logits.view(-1, VOCAB_SIZE), y.view(-1), reduction="none")
        kept = loss[loss < {ceiling}.0]
        total += kept.sum().item()
        count += kept.numel()
    if was_training:
        model.train()
    return {{"loss_{n}": total / max(1, count), "tokens_{n}": count}}


def save_{n}(model, optimizer, folder, step):
    """Keeps the newest {kept} checkpoints of family {n}."""
    folder = Path(folder) / "family_{n}"
    folder.mkdir(parents=True, exist_ok=True)
    state = {{"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}}
    part = folder / f"step_{{step:06d}}.part"
    torch.save(state, part)
    part.rename(folder / f"step_{{step:06d}}.pt")
    known = sorted(folder.glob("step_*.pt"))
    for old in known[:-{kept}]:
        old.unlink()


'''


def write_large_project(root: Path) -> int:
    """Write, commit and lock the project in an empty folder; how many lines of Python it has."""
    files = large_project()
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    _git(root, "init", "--quiet", "-b", "main")
    propose_init(root, "python train.py", sys.executable, {}, root).write()
    _git(root, "add", "-A")
    _git(root, "commit", "--quiet", "-m", "Baseline")
    lock_jobs(open_project(root))
    return sum(text.count("\n") for text in files.values())


def large_project() -> dict[str, str]:
    """The texts by path."""
    model = (EXAMPLE / "model.py").read_text("utf-8")
    head, top = model[: model.index("class MoEGPT")], model[model.index("class MoEGPT") :]
    layers = {f"layers/family_{n}.py": _layers(head, n) for n in range(N_LAYER_FILES)}
    return {
        "train.py": _script(),
        "model.py": _model(head, top),
        "layers/__init__.py": "",
        **layers,
    }


def _layers(head: str, n: int) -> str:
    """The example's layers with sizes and names of their own."""
    text = re.sub(r"^N_EXPERT = \d+", f"N_EXPERT = {2 + n % 7}", head, flags=re.M)
    text = re.sub(r"\b(Attention|Expert|MoE|Block)\b(?=[(:])", rf"\g<1>{n}", text)
    return f'"""Layers, family {n}."""\n\n{text.rstrip()}\n'


def _model(head: str, top: str) -> str:
    imports = head[: head.index("N_LAYER")]
    names = ", ".join(f"Block{n}()" for n in range(N_LAYER_FILES))
    families = "".join(f"from layers.family_{n} import Block{n}\n" for n in range(N_LAYER_FILES))
    before = "nn.ModuleList([Block() for _ in range(N_LAYER)])"
    if before not in top:
        raise ValueError(f"{EXAMPLE / 'model.py'} should hold `{before}`. Update this generator.")
    made = top.replace(before, f"nn.ModuleList([{names}])")
    return f"{imports.rstrip()}\n{families}\nN_EMBD = 256\n\n\n{made}"


def _script() -> str:
    script = (EXAMPLE / "train.py").read_text("utf-8")
    grown = "".join(
        EVALUATION.format(n=n, batches=4 + n, ceiling=5 + n, kept=2 + n % 3)
        for n in range(N_EVALUATIONS)
    )
    before, main = script.split("def main():", 1)
    return f"{before}{grown}def main():{main}"


def _git(root: Path, *args: str) -> None:
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@example.invalid")
    subprocess.run(["git", *identity, *args], cwd=root, check=True)
