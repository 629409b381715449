"""Recipes (one rewrite each), their composition, and a candidate's edits and launch."""

from infrarsi.patches.catalogue import RECIPES, Composed, claims, compose, patch_knobs
from infrarsi.patches.materialise import Materialised, describe, materialise
from infrarsi.patches.overlay import Overlay, overlay
from infrarsi.patches.recipe import Claim, Declined, Recipe, Rewritten
from infrarsi.patches.shrink import Shrunk, shrink

__all__ = [
    "RECIPES",
    "Claim",
    "Composed",
    "Declined",
    "Materialised",
    "Overlay",
    "Recipe",
    "Rewritten",
    "Shrunk",
    "claims",
    "compose",
    "describe",
    "materialise",
    "overlay",
    "patch_knobs",
    "shrink",
]
