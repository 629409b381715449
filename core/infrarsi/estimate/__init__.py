"""Step time and peak memory of a described job, without running it.

`read_job(mapping)` and `physics(job)` are the textbook costs.
"""

from infrarsi.estimate.job import Job, UnreadableJob, read_job
from infrarsi.estimate.physics import Physics, physics

__all__ = ["Job", "Physics", "UnreadableJob", "physics", "read_job"]
