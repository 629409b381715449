"""The device type a micro-step runs on, as code: `"cuda"`, `"cpu"` or from the device's name."""

from collections.abc import Iterator

import libcst as cst

from infrarsi.patches.micro_step import MicroStep
from infrarsi.patches.syntax import argument, calls, code_of, dotted, loads, method, stores, walk

_HOLDERS = ("self", "args", "cfg", "config", "conf", "opt", "hparams", "params")


def device_type(step: MicroStep, torch: str) -> str:
    """An expression for `torch.autocast(device_type=...)`, valid where the micro-step stands.

    Args:
        step: the micro-step.
        torch: how its file spells torch.
    """
    visible = _visible_names(step)
    for use in _device_uses(step):
        literal = _literal_type(use)
        if literal is not None:
            return f'"{literal}"'
        name = dotted(use)
        if name is None or not _is_reachable(name, visible):
            continue
        values = _assigned(step, name)
        literals = {_literal_type(value) for value in values}
        if len(literals) == 1 and (known := literals.pop()) is not None:
            return f'"{known}"'
        if _looks_like_device(name, values):
            return f"{torch}.device({name}).type"
    return '"cuda"' if _uses_cuda(step) else '"cpu"'


def _device_uses(step: MicroStep) -> Iterator[cst.BaseExpression]:
    """What is given as a device, nearest first: in the function, then in the file."""
    for node in (step.scope, step.module.tree):
        for call in calls(node):
            if method(call) == "to" and (first := argument(call, 0, "device")) is not None:
                yield first
            elif (device := argument(call, None, "device")) is not None:
                yield device
            elif step.module.names.full(call.func) == "torch.set_default_device":
                yield call.args[0].value


def _is_reachable(name: str, visible: set[str]) -> bool:
    """Whether the name can be read at the micro-step; a tensor's `.device` may not be there."""
    head, _, rest = name.partition(".")
    return head in visible and (rest != "device" or head in _HOLDERS)


def _literal_type(node: cst.BaseExpression) -> str | None:
    if isinstance(node, cst.Call) and dotted(node.func) in ("torch.device", "device") and node.args:
        node = node.args[0].value
    if isinstance(node, cst.SimpleString):
        value = node.evaluated_value
        kind = str(value).partition(":")[0]
        return kind if kind in ("cuda", "cpu", "mps", "xpu") else None
    return None


def _assigned(step: MicroStep, name: str) -> list[cst.BaseExpression]:
    return [
        node.value
        for node in walk(step.module.tree)
        if isinstance(node, cst.Assign) and any(dotted(t.target) == name for t in node.targets)
    ]


def _looks_like_device(name: str, values: list[cst.BaseExpression]) -> bool:
    last = name.rpartition(".")[2].lower()
    if any(word in last for word in ("dev", "rank", "gpu")):
        return True
    return any("cuda" in code_of(v) or "torch.device" in code_of(v) for v in values)


def _visible_names(step: MicroStep) -> set[str]:
    visible = stores(step.scope)
    for statement in step.module.tree.body:
        if not isinstance(statement, cst.FunctionDef | cst.ClassDef):
            visible |= stores(statement)
    if step.function is not None:
        visible |= {n.name.value for n in walk(step.function.params) if isinstance(n, cst.Param)}
        visible |= loads(step.function) & {"self"}
    return visible


def _uses_cuda(step: MicroStep) -> bool:
    return any(method(call) == "cuda" for call in calls(step.module.tree))
