"""L214: fp16 keeps a live loss scaler.

Small gradients underflow in float16. A scaler multiplies the loss before backward, and divides
gradients before they are clipped and applied. Without it, or with steps that are silently
skipped, the weights stand still. bfloat16 needs none of this.

Mend it by `GradScaler`: scale, backward, unscale_, clip, step, update; or by bfloat16.
"""

from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.reading.roles import CLIP_CALLS
from infrarsi.reading.values import Known
from infrarsi.rules.change import Change
from infrarsi.rules.loss.sides import alive, loop_place

CODE = "L214"
_SCALERS = ("GradScaler", "ShardedGradScaler")
_LIBRARIES = ("Accelerator", "Fabric", "Trainer", "initialize")


def find(change: Change) -> Iterator[Violation]:
    """An error for fp16 without a scaler or clipping of scaled gradients."""
    if change.sides is None:
        return
    now, was = change.sides
    broken, held = _broken(now), _broken(was)
    if broken is not None and (held is None or held[0] != broken[0]):
        what, place, certain = broken
        yield violation(
            CODE,
            f"{what}; the contract holds fp16 only with a live loss scaler.",
            severity="error" if certain else "warning",
            place=place,
        )


def _broken(program: Program) -> tuple[str, Place | None, bool] | None:
    precision = program.reading.fact("precision")
    scalers = alive(program, *_SCALERS)
    live = [call for call in scalers if not _is_off(call.argument("enabled"))]
    place = loop_place(program)
    parameters = program.reading.fact("parameters")
    is_cast = parameters is not None and parameters.value == "fp16"
    if precision is not None and precision.value == "fp16" and not live and not is_cast:
        certain = not alive(program, *_LIBRARIES)
        return "fp16 is used without a loss scaler", precision.place or place, certain
    if not live:
        return None
    if not alive(program, "scale"):
        return "The loss is not scaled before backward", place, False
    if alive(program, *CLIP_CALLS) and not alive(program, "unscale_"):
        return "Scaled gradients are clipped before they are unscaled", place, True
    if not alive(program, "update"):
        return "The loss scaler is never updated", place, False
    return None


def _is_off(value: object) -> bool:
    return isinstance(value, Known) and value.value is False
