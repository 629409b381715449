"""What a recipe is: pure text to text, with a claim the trials put to the test."""

from typing import Literal, Protocol

from infrarsi.frozen import Frozen
from infrarsi.launch import Launch
from infrarsi.reading.sources import Sources


class Claim(Frozen):
    """Expected effect: natural log of before/after step time, and its uncertainty (one sd)."""

    log_speedup: float
    sd: float


class Rewritten(Frozen):
    """New texts of the files the recipe changed, and one sentence on why it is the same maths."""

    texts: dict[str, str]
    why: str


class Declined(Frozen):
    """Why the recipe does not apply here; one sentence."""

    reason: str


class Recipe(Protocol):
    """One rewrite. `name` is a stable identifier (`bf16_autocast`); `title` is for people."""

    name: str
    title: str
    claim: Claim
    memory_role: Literal["hungry", "saver", "neutral"]
    conflicts: tuple[str, ...]

    def rewrite(self, sources: Sources, launch: Launch) -> Rewritten | Declined:
        """Detect by meaning and rewrite, or decline with a reason. Never raises on odd code."""
        ...
