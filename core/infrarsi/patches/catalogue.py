"""All recipes, the knobs they make, and how several are put together."""

from collections.abc import Iterable, Mapping

from infrarsi.frozen import Frozen
from infrarsi.knobs import Knob
from infrarsi.launch import Launch
from infrarsi.patches.overlay import Overlay
from infrarsi.patches.recipe import Claim, Declined, Recipe
from infrarsi.patches.recipes.bf16_autocast import Bf16Autocast
from infrarsi.patches.recipes.drop_micro_sync import DropMicroSync
from infrarsi.patches.recipes.fused_optimizer import FusedOptimizer
from infrarsi.patches.recipes.sdpa import Sdpa
from infrarsi.reading.sources import Sources

RECIPES: tuple[Recipe, ...] = (Sdpa(), DropMicroSync(), FusedOptimizer(), Bf16Autocast())
"""In the order they are applied: autocast last, since it indents what others look for."""


class Composed(Frozen):
    """New texts of all changed files, and one sentence a recipe."""

    texts: dict[str, str]
    whys: dict[str, str]


def recipe_named(name: str) -> Recipe | None:
    """The recipe of that name."""
    return next((recipe for recipe in RECIPES if recipe.name == name), None)


def claims() -> Mapping[str, Claim]:
    """What each recipe claims, by its name."""
    return {recipe.name: recipe.claim for recipe in RECIPES}


def patch_knobs(sources: Sources, launch: Launch) -> tuple[tuple[Knob, ...], dict[str, Declined]]:
    """One boolean knob for each recipe that applies here, and why the others do not."""
    knobs: list[Knob] = []
    declined: dict[str, Declined] = {}
    for recipe in RECIPES:
        outcome = recipe.rewrite(sources, launch)
        if isinstance(outcome, Declined):
            declined[recipe.name] = outcome
        else:
            knobs.append(_knob(recipe))
    return tuple(knobs), declined


def compose(names: Iterable[str], sources: Sources, launch: Launch) -> Composed | Declined:
    """Apply the named recipes one on top of the other, always in the same order.

    Declines where a name is unknown, two recipes conflict, or one does not apply.
    """
    wanted = set(names)
    unknown = sorted(wanted - {recipe.name for recipe in RECIPES})
    if unknown:
        return Declined(reason=f"There is no recipe {unknown[0]}.")
    overlay = Overlay(sources)
    whys: dict[str, str] = {}
    for recipe in RECIPES:
        if recipe.name not in wanted:
            continue
        clash = sorted(wanted & set(recipe.conflicts))
        if clash:
            return Declined(reason=f"{recipe.name} and {clash[0]} exclude each other.")
        outcome = recipe.rewrite(overlay, launch)
        if isinstance(outcome, Declined):
            return Declined(reason=f"{recipe.name}: {outcome.reason}")
        overlay.update(outcome.texts)
        whys[recipe.name] = outcome.why
    return Composed(texts=overlay.changed(), whys=whys)


def _knob(recipe: Recipe) -> Knob:
    return Knob(
        name=recipe.name,
        type="bool",
        choices=(False, True),
        kind="patch",
        default=False,
        role="patch",
    )
