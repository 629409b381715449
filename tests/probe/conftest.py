import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from probe_jobs import run_job

from infrarsi.wire.probe import ProbeConfig, RankEvidence


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> RankEvidence:
    """The naive job on one rank: four micro-steps of two rows."""
    folder = tmp_path_factory.mktemp("reference") / "evidence"
    settings = ProbeConfig(mode="timed", evidence_dir=str(folder), warmup_steps=1, window_steps=3)
    end = run_job(settings)
    assert end.code == 0, end.output
    return end.evidence[0]


@pytest.fixture
def config(tmp_path: Path) -> Callable[..., ProbeConfig]:
    """Makes a configuration with an evidence folder of its own; a short window by default."""
    numbers = itertools.count()

    def make(**fields: object) -> ProbeConfig:
        folder = tmp_path / f"evidence{next(numbers)}"
        short = {"mode": "timed", "warmup_steps": 1, "window_steps": 3}
        return ProbeConfig.model_validate({**short, "evidence_dir": str(folder), **fields})

    return make
