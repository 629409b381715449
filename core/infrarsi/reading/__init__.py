"""Text to facts: what a job's sources say, with places, and what could not be understood."""

from infrarsi.reading.memory import Memory
from infrarsi.reading.program import Call, Program
from infrarsi.reading.propose import bare_job, default_job, propose_contract
from infrarsi.reading.read import follow, read
from infrarsi.reading.reading import Problem, Reading, Role, RoleSpan
from infrarsi.reading.sources import MappingSources, Sources

__all__ = [
    "Call",
    "MappingSources",
    "Memory",
    "Problem",
    "Program",
    "Reading",
    "Role",
    "RoleSpan",
    "Sources",
    "bare_job",
    "default_job",
    "follow",
    "propose_contract",
    "read",
]
