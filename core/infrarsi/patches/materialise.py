"""A candidate as it is run: edits of the workspace's texts and a launch.

Only what differs from the user's start is changed. Setting knobs go through their bindings,
found afresh in the text by name, then the patches are applied on top. Leaves out writing files.
"""

import inspect

from infrarsi.edits import Edit, diff_texts
from infrarsi.frozen import Frozen, Scalar
from infrarsi.knobs import Binding, Candidate, Knob, Space
from infrarsi.launch import Launch
from infrarsi.patches.binding import set_argument, set_argument_default, set_constant
from infrarsi.patches.catalogue import compose, recipe_named
from infrarsi.patches.document_binding import DOCUMENT_CARRIERS, set_document_value
from infrarsi.patches.overlay import Overlay
from infrarsi.patches.recipe import Declined, Recipe
from infrarsi.reading.sources import Sources
from infrarsi.wire.results import PromotionPart


class Materialised(Frozen):
    """Edits against the original sources, the launch, and one sentence on each changed knob."""

    edits: tuple[Edit, ...]
    launch: Launch
    whys: dict[str, str]


def materialise(
    candidate: Candidate, space: Space, sources: Sources, launch: Launch
) -> Materialised | Declined:
    """Turn a candidate into edits and a launch.

    Declines where a binding's text is not found, where a quotient does not come out whole, or
    where a patch does not apply. The default setting gives no edits and the same launch.
    """
    overlay = Overlay(sources)
    whys: dict[str, str] = {}
    for name, value in candidate.changed(space).items():
        knob = next((k for k in space.knobs if k.name == name), None)
        if knob is None:
            return Declined(reason=f"The space has no knob {name}.")
        if knob.kind == "patch":
            continue
        bound = _bind(knob, value, overlay, launch)
        if isinstance(bound, Declined):
            return bound
        launch = bound
        whys[name] = _why_setting(knob, value)
    composed = compose(candidate.patches(space), overlay, launch)
    if isinstance(composed, Declined):
        return composed
    overlay.update(composed.texts)
    whys |= composed.whys
    return Materialised(edits=_edits(sources, overlay), launch=launch, whys=whys)


def describe(candidate: Candidate, space: Space) -> tuple[PromotionPart, ...]:
    """One part a changed knob or patch, with one sentence on what it does."""
    parts: list[PromotionPart] = []
    for knob in space.knobs:
        if knob.name not in candidate.changed(space):
            continue
        value = candidate.setting[knob.name]
        recipe = recipe_named(knob.name) if knob.kind == "patch" else None
        why = _why_setting(knob, value) if recipe is None else _first_sentence(recipe)
        parts.append(PromotionPart(knob=knob.name, value=value, why=why))
    return tuple(parts)


def _bind(knob: Knob, value: Scalar, overlay: Overlay, launch: Launch) -> Launch | Declined:
    """Write the value through every binding of the knob; texts go to the overlay."""
    if not knob.bindings:
        return Declined(reason=f"Nothing says how {knob.name} reaches the job.")
    for binding in knob.bindings:
        written = _written(knob, binding, value)
        if isinstance(written, Declined):
            return written
        if binding.carrier in ("constant", "argument_default", *DOCUMENT_CARRIERS):
            text = _rewritten(binding, written, overlay)
            if isinstance(text, Declined):
                return text
            overlay.update({binding.file or "": text})
        elif binding.carrier == "argument":
            args = set_argument(launch.args, binding.name, written)
            launch = launch.model_copy(update={"args": args})
        else:
            env = {**launch.env, binding.name: str(written)}
            launch = launch.model_copy(update={"env": env})
    return launch


def _written(knob: Knob, binding: Binding, value: Scalar) -> Scalar | Declined:
    if binding.quotient_of is None:
        return value
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        return Declined(reason=f"{binding.quotient_of} cannot be divided by {knob.name}={value}.")
    if binding.quotient_of % value:
        return Declined(
            reason=f"{binding.name} would not be whole: {binding.quotient_of} / {value}."
        )
    return binding.quotient_of // value


def _rewritten(binding: Binding, value: Scalar, overlay: Overlay) -> str | Declined:
    text = overlay.text(binding.file or "")
    if text is None:
        return Declined(reason=f"There is no file {binding.file} to set {binding.name} in.")
    if binding.carrier in DOCUMENT_CARRIERS:
        return set_document_value(binding, text, value)
    write = set_constant if binding.carrier == "constant" else set_argument_default
    return write(binding, text, value)


_WHY = {
    "micro_batch": "{value} rows a micro-step instead of {default}; rows a step stay the same.",
    "threads": "{value} threads a process instead of {default} (0: as many as the library takes).",
    "workers": "{value} loader workers instead of {default}; the rows and their order stay.",
}


def _why_setting(knob: Knob, value: Scalar) -> str:
    words = _WHY.get(knob.role, "{name} is {value} instead of {default}.")
    return words.format(name=knob.name, value=value, default=knob.default)


def _first_sentence(recipe: Recipe) -> str:
    return (inspect.getdoc(type(recipe)) or recipe.title).partition("\n")[0]


def _edits(sources: Sources, overlay: Overlay) -> tuple[Edit, ...]:
    return tuple(
        edit
        for path, text in sorted(overlay.changed().items())
        for edit in diff_texts(path, sources.text(path) or "", text)
    )
