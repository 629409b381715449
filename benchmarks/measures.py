"""Writes what a bench measured to `build/bench/NAME.json`, with machine and date."""

import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "build" / "bench"


def machine() -> str:
    """The machine in words: processor, cores and memory; no names."""
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{_processor()}, {os.cpu_count()} cores, {pages / (1 << 30):.0f} GiB"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def write_measures(name: str, measures: Mapping[str, float]) -> Path:
    """Write the measures, whole or not at all; returns the file."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.json"
    date = datetime.now(UTC).isoformat(timespec="seconds")
    content = {"machine": machine(), "date": date, "measures": dict(measures)}
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
    part.replace(path)
    return path
