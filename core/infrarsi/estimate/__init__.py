"""Step time and peak memory of a described job, without running it.

`estimate_job(mapping)` answers with intervals; `read_job(mapping)` and `physics(job)` are the
textbook costs beneath.
"""

from infrarsi.estimate.estimating import Bounds, Estimate, estimate_job
from infrarsi.estimate.job import Job, UnreadableJob, read_job
from infrarsi.estimate.physics import Physics, physics

__all__ = [
    "Bounds",
    "Estimate",
    "Job",
    "Physics",
    "UnreadableJob",
    "estimate_job",
    "physics",
    "read_job",
]
