"""The evidence file of this rank: put together, and written whole or not at all."""

import json
import os
import platform
import sys
from pathlib import Path

from infrarsi_probe import memory, ranks


def base_evidence(config, base_rss):
    """The fields that need no torch; the session's fields replace these."""
    torch = sys.modules.get("torch")
    return {
        "version": 1,
        "mode": config.mode,
        "rank": ranks.rank(),
        "local_rank": ranks.local_rank(),
        "world_size": ranks.world_size(),
        "pid": os.getpid(),
        "torch_version": str(getattr(torch, "__version__", "")),
        "python_version": platform.python_version(),
        "n_threads": 0,
        "base_rss_bytes": base_rss,
        "peak_rss_bytes": memory.status_bytes("VmHWM"),
    }


def evidence_path(config):
    """Where this rank's evidence goes."""
    return Path(config.evidence_dir) / f"rank{ranks.rank()}.json"


def write_evidence(path, evidence):
    """Write next to the place, then rename. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    with part.open("w", encoding="utf-8") as file:
        json.dump(evidence, file, allow_nan=False)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def outside_imports(root):
    """Modules from elsewhere although their top-level package lies in the source root too."""
    if not root:
        return ()
    base = Path(root).resolve()
    found = set()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        elsewhere = file and name != "__main__" and base not in Path(file).resolve().parents
        if elsewhere and _lies_in(base, name.split(".")[0]):
            found.add(name)
    return tuple(sorted(found))


def _lies_in(base, top):
    return any(
        (folder / f"{top}.py").is_file() or (folder / top / "__init__.py").is_file()
        for folder in (base, base / "src")
    )
