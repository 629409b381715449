"""The parameters' format of a model that transformers makes: `from_pretrained(..., dtype=...)`."""

from infrarsi.reading.evaluate import Evaluator
from infrarsi.reading.project import CallSite
from infrarsi.reading.scopes import guards_around
from infrarsi.reading.trainers.dialects import torch_format
from infrarsi.reading.values import Known, Symbol, Unknown, Value

_MAKERS = ("from_pretrained", "from_config", "_from_config")


def model_format(evaluator: Evaluator) -> tuple[Value, CallSite | None] | None:
    """The format and the call that sets it; None where no such model is made."""
    for name in _MAKERS:
        for site in evaluator.project.calls_by_name.get(name, []):
            frame = evaluator.frame(site.scope)
            callee = evaluator.value(site.call.func, frame)
            holds = evaluator.hold(guards_around(site.scope, site.call), frame)
            if isinstance(callee, Unknown) and evaluator.project.half_typed:
                return Unknown("which model is made is not found while lines are half typed"), None
            if holds is False or not isinstance(callee, Symbol) or not _is_model(callee.name):
                continue
            value, placed = _format(evaluator, site)
            if holds is None and isinstance(value, Known):
                return Unknown("which model is made depends on a condition not known"), None
            return value, placed
    return None


def _is_model(name: str) -> bool:
    library, _, rest = name.partition(".")
    made = rest.split(".")[-2:-1]
    return library == "transformers" and any("Model" in part or "For" in part for part in made)


def _format(evaluator: Evaluator, site: CallSite) -> tuple[Value, CallSite | None]:
    frame = evaluator.frame(site.scope)
    given = {k.arg: k.value for k in site.call.keywords}
    if "quantization_config" in given:
        return Unknown("the model is quantized as it is loaded"), None
    written = given.get("dtype") or given.get("torch_dtype")
    if written is not None:
        value = evaluator.value(written, frame)
        found = torch_format(value)
        if found is not None:
            return Known(found, (), site.scope.source.place(written)), site
        if not (isinstance(value, Known) and value.value is None):
            return Unknown("the format the model is loaded in is not known"), None
    if None in given or site.name == "from_pretrained":
        return Unknown("the format is the checkpoint's or 32 bits, by transformers' version"), None
    return Known("fp32"), None
