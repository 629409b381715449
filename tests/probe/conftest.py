import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from infrarsi.wire.probe import ProbeConfig


@pytest.fixture
def config(tmp_path: Path) -> Callable[..., ProbeConfig]:
    """Makes a configuration with an evidence folder of its own; a short window by default."""
    numbers = itertools.count()

    def make(**fields: object) -> ProbeConfig:
        folder = tmp_path / f"evidence{next(numbers)}"
        short = {"mode": "timed", "warmup_steps": 1, "window_steps": 3}
        return ProbeConfig.model_validate({**short, "evidence_dir": str(folder), **fields})

    return make
